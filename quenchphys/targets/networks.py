"""Bayesian classifiers: fully connected networks with a standard normal prior on every parameter.

Layer l of a network with activation f is, for one example z (paper, appendix "Problem definitions"),

    h_l = f( W_l^T h_{l-1} / sqrt(d_{l-1}) + 0.1 b_l ),   h_0 = z,   logits = W^T h / sqrt(d)

with biases b on the hidden layers only, so that D = sum over hidden layers of (d_{l-1} + 1) d_l, plus d_last K.  With the
labels y of all training examples

    U = sum_i [ log sum_k exp f_k(z_i) - f_{y_i}(z_i) ],     Z = E_pi[exp(-U)]  the evidence.

Examples run along the last axis, where they are contiguous: on a CPU the products of small matrices with such long rows are
up to twice as fast as those with a row for each example (`benchmarks/speed/networks.py`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.targets.prior import StandardNormal
from quenchphys.targets.tables import digest, read_table, split_table

Array = jax.Array

BIAS_SCALE = 0.1
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": lambda x: jnp.maximum(x, 0.0),
    "gelu": jax.nn.gelu,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
}


class Layer(NamedTuple):
    """Weights (..., inputs, outputs) and biases (..., outputs) of one layer; the last layer has no biases."""

    weight: Array
    bias: Array | None


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["inputs", "labels", "test_inputs", "test_labels"],
    meta_fields=["classes", "hidden", "activation", "origin"],
)
@dataclass(frozen=True, eq=False)
class Network(StandardNormal):
    """A Bayesian classifier; `network` makes one of a file.

    Parameters
    ----------
    inputs, labels
        Standardised training examples (n, d) and their classes (n,), from 0 to K - 1.
    test_inputs, test_labels
        Examples that were put aside.
    classes
        Names of the classes.
    hidden
        Numbers of units of the hidden layers.
    activation
        Name of the activation.
    origin
        Where the data come from, as (name, value) pairs for files.

    Examples
    --------
    >>> model = qp.targets.network("sonar.csv", activation="relu")
    >>> model.dim
    1280
    """

    inputs: Any
    labels: Any
    test_inputs: Any
    test_labels: Any
    classes: tuple[str, ...]
    hidden: tuple[int, ...]
    activation: str
    origin: tuple[tuple[str, Any], ...] = ()
    name: ClassVar[str] = "network"
    dims: ClassVar[tuple[str, ...]] = ("parameter",)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of every layer, from the inputs to the logits."""
        return (self.inputs.shape[-1], *self.hidden, len(self.classes))

    @property
    def dim(self) -> int:  # type: ignore[override]
        """D, the number of parameters."""
        pairs = list(zip(self.sizes[:-1], self.sizes[1:], strict=True))
        return sum(fan_in * units for fan_in, units in pairs) + sum(self.hidden)

    @property
    def parameters(self) -> dict[str, Any]:
        """What files say about the network and its data."""
        described = {"activation": self.activation, "hidden": list(self.hidden), "dim": self.dim}
        return described | {"classes": list(self.classes)} | dict(self.origin)

    def predict(self, x: Array) -> Array:
        """Logits (n, K) of the training examples, for one configuration."""
        return self.logits(x, self.inputs).T

    def loss(self, outputs: Array) -> Array:
        """Negative log likelihood of the training labels, summed, from the logits (n, K): U(x) = loss(predict(x))."""
        return -jnp.sum(log_likelihood(outputs.T, self.labels))

    def energy(self, x: Array) -> Array:
        """U of one configuration."""
        return self.loss(self.predict(x))

    def test_log_likelihood(self, x: Array) -> Array:
        """log p(y_i | z_i, x) of the test examples, (m, n_test) for a batch of configurations (m, D)."""
        return log_likelihood(self.logits(x, self.test_inputs), self.test_labels)

    def logits(self, x: Array, inputs: Array) -> Array:
        """Logits (..., K, n) of n examples, for configurations (..., D)."""
        activate = ACTIVATIONS[self.activation]
        *hidden, last = self.layers(x)
        h = jnp.asarray(inputs, x.dtype).T
        for layer in hidden:
            assert layer.bias is not None
            h = activate(_product(layer.weight, h) + BIAS_SCALE * layer.bias[..., None])
        return _product(last.weight, h)

    def layers(self, x: Array) -> list[Layer]:
        """The parameters (..., D) by layers: weights, then biases."""
        found, place = [], 0
        pairs = list(zip(self.sizes[:-1], self.sizes[1:], strict=True))
        for number, (fan_in, units) in enumerate(pairs):
            weight = x[..., place : place + fan_in * units].reshape(*x.shape[:-1], fan_in, units)
            place += fan_in * units
            bias = None
            if number < len(self.hidden):
                bias = x[..., place : place + units]
                place += units
            found.append(Layer(weight, bias))
        return found


def _product(weight: Array, h: Array) -> Array:
    """W^T h / sqrt(d): (..., d, units) and (..., d, n) -> (..., units, n); the h of the first layer is shared by all."""
    scaled = weight / math.sqrt(weight.shape[-2])
    return jnp.einsum("...du,...dn->...un", scaled, h, precision=jax.lax.Precision.HIGHEST)


def log_likelihood(logits: Array, labels: Array) -> Array:
    """log p(y_i), (..., n), from logits (..., K, n) and classes (n,)."""
    own = jnp.arange(logits.shape[-2])[:, None] == labels
    return jnp.sum(jnp.where(own, logits, 0.0), axis=-2) - jax.nn.logsumexp(logits, axis=-2)


def network(
    csv: str | os.PathLike[str],
    hidden: Sequence[int] = (16, 16),
    activation: str = "tanh",
    *,
    label: str = "label",
    classes: Mapping[Any, Any] | None = None,
    missing: str = "refuse",
    test: float = 0.1,
    split: int = 0,
    stratified: bool = True,
) -> Network:
    """A Bayesian classifier of the examples in a CSV file, with a standard normal prior on every parameter.

    Weights into a unit with d_in inputs are divided by sqrt(d_in), and biases of the hidden layers multiplied by 0.1;
    the last layer has no biases.  The likelihood is that of all training examples.

    Parameters
    ----------
    csv
        A file with a header row, a column of classes, and numbers in all other columns.
    hidden
        Units of the hidden layers; () is multinomial logistic regression.
    activation
        "tanh", "relu", "gelu", "sigmoid" or "softplus".
    label
        Name of the column of classes: words or whole numbers.
    classes
        {label: class}, to merge labels into one class, such as {0: "no", 1: "yes", 2: "yes"}.
    missing
        Rows with missing values (empty, "?", "NA") are refused by default; "drop" leaves them out.
    test
        Share of the rows that is put aside for `test_log_likelihood`.
    split
        Seed of the choice of these rows.
    stratified
        Put aside this share of every class, at least one row, so that every class is in both parts.

    Returns
    -------
    Network
        A problem for every sampler, with `predict`, `loss`, `test_log_likelihood` and `dim`.

    Examples
    --------
    >>> tanh = qp.targets.network("sonar.csv")
    >>> relu = qp.targets.network("sonar.csv", activation="relu")
    >>> ladders = [qp.quench(model, particles=100) for model in (tanh, relu)]
    >>> observables.bayes_factor(*ladders)
    """
    units = _units(hidden)
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; {activation!r} was given")
    table = read_table(csv, label, classes, missing)
    data = split_table(table, test, split, stratified)
    origin = {
        "data": table.name,
        "split": int(split),
        "training": len(data.labels),
        "test": len(data.test_labels),
        "digest": digest(data.inputs, data.labels),
    }
    return Network(
        inputs=jnp.asarray(data.inputs),
        labels=jnp.asarray(data.labels),
        test_inputs=jnp.asarray(data.test_inputs),
        test_labels=jnp.asarray(data.test_labels),
        classes=table.classes,
        hidden=units,
        activation=activation,
        origin=tuple(origin.items()),
    )


def _units(hidden: Any) -> tuple[int, ...]:
    """The numbers of hidden units, if they are such."""
    whole = isinstance(hidden, Sequence) and not isinstance(hidden, str)
    if not whole or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in hidden):
        raise ValueError(
            f"hidden must be a sequence of positive whole numbers, the units of each hidden layer; {hidden!r} was given"
        )
    return tuple(int(n) for n in hidden)
