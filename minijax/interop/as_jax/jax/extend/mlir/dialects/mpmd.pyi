# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects.mpmd import (AssignOp as AssignOp, AssignOpAdaptor as AssignOpAdaptor, BroadcastOp
    as BroadcastOp, BroadcastOpAdaptor as BroadcastOpAdaptor, CallOp as CallOp, CallOpAdaptor as CallOpAdaptor, ForOp
    as ForOp, ForOpAdaptor as ForOpAdaptor, FragmentCallOp as FragmentCallOp, FragmentCallOpAdaptor as
    FragmentCallOpAdaptor, FragmentOp as FragmentOp, FragmentOpAdaptor as FragmentOpAdaptor, NamedComputationOp as
    NamedComputationOp, NamedComputationOpAdaptor as NamedComputationOpAdaptor, NamedTensorOp as NamedTensorOp,
    NamedTensorOpAdaptor as NamedTensorOpAdaptor, ReduceOp as ReduceOp, ReduceOpAdaptor as ReduceOpAdaptor, ReturnOp
    as ReturnOp, ReturnOpAdaptor as ReturnOpAdaptor, TransferOp as TransferOp, TransferOpAdaptor as TransferOpAdaptor,
    UnassignOp as UnassignOp, UnassignOpAdaptor as UnassignOpAdaptor, UserOriginAttr as UserOriginAttr, assign as
    assign, broadcast as broadcast, builtins as builtins, call as call, for_ as for_, fragment as fragment,
    fragment_call as fragment_call, named_computation as named_computation, named_tensor as named_tensor, reduce as
    reduce, register_dialect as register_dialect, return_ as return_, transfer as transfer, unassign as unassign)
