# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.chlo import (AcosOp as AcosOp, AcosOpAdaptor as AcosOpAdaptor, AcoshOp as AcoshOp,
    AcoshOpAdaptor as AcoshOpAdaptor, AsinAcosKernelOp as AsinAcosKernelOp, AsinAcosKernelOpAdaptor as
    AsinAcosKernelOpAdaptor, AsinOp as AsinOp, AsinOpAdaptor as AsinOpAdaptor, AsinhOp as AsinhOp, AsinhOpAdaptor as
    AsinhOpAdaptor, AtanOp as AtanOp, AtanOpAdaptor as AtanOpAdaptor, AtanhOp as AtanhOp, AtanhOpAdaptor as
    AtanhOpAdaptor, BesselI1eOp as BesselI1eOp, BesselI1eOpAdaptor as BesselI1eOpAdaptor, BroadcastAddOp as
    BroadcastAddOp, BroadcastAddOpAdaptor as BroadcastAddOpAdaptor, BroadcastAndOp as BroadcastAndOp,
    BroadcastAndOpAdaptor as BroadcastAndOpAdaptor, BroadcastAtan2Op as BroadcastAtan2Op, BroadcastAtan2OpAdaptor as
    BroadcastAtan2OpAdaptor, BroadcastCompareOp as BroadcastCompareOp, BroadcastCompareOpAdaptor as
    BroadcastCompareOpAdaptor, BroadcastComplexOp as BroadcastComplexOp, BroadcastComplexOpAdaptor as
    BroadcastComplexOpAdaptor, BroadcastDivOp as BroadcastDivOp, BroadcastDivOpAdaptor as BroadcastDivOpAdaptor,
    BroadcastMaxOp as BroadcastMaxOp, BroadcastMaxOpAdaptor as BroadcastMaxOpAdaptor, BroadcastMinOp as
    BroadcastMinOp, BroadcastMinOpAdaptor as BroadcastMinOpAdaptor, BroadcastMulOp as BroadcastMulOp,
    BroadcastMulOpAdaptor as BroadcastMulOpAdaptor, BroadcastNextAfterOp as BroadcastNextAfterOp,
    BroadcastNextAfterOpAdaptor as BroadcastNextAfterOpAdaptor, BroadcastOrOp as BroadcastOrOp, BroadcastOrOpAdaptor
    as BroadcastOrOpAdaptor, BroadcastPolygammaOp as BroadcastPolygammaOp, BroadcastPolygammaOpAdaptor as
    BroadcastPolygammaOpAdaptor, BroadcastPowOp as BroadcastPowOp, BroadcastPowOpAdaptor as BroadcastPowOpAdaptor,
    BroadcastRemOp as BroadcastRemOp, BroadcastRemOpAdaptor as BroadcastRemOpAdaptor, BroadcastSelectOp as
    BroadcastSelectOp, BroadcastSelectOpAdaptor as BroadcastSelectOpAdaptor, BroadcastShiftLeftOp as
    BroadcastShiftLeftOp, BroadcastShiftLeftOpAdaptor as BroadcastShiftLeftOpAdaptor, BroadcastShiftRightArithmeticOp
    as BroadcastShiftRightArithmeticOp, BroadcastShiftRightArithmeticOpAdaptor as
    BroadcastShiftRightArithmeticOpAdaptor, BroadcastShiftRightLogicalOp as BroadcastShiftRightLogicalOp,
    BroadcastShiftRightLogicalOpAdaptor as BroadcastShiftRightLogicalOpAdaptor, BroadcastSubOp as BroadcastSubOp,
    BroadcastSubOpAdaptor as BroadcastSubOpAdaptor, BroadcastXorOp as BroadcastXorOp, BroadcastXorOpAdaptor as
    BroadcastXorOpAdaptor, BroadcastZetaOp as BroadcastZetaOp, BroadcastZetaOpAdaptor as BroadcastZetaOpAdaptor,
    ComparisonDirectionAttr as ComparisonDirectionAttr, ComparisonTypeAttr as ComparisonTypeAttr, ConjOp as ConjOp,
    ConjOpAdaptor as ConjOpAdaptor, ConstantLikeOp as ConstantLikeOp, ConstantLikeOpAdaptor as ConstantLikeOpAdaptor,
    ConstantOp as ConstantOp, ConstantOpAdaptor as ConstantOpAdaptor, CoshOp as CoshOp, CoshOpAdaptor as
    CoshOpAdaptor, DigammaOp as DigammaOp, DigammaOpAdaptor as DigammaOpAdaptor, ErfInvOp as ErfInvOp, ErfInvOpAdaptor
    as ErfInvOpAdaptor, ErfOp as ErfOp, ErfOpAdaptor as ErfOpAdaptor, ErfcOp as ErfcOp, ErfcOpAdaptor as
    ErfcOpAdaptor, IsInfOp as IsInfOp, IsInfOpAdaptor as IsInfOpAdaptor, IsNegInfOp as IsNegInfOp, IsNegInfOpAdaptor
    as IsNegInfOpAdaptor, IsPosInfOp as IsPosInfOp, IsPosInfOpAdaptor as IsPosInfOpAdaptor, LgammaOp as LgammaOp,
    LgammaOpAdaptor as LgammaOpAdaptor, MulhiOp as MulhiOp, MulhiOpAdaptor as MulhiOpAdaptor, NextAfterOp as
    NextAfterOp, NextAfterOpAdaptor as NextAfterOpAdaptor, PolygammaOp as PolygammaOp, PolygammaOpAdaptor as
    PolygammaOpAdaptor, PrecisionAttr as PrecisionAttr, RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
    RaggedDotOp as RaggedDotOp, RaggedDotOpAdaptor as RaggedDotOpAdaptor, ScanOp as ScanOp, ScanOpAdaptor as
    ScanOpAdaptor, SinhOp as SinhOp, SinhOpAdaptor as SinhOpAdaptor, SquareOp as SquareOp, SquareOpAdaptor as
    SquareOpAdaptor, TanOp as TanOp, TanOpAdaptor as TanOpAdaptor, TopKOp as TopKOp, TopKOpAdaptor as TopKOpAdaptor,
    ZetaOp as ZetaOp, ZetaOpAdaptor as ZetaOpAdaptor, acos as acos, acosh as acosh, asin as asin, asinh as asinh, atan
    as atan, atanh as atanh, bessel_i1e as bessel_i1e, broadcast_add as broadcast_add, broadcast_and as broadcast_and,
    broadcast_atan2 as broadcast_atan2, broadcast_compare as broadcast_compare, broadcast_complex as
    broadcast_complex, broadcast_divide as broadcast_divide, broadcast_maximum as broadcast_maximum, broadcast_minimum
    as broadcast_minimum, broadcast_multiply as broadcast_multiply, broadcast_next_after as broadcast_next_after,
    broadcast_or as broadcast_or, broadcast_polygamma as broadcast_polygamma, broadcast_power as broadcast_power,
    broadcast_remainder as broadcast_remainder, broadcast_select as broadcast_select, broadcast_shift_left as
    broadcast_shift_left, broadcast_shift_right_arithmetic as broadcast_shift_right_arithmetic,
    broadcast_shift_right_logical as broadcast_shift_right_logical, broadcast_subtract as broadcast_subtract,
    broadcast_xor as broadcast_xor, broadcast_zeta as broadcast_zeta, builtins as builtins, conj as conj, constant as
    constant, constant_like as constant_like, cosh as cosh, digamma as digamma, erf as erf, erf_inv as erf_inv, erfc
    as erfc, is_inf as is_inf, is_neg_inf as is_neg_inf, is_pos_inf as is_pos_inf, lgamma as lgamma, mulhi as mulhi,
    next_after as next_after, polygamma as polygamma, ragged_dot as ragged_dot, register_chlo_dialect as
    register_chlo_dialect, register_dialect as register_dialect, scan as scan, sinh as sinh, square as square, tan as
    tan, top_k as top_k, zeta as zeta)
