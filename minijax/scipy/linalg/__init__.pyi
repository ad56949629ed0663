# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.linalg.factors import eigh as eigh
from minijax.scipy.linalg.factors import expm as expm
from minijax.scipy.linalg.factors import expm_frechet as expm_frechet
from minijax.scipy.linalg.factors import funm as funm
from minijax.scipy.linalg.factors import hessenberg as hessenberg
from minijax.scipy.linalg.factors import lu as lu
from minijax.scipy.linalg.factors import polar as polar
from minijax.scipy.linalg.factors import qr as qr
from minijax.scipy.linalg.factors import qr_multiply as qr_multiply
from minijax.scipy.linalg.factors import rsf2csf as rsf2csf
from minijax.scipy.linalg.factors import schur as schur
from minijax.scipy.linalg.factors import solve_sylvester as solve_sylvester
from minijax.scipy.linalg.factors import sqrtm as sqrtm
from minijax.scipy.linalg.factors import svd as svd
from minijax.scipy.linalg.systems import cho_factor as cho_factor
from minijax.scipy.linalg.systems import cho_solve as cho_solve
from minijax.scipy.linalg.systems import cholesky as cholesky
from minijax.scipy.linalg.systems import det as det
from minijax.scipy.linalg.systems import inv as inv
from minijax.scipy.linalg.systems import lu_factor as lu_factor
from minijax.scipy.linalg.systems import lu_solve as lu_solve
from minijax.scipy.linalg.systems import solve as solve
from minijax.scipy.linalg.systems import solve_triangular as solve_triangular
from minijax.scipy.linalg.tridiagonal import eigh_tridiagonal as eigh_tridiagonal
from minijax.scipy.linalg.windows import block_diag as block_diag
from minijax.scipy.linalg.windows import circulant as circulant
from minijax.scipy.linalg.windows import companion as companion
from minijax.scipy.linalg.windows import convolution_matrix as convolution_matrix
from minijax.scipy.linalg.windows import dft as dft
from minijax.scipy.linalg.windows import fiedler as fiedler
from minijax.scipy.linalg.windows import fiedler_companion as fiedler_companion
from minijax.scipy.linalg.windows import hadamard as hadamard
from minijax.scipy.linalg.windows import hankel as hankel
from minijax.scipy.linalg.windows import helmert as helmert
from minijax.scipy.linalg.windows import hilbert as hilbert
from minijax.scipy.linalg.windows import invhilbert as invhilbert
from minijax.scipy.linalg.windows import invpascal as invpascal
from minijax.scipy.linalg.windows import leslie as leslie
from minijax.scipy.linalg.windows import pascal as pascal
from minijax.scipy.linalg.windows import toeplitz as toeplitz

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det", "dft",
    "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard", "hankel",
    "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor", "lu_solve",
    "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester", "solve_triangular",
    "sqrtm", "svd", "toeplitz"
]
