# The names of this module's table, written by tests/write_stubs.py.

import builtins
from minijax.base.dtypes import DTypeLike
from minijax.base.dtypes import finfo as finfo
from minijax.base.dtypes import iinfo as iinfo
from minijax.base.dtypes import issubdtype as issubdtype
from minijax.base.dtypes import promote_types as promote_types
from minijax.composed.arrays.selecting import select as select
from minijax.numpy import fft as fft
from minijax.numpy import linalg as linalg
from minijax.numpy.array_api import __array_api_version__ as __array_api_version__
from minijax.numpy.array_api import __array_namespace_info__ as __array_namespace_info__
from minijax.numpy.array_api import isdtype as isdtype
from minijax.numpy.array_api import result_type as result_type
from minijax.numpy.contractions import cross as cross
from minijax.numpy.contractions import einsum as einsum
from minijax.numpy.contractions import einsum_path as einsum_path
from minijax.numpy.contractions import inner as inner
from minijax.numpy.contractions import kron as kron
from minijax.numpy.contractions import matvec as matvec
from minijax.numpy.contractions import outer as outer
from minijax.numpy.contractions import tensordot as tensordot
from minijax.numpy.contractions import trace as trace
from minijax.numpy.contractions import vdot as vdot
from minijax.numpy.contractions import vecdot as vecdot
from minijax.numpy.contractions import vecmat as vecmat
from minijax.numpy.creation import array as array
from minijax.numpy.creation import asarray as asarray
from minijax.numpy.creation import astype as astype
from minijax.numpy.creation import can_cast as can_cast
from minijax.numpy.creation import copy as copy
from minijax.numpy.creation import empty_like as empty_like
from minijax.numpy.creation import from_dlpack as from_dlpack
from minijax.numpy.creation import frombuffer as frombuffer
from minijax.numpy.creation import full as full
from minijax.numpy.creation import full_like as full_like
from minijax.numpy.creation import iscomplexobj as iscomplexobj
from minijax.numpy.creation import isrealobj as isrealobj
from minijax.numpy.creation import ndim as ndim
from minijax.numpy.creation import shape as shape
from minijax.numpy.creation import size as size
from minijax.numpy.custom_rules import i0 as i0
from minijax.numpy.custom_rules import sinc as sinc
from minijax.numpy.grids import CClass
from minijax.numpy.grids import RClass
from minijax.numpy.grids import diag_indices_from as diag_indices_from
from minijax.numpy.grids import mask_indices as mask_indices
from minijax.numpy.grids import mgrid as mgrid
from minijax.numpy.grids import ogrid as ogrid
from minijax.numpy.grids import packbits as packbits
from minijax.numpy.grids import ravel_multi_index as ravel_multi_index
from minijax.numpy.grids import tril_indices_from as tril_indices_from
from minijax.numpy.grids import triu_indices_from as triu_indices_from
from minijax.numpy.grids import unpackbits as unpackbits
from minijax.numpy.grids import unravel_index as unravel_index
from minijax.numpy.io import fromfile as fromfile
from minijax.numpy.io import fromiter as fromiter
from minijax.numpy.io import fromstring as fromstring
from minijax.numpy.io import get_printoptions as get_printoptions
from minijax.numpy.io import load as load
from minijax.numpy.io import printoptions as printoptions
from minijax.numpy.io import set_printoptions as set_printoptions
from minijax.numpy.padding import pad as pad
from minijax.numpy.placing import apply_along_axis as apply_along_axis
from minijax.numpy.placing import apply_over_axes as apply_over_axes
from minijax.numpy.placing import choose as choose
from minijax.numpy.placing import fill_diagonal as fill_diagonal
from minijax.numpy.placing import insert as insert
from minijax.numpy.placing import piecewise as piecewise
from minijax.numpy.placing import place as place
from minijax.numpy.placing import put as put
from minijax.numpy.polynomial import poly as poly
from minijax.numpy.polynomial import polyadd as polyadd
from minijax.numpy.polynomial import polyder as polyder
from minijax.numpy.polynomial import polydiv as polydiv
from minijax.numpy.polynomial import polyfit as polyfit
from minijax.numpy.polynomial import polyint as polyint
from minijax.numpy.polynomial import polymul as polymul
from minijax.numpy.polynomial import polysub as polysub
from minijax.numpy.polynomial import polyval as polyval
from minijax.numpy.polynomial import roots as roots
from minijax.numpy.products import dot as dot
from minijax.numpy.products import matmul as matmul
from minijax.numpy.quantiles import bincount as bincount
from minijax.numpy.quantiles import digitize as digitize
from minijax.numpy.quantiles import histogram as histogram
from minijax.numpy.quantiles import histogram2d as histogram2d
from minijax.numpy.quantiles import histogram_bin_edges as histogram_bin_edges
from minijax.numpy.quantiles import histogramdd as histogramdd
from minijax.numpy.quantiles import nanpercentile as nanpercentile
from minijax.numpy.quantiles import percentile as percentile
from minijax.numpy.ranges import arange as arange
from minijax.numpy.ranges import eye as eye
from minijax.numpy.ranges import fromfunction as fromfunction
from minijax.numpy.ranges import geomspace as geomspace
from minijax.numpy.ranges import identity as identity
from minijax.numpy.ranges import indices as indices
from minijax.numpy.ranges import linspace as linspace
from minijax.numpy.ranges import logspace as logspace
from minijax.numpy.ranges import meshgrid as meshgrid
from minijax.numpy.ranges import tri as tri
from minijax.numpy.ranges import tril as tril
from minijax.numpy.ranges import triu as triu
from minijax.numpy.rational_floating import frexp as frexp
from minijax.numpy.rational_floating import gcd as gcd
from minijax.numpy.rational_floating import lcm as lcm
from minijax.numpy.rational_floating import ldexp as ldexp
from minijax.numpy.rational_floating import modf as modf
from minijax.numpy.rational_floating import spacing as spacing
from minijax.numpy.reductions import allclose as allclose
from minijax.numpy.reductions import array_equal as array_equal
from minijax.numpy.reductions import array_equiv as array_equiv
from minijax.numpy.reductions import average as average
from minijax.numpy.reductions import count_nonzero as count_nonzero
from minijax.numpy.reductions import cumulative_prod as cumulative_prod
from minijax.numpy.reductions import cumulative_sum as cumulative_sum
from minijax.numpy.reductions import mean as mean
from minijax.numpy.reductions import nanmean as nanmean
from minijax.numpy.reductions import nanstd as nanstd
from minijax.numpy.reductions import nanvar as nanvar
from minijax.numpy.reductions import ptp as ptp
from minijax.numpy.samples import corrcoef as corrcoef
from minijax.numpy.samples import cov as cov
from minijax.numpy.samples import gradient as gradient
from minijax.numpy.samples import interp as interp
from minijax.numpy.samples import trapezoid as trapezoid
from minijax.numpy.samples import unwrap as unwrap
from minijax.numpy.scalars import bool_ as bool
from minijax.numpy.scalars import bool_ as bool_
from minijax.numpy.scalars import isscalar as isscalar
from minijax.numpy.searching import argpartition as argpartition
from minijax.numpy.searching import argsort as argsort
from minijax.numpy.searching import lexsort as lexsort
from minijax.numpy.searching import partition as partition
from minijax.numpy.searching import searchsorted as searchsorted
from minijax.numpy.searching import sort as sort
from minijax.numpy.searching import sort_complex as sort_complex
from minijax.numpy.sets import intersect1d as intersect1d
from minijax.numpy.sets import isin as isin
from minijax.numpy.sets import setdiff1d as setdiff1d
from minijax.numpy.sets import setxor1d as setxor1d
from minijax.numpy.sets import union1d as union1d
from minijax.numpy.sets import unique as unique
from minijax.numpy.sets import unique_all as unique_all
from minijax.numpy.sets import unique_counts as unique_counts
from minijax.numpy.sets import unique_inverse as unique_inverse
from minijax.numpy.sets import unique_values as unique_values
from minijax.numpy.shaping import append as append
from minijax.numpy.shaping import array_split as array_split
from minijax.numpy.shaping import block as block
from minijax.numpy.shaping import broadcast_arrays as broadcast_arrays
from minijax.numpy.shaping import broadcast_shapes as broadcast_shapes
from minijax.numpy.shaping import broadcast_to as broadcast_to
from minijax.numpy.shaping import column_stack as column_stack
from minijax.numpy.shaping import concat as concat
from minijax.numpy.shaping import concatenate as concatenate
from minijax.numpy.shaping import diff as diff
from minijax.numpy.shaping import dsplit as dsplit
from minijax.numpy.shaping import dstack as dstack
from minijax.numpy.shaping import ediff1d as ediff1d
from minijax.numpy.shaping import expand_dims as expand_dims
from minijax.numpy.shaping import flip as flip
from minijax.numpy.shaping import fliplr as fliplr
from minijax.numpy.shaping import flipud as flipud
from minijax.numpy.shaping import hsplit as hsplit
from minijax.numpy.shaping import hstack as hstack
from minijax.numpy.shaping import matrix_transpose as matrix_transpose
from minijax.numpy.shaping import moveaxis as moveaxis
from minijax.numpy.shaping import permute_dims as permute_dims
from minijax.numpy.shaping import ravel as ravel
from minijax.numpy.shaping import reshape as reshape
from minijax.numpy.shaping import resize as resize
from minijax.numpy.shaping import roll as roll
from minijax.numpy.shaping import rollaxis as rollaxis
from minijax.numpy.shaping import rot90 as rot90
from minijax.numpy.shaping import split as split
from minijax.numpy.shaping import squeeze as squeeze
from minijax.numpy.shaping import stack as stack
from minijax.numpy.shaping import swapaxes as swapaxes
from minijax.numpy.shaping import tile as tile
from minijax.numpy.shaping import transpose as transpose
from minijax.numpy.shaping import unstack as unstack
from minijax.numpy.shaping import vander as vander
from minijax.numpy.shaping import vsplit as vsplit
from minijax.numpy.shaping import vstack as vstack
from minijax.numpy.signal import bartlett as bartlett
from minijax.numpy.signal import blackman as blackman
from minijax.numpy.signal import convolve as convolve
from minijax.numpy.signal import correlate as correlate
from minijax.numpy.signal import hamming as hamming
from minijax.numpy.signal import hanning as hanning
from minijax.numpy.signal import kaiser as kaiser
from minijax.numpy.taking import argwhere as argwhere
from minijax.numpy.taking import compress as compress
from minijax.numpy.taking import delete as delete
from minijax.numpy.taking import diag as diag
from minijax.numpy.taking import diag_indices as diag_indices
from minijax.numpy.taking import diagflat as diagflat
from minijax.numpy.taking import diagonal as diagonal
from minijax.numpy.taking import extract as extract
from minijax.numpy.taking import flatnonzero as flatnonzero
from minijax.numpy.taking import ix_ as ix_
from minijax.numpy.taking import nonzero as nonzero
from minijax.numpy.taking import put_along_axis as put_along_axis
from minijax.numpy.taking import repeat as repeat
from minijax.numpy.taking import take as take
from minijax.numpy.taking import take_along_axis as take_along_axis
from minijax.numpy.taking import tril_indices as tril_indices
from minijax.numpy.taking import trim_zeros as trim_zeros
from minijax.numpy.taking import triu_indices as triu_indices
from minijax.numpy.taking import where as where
from minijax.numpy.ufunc_class import add as add
from minijax.numpy.ufunc_class import bitwise_and as bitwise_and
from minijax.numpy.ufunc_class import bitwise_or as bitwise_or
from minijax.numpy.ufunc_class import bitwise_xor as bitwise_xor
from minijax.numpy.ufunc_class import frompyfunc as frompyfunc
from minijax.numpy.ufunc_class import logaddexp as logaddexp
from minijax.numpy.ufunc_class import logaddexp2 as logaddexp2
from minijax.numpy.ufunc_class import logical_and as logical_and
from minijax.numpy.ufunc_class import logical_or as logical_or
from minijax.numpy.ufunc_class import logical_xor as logical_xor
from minijax.numpy.ufunc_class import maximum as maximum
from minijax.numpy.ufunc_class import minimum as minimum
from minijax.numpy.ufunc_class import multiply as multiply
from minijax.numpy.ufunc_class import negative as negative
from minijax.numpy.ufunc_class import subtract as subtract
from minijax.numpy.ufunc_class import ufunc as ufunc
from minijax.numpy.ufuncs import angle as angle
from minijax.numpy.ufuncs import arccosh as acosh
from minijax.numpy.ufuncs import arccosh as arccosh
from minijax.numpy.ufuncs import around as around
from minijax.numpy.ufuncs import bitwise_count as bitwise_count
from minijax.numpy.ufuncs import clip as clip
from minijax.numpy.ufuncs import conjugate as conj
from minijax.numpy.ufuncs import conjugate as conjugate
from minijax.numpy.ufuncs import copysign as copysign
from minijax.numpy.ufuncs import divmod as divmod
from minijax.numpy.ufuncs import fabs as fabs
from minijax.numpy.ufuncs import floor_divide as floor_divide
from minijax.numpy.ufuncs import fmod as fmod
from minijax.numpy.ufuncs import heaviside as heaviside
from minijax.numpy.ufuncs import hypot as hypot
from minijax.numpy.ufuncs import imag as imag
from minijax.numpy.ufuncs import isclose as isclose
from minijax.numpy.ufuncs import iscomplex as iscomplex
from minijax.numpy.ufuncs import isfinite as isfinite
from minijax.numpy.ufuncs import isinf as isinf
from minijax.numpy.ufuncs import isreal as isreal
from minijax.numpy.ufuncs import nan_to_num as nan_to_num
from minijax.numpy.ufuncs import power as pow
from minijax.numpy.ufuncs import power as power
from minijax.numpy.ufuncs import real as real
from minijax.numpy.ufuncs import remainder as mod
from minijax.numpy.ufuncs import remainder as remainder
from minijax.numpy.ufuncs import rint as rint
from minijax.numpy.ufuncs import round as round
from minijax.numpy.ufuncs import signbit as signbit
from minijax.numpy.ufuncs import trunc as trunc
from minijax.numpy.vectorizing import vectorize as vectorize
from minijax.run.arrays.array import Array
from minijax.run.arrays.array import Array as ndarray
from minijax.run.arrays.array import ArrayLike
from minijax.run.arrays.array import Axis
from minijax.run.arrays.array import DeviceLike
from minijax.run.arrays.array import ShardingLike
from numpy import array_repr as array_repr
from numpy import array_str as array_str
from numpy import character as character
from numpy import complexfloating as complexfloating
from numpy import dtype as dtype
from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import flexible as flexible
from numpy import floating as floating
from numpy import generic as generic
from numpy import index_exp as index_exp
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import integer as integer
from numpy import iterable as iterable
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import object_ as object_
from numpy import pi as pi
from numpy import s_ as s_
from numpy import save as save
from numpy import savez as savez
from numpy import signedinteger as signedinteger
from numpy import unsignedinteger as unsignedinteger
from numpy.exceptions import ComplexWarning as ComplexWarning
from typing import Any

__all__ = [
    "ComplexWarning", "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any",
    "append", "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around", "array", "array_equal",
    "array_equiv", "array_repr", "array_split", "array_str", "asarray", "asin", "asinh", "astype", "atan", "atan2",
    "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average", "bartlett", "bfloat16", "bincount", "bitwise_and",
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "blackman", "block", "bool", "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "c_",
    "can_cast", "cbrt", "cdouble", "ceil", "character", "choose", "clip", "column_stack", "complex128", "complex64",
    "complex_", "complexfloating", "compress", "concat", "concatenate", "conj", "conjugate", "convolve", "copy",
    "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "csingle", "cumprod",
    "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "delete", "diag", "diag_indices",
    "diag_indices_from", "diagflat", "diagonal", "diff", "digitize", "divide", "divmod", "dot", "double", "dsplit",
    "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty", "empty_like", "equal", "euler_gamma", "exp",
    "exp2", "expand_dims", "expm1", "extract", "eye", "fabs", "fft", "fill_diagonal", "finfo", "flatnonzero",
    "flexible", "flip", "fliplr", "flipud", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn",
    "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "float_power", "floating", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "frexp", "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter",
    "frompyfunc", "fromstring", "full", "full_like", "gcd", "generic", "geomspace", "get_printoptions", "gradient",
    "greater", "greater_equal", "hamming", "hanning", "heaviside", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo", "imag", "index_exp", "indices", "inexact",
    "inf", "inner", "insert", "int1", "int16", "int2", "int32", "int4", "int64", "int8", "int_", "integer", "interp",
    "intersect1d", "invert", "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable", "ix_", "kaiser", "kron",
    "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort", "linalg", "linspace", "load", "log", "log10",
    "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace",
    "mask_indices", "matmul", "matrix_transpose", "matvec", "max", "maximum", "mean", "median", "meshgrid", "mgrid",
    "min", "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile",
    "nanstd", "nansum", "nanvar", "ndarray", "ndim", "negative", "newaxis", "nextafter", "nonzero", "not_equal",
    "number", "object_", "ogrid", "ones", "ones_like", "outer", "packbits", "pad", "partition", "percentile",
    "permute_dims", "pi", "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint",
    "polymul", "polysub", "polyval", "positive", "pow", "power", "printoptions", "prod", "promote_types", "ptp",
    "put", "put_along_axis", "quantile", "r_", "rad2deg", "radians", "ravel", "ravel_multi_index", "real",
    "reciprocal", "remainder", "repeat", "reshape", "resize", "result_type", "right_shift", "rint", "roll",
    "rollaxis", "roots", "rot90", "round", "s_", "save", "savez", "searchsorted", "select", "set_printoptions",
    "setdiff1d", "setxor1d", "shape", "sign", "signbit", "signedinteger", "sin", "sinc", "single", "sinh", "size",
    "sort", "sort_complex", "spacing", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum",
    "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace", "transpose", "trapezoid",
    "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from",
    "true_divide", "trunc", "ufunc", "uint", "uint1", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8",
    "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unpackbits",
    "unravel_index", "unsignedinteger", "unstack", "unwrap", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize",
    "vsplit", "vstack", "where", "zeros", "zeros_like"
]

def empty(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array: ...
def ones(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array: ...
def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array: ...
def zeros(
    shape: Any,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array: ...
def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array: ...
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array: ...
def amax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def amin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array: ...
def argmax(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: builtins.bool | None = None,
) -> Array: ...
def argmin(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: builtins.bool | None = None,
) -> Array: ...
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array: ...
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array: ...
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nanargmax(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: builtins.bool | None = None,
) -> Array: ...
def nanargmin(
    a: ArrayLike,
    axis: int | None = None,
    out: None = None,
    keepdims: builtins.bool | None = None,
) -> Array: ...
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array: ...
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array: ...
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array: ...
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: builtins.bool = True,
) -> Array: ...
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array: ...
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: builtins.bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: builtins.bool = True,
) -> Array: ...
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: builtins.bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array: ...
c_: CClass
r_: RClass
def median(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    keepdims: builtins.bool = False,
) -> Array: ...
def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    keepdims: builtins.bool = False,
) -> Array: ...
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    method: str = 'linear',
    keepdims: builtins.bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array: ...
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: builtins.bool = False,
    method: str = 'linear',
    keepdims: builtins.bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array: ...
bfloat16: Any
cdouble: Any
complex128: Any
complex64: Any
complex_: Any
csingle: Any
double: Any
float16: Any
float32: Any
float4_e2m1fn: Any
float64: Any
float6_e2m3fn: Any
float6_e3m2fn: Any
float8_e3m4: Any
float8_e4m3: Any
float8_e4m3b11fnuz: Any
float8_e4m3fn: Any
float8_e4m3fnuz: Any
float8_e5m2: Any
float8_e5m2fnuz: Any
float8_e8m0fnu: Any
float_: Any
int1: Any
int16: Any
int2: Any
int32: Any
int4: Any
int64: Any
int8: Any
int_: Any
single: Any
uint: Any
uint1: Any
uint16: Any
uint2: Any
uint32: Any
uint4: Any
uint64: Any
uint8: Any
def atleast_1d(*arys: ArrayLike) -> Any: ...
def atleast_2d(*arys: ArrayLike) -> Any: ...
def atleast_3d(*arys: ArrayLike) -> Any: ...
def abs(x: ArrayLike, /) -> Array: ...
def absolute(x: ArrayLike, /) -> Array: ...
def acos(x: ArrayLike, /) -> Array: ...
def arccos(x: ArrayLike, /) -> Array: ...
def arcsin(x: ArrayLike, /) -> Array: ...
def arcsinh(x: ArrayLike, /) -> Array: ...
def arctan(x: ArrayLike, /) -> Array: ...
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def arctanh(x: ArrayLike, /) -> Array: ...
def asin(x: ArrayLike, /) -> Array: ...
def asinh(x: ArrayLike, /) -> Array: ...
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def atan(x: ArrayLike, /) -> Array: ...
def atanh(x: ArrayLike, /) -> Array: ...
def bitwise_invert(x: ArrayLike, /) -> Array: ...
def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def bitwise_not(x: ArrayLike, /) -> Array: ...
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def cbrt(x: ArrayLike, /) -> Array: ...
def ceil(x: ArrayLike, /) -> Array: ...
def cos(x: ArrayLike, /) -> Array: ...
def cosh(x: ArrayLike, /) -> Array: ...
def deg2rad(x: ArrayLike, /) -> Array: ...
def degrees(x: ArrayLike, /) -> Array: ...
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def exp(x: ArrayLike, /) -> Array: ...
def exp2(x: ArrayLike, /) -> Array: ...
def expm1(x: ArrayLike, /) -> Array: ...
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def floor(x: ArrayLike, /) -> Array: ...
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array: ...
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array: ...
def greater(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def invert(x: ArrayLike, /) -> Array: ...
def isnan(x: ArrayLike, /) -> Array: ...
def isneginf(x: ArrayLike, /, out: None = None) -> Array: ...
def isposinf(x: ArrayLike, /, out: None = None) -> Array: ...
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def less(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def log(x: ArrayLike, /) -> Array: ...
def log10(x: ArrayLike, /) -> Array: ...
def log1p(x: ArrayLike, /) -> Array: ...
def log2(x: ArrayLike, /) -> Array: ...
def logical_not(x: ArrayLike, /) -> Array: ...
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def positive(x: ArrayLike, /) -> Array: ...
def rad2deg(x: ArrayLike, /) -> Array: ...
def radians(x: ArrayLike, /) -> Array: ...
def reciprocal(x: ArrayLike, /) -> Array: ...
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def sign(x: ArrayLike, /) -> Array: ...
def sin(x: ArrayLike, /) -> Array: ...
def sinh(x: ArrayLike, /) -> Array: ...
def sqrt(x: ArrayLike, /) -> Array: ...
def square(x: ArrayLike, /) -> Array: ...
def tan(x: ArrayLike, /) -> Array: ...
def tanh(x: ArrayLike, /) -> Array: ...
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
