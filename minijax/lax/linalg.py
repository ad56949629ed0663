"""jax.lax.linalg: linear algebra on matrices in the last two axes."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {
    "minijax.composed.linalg": """
        EigImplementation EighImplementation SvdAlgorithm eig eig_p eigh eigh_p lu lu_p
        lu_pivots_to_permutation lu_pivots_to_permutation_p svd svd_p
    """,
    "minijax.ops.linalg": """
        cholesky cholesky_p triangular_solve triangular_solve_p
    """,
})  # fmt: skip
__getattr__, __dir__ = _FACE.attribute, _FACE.names
