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
from minijax.base.symbolic.dimension import is_int
from minijax.dispatch.jitted import jitted
from minijax.ir.concrete import concrete_or_error
from minijax.ir.types import typeof
from minijax.numpy.custom_rules import log1mexp as log1mexp, logsumexp
from minijax.numpy.reductions import canonical_axes, size_along, static_axis
from minijax.numpy.taking import marked
from minijax.numpy.ufuncs import tanh  # noqa: F401
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.convert import convert, copy, stop_gradient
from minijax.primitives.promote import arrays, is_derived_twice, promote_args_inexact, runs_at_once
from minijax.run.arrays.array import Array, ArrayLike

Axis = int | Sequence[int] | None


@jitted(inline=True)
def sigmoid(x: ArrayLike) -> Array:
    """Computes the sigmoid function 1 / (1 + exp(-x)) of each element.

    It is the inverse of the logit function, and maps to the interval from 0 to 1.

    Args:
        x: A floating-point or complex array, or a number.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: For integers and booleans.

    See also: `jax.nn.log_sigmoid`, which is accurate for very negative x, and `jax.nn.softmax`.

    Example:
        >>> jax.nn.sigmoid(jnp.array([-jnp.inf, 0.0, jnp.inf]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return lax.logistic(x)


@custom_jvp
@jitted()
def relu(x: ArrayLike) -> Array:
    """Computes the rectified linear unit max(x, 0) of each element.

    Its derivative is 1 for positive elements, and 0 elsewhere; at 0 it is 0.

    Args:
        x: An array of real numbers, or a number.

    Returns:
        An array of the shape and dtype of `x`.

    See also: `jax.nn.leaky_relu`, `jax.nn.relu6`, `jax.nn.gelu`, `jax.nn.silu`.

    Example:
        >>> jax.nn.relu(jnp.array([-1.0, 0.0, 2.0]))
        Array([0., 0., 2.], dtype=float32)
        >>> float(jax.grad(jax.nn.relu)(0.0))
        0.0
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, ans, x: lax.select(x > 0, t, structural.full_like(t, 0)))


@custom_jvp
@jitted()
def relu6(x: ArrayLike) -> Array:
    """Computes the rectified linear unit clipped at 6, min(max(x, 0), 6), of each element.

    Example:
        >>> jax.nn.relu6(jnp.array([-1.0, 3.0, 9.0]))
        Array([0., 3., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, ans, x: lax.select((x > 0) & (x < 6), t, structural.full_like(t, 0)))


@jitted()
def softplus(x: ArrayLike) -> Array:
    """Computes the softplus function log(1 + exp(x)) of each element, a smooth version of `jax.nn.relu`.

    It does not overflow: for large x it is x.

    Args:
        x: An array, or a number.

    Returns:
        A floating-point array of the shape of `x`; all elements are positive, or 0 where they underflow.

    See also: `jax.nn.squareplus`, `jax.numpy.logaddexp`.

    Example:
        >>> jax.nn.softplus(jnp.array([-1000.0, 0.0, 10.0]))
        Array([ 0.       ,  0.6931472, 10.000046 ], dtype=float32)
    """
    # As in jax, integers become strong floats and bool becomes a weak one.
    is_bool = typeof(x).dtype == np.bool_
    return jnp.logaddexp(x if is_bool else promote_args_inexact("softplus", x)[0], 0.0)


@jitted()
def sparse_plus(x: ArrayLike) -> Array:
    """Computes the sparse plus function: 0 below -1, x above 1, and (x + 1)**2 / 4 between.

    Example:
        >>> jax.nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
        Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    (x,) = map(jnp.asarray, arrays("sparse_plus", x))
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jitted()
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Computes the derivative of `sparse_plus`: (x + 1) / 2 clipped to [0, 1].

    Example:
        >>> jax.nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


@jitted()
def soft_sign(x: ArrayLike) -> Array:
    """Computes the soft sign x / (|x| + 1) of each element.

    Example:
        >>> jax.nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
        Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    return x / (jnp.abs(x) + 1)


@jitted()
def silu(x: ArrayLike) -> Array:
    """Computes the sigmoid linear unit x * sigmoid(x) of each element; `jax.nn.swish` is another name.

    Example:
        >>> float(jax.nn.silu(0.0)), float(jax.nn.silu(100.0))
        (0.0, 100.0)
    """
    return x * sigmoid(x)


swish = silu


@jitted()
def mish(x: ArrayLike) -> Array:
    """Computes the mish function x * tanh(softplus(x)) of each element.

    Example:
        >>> jax.nn.mish(jnp.array([0.0, 1.0])).round(4)
        Array([0.        , 0.86509997], dtype=float32)
    """
    return x * jnp.tanh(softplus(x))


@jitted()
def log_sigmoid(x: ArrayLike) -> Array:
    """Computes the logarithm of the sigmoid function of each element, accurately for very negative x.

    Example:
        >>> jax.nn.log_sigmoid(jnp.array([-1000.0, 0.0])).round(4)
        Array([-1.000e+03, -6.931e-01], dtype=float32)
    """
    return -softplus(-x)


@jitted()
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Computes the exponential linear unit: x above 0, alpha * (exp(x) - 1) below.

    Example:
        >>> jax.nn.elu(jnp.array([-1.0, 2.0])).round(4)
        Array([-0.6321,  2.    ], dtype=float32)
    """
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@jitted()
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Computes the leaky rectified linear unit: x above 0, negative_slope * x below.

    Example:
        >>> jax.nn.leaky_relu(jnp.array([-1.0, 2.0]))
        Array([-0.01,  2.  ], dtype=float32)
    """
    return jnp.where(x >= 0, x, negative_slope * x)


@jitted()
def hard_tanh(x: ArrayLike) -> Array:
    """Clips each element to the interval from -1 to 1.

    Example:
        >>> jax.nn.hard_tanh(jnp.array([-2.0, 0.5, 2.0]))
        Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@jitted()
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Computes the continuously differentiable linear unit max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1).

    Example:
        >>> jax.nn.celu(jnp.array([-1.0, 2.0])).round(4)
        Array([-0.6321,  2.    ], dtype=float32)
    """
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@jitted()
def selu(x: ArrayLike) -> Array:
    """Computes the scaled exponential linear unit of Klambauer et al., 2017.

    It is `scale * elu(x, alpha)` for two constants, such that activations keep mean 0 and variance 1.

    Example:
        >>> jax.nn.selu(jnp.array([-1.0, 2.0])).round(4)
        Array([-1.1113,  2.1014], dtype=float32)
    """
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Computes the Gaussian error linear unit: each element times the normal distribution function of it.

    Args:
        x: An array, or a number.
        approximate: If true, the default, it is computed by tanh; otherwise by the error function.

    Example:
        >>> [round(float(jax.nn.gelu(1.0, approximate=a)), 4) for a in (True, False)]
        [0.8412, 0.8413]
    """
    (x,) = arrays("gelu", x)
    # As one program XLA rounds sums of products once.
    is_apart = is_derived_twice(x) or (approximate and runs_at_once())
    return (_gelu_by_operations if is_apart else _gelu)(x, approximate=approximate)


def _gelu_by_operations(x, approximate):
    (x,) = promote_args_inexact("gelu", x)
    if approximate:
        root = np.sqrt(2 / np.pi).astype(typeof(x).dtype)
        return x * (0.5 * (1.0 + jnp.tanh(root * (x + 0.044715 * x**3))))
    root_half = np.sqrt(0.5).astype(typeof(x).dtype)
    return copy(0.5 * x * lax.erfc(-x * root_half))


_gelu = jitted("gelu", static=("approximate",), inline=True)(_gelu_by_operations)


@jitted(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Computes the gated linear unit: the first half of an array along `axis` times the sigmoid of the second half.

    The size of the axis must be even.

    Example:
        >>> jax.nn.glu(jnp.array([2.0, 0.0]))
        Array([1.], dtype=float32)
    """
    (x,) = arrays("glu", x)
    size = x.shape[axis]
    assert size % 2 == 0, "axis size must be divisible by 2"
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


@jitted()
def hard_sigmoid(x: ArrayLike) -> Array:
    """Computes relu6(x + 3) / 6 of each element, a piecewise linear sigmoid.

    Example:
        >>> jax.nn.hard_sigmoid(jnp.array([-3.0, 0.0, 3.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return relu6(x + 3.0) / 6.0


@jitted()
def hard_silu(x: ArrayLike) -> Array:
    """Computes x * hard_sigmoid(x) of each element; `jax.nn.hard_swish` is another name.

    Example:
        >>> jax.nn.hard_silu(jnp.array([-3.0, 0.0, 3.0]))
        Array([-0.,  0.,  3.], dtype=float32)
    """
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@jitted()
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Computes (x + sqrt(x**2 + b)) / 2 of each element, a smooth version of `relu` without exponentials.

    Example:
        >>> jax.nn.squareplus(jnp.array([0.0, 1.5]))
        Array([1., 2.], dtype=float32)
    """
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@jitted()
def identity(x: ArrayLike) -> Array:
    """Returns its argument as an array.

    Example:
        >>> jax.nn.identity(2)
        Array(2, dtype=int32, weak_type=True)
    """
    return arrays("identity", x)[0]


def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Computes the softmax function: exp(x) divided by its sum along an axis.

    The results are not negative, and add up to 1 along the axis. The largest element is subtracted first, hence nothing
    overflows.

    Args:
        x: A floating-point array.
        axis: The axis, or a tuple of axes, over which the results add up to 1. By default the last. None: all.
        where: A boolean array that broadcasts to `x`. Elements where it is false get 0 and do not count in the sum.

    Returns:
        An array of the shape of `x`.

    See also: `jax.nn.log_softmax`, `jax.nn.logsumexp`, `jax.nn.sigmoid`.

    Example:
        >>> jax.nn.softmax(jnp.array([0.0, 0.0, jnp.log(2.0)]))
        Array([0.25, 0.25, 0.5 ], dtype=float32)
        >>> jax.nn.softmax(jnp.zeros(3), where=jnp.array([True, True, False]))
        Array([0.5, 0.5, 0. ], dtype=float32)
    """
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
    """Computes the logarithm of the mean of exp(x) over axes, for the elements that `where` selects.

    Example:
        >>> jax.nn.logmeanexp(jnp.array([1000.0, 1000.0]))
        Array(1000., dtype=float32)
    """
    total = logsumexp(x, axis, where=where, keepdims=keepdims)
    if where is None:
        size = size_along(x, canonical_axes(static_axis(axis), x.ndim))
        count = total.dtype.type(size) if is_int(size) else convert(size, total.dtype)
    else:
        count = jnp.sum(jnp.broadcast_to(where, x.shape), axis, dtype=total.dtype, keepdims=keepdims)
    return total - jnp.log(count)


@jitted(static=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Computes the logarithm of the softmax function, x - log(sum(exp(x))) along an axis.

    It is more accurate than `jnp.log(jax.nn.softmax(x))`, which is -inf for small probabilities. Use it for
    cross-entropy losses.

    Args:
        x: A floating-point array.
        axis: The axis, or a tuple of axes, to normalize over. By default the last. None: all.
        where: A boolean array that broadcasts to `x`. Elements where it is false get -inf and do not count in the sum.

    Returns:
        An array of the shape of `x`.

    See also: `jax.nn.softmax`, `jax.nn.logsumexp`.

    Example:
        >>> jax.nn.log_softmax(jnp.array([0.0, 200.0]))
        Array([-200.,    0.], dtype=float32)
    """
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
    """Subtracts the mean of an array along an axis, and divides by the standard deviation.

    Args:
        x: An array.
        axis: The axis, or a tuple of axes, by default the last.
        mean, variance: Their values; by default they are computed.
        epsilon: A number added to the variance, by default 1e-5.
        where: A boolean array: which elements count.
        algorithm: `"stable"` averages squared differences. `"fast"`, the default, subtracts the squared mean from the
            mean of squares, which may lose digits. Other values raise ValueError.

    Example:
        >>> jax.nn.standardize(jnp.array([1.0, 3.0])).round(3)
        Array([-1.,  1.], dtype=float32)
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
    """Converts indices to one-hot vectors: all zeros, with a one at the index.

    Args:
        x: An array of integers. Other dtypes give a warning.
        num_classes: The length of the vectors; a Python integer, not a traced value.
        dtype: The dtype of the result, by default float32 (float64 with `jax_enable_x64`).
        axis: Where the axis of the vectors is in the result, by default last. Or the name of a mapped axis, over
            which the vectors are distributed.

    Returns:
        An array with one axis more than `x`. An index out of bounds gives a vector of zeros.

    Raises:
        ConcretizationTypeError: If `num_classes` is traced.
        TypeError: If `num_classes` is not an integer.

    Example:
        >>> jax.nn.one_hot(jnp.array([0, 2, 5]), 3)
        Array([[1., 0., 0.],
               [0., 0., 1.],
               [0., 0., 0.]], dtype=float32)
    """
    where = "The error arose in jax.nn.one_hot argument `num_classes`."
    try:
        num_classes, x = concrete_or_error(as_index, num_classes, where), jnp.asarray(x)
    except TypeError as error:
        if isinstance(error, errors.ConcretizationTypeError):
            raise
        raise TypeError(f"{error}. jax.nn.one_hot takes the number of classes, an integer.") from None
    if not jnp.issubdtype(x.dtype, np.integer):
        errors.warn(f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}", DeprecationWarning)
    chosen = dtypes.requested_dtype(dtype, "one_hot", float)
    return marked(x, num_classes, dtype=chosen, axis=axis)
