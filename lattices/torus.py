"""A periodic hypercubic lattice: its links, and the real Fourier modes in which its free field is diagonal.

The modes are cas(k x) = cos(k x) + sin(k x), k = 2 pi n / L: real, orthonormal over sqrt(L), and their matrix
is symmetric, so the transform is its own inverse.  Each is an eigenvector of -Laplacian with eigenvalue
khat^2 = sum_mu 4 sin^2(k_mu / 2), listed in the order of the FFT.

Two links join the sites of an axis with L = 2, one forward and one around the torus, and both are counted: the sum
over x and mu has both, and khat^2 = 4 sin^2(pi / 2) is the eigenvalue with both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array

# Longest axis for which a matrix product per axis beats the FFT.  On a CPU it is measured (benchmarks/speed/mode_basis.py);
# on accelerators, whose matrix units are faster relative to their FFT, it is a guess.
LONGEST_MATRIX_AXIS = {"cpu": 48}
LONGEST_MATRIX_AXIS_ELSEWHERE = 256

AXIS_NAMES = ("x", "y", "z", "t")


@dataclass(frozen=True)
class Torus:
    """A periodic lattice of `shape`; `transform` ("matrix" or "fft") is how fields reach their modes."""

    shape: tuple[int, ...]
    transform: str

    @property
    def sites(self) -> int:
        return int(np.prod(self.shape))

    @property
    def dims(self) -> tuple[str, ...]:
        if len(self.shape) <= len(AXIS_NAMES):
            return AXIS_NAMES[: len(self.shape)]
        return tuple(f"x{axis}" for axis in range(len(self.shape)))

    @property
    def eigenvalues(self) -> np.ndarray:
        """khat^2 of every mode, shape (sites,), in the order of `to_modes`."""
        return _eigenvalues(self.shape)

    @property
    def lowest_eigenvalue(self) -> float:
        """khat^2 of the smallest nonzero momentum, along the longest axes."""
        return float(4 * np.sin(np.pi / max(self.shape)) ** 2)

    def to_modes(self, x: Array) -> Array:
        """(..., *shape) -> (..., sites)"""
        batch = x.shape[: x.ndim - len(self.shape)]
        return self._hartley(x).reshape(*batch, self.sites)

    def from_modes(self, y: Array) -> Array:
        """(..., sites) -> (..., *shape), the transpose and inverse of `to_modes`."""
        return self._hartley(y.reshape(*y.shape[:-1], *self.shape))

    def link_energy(self, x: Array) -> Array:
        """sum_x sum_mu (phi_{x+mu} - phi_x)^2 of one configuration."""
        return jnp.stack([((jnp.roll(x, -1, axis) - x) ** 2).sum() for axis in range(len(self.shape))]).sum()

    def laplacian(self, x: Array) -> Array:
        """Half the gradient of the link energy, sum over neighbours of phi_x - phi_y, of a batch (n, *shape)."""
        axes = range(1, x.ndim)
        return 2 * len(axes) * x - sum(_neighbours(x, axis) for axis in axes)

    def lane_laplacian(self, x: Array) -> Array:
        """The Laplacian as in `laplacian`, of configurations side by side on the last axis, (*shape, lane)."""
        axes = range(x.ndim - 1)
        return 2 * len(axes) * x - sum(_neighbours(x, axis) for axis in axes)

    def lane_links(self, x: Array) -> Array:
        """sum_mu (phi_{x+mu} - phi_x)^2 at every site, (*shape, lane): each link stands at its lower end."""
        return sum((_above(x, axis) - x) ** 2 for axis in range(x.ndim - 1))  # type: ignore[return-value]

    def lane_products(self, x: Array) -> Array:
        """phi_x phi_{x+mu} of every link, (mu, *shape, lane)."""
        return jnp.stack([x * _above(x, axis) for axis in range(x.ndim - 1)])

    def lane_lowest(self, labels: Array, joined: Array) -> Array:
        """The lowest label among a site and those it is joined to, (*shape, lane); `joined` is over links."""
        lowest = labels
        for axis, link in enumerate(joined):
            lowest = jnp.minimum(lowest, jnp.where(link, _above(labels, axis), labels))
            lowest = jnp.minimum(lowest, jnp.where(_below(link, axis), _below(labels, axis), labels))
        return lowest

    def lowest_power(self, x: Array) -> Array:
        """|phi_k|^2 / V of one configuration, mean over the smallest momenta: one along each of the longest axes."""
        return self.lane_lowest_power(x[..., None])[0]

    def lane_lowest_power(self, x: Array) -> Array:
        """The same for configurations side by side on the last axis, (lane,)."""
        longest = max(self.shape)
        angle = 2 * np.pi * np.arange(longest) / longest
        waves = np.stack([np.cos(angle), np.sin(angle)]).astype(np.float32)
        powers = []
        for axis, length in enumerate(self.shape):
            if length == longest:
                layers = x.sum(axis=tuple(a for a in range(len(self.shape)) if a != axis))
                powers.append((jnp.matmul(waves, layers, precision=jax.lax.Precision.HIGHEST) ** 2).sum(axis=0))
        return jnp.stack(powers).mean(axis=0) / self.sites

    def _hartley(self, x: Array) -> Array:
        if self.transform == "fft":
            return _hartley_fft(x, len(self.shape))
        for length in self.shape:
            x = _along_first(x, len(self.shape), _cas_matrix(length))
        return x


jax.tree_util.register_dataclass(Torus, data_fields=[], meta_fields=["shape", "transform"])


def periodic(shape: tuple[int, ...]) -> Torus:
    """The torus of `shape`, with the transform that is faster on this backend."""
    longest = LONGEST_MATRIX_AXIS.get(jax.default_backend(), LONGEST_MATRIX_AXIS_ELSEWHERE)
    return Torus(shape, "matrix" if max(shape) <= longest else "fft")


@lru_cache(maxsize=64)
def _eigenvalues(shape: tuple[int, ...]) -> np.ndarray:
    axes = [4 * np.sin(np.pi * np.arange(length) / length) ** 2 for length in shape]
    return reduce(np.add.outer, axes).ravel()


@lru_cache(maxsize=64)
def _cas_matrix(length: int) -> np.ndarray:
    # n x is reduced mod L before it becomes an angle, so that no digits are lost on long axes.
    angle = 2 * np.pi * (np.outer(np.arange(length), np.arange(length)) % length) / length
    return ((np.cos(angle) + np.sin(angle)) / np.sqrt(length)).astype(np.float32)


def _neighbours(x: Array, axis: int) -> Array:
    """phi_{x+mu} + phi_{x-mu}: two slices of an array that is one site longer on either side.

    The compiler fuses rolls into the loop that uses them, with a test at every site for the end of the axis; slices are
    read as vectors (`benchmarks/speed/stencil.py`).
    """
    length = x.shape[axis]
    last, first = (jax.lax.slice_in_dim(x, at, at + 1, axis=axis) for at in (length - 1, 0))
    longer = jax.lax.optimization_barrier(jnp.concatenate([last, x, first], axis))
    below, above = (jax.lax.slice_in_dim(longer, at, at + length, axis=axis) for at in (0, 2))
    return below + above


def _above(x: Array, axis: int) -> Array:
    """phi_{x+mu}"""
    length = x.shape[axis]
    first, others = jax.lax.slice_in_dim(x, 0, 1, axis=axis), jax.lax.slice_in_dim(x, 1, length, axis=axis)
    return jnp.concatenate([others, first], axis)


def _below(x: Array, axis: int) -> Array:
    """phi_{x-mu}"""
    length = x.shape[axis]
    last, others = (jax.lax.slice_in_dim(x, *ends, axis=axis) for ends in ((length - 1, length), (0, length - 1)))
    return jnp.concatenate([last, others], axis)


def _along_first(x: Array, dim: int, matrix: np.ndarray) -> Array:
    """Transform the first of the last `dim` axes and make it the last: after `dim` calls all are in their places again.

    Matrix products give their new axis last, so that no axis has to be moved (`benchmarks/speed/transforms.py`).
    """
    letters = "abcdefghijklmnopqrstuvwxy"[: x.ndim]
    first = letters[x.ndim - dim]
    # Full precision, since the default of some accelerators rounds the factors to 8 bits.
    contraction = f"{letters},{first}z->{letters.replace(first, '')}z"
    return jnp.einsum(contraction, x, matrix, precision=jax.lax.Precision.HIGHEST)


def _hartley_fft(x: Array, dim: int) -> Array:
    """sum_x phi_x cas(k . x) / sqrt(V): Re - Im of the FFT; F(-k) = conj F(k) fills in what a real FFT leaves out."""
    axes = tuple(range(x.ndim - dim, x.ndim))
    half = jnp.fft.rfftn(x, axes=axes)
    mirrored = (half.real + half.imag)[..., 1 : (x.shape[-1] + 1) // 2]
    mirrored = jnp.flip(mirrored, axes)
    mirrored = jnp.roll(mirrored, 1, axes[:-1])
    sites = np.prod([x.shape[axis] for axis in axes])
    return jnp.concatenate([half.real - half.imag, mirrored], axis=-1) / np.float32(np.sqrt(sites))
