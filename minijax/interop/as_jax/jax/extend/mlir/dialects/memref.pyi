# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.memref import (AllocOp as AllocOp, AllocOpAdaptor as AllocOpAdaptor, AllocaOp as
    AllocaOp, AllocaOpAdaptor as AllocaOpAdaptor, AllocaScopeOp as AllocaScopeOp, AllocaScopeOpAdaptor as
    AllocaScopeOpAdaptor, AllocaScopeReturnOp as AllocaScopeReturnOp, AllocaScopeReturnOpAdaptor as
    AllocaScopeReturnOpAdaptor, AssumeAlignmentOp as AssumeAlignmentOp, AssumeAlignmentOpAdaptor as
    AssumeAlignmentOpAdaptor, AtomicRMWOp as AtomicRMWOp, AtomicRMWOpAdaptor as AtomicRMWOpAdaptor, AtomicYieldOp as
    AtomicYieldOp, AtomicYieldOpAdaptor as AtomicYieldOpAdaptor, CastOp as CastOp, CastOpAdaptor as CastOpAdaptor,
    CollapseShapeOp as CollapseShapeOp, CollapseShapeOpAdaptor as CollapseShapeOpAdaptor, CopyOp as CopyOp,
    CopyOpAdaptor as CopyOpAdaptor, DeallocOp as DeallocOp, DeallocOpAdaptor as DeallocOpAdaptor, DimOp as DimOp,
    DimOpAdaptor as DimOpAdaptor, DistinctObjectsOp as DistinctObjectsOp, DistinctObjectsOpAdaptor as
    DistinctObjectsOpAdaptor, DmaStartOp as DmaStartOp, DmaStartOpAdaptor as DmaStartOpAdaptor, DmaWaitOp as
    DmaWaitOp, DmaWaitOpAdaptor as DmaWaitOpAdaptor, ExpandShapeOp as ExpandShapeOp, ExpandShapeOpAdaptor as
    ExpandShapeOpAdaptor, ExtractAlignedPointerAsIndexOp as ExtractAlignedPointerAsIndexOp,
    ExtractAlignedPointerAsIndexOpAdaptor as ExtractAlignedPointerAsIndexOpAdaptor, ExtractStridedMetadataOp as
    ExtractStridedMetadataOp, ExtractStridedMetadataOpAdaptor as ExtractStridedMetadataOpAdaptor, GenericAtomicRMWOp
    as GenericAtomicRMWOp, GenericAtomicRMWOpAdaptor as GenericAtomicRMWOpAdaptor, GetGlobalOp as GetGlobalOp,
    GetGlobalOpAdaptor as GetGlobalOpAdaptor, GlobalOp as GlobalOp, GlobalOpAdaptor as GlobalOpAdaptor, IndexType as
    IndexType, IntegerType as IntegerType, LoadOp as LoadOp, LoadOpAdaptor as LoadOpAdaptor, MemRefType as MemRefType,
    MemorySpaceCastOp as MemorySpaceCastOp, MemorySpaceCastOpAdaptor as MemorySpaceCastOpAdaptor, MixedValues as
    MixedValues, Optional as Optional, PrefetchOp as PrefetchOp, PrefetchOpAdaptor as PrefetchOpAdaptor, RankOp as
    RankOp, RankOpAdaptor as RankOpAdaptor, ReallocOp as ReallocOp, ReallocOpAdaptor as ReallocOpAdaptor,
    ReinterpretCastOp as ReinterpretCastOp, ReinterpretCastOpAdaptor as ReinterpretCastOpAdaptor, ReshapeOp as
    ReshapeOp, ReshapeOpAdaptor as ReshapeOpAdaptor, ShapedType as ShapedType, StoreOp as StoreOp, StoreOpAdaptor as
    StoreOpAdaptor, StridedLayoutAttr as StridedLayoutAttr, SubViewOp as SubViewOp, SubViewOpAdaptor as
    SubViewOpAdaptor, TransposeOp as TransposeOp, TransposeOpAdaptor as TransposeOpAdaptor, Value as Value, ViewOp as
    ViewOp, ViewOpAdaptor as ViewOpAdaptor, accumulate as accumulate, alloc as alloc, alloca as alloca, alloca_scope
    as alloca_scope, alloca_scope_return as alloca_scope_return, arith as arith, assume_alignment as assume_alignment,
    atomic_rmw as atomic_rmw, atomic_yield as atomic_yield, builtins as builtins, cast as cast, collapse_shape as
    collapse_shape, copy as copy, dealloc as dealloc, dim as dim, distinct_objects as distinct_objects, dma_start as
    dma_start, dma_wait as dma_wait, expand_shape as expand_shape, extract_aligned_pointer_as_index as
    extract_aligned_pointer_as_index, extract_strided_metadata as extract_strided_metadata, generic_atomic_rmw as
    generic_atomic_rmw, get_global as get_global, global_ as global_, load as load, memory_space_cast as
    memory_space_cast, operator as operator, prefetch as prefetch, rank as rank, realloc as realloc, reinterpret_cast
    as reinterpret_cast, reshape as reshape, store as store, subview as subview, transpose as transpose, view as view)
