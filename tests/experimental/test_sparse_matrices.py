"""COO, CSR and CSC: buffers, jaxprs, products, derivatives and errors, against jax."""

import numpy as np
import pytest
from compare import Case, same, same_jaxpr, sweep

import minijax as jax
from minijax.experimental import sparse

oracle = pytest.mark.oracle
M = np.array([[1, 0, 2, 0], [0, 0, 3, 0], [0, 4, 0, 5]], np.float32)
FORMATS = ("COO", "CSR", "CSC")
CLOSE = {"rtol": 1e-6, "atol": 0, "why": "XLA orders the sums of a group's programs in another way"}


def dense(mat):
    """The buffers of a sparse matrix, its other attributes, and the dense array."""
    buffers, metadata = mat.tree_flatten()
    return buffers, sorted(metadata.items()), mat.todense(), str(mat), mat.nse, mat.size


def of_format(name, use):
    return lambda sparse: use(getattr(sparse, name))


MADE = {
    "nonzero": lambda cls: dense(cls.fromdense(M)),
    "padded": lambda cls: dense(cls.fromdense(M, nse=7)),
    "cut": lambda cls: dense(cls.fromdense(M, nse=3)),
    "narrow": lambda cls: dense(cls.fromdense(M.astype(np.int8), index_dtype=np.int16)),
    "transposed": lambda cls: [dense(cls.fromdense(M).T), dense(cls.fromdense(M).T.T)],
    "no rows": lambda cls: dense(cls.fromdense(M[:0])),
    "zeros": lambda cls: dense(cls._empty((3, 4))),
    "ones": lambda cls: [dense(cls._eye(3, 4, k)) for k in (-2, 0, 1, 5)],
}


@oracle
@pytest.mark.parametrize("name", FORMATS)
def test_matrices_are_those_of_jax(name):
    for use in MADE.values():
        same(of_format(name, use))


@oracle
def test_indices_are_sorted_as_by_jax():
    same(lambda sparse: dense(sparse.COO.fromdense(M).T._sort_indices()))
    same(lambda sparse: [dense(sparse.empty((2, 3), sparse_format=f)) for f in ("coo", "csr", "csc")])
    same(lambda sparse: [dense(sparse.eye(3, 2, sparse_format=f)) for f in ("coo", "csr", "csc")])


PROGRAMS = {
    "from dense": (lambda jax, cls: lambda x: jax.tree.leaves(cls.fromdense(x, nse=5)), (M,)),
    "to dense": (lambda jax, cls: lambda x: cls.fromdense(x, nse=6).todense() * 2, (M,)),
    "vector": (lambda jax, cls: lambda x, v: cls.fromdense(x, nse=5) @ v, (M, np.arange(4, dtype=np.float32))),
    "matrix": (lambda jax, cls: lambda x, v: cls.fromdense(x, nse=5) @ v, (M, np.ones((4, 2), np.float32))),
    "of the transpose": (lambda jax, cls: lambda x, v: cls.fromdense(x, nse=5).T @ v, (M, np.arange(3))),
    "grad by the elements": (
        lambda jax, cls: jax.grad(lambda x, v: (cls.fromdense(x, nse=5) @ v).sum()), (M, np.arange(4, dtype=np.float32))
    ),
    "grad by the vector": (
        lambda jax, cls: jax.grad(lambda v: (cls.fromdense(M, nse=5) @ v).sum()), (np.arange(4, dtype=np.float32),)
    ),
    "grad by the matrix": (
        lambda jax, cls: jax.grad(lambda B, x: (cls.fromdense(x, nse=5).T @ B).sum(), (0, 1)),
        (np.ones((3, 2), np.float32), M),
    ),
    "jvp": (
        lambda jax, cls: lambda x, v: jax.jvp(lambda x, v: cls.fromdense(x, nse=5) @ v, (x, v), (x, v)),
        (M, np.ones((4, 2), np.float32)),
    ),
    "jit of grad to dense": (
        lambda jax, cls: jax.jit(jax.grad(lambda x: (cls.fromdense(x, nse=6).todense() ** 2).sum())), (M,)
    ),
}  # fmt: skip


@oracle
@pytest.mark.parametrize("name", FORMATS)
def test_programs_are_those_of_jax(name, tier):
    def case(key):
        use, args = PROGRAMS[key]
        return Case(key, lambda jax, sparse: use(jax, getattr(sparse, name)), args, tolerance=CLOSE)

    # jax does not hand on a result that is an argument, where a derivative reads the rows; and it multiplies the
    # wrong elements in derivatives by those of a transposed matrix.
    other = [key for key in PROGRAMS if name != "COO" and ("grad" in key or key == "jvp")]
    sweep([case(key) for key in PROGRAMS if key not in other], tier)
    wrong = {"CSC": "grad by the elements", "CSR": "grad by the matrix"}.get(name)
    sweep([case(key) for key in other if key != wrong], tier, jaxpr=False)


MISUSES = {
    "two sparse ones": lambda cls: cls.fromdense(M) @ cls.fromdense(M),
    "three axes": lambda cls: cls.fromdense(M) @ np.ones((4, 2, 2)),
    "a number": lambda cls: cls.fromdense(M) @ 2,
    "another size": lambda cls: cls.fromdense(M) @ np.ones(3),
    "a vector": lambda cls: cls.fromdense(M[0]),
    "a sum": lambda cls: cls.fromdense(M) + cls.fromdense(M),
    "a slice": lambda cls: cls.fromdense(M)[0],
    "one buffer": lambda cls: cls((np.ones(3),), shape=(3, 4)),
    "axes": lambda cls: cls.fromdense(M).transpose((0, 1)),
    "three sizes": lambda cls: cls._empty((2, 3, 4)),
}


@oracle
@pytest.mark.parametrize("misuse", MISUSES)
def test_bad_calls_are_refused(misuse):
    for name in FORMATS:
        same(of_format(name, MISUSES[misuse]), raises=True)


@oracle
def test_traced_code_gives_the_number_and_batches_are_refused():
    same(lambda jax, sparse: jax.jit(lambda x: sparse.COO.fromdense(x).data)(M), raises=True)
    same(lambda jax, sparse: jax.vmap(lambda x: sparse.CSR.fromdense(x, nse=5).data)(M[None]), raises=True)
    same_jaxpr(lambda jax, sparse: lambda x: sparse.todense(sparse.CSC.fromdense(x, nse=5)), M)


def test_derivatives_by_the_elements_of_a_transpose_are_those_of_the_dense_product():
    B = np.arange(6, dtype=np.float32).reshape(3, 2)
    for name in FORMATS:
        cls = getattr(sparse, name)
        mine = jax.grad(lambda x: ((cls.fromdense(x, nse=5).T @ B) ** 2).sum())(M)  # noqa: B023
        np.testing.assert_allclose(mine, jax.grad(lambda x: ((x.T @ B) ** 2).sum())(M) * (M != 0))


def test_functions_and_methods_agree():
    v, B = np.arange(4.0, dtype=np.float32), np.ones((3, 2), np.float32)
    coo, csr = sparse.coo_fromdense(M), sparse.csr_fromdense(M)
    for mat, vec, mul, back in [
        (coo, sparse.coo_matvec, sparse.coo_matmat, sparse.coo_todense),
        (csr, sparse.csr_matvec, sparse.csr_matmat, sparse.csr_todense),
    ]:
        np.testing.assert_array_equal(vec(mat, v), M @ v)
        np.testing.assert_array_equal(vec(mat, B[:, 0], transpose=True), M.T @ B[:, 0])
        np.testing.assert_array_equal(mul(mat, B, transpose=True), M.T @ B)
        np.testing.assert_array_equal(back(mat), M)
        assert type(jax.tree.map(lambda x: x, mat)) is type(mat)
