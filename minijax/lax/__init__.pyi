# The names of this module's table, written by tests/write_stubs.py.

import numpy as np
from collections.abc import Sequence
from minijax.api.custom import custom_root as custom_root
from minijax.base.dtypes import dtype as dtype
from minijax.calls.composite import composite as composite
from minijax.composed.arrays.approx_top_k import approx_top_k_p as approx_top_k_p
from minijax.composed.arrays.cumulative import cumlogsumexp as cumlogsumexp
from minijax.composed.arrays.cumulative import cumlogsumexp_p as cumlogsumexp_p
from minijax.composed.arrays.cumulative import cummax as cummax
from minijax.composed.arrays.cumulative import cummax_p as cummax_p
from minijax.composed.arrays.cumulative import cummin as cummin
from minijax.composed.arrays.cumulative import cummin_p as cummin_p
from minijax.composed.arrays.cumulative import cumprod as cumprod
from minijax.composed.arrays.cumulative import cumprod_p as cumprod_p
from minijax.composed.arrays.cumulative import cumsum as cumsum
from minijax.composed.arrays.cumulative import cumsum_p as cumsum_p
from minijax.composed.arrays.fft import FftType as FftType
from minijax.composed.arrays.fft import fft as fft
from minijax.composed.arrays.fft import fft_p as fft_p
from minijax.composed.arrays.index_in_dim import index_take as index_take
from minijax.composed.arrays.ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from minijax.composed.arrays.ragged import ragged_dot as ragged_dot
from minijax.composed.arrays.ragged import ragged_dot_general as ragged_dot_general
from minijax.composed.arrays.special import betainc as betainc
from minijax.composed.arrays.special import igamma as igamma
from minijax.composed.arrays.special import igamma_grad_a as igamma_grad_a
from minijax.composed.arrays.special import igamma_grad_a_p as igamma_grad_a_p
from minijax.composed.arrays.special import igamma_p as igamma_p
from minijax.composed.arrays.special import igammac as igammac
from minijax.composed.arrays.special import igammac_p as igammac_p
from minijax.composed.arrays.special import random_gamma_grad as random_gamma_grad
from minijax.composed.arrays.special import regularized_incomplete_beta_p as regularized_incomplete_beta_p
from minijax.composed.exchange import RaggedAllToAll
from minijax.composed.exchange import precv as precv
from minijax.composed.exchange import psend as psend
from minijax.composed.exchange import ragged_all_to_all as ragged_all_to_all
from minijax.higher.cond import cond as cond
from minijax.higher.cond import cond_p as cond_p
from minijax.higher.cond import platform_dependent as platform_dependent
from minijax.higher.cond import switch as switch
from minijax.higher.custom_solve import custom_linear_solve as custom_linear_solve
from minijax.higher.custom_solve import custom_linear_solve_p as linear_solve_p
from minijax.higher.fori_loop import fori_loop as fori_loop
from minijax.higher.mapping import associative_scan as associative_scan
from minijax.higher.mapping import map as map
from minijax.higher.reduction import Reduce
from minijax.higher.reduction import ReduceWindow
from minijax.higher.reduction import reduce as reduce
from minijax.higher.reduction import reduce_window as reduce_window
from minijax.higher.scan import scan as scan
from minijax.higher.scan import scan_p as scan_p
from minijax.higher.while_loop import while_loop as while_loop
from minijax.higher.while_loop import while_p as while_p
from minijax.lax import linalg as linalg
from minijax.primitives import gather_dims
from minijax.primitives.barriers import DCESink
from minijax.primitives.barriers import OptimizationBarrier
from minijax.primitives.barriers import Stage
from minijax.primitives.barriers import Tokens
from minijax.primitives.barriers import after_all as after_all
from minijax.primitives.barriers import create_token as create_token
from minijax.primitives.barriers import dce_sink as dce_sink
from minijax.primitives.barriers import optimization_barrier as optimization_barrier
from minijax.primitives.barriers import stage as stage
from minijax.primitives.bessel import bessel_i0e_p as bessel_i0e_p
from minijax.primitives.bessel import bessel_i1e_p as bessel_i1e_p
from minijax.primitives.bessel import zeta as zeta
from minijax.primitives.bessel import zeta_p as zeta_p
from minijax.primitives.collective import all_gather as all_gather
from minijax.primitives.collective import all_gather_p as all_gather_p
from minijax.primitives.collective import all_to_all as all_to_all
from minijax.primitives.collective import all_to_all_p as all_to_all_p
from minijax.primitives.collective import axis_index as axis_index
from minijax.primitives.collective import axis_index_p as axis_index_p
from minijax.primitives.collective import axis_size as axis_size
from minijax.primitives.collective import pbroadcast as pbroadcast
from minijax.primitives.collective import pmax as pmax
from minijax.primitives.collective import pmax_p as pmax_p
from minijax.primitives.collective import pmean as pmean
from minijax.primitives.collective import pmin as pmin
from minijax.primitives.collective import pmin_p as pmin_p
from minijax.primitives.collective import ppermute as ppermute
from minijax.primitives.collective import ppermute_p as ppermute_p
from minijax.primitives.collective import pshuffle as pshuffle
from minijax.primitives.collective import psum as psum
from minijax.primitives.collective import psum_p as psum_p
from minijax.primitives.collective import psum_scatter as psum_scatter
from minijax.primitives.collective import pswapaxes as pswapaxes
from minijax.primitives.conv import ConvDimensionNumbers as ConvDimensionNumbers
from minijax.primitives.conv import ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers
from minijax.primitives.conv import Padding
from minijax.primitives.conv import Shape
from minijax.primitives.conv import conv as conv
from minijax.primitives.conv import conv_dimension_numbers as conv_dimension_numbers
from minijax.primitives.conv import conv_general_dilated as conv_general_dilated
from minijax.primitives.conv import conv_general_dilated_local as conv_general_dilated_local
from minijax.primitives.conv import conv_general_dilated_p as conv_general_dilated_p
from minijax.primitives.conv import conv_general_dilated_patches as conv_general_dilated_patches
from minijax.primitives.conv import conv_general_permutations as conv_general_permutations
from minijax.primitives.conv import conv_shape_tuple as conv_shape_tuple
from minijax.primitives.conv import conv_transpose as conv_transpose
from minijax.primitives.conv import conv_with_general_padding as conv_with_general_padding
from minijax.primitives.convert import bitcast_convert_type as bitcast_convert_type
from minijax.primitives.convert import bitcast_convert_type_p as bitcast_convert_type_p
from minijax.primitives.convert import convert_element_type as convert_element_type
from minijax.primitives.convert import convert_element_type_p as convert_element_type_p
from minijax.primitives.convert import copy_p as copy_p
from minijax.primitives.convert import stop_gradient as stop_gradient
from minijax.primitives.convert import stop_gradient_p as stop_gradient_p
from minijax.primitives.counting import Iota
from minijax.primitives.counting import broadcasted_iota as broadcasted_iota
from minijax.primitives.counting import empty as empty
from minijax.primitives.counting import iota as iota
from minijax.primitives.device import device_put_p as device_put_p
from minijax.primitives.dot import DotAlgorithm as DotAlgorithm
from minijax.primitives.dot import DotAlgorithmPreset as DotAlgorithmPreset
from minijax.primitives.dot import DotDimensionNumbers as DotDimensionNumbers
from minijax.primitives.dot import Precision as Precision
from minijax.primitives.dot import PrecisionLike as PrecisionLike
from minijax.primitives.dot import batch_matmul as batch_matmul
from minijax.primitives.dot import dot as dot
from minijax.primitives.dot import dot_general as dot_general
from minijax.primitives.dot import dot_general_p as dot_general_p
from minijax.primitives.dynamic_slice import DynamicSlice
from minijax.primitives.dynamic_slice import DynamicUpdateSlice
from minijax.primitives.dynamic_slice import dynamic_slice as dynamic_slice
from minijax.primitives.dynamic_slice import dynamic_slice_in_dim as dynamic_slice_in_dim
from minijax.primitives.dynamic_slice import dynamic_update_slice as dynamic_update_slice
from minijax.primitives.dynamic_slice import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from minijax.primitives.elementwise import Clamp
from minijax.primitives.elementwise import Compare
from minijax.primitives.elementwise import Extremum
from minijax.primitives.elementwise import Mul
from minijax.primitives.elementwise import RoundingMethod as RoundingMethod
from minijax.primitives.elementwise import SelectN
from minijax.primitives.elementwise import Sub
from minijax.primitives.elementwise import abs_p as abs_p
from minijax.primitives.elementwise import acos_p as acos_p
from minijax.primitives.elementwise import acosh_p as acosh_p
from minijax.primitives.elementwise import add_p as add_p
from minijax.primitives.elementwise import and_p as and_p
from minijax.primitives.elementwise import asin_p as asin_p
from minijax.primitives.elementwise import asinh_p as asinh_p
from minijax.primitives.elementwise import atan2_p as atan2_p
from minijax.primitives.elementwise import atan_p as atan_p
from minijax.primitives.elementwise import atanh_p as atanh_p
from minijax.primitives.elementwise import cbrt_p as cbrt_p
from minijax.primitives.elementwise import ceil_p as ceil_p
from minijax.primitives.elementwise import clamp as clamp
from minijax.primitives.elementwise import clz_p as clz_p
from minijax.primitives.elementwise import complex_p as complex_p
from minijax.primitives.elementwise import conj as conj
from minijax.primitives.elementwise import conj_p as conj_p
from minijax.primitives.elementwise import cos_p as cos_p
from minijax.primitives.elementwise import cosh_p as cosh_p
from minijax.primitives.elementwise import digamma_p as digamma_p
from minijax.primitives.elementwise import div_p as div_p
from minijax.primitives.elementwise import erf_inv_p as erf_inv_p
from minijax.primitives.elementwise import erf_p as erf_p
from minijax.primitives.elementwise import erfc_p as erfc_p
from minijax.primitives.elementwise import exp2_p as exp2_p
from minijax.primitives.elementwise import exp_p as exp_p
from minijax.primitives.elementwise import expm1_p as expm1_p
from minijax.primitives.elementwise import floor_p as floor_p
from minijax.primitives.elementwise import imag_p as imag_p
from minijax.primitives.elementwise import integer_pow as integer_pow
from minijax.primitives.elementwise import integer_pow_p as integer_pow_p
from minijax.primitives.elementwise import is_finite_p as is_finite_p
from minijax.primitives.elementwise import lgamma_p as lgamma_p
from minijax.primitives.elementwise import log1p_p as log1p_p
from minijax.primitives.elementwise import log_p as log_p
from minijax.primitives.elementwise import logistic_p as logistic_p
from minijax.primitives.elementwise import mul as mul
from minijax.primitives.elementwise import mulhi as mulhi
from minijax.primitives.elementwise import mulhi_p as mulhi_p
from minijax.primitives.elementwise import neg_p as neg_p
from minijax.primitives.elementwise import nextafter as nextafter
from minijax.primitives.elementwise import nextafter_p as nextafter_p
from minijax.primitives.elementwise import not_p as not_p
from minijax.primitives.elementwise import or_p as or_p
from minijax.primitives.elementwise import polygamma as polygamma
from minijax.primitives.elementwise import polygamma_p as polygamma_p
from minijax.primitives.elementwise import population_count_p as population_count_p
from minijax.primitives.elementwise import pow_p as pow_p
from minijax.primitives.elementwise import real_p as real_p
from minijax.primitives.elementwise import reciprocal as reciprocal
from minijax.primitives.elementwise import reduce_precision as reduce_precision
from minijax.primitives.elementwise import reduce_precision_p as reduce_precision_p
from minijax.primitives.elementwise import rem_p as rem_p
from minijax.primitives.elementwise import round as round
from minijax.primitives.elementwise import round_p as round_p
from minijax.primitives.elementwise import rsqrt as rsqrt
from minijax.primitives.elementwise import rsqrt_p as rsqrt_p
from minijax.primitives.elementwise import select as select
from minijax.primitives.elementwise import select_n as select_n
from minijax.primitives.elementwise import shift_left_p as shift_left_p
from minijax.primitives.elementwise import shift_right_arithmetic_p as shift_right_arithmetic_p
from minijax.primitives.elementwise import shift_right_logical_p as shift_right_logical_p
from minijax.primitives.elementwise import sign_p as sign_p
from minijax.primitives.elementwise import sin_p as sin_p
from minijax.primitives.elementwise import sinh_p as sinh_p
from minijax.primitives.elementwise import sqrt_p as sqrt_p
from minijax.primitives.elementwise import square_p as square_p
from minijax.primitives.elementwise import tan_p as tan_p
from minijax.primitives.elementwise import tanh_p as tanh_p
from minijax.primitives.elementwise import xor_p as xor_p
from minijax.primitives.families import AccuracyMode as AccuracyMode
from minijax.primitives.families import AccuracyMode as _AccuracyMode
from minijax.primitives.families import Tolerance as Tolerance
from minijax.primitives.families import Tolerance as _Tolerance
from minijax.primitives.gather_dims import GatherDimensionNumbers as GatherDimensionNumbers
from minijax.primitives.gather_dims import GatherScatterMode as GatherScatterMode
from minijax.primitives.gather_dims import ScatterDimensionNumbers as ScatterDimensionNumbers
from minijax.primitives.gather_scatter import _Mode
from minijax.primitives.gather_scatter import gather as gather
from minijax.primitives.gather_scatter import gather_p as gather_p
from minijax.primitives.gather_scatter import scatter_add_p as scatter_add_p
from minijax.primitives.gather_scatter import scatter_apply as scatter_apply
from minijax.primitives.gather_scatter import scatter_max_p as scatter_max_p
from minijax.primitives.gather_scatter import scatter_min_p as scatter_min_p
from minijax.primitives.gather_scatter import scatter_mul_p as scatter_mul_p
from minijax.primitives.gather_scatter import scatter_p as scatter_p
from minijax.primitives.gather_scatter import scatter_sub_p as scatter_sub_p
from minijax.primitives.moving import broadcast_in_dim as broadcast_in_dim
from minijax.primitives.moving import broadcast_in_dim_p as broadcast_in_dim_p
from minijax.primitives.moving import expand_dims as expand_dims
from minijax.primitives.moving import reduce_sum_p as reduce_sum_p
from minijax.primitives.moving import reshape as reshape
from minijax.primitives.moving import reshape_p as reshape_p
from minijax.primitives.moving import transpose as transpose
from minijax.primitives.moving import transpose_p as transpose_p
from minijax.primitives.random_bits import RandomAlgorithm as RandomAlgorithm
from minijax.primitives.random_bits import rng_bit_generator as rng_bit_generator
from minijax.primitives.random_bits import rng_bit_generator_p as rng_bit_generator_p
from minijax.primitives.random_bits import rng_uniform as rng_uniform
from minijax.primitives.random_bits import rng_uniform_p as rng_uniform_p
from minijax.primitives.reduce import argmax as argmax
from minijax.primitives.reduce import argmax_p as argmax_p
from minijax.primitives.reduce import argmin as argmin
from minijax.primitives.reduce import argmin_p as argmin_p
from minijax.primitives.reduce import reduce_and_p as reduce_and_p
from minijax.primitives.reduce import reduce_max_p as reduce_max_p
from minijax.primitives.reduce import reduce_min_p as reduce_min_p
from minijax.primitives.reduce import reduce_or_p as reduce_or_p
from minijax.primitives.reduce import reduce_prod_p as reduce_prod_p
from minijax.primitives.reduce import reduce_sum as reduce_sum
from minijax.primitives.reduce import reduce_xor_p as reduce_xor_p
from minijax.primitives.scaled_dot import scaled_dot as scaled_dot
from minijax.primitives.sharding import sharding_constraint_p as sharding_constraint_p
from minijax.primitives.sharding import with_sharding_constraint as with_sharding_constraint
from minijax.primitives.sort import TotalCompare
from minijax.primitives.sort import lt_to_p as lt_to_p
from minijax.primitives.sort import sort as sort
from minijax.primitives.sort import sort_key_val as sort_key_val
from minijax.primitives.sort import sort_p as sort_p
from minijax.primitives.sort import top_k as top_k
from minijax.primitives.sort import top_k_p as top_k_p
from minijax.primitives.structural import Concatenate
from minijax.primitives.structural import Pad
from minijax.primitives.structural import Rev
from minijax.primitives.structural import Slice
from minijax.primitives.structural import Split
from minijax.primitives.structural import Squeeze
from minijax.primitives.structural import Stack
from minijax.primitives.structural import Tile
from minijax.primitives.structural import Unstack
from minijax.primitives.structural import broadcast as broadcast
from minijax.primitives.structural import broadcast_like as broadcast_like
from minijax.primitives.structural import broadcast_shapes as broadcast_shapes
from minijax.primitives.structural import broadcast_to_rank as broadcast_to_rank
from minijax.primitives.structural import collapse as collapse
from minijax.primitives.structural import concatenate as concatenate
from minijax.primitives.structural import full as full
from minijax.primitives.structural import full_like as full_like
from minijax.primitives.structural import index_in_dim as index_in_dim
from minijax.primitives.structural import pad as pad
from minijax.primitives.structural import rev as rev
from minijax.primitives.structural import shape_as_value as shape_as_value
from minijax.primitives.structural import slice as slice
from minijax.primitives.structural import slice_in_dim as slice_in_dim
from minijax.primitives.structural import split as split
from minijax.primitives.structural import squeeze as squeeze
from minijax.primitives.structural import stack as stack
from minijax.primitives.structural import tile as tile
from minijax.primitives.structural import unstack as unstack
from minijax.primitives.varying import pcast as pcast
from minijax.primitives.window import SelectAndScatter
from minijax.primitives.window import SelectAndScatterAdd
from minijax.primitives.window import padtype_to_pads as padtype_to_pads
from minijax.primitives.window import reduce_window_max_p as reduce_window_max_p
from minijax.primitives.window import reduce_window_min_p as reduce_window_min_p
from minijax.primitives.window import reduce_window_shape_tuple as reduce_window_shape_tuple
from minijax.primitives.window import reduce_window_sum_p as reduce_window_sum_p
from minijax.primitives.window import select_and_gather_add_p as select_and_gather_add_p
from minijax.run.arrays.array import Array
from minijax.run.arrays.array import ArrayLike

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm",
    "DotAlgorithmPreset", "DotDimensionNumbers", "FftType", "GatherDimensionNumbers", "GatherScatterMode",
    "Precision", "PrecisionLike", "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod",
    "ScatterDimensionNumbers", "Tolerance", "abs", "abs_p", "acos", "acos_p", "acosh", "acosh_p", "add", "add_p",
    "after_all", "after_all_p", "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "and_p", "approx_max_k",
    "approx_min_k", "approx_top_k_p", "argmax", "argmax_p", "argmin", "argmin_p", "asin", "asin_p", "asinh",
    "asinh_p", "associative_scan", "atan", "atan2", "atan2_p", "atan_p", "atanh", "atanh_p", "axis_index",
    "axis_index_p", "axis_size", "batch_matmul", "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p",
    "betainc", "bitcast_convert_type", "bitcast_convert_type_p", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "cbrt", "cbrt_p", "ceil", "ceil_p", "clamp", "clamp_p", "clz", "clz_p",
    "collapse", "complex", "complex_p", "composite", "concatenate", "concatenate_p", "cond", "cond_p", "conj",
    "conj_p", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_p", "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    "convert_element_type", "convert_element_type_p", "copy_p", "cos", "cos_p", "cosh", "cosh_p", "create_token",
    "create_token_p", "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod",
    "cumprod_p", "cumsum", "cumsum_p", "custom_linear_solve", "custom_root", "dce_sink", "dce_sink_p", "device_put_p",
    "digamma", "digamma_p", "div", "div_p", "dot", "dot_general", "dot_general_p", "dtype", "dynamic_index_in_dim",
    "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "dynamic_update_slice_p", "empty", "eq", "eq_p", "eq_to_p", "erf", "erf_inv",
    "erf_inv_p", "erf_p", "erfc", "erfc_p", "exp", "exp2", "exp2_p", "exp_p", "expand_dims", "expm1", "expm1_p",
    "fft", "fft_p", "floor", "floor_p", "fori_loop", "full", "full_like", "gather", "gather_p", "ge", "ge_p", "gt",
    "gt_p", "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p", "imag", "imag_p",
    "index_in_dim", "index_take", "integer_pow", "integer_pow_p", "iota", "iota_p", "is_finite", "is_finite_p", "le",
    "le_p", "le_to_p", "lgamma", "lgamma_p", "linalg", "linear_solve_p", "log", "log1p", "log1p_p", "log_p",
    "logistic", "logistic_p", "lt", "lt_p", "lt_to_p", "map", "max", "max_p", "min", "min_p", "mul", "mul_p", "mulhi",
    "mulhi_p", "ne", "ne_p", "neg", "neg_p", "nextafter", "nextafter_p", "not_p", "optimization_barrier",
    "optimization_barrier_p", "or_p", "pad", "pad_p", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent",
    "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "polygamma", "polygamma_p", "population_count", "population_count_p",
    "pow", "pow_p", "ppermute", "ppermute_p", "precv", "psend", "pshuffle", "psum", "psum_p", "psum_scatter",
    "pswapaxes", "ragged_all_to_all", "ragged_all_to_all_p", "ragged_dot", "ragged_dot_general", "random_gamma_grad",
    "real", "real_p", "reciprocal", "reduce", "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p",
    "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_p", "reduce_precision", "reduce_precision_p",
    "reduce_prod", "reduce_prod_p", "reduce_sum", "reduce_sum_p", "reduce_window", "reduce_window_max_p",
    "reduce_window_min_p", "reduce_window_p", "reduce_window_shape_tuple", "reduce_window_sum_p", "reduce_xor",
    "reduce_xor_p", "regularized_incomplete_beta_p", "rem", "rem_p", "reshape", "reshape_p", "rev", "rev_p",
    "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p", "round", "round_p", "rsqrt",
    "rsqrt_p", "scaled_dot", "scan", "scan_p", "scatter", "scatter_add", "scatter_add_p", "scatter_apply",
    "scatter_max", "scatter_max_p", "scatter_min", "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p",
    "scatter_sub", "scatter_sub_p", "select", "select_and_gather_add_p", "select_and_scatter_add_p",
    "select_and_scatter_p", "select_n", "select_n_p", "shape_as_value", "sharding_constraint_p", "shift_left",
    "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical",
    "shift_right_logical_p", "sign", "sign_p", "sin", "sin_p", "sinh", "sinh_p", "slice", "slice_in_dim", "slice_p",
    "sort", "sort_key_val", "sort_p", "split", "split_p", "sqrt", "sqrt_p", "square", "square_p", "squeeze",
    "squeeze_p", "stack", "stack_p", "stage", "stage_p", "stop_gradient", "stop_gradient_p", "sub", "sub_p", "switch",
    "tan", "tan_p", "tanh", "tanh_p", "tile", "tile_p", "top_k", "top_k_p", "transpose", "transpose_p", "unstack",
    "unstack_p", "while_loop", "while_p", "with_sharding_constraint", "xor_p", "zeta", "zeta_p"
]

def dynamic_index_in_dim(
    operand: Array | np.ndarray,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array: ...
def dynamic_update_index_in_dim(
    operand: Array | np.ndarray,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array: ...
reduce_p: Reduce
reduce_window_p: ReduceWindow
def approx_max_k(
    operand: Array,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]: ...
def approx_min_k(
    operand: Array,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]: ...
ragged_all_to_all_p: RaggedAllToAll
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> Shape: ...
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> Shape: ...
def abs(x: ArrayLike) -> Array: ...
def acos(x: ArrayLike) -> Array: ...
def acosh(x: ArrayLike) -> Array: ...
def add(x: ArrayLike, y: ArrayLike) -> Array: ...
def asin(x: ArrayLike) -> Array: ...
def asinh(x: ArrayLike) -> Array: ...
def atan(x: ArrayLike) -> Array: ...
def atan2(x: ArrayLike, y: ArrayLike) -> Array: ...
def atanh(x: ArrayLike) -> Array: ...
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array: ...
def bitwise_not(x: ArrayLike) -> Array: ...
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array: ...
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array: ...
def cbrt(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def ceil(x: ArrayLike) -> Array: ...
clamp_p: Clamp
def clz(x: ArrayLike) -> Array: ...
def complex(x: ArrayLike, y: ArrayLike) -> Array: ...
def cos(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def cosh(x: ArrayLike) -> Array: ...
def digamma(x: ArrayLike) -> Array: ...
def div(x: ArrayLike, y: ArrayLike) -> Array: ...
def eq(x: ArrayLike, y: ArrayLike) -> Array: ...
eq_p: Compare
def erf(x: ArrayLike) -> Array: ...
def erf_inv(x: ArrayLike) -> Array: ...
def erfc(x: ArrayLike) -> Array: ...
def exp(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def exp2(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def expm1(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def floor(x: ArrayLike) -> Array: ...
def ge(x: ArrayLike, y: ArrayLike) -> Array: ...
ge_p: Compare
def gt(x: ArrayLike, y: ArrayLike) -> Array: ...
gt_p: Compare
def imag(x: ArrayLike) -> Array: ...
def is_finite(x: ArrayLike) -> Array: ...
def le(x: ArrayLike, y: ArrayLike) -> Array: ...
le_p: Compare
def lgamma(x: ArrayLike) -> Array: ...
def log(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def log1p(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def logistic(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def lt(x: ArrayLike, y: ArrayLike) -> Array: ...
lt_p: Compare
def max(x: ArrayLike, y: ArrayLike) -> Array: ...
max_p: Extremum
def min(x: ArrayLike, y: ArrayLike) -> Array: ...
min_p: Extremum
mul_p: Mul
def ne(x: ArrayLike, y: ArrayLike) -> Array: ...
ne_p: Compare
def neg(x: ArrayLike) -> Array: ...
def population_count(x: ArrayLike) -> Array: ...
def pow(x: ArrayLike, y: ArrayLike) -> Array: ...
def real(x: ArrayLike) -> Array: ...
def rem(x: ArrayLike, y: ArrayLike) -> Array: ...
select_n_p: SelectN
def shift_left(x: ArrayLike, y: ArrayLike) -> Array: ...
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array: ...
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array: ...
def sign(x: ArrayLike) -> Array: ...
def sin(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def sinh(x: ArrayLike) -> Array: ...
def sqrt(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def square(x: ArrayLike) -> Array: ...
def sub(x: ArrayLike, y: ArrayLike) -> Array: ...
sub_p: Sub
def tan(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
def tanh(x: ArrayLike, *, accuracy: _Tolerance | _AccuracyMode | None = None) -> Array: ...
dynamic_slice_p: DynamicSlice
dynamic_update_slice_p: DynamicUpdateSlice
after_all_p: Tokens
create_token_p: Tokens
dce_sink_p: DCESink
optimization_barrier_p: OptimizationBarrier
stage_p: Stage
def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array: ...
def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: gather_dims.ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: _Mode = None,
) -> Array: ...
def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: gather_dims.ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: _Mode = None,
) -> Array: ...
def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: gather_dims.ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: _Mode = None,
) -> Array: ...
def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: gather_dims.ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: _Mode = None,
) -> Array: ...
def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: gather_dims.ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: _Mode = None,
) -> Array: ...
def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: gather_dims.ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: _Mode = None,
) -> Array: ...
iota_p: Iota
concatenate_p: Concatenate
pad_p: Pad
rev_p: Rev
slice_p: Slice
split_p: Split
squeeze_p: Squeeze
stack_p: Stack
tile_p: Tile
unstack_p: Unstack
def bessel_i0e(x: ArrayLike) -> Array: ...
def bessel_i1e(x: ArrayLike) -> Array: ...
eq_to_p: TotalCompare
le_to_p: TotalCompare
select_and_scatter_add_p: SelectAndScatterAdd
select_and_scatter_p: SelectAndScatter
