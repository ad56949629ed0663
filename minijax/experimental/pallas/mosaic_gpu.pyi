# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

__all__ = [
    "ACC", "Barrier", "BlockSpec", "ClusterBarrier", "CompilerParams", "CopyPartition", "GMEM", "Layout",
    "LoweringSemantics", "MemorySpace", "Mesh", "NDLoopInfo", "OOBFillMode", "PeerMemRef", "PipelinePipeline", "REGS",
    "RefType", "RefUnion", "Replicated", "SMEM", "SemaphoreSignal", "SemaphoreType", "ShapeDtypeStruct",
    "SwizzleTransform", "TMEM", "TMEMLayout", "Tiling", "TilingTransform", "TraceScope", "Transform",
    "TryClusterCancelResult", "WGMMAAccumulatorRef", "WarpMesh", "as_torch_kernel", "async_copy_scales_to_tmem",
    "async_copy_smem_to_tmem", "async_copy_sparse_metadata_to_tmem", "async_load_tmem", "async_prefetch",
    "async_store_smem", "async_store_tmem", "atomic_add", "atomic_and", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xor", "barrier_arrive", "barrier_test", "barrier_wait", "broadcasted_iota", "cluster_ref", "commit_smem",
    "commit_smem_to_gmem_group", "commit_tmem", "copy_gmem_to_smem", "copy_smem_to_gmem", "dynamic_scheduling_loop",
    "emit_pipeline", "emit_pipeline_warp_specialized", "find_swizzle", "format_tcgen05_sparse_metadata",
    "griddepcontrol_launch_dependents", "griddepcontrol_wait", "inline_mgpu", "kernel", "layout_cast", "load",
    "multicast_ref", "multimem_load_reduce", "multimem_store", "nd_loop", "planar_snake", "print_layout",
    "query_cluster_cancel", "remote_ref", "semaphore_signal", "semaphore_signal_multicast",
    "semaphore_signal_parallel", "semaphore_wait", "set_max_registers", "tcgen05_commit_arrive", "tcgen05_mma",
    "transform_ref", "transpose_ref", "try_cluster_cancel", "wait_load_tmem", "wait_smem_to_gmem", "warp_map",
    "wgmma", "wgmma_accumulator_load", "wgmma_wait"
]

ACC: Any
Barrier: Any
BlockSpec: Any
ClusterBarrier: Any
CompilerParams: Any
CopyPartition: Any
GMEM: Any
Layout: Any
LoweringSemantics: Any
MemorySpace: Any
Mesh: Any
NDLoopInfo: Any
OOBFillMode: Any
PeerMemRef: Any
PipelinePipeline: Any
REGS: Any
RefType: Any
RefUnion: Any
Replicated: Any
SMEM: Any
SemaphoreSignal: Any
SemaphoreType: Any
ShapeDtypeStruct: Any
SwizzleTransform: Any
TMEM: Any
TMEMLayout: Any
Tiling: Any
TilingTransform: Any
TraceScope: Any
Transform: Any
TryClusterCancelResult: Any
WGMMAAccumulatorRef: Any
WarpMesh: Any
as_torch_kernel: Any
async_copy_scales_to_tmem: Any
async_copy_smem_to_tmem: Any
async_copy_sparse_metadata_to_tmem: Any
async_load_tmem: Any
async_prefetch: Any
async_store_smem: Any
async_store_tmem: Any
atomic_add: Any
atomic_and: Any
atomic_max: Any
atomic_min: Any
atomic_or: Any
atomic_xor: Any
barrier_arrive: Any
barrier_test: Any
barrier_wait: Any
broadcasted_iota: Any
cluster_ref: Any
commit_smem: Any
commit_smem_to_gmem_group: Any
commit_tmem: Any
copy_gmem_to_smem: Any
copy_smem_to_gmem: Any
dynamic_scheduling_loop: Any
emit_pipeline: Any
emit_pipeline_warp_specialized: Any
find_swizzle: Any
format_tcgen05_sparse_metadata: Any
griddepcontrol_launch_dependents: Any
griddepcontrol_wait: Any
inline_mgpu: Any
kernel: Any
layout_cast: Any
load: Any
multicast_ref: Any
multimem_load_reduce: Any
multimem_store: Any
nd_loop: Any
planar_snake: Any
print_layout: Any
query_cluster_cancel: Any
remote_ref: Any
semaphore_signal: Any
semaphore_signal_multicast: Any
semaphore_signal_parallel: Any
semaphore_wait: Any
set_max_registers: Any
tcgen05_commit_arrive: Any
tcgen05_mma: Any
transform_ref: Any
transpose_ref: Any
try_cluster_cancel: Any
wait_load_tmem: Any
wait_smem_to_gmem: Any
warp_map: Any
wgmma: Any
wgmma_accumulator_load: Any
wgmma_wait: Any
