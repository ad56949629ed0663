"""jax.extend.mlir.dialects.sparse_tensor: the bindings of the dialect."""

from minijax.run.programs.bindings import sparse_tensor as _bindings

__getattr__, __dir__ = _bindings.__getattr__, _bindings.__dir__
