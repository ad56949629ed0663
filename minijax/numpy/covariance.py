"""Covariances and correlation coefficients."""

from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import creation, products, reductions, shaping, taking, ufuncs
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import complex as from_parts
from minijax.primitives.families import is_complex
from minijax.primitives.promote import arrays, promote_args_inexact
from minijax.primitives.structural import broadcast_to_rank


def _weights(name: str, weights: Any, count: int) -> Any:
    (w,) = map(creation.asarray, arrays("cov", weights))
    if w.ndim > 1:
        raise RuntimeError(f"cov: cannot handle multidimensional {name}, got shape {w.shape}")
    if w.shape[0] != count:
        raise RuntimeError(f"cov: incompatible numbers of samples and {name}, {count} and {w.shape[0]}")
    return ufuncs.absolute(w)


def _rows(m: Any, rowvar: bool, is_vector: bool) -> Any:
    rows = shaping.atleast_2d(m)
    return rows if rowvar or is_vector else shaping.transpose(rows)


@jitted("cov", static=("rowvar", "bias", "ddof", "dtype"))
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
        fweights: Any = None, aweights: Any = None, dtype: Any = None) -> Any:  # fmt: skip
    """As `numpy.cov`."""
    if dtype is not None and not dtypes.issubdtype(dtype, np.inexact):
        raise ValueError(f"cov: dtype must be a subclass of float or complex; got {dtype=}")
    samples = [m] if y is None else [m, y]
    m, *ys = map(creation.asarray, promote_args_inexact("cov", *samples))
    for name, z in zip(("m", "y"), (m, *ys), strict=False):
        if z.ndim > 2:
            raise ValueError(f"cov: {name} has more than 2 dimensions, got shape {z.shape}")
    x = _rows(m, rowvar, m.ndim == 1)
    if not x.shape[0]:
        return shaping.reshape(creation.array([]), (0, 0))
    for z in ys:
        x = shaping.concatenate((x, _rows(z, rowvar, z.ndim < 2 or z.shape[0] == 1)))
    count = x.shape[1]
    x = x if dtype is None else convert(x, dtypes.check_and_canonicalize_user_dtype(dtype, "cov"))
    if not count:
        return creation.full((x.shape[0],) * 2 if x.shape[0] > 1 else (), np.nan, x.dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    w = None
    if fweights is not None:
        if not dtypes.issubdtype(typeof(fweights).dtype, np.integer):
            raise TypeError("cov: fweights must be integer.")
        w = _weights("fweights", fweights, count)
    if aweights is not None:
        aweights = _weights("aweights", aweights, count)
        w = aweights if w is None else w * aweights
    mean, total = reductions.average(x, axis=1, weights=w, returned=True)
    total = total[0]
    if w is None:
        norm = count - ddof
    elif ddof == 0:
        norm = total
    elif aweights is None:
        norm = total - ddof
    else:
        norm = total - ddof * reductions.sum(w * aweights) / total
    x = x - mean[:, None]
    other = x if w is None else x * broadcast_to_rank(w, 2)
    return shaping.squeeze(products.dot(x, ufuncs.conjugate(shaping.transpose(other))) / norm)


@jitted("corrcoef", static=("rowvar", "dtype"))
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """As `numpy.corrcoef`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return ufuncs.divide(c, c)
    spread = convert(ufuncs.sqrt(ufuncs.real(taking.diag(c))), c.dtype)
    c = c / spread[:, None] / spread[None]
    if is_complex(c):
        return from_parts(ufuncs.clip(ufuncs.real(c), -1, 1), ufuncs.clip(ufuncs.imag(c), -1, 1))
    return ufuncs.clip(c, -1, 1)
