"""jax.interpreters: the rules of primitives."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("ad", "batching", "mlir", "partial_eval", "pxla", "xla"), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
