# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.stablehlo import (AbsOp as AbsOp, AbsOpAdaptor as AbsOpAdaptor, AddOp as AddOp,
    AddOpAdaptor as AddOpAdaptor, AfterAllOp as AfterAllOp, AfterAllOpAdaptor as AfterAllOpAdaptor, AllGatherOp as
    AllGatherOp, AllGatherOpAdaptor as AllGatherOpAdaptor, AllReduceOp as AllReduceOp, AllReduceOpAdaptor as
    AllReduceOpAdaptor, AllToAllOp as AllToAllOp, AllToAllOpAdaptor as AllToAllOpAdaptor, AndOp as AndOp, AndOpAdaptor
    as AndOpAdaptor, AsyncDoneOp as AsyncDoneOp, AsyncDoneOpAdaptor as AsyncDoneOpAdaptor, AsyncStartOp as
    AsyncStartOp, AsyncStartOpAdaptor as AsyncStartOpAdaptor, Atan2Op as Atan2Op, Atan2OpAdaptor as Atan2OpAdaptor,
    AxisRefAttr as AxisRefAttr, BatchNormGradOp as BatchNormGradOp, BatchNormGradOpAdaptor as BatchNormGradOpAdaptor,
    BatchNormInferenceOp as BatchNormInferenceOp, BatchNormInferenceOpAdaptor as BatchNormInferenceOpAdaptor,
    BatchNormTrainingOp as BatchNormTrainingOp, BatchNormTrainingOpAdaptor as BatchNormTrainingOpAdaptor,
    BitcastConvertOp as BitcastConvertOp, BitcastConvertOpAdaptor as BitcastConvertOpAdaptor, BroadcastInDimOp as
    BroadcastInDimOp, BroadcastInDimOpAdaptor as BroadcastInDimOpAdaptor, BroadcastOp as BroadcastOp,
    BroadcastOpAdaptor as BroadcastOpAdaptor, CaseOp as CaseOp, CaseOpAdaptor as CaseOpAdaptor, CbrtOp as CbrtOp,
    CbrtOpAdaptor as CbrtOpAdaptor, CeilOp as CeilOp, CeilOpAdaptor as CeilOpAdaptor, ChannelHandle as ChannelHandle,
    CholeskyOp as CholeskyOp, CholeskyOpAdaptor as CholeskyOpAdaptor, ClampOp as ClampOp, ClampOpAdaptor as
    ClampOpAdaptor, ClzOp as ClzOp, ClzOpAdaptor as ClzOpAdaptor, CollectiveBroadcastOp as CollectiveBroadcastOp,
    CollectiveBroadcastOpAdaptor as CollectiveBroadcastOpAdaptor, CollectivePermuteOp as CollectivePermuteOp,
    CollectivePermuteOpAdaptor as CollectivePermuteOpAdaptor, CompareOp as CompareOp, CompareOpAdaptor as
    CompareOpAdaptor, ComparisonDirectionAttr as ComparisonDirectionAttr, ComparisonTypeAttr as ComparisonTypeAttr,
    ComplexOp as ComplexOp, ComplexOpAdaptor as ComplexOpAdaptor, CompositeOp as CompositeOp, CompositeOpAdaptor as
    CompositeOpAdaptor, ConcatenateOp as ConcatenateOp, ConcatenateOpAdaptor as ConcatenateOpAdaptor, ConstantOp as
    ConstantOp, ConstantOpAdaptor as ConstantOpAdaptor, ConvDimensionNumbers as ConvDimensionNumbers, ConvertOp as
    ConvertOp, ConvertOpAdaptor as ConvertOpAdaptor, ConvolutionOp as ConvolutionOp, ConvolutionOpAdaptor as
    ConvolutionOpAdaptor, CosineOp as CosineOp, CosineOpAdaptor as CosineOpAdaptor, CreateTokenOp as CreateTokenOp,
    CreateTokenOpAdaptor as CreateTokenOpAdaptor, CrossReplicaSumOp as CrossReplicaSumOp, CrossReplicaSumOpAdaptor as
    CrossReplicaSumOpAdaptor, CustomCallOp as CustomCallOp, CustomCallOpAdaptor as CustomCallOpAdaptor, DivOp as
    DivOp, DivOpAdaptor as DivOpAdaptor, DotAlgorithm as DotAlgorithm, DotDimensionNumbers as DotDimensionNumbers,
    DotGeneralOp as DotGeneralOp, DotGeneralOpAdaptor as DotGeneralOpAdaptor, DotOp as DotOp, DotOpAdaptor as
    DotOpAdaptor, DynamicBroadcastInDimOp as DynamicBroadcastInDimOp, DynamicBroadcastInDimOpAdaptor as
    DynamicBroadcastInDimOpAdaptor, DynamicConvOp as DynamicConvOp, DynamicConvOpAdaptor as DynamicConvOpAdaptor,
    DynamicGatherOp as DynamicGatherOp, DynamicGatherOpAdaptor as DynamicGatherOpAdaptor, DynamicIotaOp as
    DynamicIotaOp, DynamicIotaOpAdaptor as DynamicIotaOpAdaptor, DynamicPadOp as DynamicPadOp, DynamicPadOpAdaptor as
    DynamicPadOpAdaptor, DynamicReshapeOp as DynamicReshapeOp, DynamicReshapeOpAdaptor as DynamicReshapeOpAdaptor,
    DynamicSliceOp as DynamicSliceOp, DynamicSliceOpAdaptor as DynamicSliceOpAdaptor, DynamicUpdateSliceOp as
    DynamicUpdateSliceOp, DynamicUpdateSliceOpAdaptor as DynamicUpdateSliceOpAdaptor, EinsumOp as EinsumOp,
    EinsumOpAdaptor as EinsumOpAdaptor, ExpOp as ExpOp, ExpOpAdaptor as ExpOpAdaptor, Expm1Op as Expm1Op,
    Expm1OpAdaptor as Expm1OpAdaptor, FftOp as FftOp, FftOpAdaptor as FftOpAdaptor, FftTypeAttr as FftTypeAttr,
    FloorOp as FloorOp, FloorOpAdaptor as FloorOpAdaptor, FutureType as FutureType, GatherDimensionNumbers as
    GatherDimensionNumbers, GatherOp as GatherOp, GatherOpAdaptor as GatherOpAdaptor, GetDimensionSizeOp as
    GetDimensionSizeOp, GetDimensionSizeOpAdaptor as GetDimensionSizeOpAdaptor, GetTupleElementOp as
    GetTupleElementOp, GetTupleElementOpAdaptor as GetTupleElementOpAdaptor, IfOp as IfOp, IfOpAdaptor as IfOpAdaptor,
    ImagOp as ImagOp, ImagOpAdaptor as ImagOpAdaptor, InfeedOp as InfeedOp, InfeedOpAdaptor as InfeedOpAdaptor, IotaOp
    as IotaOp, IotaOpAdaptor as IotaOpAdaptor, IsFiniteOp as IsFiniteOp, IsFiniteOpAdaptor as IsFiniteOpAdaptor,
    Log1pOp as Log1pOp, Log1pOpAdaptor as Log1pOpAdaptor, LogOp as LogOp, LogOpAdaptor as LogOpAdaptor, LogisticOp as
    LogisticOp, LogisticOpAdaptor as LogisticOpAdaptor, MapOp as MapOp, MapOpAdaptor as MapOpAdaptor, MaxOp as MaxOp,
    MaxOpAdaptor as MaxOpAdaptor, MeshAttr as MeshAttr, MeshAxisAttr as MeshAxisAttr, MinOp as MinOp, MinOpAdaptor as
    MinOpAdaptor, MulOp as MulOp, MulOpAdaptor as MulOpAdaptor, NegOp as NegOp, NegOpAdaptor as NegOpAdaptor, NotOp as
    NotOp, NotOpAdaptor as NotOpAdaptor, OptimizationBarrierOp as OptimizationBarrierOp, OptimizationBarrierOpAdaptor
    as OptimizationBarrierOpAdaptor, OrOp as OrOp, OrOpAdaptor as OrOpAdaptor, OutfeedOp as OutfeedOp,
    OutfeedOpAdaptor as OutfeedOpAdaptor, OutputOperandAlias as OutputOperandAlias, PadOp as PadOp, PadOpAdaptor as
    PadOpAdaptor, PartitionIdOp as PartitionIdOp, PartitionIdOpAdaptor as PartitionIdOpAdaptor, PopulationCountOp as
    PopulationCountOp, PopulationCountOpAdaptor as PopulationCountOpAdaptor, PowOp as PowOp, PowOpAdaptor as
    PowOpAdaptor, PrecisionAttr as PrecisionAttr, RealDynamicSliceOp as RealDynamicSliceOp, RealDynamicSliceOpAdaptor
    as RealDynamicSliceOpAdaptor, RealOp as RealOp, RealOpAdaptor as RealOpAdaptor, RecvOp as RecvOp, RecvOpAdaptor as
    RecvOpAdaptor, ReduceOp as ReduceOp, ReduceOpAdaptor as ReduceOpAdaptor, ReducePrecisionOp as ReducePrecisionOp,
    ReducePrecisionOpAdaptor as ReducePrecisionOpAdaptor, ReduceScatterOp as ReduceScatterOp, ReduceScatterOpAdaptor
    as ReduceScatterOpAdaptor, ReduceWindowOp as ReduceWindowOp, ReduceWindowOpAdaptor as ReduceWindowOpAdaptor, RemOp
    as RemOp, RemOpAdaptor as RemOpAdaptor, ReplicaGroupMeshAxesAttr as ReplicaGroupMeshAxesAttr, ReplicaIdOp as
    ReplicaIdOp, ReplicaIdOpAdaptor as ReplicaIdOpAdaptor, ReshapeOp as ReshapeOp, ReshapeOpAdaptor as
    ReshapeOpAdaptor, ResultAccuracyAttr as ResultAccuracyAttr, ResultAccuracyModeAttr as ResultAccuracyModeAttr,
    ReturnOp as ReturnOp, ReturnOpAdaptor as ReturnOpAdaptor, ReverseOp as ReverseOp, ReverseOpAdaptor as
    ReverseOpAdaptor, RngAlgorithmAttr as RngAlgorithmAttr, RngBitGeneratorOp as RngBitGeneratorOp,
    RngBitGeneratorOpAdaptor as RngBitGeneratorOpAdaptor, RngDistributionAttr as RngDistributionAttr, RngOp as RngOp,
    RngOpAdaptor as RngOpAdaptor, RoundNearestEvenOp as RoundNearestEvenOp, RoundNearestEvenOpAdaptor as
    RoundNearestEvenOpAdaptor, RoundOp as RoundOp, RoundOpAdaptor as RoundOpAdaptor, RsqrtOp as RsqrtOp,
    RsqrtOpAdaptor as RsqrtOpAdaptor, ScatterDimensionNumbers as ScatterDimensionNumbers, ScatterOp as ScatterOp,
    ScatterOpAdaptor as ScatterOpAdaptor, SelectAndScatterOp as SelectAndScatterOp, SelectAndScatterOpAdaptor as
    SelectAndScatterOpAdaptor, SelectOp as SelectOp, SelectOpAdaptor as SelectOpAdaptor, SendOp as SendOp,
    SendOpAdaptor as SendOpAdaptor, SetDimensionSizeOp as SetDimensionSizeOp, SetDimensionSizeOpAdaptor as
    SetDimensionSizeOpAdaptor, ShiftLeftOp as ShiftLeftOp, ShiftLeftOpAdaptor as ShiftLeftOpAdaptor,
    ShiftRightArithmeticOp as ShiftRightArithmeticOp, ShiftRightArithmeticOpAdaptor as ShiftRightArithmeticOpAdaptor,
    ShiftRightLogicalOp as ShiftRightLogicalOp, ShiftRightLogicalOpAdaptor as ShiftRightLogicalOpAdaptor, SignOp as
    SignOp, SignOpAdaptor as SignOpAdaptor, SineOp as SineOp, SineOpAdaptor as SineOpAdaptor, SliceOp as SliceOp,
    SliceOpAdaptor as SliceOpAdaptor, SortOp as SortOp, SortOpAdaptor as SortOpAdaptor, SqrtOp as SqrtOp,
    SqrtOpAdaptor as SqrtOpAdaptor, StablehloCompatibilityRequirement as StablehloCompatibilityRequirement,
    SubAxisInfoAttr as SubAxisInfoAttr, SubtractOp as SubtractOp, SubtractOpAdaptor as SubtractOpAdaptor, TanOp as
    TanOp, TanOpAdaptor as TanOpAdaptor, TanhOp as TanhOp, TanhOpAdaptor as TanhOpAdaptor, TokenType as TokenType,
    TorchIndexSelectOp as TorchIndexSelectOp, TorchIndexSelectOpAdaptor as TorchIndexSelectOpAdaptor, TransposeAttr as
    TransposeAttr, TransposeOp as TransposeOp, TransposeOpAdaptor as TransposeOpAdaptor, TriangularSolveOp as
    TriangularSolveOp, TriangularSolveOpAdaptor as TriangularSolveOpAdaptor, TupleOp as TupleOp, TupleOpAdaptor as
    TupleOpAdaptor, TypeExtensions as TypeExtensions, UnaryEinsumOp as UnaryEinsumOp, UnaryEinsumOpAdaptor as
    UnaryEinsumOpAdaptor, UniformDequantizeOp as UniformDequantizeOp, UniformDequantizeOpAdaptor as
    UniformDequantizeOpAdaptor, UniformQuantizeOp as UniformQuantizeOp, UniformQuantizeOpAdaptor as
    UniformQuantizeOpAdaptor, WhileOp as WhileOp, WhileOpAdaptor as WhileOpAdaptor, XorOp as XorOp, XorOpAdaptor as
    XorOpAdaptor, abs as abs, add as add, after_all as after_all, all_gather as all_gather, all_reduce as all_reduce,
    all_to_all as all_to_all, and_ as and_, async_done as async_done, async_start as async_start, atan2 as atan2,
    batch_norm_grad as batch_norm_grad, batch_norm_inference as batch_norm_inference, batch_norm_training as
    batch_norm_training, bitcast_convert as bitcast_convert, broadcast as broadcast, broadcast_in_dim as
    broadcast_in_dim, builtins as builtins, case as case, cbrt as cbrt, ceil as ceil, cholesky as cholesky, clamp as
    clamp, collective_broadcast as collective_broadcast, collective_permute as collective_permute, compare as compare,
    complex as complex, composite as composite, concatenate as concatenate, constant as constant, convert as convert,
    convolution as convolution, cosine as cosine, count_leading_zeros as count_leading_zeros, create_token as
    create_token, cross_replica_sum as cross_replica_sum, custom_call as custom_call, deserialize_portable_artifact as
    deserialize_portable_artifact, deserialize_portable_artifact_str as deserialize_portable_artifact_str, divide as
    divide, dot as dot, dot_general as dot_general, dynamic_broadcast_in_dim as dynamic_broadcast_in_dim, dynamic_conv
    as dynamic_conv, dynamic_gather as dynamic_gather, dynamic_iota as dynamic_iota, dynamic_pad as dynamic_pad,
    dynamic_reshape as dynamic_reshape, dynamic_slice as dynamic_slice, dynamic_update_slice as dynamic_update_slice,
    einsum as einsum, eval_module as eval_module, exponential as exponential, exponential_minus_one as
    exponential_minus_one, fft as fft, floor as floor, gather as gather, get_api_version as get_api_version,
    get_current_version as get_current_version, get_dimension_size as get_dimension_size, get_minimum_version as
    get_minimum_version, get_smaller_version as get_smaller_version, get_tuple_element as get_tuple_element,
    get_version_from_compatibility_requirement as get_version_from_compatibility_requirement, if_ as if_, imag as
    imag, infeed as infeed, iota as iota, is_finite as is_finite, log as log, log_plus_one as log_plus_one, logistic
    as logistic, map as map, maximum as maximum, minimum as minimum, multiply as multiply, negate as negate, not_ as
    not_, optimization_barrier as optimization_barrier, or_ as or_, outfeed as outfeed, pad as pad, partition_id as
    partition_id, popcnt as popcnt, power as power, real as real, real_dynamic_slice as real_dynamic_slice, recv as
    recv, reduce as reduce, reduce_precision as reduce_precision, reduce_scatter as reduce_scatter, reduce_window as
    reduce_window, register_dialect as register_dialect, register_interpreter_dialect as register_interpreter_dialect,
    register_stablehlo_passes as register_stablehlo_passes, remainder as remainder, replica_id as replica_id, reshape
    as reshape, return_ as return_, reverse as reverse, rng as rng, rng_bit_generator as rng_bit_generator,
    round_nearest_afz as round_nearest_afz, round_nearest_even as round_nearest_even, rsqrt as rsqrt, scatter as
    scatter, select as select, select_and_scatter as select_and_scatter, send as send, serialize_portable_artifact as
    serialize_portable_artifact, serialize_portable_artifact_str as serialize_portable_artifact_str,
    set_dimension_size as set_dimension_size, shift_left as shift_left, shift_right_arithmetic as
    shift_right_arithmetic, shift_right_logical as shift_right_logical, sign as sign, sine as sine, slice as slice,
    sort as sort, sqrt as sqrt, subtract as subtract, tan as tan, tanh as tanh, torch_index_select as
    torch_index_select, transpose as transpose, triangular_solve as triangular_solve, tuple as tuple, unary_einsum as
    unary_einsum, uniform_dequantize as uniform_dequantize, uniform_quantize as uniform_quantize, while_ as while_,
    xor as xor)
