# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.vector import (BitCastOp as BitCastOp, BitCastOpAdaptor as BitCastOpAdaptor,
    BroadcastOp as BroadcastOp, BroadcastOpAdaptor as BroadcastOpAdaptor, CombiningKind as CombiningKind,
    CompressStoreOp as CompressStoreOp, CompressStoreOpAdaptor as CompressStoreOpAdaptor, ConstantMaskOp as
    ConstantMaskOp, ConstantMaskOpAdaptor as ConstantMaskOpAdaptor, ContractionOp as ContractionOp,
    ContractionOpAdaptor as ContractionOpAdaptor, CreateMaskOp as CreateMaskOp, CreateMaskOpAdaptor as
    CreateMaskOpAdaptor, DeinterleaveOp as DeinterleaveOp, DeinterleaveOpAdaptor as DeinterleaveOpAdaptor,
    ExpandLoadOp as ExpandLoadOp, ExpandLoadOpAdaptor as ExpandLoadOpAdaptor, ExtractOp as ExtractOp, ExtractOpAdaptor
    as ExtractOpAdaptor, ExtractStridedSliceOp as ExtractStridedSliceOp, ExtractStridedSliceOpAdaptor as
    ExtractStridedSliceOpAdaptor, FMAOp as FMAOp, FMAOpAdaptor as FMAOpAdaptor, FromElementsOp as FromElementsOp,
    FromElementsOpAdaptor as FromElementsOpAdaptor, GatherOp as GatherOp, GatherOpAdaptor as GatherOpAdaptor, InsertOp
    as InsertOp, InsertOpAdaptor as InsertOpAdaptor, InsertStridedSliceOp as InsertStridedSliceOp,
    InsertStridedSliceOpAdaptor as InsertStridedSliceOpAdaptor, IntEnum as IntEnum, IntFlag as IntFlag, InterleaveOp
    as InterleaveOp, InterleaveOpAdaptor as InterleaveOpAdaptor, IteratorType as IteratorType, LoadOp as LoadOp,
    LoadOpAdaptor as LoadOpAdaptor, MaskOp as MaskOp, MaskOpAdaptor as MaskOpAdaptor, MaskedLoadOp as MaskedLoadOp,
    MaskedLoadOpAdaptor as MaskedLoadOpAdaptor, MaskedStoreOp as MaskedStoreOp, MaskedStoreOpAdaptor as
    MaskedStoreOpAdaptor, MultiDimReductionOp as MultiDimReductionOp, MultiDimReductionOpAdaptor as
    MultiDimReductionOpAdaptor, OuterProductOp as OuterProductOp, OuterProductOpAdaptor as OuterProductOpAdaptor,
    PrintOp as PrintOp, PrintOpAdaptor as PrintOpAdaptor, PrintPunctuation as PrintPunctuation, ReductionOp as
    ReductionOp, ReductionOpAdaptor as ReductionOpAdaptor, ScalableExtractOp as ScalableExtractOp,
    ScalableExtractOpAdaptor as ScalableExtractOpAdaptor, ScalableInsertOp as ScalableInsertOp,
    ScalableInsertOpAdaptor as ScalableInsertOpAdaptor, ScanOp as ScanOp, ScanOpAdaptor as ScanOpAdaptor, ScatterOp as
    ScatterOp, ScatterOpAdaptor as ScatterOpAdaptor, ShapeCastOp as ShapeCastOp, ShapeCastOpAdaptor as
    ShapeCastOpAdaptor, ShuffleOp as ShuffleOp, ShuffleOpAdaptor as ShuffleOpAdaptor, StepOp as StepOp, StepOpAdaptor
    as StepOpAdaptor, StoreOp as StoreOp, StoreOpAdaptor as StoreOpAdaptor, ToElementsOp as ToElementsOp,
    ToElementsOpAdaptor as ToElementsOpAdaptor, TransferReadOp as TransferReadOp, TransferReadOpAdaptor as
    TransferReadOpAdaptor, TransferWriteOp as TransferWriteOp, TransferWriteOpAdaptor as TransferWriteOpAdaptor,
    TransposeOp as TransposeOp, TransposeOpAdaptor as TransposeOpAdaptor, TypeCastOp as TypeCastOp, TypeCastOpAdaptor
    as TypeCastOpAdaptor, VectorScaleOp as VectorScaleOp, VectorScaleOpAdaptor as VectorScaleOpAdaptor, YieldOp as
    YieldOp, YieldOpAdaptor as YieldOpAdaptor, auto as auto, bitcast as bitcast, broadcast as broadcast, builtins as
    builtins, compressstore as compressstore, constant_mask as constant_mask, contract as contract, create_mask as
    create_mask, deinterleave as deinterleave, expandload as expandload, extract as extract, extract_strided_slice as
    extract_strided_slice, fma as fma, from_elements as from_elements, gather as gather, insert as insert,
    insert_strided_slice as insert_strided_slice, interleave as interleave, load as load, mask as mask, maskedload as
    maskedload, maskedstore as maskedstore, multi_reduction as multi_reduction, outerproduct as outerproduct, print_
    as print_, reduction as reduction, register_attribute_builder as register_attribute_builder, scalable_extract as
    scalable_extract, scalable_insert as scalable_insert, scan as scan, scatter as scatter, shape_cast as shape_cast,
    shuffle as shuffle, step as step, store as store, to_elements as to_elements, transfer_read as transfer_read,
    transfer_write as transfer_write, transpose as transpose, type_cast as type_cast, vscale as vscale, yield_ as
    yield_)
