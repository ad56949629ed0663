"""jax.stages: a jitted function on its way to an executable."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), "minijax.api.stages: ArgInfo Compiled CompilerOptions Lowered Traced Wrapped")
__getattr__, __dir__ = _FACE.attribute, _FACE.names
