"""Real and imaginary parts, angles and conjugates."""

from __future__ import annotations

from math import pi

from minijax.base import dtypes
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy.ufuncs import promoting
from minijax.primitives import elementwise as lax, moving, structural
from minijax.primitives.families import const_like, full_of, is_complex
from minijax.primitives.promote import arrays, as_type
from minijax.run.arrays.array import Array, ArrayLike


@promoting(arrays, inline=True)
def real(val: ArrayLike, /) -> Array:
    """Returns the real part of each element.

    Real arrays are returned as they are. The result is never a view.

    Example:
      >>> jnp.real(jnp.array([1 + 2j]))
      Array([1.], dtype=float32)
    """
    return lax.real(val) if is_complex(val) else moving.as_array_or_constant(val)


@promoting(arrays, inline=True)
def imag(val: ArrayLike, /) -> Array:
    """Returns the imaginary part of each element, which is 0 for real numbers.

    The result is never a view.

    Example:
      >>> jnp.imag(jnp.array([1 + 2j]))
      Array([2.], dtype=float32)
    """
    return lax.imag(val) if is_complex(val) else structural.full_like(val, 0)


@promoting(arrays, inline=True)
def conjugate(x: ArrayLike, /) -> Array:
    """Returns the complex conjugate of each element.

    Real arrays are returned as they are.

    Example:
      >>> jnp.conjugate(jnp.array([1 + 2j, 3 - 1j]))
      Array([1.-2.j, 3.+1.j], dtype=complex64)
    """
    return lax.conj(x) if is_complex(x) else moving.as_array_or_constant(x)


@jitted(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Returns the angle of each complex number, in radians or, with `deg`, in degrees.

    Negative real numbers have the angle pi. Integers and real scalars give the default floating dtype. `deg` is static.

    Example:
      >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
      Array([ 90., 180.], dtype=float32)
    """
    (z,) = arrays("angle", z)
    if is_complex(z):
        re, im = lax.real(z), lax.imag(z)
    else:
        re, im, aval = z, full_of(z), typeof(z)
        if not aval.ndim or not dtypes.is_inexact(aval.dtype):
            re, im = (as_type(part, dtypes.default_float_dtype()) for part in (re, im))
    radians = lax.atan2(im, re)
    return lax.mul(radians, const_like(radians, 180 / pi)) if deg else radians


@jitted()
def iscomplex(x: ArrayLike) -> Array:
    """Returns whether each element has an imaginary part that is not zero.

    It is false for real dtypes.
    """
    part = imag(x)
    return lax.ne(part, const_like(part, 0))


@jitted()
def isreal(x: ArrayLike) -> Array:
    """Returns whether each element has an imaginary part of zero.

    It is true for real dtypes.
    """
    part = imag(x)
    return lax.eq(part, const_like(part, 0))
