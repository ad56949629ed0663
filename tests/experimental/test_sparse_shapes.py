"""BCOO broadcast, joined, reshaped, reversed, summed, sliced and multiplied elementwise, against jax."""

import numpy as np
import pytest
from sparse_language import STACK, M, V, W, f32, i32, same_function, same_result

import minijax
from minijax.experimental import sparse

oracle = pytest.mark.oracle
LAYOUTS = ((0, 0), (1, 0), (0, 1), (2, 0))
SHAPES = {
    "a new first axis": lambda s: lambda m: s.bcoo_broadcast_in_dim(m, shape=(2, 3, 3, 4), broadcast_dimensions=(1, 2, 3)),
    "a new last axis": lambda s: lambda m: s.bcoo_broadcast_in_dim(m, shape=(3, 3, 4, 1), broadcast_dimensions=(0, 1, 2)),
    "longer": lambda s: lambda m: s.bcoo_broadcast_in_dim(m, shape=(3, 3, 2, 4), broadcast_dimensions=(0, 1, 3)),
    "joined": lambda s: lambda m: s.bcoo_concatenate([m, m], dimension=0),
    "joined inside": lambda s: lambda m: s.bcoo_concatenate([m, s.bcoo_slice(m, start_indices=(0, 0, 0), limit_indices=(3, 2, 4))], dimension=1),
    "joined at the end": lambda s: lambda m: s.bcoo_concatenate([m, m], dimension=2),
    "reshaped in front": lambda s: lambda m: s.bcoo_reshape(m, new_sizes=(9, 4)),
    "reshaped at the end": lambda s: lambda m: s.bcoo_reshape(m, new_sizes=(3, 4, 3), dimensions=(0, 1, 2)),
    "reversed": lambda s: lambda m: s.bcoo_rev(m, dimensions=(0, 2)),
    "sliced": lambda s: lambda m: s.bcoo_slice(m, start_indices=(0, 1, 0), limit_indices=(2, 3, 4), strides=(1, 2, 3)),
    "squeezed": lambda s: lambda m: s.bcoo_squeeze(s.bcoo_slice(m, start_indices=(0, 1, 0), limit_indices=(3, 2, 4)), dimensions=(1,)),
    "sliced from the end": lambda s: lambda m: s.bcoo_dynamic_slice(m, (-1, -2, -9), (1, 2, 3)),
    "taken": lambda s: s.sparsify(lambda m: m[:2, np.array([2, 0])]),
    "taken and masked": lambda s: s.sparsify(lambda m: m[np.array([True, False, True]), :, 1:]),
    "sliced somewhere": lambda s: lambda m: s.bcoo_dynamic_slice(m, (0, 1, 9), (1, 2, 3)),
    "summed in front": lambda s: lambda m: s.bcoo_reduce_sum(m, axes=(0,)),
    "summed": lambda s: lambda m: s.bcoo_reduce_sum(m, axes=(0, 2)),
    "times an array": lambda s: lambda m: s.BCOO((s.bcoo_multiply_dense(m, W), m.indices), shape=m.shape),
    "times itself": lambda s: lambda m: s.bcoo_multiply_sparse(m, m),
}  # fmt: skip


def shown(mat):
    return mat.shape, mat.nse, mat.n_batch, mat.n_dense, np.asarray(mat.todense())


@oracle
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_layouts_and_elements_are_jax_s(name):
    for n_batch, n_dense in LAYOUTS:

        def program(jax, sparse, n_batch=n_batch, n_dense=n_dense):
            mat = sparse.BCOO.fromdense(STACK, n_batch=n_batch, n_dense=n_dense)
            return shown(jax.jit(SHAPES[name](sparse))(mat))

        same_result(program)


def test_padding_stays_padding():
    data, indices = f32([1, 2]), i32([[0, 5], [1, 1]])
    mat = sparse.BCOO((data, indices), shape=(2, 3))
    dense = np.asarray(mat.todense())
    whole = sparse.BCOO((data, i32([[2, 3], [1, 1]])), shape=(2, 3))
    assert (sparse.bcoo_concatenate([whole, whole], dimension=1).todense() == np.concatenate([dense, dense], 1)).all()
    vector = sparse.BCOO((data, i32([[3], [1]])), shape=(3,))
    assert sparse.bcoo_concatenate([vector, vector], dimension=0).todense().tolist() == [0, 2, 0, 0, 2, 0]
    assert (sparse.bcoo_rev(mat, dimensions=(0, 1)).todense() == dense[::-1, ::-1]).all()
    assert (sparse.bcoo_reduce_sum(mat, axes=(1,)).todense() == dense.sum(1)).all()
    assert (sparse.bcoo_reshape(mat, new_sizes=(3, 2)).todense() == dense.reshape(3, 2)).all()
    assert (sparse.bcoo_multiply_sparse(mat, mat).todense() == dense**2).all()
    assert (
        sparse.bcoo_multiply_sparse(mat, sparse.BCOO.fromdense(f32([[1, 2, 3]]))).todense() == dense * f32([1, 2, 3])
    ).all()


def test_gathers_of_slices():
    mat = sparse.BCOO.fromdense(STACK)
    numbers = minijax.lax.GatherDimensionNumbers((1, 2), (0,), (0,))
    rows = sparse.bcoo_gather(mat, i32([[2], [0]]), numbers, (1, 3, 4))
    assert rows.n_batch == 1
    assert (rows.todense() == STACK[[2, 0]]).all()


@oracle
def test_slices_and_shapes_read_as_jax_s():
    def of_matrix(f):
        return lambda sparse: lambda x: f(sparse, sparse.BCOO.fromdense(x, nse=5, n_batch=0))._bufs

    for params in (
        dict(start_indices=(0, 1), limit_indices=(3, 4), strides=(2, 2)),
        dict(start_indices=(1, 0), limit_indices=(2, 4)),
    ):
        same_function(of_matrix(lambda s, m, params=params: s.bcoo_slice(m, **params)), M)
    for starts, sizes in (((-1, -3), (1, 2)), ((5, -9), (2, 3)), ((1, 1), (2, 0))):
        same_function(of_matrix(lambda s, m, starts=starts, sizes=sizes: s.bcoo_dynamic_slice(m, starts, sizes)), M)
    for shape, axes in (((2, 3, 4), (1, 2)), ((3, 1, 4), (0, 2)), ((1, 3, 4, 1), (1, 2)), ((3, 4), (0, 1))):
        params = dict(shape=shape, broadcast_dimensions=axes)
        same_function(of_matrix(lambda s, m, params=params: s.bcoo_broadcast_in_dim(m, **params)), M)


@oracle
def test_broadcast_batches_are_sorted_and_joined_as_jax_s():
    rng = np.random.RandomState(0)
    data, indices = rng.randint(0, 9, (1, 1, 4, 10, 3)), rng.randint(0, 4, (1, 3, 1, 10, 2))

    def program(jax, sparse):
        mat = sparse.BCOO((i32(data), i32(indices)), shape=(2, 3, 4, 5, 4, 3))
        out = jax.jit(sparse.bcoo_sort_indices)(mat)
        return out.data, out.indices, out.todense()

    same_result(program)
    same_result(
        lambda jnp, sparse: shown(sparse.sparsify(jnp.vstack)([sparse.BCOO.fromdense(x) for x in (M, V[:1] * W, W)]))
    )


def test_properties_that_transposes_keep():
    mat = sparse.BCOO.fromdense(np.stack([STACK, STACK]), n_batch=1, n_dense=1)
    assert mat.transpose((0, 1, 2, 3)).indices_sorted and not mat.transpose((0, 2, 1, 3)).indices_sorted
    assert sparse.BCOO.fromdense(M, n_batch=2).T.indices_sorted and sparse.BCOO.fromdense(M).T.unique_indices


CONVOLUTIONS = {"valid": "VALID", "same": "SAME", "pairs": [(2, 1)]}


@oracle
@pytest.mark.parametrize("padding", CONVOLUTIONS)
def test_convolutions_are_jax_s(padding):
    def program(sparse):
        a, b = sparse.BCOO.fromdense(f32([[[0, 1, 2, 0, 3]]])), sparse.BCOO.fromdense(f32([[[2, 0, 1]]]), n_batch=2)
        return shown(sparse.bcoo_conv_general_dilated(a, b, window_strides=(1,), padding=CONVOLUTIONS[padding]))

    same_result(program)


def mistaken(function, **params):
    return lambda sparse: getattr(sparse, function)(sparse.BCOO.fromdense(STACK), **params)


ERRORS = {
    "no room": mistaken("bcoo_broadcast_in_dim", shape=(3, 3), broadcast_dimensions=(0, 1)),
    "no operands": lambda sparse: sparse.bcoo_concatenate([], dimension=0),
    "an array": lambda sparse: sparse.bcoo_concatenate([sparse.BCOO.fromdense(STACK), STACK], dimension=0),
    "sizes": lambda sparse: sparse.bcoo_concatenate([sparse.BCOO.fromdense(x) for x in (STACK, STACK[:, :2])], dimension=0),
    "batches": lambda sparse: sparse.bcoo_concatenate([sparse.BCOO.fromdense(STACK, n_batch=n) for n in (0, 1)], dimension=0),
    "mixed": mistaken("bcoo_reshape", new_sizes=(5,)),
    "limits": mistaken("bcoo_slice", start_indices=(0, 0, 0), limit_indices=(1, 1, 9)),
    "strides": mistaken("bcoo_slice", start_indices=(0, 0, 0), limit_indices=(1, 1, 1), strides=(1, 1, -1)),
    "longer axes": mistaken("bcoo_squeeze", dimensions=(0,)),
    "no axis": mistaken("bcoo_rev", dimensions=(7,)),
    "no such sum": mistaken("bcoo_reduce_sum", axes=(5,)),
    "starts": mistaken("bcoo_dynamic_slice", start_indices=(0, 0), slice_sizes=(1, 1)),
    "too long": mistaken("bcoo_dynamic_slice", start_indices=(0, 0, 0), slice_sizes=(1, 1, 9)),
    "a larger product": mistaken("bcoo_multiply_dense", v=np.ones((2, 3, 3, 4))),
}  # fmt: skip


@oracle
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_jax_s(name):
    same_result(ERRORS[name])
