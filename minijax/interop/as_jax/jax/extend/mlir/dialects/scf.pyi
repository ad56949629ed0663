# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.scf import (AffineAddExpr as AffineAddExpr, AffineBinaryExpr as AffineBinaryExpr,
    AffineCeilDivExpr as AffineCeilDivExpr, AffineConstantExpr as AffineConstantExpr, AffineDimExpr as AffineDimExpr,
    AffineExpr as AffineExpr, AffineExprList as AffineExprList, AffineFloorDivExpr as AffineFloorDivExpr, AffineMap as
    AffineMap, AffineMapAttr as AffineMapAttr, AffineModExpr as AffineModExpr, AffineMulExpr as AffineMulExpr,
    AffineSymbolExpr as AffineSymbolExpr, ArrayAttr as ArrayAttr, ArrayAttributeIterator as ArrayAttributeIterator,
    AsmState as AsmState, AttrBuilder as AttrBuilder, Attribute as Attribute, BF16Type as BF16Type, Block as Block,
    BlockArgument as BlockArgument, BlockArgumentList as BlockArgumentList, BlockIterator as BlockIterator, BlockList
    as BlockList, BlockPredecessors as BlockPredecessors, BlockSuccessors as BlockSuccessors, BoolAttr as BoolAttr,
    CallSiteLoc as CallSiteLoc, ComplexType as ComplexType, ConditionOp as ConditionOp, ConditionOpAdaptor as
    ConditionOpAdaptor, ConditionallySpeculatable as ConditionallySpeculatable, Context as Context, CurrentLocAction
    as CurrentLocAction, DenseBoolArrayAttr as DenseBoolArrayAttr, DenseBoolArrayIterator as DenseBoolArrayIterator,
    DenseElementsAttr as DenseElementsAttr, DenseF32ArrayAttr as DenseF32ArrayAttr, DenseF32ArrayIterator as
    DenseF32ArrayIterator, DenseF64ArrayAttr as DenseF64ArrayAttr, DenseF64ArrayIterator as DenseF64ArrayIterator,
    DenseFPElementsAttr as DenseFPElementsAttr, DenseI16ArrayAttr as DenseI16ArrayAttr, DenseI16ArrayIterator as
    DenseI16ArrayIterator, DenseI32ArrayAttr as DenseI32ArrayAttr, DenseI32ArrayIterator as DenseI32ArrayIterator,
    DenseI64ArrayAttr as DenseI64ArrayAttr, DenseI64ArrayIterator as DenseI64ArrayIterator, DenseI8ArrayAttr as
    DenseI8ArrayAttr, DenseI8ArrayIterator as DenseI8ArrayIterator, DenseIntElementsAttr as DenseIntElementsAttr,
    DenseResourceElementsAttr as DenseResourceElementsAttr, Diagnostic as Diagnostic, DiagnosticHandler as
    DiagnosticHandler, DiagnosticInfo as DiagnosticInfo, DiagnosticSeverity as DiagnosticSeverity, Dialect as Dialect,
    DialectDescriptor as DialectDescriptor, DialectRegistry as DialectRegistry, Dialects as Dialects, DictAttr as
    DictAttr, DynamicAttr as DynamicAttr, DynamicOpTrait as DynamicOpTrait, DynamicType as DynamicType,
    ExecuteRegionOp as ExecuteRegionOp, ExecuteRegionOpAdaptor as ExecuteRegionOpAdaptor, F16Type as F16Type, F32Type
    as F32Type, F64Type as F64Type, FileLineColLoc as FileLineColLoc, FlatSymbolRefAttr as FlatSymbolRefAttr,
    Float4E2M1FNType as Float4E2M1FNType, Float6E2M3FNType as Float6E2M3FNType, Float6E3M2FNType as Float6E3M2FNType,
    Float8E3M4Type as Float8E3M4Type, Float8E4M3B11FNUZType as Float8E4M3B11FNUZType, Float8E4M3FNType as
    Float8E4M3FNType, Float8E4M3FNUZType as Float8E4M3FNUZType, Float8E4M3Type as Float8E4M3Type, Float8E5M2FNUZType
    as Float8E5M2FNUZType, Float8E5M2Type as Float8E5M2Type, Float8E8M0FNUType as Float8E8M0FNUType, FloatAttr as
    FloatAttr, FloatTF32Type as FloatTF32Type, FloatType as FloatType, ForOp as ForOp, ForOpAdaptor as ForOpAdaptor,
    ForallOp as ForallOp, ForallOpAdaptor as ForallOpAdaptor, FunctionType as FunctionType, FusedLoc as FusedLoc,
    Generator as Generator, IfOp as IfOp, IfOpAdaptor as IfOpAdaptor, InParallelOp as InParallelOp,
    InParallelOpAdaptor as InParallelOpAdaptor, IndexSwitchOp as IndexSwitchOp, IndexSwitchOpAdaptor as
    IndexSwitchOpAdaptor, IndexType as IndexType, InferShapedTypeOpInterface as InferShapedTypeOpInterface,
    InferTypeOpInterface as InferTypeOpInterface, InsertionPoint as InsertionPoint, IntegerAttr as IntegerAttr,
    IntegerSet as IntegerSet, IntegerSetAttr as IntegerSetAttr, IntegerSetConstraint as IntegerSetConstraint,
    IntegerSetConstraintList as IntegerSetConstraintList, IntegerType as IntegerType, IsTerminatorTrait as
    IsTerminatorTrait, List as List, Location as Location, MLIRError as MLIRError, MemRefType as MemRefType,
    MemoryEffectInstancesList as MemoryEffectInstancesList, MemoryEffectsOpInterface as MemoryEffectsOpInterface,
    Module as Module, NameLoc as NameLoc, NamedAttribute as NamedAttribute, NoTerminatorTrait as NoTerminatorTrait,
    NoneType as NoneType, OnExplicitAction as OnExplicitAction, OpAdaptor as OpAdaptor, OpAttributeMap as
    OpAttributeMap, OpOperand as OpOperand, OpOperandIterator as OpOperandIterator, OpOperandList as OpOperandList,
    OpOperands as OpOperands, OpResult as OpResult, OpResultList as OpResultList, OpSuccessors as OpSuccessors, OpView
    as OpView, OpaqueAttr as OpaqueAttr, OpaqueType as OpaqueType, Operation as Operation, OperationIterator as
    OperationIterator, OperationList as OperationList, Optional as Optional, ParallelOp as ParallelOp,
    ParallelOpAdaptor as ParallelOpAdaptor, RankedTensorType as RankedTensorType, ReduceOp as ReduceOp,
    ReduceOpAdaptor as ReduceOpAdaptor, ReduceReturnOp as ReduceReturnOp, ReduceReturnOpAdaptor as
    ReduceReturnOpAdaptor, Region as Region, RegionSequence as RegionSequence, Sequence as Sequence, ShapedType as
    ShapedType, ShapedTypeComponents as ShapedTypeComponents, Speculatability as Speculatability, StridedLayoutAttr as
    StridedLayoutAttr, StringAttr as StringAttr, SymbolRefAttr as SymbolRefAttr, SymbolTable as SymbolTable,
    ThreadPool as ThreadPool, Tuple as Tuple, TupleType as TupleType, Type as Type, TypeAttr as TypeAttr, TypeID as
    TypeID, Union as Union, UnitAttr as UnitAttr, UnknownLoc as UnknownLoc, UnrankedMemRefType as UnrankedMemRefType,
    UnrankedTensorType as UnrankedTensorType, Value as Value, VectorType as VectorType, WalkOrder as WalkOrder,
    WalkResult as WalkResult, WhileOp as WhileOp, WhileOpAdaptor as WhileOpAdaptor, YieldOp as YieldOp, YieldOpAdaptor
    as YieldOpAdaptor, annotations as annotations, append_load_on_create_dialect as append_load_on_create_dialect,
    builtins as builtins, condition as condition, constant as constant, contextmanager as contextmanager,
    execute_region as execute_region, for_ as for_, forall as forall, forall_in_parallel as forall_in_parallel,
    get_dialect_registry as get_dialect_registry, get_load_on_create_dialects as get_load_on_create_dialects,
    get_ops_of_type as get_ops_of_type, get_parent_of_type as get_parent_of_type, if_ as if_, index_switch as
    index_switch, loc_tracebacks as loc_tracebacks, np as np, parallel as parallel, reduce as reduce, reduce_return as
    reduce_return, register_attribute_builder as register_attribute_builder, register_type_caster as
    register_type_caster, register_value_caster as register_value_caster, while_ as while_, yield_ as yield_)
