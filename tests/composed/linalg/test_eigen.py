"""Eigenvalues with every option, and reduced forms of matrices, against jax."""

import numpy as np
import pytest
from compare import same_refusal, sweep
from linalg_cases import case, matrix, same_on_platforms, same_refusals, with_doubles
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

DTYPES = (np.float32, np.complex64)
REDUCED = [
    ("hessenberg", {}),
    ("schur", {}),
    ("schur", dict(compute_schur_vectors=False)),
    ("tridiagonal", {}),
    ("tridiagonal", dict(lower=False)),
]
HERMITIAN = [
    dict(lower=False),
    dict(symmetrize_input=False),
    dict(sort_eigenvalues=False),
    dict(subset_by_index=(0, 3)),
    dict(implementation="EighImplementation.QR"),
]
SIDES = [
    dict(compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    for left in (True, False)
    for right in (True, False)
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reduced_forms_equal_jax_s(dtype):
    cases = [case(f, matrix(*b, 3, 3, dtype=dtype), **how) for f, how in REDUCED for b in ((), (2,), (2, 2))]
    small = [case(f, matrix(1, 1, dtype=dtype), **how) for f, how in REDUCED]
    sweep([*cases, *small, case("schur", matrix(0, 0, dtype=dtype))])
    if dtype is np.float32:
        sweep([transformed(case(f, matrix(3, 3), **how), t) for f, how in REDUCED for t in ("vmap", "jvp")])


def test_hermitian_options_equal_jax_s():
    sweep([case("eigh", matrix(2, 3, 3, dtype=d), **how) for d in DTYPES for how in HERMITIAN])
    sweep([case("eigh", x) for x in (matrix(0, 0), matrix(1, 1), matrix(0, 2, 2), np.ones((2, 2), int))])
    partial = case("eigh", matrix(3, 3), subset_by_index=(0, 2))
    same_refusals([partial, transformed(partial, "jvp")])
    ways = [dict(implementation=f"EighImplementation.{name}") for name in ("JACOBI", "QDWH")]
    same_refusals([case("eigh", matrix(3, 3), **how) for how in ways])


def test_general_options_equal_jax_s():
    sweep([case("eig", matrix(3, 3, dtype=d), **how) for d in DTYPES for how in SIDES])
    sweep([case("eig", matrix(3, 3), implementation="EigImplementation.LAPACK"), case("eig", matrix(1, 1))])
    same_refusals([case("eig", matrix(3, 3), implementation="EigImplementation.MAGMA")])


def test_double_precision_equals_jax_s():
    x, z = matrix(3, 3, dtype=np.float64), matrix(3, 3, dtype=np.complex128)
    with_doubles([case(f, y, **how) for f, how in [*REDUCED, ("eigh", {}), ("eig", {})] for y in (x, z)])


def test_texts_for_other_platforms_equal_jax_s():
    x = matrix(2, 3, 3)
    same_on_platforms([case(f, x, **how) for f, how in REDUCED])
    names = ("QR", "JACOBI", "QDWH")
    same_on_platforms([case("eigh", x, implementation=f"EighImplementation.{name}") for name in names])
    same_on_platforms([case("eigh", x, lower=False, sort_eigenvalues=False), case("eig", x, **SIDES[1])])
    same_on_platforms([case("eig", matrix(3, 3, dtype=np.complex64), **SIDES[2])])
    ways = [dict(implementation=f"EigImplementation.{name}") for name in ("MAGMA", "LAPACK")]
    same_on_platforms([case("eig", x, **how) for how in ways], ("cuda", "rocm"))


def test_arguments_that_do_not_fit_are_refused():
    wrong = [
        np.zeros(s, d) for s, d in (((3,), np.float32), ((3, 2), np.float32), ((2, 2), np.int32), ((2, 2), np.float16))
    ]
    names = [f for f in ("hessenberg", "schur", "tridiagonal", "eig") for _ in wrong]
    same_refusals([case(f, x) for f, x in zip(names, wrong * 4, strict=True)])
    same_refusals([case("tridiagonal", np.zeros((0, 0), np.float32)), case("schur", matrix(3, 3), sort_eig_vals=True)])


@pytest.mark.oracle
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_routines_for_gpus_refuse_narrow_floats(dtype, platform):
    def program(jax):
        x = jax.ShapeDtypeStruct((4, 4), dtype)
        return lambda: jax.jit(jax.lax.linalg.eig).trace(x).lower(lowering_platforms=(platform,))

    same_refusal(program, ["Unsupported dtype", dtype])
