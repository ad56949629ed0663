# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.sdy import (AllGatherOp as AllGatherOp, AllGatherOpAdaptor as AllGatherOpAdaptor,
    AllReduceOp as AllReduceOp, AllReduceOpAdaptor as AllReduceOpAdaptor, AllSliceOp as AllSliceOp, AllSliceOpAdaptor
    as AllSliceOpAdaptor, AllToAllOp as AllToAllOp, AllToAllOpAdaptor as AllToAllOpAdaptor, AxisRefAttr as
    AxisRefAttr, CollectivePermuteOp as CollectivePermuteOp, CollectivePermuteOpAdaptor as CollectivePermuteOpAdaptor,
    CompatibilityRequirement as CompatibilityRequirement, ConstantOp as ConstantOp, ConstantOpAdaptor as
    ConstantOpAdaptor, DataFlowEdgeOp as DataFlowEdgeOp, DataFlowEdgeOpAdaptor as DataFlowEdgeOpAdaptor,
    DimMappingAttr as DimMappingAttr, DimensionShardingAttr as DimensionShardingAttr, EdgeNodeType as EdgeNodeType,
    FuncDataFlowEdgeOp as FuncDataFlowEdgeOp, FuncDataFlowEdgeOpAdaptor as FuncDataFlowEdgeOpAdaptor, IntEnum as
    IntEnum, IntFlag as IntFlag, ManualAxesAttr as ManualAxesAttr, ManualComputationOp as ManualComputationOp,
    ManualComputationOpAdaptor as ManualComputationOpAdaptor, MeshAttr as MeshAttr, MeshAxisAttr as MeshAxisAttr,
    MeshOp as MeshOp, MeshOpAdaptor as MeshOpAdaptor, NamedComputationOp as NamedComputationOp,
    NamedComputationOpAdaptor as NamedComputationOpAdaptor, OpShardingRuleAttr as OpShardingRuleAttr,
    PropagationBarrierOp as PropagationBarrierOp, PropagationBarrierOpAdaptor as PropagationBarrierOpAdaptor,
    PropagationDirection as PropagationDirection, ReduceScatterOp as ReduceScatterOp, ReduceScatterOpAdaptor as
    ReduceScatterOpAdaptor, ReplicatedToUnreducedOp as ReplicatedToUnreducedOp, ReplicatedToUnreducedOpAdaptor as
    ReplicatedToUnreducedOpAdaptor, ReshardOp as ReshardOp, ReshardOpAdaptor as ReshardOpAdaptor, ReturnOp as
    ReturnOp, ReturnOpAdaptor as ReturnOpAdaptor, ShardedToUnreducedOp as ShardedToUnreducedOp,
    ShardedToUnreducedOpAdaptor as ShardedToUnreducedOpAdaptor, ShardingConstraintOp as ShardingConstraintOp,
    ShardingConstraintOpAdaptor as ShardingConstraintOpAdaptor, ShardingGroupOp as ShardingGroupOp,
    ShardingGroupOpAdaptor as ShardingGroupOpAdaptor, SubAxisInfoAttr as SubAxisInfoAttr, TensorMappingAttr as
    TensorMappingAttr, TensorShardingAttr as TensorShardingAttr, TensorShardingPerValueAttr as
    TensorShardingPerValueAttr, all_gather as all_gather, all_reduce as all_reduce, all_slice as all_slice, all_to_all
    as all_to_all, auto as auto, builtins as builtins, collective_permute as collective_permute, constant as constant,
    data_flow_edge as data_flow_edge, func_data_flow_edge as func_data_flow_edge,
    get_version_from_compatibility_requirement as get_version_from_compatibility_requirement, manual_computation as
    manual_computation, mesh as mesh, named_computation as named_computation, propagation_barrier as
    propagation_barrier, reduce_scatter as reduce_scatter, register_attribute_builder as register_attribute_builder,
    register_dialect as register_dialect, replicated_to_unreduced as replicated_to_unreduced, reshard as reshard,
    return_ as return_, sharded_to_unreduced as sharded_to_unreduced, sharding_constraint as sharding_constraint,
    sharding_group as sharding_group)
