# The names of this module's table, written by tests/write_stubs.py.

from minijax.extend.mlir.dialects import arith as arith
from minijax.extend.mlir.dialects import builtin as builtin
from minijax.extend.mlir.dialects import chlo as chlo
from minijax.extend.mlir.dialects import func as func
from minijax.extend.mlir.dialects import math as math
from minijax.extend.mlir.dialects import memref as memref
from minijax.extend.mlir.dialects import mpmd as mpmd
from minijax.extend.mlir.dialects import scf as scf
from minijax.extend.mlir.dialects import sdy as sdy
from minijax.extend.mlir.dialects import sparse_tensor as sparse_tensor
from minijax.extend.mlir.dialects import stablehlo as stablehlo
from minijax.extend.mlir.dialects import vector as vector

__all__ = [
    "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor", "stablehlo", "vector"
]
