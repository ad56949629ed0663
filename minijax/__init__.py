"""JAX's API over jaxlib's XLA: `import minijax as jax`."""

import importlib
import os

from minijax.base.faces import Face

Face.operators = "minijax.numpy"
__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.transfer: block_until_ready copy_to_host_async device_get device_put ensure_compile_time_eval
    make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays named_call
    named_scope
minijax.api.autodiff: fwd_and_bwd grad hessian jacfwd jacobian jacrev jvp linear_transpose linearize value_and_grad
    vjp
minijax.api.checkpoint: checkpoint checkpoint_policies remat
minijax.api.cotangents: ad
minijax.api.custom: closure_convert custom_gradient custom_jvp custom_vjp
minijax.api.environment: print_environment_info
minijax.api.jit: eval_shape jit make_jaxpr
minijax.api.meshes: make_mesh reshard
minijax.api.pmap: pmap
minijax.api.shapes: ShapeDtypeStruct typeof
minijax.api.shard_map: shard_map smap
minijax.api.vmap: vmap
minijax.explaining.leaks: find_leak
minijax.explaining.nans: find_nan
minijax.interop.alias: install
minijax.base.cache: clear_caches
minijax.base.config: allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks checking_leaks
    config debug_infs debug_key_reuse debug_nans default_device default_matmul_precision default_prng_impl disable_jit
    enable_checks enable_custom_prng enable_x64 explain_cache_misses jax2tf_associative_scan_reductions
    legacy_prng_key log_compiles make_user_context no_execution no_tracing numpy_dtype_promotion numpy_rank_promotion
    remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard threefry_partitionable transfer_guard
    transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device
minijax.base.dtypes: float0
minijax.explaining.explain: diff explain
minijax.dispatch.explain: RecompileError recompile_budget
minijax.partition.meshes: set_mesh
minijax.ir.refs: Ref
minijax.partition.shardings: NamedSharding P=PartitionSpec
minijax.primitives.gather_dims: ds=dslice
minijax.base.naming: __version__=VERSION __version_info__=VERSION_INFO
minijax.composed.callbacks.callback: pure_callback
minijax.composed.refs: empty_ref free_ref freeze new_ref
minijax.run.arrays.array: Array Shard live_arrays
minijax.run.programs.tokens: effects_barrier
minijax.run.clients.machines: devices_of
minijax.run.clients.client: Device default_backend device_count devices host_count host_id host_ids local_device_count
    local_devices process_count process_index process_indices
""",
    """
    api_util core custom_batching custom_derivatives debug distributed dlpack dtypes errors experimental export ffi
    image interpreters kernels lax lib memory monitoring nn numpy ops profiler random ref scipy sharding stages tree
    tree_util typing version
""".split(),
    later="ad_checkpoint cloud_tpu_init example_libraries extend flatten_util test_util tools".split(),
    removed={
        "jax.{0} is deprecated; use jax.device_put instead. See https://docs.jax.dev/en/latest/migrate_pmap.html"
        "#drop-in-replacements for a drop-in replacement.": "device_put_replicated device_put_sharded",
        "module 'jax' has no attribute '{0}'; use jax.tree_util.{0}.": """
        tree_all tree_flatten tree_leaves tree_map tree_reduce tree_structure tree_transpose tree_unflatten
        treedef_is_leaf
    """,
        "module 'jax' has no attribute '{0}'; use jax.core.ShapedArray.": "ShapedArray abstract_arrays",
        "module 'jax' has no attribute '{0}'; use jax.Array.": "Buffer DeviceArray",
        "module 'jax' has no attribute '{0}'; use jax.extend.{0}.": "linear_util",
        "module 'jax' has no attribute '{0}'; use jax.extend.random.": "prng",
        "module 'jax' has no attribute '{0}'; use jax.extend.backend.clear_backends.": "clear_backends",
        "module 'jax' has no attribute '{0}'; use jax.jit(f).lower(...).compiler_ir('hlo').": "xla_computation",
        "module 'jax' has no attribute '{0}'; use jax.new_ref.": "array_ref mutable_array",
        "module 'jax' has no attribute '{0}'; use jax.Ref.": "ArrayRef MutableArray",
        "module 'jax' has no attribute '{0}'; use jax.shard_map.": "soft_pmap",
        "module 'jax' has no attribute '{0}'; use jax.interpreters.xla.": "xla",
    },
)

if os.environ.get("MINIJAX_REPORT"):
    importlib.import_module("minijax.explaining.report").switch_on(os.environ["MINIJAX_REPORT"])
