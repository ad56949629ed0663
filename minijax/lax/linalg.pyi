# The names of this module's table, written by tests/write_stubs.py.

from minijax.composed.linalg.eigen import EigImplementation as EigImplementation
from minijax.composed.linalg.eigen import EighImplementation as EighImplementation
from minijax.composed.linalg.eigen import Hessenberg
from minijax.composed.linalg.eigen import Schur
from minijax.composed.linalg.eigen import Tridiagonal
from minijax.composed.linalg.eigen import eig as eig
from minijax.composed.linalg.eigen import eig_p as eig_p
from minijax.composed.linalg.eigen import eigh as eigh
from minijax.composed.linalg.eigen import eigh_p as eigh_p
from minijax.composed.linalg.eigen import hessenberg as hessenberg
from minijax.composed.linalg.eigen import schur as schur
from minijax.composed.linalg.eigen import tridiagonal as tridiagonal
from minijax.composed.linalg.lu import HouseholderProduct
from minijax.composed.linalg.lu import LU
from minijax.composed.linalg.lu import LUPivotsToPermutation
from minijax.composed.linalg.lu import Ormqr
from minijax.composed.linalg.lu import householder_product as householder_product
from minijax.composed.linalg.lu import lu as lu
from minijax.composed.linalg.lu import lu_pivots_to_permutation as lu_pivots_to_permutation
from minijax.composed.linalg.lu import ormqr as ormqr
from minijax.composed.linalg.lu import qr as qr
from minijax.composed.linalg.lu import qr_p as qr_p
from minijax.composed.linalg.polar import qdwh as qdwh
from minijax.composed.linalg.svd import SvdAlgorithm as SvdAlgorithm
from minijax.composed.linalg.svd import svd as svd
from minijax.composed.linalg.svd import svd_p as svd_p
from minijax.composed.linalg.triangular import Cholesky
from minijax.composed.linalg.triangular import CholeskyUpdate
from minijax.composed.linalg.triangular import SymmetricProduct
from minijax.composed.linalg.triangular import TriangularSolve
from minijax.composed.linalg.triangular import cholesky as cholesky
from minijax.composed.linalg.triangular import cholesky_update as cholesky_update
from minijax.composed.linalg.triangular import symmetric_product as symmetric_product
from minijax.composed.linalg.triangular import triangular_solve as triangular_solve
from minijax.composed.linalg.triangular import tridiagonal_solve as tridiagonal_solve
from minijax.composed.linalg.triangular import tridiagonal_solve_p as tridiagonal_solve_p

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
    "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "householder_product",
    "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr",
    "ormqr_p", "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p"
]

hessenberg_p: Hessenberg
schur_p: Schur
tridiagonal_p: Tridiagonal
householder_product_p: HouseholderProduct
lu_p: LU
lu_pivots_to_permutation_p: LUPivotsToPermutation
ormqr_p: Ormqr
cholesky_p: Cholesky
cholesky_update_p: CholeskyUpdate
symmetric_product_p: SymmetricProduct
triangular_solve_p: TriangularSolve
