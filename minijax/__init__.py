"""JAX's API over jaxlib's XLA: `import minijax as jax`."""

import importlib

from minijax.api.assembly import (
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from minijax.api.autodiff import (
    fwd_and_bwd as fwd_and_bwd,
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from minijax.api.checkpoint import checkpoint as checkpoint, checkpoint_policies as checkpoint_policies, remat as remat
from minijax.api.custom import custom_gradient as custom_gradient, custom_jvp as custom_jvp, custom_vjp as custom_vjp
from minijax.api.custom_tools import closure_convert as closure_convert
from minijax.api.environment import effects_barrier as effects_barrier, print_environment_info as print_environment_info
from minijax.api.jit import eval_shape as eval_shape, jit as jit, make_jaxpr as make_jaxpr
from minijax.api.meshes import make_mesh as make_mesh, reshard as reshard
from minijax.api.pmap import pmap as pmap
from minijax.api.shapes import ShapeDtypeStruct as ShapeDtypeStruct, typeof as typeof
from minijax.api.shard_map import shard_map as shard_map, smap as smap
from minijax.api.transfer import (
    block_until_ready as block_until_ready,
    copy_to_host_async as copy_to_host_async,
    device_get as device_get,
    device_put as device_put,
    ensure_compile_time_eval as ensure_compile_time_eval,
    named_call as named_call,
    named_scope as named_scope,
)
from minijax.api.vmap import vmap as vmap
from minijax.base.alias import install as install
from minijax.base.cache import clear_caches as clear_caches
from minijax.base.config import (
    allow_f16_reductions as allow_f16_reductions,
    array_garbage_collection_guard as array_garbage_collection_guard,
    auto_pcast as auto_pcast,
    check_tracer_leaks as check_tracer_leaks,
    checking_leaks as checking_leaks,
    config as config,
    debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    disable_jit as disable_jit,
    enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    legacy_prng_key as legacy_prng_key,
    log_compiles as log_compiles,
    make_user_context as make_user_context,
    no_execution as no_execution,
    no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp,
    thread_guard as thread_guard,
    threefry_partitionable as threefry_partitionable,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from minijax.base.dtypes import float0 as float0
from minijax.base.naming import VERSION as __version__, VERSION_INFO as __version_info__  # noqa: F401
from minijax.composed.refs import empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref
from minijax.ir.meshes import set_mesh as set_mesh
from minijax.ir.refs import Ref as Ref
from minijax.ir.shardings import NamedSharding as NamedSharding, PartitionSpec as P  # noqa: F401
from minijax.numpy import methods as _methods  # noqa: F401 (gives arrays their operators)
from minijax.ops.indexing import dslice as ds  # noqa: F401
from minijax.run.array import Array as Array, Shard as Shard, live_arrays as live_arrays
from minijax.run.client import (
    Device as Device,
    default_backend as default_backend,
    device_count as device_count,
    devices as devices,
    host_count as host_count,
    host_id as host_id,
    host_ids as host_ids,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
)

_SUBMODULES = frozenset(
    """
    ad_checkpoint api_util core custom_batching custom_derivatives debug dlpack dtypes errors
    example_libraries extend flatten_util interpreters lax memory monitoring nn numpy ops random ref sharding
    stages tree tree_util typing version
""".split()
)


_REMOVED = frozenset(("device_put_replicated", "device_put_sharded"))


def __getattr__(name: str):
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _REMOVED:
        raise AttributeError(f"jax.{name} is deprecated; use jax.device_put instead")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_SUBMODULES})
