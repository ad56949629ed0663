# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend import backend as backend
from minijax.extend import core as core
from minijax.extend import ifrt_programs as ifrt_programs
from minijax.extend import linear_util as linear_util
from minijax.extend import lowering as lowering
from minijax.extend import mlir as mlir
from minijax.extend import pallas as pallas
from minijax.extend import random as random
from minijax.extend import sharding as sharding
from minijax.extend import source_info_util as source_info_util
from minijax.extend import xla as xla

__all__ = [
    "backend", "core", "ifrt_programs", "linear_util", "lowering", "mlir", "pallas", "random", "sharding",
    "source_info_util", "xla"
]
