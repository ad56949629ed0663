"""Activation functions and related functions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_jvp
from minijax.base import config, dtypes, errors
from minijax.base.dims import as_index
from minijax.dispatch.jitted import jitted
from minijax.interop.introspection import concrete_or_error
from minijax.ir.types import typeof
from minijax.numpy.log1mexp import log1mexp as log1mexp
from minijax.numpy.logsumexp import logsumexp
from minijax.numpy.reductions import canonical_axes, size_along, static_axis
from minijax.numpy.taking import marked
from minijax.numpy.ufuncs import tanh  # noqa: F401
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.convert import copy, stop_gradient
from minijax.primitives.promote import arrays, promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike

Axis = int | Sequence[int] | None


@jitted(inline=True)
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x))."""
    return lax.logistic(x)


@custom_jvp
@jitted()
def relu(x: ArrayLike) -> Array:
    """max(x, 0), with derivative 0 at 0."""
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, ans, x: lax.select(x > 0, t, structural.full_like(t, 0)))


@custom_jvp
@jitted()
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6)."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, ans, x: lax.select((x > 0) & (x < 6), t, structural.full_like(t, 0)))


@jitted()
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x))."""
    # As in jax, integers become strong floats and bool becomes a weak one.
    is_bool = typeof(x).dtype == np.bool_
    return jnp.logaddexp(x if is_bool else promote_args_inexact("softplus", x)[0], 0.0)


@jitted()
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, x above 1, and (x + 1)**2 / 4 between."""
    (x,) = map(jnp.asarray, arrays("sparse_plus", x))
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jitted()
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of `sparse_plus`: (x + 1) / 2 clipped to [0, 1]."""
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


@jitted()
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1)."""
    return x / (jnp.abs(x) + 1)


@jitted()
def silu(x: ArrayLike) -> Array:
    """x * sigmoid(x)."""
    return x * sigmoid(x)


swish = silu


@jitted()
def mish(x: ArrayLike) -> Array:
    """x * tanh(softplus(x))."""
    return x * jnp.tanh(softplus(x))


@jitted()
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x))."""
    return -softplus(-x)


@jitted()
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x above 0, alpha * (exp(x) - 1) below."""
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@jitted()
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x above 0, negative_slope * x below."""
    return jnp.where(x >= 0, x, negative_slope * x)


@jitted()
def hard_tanh(x: ArrayLike) -> Array:
    """x clipped to [-1, 1]."""
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@jitted()
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)."""
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@jitted()
def selu(x: ArrayLike) -> Array:
    """The scaled exponential linear unit of Klambauer et al., 2017."""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the normal distribution function of x, by default approximated with tanh."""
    return _gelu(*arrays("gelu", x), approximate=approximate)


@jitted("gelu", static=("approximate",), inline=True)
def _gelu(x, approximate):
    (x,) = promote_args_inexact("gelu", x)
    if approximate:
        root = np.sqrt(2 / np.pi).astype(typeof(x).dtype)
        return x * (0.5 * (1.0 + jnp.tanh(root * (x + 0.044715 * x**3))))
    root_half = np.sqrt(0.5).astype(typeof(x).dtype)
    return copy(0.5 * x * lax.erfc(-x * root_half))


@jitted(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along `axis` times the sigmoid of the second."""
    (x,) = arrays("glu", x)
    size = x.shape[axis]
    assert size % 2 == 0, "axis size must be divisible by 2"
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


@jitted()
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6."""
    return relu6(x + 3.0) / 6.0


@jitted()
def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x)."""
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@jitted()
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2."""
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@jitted()
def identity(x: ArrayLike) -> Array:
    """x."""
    return arrays("identity", x)[0]


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) divided by its sum along `axis`; zero where `where` is False."""
    if config.softmax_custom_jvp.value:
        return _softmax(x, axis, where, -jnp.inf)
    return _normalized_exp(x, axis, where, -jnp.inf, stop_gradient)


def _normalized_exp(x, axis, where, initial, stop):
    peak = jnp.max(x, axis, where=where, initial=initial, keepdims=True)
    masked = x if where is None else jnp.where(where, x, initial)
    unnormalized = jnp.exp(masked - stop(peak))
    result = unnormalized / jnp.sum(unnormalized, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _softmax(x, axis, where, initial):
    return _normalized_exp(x, axis, where, initial, lambda peak: peak)


@_softmax.defjvp
def _softmax_jvp(axis, primals, tangents):
    (x, where, initial), (t, _, _) = primals, tangents
    y = _softmax(x, axis, where, initial)
    return y, y * (t - jnp.sum(y * t, axis, where=where, keepdims=True))


@jitted(static=("axis", "keepdims"))
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """The logarithm of the mean of exp(x) over the axes, of the elements that `where` selects."""
    total = logsumexp(x, axis, where=where, keepdims=keepdims)
    if where is None:
        axes = canonical_axes(static_axis(axis), x.ndim)
        count = total.dtype.type(size_along(x, axes))
    else:
        count = jnp.sum(jnp.broadcast_to(where, x.shape), axis, dtype=total.dtype, keepdims=keepdims)
    return total - jnp.log(count)


@jitted(static=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`; -inf where `where` is False."""
    peak = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    masked = x if where is None else jnp.where(where, x, -jnp.inf)
    shifted = masked - stop_gradient(peak)
    norm = jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    result = shifted - norm
    return result if where is None else jnp.where(where, result, -jnp.inf)


@jitted(static=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """`x` less its mean, divided by its standard deviation along `axis`.

    The "stable" algorithm averages squared differences; "fast" subtracts the squared mean from the mean of squares,
    which may cancel. Raises ValueError for another algorithm.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
        else:
            variance = jnp.mean(jnp.square(x), axis, keepdims=True, where=where) - jnp.square(mean)
            variance = jnp.clip(variance, 0)
    return (x - mean) * lax.rsqrt(variance + epsilon)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """One-hot vectors of indices; all zeros for an index out of bounds.

    Warns if the indices are not integers. Raises ConcretizationTypeError for a traced `num_classes`.
    """
    where = "The error arose in jax.nn.one_hot argument `num_classes`."
    num_classes, x = concrete_or_error(as_index, num_classes, where), jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, np.integer):
        errors.warn(f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}", DeprecationWarning)
    chosen = dtypes.requested_dtype(dtype, "one_hot", float)
    return marked(x, num_classes, dtype=chosen, axis=axis)
