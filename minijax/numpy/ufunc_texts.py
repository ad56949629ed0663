"""The docstrings of elementwise functions that are made from operations: one table, and how its rows are shown."""

import re
from collections.abc import Callable

from minijax.base.documentation import filled

# For each function related functions, a sentence, and the arguments and result of an example.
_TABLE = """
add (subtract sum): Adds two arrays, elementwise; of booleans, computes the logical or.
    jnp.array([1.0, 2.0]), 1 -> Array([2., 3.], dtype=float32)
multiply (divide prod outer): Multiplies two arrays, elementwise; of booleans, computes the logical and.
    jnp.array([1, 2]), jnp.array([3, 4]) -> Array([3, 8], dtype=int32)
subtract (add negative diff): Subtracts the second array from the first, elementwise.
    jnp.array([5, 7]), 2 -> Array([3, 5], dtype=int32)
true_divide (floor_divide remainder): Divides the first array by the second, elementwise, in floating point.
    jnp.array([1, 2]), 4 -> Array([0.25, 0.5 ], dtype=float32)
maximum (minimum fmax max clip): Returns the larger of two elements, and NaN if one is NaN.
    jnp.array([1.0, 5.0, jnp.nan]), 3.0 -> Array([ 3.,  5., nan], dtype=float32)
minimum (maximum fmin min clip): Returns the smaller of two elements, and NaN if one is NaN.
    jnp.array([1.0, 5.0, jnp.nan]), 3.0 -> Array([ 1.,  3., nan], dtype=float32)
arctan2 (arctan angle): Computes the angle of the point (x2, x1) in radians, from -pi to pi.
    1.0, jnp.array([0.0, -1.0]) -> Array([1.5707964, 2.3561945], dtype=float32)
atan2 (arctan angle): Computes the angle of the point (x2, x1) in radians, from -pi to pi.
    1.0, jnp.array([0.0, -1.0]) -> Array([1.5707964, 2.3561945], dtype=float32)
nextafter (spacing finfo): Returns the next float after the first element in the direction of the second.
    jnp.array([1.0]), 2.0 -> Array([1.0000001], dtype=float32)
float_power (power exp): Raises elements of the first array to powers in floating point.
    jnp.array([1, 2]), -1 -> Array([1. , 0.5], dtype=float32)
negative (absolute subtract): Negates each element; unsigned integers wrap around.
    jnp.array([1, -2]) -> Array([-1,  2], dtype=int32)
positive (negative): Returns each element as it is.
    jnp.array([1, -2]) -> Array([ 1, -2], dtype=int32)
sign (signbit copysign absolute): Returns the sign of each element: -1, 0 or 1; of complex numbers, x / abs(x).
    jnp.array([-2.5, 0.0, 7.0]) -> Array([-1.,  0.,  1.], dtype=float32)
square (power sqrt): Computes the square of each element.
    jnp.array([1, -3]) -> Array([1, 9], dtype=int32)
reciprocal (divide): Computes 1 / x of each element.
    jnp.array([1, 4]) -> Array([1.  , 0.25], dtype=float32)
absolute (sign fabs): Computes the absolute value of each element; of complex numbers, the modulus.
    jnp.array([-1.5, 2.0, 3 + 4j]) -> Array([1.5, 2. , 5. ], dtype=float32)
exp (expm1 exp2 log): Computes e to the power of each element.
    jnp.array([0.0, 1.0]) -> Array([1.       , 2.7182817], dtype=float32)
exp2 (exp log2): Computes 2 to the power of each element.
    jnp.array([0, 3]) -> Array([1., 8.], dtype=float32)
expm1 (exp log1p): Computes exp(x) - 1 of each element, precisely near zero.
    jnp.array([0.0, 1e-5]) -> Array([0.000000e+00, 1.000005e-05], dtype=float32)
log (log1p log2 log10 exp): Computes the natural logarithm of each element: NaN of negative numbers, -inf of zero.
    jnp.array([1.0, 10.0, 0.0]) -> Array([0.       , 2.3025851,      -inf], dtype=float32)
log1p (log expm1): Computes log(1 + x) of each element, precisely near zero.
    jnp.array([0.0, 1e-5]) -> Array([0.00000e+00, 9.99995e-06], dtype=float32)
sqrt (square cbrt power): Computes the square root of each element: NaN of negative real numbers.
    jnp.array([4.0, 2.0, -1.0]) -> Array([2.       , 1.4142135,       nan], dtype=float32)
cbrt (sqrt power): Computes the real cube root of each element.
    jnp.array([8.0, -27.0]) -> Array([ 2., -3.], dtype=float32)
sin (cos tan arcsin): Computes the sine of each element, an angle in radians.
    jnp.array([0.0, jnp.pi / 2]) -> Array([0., 1.], dtype=float32)
cos (sin tan arccos): Computes the cosine of each element, an angle in radians.
    jnp.array([0.0, jnp.pi]) -> Array([ 1., -1.], dtype=float32)
tan (sin cos arctan): Computes the tangent of each element, an angle in radians.
    jnp.array([0.0, 1.0]) -> Array([0.       , 1.5574077], dtype=float32)
sinh (cosh tanh arcsinh): Computes the hyperbolic sine of each element.
    jnp.array([0.0, 1.0]) -> Array([0.       , 1.1752012], dtype=float32)
cosh (sinh tanh arccosh): Computes the hyperbolic cosine of each element.
    jnp.array([0.0, 1.0]) -> Array([1.       , 1.5430806], dtype=float32)
tanh (sinh cosh arctanh): Computes the hyperbolic tangent of each element.
    jnp.array([0.0, 1.0]) -> Array([0.       , 0.7615942], dtype=float32)
arcsin (sin arccos): Computes the inverse of the sine in radians: NaN beyond -1 and 1.
    jnp.array([0.0, 1.0]) -> Array([0.       , 1.5707964], dtype=float32)
arccos (cos arcsin): Computes the inverse of the cosine in radians: NaN beyond -1 and 1.
    jnp.array([0.0, 1.0]) -> Array([1.5707964, 0.       ], dtype=float32)
arctan (tan arctan2): Computes the inverse of the tangent in radians, from -pi / 2 to pi / 2.
    jnp.array([0.0, jnp.inf]) -> Array([0.       , 1.5707964], dtype=float32)
arcsinh (sinh): Computes the inverse of the hyperbolic sine of each element.
    jnp.array([0.0, 1.0]) -> Array([0.        , 0.88137364], dtype=float32)
arctanh (tanh): Computes the inverse of the hyperbolic tangent: NaN beyond -1 and 1.
    jnp.array([0.0, 0.5]) -> Array([0.        , 0.54930615], dtype=float32)
deg2rad (rad2deg): Converts angles from degrees to radians.
    jnp.array([0.0, 180.0]) -> Array([0.       , 3.1415927], dtype=float32)
rad2deg (deg2rad): Converts angles from radians to degrees.
    jnp.array([0.0, jnp.pi]) -> Array([  0., 180.], dtype=float32)
log2 (log exp2): Computes the logarithm of each element to base 2.
    jnp.array([1.0, 8.0]) -> Array([0., 3.], dtype=float32)
log10 (log): Computes the logarithm of each element to base 10.
    jnp.array([1.0, 100.0]) -> Array([0., 2.], dtype=float32)
floor (ceil trunc round): Rounds each element down to an integer; integers are returned as they are.
    jnp.array([1.7, -1.2]) -> Array([ 1., -2.], dtype=float32)
ceil (floor trunc round): Rounds each element up to an integer; integers are returned as they are.
    jnp.array([1.2, -1.7]) -> Array([ 2., -1.], dtype=float32)
isnan (isfinite nan_to_num): Returns whether each element is NaN.
    jnp.array([1.0, jnp.nan]) -> Array([False,  True], dtype=bool)
isposinf (isneginf isinf): Returns whether each real number is positive infinity.
    jnp.array([jnp.inf, -jnp.inf]) -> Array([ True, False], dtype=bool)
isneginf (isposinf isinf): Returns whether each real number is negative infinity.
    jnp.array([jnp.inf, -jnp.inf]) -> Array([False,  True], dtype=bool)
equal (not_equal isclose): Returns whether elements are equal; NaN is not equal to NaN.
    jnp.array([1, 2]), 2 -> Array([False,  True], dtype=bool)
not_equal (equal): Returns whether elements are different.
    jnp.array([1, 2]), 2 -> Array([ True, False], dtype=bool)
less (less_equal greater): Returns whether the first element is less than the second.
    jnp.array([1, 2]), 2 -> Array([ True, False], dtype=bool)
less_equal (less greater_equal): Returns whether the first element is less than or equal to the second.
    jnp.array([1, 2]), 2 -> Array([ True,  True], dtype=bool)
greater (greater_equal less): Returns whether the first element is greater than the second.
    jnp.array([1, 3]), 2 -> Array([False,  True], dtype=bool)
greater_equal (greater less_equal): Returns whether the first element is greater than or equal to the second.
    jnp.array([1, 2]), 2 -> Array([False,  True], dtype=bool)
logical_not (logical_and invert): Returns whether each element is false or zero.
    jnp.array([True, False]) -> Array([False,  True], dtype=bool)
logical_and (logical_or all): Returns whether both elements are true, or nonzero.
    jnp.array([True, True]), jnp.array([True, False]) -> Array([ True, False], dtype=bool)
logical_or (logical_and any): Returns whether one of two elements is true, or nonzero.
    jnp.array([True, False]), jnp.array([False, False]) -> Array([ True, False], dtype=bool)
logical_xor (logical_or): Returns whether exactly one of two elements is true, or nonzero.
    jnp.array([True, True]), jnp.array([True, False]) -> Array([False,  True], dtype=bool)
invert (logical_not): Inverts the bits of each integer; of booleans, computes the logical not.
    jnp.array([0, 5]) -> Array([-1, -6], dtype=int32)
bitwise_and (bitwise_or logical_and): Computes the bitwise and of integers or booleans.
    jnp.array([6, 5]), 3 -> Array([2, 1], dtype=int32)
bitwise_or (bitwise_and logical_or): Computes the bitwise or of integers or booleans.
    jnp.array([6, 5]), 3 -> Array([7, 7], dtype=int32)
bitwise_xor (bitwise_or): Computes the bitwise exclusive or of integers or booleans.
    jnp.array([6, 5]), 3 -> Array([5, 6], dtype=int32)
left_shift (right_shift): Shifts the bits of integers to the left, which multiplies by powers of 2.
    jnp.array([1, 3]), 2 -> Array([ 4, 12], dtype=int32)
right_shift (left_shift): Shifts the bits of integers to the right; signed ones keep their sign.
    jnp.array([8, -8]), 2 -> Array([ 2, -2], dtype=int32)
fmax (maximum fmin nanmax): Returns the larger of two elements, or the one that is not NaN.
    jnp.array([1.0, jnp.nan]), 3.0 -> Array([3., 3.], dtype=float32)
fmin (minimum fmax nanmin): Returns the smaller of two elements, or the one that is not NaN.
    jnp.array([1.0, jnp.nan]), 3.0 -> Array([1., 3.], dtype=float32)
"""
_ROWS = {name: rest for name, *rest in re.findall(r"^(\w+) \((.*?)\): (.*)\n    (.*) -> (.*)$", _TABLE, re.MULTILINE)}


def described(function: Callable, name: str, kinds: str = "") -> str | None:
    """The docstring of `function`, a template, with the row of `name`; `kinds` is a sentence on dtypes."""
    related, sentence, arguments, result = _ROWS[name]
    others = ", ".join(f"`jax.numpy.{other}`" for other in related.split())
    call = f"jnp.{name}({arguments})"
    an = "An array of booleans," if sentence.startswith("Returns whether") else "An array"
    doc = filled(function, dict(sentence=sentence, kinds=kinds, an=an, related=others, call=call, result=result))
    return doc and doc.replace(". \n", ".\n")  # without `kinds`
