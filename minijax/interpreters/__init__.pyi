# The names of this module's table, written by tests/write_stubs.py.

from minijax.interpreters import ad as ad
from minijax.interpreters import batching as batching
from minijax.interpreters import mlir as mlir
from minijax.interpreters import partial_eval as partial_eval
from minijax.interpreters import pxla as pxla
from minijax.interpreters import xla as xla

__all__ = [
    "ad", "batching", "mlir", "partial_eval", "pxla", "xla"
]
