"""jax.extend.mlir.dialects: one module for each dialect."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {},
    """
    arith builtin chlo func math memref mpmd scf sdy sparse_tensor stablehlo vector
""".split(),
)
