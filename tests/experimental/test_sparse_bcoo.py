"""BCOO: buffers and shapes, from and to dense arrays, against jax."""

import numpy as np
import pytest
from compare import ours
from sparse_language import STACK, M, f32, i32, same_function, same_result

import minijax
from minijax.experimental import sparse

oracle = pytest.mark.oracle


def dense_from(n_batch, n_dense, nse):
    return lambda sparse: lambda x: sparse.bcoo_fromdense(x, nse=nse, n_batch=n_batch, n_dense=n_dense)


@oracle
@pytest.mark.parametrize(
    ("n_batch", "n_dense", "nse"), [(0, 0, 20), (1, 0, 6), (1, 1, 2), (0, 2, 3), (2, 1, 1), (3, 0, 2)]
)
def test_arrays_become_bcoo_and_arrays_again_as_jax_s(n_batch, n_dense, nse):
    same_function(dense_from(n_batch, n_dense, nse), STACK)

    def there_and_back(jax, sparse):
        f = lambda x: dense_from(n_batch, n_dense, nse)(sparse)(x).todense()  # noqa: E731
        return lambda x: (f(x), jax.jvp(f, (x,), (x,))[1], jax.grad(lambda x: (f(x) ** 2).sum())(x))

    same_function(there_and_back, STACK)


DENSE = {
    "mapped data": lambda jax, sparse: jax.vmap(
        lambda d: sparse.bcoo_todense(sparse.BCOO((d, i32([[0, 1], [2, 3]])), shape=(3, 4)))
    ),
    "todense of an array": lambda jax, sparse: jax.vmap(sparse.todense, in_axes=1),
    "todense": lambda jax, sparse: (
        lambda d: jax.value_and_grad(
            lambda d: sparse.todense(sparse.BCOO((d[0], i32([[0, 1], [2, 3]])), shape=(3, 4))).sum()
        )(d)
    ),
    "extract": lambda jax, sparse: (
        lambda d: sparse.bcoo_extract(sparse.BCOO((d[0], i32([[0, 1], [0, 1]])), shape=(2, 2)), d)
    ),
    "mapped BCOO": lambda jax, sparse: (
        lambda d: jax.vmap(lambda m: m.todense())(sparse.bcoo_fromdense(d, nse=2, n_batch=1))
    ),
    "returned BCOO": lambda jax, sparse: jax.vmap(lambda m: sparse.BCOO.fromdense(m, nse=2)),
    "padding": lambda sparse: lambda d: sparse.BCOO((d, i32([[[5], [0]], [[1], [9]]])), shape=(2, 2)).todense(),
    "broadcast data": lambda sparse: (
        lambda d: sparse.BCOO((d[:1], i32([[[1], [0]], [[1], [1]]])), shape=(2, 2)).todense()
    ),
}


@oracle
@pytest.mark.parametrize("name", DENSE)
def test_functions_of_buffers_are_jax_s(name):
    same_function(DENSE[name], f32([[1, 2], [3, 4]]))


RESULTS = {
    "repr": lambda sparse: repr(sparse.BCOO.fromdense(STACK, n_batch=1, n_dense=1)),
    "repr of what is invalid": lambda jax, sparse: repr(
        jax.tree_util.tree_structure(sparse.BCOO.fromdense(M)).unflatten([1, 2])
    ),
    "attributes": lambda sparse: [
        (m.shape, m.nse, m.size, m.ndim, m.n_batch, m.n_sparse, m.n_dense, m.dtype, len(m))
        for m in [sparse.BCOO.fromdense(STACK, n_batch=1)]
    ],
    "eye": lambda sparse: [
        sparse.eye(3, M, k, n_batch=b, n_dense=d).todense()
        for M, k, b, d in [
            (None, 0, 0, 0),
            (4, 1, 0, 0),
            (2, -1, 0, 0),
            (4, 2, 1, 0),
            (4, -1, 1, 0),
            (4, 0, 1, 1),
            (4, 9, 0, 0),
        ]
    ],
    "empty": lambda sparse: sparse.empty((3, 4), int, nse=2, n_dense=1),
    "an unknown format": lambda sparse: sparse.empty((3, 4), sparse_format="none"),
    "an unknown format of eye": lambda sparse: sparse.eye(3, sparse_format="none"),
    "hash": lambda sparse: hash(sparse.eye(3)),
    "indices that are no integers": lambda sparse: sparse.BCOO((M[0], M), shape=(5, 5, 5, 5)),
    "data that do not fit": lambda sparse: sparse.BCOO((M[0], np.zeros((3, 2), int)), shape=(5, 5)),
    "batches that do not fit": lambda sparse: sparse.BCOO((M, np.zeros((2, 4, 1), int)), shape=(3, 5)),
    "a traced nse": lambda jax, sparse: jax.jit(sparse.bcoo_fromdense)(M),
    "extract by an array": lambda sparse: sparse.bcoo_extract(M, M),
    "extract from another shape": lambda sparse: sparse.bcoo_extract(sparse.BCOO.fromdense(M), M.T),
    "a mapped sparse axis": lambda jax, sparse: jax.vmap(lambda m: m.todense(), in_axes=1)(sparse.BCOO.fromdense(M)),
    "scipy": lambda sparse: sparse.BCOO.from_scipy_sparse(__import__("scipy.sparse").sparse.coo_matrix(M)),
    "scipy with batches": lambda sparse: sparse.BCOO.from_scipy_sparse(M, n_batch=1),
}


@oracle
@pytest.mark.parametrize("name", RESULTS)
def test_results_and_errors_are_jax_s(name):
    same_result(RESULTS[name])


def test_gradients_sum_over_batches_that_data_are_shared_by():
    indices = i32([[[1], [0]], [[1], [1]]])
    dense = lambda d: sparse.BCOO((d, indices), shape=(2, 2)).todense()  # noqa: E731
    grad = minijax.grad(lambda d: (dense(d) * f32([[1, 2], [3, 4]])).sum())(f32([[1, 2]]))
    np.testing.assert_array_equal(grad, [[6, 5]])


def test_wide_indices_need_x64():
    with ours().enable_x64(True):
        assert sparse.BCOO.fromdense(M, index_dtype=np.int64).indices.dtype == np.int64
