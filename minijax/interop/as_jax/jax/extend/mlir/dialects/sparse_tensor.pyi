# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.sparse_tensor import (AssembleOp as AssembleOp, AssembleOpAdaptor as
    AssembleOpAdaptor, BinaryOp as BinaryOp, BinaryOpAdaptor as BinaryOpAdaptor, CoIterateOp as CoIterateOp,
    CoIterateOpAdaptor as CoIterateOpAdaptor, CompressOp as CompressOp, CompressOpAdaptor as CompressOpAdaptor,
    ConcatenateOp as ConcatenateOp, ConcatenateOpAdaptor as ConcatenateOpAdaptor, ConvertOp as ConvertOp,
    ConvertOpAdaptor as ConvertOpAdaptor, CrdTransDirectionKind as CrdTransDirectionKind, CrdTranslateOp as
    CrdTranslateOp, CrdTranslateOpAdaptor as CrdTranslateOpAdaptor, DisassembleOp as DisassembleOp,
    DisassembleOpAdaptor as DisassembleOpAdaptor, EncodingAttr as EncodingAttr, ExpandOp as ExpandOp, ExpandOpAdaptor
    as ExpandOpAdaptor, ExtractIterSpaceOp as ExtractIterSpaceOp, ExtractIterSpaceOpAdaptor as
    ExtractIterSpaceOpAdaptor, ExtractValOp as ExtractValOp, ExtractValOpAdaptor as ExtractValOpAdaptor, ForeachOp as
    ForeachOp, ForeachOpAdaptor as ForeachOpAdaptor, GetStorageSpecifierOp as GetStorageSpecifierOp,
    GetStorageSpecifierOpAdaptor as GetStorageSpecifierOpAdaptor, HasRuntimeLibraryOp as HasRuntimeLibraryOp,
    HasRuntimeLibraryOpAdaptor as HasRuntimeLibraryOpAdaptor, IntEnum as IntEnum, IntFlag as IntFlag, IterateOp as
    IterateOp, IterateOpAdaptor as IterateOpAdaptor, LevelFormat as LevelFormat, LevelProperty as LevelProperty,
    LoadOp as LoadOp, LoadOpAdaptor as LoadOpAdaptor, LvlOp as LvlOp, LvlOpAdaptor as LvlOpAdaptor, NewOp as NewOp,
    NewOpAdaptor as NewOpAdaptor, NumberOfEntriesOp as NumberOfEntriesOp, NumberOfEntriesOpAdaptor as
    NumberOfEntriesOpAdaptor, OutOp as OutOp, OutOpAdaptor as OutOpAdaptor, PrintOp as PrintOp, PrintOpAdaptor as
    PrintOpAdaptor, PushBackOp as PushBackOp, PushBackOpAdaptor as PushBackOpAdaptor, ReduceOp as ReduceOp,
    ReduceOpAdaptor as ReduceOpAdaptor, ReinterpretMapOp as ReinterpretMapOp, ReinterpretMapOpAdaptor as
    ReinterpretMapOpAdaptor, ReorderCOOOp as ReorderCOOOp, ReorderCOOOpAdaptor as ReorderCOOOpAdaptor, SelectOp as
    SelectOp, SelectOpAdaptor as SelectOpAdaptor, SetStorageSpecifierOp as SetStorageSpecifierOp,
    SetStorageSpecifierOpAdaptor as SetStorageSpecifierOpAdaptor, SortOp as SortOp, SortOpAdaptor as SortOpAdaptor,
    SparseTensorSortKind as SparseTensorSortKind, StorageSpecifierInitOp as StorageSpecifierInitOp,
    StorageSpecifierInitOpAdaptor as StorageSpecifierInitOpAdaptor, StorageSpecifierKind as StorageSpecifierKind,
    ToCoordinatesBufferOp as ToCoordinatesBufferOp, ToCoordinatesBufferOpAdaptor as ToCoordinatesBufferOpAdaptor,
    ToCoordinatesOp as ToCoordinatesOp, ToCoordinatesOpAdaptor as ToCoordinatesOpAdaptor, ToPositionsOp as
    ToPositionsOp, ToPositionsOpAdaptor as ToPositionsOpAdaptor, ToSliceOffsetOp as ToSliceOffsetOp,
    ToSliceOffsetOpAdaptor as ToSliceOffsetOpAdaptor, ToSliceStrideOp as ToSliceStrideOp, ToSliceStrideOpAdaptor as
    ToSliceStrideOpAdaptor, ToValuesOp as ToValuesOp, ToValuesOpAdaptor as ToValuesOpAdaptor, UnaryOp as UnaryOp,
    UnaryOpAdaptor as UnaryOpAdaptor, YieldOp as YieldOp, YieldOpAdaptor as YieldOpAdaptor, assemble as assemble, auto
    as auto, binary as binary, builtins as builtins, coiterate as coiterate, compress as compress, concatenate as
    concatenate, convert as convert, coordinates as coordinates, coordinates_buffer as coordinates_buffer,
    crd_translate as crd_translate, disassemble as disassemble, expand as expand, extract_iteration_space as
    extract_iteration_space, extract_value as extract_value, foreach as foreach, has_runtime_library as
    has_runtime_library, iterate as iterate, load as load, lvl as lvl, new as new, number_of_entries as
    number_of_entries, out as out, positions as positions, print_ as print_, push_back as push_back, reduce as reduce,
    register_attribute_builder as register_attribute_builder, reinterpret_map as reinterpret_map, reorder_coo as
    reorder_coo, select as select, slice_offset as slice_offset, slice_stride as slice_stride, sort as sort,
    storage_specifier_get as storage_specifier_get, storage_specifier_init as storage_specifier_init,
    storage_specifier_set as storage_specifier_set, unary as unary, values as values, yield_ as yield_)
