"""The docstrings of elementwise functions that are made from operations: one table, and how its rows are shown."""

import re
from collections.abc import Callable

from minijax.base.documentation import filled

# For each function a sentence, related functions, and the arguments and result of an example.
_TABLE = """
add: Adds two arrays, elementwise; of booleans, computes the logical or.
    subtract sum
    jnp.array([1.0, 2.0]), 1 -> Array([2., 3.], dtype=float32)
multiply: Multiplies two arrays, elementwise; of booleans, computes the logical and.
    divide prod outer
    jnp.array([1, 2]), jnp.array([3, 4]) -> Array([3, 8], dtype=int32)
subtract: Subtracts the second array from the first, elementwise.
    add negative diff
    jnp.array([5, 7]), 2 -> Array([3, 5], dtype=int32)
true_divide: Divides the first array by the second, elementwise, in floating point.
    floor_divide remainder
    jnp.array([1, 2]), 4 -> Array([0.25, 0.5 ], dtype=float32)
maximum: Returns the larger of two elements, and NaN if one is NaN.
    minimum fmax max clip
    jnp.array([1.0, 5.0, jnp.nan]), 3.0 -> Array([ 3.,  5., nan], dtype=float32)
minimum: Returns the smaller of two elements, and NaN if one is NaN.
    maximum fmin min clip
    jnp.array([1.0, 5.0, jnp.nan]), 3.0 -> Array([ 1.,  3., nan], dtype=float32)
arctan2: Computes the angle of the point (x2, x1) in radians, from -pi to pi.
    arctan angle
    1.0, jnp.array([0.0, -1.0]) -> Array([1.5707964, 2.3561945], dtype=float32)
atan2: Computes the angle of the point (x2, x1) in radians, from -pi to pi.
    arctan angle
    1.0, jnp.array([0.0, -1.0]) -> Array([1.5707964, 2.3561945], dtype=float32)
nextafter: Returns the next float after the first element in the direction of the second.
    spacing finfo
    jnp.array([1.0]), 2.0 -> Array([1.0000001], dtype=float32)
float_power: Raises elements of the first array to powers in floating point.
    power exp
    jnp.array([1, 2]), -1 -> Array([1. , 0.5], dtype=float32)
negative: Negates each element; unsigned integers wrap around.
    absolute subtract
    jnp.array([1, -2]) -> Array([-1,  2], dtype=int32)
positive: Returns each element as it is.
    negative
    jnp.array([1, -2]) -> Array([ 1, -2], dtype=int32)
sign: Returns the sign of each element: -1, 0 or 1; of complex numbers, x / abs(x).
    signbit copysign absolute
    jnp.array([-2.5, 0.0, 7.0]) -> Array([-1.,  0.,  1.], dtype=float32)
square: Computes the square of each element.
    power sqrt
    jnp.array([1, -3]) -> Array([1, 9], dtype=int32)
reciprocal: Computes 1 / x of each element.
    divide
    jnp.array([1, 4]) -> Array([1.  , 0.25], dtype=float32)
absolute: Computes the absolute value of each element; of complex numbers, the modulus.
    sign fabs
    jnp.array([-1.5, 2.0, 3 + 4j]) -> Array([1.5, 2. , 5. ], dtype=float32)
exp: Computes e to the power of each element.
    expm1 exp2 log
    jnp.array([0.0, 1.0]) -> Array([1.       , 2.7182817], dtype=float32)
exp2: Computes 2 to the power of each element.
    exp log2
    jnp.array([0, 3]) -> Array([1., 8.], dtype=float32)
expm1: Computes exp(x) - 1 of each element, precisely near zero.
    exp log1p
    jnp.array([0.0, 1e-5]) -> Array([0.000000e+00, 1.000005e-05], dtype=float32)
log: Computes the natural logarithm of each element: NaN of negative numbers, -inf of zero.
    log1p log2 log10 exp
    jnp.array([1.0, 10.0, 0.0]) -> Array([0.       , 2.3025851,      -inf], dtype=float32)
log1p: Computes log(1 + x) of each element, precisely near zero.
    log expm1
    jnp.array([0.0, 1e-5]) -> Array([0.00000e+00, 9.99995e-06], dtype=float32)
sqrt: Computes the square root of each element: NaN of negative real numbers.
    square cbrt power
    jnp.array([4.0, 2.0, -1.0]) -> Array([2.       , 1.4142135,       nan], dtype=float32)
cbrt: Computes the real cube root of each element.
    sqrt power
    jnp.array([8.0, -27.0]) -> Array([ 2., -3.], dtype=float32)
sin: Computes the sine of each element, an angle in radians.
    cos tan arcsin
    jnp.array([0.0, jnp.pi / 2]) -> Array([0., 1.], dtype=float32)
cos: Computes the cosine of each element, an angle in radians.
    sin tan arccos
    jnp.array([0.0, jnp.pi]) -> Array([ 1., -1.], dtype=float32)
tan: Computes the tangent of each element, an angle in radians.
    sin cos arctan
    jnp.array([0.0, 1.0]) -> Array([0.       , 1.5574077], dtype=float32)
sinh: Computes the hyperbolic sine of each element.
    cosh tanh arcsinh
    jnp.array([0.0, 1.0]) -> Array([0.       , 1.1752012], dtype=float32)
cosh: Computes the hyperbolic cosine of each element.
    sinh tanh arccosh
    jnp.array([0.0, 1.0]) -> Array([1.       , 1.5430806], dtype=float32)
tanh: Computes the hyperbolic tangent of each element.
    sinh cosh arctanh
    jnp.array([0.0, 1.0]) -> Array([0.       , 0.7615942], dtype=float32)
arcsin: Computes the inverse of the sine in radians: NaN beyond -1 and 1.
    sin arccos
    jnp.array([0.0, 1.0]) -> Array([0.       , 1.5707964], dtype=float32)
arccos: Computes the inverse of the cosine in radians: NaN beyond -1 and 1.
    cos arcsin
    jnp.array([0.0, 1.0]) -> Array([1.5707964, 0.       ], dtype=float32)
arctan: Computes the inverse of the tangent in radians, from -pi / 2 to pi / 2.
    tan arctan2
    jnp.array([0.0, jnp.inf]) -> Array([0.       , 1.5707964], dtype=float32)
arcsinh: Computes the inverse of the hyperbolic sine of each element.
    sinh
    jnp.array([0.0, 1.0]) -> Array([0.        , 0.88137364], dtype=float32)
arctanh: Computes the inverse of the hyperbolic tangent: NaN beyond -1 and 1.
    tanh
    jnp.array([0.0, 0.5]) -> Array([0.        , 0.54930615], dtype=float32)
deg2rad: Converts angles from degrees to radians.
    rad2deg
    jnp.array([0.0, 180.0]) -> Array([0.       , 3.1415927], dtype=float32)
rad2deg: Converts angles from radians to degrees.
    deg2rad
    jnp.array([0.0, jnp.pi]) -> Array([  0., 180.], dtype=float32)
log2: Computes the logarithm of each element to base 2.
    log exp2
    jnp.array([1.0, 8.0]) -> Array([0., 3.], dtype=float32)
log10: Computes the logarithm of each element to base 10.
    log
    jnp.array([1.0, 100.0]) -> Array([0., 2.], dtype=float32)
floor: Rounds each element down to an integer; integers are returned as they are.
    ceil trunc round
    jnp.array([1.7, -1.2]) -> Array([ 1., -2.], dtype=float32)
ceil: Rounds each element up to an integer; integers are returned as they are.
    floor trunc round
    jnp.array([1.2, -1.7]) -> Array([ 2., -1.], dtype=float32)
isnan: Returns whether each element is NaN.
    isfinite nan_to_num
    jnp.array([1.0, jnp.nan]) -> Array([False,  True], dtype=bool)
isposinf: Returns whether each real number is positive infinity.
    isneginf isinf
    jnp.array([jnp.inf, -jnp.inf]) -> Array([ True, False], dtype=bool)
isneginf: Returns whether each real number is negative infinity.
    isposinf isinf
    jnp.array([jnp.inf, -jnp.inf]) -> Array([False,  True], dtype=bool)
equal: Returns whether elements are equal; NaN is not equal to NaN.
    not_equal isclose
    jnp.array([1, 2]), 2 -> Array([False,  True], dtype=bool)
not_equal: Returns whether elements are different.
    equal
    jnp.array([1, 2]), 2 -> Array([ True, False], dtype=bool)
less: Returns whether the first element is less than the second.
    less_equal greater
    jnp.array([1, 2]), 2 -> Array([ True, False], dtype=bool)
less_equal: Returns whether the first element is less than or equal to the second.
    less greater_equal
    jnp.array([1, 2]), 2 -> Array([ True,  True], dtype=bool)
greater: Returns whether the first element is greater than the second.
    greater_equal less
    jnp.array([1, 3]), 2 -> Array([False,  True], dtype=bool)
greater_equal: Returns whether the first element is greater than or equal to the second.
    greater less_equal
    jnp.array([1, 2]), 2 -> Array([False,  True], dtype=bool)
logical_not: Returns whether each element is false or zero.
    logical_and invert
    jnp.array([True, False]) -> Array([False,  True], dtype=bool)
logical_and: Returns whether both elements are true, or nonzero.
    logical_or all
    jnp.array([True, True]), jnp.array([True, False]) -> Array([ True, False], dtype=bool)
logical_or: Returns whether one of two elements is true, or nonzero.
    logical_and any
    jnp.array([True, False]), jnp.array([False, False]) -> Array([ True, False], dtype=bool)
logical_xor: Returns whether exactly one of two elements is true, or nonzero.
    logical_or
    jnp.array([True, True]), jnp.array([True, False]) -> Array([False,  True], dtype=bool)
invert: Inverts the bits of each integer; of booleans, computes the logical not.
    logical_not
    jnp.array([0, 5]) -> Array([-1, -6], dtype=int32)
bitwise_and: Computes the bitwise and of integers or booleans.
    bitwise_or logical_and
    jnp.array([6, 5]), 3 -> Array([2, 1], dtype=int32)
bitwise_or: Computes the bitwise or of integers or booleans.
    bitwise_and logical_or
    jnp.array([6, 5]), 3 -> Array([7, 7], dtype=int32)
bitwise_xor: Computes the bitwise exclusive or of integers or booleans.
    bitwise_or
    jnp.array([6, 5]), 3 -> Array([5, 6], dtype=int32)
left_shift: Shifts the bits of integers to the left, which multiplies by powers of 2.
    right_shift
    jnp.array([1, 3]), 2 -> Array([ 4, 12], dtype=int32)
right_shift: Shifts the bits of integers to the right; signed ones keep their sign.
    left_shift
    jnp.array([8, -8]), 2 -> Array([ 2, -2], dtype=int32)
fmax: Returns the larger of two elements, or the one that is not NaN.
    maximum fmin nanmax
    jnp.array([1.0, jnp.nan]), 3.0 -> Array([3., 3.], dtype=float32)
fmin: Returns the smaller of two elements, or the one that is not NaN.
    minimum fmax nanmin
    jnp.array([1.0, jnp.nan]), 3.0 -> Array([1., 3.], dtype=float32)
"""
_ENTRIES = (entry.partition(": ") for entry in re.split(r"\n(?=\w)", _TABLE.strip()))
_ROWS = {name: rest.split("\n    ") for name, _, rest in _ENTRIES}


def described(function: Callable, name: str, kinds: str = "") -> str | None:
    """The docstring of `function`, a template, with the row of `name`; `kinds` is a sentence on dtypes."""
    sentence, related, example = _ROWS[name]
    arguments, _, result = example.partition(" -> ")
    others = ", ".join(f"`jax.numpy.{other}`" for other in related.split())
    call = f"jnp.{name}({arguments})"
    return filled(function, dict(sentence=sentence, kinds=kinds, related=others, call=call, result=result))
