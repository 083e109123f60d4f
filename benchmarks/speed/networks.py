"""Cost of a gradient of a Bayesian network: examples along the last axis, as in `Network`, or along the first one.

    python -m benchmarks.speed.networks [--particles 32]

Five shapes, those of the paper's data sets with random numbers in them, on one core; microseconds of processor for each
particle, the best of several rounds in turn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness
from quenchphys.targets.networks import ACTIVATIONS, BIAS_SCALE, Network

SHAPES = {  # training examples, inputs, classes
    "sonar": (187, 60, 2),
    "glass": (192, 9, 6),
    "heart": (267, 13, 2),
    "australian": (621, 14, 2),
    "winered": (1439, 11, 6),
}


def random_network(n: int, d: int, classes: int, activation: str) -> Network:
    rng = np.random.default_rng(0)
    inputs, labels = jnp.asarray(rng.normal(size=(n, d)), jnp.float32), jnp.asarray(rng.integers(0, classes, n))
    names = tuple(map(str, range(classes)))
    return Network(inputs, labels, inputs[:1], labels[:1], names, (16, 16), activation)


def by_rows(model: Network, x):
    """U with a row for each example, as most networks are written."""
    h, layers = model.inputs, model.layers(x)
    for layer in layers[:-1]:
        h = ACTIVATIONS[model.activation](h @ layer.weight / math.sqrt(layer.weight.shape[0]) + BIAS_SCALE * layer.bias)
    logits = h @ layers[-1].weight / math.sqrt(layers[-1].weight.shape[0])
    own = jnp.take_along_axis(logits, model.labels[:, None], axis=1)[:, 0]
    return jnp.sum(jax.nn.logsumexp(logits, axis=1) - own)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--particles", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=6)
    chosen = parser.parse_args(arguments)
    harness.use_one_core()
    print(f"microseconds of processor for one gradient, {chosen.particles} particles together\n")
    print(f"{'':12s}{'':6s}{'D':>6s}{'columns':>9s}{'rows':>9s}{'ratio':>8s}")
    for name, shape in SHAPES.items():
        for activation in ("tanh", "relu"):
            model = random_network(*shape, activation)
            x = model.sample_prior(jax.random.key(1), chosen.particles)
            energies = {"columns": Network.energy, "rows": by_rows}
            both = {which: jax.jit(jax.vmap(jax.value_and_grad(f, 1), (None, 0))) for which, f in energies.items()}
            runs = {which: lambda f=f, model=model, x=x: jax.block_until_ready(f(model, x)) for which, f in both.items()}
            best = harness.fastest(runs, chosen.rounds, time.process_time)
            columns, rows = (1e6 * best[which] / chosen.particles for which in ("columns", "rows"))
            print(f"{name:12s}{activation:6s}{model.dim:6d}{columns:9.1f}{rows:9.1f}{rows / columns:8.2f}", flush=True)


if __name__ == "__main__":
    main()
