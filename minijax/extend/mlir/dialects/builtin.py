"""jax.extend.mlir.dialects.builtin: the bindings of the dialect."""

from minijax.run.programs.bindings import builtin as _bindings

__getattr__, __dir__ = _bindings.__getattr__, _bindings.__dir__
