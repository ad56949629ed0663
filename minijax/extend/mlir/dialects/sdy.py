"""jax.extend.mlir.dialects.sdy: the bindings of the dialect."""

from minijax.run.programs.bindings import sdy as _bindings

__getattr__, __dir__ = _bindings.__getattr__, _bindings.__dir__
