# The names of this module's table, written by tests/write_stubs.py.

from minijax.calls.custom_derivatives import custom_jvp_call_p as custom_jvp_call_p
from minijax.calls.custom_derivatives import custom_lin_p as custom_lin_p
from minijax.calls.custom_derivatives import custom_vjp_call_p as custom_vjp_call_p
from minijax.calls.remat import name_p as name_p
from minijax.calls.remat import remat_p as remat_p
from minijax.composed.arrays.approx_top_k import ApproxTopK
from minijax.composed.arrays.cumulative import CumLogSumExp
from minijax.composed.arrays.cumulative import CumProd
from minijax.composed.arrays.cumulative import CumSum
from minijax.composed.arrays.cumulative import Cumulative
from minijax.composed.arrays.fft import FFT
from minijax.composed.exchange import RaggedAllToAll
from minijax.composed.linalg.eigen import Eig
from minijax.composed.linalg.eigen import Eigh
from minijax.composed.linalg.eigen import Hessenberg
from minijax.composed.linalg.eigen import Schur
from minijax.composed.linalg.eigen import Tridiagonal
from minijax.composed.linalg.lu import HouseholderProduct
from minijax.composed.linalg.lu import LU
from minijax.composed.linalg.lu import QR
from minijax.composed.linalg.svd import SVD
from minijax.composed.linalg.triangular import Cholesky
from minijax.composed.linalg.triangular import TriangularSolve
from minijax.composed.linalg.triangular import TridiagonalSolve
from minijax.composed.random import RandomBits
from minijax.composed.random import RandomFoldIn
from minijax.composed.random import RandomSeed
from minijax.composed.random import RandomSplit
from minijax.composed.refs import Get
from minijax.composed.refs import Swap
from minijax.dispatch.jit import jit_p as jit_p
from minijax.higher.cond import Cond
from minijax.higher.custom_solve import CustomLinearSolve
from minijax.higher.reduction import Reduce
from minijax.higher.reduction import ReduceWindow
from minijax.higher.scan import Scan
from minijax.higher.while_loop import While
from minijax.interop.calls import CallPrimitive
from minijax.interop.calls import CoreCall
from minijax.primitives.barriers import Tokens
from minijax.primitives.collective import AllGather
from minijax.primitives.collective import AllToAll
from minijax.primitives.collective import AxisIndex
from minijax.primitives.collective import PExtremum
from minijax.primitives.collective import PPermute
from minijax.primitives.collective import PSum
from minijax.primitives.conv import ConvGeneralDilated
from minijax.primitives.convert import BitcastConvertType
from minijax.primitives.convert import ConvertElementType
from minijax.primitives.convert import Copy
from minijax.primitives.convert import StopGradient
from minijax.primitives.counting import EmptyScalar
from minijax.primitives.counting import Iota
from minijax.primitives.device import DevicePut
from minijax.primitives.dot import DotGeneral
from minijax.primitives.dynamic_slice import DynamicSlice
from minijax.primitives.dynamic_slice import DynamicUpdateSlice
from minijax.primitives.elementwise import Abs
from minijax.primitives.elementwise import Clamp
from minijax.primitives.elementwise import Compare
from minijax.primitives.elementwise import Conj
from minijax.primitives.elementwise import Exp2
from minijax.primitives.elementwise import Extremum
from minijax.primitives.elementwise import IntegerPow
from minijax.primitives.elementwise import Logistic
from minijax.primitives.elementwise import MakeComplex
from minijax.primitives.elementwise import Mul
from minijax.primitives.elementwise import Part
from minijax.primitives.elementwise import Pow
from minijax.primitives.elementwise import Predicate
from minijax.primitives.elementwise import ReducePrecision
from minijax.primitives.elementwise import Round
from minijax.primitives.elementwise import SelectN
from minijax.primitives.elementwise import Sign
from minijax.primitives.elementwise import Square
from minijax.primitives.elementwise import Sub
from minijax.primitives.elementwise import Wave
from minijax.primitives.families import Accurate
from minijax.primitives.families import Bilinear
from minijax.primitives.families import Defined
from minijax.primitives.families import Elementwise
from minijax.primitives.families import LinearElementwise
from minijax.primitives.families import OnUnreduced
from minijax.primitives.gather_scatter import Gather
from minijax.primitives.gather_scatter import ScatterAdd
from minijax.primitives.gather_scatter import ScatterExtremum
from minijax.primitives.gather_scatter import ScatterMul
from minijax.primitives.gather_scatter import ScatterReplace
from minijax.primitives.moving import BroadcastInDim
from minijax.primitives.moving import ReduceSum
from minijax.primitives.moving import Reshape
from minijax.primitives.moving import Transpose
from minijax.primitives.random_bits import RngBitGenerator
from minijax.primitives.random_bits import RngUniform
from minijax.primitives.random_bits import threefry2x32_p as threefry2x32_p
from minijax.primitives.reduce import ArgExtremum
from minijax.primitives.reduce import ReduceExtremum
from minijax.primitives.reduce import ReduceLogical
from minijax.primitives.reduce import ReduceProd
from minijax.primitives.sharding import ShardingConstraint
from minijax.primitives.sort import Sort
from minijax.primitives.sort import TopK
from minijax.primitives.sort import TotalCompare
from minijax.primitives.structural import Concatenate
from minijax.primitives.structural import Pad
from minijax.primitives.structural import Rev
from minijax.primitives.structural import Slice
from minijax.primitives.structural import Squeeze
from minijax.primitives.window import ReduceWindowExtremum
from minijax.primitives.window import ReduceWindowSum
from minijax.primitives.window import SelectAndGatherAdd
from minijax.primitives.window import SelectAndScatter
from minijax.primitives.window import SelectAndScatterAdd
from minijax.primitives.zeros import add_any_p as add_jaxvals_p
from minijax.random.samplers import random_gamma_p as random_gamma_p

__all__ = [
    "abs_p", "acos_p", "acosh_p", "add_jaxvals_p", "add_p", "after_all_p", "all_gather_p", "all_to_all_p", "and_p",
    "approx_top_k_p", "argmax_p", "argmin_p", "asin_p", "asinh_p", "atan2_p", "atan_p", "atanh_p", "axis_index_p",
    "bessel_i0e_p", "bessel_i1e_p", "bitcast_convert_type_p", "broadcast_in_dim_p", "call_p", "cbrt_p", "ceil_p",
    "cholesky_p", "clamp_p", "closed_call_p", "clz_p", "complex_p", "concatenate_p", "cond_p", "conj_p",
    "conv_general_dilated_p", "convert_element_type_p", "copy_p", "cos_p", "cosh_p", "create_token_p",
    "cumlogsumexp_p", "cummax_p", "cummin_p", "cumprod_p", "cumsum_p", "custom_jvp_call_p", "custom_lin_p",
    "custom_vjp_call_p", "device_put_p", "digamma_p", "div_p", "dot_general_p", "dynamic_slice_p",
    "dynamic_update_slice_p", "eig_p", "eigh_p", "empty2_p", "eq_p", "eq_to_p", "erf_inv_p", "erf_p", "erfc_p",
    "exp2_p", "exp_p", "expm1_p", "fft_p", "floor_p", "gather_p", "ge_p", "get_p", "gt_p", "hessenberg_p",
    "householder_product_p", "igamma_grad_a_p", "igamma_p", "igammac_p", "imag_p", "integer_pow_p", "iota_p",
    "is_finite_p", "jit_p", "le_p", "le_to_p", "lgamma_p", "linear_solve_p", "log1p_p", "log_p", "logistic_p", "lt_p",
    "lt_to_p", "lu_p", "max_p", "min_p", "mul_p", "name_p", "ne_p", "neg_p", "nextafter_p", "not_p", "or_p", "pad_p",
    "pmax_p", "pmin_p", "polygamma_p", "population_count_p", "pow_p", "ppermute_p", "psum_p", "qr_p",
    "ragged_all_to_all_p", "random_bits_p", "random_fold_in_p", "random_gamma_p", "random_seed_p", "random_split_p",
    "real_p", "reduce_and_p", "reduce_max_p", "reduce_min_p", "reduce_or_p", "reduce_p", "reduce_precision_p",
    "reduce_prod_p", "reduce_sum_p", "reduce_window_max_p", "reduce_window_min_p", "reduce_window_p",
    "reduce_window_sum_p", "reduce_xor_p", "regularized_incomplete_beta_p", "rem_p", "remat_p", "reshape_p", "rev_p",
    "rng_bit_generator_p", "rng_uniform_p", "round_p", "rsqrt_p", "scan_p", "scatter_add_p", "scatter_max_p",
    "scatter_min_p", "scatter_mul_p", "scatter_p", "schur_p", "select_and_gather_add_p", "select_and_scatter_add_p",
    "select_and_scatter_p", "select_n_p", "sharding_constraint_p", "shift_left_p", "shift_right_arithmetic_p",
    "shift_right_logical_p", "sign_p", "sin_p", "sinh_p", "slice_p", "sort_p", "sqrt_p", "square_p", "squeeze_p",
    "stop_gradient_p", "sub_p", "svd_p", "swap_p", "tan_p", "tanh_p", "threefry2x32_p", "top_k_p", "transpose_p",
    "triangular_solve_p", "tridiagonal_p", "tridiagonal_solve_p", "while_p", "xor_p", "zeta_p"
]

abs_p: Abs
acos_p: Elementwise
acosh_p: Elementwise
add_p: OnUnreduced
after_all_p: Tokens
all_gather_p: AllGather
all_to_all_p: AllToAll
and_p: Elementwise
approx_top_k_p: ApproxTopK
argmax_p: ArgExtremum
argmin_p: ArgExtremum
asin_p: Elementwise
asinh_p: Elementwise
atan2_p: Elementwise
atan_p: Elementwise
atanh_p: Elementwise
axis_index_p: AxisIndex
bessel_i0e_p: Defined
bessel_i1e_p: Elementwise
bitcast_convert_type_p: BitcastConvertType
broadcast_in_dim_p: BroadcastInDim
cbrt_p: Accurate
ceil_p: Elementwise
clamp_p: Clamp
clz_p: Elementwise
complex_p: MakeComplex
concatenate_p: Concatenate
cond_p: Cond
conj_p: Conj
conv_general_dilated_p: ConvGeneralDilated
convert_element_type_p: ConvertElementType
copy_p: Copy
cos_p: Wave
cosh_p: Elementwise
create_token_p: Tokens
cumlogsumexp_p: CumLogSumExp
cummax_p: Cumulative
cummin_p: Cumulative
cumprod_p: CumProd
cumsum_p: CumSum
device_put_p: DevicePut
digamma_p: Elementwise
div_p: Bilinear
dot_general_p: DotGeneral
dynamic_slice_p: DynamicSlice
dynamic_update_slice_p: DynamicUpdateSlice
eq_p: Compare
eq_to_p: TotalCompare
erf_inv_p: Elementwise
erf_p: Elementwise
erfc_p: Elementwise
exp2_p: Exp2
exp_p: Accurate
expm1_p: Accurate
fft_p: FFT
floor_p: Elementwise
gather_p: Gather
ge_p: Compare
gt_p: Compare
igamma_grad_a_p: Defined
igamma_p: Defined
igammac_p: Defined
imag_p: Part
integer_pow_p: IntegerPow
iota_p: Iota
is_finite_p: Predicate
le_p: Compare
le_to_p: TotalCompare
lgamma_p: Elementwise
linear_solve_p: CustomLinearSolve
log1p_p: Accurate
log_p: Accurate
logistic_p: Logistic
lt_p: Compare
lt_to_p: TotalCompare
max_p: Extremum
min_p: Extremum
mul_p: Mul
ne_p: Compare
neg_p: LinearElementwise
nextafter_p: Elementwise
not_p: Elementwise
or_p: Elementwise
pad_p: Pad
pmax_p: PExtremum
pmin_p: PExtremum
polygamma_p: Elementwise
population_count_p: Elementwise
pow_p: Pow
ppermute_p: PPermute
psum_p: PSum
ragged_all_to_all_p: RaggedAllToAll
real_p: Part
reduce_and_p: ReduceLogical
reduce_max_p: ReduceExtremum
reduce_min_p: ReduceExtremum
reduce_or_p: ReduceLogical
reduce_p: Reduce
reduce_precision_p: ReducePrecision
reduce_prod_p: ReduceProd
reduce_sum_p: ReduceSum
reduce_window_max_p: ReduceWindowExtremum
reduce_window_min_p: ReduceWindowExtremum
reduce_window_p: ReduceWindow
reduce_window_sum_p: ReduceWindowSum
reduce_xor_p: ReduceLogical
regularized_incomplete_beta_p: Defined
rem_p: Elementwise
reshape_p: Reshape
rev_p: Rev
rng_bit_generator_p: RngBitGenerator
rng_uniform_p: RngUniform
round_p: Round
rsqrt_p: Accurate
scan_p: Scan
scatter_add_p: ScatterAdd
scatter_max_p: ScatterExtremum
scatter_min_p: ScatterExtremum
scatter_mul_p: ScatterMul
scatter_p: ScatterReplace
select_and_gather_add_p: SelectAndGatherAdd
select_and_scatter_add_p: SelectAndScatterAdd
select_and_scatter_p: SelectAndScatter
select_n_p: SelectN
sharding_constraint_p: ShardingConstraint
shift_left_p: Elementwise
shift_right_arithmetic_p: Elementwise
shift_right_logical_p: Elementwise
sign_p: Sign
sin_p: Wave
sinh_p: Elementwise
slice_p: Slice
sort_p: Sort
sqrt_p: Accurate
square_p: Square
squeeze_p: Squeeze
stop_gradient_p: StopGradient
sub_p: Sub
tan_p: Accurate
tanh_p: Accurate
top_k_p: TopK
transpose_p: Transpose
while_p: While
xor_p: Elementwise
zeta_p: Elementwise
cholesky_p: Cholesky
eig_p: Eig
eigh_p: Eigh
hessenberg_p: Hessenberg
householder_product_p: HouseholderProduct
lu_p: LU
qr_p: QR
schur_p: Schur
svd_p: SVD
triangular_solve_p: TriangularSolve
tridiagonal_p: Tridiagonal
tridiagonal_solve_p: TridiagonalSolve
random_bits_p: RandomBits
random_fold_in_p: RandomFoldIn
random_seed_p: RandomSeed
random_split_p: RandomSplit
call_p: CoreCall
closed_call_p: CallPrimitive
get_p: Get
swap_p: Swap
empty2_p: EmptyScalar
