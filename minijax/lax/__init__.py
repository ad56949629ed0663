"""jax.lax: the operations, thinly wrapped."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.custom: custom_root
minijax.base.dtypes: dtype
minijax.composed.arrays.cumulative: cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum
    cumsum_p
minijax.composed.arrays.fft: FftType fft fft_p
minijax.composed.arrays.index_in_dim: dynamic_index_in_dim dynamic_update_index_in_dim index_take
minijax.composed.arrays.special: betainc igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p
    random_gamma_grad regularized_incomplete_beta_p
minijax.composed.arrays.ragged: RaggedDotDimensionNumbers ragged_dot ragged_dot_general
minijax.calls.composite: composite
minijax.higher.cond: cond cond_p platform_dependent switch
minijax.higher.custom_solve: custom_linear_solve linear_solve_p=custom_linear_solve_p
minijax.higher.fori_loop: fori_loop
minijax.higher.while_loop: while_loop while_p
minijax.higher.mapping: associative_scan map
minijax.higher.scan: scan scan_p
minijax.higher.reduction: reduce reduce_p reduce_window reduce_window_p
minijax.composed.arrays.approx_top_k: approx_max_k approx_min_k approx_top_k_p
minijax.primitives.collective: all_gather all_gather_p all_to_all all_to_all_p axis_index axis_index_p axis_size
    pbroadcast pmax pmax_p pmean pmin pmin_p ppermute ppermute_p pshuffle psum psum_p psum_scatter pswapaxes
minijax.composed.exchange: precv psend ragged_all_to_all ragged_all_to_all_p
minijax.primitives.conv: ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv conv_dimension_numbers
    conv_general_dilated conv_general_dilated_local conv_general_dilated_p conv_general_dilated_patches
    conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose conv_transpose_shape_tuple
    conv_with_general_padding
minijax.primitives.convert: bitcast_convert_type bitcast_convert_type_p convert_element_type convert_element_type_p
    copy_p stop_gradient stop_gradient_p
minijax.primitives.device: device_put_p
minijax.primitives.dot: DotAlgorithm DotAlgorithmPreset DotDimensionNumbers Precision PrecisionLike batch_matmul dot
    dot_general dot_general_p
minijax.primitives.elementwise: RoundingMethod abs abs_p acos acos_p acosh acosh_p add add_p and_p asin asin_p asinh
    asinh_p atan atan2 atan2_p atan_p atanh atanh_p bitwise_and bitwise_not bitwise_or bitwise_xor cbrt cbrt_p ceil
    ceil_p clamp clamp_p clz clz_p complex complex_p conj conj_p cos cos_p cosh cosh_p digamma digamma_p div div_p eq
    eq_p erf erf_inv erf_inv_p erf_p erfc erfc_p exp exp2 exp2_p exp_p expm1 expm1_p floor floor_p ge ge_p gt gt_p
    imag imag_p integer_pow integer_pow_p is_finite is_finite_p le le_p lgamma lgamma_p log log1p log1p_p log_p
    logistic logistic_p lt lt_p max max_p min min_p mul mul_p mulhi mulhi_p ne ne_p neg neg_p nextafter nextafter_p
    not_p or_p polygamma polygamma_p population_count population_count_p pow pow_p real real_p reciprocal
    reduce_precision reduce_precision_p rem rem_p round round_p rsqrt rsqrt_p select select_n select_n_p shift_left
    shift_left_p shift_right_arithmetic shift_right_arithmetic_p shift_right_logical shift_right_logical_p sign sign_p
    sin sin_p sinh sinh_p sqrt sqrt_p square square_p sub sub_p tan tan_p tanh tanh_p xor_p
minijax.primitives.families: AccuracyMode Tolerance
minijax.primitives.dynamic_slice: dynamic_slice dynamic_slice_in_dim dynamic_slice_p dynamic_update_slice
    dynamic_update_slice_in_dim dynamic_update_slice_p
minijax.primitives.gather_dims: GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers
minijax.primitives.moving: broadcast_in_dim broadcast_in_dim_p expand_dims reduce_sum_p reshape reshape_p transpose
    transpose_p
minijax.primitives.barriers: after_all after_all_p create_token create_token_p dce_sink dce_sink_p
    optimization_barrier optimization_barrier_p stage stage_p
minijax.primitives.random_bits: RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p
minijax.primitives.reduce: argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max reduce_max_p reduce_min
    reduce_min_p reduce_or reduce_or_p reduce_prod reduce_prod_p reduce_sum reduce_xor reduce_xor_p
minijax.primitives.scaled_dot: scaled_dot
minijax.primitives.gather_scatter: gather gather_p scatter scatter_add scatter_add_p scatter_apply scatter_max
    scatter_max_p scatter_min scatter_min_p scatter_mul scatter_mul_p scatter_p scatter_sub scatter_sub_p
minijax.primitives.sharding: sharding_constraint_p with_sharding_constraint
minijax.primitives.counting: broadcasted_iota empty iota iota_p
minijax.primitives.structural: broadcast broadcast_like broadcast_shapes broadcast_to_rank collapse concatenate
    concatenate_p full full_like index_in_dim pad pad_p rev rev_p shape_as_value slice slice_in_dim
    slice_p split split_p squeeze squeeze_p stack stack_p tile tile_p unstack unstack_p
minijax.primitives.bessel: bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p zeta zeta_p
minijax.primitives.varying: pcast
minijax.primitives.sort: eq_to_p le_to_p lt_to_p sort sort_key_val sort_p top_k top_k_p
minijax.primitives.window: padtype_to_pads reduce_window_max_p reduce_window_min_p reduce_window_shape_tuple
    reduce_window_sum_p select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p
""",
    ("linalg",),
    removed={
        "jax.lax.{0} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0; use `jax.lax.pcast(..., to='varying')`": (
            "pvary"
        )
    },
)
