"""The logarithm of a sum of exponentials, computed without overflow."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from minijax.composed.arrays.selecting import where as choose
from minijax.ir.types import typeof
from minijax.numpy.reductions import Axis, canonical_axes, max as largest, static_axis, sum as total
from minijax.primitives import elementwise as lax, moving, structural
from minijax.primitives.convert import as_type, stop_gradient
from minijax.primitives.families import const_like, is_complex, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayLike


def shifted_sum(a: Any, axis: Axis, keepdims: bool, where: Any = None, factors: Any = None) -> tuple[Any, Any]:
    """The sum of `factors * exp(a - shift)`, and the shift: the largest of `a` or of its real part."""
    axes = canonical_axes(static_axis(axis), typeof(a).ndim)
    height = lax.real(a) if is_complex(a) else a
    top = largest(height, axes, keepdims=keepdims, where=where, initial=const_like(height, -np.inf))
    shift = stop_gradient(lax.select(lax.is_finite(top), top, structural.full_like(top, 0)))
    wide_shift = shift if keepdims else moving.expand_dims(shift, axes)
    powers = lax.exp(lax.sub(a, as_type(wide_shift, typeof(a).dtype)))
    if factors is not None:
        powers = lax.mul(powers, factors)
    return total(powers, axes, keepdims=keepdims, where=where), shift


@overload
def logsumexp(
    a: ArrayLike, axis: Axis = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    return_sign: Literal[False] = ..., where: ArrayLike | None = ...,
) -> Array: ...  # fmt: skip
@overload
def logsumexp(
    a: ArrayLike, axis: Axis = ..., b: ArrayLike | None = ..., keepdims: bool = ...,
    *, return_sign: Literal[True], where: ArrayLike | None = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Computes the logarithm of a sum of exponentials, without overflow.

    Args:
      a: array of exponents.
      axis: axis or tuple of axes to sum over. By default all axes.
      b: array of factors of the exponentials, which broadcasts with `a`. They may be negative.
      keepdims: whether reduced axes stay, with length 1.
      return_sign: whether to return the sign of the sum too. It must be static.
      where: booleans that broadcast to `a`: elements to include. By default all.

    Returns:
      `log(sum(b * exp(a)))`, of a floating or complex dtype: NaN where the sum is negative. With `return_sign` a pair:
      `log(abs(sum))`, and the sign of the sum.

    Differences from SciPy:
      `where` is an addition. The largest exponent is subtracted first, and no gradient passes through it.

    See also: `jax.nn.logsumexp`, `jax.numpy.logaddexp`, `jax.scipy.special.softmax`.

    Example:
      >>> jax.scipy.special.logsumexp(jnp.array([1000.0, 1000.0]))
      Array(1000.6932, dtype=float32)
      >>> jax.scipy.special.logsumexp(jnp.zeros((2, 3)), axis=1)
      Array([1.0986123, 1.0986123], dtype=float32)
    """
    if where is not None:
        a = choose(where, a, 0)
    a, *factors = promote_args_inexact("logsumexp", a) if b is None else promote_args_inexact("logsumexp", a, b)
    if factors:
        a = choose(lax.ne(factors[0], scalar_like(factors[0], 0)), a, -np.inf)
    powers, shift = shifted_sum(a, axis, keepdims, where, *factors)
    sign = lax.sign(powers)
    if return_sign or not is_complex(powers):
        powers = lax.abs(powers)
    result = lax.add(lax.log(powers), as_type(shift, typeof(powers).dtype))
    if return_sign:
        return result, sign
    if factors and not is_complex(a):
        return choose(lax.lt(sign, scalar_like(sign, 0)), scalar_like(result, np.nan), result)
    return result
