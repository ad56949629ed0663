"""The table of the public names of `jax.numpy`."""

from minijax.base.faces import Face

# Each module, and the names that it exports.
_ROOMS = """
minijax.base.dtypes: finfo iinfo issubdtype promote_types
minijax.numpy.array_api: __array_api_version__ __array_namespace_info__ isdtype result_type
minijax.numpy.contractions: cross einsum einsum_path inner kron matvec outer tensordot trace vdot vecdot vecmat
minijax.numpy.creation: array asarray astype can_cast copy empty empty_like from_dlpack frombuffer full full_like
    iscomplexobj isrealobj ndim ones ones_like shape size zeros zeros_like
minijax.numpy.ranges: arange eye fromfunction geomspace identity indices linspace logspace meshgrid tri tril triu
minijax.numpy.reductions: all allclose amax=max amin=min any argmax argmin array_equal array_equiv average
    count_nonzero cumprod cumsum cumulative_prod cumulative_sum max mean min nanargmax nanargmin nancumprod nancumsum
    nanmax nanmean nanmin nanprod nanstd nansum nanvar prod ptp std sum var
minijax.numpy.samples: corrcoef cov gradient interp trapezoid unwrap
minijax.numpy.grids: c_ diag_indices_from mask_indices mgrid ogrid packbits r_ ravel_multi_index tril_indices_from
    triu_indices_from unpackbits unravel_index
minijax.numpy.io: fromfile fromiter fromstring get_printoptions load printoptions set_printoptions
minijax.numpy.rational_floating: frexp gcd lcm ldexp modf spacing
minijax.numpy.padding: pad
minijax.numpy.polynomial: poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots
minijax.numpy.placing: apply_along_axis apply_over_axes choose fill_diagonal insert piecewise place put
minijax.numpy.products: dot matmul
minijax.numpy.quantiles: bincount digitize histogram histogram2d histogram_bin_edges histogramdd median nanmedian
    nanpercentile nanquantile percentile quantile
minijax.numpy.scalars: bfloat16 bool=bool_ bool_ cdouble complex128 complex64 complex_ csingle double float16
    float32 float4_e2m1fn float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
    float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ int1 int16 int2 int32 int4 int64
    int8 int_ isscalar single uint uint1 uint16 uint2 uint32 uint4 uint64 uint8
minijax.composed.arrays.selecting: select
minijax.numpy.sets: intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse
    unique_values
minijax.numpy.shaping: append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_shapes
    broadcast_to column_stack concat concatenate diff dsplit dstack ediff1d expand_dims flip fliplr flipud hsplit
    hstack matrix_transpose moveaxis permute_dims ravel reshape resize roll rollaxis rot90 split squeeze stack
    swapaxes tile transpose unstack vander vsplit vstack
minijax.numpy.signal: bartlett blackman convolve correlate hamming hanning kaiser
minijax.numpy.searching: argpartition argsort lexsort partition searchsorted sort sort_complex
minijax.numpy.custom_rules: i0 sinc
minijax.numpy.taking: argwhere compress delete diag diag_indices diagflat diagonal extract flatnonzero ix_ nonzero
    put_along_axis repeat take take_along_axis tril_indices trim_zeros triu_indices where
minijax.numpy.ufuncs: abs=absolute absolute acos=arccos acosh=arccosh angle arccos arccosh arcsin arcsinh arctan
    arctan2 arctanh around asin=arcsin asinh=arcsinh atan2 atan=arctan atanh=arctanh bitwise_count
    bitwise_invert=invert bitwise_left_shift=left_shift bitwise_not=invert bitwise_right_shift=right_shift cbrt ceil
    clip conj=conjugate conjugate copysign cos cosh deg2rad degrees=rad2deg divide=true_divide divmod equal exp exp2
    expm1 fabs float_power floor floor_divide fmax fmin fmod greater greater_equal heaviside hypot imag invert isclose
    iscomplex isfinite isinf isnan isneginf isposinf isreal left_shift less less_equal log log10 log1p log2
    logical_not mod=remainder nan_to_num nextafter not_equal positive pow=power power rad2deg radians=deg2rad real
    reciprocal remainder right_shift rint round sign signbit sin sinh sqrt square tan tanh true_divide trunc
minijax.numpy.ufunc_class: add bitwise_and bitwise_or bitwise_xor frompyfunc logaddexp logaddexp2 logical_and
    logical_or logical_xor maximum minimum multiply negative subtract ufunc
minijax.numpy.vectorizing: vectorize
minijax.run.arrays.array: ndarray=Array
numpy: array_repr array_str character complexfloating dtype e euler_gamma flexible floating generic index_exp
    inexact inf integer iterable nan newaxis number object_ pi s_ save savez signedinteger unsignedinteger
numpy.exceptions: ComplexWarning
"""
FACE = Face(
    "minijax.numpy",
    _ROOMS,
    ("fft", "linalg"),
    removed={
        "jax.numpy.{0} was deprecated in JAX v0.9.0, and will be removed in JAX v0.10.0. Use jax.numpy.trunc "
        "instead.": "fix"
    },
)
