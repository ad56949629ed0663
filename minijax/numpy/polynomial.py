"""Polynomials as vectors of coefficients, from the highest power down."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax.base import dtypes, errors
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.higher import scan
from minijax.ir.trace import Tracer
from minijax.ir.types import typeof
from minijax.numpy import contractions, linalg, products, reductions, shaping, signal, taking, ufuncs
from minijax.numpy.creation import array, asarray, full, ones, zeros
from minijax.numpy.ranges import arange
from minijax.primitives.promote import arrays, promote_dtypes, promote_dtypes_inexact
from minijax.primitives.sort import sort
from minijax.primitives.structural import broadcast_shapes, full_like
from minijax.run.arrays.array import Array, ArrayLike


def _inexact(name: str, *args: Any) -> list:
    return [asarray(x) for x in promote_dtypes_inexact(*arrays(name, *args))]


def _length(name: str, p: Any) -> int:
    shape = typeof(p).shape
    if not shape:
        raise TypeError(f"{name}: the coefficients must be a vector, got a scalar")
    return shape[0]


# ---- arithmetic --------------------------------------------------------------------------------------


@jitted("polyadd")
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Adds two polynomials that are given by their coefficients, the highest power first.

    Leading zeros of the result stay. Arguments are vectors, and not objects such as `numpy.poly1d`.

    Example:
      >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3]))
      Array([1, 5], dtype=int32)
    """
    a1, a2 = map(asarray, promote_dtypes(*arrays("polyadd", a1, a2)))
    if not a1.ndim or not a2.ndim:
        raise IndexError("polyadd: the coefficients must be vectors, got a scalar")
    longer, other = (a1, a2) if a2.shape[0] <= a1.shape[0] else (a2, a1)
    return longer.at[-other.shape[0] :].add(other)


@jitted("polysub")
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtracts two polynomials that are given by their coefficients, the highest power first.

    Leading zeros of the result stay. Arguments are vectors, and not objects such as `numpy.poly1d`.

    Example:
      >>> jnp.polysub(jnp.array([1, 2]), jnp.array([3]))
      Array([ 1, -1], dtype=int32)
    """
    a1, a2 = promote_dtypes(*arrays("polysub", a1, a2))
    return polyadd(a1, ufuncs.negative(a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiplies two polynomials that are given by their coefficients, the highest power first.

    Leading zeros of the arguments stay unless `trim_leading_zeros`, which needs concrete values.

    Example:
      >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
      Array([ 1.,  0., -1.], dtype=float32)
    """
    factors = _inexact("polymul", a1, a2)
    if trim_leading_zeros:
        factors = [taking.trim_zeros(p, "f") for p in factors]
    factors = [p if _length("polymul", p) else zeros((1,), p.dtype) for p in factors]
    return signal.convolve(*factors)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divides two polynomials that are given by their coefficients, the highest power first.

    Returns a pair: quotient and remainder. The remainder is as long as `u` unless `trim_leading_zeros`, which needs
    concrete values.

    Example:
      >>> jnp.polydiv(jnp.array([1, 0, -1]), jnp.array([1, 1]))
      (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    u, v = _inexact("polydiv", u, v)
    n = _length("polydiv", v)
    count = _length("polydiv", u) - n + 1
    scale = 1.0 / v[0]
    quotient = zeros((max(count, 1),), u.dtype)
    for k in range(count):
        d = scale * u[k]
        quotient = quotient.at[k].set(d)
        u = u.at[k : k + n].add(-d * v)
    if trim_leading_zeros:
        tiny = np.sqrt(dtypes.finfo(u.dtype).eps)
        u = u[u.shape[0] - taking.trim_zeros(where(ufuncs.absolute(u) <= tiny, 0, u), "f").shape[0] :]
    return quotient, u


# ---- values, derivatives and integrals ---------------------------------------------------------------


@jitted("polyval", static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluates a polynomial that is given by its coefficients, the highest power first.

    `x` are the arguments, an array of any shape. Horner's scheme runs in a scan, `unroll` steps at a time.

    Example:
      >>> jnp.polyval(jnp.array([1, 0, 2]), jnp.array([0, 3]))
      Array([ 2, 11], dtype=int32)
    """
    p, x = map(asarray, promote_dtypes(*arrays("polyval", p, x)))
    if not p.ndim:
        raise IndexError("polyval: the coefficients must be a vector, got a scalar")
    start = full_like(x, 0, x.dtype, shape=broadcast_shapes(x.shape, p.shape[1:]))
    return scan.scan(lambda y, c: (y * x + c, None), start, p, unroll=unroll)[0]


def _falling(m: int, *span: int, dtype: Any) -> Any:
    """A row for each i < m: the range `span` minus i."""
    return arange(*span, dtype=dtype)[None] - arange(m, dtype=dtype)[:, None]


@jitted("polyder", static=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Computes the coefficients of a derivative of a polynomial, the highest power first.

    `m` is the order of the derivative, a static integer. Raises ValueError if it is negative.

    Example:
      >>> jnp.polyder(jnp.array([1, 2, 3]))
      Array([2., 2.], dtype=float32)
    """
    (p,) = _inexact("polyder", p)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"polyder: Order of derivative must be positive, got {m}")
    if m == 0:
        return p
    factors = reductions.prod(_falling(m, m, _length("polyder", p), dtype=p.dtype), 0)
    return p[:-m] * factors[::-1]


@jitted("polyint", static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: int | ArrayLike | None = None) -> Array:
    """Computes the coefficients of an antiderivative of a polynomial, the highest power first.

    `m` is how often to integrate, a static integer, and `k` the constants, one for all or one for each time. Raises
    ValueError if `m` is negative, or for another number of constants.

    Example:
      >>> jnp.polyint(jnp.array([2, 2]), k=5)
      Array([1., 2., 5.], dtype=float32)
    """
    p, k = _inexact("polyint", p, 0 if k is None else k)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"polyint: Order of integral must be positive (see polyder), got {m}")
    k = shaping.atleast_1d(k)
    if k.shape[0] == 1:
        k = full((m,), k[0])
    if k.shape != (m,):
        raise ValueError(f"polyint: k must be a scalar or a rank-1 array of length 1 or m, got shape {k.shape}")
    if m == 0:
        return p
    steps = _falling(m, _length("polyint", p) + m, dtype=p.dtype)
    divisors = reductions.prod(ufuncs.maximum(1, steps), 0)[::-1]
    return ufuncs.true_divide(shaping.concatenate((p, k)), divisors)


# ---- roots and fits ----------------------------------------------------------------------------------


@jitted("poly")
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Returns the coefficients of the polynomial with given roots, the highest power first.

    The highest coefficient is 1. A square matrix stands in for its eigenvalues, and the result is complex then.

    Example:
      >>> jnp.poly(jnp.array([1.0, 2.0]))
      Array([ 1., -3.,  2.], dtype=float32)
    """
    (zs,) = _inexact("poly", seq_of_zeros)
    zs = shaping.atleast_1d(zs)
    if zs.ndim == 2 and zs.shape[0] == zs.shape[1] and zs.size:
        zs = linalg.eigvals(zs)
    if zs.ndim != 1:
        raise ValueError(f"poly: input must be 1d or non-empty square 2d array, got shape {zs.shape}")
    if not zs.size:
        return ones((), zs.dtype)
    coefficients = ones((1,), zs.dtype)
    for i in range(zs.size):
        coefficients = signal.convolve(coefficients, array([1, -zs[i]], dtype=zs.dtype))
    return coefficients


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Computes the roots of a polynomial that is given by its coefficients, the highest power first.

    They are eigenvalues of a companion matrix and always complex. `strip_zeros=False` allows traced values; the roots
    that leading zeros remove are then NaN.

    Example:
      >>> jnp.roots(jnp.array([1.0, -3.0, 2.0])).real.round(3)
      Array([2., 1.], dtype=float32)
    """
    (p,) = _inexact("roots", p)
    p = shaping.atleast_1d(p)
    if p.ndim != 1:
        raise ValueError(f"roots: Input must be a rank-1 array, got shape {p.shape}")
    if p.size < 2:
        return array(np.empty(0, dtypes.to_complex_dtype(p.dtype)))
    leading = where(reductions.all(p == 0), p.shape[0], reductions.argmin(p == 0))
    if not strip_zeros:
        return _roots_with_zeros(p, leading)
    if isinstance(leading, Tracer):
        raise errors.ConcretizationTypeError(
            leading,
            "The error occurred in the jnp.roots() function. To use this within a JIT-compiled context, pass "
            "strip_zeros=False, but be aware that leading zeros will result in some returned roots being set "
            "to NaN.",
        )
    return _roots_no_zeros(p[int(leading) :])


@jitted("_roots_no_zeros")
def _roots_no_zeros(p: Any) -> Any:
    """The eigenvalues of the companion matrix."""
    if p.size < 2:
        return array(np.empty(0, dtypes.to_complex_dtype(p.dtype)))
    companion = taking.diag(ones((p.size - 2,), p.dtype), -1)
    return linalg.eigvals(companion.at[0, :].set(-p[1:] / p[0]))


@jitted("_roots_with_zeros")
def _roots_with_zeros(p: Any, leading: Any) -> Any:
    # Leading zeros become trailing ones, whose roots are zeros; those are sorted to the end.
    p = where(leading == p.size, 1.0, p)
    all_roots = _roots_no_zeros(shaping.roll(p, -leading))
    _, all_roots = sort([all_roots == 0, all_roots], 0, num_keys=1)
    return where(arange(all_roots.size) < all_roots.size - leading, all_roots, complex(np.nan, np.nan))


@jitted("polyfit", static=("deg", "rcond", "full", "cov"))
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool = False,
) -> Any:
    """Fits a polynomial to points by least squares.

    Returns the coefficients, the highest power first. `deg` is static. `y` may be a matrix, with one data set in each
    column. `w` are weights of the points. With `full`, returns residuals, rank, singular values and `rcond` too; with
    `cov` the covariance of the coefficients, or with "unscaled" the one that is not scaled by the residuals.

    Example:
      >>> x = jnp.arange(4.0)
      >>> jnp.polyfit(x, 2 * x + 1, 1).round(3)
      Array([2., 1.], dtype=float32)
    """
    x, y = map(asarray, arrays("polyfit", x, y))
    deg = operator.index(deg)
    order = deg + 1
    _check_points(x, y, deg)
    rcond = len(x) * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    lhs, rhs = shaping.vander(x, order), y
    if w is not None:
        (w,) = map(asarray, promote_dtypes(*arrays("polyfit", w)))
        if w.ndim != 1:
            raise TypeError(f"polyfit: expected a 1-d array for weights, got shape {w.shape}")
        if w.shape[0] != y.shape[0]:
            raise TypeError(f"polyfit: expected w and y to have the same length, got {w.shape} and {y.shape}")
        lhs = lhs * w[:, None]
        rhs = rhs * (w[:, None] if rhs.ndim == 2 else w)
    scale = ufuncs.sqrt(reductions.sum(lhs * lhs, 0))
    lhs = lhs / scale[None]
    c, residuals, rank, singular = linalg.lstsq(lhs, rhs, rcond)
    c = shaping.transpose(shaping.transpose(c) / (scale[None] if c.ndim == 2 else scale))
    if full:
        return c, residuals, rank, singular, rcond
    if not cov:
        return c
    covariance = linalg.inv(products.dot(shaping.transpose(lhs), lhs)) / contractions.outer(scale, scale)
    if cov == "unscaled":
        factor = 1.0
    elif len(x) <= order:
        raise ValueError("polyfit: the number of data points must exceed order to scale the covariance matrix")
    else:
        factor = residuals / (len(x) - order)
    if y.ndim == 1:
        return c, covariance * shaping.atleast_1d(factor)[None]
    return c, covariance[:, :, None] * shaping.atleast_1d(factor)[None, None]


def _check_points(x: Any, y: Any, deg: int) -> None:
    if deg < 0:
        raise ValueError(f"polyfit: expected deg >= 0, got {deg}")
    if x.ndim != 1:
        raise TypeError(f"polyfit: expected 1D vector for x, got shape {x.shape}")
    if not x.size:
        raise TypeError("polyfit: expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError(f"polyfit: expected 1D or 2D array for y, got shape {y.shape}")
    if x.shape[0] != y.shape[0]:
        raise TypeError(f"polyfit: expected x and y to have same length, got {x.shape} and {y.shape}")
