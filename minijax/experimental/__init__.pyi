# The names of this module's table, written by tests/write_stubs.py.

from minijax.composed.callbacks.callback import io_callback as io_callback
from minijax.experimental import array_serialization as array_serialization
from minijax.experimental import buffer_callback as buffer_callback
from minijax.experimental import checkify as checkify
from minijax.experimental import colocated_python as colocated_python
from minijax.experimental import compilation_cache as compilation_cache
from minijax.experimental import compute_on as compute_on
from minijax.experimental import control_deps as control_deps
from minijax.experimental import custom_partitioning as custom_partitioning
from minijax.experimental import fused as fused
from minijax.experimental import hijax as hijax
from minijax.experimental import jet as jet
from minijax.experimental import key_reuse as key_reuse
from minijax.experimental import layout as layout
from minijax.experimental import mesh_utils as mesh_utils
from minijax.experimental import mosaic as mosaic
from minijax.experimental import multihost_utils as multihost_utils
from minijax.experimental import ode as ode
from minijax.experimental import pallas as pallas
from minijax.experimental import pjit as pjit
from minijax.experimental import profiler as profiler
from minijax.experimental import random as random
from minijax.experimental import rnn as rnn
from minijax.experimental import roofline as roofline
from minijax.experimental import scheduling_groups as scheduling_groups
from minijax.experimental import serialize_executable as serialize_executable
from minijax.experimental import shard_alike as shard_alike
from minijax.experimental import shard_map as shard_map
from minijax.experimental import source_mapper as source_mapper
from minijax.experimental import sparse as sparse
from minijax.experimental import topologies as topologies
from minijax.experimental import transfer as transfer
from minijax.experimental import xla_metadata as xla_metadata
from minijax.interop.primal_tangent import primal_tangent_dtype as primal_tangent_dtype
from minijax.ir.hitypes import cur_qdd as cur_qdd
from minijax.run.arrays.array import EArray as EArray

__all__ = [
    "EArray", "array_serialization", "buffer_callback", "checkify", "colocated_python", "compilation_cache",
    "compute_on", "control_deps", "cur_qdd", "custom_partitioning", "fused", "hijax", "io_callback", "jet",
    "key_reuse", "layout", "mesh_utils", "mosaic", "multihost_utils", "ode", "pallas", "pjit", "primal_tangent_dtype",
    "profiler", "random", "rnn", "roofline", "scheduling_groups", "serialize_executable", "shard_alike", "shard_map",
    "source_mapper", "sparse", "topologies", "transfer", "xla_metadata"
]
