"""jax.extend.mlir.dialects.func: the bindings of the dialect."""

from minijax.run.programs.bindings import func as _bindings

__getattr__, __dir__ = _bindings.__getattr__, _bindings.__dir__
