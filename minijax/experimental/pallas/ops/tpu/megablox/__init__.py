"""jax.experimental.pallas.ops.tpu.megablox: products of groups of rows with a matrix for each group."""

from minijax.base.faces import Face
from minijax.experimental.pallas.ops.tpu.megablox import gmm

del gmm  # importing a module sets its name here once: from now on it is that of the function

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_products: gmm=differentiable_gmm
""",
    later=("common", "ops"),
)
