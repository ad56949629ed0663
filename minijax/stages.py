"""jax.stages: the stages of compiling a jitted function."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, "minijax.api.stages: ArgInfo Compiled CompilerOptions Lowered Traced Wrapped"
)
