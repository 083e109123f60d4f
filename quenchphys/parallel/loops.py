"""A loop over items on the device, compiled to the same code whatever their number."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def each(function: Any, items: Any) -> Any:
    """`jax.lax.map`, compiled to the same code whatever the number of items."""
    function = jax.jit(function)  # traced once, for its shapes and in the loop
    count = jax.tree.leaves(items)[0].shape[0]
    row = jax.lax.dynamic_index_in_dim
    if count == 1:  # the compiler knows that row i of one row is row 0, and would write other code: give it two
        items = jax.tree.map(lambda a: jnp.concatenate([a, a]), items)
    rows = max(count, 2)
    shapes = jax.eval_shape(function, jax.tree.map(lambda a: a[0], items))

    def one(i, done):
        result = function(jax.tree.map(lambda a: row(a, i, keepdims=False), items))
        return jax.tree.map(lambda a, b: jax.lax.dynamic_update_index_in_dim(a, b, i, 0), done, result)

    nothing = jax.tree.map(lambda s: jnp.empty((rows, *s.shape), s.dtype), shapes)
    done = jax.lax.fori_loop(0, jax.lax.optimization_barrier(jnp.int32(count)), one, nothing)
    return jax.tree.map(lambda a: a[:count], done)
