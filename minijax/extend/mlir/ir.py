"""jax.extend.mlir.ir: MLIR bindings of jaxlib."""

from minijax.run.programs.bindings import ir as _bindings

__getattr__, __dir__ = _bindings.__getattr__, _bindings.__dir__
