"""Functions of samples: gradients, integrals, interpolation, angles without jumps, covariances."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.composed.arrays.selecting import where
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import products, reductions, searching, shaping, taking, ufuncs
from minijax.numpy.creation import array, asarray, full, value, values
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import complex as from_parts
from minijax.primitives.families import is_complex
from minijax.primitives.promote import arrays, promote_args_inexact, promote_dtypes, promote_dtypes_inexact
from minijax.primitives.sort import sort
from minijax.primitives.structural import broadcast_to_rank, slice_in_dim
from minijax.run.arrays.array import Array, ArrayLike


def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None
) -> Any:
    """Estimates derivatives by differences of neighboring elements.

    Differences are central inside and one-sided at the ends. `varargs` are distances between elements: one for all
    axes, or for each axis a number or a vector of coordinates. The result is an array for one axis, else a list with
    one array for each. `edge_order` is not supported. Raises ValueError if an axis has fewer than two elements.

    Example:
      >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]))
      Array([3., 4., 6., 7.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    return _gradient(f, *varargs, axis=reductions.static_axis(axis))


@jitted("gradient", static=("axis",))
def _gradient(f: Any, *varargs: Any, axis: Any) -> Any:
    f, *spacings = map(asarray, promote_dtypes_inexact(*arrays("gradient", f, *varargs)))
    axes = reductions.canonical_axes(axis, f.ndim)
    if any(f.shape[i] < 2 for i in axes):
        raise ValueError(
            f"gradient: Shape of array too small to calculate a numerical gradient, at least 2 elements are "
            f"required, got {f.shape}."
        )
    if len(spacings) < 2:
        spacings = (spacings or [1.0]) * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: Invalid number of spacing arguments {len(spacings)} for {axis=}")
    slopes = [_slope(f, h, i) for h, i in zip(spacings, axes, strict=True)]
    return slopes[0] if len(axes) == 1 else slopes


def _slope(f: Any, h: Any, axis: int) -> Any:
    """The slope along an axis: central inside, one-sided at the ends."""

    def parts(x: Any, *starts: int) -> list:
        """Slices of all but two elements, from these starts."""
        n = typeof(x).shape[axis]
        return [slice_in_dim(x, i, n - 2 + i, axis=axis) for i in starts]

    def step(x: Any, i: int) -> Any:
        return slice_in_dim(x, i + 1, i + 2, axis=axis) - slice_in_dim(x, i, i + 1, axis=axis)

    last = f.shape[axis] - 2
    ends = [step(f, 0), step(f, last)]
    shape = typeof(h).shape
    if not shape:
        after, before = parts(f, 2, 0)
        inner = (after - before) * 0.5 / h
        upper = ends[1] / h
        return shaping.concatenate((ends[0] / h, inner, upper), axis)
    if len(shape) != 1:
        raise ValueError(f"gradient: Spacing arrays must be 1D arrays or scalars, got shape {shape}.")
    if shape[0] != f.shape[axis]:
        raise ValueError(
            "gradient: Spacing arrays must have the same length as the dimension along which the gradient is "
            f"calculated, got {shape[0]} and {f.shape[axis]}."
        )
    h = shaping.reshape(h, [-1 if i == axis else 1 for i in range(f.ndim)])
    lower, upper = ends[0] / step(h, 0), ends[1] / step(h, last)
    at, before = parts(h, 1, 0)
    left = at - before
    after, at = parts(h, 2, 1)
    right = after - at
    a, b, c = (-right / (left * (left + right)), (right - left) / (left * right), left / (right * (left + right)))
    inner = a * parts(f, 0)[0] + b * parts(f, 1)[0] + c * parts(f, 2)[0]
    return shaping.concatenate((lower, inner, upper), axis)


@jitted("trapezoid", static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integrates samples along an axis by the trapezoidal rule.

    `x` are the coordinates of the samples; without it they are `dx` apart. The result is of a floating dtype.

    Example:
      >>> jnp.trapezoid(jnp.array([0.0, 1.0, 4.0]))
      Array(3., dtype=float32)
    """
    if x is None:
        (y,) = map(asarray, promote_dtypes_inexact(*arrays("trapezoid", y)))
        dx = asarray(dx)
        if dx.ndim:
            dx = broadcast_to_rank(dx, y.ndim)
            dx = shaping.moveaxis(dx, axis, -1)
    else:
        y, x = map(asarray, promote_dtypes_inexact(*arrays("trapezoid", y, x)))
        dx = shaping.diff(x) if x.ndim == 1 else shaping.moveaxis(shaping.diff(x, axis=axis), axis, -1)
    y = shaping.moveaxis(y, axis, -1)
    if dx.ndim and dx.shape[-1] != 1:
        return 0.5 * reductions.sum(dx * (y[..., 1:] + y[..., :-1]), -1)
    dx = shaping.squeeze(dx, -1) if dx.ndim else dx
    return dx * (reductions.sum(y, -1) - 0.5 * (y[..., 0] + y[..., -1]))


@jitted("unwrap", static=("axis",))
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * pi) -> Array:
    """Adds multiples of a period such that neighboring elements differ by at most half of it.

    Differences of at most `discont` are left as they are, by default half of the period. Derivatives are those of the
    identity.

    Example:
      >>> jnp.unwrap(jnp.array([1, 3, 1, 3]), period=2)
      Array([1, 1, 1, 1], dtype=int32)
    """
    p = value("unwrap", p)
    if is_complex(p):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if not p.ndim:
        raise IndexError("unwrap: p must have at least one axis")
    if not p.shape[axis]:
        return p
    p, period = promote_dtypes(p, period)
    is_integer = dtypes.issubdtype(p.dtype, np.integer)
    limit = ufuncs.true_divide(period, 2) if discont is None else discont
    half = ufuncs.floor_divide(period, 2) if is_integer else ufuncs.true_divide(period, 2)
    jumps = shaping.diff(p, axis=axis)
    wrapped = ufuncs.remainder(jumps + half, period) - half
    wrapped = where(ufuncs.bitwise_and(wrapped == -half, jumps > 0), half, wrapped)
    corrections = where(ufuncs.absolute(jumps) < limit, 0, wrapped - jumps)
    first = slice_in_dim(p, 0, 1, axis=axis)
    rest = slice_in_dim(p, 1, None, axis=axis)
    return shaping.concatenate((first, rest + reductions.cumsum(corrections, axis)), axis)


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolates linearly between points of a function of one variable.

    `xp` are the coordinates, ascending, and `fp` the values there. `left` and `right` are the values outside, by
    default the end ones; unlike in NumPy they may be "extrapolate", which continues the line at that end. With
    `period`, coordinates are taken modulo it. `xp` is not checked to ascend.

    Example:
      >>> jnp.interp(jnp.array([0.5, 3.0]), jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 20.0]))
      Array([ 5., 20.], dtype=float32)
    """
    flags = []
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != "extrapolate":
            raise ValueError(f"interp: the only valid string value of `{name}` is 'extrapolate', but got: {end!r}")
        flags.append(isinstance(end, str))
    left, right = (None if on else end for on, end in zip(flags, (left, right), strict=True))
    return _interp(x, xp, fp, left, right, period, *flags)


@jitted("_interp", static=("beyond_left", "beyond_right"))
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, beyond_left: bool, beyond_right: bool) -> Any:
    x, xp, fp = values("interp", x, xp, fp)
    if xp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError(
            f"interp: xp and fp must be one-dimensional arrays of equal size, got shapes {xp.shape} and {fp.shape}. "
            "`jax.vmap` interpolates several tables, `jax.scipy.interpolate` on grids."
        )
    x, xp = map(asarray, promote_dtypes_inexact(x, xp))
    (fp,) = map(asarray, promote_dtypes_inexact(fp))
    if is_complex(x):
        raise ValueError("interp: complex x values not supported.")
    if period is not None:
        if typeof(period).shape:
            raise ValueError(f"interp: period must be a scalar; got {period}")
        period = ufuncs.absolute(period)
        x, xp = ufuncs.remainder(x, period), ufuncs.remainder(xp, period)
        xp, fp = sort((xp, fp), num_keys=1)
        xp = shaping.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = shaping.concatenate((fp[-1:], fp, fp[:1]))
    i = ufuncs.clip(searching.searchsorted(xp, x, side="right"), 1, len(xp) - 1)
    rise = fp[i] - fp[i - 1]
    run = xp[i] - xp[i - 1]
    delta = x - xp[i - 1]
    is_flat = ufuncs.absolute(run) <= np.spacing(np.finfo(xp.dtype).eps)
    y = where(is_flat, fp[i - 1], fp[i - 1] + delta / where(is_flat, 1, run) * rise)
    ends = (beyond_left, left, 0, ufuncs.less), (beyond_right, right, -1, ufuncs.greater)
    for extrapolates, end, at, is_beyond in ends:
        if not extrapolates:
            end = fp[at] if end is None else end
            y = y if period is not None else where(is_beyond(x, xp[at]), end, y)
    return y


# ---- covariances -------------------------------------------------------------------------------------


def _weights(name: str, weights: Any, count: int) -> Any:
    (w,) = map(asarray, arrays("cov", weights))
    if w.ndim > 1:
        raise RuntimeError(f"cov: cannot handle multidimensional {name}, got shape {w.shape}")
    if w.shape[0] != count:
        raise RuntimeError(f"cov: incompatible numbers of samples and {name}, {count} and {w.shape[0]}")
    return ufuncs.absolute(w)


def _rows(m: Any, rowvar: bool, is_vector: bool) -> Any:
    rows = shaping.atleast_2d(m)
    return rows if rowvar or is_vector else shaping.transpose(rows)


def _sample_weights(fweights: Any, aweights: Any, count: int) -> tuple[Any, Any]:
    """The weights of `count` samples, and the reliability weights among them; each None if not given."""
    w = None
    if fweights is not None:
        if not dtypes.issubdtype(typeof(fweights).dtype, np.integer):
            raise TypeError("cov: fweights must be integer.")
        w = _weights("fweights", fweights, count)
    if aweights is None:
        return w, None
    aweights = _weights("aweights", aweights, count)
    return aweights if w is None else w * aweights, aweights


def _degrees_of_freedom(total: Any, count: int, ddof: int, w: Any, aweights: Any) -> Any:
    """The divisor of a covariance of `count` samples, weighted by `w` unless it is None."""
    if w is None:
        return count - ddof
    if ddof == 0:
        return total
    return total - (ddof if aweights is None else ddof * reductions.sum(w * aweights) / total)


@jitted("cov", static=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Estimates the covariance matrix of variables from observations.

    Variables are the rows of `m`, and of `y` if given, or the columns unless `rowvar`. The sum of products is divided
    by the number of observations less `ddof`, by default 1, or 0 with `bias`. `fweights` are counts of the observations
    and `aweights` their weights. `dtype` is that of the computation.

    Example:
      >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
      Array([[1., 2.],
             [2., 4.]], dtype=float32)
    """
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"cov: dtype must be a subclass of float or complex; got {dtype=}")
    samples = [m] if y is None else [m, y]
    m, *ys = map(asarray, promote_args_inexact("cov", *samples))
    for name, z in zip(("m", "y"), (m, *ys), strict=False):
        if z.ndim > 2:
            raise ValueError(f"cov: {name} has more than 2 dimensions, got shape {z.shape}")
    x = _rows(m, rowvar, m.ndim == 1)
    if not x.shape[0]:
        return shaping.reshape(array([]), (0, 0))
    for z in ys:
        x = shaping.concatenate((x, _rows(z, rowvar, z.ndim < 2 or z.shape[0] == 1)))
    count = x.shape[1]
    x = x if dtype is None else convert(x, dtypes.check_and_canonicalize_user_dtype(dtype, "cov"))
    if not count:
        return full((x.shape[0],) * 2 if x.shape[0] > 1 else (), np.nan, x.dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    w, aweights = _sample_weights(fweights, aweights, count)
    mean, total = reductions.average(x, axis=1, weights=w, returned=True)
    norm = _degrees_of_freedom(total[0], count, ddof, w, aweights)
    x = x - mean[:, None]
    other = x if w is None else x * broadcast_to_rank(w, 2)
    return shaping.squeeze(products.dot(x, ufuncs.conjugate(shaping.transpose(other))) / norm)


@jitted("corrcoef", static=("rowvar", "dtype"))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """Computes the correlation coefficients of variables.

    Variables are the rows of `x`, and of `y` if given, or the columns unless `rowvar`. Coefficients are clipped to the
    interval from -1 to 1. `dtype` is that of the computation.

    Example:
      >>> jnp.corrcoef(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return ufuncs.divide(c, c)
    deviations = convert(ufuncs.sqrt(ufuncs.real(taking.diag(c))), c.dtype)
    c = c / deviations[:, None] / deviations[None]
    if is_complex(c):
        return from_parts(ufuncs.clip(ufuncs.real(c), -1, 1), ufuncs.clip(ufuncs.imag(c), -1, 1))
    return ufuncs.clip(c, -1, 1)
