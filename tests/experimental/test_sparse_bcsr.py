"""BCSR: made of arrays and of BCOO, mapped, multiplied, differentiated and sparsified, against jax."""

import numpy as np
import pytest
from sparse_language import STACK, M, W, f32, i32, same_function, same_result

import minijax
from minijax.experimental import sparse

oracle = pytest.mark.oracle
CUBE = f32(np.arange(24).reshape(3, 4, 2) * (M != 0)[..., None])
LAYOUTS = {"plain": (M, 0, 0), "batched": (STACK, 1, 0), "dense inside": (CUBE, 0, 1)}

OPERATIONS = {
    "todense": lambda s: lambda m: m.todense(),
    "to_bcoo": lambda s: lambda m: m.to_bcoo(),
    "there and back": lambda s: lambda m: s.BCSR.from_bcoo(m.to_bcoo()),
    "sum_duplicates": lambda s: lambda m: m.sum_duplicates(nse=5),
    "sum_duplicates, zeros too": lambda s: lambda m: m.sum_duplicates(nse=5, remove_zeros=False),
    "joined": lambda s: lambda m: s.bcsr_concatenate([m, m], dimension=m.n_batch),
    "joined in front": lambda s: lambda m: s.bcsr_concatenate([m, m], dimension=0),
    "a new first axis": lambda s: lambda m: s.bcsr_broadcast_in_dim(m, shape=(2, *m.shape), broadcast_dimensions=range(1, m.ndim + 1)),
    "a new last axis": lambda s: lambda m: s.bcsr_broadcast_in_dim(m, shape=(*m.shape, 2), broadcast_dimensions=range(m.ndim)),
    "sparsified": lambda s: s.sparsify(lambda m: -m),
    "sparsified todense": lambda s: s.sparsify(s.todense),
}  # fmt: skip


@oracle
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_read_as_jax_s(name, layout):
    array, n_batch, n_dense = LAYOUTS[layout]

    def program(jax, sparse):
        def f(x):
            return OPERATIONS[name](sparse)(sparse.BCSR.fromdense(x, nse=5, n_batch=n_batch, n_dense=n_dense))

        return lambda x: jax.tree.leaves(f(x))

    def value(jax, sparse):
        return program(jax, sparse)(array)

    try:
        OPERATIONS[name](sparse)(sparse.BCSR.fromdense(array, n_batch=n_batch, n_dense=n_dense))
    except (NotImplementedError, ValueError):
        same_result(value)
    else:
        # Operands that one vmapped call has, in jax, as NumPy integers are shown on more lines.
        same_function(program, array, jaxpr=layout != "batched" or "axis" not in name)


@oracle
def test_products_read_as_jax_s():
    columns = f32(np.arange(8).reshape(4, 2))
    bcsr = lambda jax, sparse, f: lambda x, *ys: f(sparse.BCSR.fromdense(x, nse=5), *ys)  # noqa: E731
    same_function(lambda jax, sparse: bcsr(jax, sparse, lambda m, v: m @ v), M, W)
    same_function(lambda jax, sparse: bcsr(jax, sparse, lambda m, v: m @ v), M, columns)
    same_function(lambda jax, sparse: jax.grad(bcsr(jax, sparse, lambda m, v: (m @ v).sum()), (0, 1)), M, columns)
    same_function(lambda jax, sparse: jax.vmap(bcsr(jax, sparse, lambda m, v: m @ v), (None, 0)), M, np.stack([W, -W]))
    same_function(lambda jax, sparse: jax.vmap(bcsr(jax, sparse, lambda m, v: m @ v), (0, None)), STACK, W)
    same_function(lambda jax, sparse: jax.vmap(bcsr(jax, sparse, lambda m, v: m @ v)), STACK, np.stack([W, -W, 2 * W]))
    numbers = (((2,), (1,)), ((0,), (0,)))

    def batched(jax, sparse):
        of_stack = lambda x: sparse.BCSR.fromdense(x, nse=5, n_batch=1)  # noqa: E731
        return lambda x, y: sparse.bcsr_dot_general(of_stack(x), y, dimension_numbers=numbers)

    same_function(batched, STACK, np.ones((3, 4, 2), np.float32))


@oracle
def test_derivatives_of_conversions_are_jax_s():
    def through_data(jax, sparse):
        m = sparse.BCSR.fromdense(M)
        return lambda d: sparse.BCSR((d, m.indices, m.indptr), shape=m.shape).todense()

    data = np.asarray(sparse.BCSR.fromdense(M).data)
    same_function(through_data, data)
    same_function(lambda jax, sparse: jax.jacfwd(through_data(jax, sparse)), data, jaxpr=False)
    same_function(lambda jax, sparse: jax.jacrev(through_data(jax, sparse)), data, jaxpr=False)

    def extracted(jax, sparse):
        m = sparse.BCSR.fromdense(M)
        return lambda x: (sparse.bcsr_extract(m.indices, m.indptr, x) ** 2).sum()

    same_function(lambda jax, sparse: jax.grad(extracted(jax, sparse)), 3 * M + 1)
    same_function(lambda jax, sparse: jax.vmap(extracted(jax, sparse)), STACK)


@oracle
@pytest.mark.parametrize(
    "bad",
    [
        lambda s, m: s.BCSR(m._bufs, shape=(3, 4, 5)),
        lambda s, m: s.BCSR((m.data, m.indices, m.indptr[:-1]), shape=(3, 4)),
        lambda s, m: s.BCSR((m.data[:-1], m.indices, m.indptr), shape=(3, 4)),
        lambda s, m: s.BCSR((m.data, m.indices.astype("float32"), m.indptr), shape=(3, 4)),
        lambda s, m: s.BCSR.fromdense(M[0]),
        lambda s, m: s.BCSR.from_bcoo(s.BCOO.fromdense(STACK)),
        lambda s, m: m.T,
        lambda s, m: m + m,
        lambda s, m: m * 2,
        lambda s, m: m[0],
        lambda s, m: m @ m,
        lambda s, m: s.sparsify(lambda x: x.sum())(m),
    ],
)
def test_misuse_raises_as_jax(bad):
    same_result(lambda sparse: bad(sparse, sparse.BCSR.fromdense(M)).todense())


def test_mapped_over_its_batch_axes():
    mats = sparse.BCSR.fromdense(STACK, n_batch=1)
    products = minijax.jit(minijax.vmap(lambda m, v: m @ v, (0, None)))(mats, W)
    np.testing.assert_allclose(products, STACK @ W, rtol=1e-6)
    doubled = minijax.vmap(lambda m: sparse.BCSR((2 * m.data, m.indices, m.indptr), shape=m.shape))(mats)
    assert doubled.shape == STACK.shape and (doubled.todense() == 2 * STACK).all()
    with pytest.raises(ValueError, match="must correspond to a batched dimension"):
        minijax.vmap(lambda m: m.todense(), 1)(mats)


def test_compressed_rows_are_those_of_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    matrix = scipy_sparse.csr_matrix(M)
    ours = sparse.BCSR.from_scipy_sparse(matrix)
    assert (ours.todense() == M).all() and repr(ours) == "BCSR(float32[3, 4], nse=5)"
    dense = sparse.BCSR.fromdense(M)
    assert [np.asarray(x).tolist() for x in dense._bufs] == [
        x.tolist() for x in (matrix.data, matrix.indices, matrix.indptr)
    ]


def test_diagonals_and_empty_ones():
    for shape in ((3, 4), (4, 3)):
        assert (sparse.eye(*shape, k=1, sparse_format="bcsr").todense() == np.eye(*shape, k=1)).all()
    empty = sparse.empty((2, 3, 4), sparse_format="bcsr", n_batch=1, dtype="int8")
    assert empty.nse == 0 and (empty.todense() == np.zeros((2, 3, 4))).all()
    assert (sparse.BCSR.fromdense(np.zeros((0, 3), np.float32)).todense() == np.zeros((0, 3))).all()
    padded = sparse.BCSR((f32([1, 2, 0]), i32([1, 0, 3]), i32([0, 1, 2])), shape=(2, 3))
    assert padded.todense().tolist() == [[0, 1, 0], [2, 0, 0]]
