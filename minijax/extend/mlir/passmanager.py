"""jax.extend.mlir.passmanager: MLIR bindings of jaxlib."""

from minijax.run.programs.bindings import passmanager as _bindings

__getattr__, __dir__ = _bindings.__getattr__, _bindings.__dir__
