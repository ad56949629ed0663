# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.math import (AbsFOp as AbsFOp, AbsFOpAdaptor as AbsFOpAdaptor, AbsIOp as AbsIOp,
    AbsIOpAdaptor as AbsIOpAdaptor, AcosOp as AcosOp, AcosOpAdaptor as AcosOpAdaptor, AcoshOp as AcoshOp,
    AcoshOpAdaptor as AcoshOpAdaptor, AsinOp as AsinOp, AsinOpAdaptor as AsinOpAdaptor, AsinhOp as AsinhOp,
    AsinhOpAdaptor as AsinhOpAdaptor, Atan2Op as Atan2Op, Atan2OpAdaptor as Atan2OpAdaptor, AtanOp as AtanOp,
    AtanOpAdaptor as AtanOpAdaptor, AtanhOp as AtanhOp, AtanhOpAdaptor as AtanhOpAdaptor, CbrtOp as CbrtOp,
    CbrtOpAdaptor as CbrtOpAdaptor, CeilOp as CeilOp, CeilOpAdaptor as CeilOpAdaptor, ClampFOp as ClampFOp,
    ClampFOpAdaptor as ClampFOpAdaptor, CopySignOp as CopySignOp, CopySignOpAdaptor as CopySignOpAdaptor, CosOp as
    CosOp, CosOpAdaptor as CosOpAdaptor, CoshOp as CoshOp, CoshOpAdaptor as CoshOpAdaptor, CountLeadingZerosOp as
    CountLeadingZerosOp, CountLeadingZerosOpAdaptor as CountLeadingZerosOpAdaptor, CountTrailingZerosOp as
    CountTrailingZerosOp, CountTrailingZerosOpAdaptor as CountTrailingZerosOpAdaptor, CtPopOp as CtPopOp,
    CtPopOpAdaptor as CtPopOpAdaptor, ErfOp as ErfOp, ErfOpAdaptor as ErfOpAdaptor, ErfcOp as ErfcOp, ErfcOpAdaptor as
    ErfcOpAdaptor, Exp2Op as Exp2Op, Exp2OpAdaptor as Exp2OpAdaptor, ExpM1Op as ExpM1Op, ExpM1OpAdaptor as
    ExpM1OpAdaptor, ExpOp as ExpOp, ExpOpAdaptor as ExpOpAdaptor, FPowIOp as FPowIOp, FPowIOpAdaptor as
    FPowIOpAdaptor, FloorOp as FloorOp, FloorOpAdaptor as FloorOpAdaptor, FmaOp as FmaOp, FmaOpAdaptor as
    FmaOpAdaptor, IPowIOp as IPowIOp, IPowIOpAdaptor as IPowIOpAdaptor, IsFiniteOp as IsFiniteOp, IsFiniteOpAdaptor as
    IsFiniteOpAdaptor, IsInfOp as IsInfOp, IsInfOpAdaptor as IsInfOpAdaptor, IsNaNOp as IsNaNOp, IsNaNOpAdaptor as
    IsNaNOpAdaptor, IsNormalOp as IsNormalOp, IsNormalOpAdaptor as IsNormalOpAdaptor, Log10Op as Log10Op,
    Log10OpAdaptor as Log10OpAdaptor, Log1pOp as Log1pOp, Log1pOpAdaptor as Log1pOpAdaptor, Log2Op as Log2Op,
    Log2OpAdaptor as Log2OpAdaptor, LogOp as LogOp, LogOpAdaptor as LogOpAdaptor, PowFOp as PowFOp, PowFOpAdaptor as
    PowFOpAdaptor, RoundEvenOp as RoundEvenOp, RoundEvenOpAdaptor as RoundEvenOpAdaptor, RoundOp as RoundOp,
    RoundOpAdaptor as RoundOpAdaptor, RsqrtOp as RsqrtOp, RsqrtOpAdaptor as RsqrtOpAdaptor, SinOp as SinOp,
    SinOpAdaptor as SinOpAdaptor, SincosOp as SincosOp, SincosOpAdaptor as SincosOpAdaptor, SinhOp as SinhOp,
    SinhOpAdaptor as SinhOpAdaptor, SqrtOp as SqrtOp, SqrtOpAdaptor as SqrtOpAdaptor, TanOp as TanOp, TanOpAdaptor as
    TanOpAdaptor, TanhOp as TanhOp, TanhOpAdaptor as TanhOpAdaptor, TruncOp as TruncOp, TruncOpAdaptor as
    TruncOpAdaptor, absf as absf, absi as absi, acos as acos, acosh as acosh, asin as asin, asinh as asinh, atan as
    atan, atan2 as atan2, atanh as atanh, builtins as builtins, cbrt as cbrt, ceil as ceil, clampf as clampf, copysign
    as copysign, cos as cos, cosh as cosh, ctlz as ctlz, ctpop as ctpop, cttz as cttz, erf as erf, erfc as erfc, exp
    as exp, exp2 as exp2, expm1 as expm1, floor as floor, fma as fma, fpowi as fpowi, ipowi as ipowi, isfinite as
    isfinite, isinf as isinf, isnan as isnan, isnormal as isnormal, log as log, log10 as log10, log1p as log1p, log2
    as log2, powf as powf, round as round, roundeven as roundeven, rsqrt as rsqrt, sin as sin, sincos as sincos, sinh
    as sinh, sqrt as sqrt, tan as tan, tanh as tanh, trunc as trunc)
