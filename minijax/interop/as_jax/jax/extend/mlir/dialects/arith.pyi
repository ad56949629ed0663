# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.arith import (AddFOp as AddFOp, AddFOpAdaptor as AddFOpAdaptor, AddIOp as AddIOp,
    AddIOpAdaptor as AddIOpAdaptor, AddUIExtendedOp as AddUIExtendedOp, AddUIExtendedOpAdaptor as
    AddUIExtendedOpAdaptor, AffineAddExpr as AffineAddExpr, AffineBinaryExpr as AffineBinaryExpr, AffineCeilDivExpr as
    AffineCeilDivExpr, AffineConstantExpr as AffineConstantExpr, AffineDimExpr as AffineDimExpr, AffineExpr as
    AffineExpr, AffineExprList as AffineExprList, AffineFloorDivExpr as AffineFloorDivExpr, AffineMap as AffineMap,
    AffineMapAttr as AffineMapAttr, AffineModExpr as AffineModExpr, AffineMulExpr as AffineMulExpr, AffineSymbolExpr
    as AffineSymbolExpr, AndIOp as AndIOp, AndIOpAdaptor as AndIOpAdaptor, Any as Any, ArrayAttr as ArrayAttr,
    ArrayAttributeIterator as ArrayAttributeIterator, AsmState as AsmState, AtomicRMWKind as AtomicRMWKind,
    AttrBuilder as AttrBuilder, Attribute as Attribute, BF16Type as BF16Type, BitcastOp as BitcastOp, BitcastOpAdaptor
    as BitcastOpAdaptor, Block as Block, BlockArgument as BlockArgument, BlockArgumentList as BlockArgumentList,
    BlockIterator as BlockIterator, BlockList as BlockList, BlockPredecessors as BlockPredecessors, BlockSuccessors as
    BlockSuccessors, BoolAttr as BoolAttr, CallSiteLoc as CallSiteLoc, CeilDivSIOp as CeilDivSIOp, CeilDivSIOpAdaptor
    as CeilDivSIOpAdaptor, CeilDivUIOp as CeilDivUIOp, CeilDivUIOpAdaptor as CeilDivUIOpAdaptor, CmpFOp as CmpFOp,
    CmpFOpAdaptor as CmpFOpAdaptor, CmpFPredicate as CmpFPredicate, CmpIOp as CmpIOp, CmpIOpAdaptor as CmpIOpAdaptor,
    CmpIPredicate as CmpIPredicate, ComplexType as ComplexType, ConditionallySpeculatable as
    ConditionallySpeculatable, ConstantOp as ConstantOp, ConstantOpAdaptor as ConstantOpAdaptor, Context as Context,
    ConvertFOp as ConvertFOp, ConvertFOpAdaptor as ConvertFOpAdaptor, CurrentLocAction as CurrentLocAction,
    DenseBoolArrayAttr as DenseBoolArrayAttr, DenseBoolArrayIterator as DenseBoolArrayIterator, DenseElementsAttr as
    DenseElementsAttr, DenseF32ArrayAttr as DenseF32ArrayAttr, DenseF32ArrayIterator as DenseF32ArrayIterator,
    DenseF64ArrayAttr as DenseF64ArrayAttr, DenseF64ArrayIterator as DenseF64ArrayIterator, DenseFPElementsAttr as
    DenseFPElementsAttr, DenseI16ArrayAttr as DenseI16ArrayAttr, DenseI16ArrayIterator as DenseI16ArrayIterator,
    DenseI32ArrayAttr as DenseI32ArrayAttr, DenseI32ArrayIterator as DenseI32ArrayIterator, DenseI64ArrayAttr as
    DenseI64ArrayAttr, DenseI64ArrayIterator as DenseI64ArrayIterator, DenseI8ArrayAttr as DenseI8ArrayAttr,
    DenseI8ArrayIterator as DenseI8ArrayIterator, DenseIntElementsAttr as DenseIntElementsAttr,
    DenseResourceElementsAttr as DenseResourceElementsAttr, Diagnostic as Diagnostic, DiagnosticHandler as
    DiagnosticHandler, DiagnosticInfo as DiagnosticInfo, DiagnosticSeverity as DiagnosticSeverity, Dialect as Dialect,
    DialectDescriptor as DialectDescriptor, DialectRegistry as DialectRegistry, Dialects as Dialects, DictAttr as
    DictAttr, DivFOp as DivFOp, DivFOpAdaptor as DivFOpAdaptor, DivSIOp as DivSIOp, DivSIOpAdaptor as DivSIOpAdaptor,
    DivUIOp as DivUIOp, DivUIOpAdaptor as DivUIOpAdaptor, DynamicAttr as DynamicAttr, DynamicOpTrait as
    DynamicOpTrait, DynamicType as DynamicType, ExtFOp as ExtFOp, ExtFOpAdaptor as ExtFOpAdaptor, ExtSIOp as ExtSIOp,
    ExtSIOpAdaptor as ExtSIOpAdaptor, ExtUIOp as ExtUIOp, ExtUIOpAdaptor as ExtUIOpAdaptor, F16Type as F16Type,
    F32Type as F32Type, F64Type as F64Type, FPToSIOp as FPToSIOp, FPToSIOpAdaptor as FPToSIOpAdaptor, FPToUIOp as
    FPToUIOp, FPToUIOpAdaptor as FPToUIOpAdaptor, FastMathFlags as FastMathFlags, FileLineColLoc as FileLineColLoc,
    FlatSymbolRefAttr as FlatSymbolRefAttr, Float4E2M1FNType as Float4E2M1FNType, Float6E2M3FNType as
    Float6E2M3FNType, Float6E3M2FNType as Float6E3M2FNType, Float8E3M4Type as Float8E3M4Type, Float8E4M3B11FNUZType as
    Float8E4M3B11FNUZType, Float8E4M3FNType as Float8E4M3FNType, Float8E4M3FNUZType as Float8E4M3FNUZType,
    Float8E4M3Type as Float8E4M3Type, Float8E5M2FNUZType as Float8E5M2FNUZType, Float8E5M2Type as Float8E5M2Type,
    Float8E8M0FNUType as Float8E8M0FNUType, FloatAttr as FloatAttr, FloatTF32Type as FloatTF32Type, FloatType as
    FloatType, FloorDivSIOp as FloorDivSIOp, FloorDivSIOpAdaptor as FloorDivSIOpAdaptor, FlushDenormalsOp as
    FlushDenormalsOp, FlushDenormalsOpAdaptor as FlushDenormalsOpAdaptor, FunctionType as FunctionType, FusedLoc as
    FusedLoc, Generator as Generator, IndexCastOp as IndexCastOp, IndexCastOpAdaptor as IndexCastOpAdaptor,
    IndexCastUIOp as IndexCastUIOp, IndexCastUIOpAdaptor as IndexCastUIOpAdaptor, IndexType as IndexType,
    InferShapedTypeOpInterface as InferShapedTypeOpInterface, InferTypeOpInterface as InferTypeOpInterface,
    InsertionPoint as InsertionPoint, IntEnum as IntEnum, IntFlag as IntFlag, IntegerAttr as IntegerAttr,
    IntegerOverflowFlags as IntegerOverflowFlags, IntegerSet as IntegerSet, IntegerSetAttr as IntegerSetAttr,
    IntegerSetConstraint as IntegerSetConstraint, IntegerSetConstraintList as IntegerSetConstraintList, IntegerType as
    IntegerType, IsTerminatorTrait as IsTerminatorTrait, List as List, Location as Location, MLIRError as MLIRError,
    MaxNumFOp as MaxNumFOp, MaxNumFOpAdaptor as MaxNumFOpAdaptor, MaxSIOp as MaxSIOp, MaxSIOpAdaptor as
    MaxSIOpAdaptor, MaxUIOp as MaxUIOp, MaxUIOpAdaptor as MaxUIOpAdaptor, MaximumFOp as MaximumFOp, MaximumFOpAdaptor
    as MaximumFOpAdaptor, MemRefType as MemRefType, MemoryEffectInstancesList as MemoryEffectInstancesList,
    MemoryEffectsOpInterface as MemoryEffectsOpInterface, MinNumFOp as MinNumFOp, MinNumFOpAdaptor as
    MinNumFOpAdaptor, MinSIOp as MinSIOp, MinSIOpAdaptor as MinSIOpAdaptor, MinUIOp as MinUIOp, MinUIOpAdaptor as
    MinUIOpAdaptor, MinimumFOp as MinimumFOp, MinimumFOpAdaptor as MinimumFOpAdaptor, Module as Module, MulFOp as
    MulFOp, MulFOpAdaptor as MulFOpAdaptor, MulIOp as MulIOp, MulIOpAdaptor as MulIOpAdaptor, MulSIExtendedOp as
    MulSIExtendedOp, MulSIExtendedOpAdaptor as MulSIExtendedOpAdaptor, MulUIExtendedOp as MulUIExtendedOp,
    MulUIExtendedOpAdaptor as MulUIExtendedOpAdaptor, NameLoc as NameLoc, NamedAttribute as NamedAttribute, NegFOp as
    NegFOp, NegFOpAdaptor as NegFOpAdaptor, NoTerminatorTrait as NoTerminatorTrait, NoneType as NoneType,
    OnExplicitAction as OnExplicitAction, OpAdaptor as OpAdaptor, OpAttributeMap as OpAttributeMap, OpOperand as
    OpOperand, OpOperandIterator as OpOperandIterator, OpOperandList as OpOperandList, OpOperands as OpOperands,
    OpResult as OpResult, OpResultList as OpResultList, OpSuccessors as OpSuccessors, OpView as OpView, OpaqueAttr as
    OpaqueAttr, OpaqueType as OpaqueType, Operation as Operation, OperationIterator as OperationIterator,
    OperationList as OperationList, OrIOp as OrIOp, OrIOpAdaptor as OrIOpAdaptor, RankedTensorType as
    RankedTensorType, Region as Region, RegionSequence as RegionSequence, RemFOp as RemFOp, RemFOpAdaptor as
    RemFOpAdaptor, RemSIOp as RemSIOp, RemSIOpAdaptor as RemSIOpAdaptor, RemUIOp as RemUIOp, RemUIOpAdaptor as
    RemUIOpAdaptor, RoundingMode as RoundingMode, SIToFPOp as SIToFPOp, SIToFPOpAdaptor as SIToFPOpAdaptor,
    ScalingExtFOp as ScalingExtFOp, ScalingExtFOpAdaptor as ScalingExtFOpAdaptor, ScalingTruncFOp as ScalingTruncFOp,
    ScalingTruncFOpAdaptor as ScalingTruncFOpAdaptor, SelectOp as SelectOp, SelectOpAdaptor as SelectOpAdaptor, ShLIOp
    as ShLIOp, ShLIOpAdaptor as ShLIOpAdaptor, ShRSIOp as ShRSIOp, ShRSIOpAdaptor as ShRSIOpAdaptor, ShRUIOp as
    ShRUIOp, ShRUIOpAdaptor as ShRUIOpAdaptor, ShapedType as ShapedType, ShapedTypeComponents as ShapedTypeComponents,
    Speculatability as Speculatability, StridedLayoutAttr as StridedLayoutAttr, StringAttr as StringAttr, SubFOp as
    SubFOp, SubFOpAdaptor as SubFOpAdaptor, SubIOp as SubIOp, SubIOpAdaptor as SubIOpAdaptor, SubUIExtendedOp as
    SubUIExtendedOp, SubUIExtendedOpAdaptor as SubUIExtendedOpAdaptor, SymbolRefAttr as SymbolRefAttr, SymbolTable as
    SymbolTable, ThreadPool as ThreadPool, TruncFOp as TruncFOp, TruncFOpAdaptor as TruncFOpAdaptor, TruncIOp as
    TruncIOp, TruncIOpAdaptor as TruncIOpAdaptor, TupleType as TupleType, Type as Type, TypeAttr as TypeAttr, TypeID
    as TypeID, UIToFPOp as UIToFPOp, UIToFPOpAdaptor as UIToFPOpAdaptor, Union as Union, UnitAttr as UnitAttr,
    UnknownLoc as UnknownLoc, UnrankedMemRefType as UnrankedMemRefType, UnrankedTensorType as UnrankedTensorType,
    Value as Value, VectorType as VectorType, WalkOrder as WalkOrder, WalkResult as WalkResult, XOrIOp as XOrIOp,
    XOrIOpAdaptor as XOrIOpAdaptor, addf as addf, addi as addi, addui_extended as addui_extended, andi as andi,
    annotations as annotations, append_load_on_create_dialect as append_load_on_create_dialect, auto as auto, bitcast
    as bitcast, builtins as builtins, ceildivsi as ceildivsi, ceildivui as ceildivui, cmpf as cmpf, cmpi as cmpi,
    constant as constant, contextmanager as contextmanager, convertf as convertf, divf as divf, divsi as divsi, divui
    as divui, extf as extf, extsi as extsi, extui as extui, floordivsi as floordivsi, flush_denormals as
    flush_denormals, fptosi as fptosi, fptoui as fptoui, get_dialect_registry as get_dialect_registry,
    get_load_on_create_dialects as get_load_on_create_dialects, get_ops_of_type as get_ops_of_type, get_parent_of_type
    as get_parent_of_type, index_cast as index_cast, index_castui as index_castui, loc_tracebacks as loc_tracebacks,
    maximumf as maximumf, maxnumf as maxnumf, maxsi as maxsi, maxui as maxui, minimumf as minimumf, minnumf as
    minnumf, minsi as minsi, minui as minui, mulf as mulf, muli as muli, mulsi_extended as mulsi_extended,
    mului_extended as mului_extended, negf as negf, np as np, ori as ori, overload as overload,
    register_attribute_builder as register_attribute_builder, register_type_caster as register_type_caster,
    register_value_caster as register_value_caster, remf as remf, remsi as remsi, remui as remui, scaling_extf as
    scaling_extf, scaling_truncf as scaling_truncf, select as select, shli as shli, shrsi as shrsi, shrui as shrui,
    sitofp as sitofp, subf as subf, subi as subi, subui_extended as subui_extended, truncf as truncf, trunci as
    trunci, uitofp as uitofp, xori as xori)
