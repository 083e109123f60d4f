"""Likelihoods of a user's own network: a function of parameters and inputs, in flax or plain JAX, and a loss.

    U(x) = loss(apply(scale * x, inputs), labels),     x ~ N(0, 1) for every parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenchphys.console.messages import one_line
from quenchphys.targets.prior import StandardNormal
from quenchphys.targets.tables import digest

Array = jax.Array

TOLERANCE = 1e-3  # between a loss and the sum of its parts, relative


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["inputs", "labels", "test_inputs", "test_labels", "scale"],
    meta_fields=["apply", "cost", "unflatten", "dim", "name", "description"],
)
@dataclass(frozen=True, eq=False)
class Likelihood(StandardNormal):
    """A model of a user's own as a problem; `likelihood` makes one.

    Parameters
    ----------
    inputs, labels
        Training examples and what is to be predicted of them; the first axis counts examples.
    test_inputs, test_labels
        Examples that were put aside, or None.
    scale
        (D,), the prior standard deviation of every parameter.
    apply
        (parameters, inputs) -> outputs.
    cost
        (outputs, labels) -> negative log likelihood, summed over examples.
    unflatten
        From a vector of all parameters to the parameters as `apply` takes them.
    dim
        Number of parameters.
    name, description
        What files say about it: a name, and (name, value) pairs.

    Examples
    --------
    >>> model = qp.targets.likelihood(net.apply, params, loss, (inputs, labels))
    >>> model.dim, model.predict(jnp.zeros(model.dim)).shape
    """

    inputs: Any
    labels: Any
    test_inputs: Any
    test_labels: Any
    scale: Array
    apply: Callable[[Any, Any], Any]
    cost: Callable[[Any, Any], Array]
    unflatten: Callable[[Array], Any]
    dim: int
    name: str = "likelihood"
    description: tuple[tuple[str, Any], ...] = ()
    dims: ClassVar[tuple[str, ...]] = ("parameter",)

    @property
    def parameters(self) -> dict[str, Any]:
        """What files say about the model."""
        return {"dim": self.dim} | dict(self.description)

    def predict(self, x: Array) -> Any:
        """Outputs for the training inputs, of one configuration."""
        return self._outputs(x, self.inputs)

    def loss(self, outputs: Any) -> Array:
        """Negative log likelihood of the training labels: U(x) = loss(predict(x))."""
        return self.cost(outputs, self.labels)

    def energy(self, x: Array) -> Array:
        """U of one configuration."""
        return self.loss(self.predict(x))

    def test_log_likelihood(self, x: Array) -> Array:
        """log p(y_i | z_i, x) of the test examples, (m, n_test) for a batch of configurations (m, D)."""
        if self.test_inputs is None:
            raise ValueError("this likelihood has no test data; give them as test=(inputs, labels)")
        return jax.vmap(lambda x: -_each(self.cost, self._outputs(x, self.test_inputs), self.test_labels))(x)

    def _outputs(self, x: Array, inputs: Any) -> Any:
        return self.apply(self.unflatten(self.scale * x), inputs)


def likelihood(
    apply: Callable[[Any, Any], Any],
    parameters: Any,
    loss: Callable[[Any, Any], Array],
    data: tuple[Any, Any],
    *,
    test: tuple[Any, Any] | None = None,
    scale: Any = 1.0,
    name: str = "likelihood",
) -> Likelihood:
    """A network of your own, in flax or plain JAX, as a problem with a normal prior on every parameter.

    Parameters
    ----------
    apply
        (parameters, inputs) -> outputs, such as `model.apply` of a flax module.
    parameters
        An example of its parameters, such as `model.init(key, inputs)`; only their shapes matter.
    loss
        (outputs, labels) -> negative log likelihood, summed (not averaged) over the examples.
    data
        Training inputs and labels; the first axis of both counts examples.
    test
        Inputs and labels that were put aside, for `test_log_likelihood`.
    scale
        Prior standard deviations: one number, or one for each array, in the structure of `parameters`.
    name
        What files call it.

    Returns
    -------
    Likelihood
        A problem for every sampler, with `predict`, `loss`, `test_log_likelihood` and `dim`.

    Examples
    --------
    >>> net = flax.linen.Dense(1)
    >>> squares = lambda outputs, labels: 0.5 * jnp.sum((outputs[:, 0] - labels) ** 2)
    >>> model = qp.targets.likelihood(net.apply, net.init(key, inputs), squares, (inputs, labels))
    >>> qp.quench(model, particles=200)
    """
    flat, unflatten = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf)), parameters))
    if not flat.size:
        raise ValueError("parameters must hold at least one number; they are empty")
    inputs, labels = _pair("data", data)
    test_inputs, test_labels = (None, None) if test is None else _pair("test", test)
    found = Likelihood(
        inputs=inputs,
        labels=labels,
        test_inputs=test_inputs,
        test_labels=test_labels,
        scale=_scales(scale, parameters),
        apply=apply,
        cost=loss,
        unflatten=unflatten,
        dim=int(flat.size),
        name=name,
        description=(("digest", digest(*jax.tree.leaves((inputs, labels)))),),
    )
    _check_loss(found)
    return found


def _pair(name: str, data: Any) -> tuple[Any, Any]:
    """Inputs and labels of equally many examples."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError(f"{name} must be a pair (inputs, labels); {type(data).__name__} was given")
    inputs, labels = (jax.tree.map(jnp.asarray, part) for part in data)
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves((inputs, labels))}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            f"inputs and labels of {name} must have equally many examples, along their first axes; they have "
            f"{' and '.join(map(str, sorted(counts)))}"
        )
    return inputs, labels


def _scales(scale: Any, parameters: Any) -> Array:
    """(D,), one scale for every parameter."""
    try:
        if np.ndim(scale) == 0 and not isinstance(scale, dict):
            spread = jax.tree.map(lambda leaf: jnp.full(jnp.shape(leaf), float(scale)), parameters)
        else:
            spread = jax.tree.map(lambda leaf, own: jnp.full(jnp.shape(leaf), own), parameters, scale)
    except (TypeError, ValueError) as cause:
        raise ValueError(
            f"scale must be a number, or numbers in the structure of parameters: {one_line(cause)}"
        ) from cause
    flat = ravel_pytree(spread)[0]
    if not bool(jnp.all(jnp.isfinite(flat) & (flat > 0))):
        raise ValueError("every scale must be positive and finite")
    return flat


def _each(cost: Callable[[Any, Any], Array], outputs: Any, labels: Any) -> Array:
    """The loss of every example by itself."""

    def one(outputs: Any, labels: Any) -> Array:
        return cost(*jax.tree.map(lambda leaf: leaf[None], (outputs, labels)))

    return jax.vmap(one)(outputs, labels)


def _check_loss(model: Likelihood) -> None:
    """Refuse functions that fail, and a loss that is not the sum of the losses of the examples, such as a mean."""
    try:
        outputs = model.predict(model.sample_prior(jax.random.key(0), 1)[0])
        together, each = model.loss(outputs), _each(model.cost, outputs, model.labels)
    except Exception as cause:  # of the user's functions
        raise ValueError(f"apply or loss fails for a draw from the prior: {one_line(cause)}") from cause
    if np.shape(together) != ():
        raise ValueError(
            "loss(outputs, labels) must return one number, the sum over examples; it returned the shape "
            f"{np.shape(together)}"
        )
    total = float(jnp.sum(each))
    if not abs(float(together) - total) <= TOLERANCE * float(jnp.sum(jnp.abs(each))):
        raise ValueError(
            "loss must be the sum of the losses of the examples, as a log likelihood is, not their mean; of all together it "
            f"is {float(together):.6g}, one by one {total:.6g}"
        )
