"""jax.lax.linalg: linear algebra on matrices in the last two axes."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.composed.linalg.eigen: EigImplementation EighImplementation eig eig_p eigh eigh_p hessenberg hessenberg_p
    schur schur_p tridiagonal tridiagonal_p
minijax.composed.linalg.lu: householder_product householder_product_p lu lu_p lu_pivots_to_permutation
    lu_pivots_to_permutation_p ormqr ormqr_p qr qr_p
minijax.composed.linalg.svd: SvdAlgorithm svd svd_p
minijax.composed.linalg.triangular: cholesky cholesky_p cholesky_update cholesky_update_p symmetric_product
    symmetric_product_p triangular_solve triangular_solve_p tridiagonal_solve tridiagonal_solve_p
minijax.composed.linalg.polar: qdwh
""",
)
