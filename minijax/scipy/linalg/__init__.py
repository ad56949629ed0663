"""Linear algebra."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.scipy.linalg.systems: cho_factor cho_solve cholesky det inv lu_factor lu_solve solve solve_triangular
minijax.scipy.linalg.factors: eigh expm expm_frechet funm hessenberg lu polar qr qr_multiply rsf2csf schur
    solve_sylvester sqrtm svd
minijax.scipy.linalg.tridiagonal: eigh_tridiagonal
minijax.scipy.linalg.windows: block_diag circulant companion convolution_matrix dft fiedler fiedler_companion hadamard
    hankel helmert hilbert invhilbert invpascal leslie pascal toeplitz
""",
)
