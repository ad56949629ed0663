# The names of this module's table, written by tests/write_stubs.py.

from minijax import ad_checkpoint as ad_checkpoint
from minijax import api_util as api_util
from minijax import cloud_tpu_init as cloud_tpu_init
from minijax import core as core
from minijax import custom_batching as custom_batching
from minijax import custom_derivatives as custom_derivatives
from minijax import debug as debug
from minijax import distributed as distributed
from minijax import dlpack as dlpack
from minijax import dtypes as dtypes
from minijax import errors as errors
from minijax import example_libraries as example_libraries
from minijax import experimental as experimental
from minijax import export as export
from minijax import extend as extend
from minijax import ffi as ffi
from minijax import flatten_util as flatten_util
from minijax import image as image
from minijax import interpreters as interpreters
from minijax import kernels as kernels
from minijax import lax as lax
from minijax import lib as lib
from minijax import memory as memory
from minijax import monitoring as monitoring
from minijax import nn as nn
from minijax import numpy as numpy
from minijax import ops as ops
from minijax import profiler as profiler
from minijax import random as random
from minijax import ref as ref
from minijax import scipy as scipy
from minijax import sharding as sharding
from minijax import stages as stages
from minijax import test_util as test_util
from minijax import tools as tools
from minijax import tree as tree
from minijax import tree_util as tree_util
from minijax import typing as typing
from minijax import version as version
from minijax.api.autodiff import fwd_and_bwd as fwd_and_bwd
from minijax.api.autodiff import grad as grad
from minijax.api.autodiff import hessian as hessian
from minijax.api.autodiff import jacfwd as jacfwd
from minijax.api.autodiff import jacobian as jacobian
from minijax.api.autodiff import jacrev as jacrev
from minijax.api.autodiff import jvp as jvp
from minijax.api.autodiff import linear_transpose as linear_transpose
from minijax.api.autodiff import linearize as linearize
from minijax.api.autodiff import value_and_grad as value_and_grad
from minijax.api.autodiff import vjp as vjp
from minijax.api.checkpoint import checkpoint as checkpoint
from minijax.api.checkpoint import remat as remat
from minijax.api.custom import closure_convert as closure_convert
from minijax.api.custom import custom_gradient as custom_gradient
from minijax.api.custom import custom_jvp as custom_jvp
from minijax.api.custom import custom_vjp as custom_vjp
from minijax.api.environment import print_environment_info as print_environment_info
from minijax.api.jit import eval_shape as eval_shape
from minijax.api.jit import jit as jit
from minijax.api.jit import make_jaxpr as make_jaxpr
from minijax.api.meshes import make_mesh as make_mesh
from minijax.api.meshes import reshard as reshard
from minijax.api.pmap import pmap as pmap
from minijax.api.shapes import ShapeDtypeStruct as ShapeDtypeStruct
from minijax.api.shapes import typeof as typeof
from minijax.api.shard_map import shard_map as shard_map
from minijax.api.shard_map import smap as smap
from minijax.api.transfer import block_until_ready as block_until_ready
from minijax.api.transfer import copy_to_host_async as copy_to_host_async
from minijax.api.transfer import device_get as device_get
from minijax.api.transfer import device_put as device_put
from minijax.api.transfer import ensure_compile_time_eval as ensure_compile_time_eval
from minijax.api.transfer import make_array_from_callback as make_array_from_callback
from minijax.api.transfer import make_array_from_process_local_data as make_array_from_process_local_data
from minijax.api.transfer import make_array_from_single_device_arrays as make_array_from_single_device_arrays
from minijax.api.transfer import named_call as named_call
from minijax.api.transfer import named_scope as named_scope
from minijax.api.vmap import vmap as vmap
from minijax.base.cache import clear_caches as clear_caches
from minijax.base.config import Option
from minijax.base.config import config as config
from minijax.base.config import disable_jit as disable_jit
from minijax.base.config import make_user_context as make_user_context
from minijax.base.config import transfer_guard as transfer_guard
from minijax.composed.callbacks.callback import pure_callback as pure_callback
from minijax.composed.refs import empty_ref as empty_ref
from minijax.composed.refs import free_ref as free_ref
from minijax.composed.refs import freeze as freeze
from minijax.composed.refs import new_ref as new_ref
from minijax.dispatch.explain import RecompileError as RecompileError
from minijax.dispatch.explain import recompile_budget as recompile_budget
from minijax.explaining.explain import diff as diff
from minijax.explaining.explain import explain as explain
from minijax.explaining.leaks import find_leak as find_leak
from minijax.explaining.nans import find_nan as find_nan
from minijax.interop.alias import install as install
from minijax.ir.refs import Ref as Ref
from minijax.partition.meshes import set_mesh as set_mesh
from minijax.partition.shardings import NamedSharding as NamedSharding
from minijax.partition.shardings import PartitionSpec as P
from minijax.primitives.gather_dims import dslice as ds
from minijax.run.arrays.array import Array as Array
from minijax.run.arrays.array import Shard as Shard
from minijax.run.arrays.array import live_arrays as live_arrays
from minijax.run.clients.client import Device as Device
from minijax.run.clients.client import default_backend as default_backend
from minijax.run.clients.client import device_count as device_count
from minijax.run.clients.client import devices as devices
from minijax.run.clients.client import host_count as host_count
from minijax.run.clients.client import host_id as host_id
from minijax.run.clients.client import host_ids as host_ids
from minijax.run.clients.client import local_device_count as local_device_count
from minijax.run.clients.client import local_devices as local_devices
from minijax.run.clients.client import process_count as process_count
from minijax.run.clients.client import process_index as process_index
from minijax.run.clients.client import process_indices as process_indices
from minijax.run.clients.machines import devices_of as devices_of
from minijax.run.programs.tokens import effects_barrier as effects_barrier
from numpy.dtypes import VoidDType
from types import SimpleNamespace
from typing import Any

__all__ = [
    "Array", "Device", "NamedSharding", "P", "RecompileError", "Ref", "ShapeDtypeStruct", "Shard", "ad",
    "ad_checkpoint", "allow_f16_reductions", "api_util", "array_garbage_collection_guard", "auto_pcast",
    "block_until_ready", "check_tracer_leaks", "checking_leaks", "checkpoint", "checkpoint_policies", "clear_caches",
    "closure_convert", "cloud_tpu_init", "config", "copy_to_host_async", "core", "custom_batching",
    "custom_derivatives", "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse",
    "debug_nans", "default_backend", "default_device", "default_matmul_precision", "default_prng_impl",
    "device_count", "device_get", "device_put", "devices", "devices_of", "diff", "disable_jit", "distributed",
    "dlpack", "ds", "dtypes", "effects_barrier", "empty_ref", "enable_checks", "enable_custom_prng", "enable_x64",
    "ensure_compile_time_eval", "errors", "eval_shape", "example_libraries", "experimental", "explain",
    "explain_cache_misses", "export", "extend", "ffi", "find_leak", "find_nan", "flatten_util", "float0", "free_ref",
    "freeze", "fwd_and_bwd", "grad", "hessian", "host_count", "host_id", "host_ids", "image", "install",
    "interpreters", "jacfwd", "jacobian", "jacrev", "jax2tf_associative_scan_reductions", "jit", "jvp", "kernels",
    "lax", "legacy_prng_key", "lib", "linear_transpose", "linearize", "live_arrays", "local_device_count",
    "local_devices", "log_compiles", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_user_context", "memory", "monitoring",
    "named_call", "named_scope", "new_ref", "nn", "no_execution", "no_tracing", "numpy", "numpy_dtype_promotion",
    "numpy_rank_promotion", "ops", "pmap", "print_environment_info", "process_count", "process_index",
    "process_indices", "profiler", "pure_callback", "random", "recompile_budget", "ref", "remat",
    "remove_size_one_mesh_axis_from_type", "reshard", "scipy", "set_mesh", "shard_map", "sharding", "smap",
    "softmax_custom_jvp", "stages", "test_util", "thread_guard", "threefry_partitionable", "tools", "transfer_guard",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host", "transfer_guard_host_to_device", "tree",
    "tree_util", "typeof", "typing", "value_and_grad", "version", "vjp", "vmap"
]

checkpoint_policies: SimpleNamespace
ad: SimpleNamespace
allow_f16_reductions: Option
array_garbage_collection_guard: Option
auto_pcast: Option
check_tracer_leaks: Option
def checking_leaks() -> Any: ...
debug_infs: Option
debug_key_reuse: Option
debug_nans: Option
default_device: Option
default_matmul_precision: Option
default_prng_impl: Option
enable_checks: Option
enable_custom_prng: Option
enable_x64: Option
explain_cache_misses: Option
jax2tf_associative_scan_reductions: Option
legacy_prng_key: Option
log_compiles: Option
no_execution: Option
no_tracing: Option
numpy_dtype_promotion: Option
numpy_rank_promotion: Option
remove_size_one_mesh_axis_from_type: Option
softmax_custom_jvp: Option
thread_guard: Option
threefry_partitionable: Option
transfer_guard_device_to_device: Option
transfer_guard_device_to_host: Option
transfer_guard_host_to_device: Option
float0: VoidDType
__version__: str
__version_info__: tuple
