"""jax.interpreters: the rules of primitives."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {}, ("ad", "batching", "mlir", "partial_eval", "pxla", "xla"))
