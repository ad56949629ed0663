"""jax.nn.initializers: makers of initial parameters, functions of (key, shape, dtype)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np

import minijax.numpy as jnp
from minijax import random
from minijax.base import dtypes
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import listing
from minijax.base.util import named
from minijax.run.arrays.array import Array, ArrayLike

__all__, __dir__ = listing(
    __name__,
    """
    Initializer constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal
    kaiming_uniform lecun_normal lecun_uniform normal ones orthogonal truncated_normal uniform variance_scaling
    xavier_normal xavier_uniform zeros
""",
)

Axes = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """Is the protocol of functions that make an array of a shape from a random key.

    Example:
        >>> init = jax.nn.initializers.constant(0.5)
        >>> init(jax.random.key(0), (2,))
        Array([0.5, 0.5], dtype=float32)
    """

    def __call__(self, key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any: ...


def _dtype(dtype: Any) -> Any:
    return dtypes.default_float_dtype() if dtype is None else dtype


def zeros(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """Creates an array of zeros, whatever the key.

    Example:
        >>> jax.nn.initializers.zeros(jax.random.key(0), (2,))
        Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, _dtype(dtype), out_sharding=out_sharding)


def ones(key: Array, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: Any = None) -> Array:
    """Creates an array of ones, whatever the key.

    Example:
        >>> jax.nn.initializers.ones(jax.random.key(0), (2,))
        Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, _dtype(dtype), out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Creates an initializer that fills arrays with `value`.

    Example:
        >>> jax.nn.initializers.constant(7)(jax.random.key(0), (2,), int)
        Array([7, 7], dtype=int32)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        return jnp.full(shape, value, dtype=_dtype(dtype), out_sharding=out_sharding)

    return init


def _scaled(draw: Callable, scale: Any, dtype: Any) -> Initializer:
    """An initializer that returns `draw(key, shape, dtype) * scale`."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        chosen = _dtype(dtype)
        return draw(key, shape, chosen, out_sharding=out_sharding) * jnp.array(scale, chosen)

    return init


def uniform(scale: Any = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Creates an initializer of numbers distributed uniformly in [0, `scale`).

    Example:
        >>> x = jax.nn.initializers.uniform(0.1)(jax.random.key(0), (100,))
        >>> bool(jnp.all((0 <= x) & (x < 0.1)))
        True
    """
    return _scaled(random.uniform, scale, dtype)


def normal(stddev: Any = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Creates an initializer of normal numbers with standard deviation `stddev`.

    Example:
        >>> init = jax.nn.initializers.normal(0.1)
        >>> init(jax.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return _scaled(random.normal, stddev, dtype)


def truncated_normal(
    stddev: Any = 1e-2, dtype: DTypeLike | None = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Creates an initializer of normal numbers truncated at `lower` and `upper` standard deviations.

    Example:
        >>> x = jax.nn.initializers.truncated_normal(1.0)(jax.random.key(0), (100,))
        >>> bool(jnp.all(jnp.abs(x) <= 2))
        True
    """

    def draw(key, shape, dtype, out_sharding):
        return random.truncated_normal(key, lower, upper, shape, dtype, out_sharding=out_sharding)

    return _scaled(draw, stddev, dtype)


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Creates an initializer of `scale` times orthogonal matrices, all axes but `column_axis` being their rows.

    Shapes need two axes or more; otherwise the initializer raises ValueError.

    Example:
        >>> x = jax.nn.initializers.orthogonal()(jax.random.key(0), (3, 3))
        >>> bool(jnp.allclose(x @ x.T, jnp.eye(3), atol=1e-5))
        True
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        chosen = _dtype(dtype)
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, chosen, out_sharding=out_sharding)
        n = shape[column_axis]
        others = [size for i, size in enumerate(shape) if i != column_axis % len(shape)]
        matrix = random.orthogonal(key, prod(others), (), chosen, n, out_sharding=out_sharding)
        return jnp.array(scale, chosen) * jnp.moveaxis(matrix.reshape((*others, n)), -1, column_axis)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Creates an initializer of kernels that are zero except at their center, which is orthogonal (Xiao et al., 2018).

    Kernels have one to three spatial axes, then inputs and outputs, at least as many outputs as inputs.

    Example:
        >>> x = jax.nn.initializers.delta_orthogonal()(jax.random.key(0), (3, 2, 2))
        >>> bool(jnp.all(x[0] == 0)), bool(jnp.all(x[2] == 0))
        (True, True)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        chosen = _dtype(dtype)
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("delta_orthogonal: `fan_in` must be less or equal than `fan_out`.")
        matrix = orthogonal(scale, column_axis, chosen)(key, shape[-2:], out_sharding=out_sharding)
        middle = tuple((size - 1) // 2 for size in shape[:-2])
        return jnp.zeros(shape, chosen).at[middle].set(matrix)

    return init


def _fans(shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """Returns (fan_in, fan_out): the number of inputs of an output, and of outputs of an input."""
    if len(shape) <= 1 and in_axis == -2 and not batch_axis:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with default in_axis. "
            "Must be at least 2D or specify in_axis explicitly."
        )
    groups = [(axis,) if isinstance(axis, int) else axis for axis in (in_axis, out_axis, batch_axis)]
    sizes = [prod([shape[a] for a in axes]) for axes in groups]
    field = prod(shape) / sizes[0] / sizes[1] / sizes[2]
    return sizes[0] * field, sizes[1] * field


def _in_disk(radii: Callable, key: Any, shape: Sequence[int], dtype: Any, out_sharding: Any) -> Any:
    """Complex numbers with uniform angles and with `radii` of uniform numbers as absolute values."""
    keys = random.split(key)
    draws = [
        lambda k=k: random.uniform(k, shape, dtypes.to_floating_dtype(dtype), out_sharding=out_sharding) for k in keys
    ]
    lengths = radii(draws[0], dtype)
    angles = 2 * np.pi * draws[1]().astype(dtype)
    return lengths * jnp.exp(1j * angles)


def _even_radii(draw: Callable, dtype: Any) -> Any:
    return jnp.sqrt(2 * draw()).astype(dtype)


def _truncated_radii(draw: Callable, dtype: Any) -> Any:
    """The absolute values of complex normal numbers truncated at two standard deviations."""
    inside = 1 - jnp.exp(jnp.array(-4, dtype))
    return jnp.sqrt(-jnp.log(1 - inside * draw().astype(dtype)))


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Creates an initializer with variance `scale` divided by a fan (Glorot & Bengio; He et al.).

    Args:
        scale: A positive number.
        mode: The fan: `"fan_in"`, `"fan_out"`, `"fan_avg"` (their mean) or `"fan_geo_avg"` (their geometric mean).
        distribution: `"truncated_normal"`, `"normal"` or `"uniform"`.
        in_axis, out_axis: The axis, or axes, of input and output features. Further axes count as a receptive field.
        batch_axis: Axes that do not count.
        dtype: The dtype of arrays for which none is given.

    Example:
        >>> init = jax.nn.initializers.variance_scaling(2.0, "fan_in", "normal")
        >>> init(jax.random.key(0), (3, 4)).shape
        (3, 4)
    """

    def init(key, shape, dtype=dtype, out_sharding=None):
        chosen = dtypes.requested_dtype(_dtype(dtype), "array")
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": (fan_in * fan_out) ** 0.5,
        }
        if mode not in fans:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        variance = jnp.array(scale / fans[mode], dtype=chosen)
        if distribution == "normal":
            return random.normal(key, shape, chosen, out_sharding=out_sharding) * jnp.sqrt(variance)
        is_complex = dtypes.issubdtype(chosen, np.complexfloating)
        if distribution == "uniform" and is_complex:
            return _in_disk(_even_radii, key, shape, chosen, out_sharding) * jnp.sqrt(variance)
        if distribution == "uniform":
            return random.uniform(key, shape, chosen, -1, out_sharding=out_sharding) * jnp.sqrt(3 * variance)
        if distribution != "truncated_normal":
            raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")
        if is_complex:
            stddev = jnp.sqrt(variance) / jnp.array(0.95311164380491208, chosen)
            return _in_disk(_truncated_radii, key, shape, chosen, out_sharding) * stddev
        stddev = jnp.sqrt(variance) / jnp.array(0.87962566103423978, chosen)
        return random.truncated_normal(key, -2, 2, shape, chosen, out_sharding=out_sharding) * stddev

    return init


def _scaling(
    name: str, whose: str, scale: float, mode: str, distribution: str, deviation: float
) -> Callable[..., Initializer]:
    def maker(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
    ) -> Initializer:
        """Creates the {kind} initializer of {whose}: `variance_scaling({scale}, "{mode}", "{distribution}")`.

        Example:
            >>> init = jax.nn.initializers.{name}()
            >>> f"{{init(jax.random.key(0), (400, 100)).std():.2f}}"  # the square root of {scale} / {fan}
            '{deviation}'
        """
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    doc = dict(name=name, whose=whose, scale=scale, mode=mode, distribution=distribution, deviation=deviation)
    return named(
        maker, name, filled(maker, doc | dict(kind=name.rpartition("_")[2], fan=400 if mode == "fan_in" else 250))
    )


_GLOROT, _LECUN, _HE = "Glorot & Bengio, 2010", "LeCun et al., 1998", "He et al., 2015"
glorot_uniform = _scaling("glorot_uniform", _GLOROT, 1.0, "fan_avg", "uniform", 0.06)
glorot_normal = _scaling("glorot_normal", _GLOROT, 1.0, "fan_avg", "truncated_normal", 0.06)
lecun_uniform = _scaling("lecun_uniform", _LECUN, 1.0, "fan_in", "uniform", 0.05)
lecun_normal = _scaling("lecun_normal", _LECUN, 1.0, "fan_in", "truncated_normal", 0.05)
he_uniform = _scaling("he_uniform", _HE, 2.0, "fan_in", "uniform", 0.07)
he_normal = _scaling("he_normal", _HE, 2.0, "fan_in", "truncated_normal", 0.07)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal
