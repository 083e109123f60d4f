"""A loop over the rows of arrays on the device, compiled to the same code for any number of rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def map_rows(function: Any, items: Any) -> Any:
    """Apply a function to every row of a tree of arrays: `jax.lax.map`, compiled to the same code for any number of rows.

    Results then do not depend on how many rows there are, hence not on how replicas are distributed over devices.
    """
    function = jax.jit(function)  # traced once, for its shapes and in the loop
    count = jax.tree.leaves(items)[0].shape[0]
    row = jax.lax.dynamic_index_in_dim
    if count == 1:  # of a single row the compiler knows that i = 0, and would write other code: give it two
        items = jax.tree.map(lambda a: jnp.concatenate([a, a]), items)
    allocated = max(count, 2)
    shapes = jax.eval_shape(function, jax.tree.map(lambda a: a[0], items))

    def one(i, done):
        result = function(jax.tree.map(lambda a: row(a, i, keepdims=False), items))
        return jax.tree.map(lambda a, b: jax.lax.dynamic_update_index_in_dim(a, b, i, 0), done, result)

    nothing = jax.tree.map(lambda s: jnp.empty((allocated, *s.shape), s.dtype), shapes)
    done = jax.lax.fori_loop(0, jax.lax.optimization_barrier(jnp.int32(count)), one, nothing)
    return jax.tree.map(lambda a: a[:count], done)
