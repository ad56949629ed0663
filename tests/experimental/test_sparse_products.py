"""Products of BCOO and arrays, of two BCOO, and elements of products, against jax."""

import numpy as np
import pytest
from sparse_language import STACK, M, f32, i32, same_function, same_result

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import sparse

oracle = pytest.mark.oracle
NONE = ((), ())
RHS = np.arange(24, dtype=np.float32).reshape(3, 4, 2) - 7
DENSE = {
    # The layout of STACK, what it is multiplied with, and the dimension numbers.
    "vector": ((0, 0), RHS[0, :, 0], (((2,), (0,)), NONE)),
    "sparse axis first": ((0, 0), RHS[:, 0, :], (((0,), (0,)), NONE)),
    "two sparse axes": ((0, 0), RHS.transpose(1, 2, 0), (((2, 0), (0, 2)), NONE)),
    "batch": ((1, 0), RHS, (((2,), (1,)), ((0,), (0,)))),
    "batch of another axis": ((1, 0), RHS.transpose(1, 2, 0), (((2,), (0,)), ((0,), (2,)))),
    "batch contracted": ((1, 0), RHS, (((0, 2), (0, 1)), NONE)),
    "batch left": ((1, 0), RHS[0], (((2,), (0,)), NONE)),
    "second batch": ((2, 0), RHS[:, 0], (((), ()), ((1,), (0,)))),
    "dense axis left": ((1, 1), RHS, (((1,), (0,)), NONE)),
    "nothing contracted": ((0, 0), RHS[0, :, 0], (((), ()), NONE)),
    "no sparse axes": ((2, 1), RHS[:, 0], (((0,), (0,)), NONE)),
}


def product(name):
    (n_batch, n_dense), rhs, numbers = DENSE[name]

    def program(sparse):
        mat = sparse.BCOO.fromdense(STACK, n_batch=n_batch, n_dense=n_dense)

        def f(data, rhs):
            lhs = sparse.BCOO((data, mat.indices), shape=mat.shape)
            return sparse.bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)

        return mat, f

    return program, rhs


@oracle
def test_mapped_products_of_batches_read_as_jax_s():
    four = np.stack([STACK, -STACK])

    def mapped(layout):
        def program(jax, sparse):
            def f(x, rhs):
                mat = getattr(sparse, layout).fromdense(x, n_batch=1, nse=6)
                function = getattr(sparse, f"{layout.lower()}_dot_general")
                return function(mat, rhs, dimension_numbers=(((2,), (1,)), ((0,), (0,))))

            return jax.vmap(f, (0, 2))

        return program

    for layout in ("BCOO", "BCSR"):
        same_function(mapped(layout), four, np.stack([RHS, 2 * RHS], 2))


@oracle
@pytest.mark.parametrize("name", [name for name in DENSE if name not in ("dense axis left", "no sparse axes")])
def test_products_with_arrays_and_their_derivatives_are_jax_s(name):
    program, rhs = product(name)

    def derived(jax, jnp, sparse):
        mat, f = program(sparse)
        loss = lambda d, r: (f(d, r) * jnp.arange(f(d, r).size).reshape(f(d, r).shape)).sum()  # noqa: E731
        return lambda r: (
            f(mat.data, r),
            jax.jvp(f, (mat.data, r), (mat.data, r))[1],
            jax.grad(loss, (0, 1))(mat.data, r),
        )

    same_function(derived, rhs, jaxpr=name != "batch contracted")


@pytest.mark.parametrize(("layout", "rhs", "numbers"), DENSE.values(), ids=DENSE)
def test_gradients_of_products_are_those_of_dense_ones(layout, rhs, numbers):
    mat = sparse.BCOO.fromdense(STACK, n_batch=layout[0], n_dense=layout[1])

    def dot(d, r):
        return sparse.bcoo_dot_general(sparse.BCOO((d, mat.indices), shape=mat.shape), r, dimension_numbers=numbers)

    def dense(d, r):
        return lax.dot_general(sparse.BCOO((d, mat.indices), shape=mat.shape).todense(), r, numbers)

    loss = lambda f: lambda d, r: (f(d, r) * jnp.arange(f(d, r).size).reshape(f(d, r).shape)).sum()  # noqa: E731
    grads = (minijax.jit(minijax.grad(loss(f), (0, 1)))(mat.data, jnp.asarray(rhs)) for f in (dot, dense))
    for ours, theirs in zip(*grads, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5)


MAPPED = {
    "data": lambda jax, sparse: jax.vmap(lambda d: _times(sparse, d, i32([[0, 1], [2, 3]]), M.T)),
    "rhs": lambda jax, sparse: jax.vmap(lambda r: _times(sparse, f32([1, 2]), i32([[0, 1], [2, 1]]), r)),
    "rhs at its last axis": lambda jax, sparse: jax.vmap(
        lambda r: _times(sparse, f32([1, 2]), i32([[0, 1], [2, 1]]), r), in_axes=1
    ),
    "all": lambda jax, sparse: jax.vmap(lambda d: _times(sparse, d, i32([[0, 1], [2, 1]]), d)),
    "array first": lambda sparse: lambda r: _dot(sparse, r, sparse.BCOO((r[0], i32([[0, 1], [1, 1]])), shape=(2, 3))),
    "integers": lambda sparse: lambda r: _dot(sparse, sparse.BCOO((r[0], i32([[0, 1], [1, 1]])), shape=(2, 3)), i32([1, 2, 3])),
    "another type": lambda jnp, sparse: lambda r: sparse.bcoo_dot_general(
        sparse.BCOO((r[0], i32([[0, 1], [1, 1]])), shape=(2, 2)), r, dimension_numbers=(((1,), (0,)), NONE),
        preferred_element_type=jnp.bfloat16,
    ),
    "arrays": lambda sparse: lambda r: _dot(sparse, r, r),
    "padding": lambda sparse: lambda r: _times(sparse, r[0], i32([[0, 9], [9, 1]]), r),
}  # fmt: skip


def _dot(sparse, lhs, rhs):
    return sparse.bcoo_dot_general(lhs, rhs, dimension_numbers=(((1,), (0,)), NONE))


def _times(sparse, data, indices, rhs):
    return _dot(sparse, sparse.BCOO((data, indices), shape=(3, len(rhs))), rhs)


@oracle
@pytest.mark.parametrize("name", MAPPED)
def test_functions_with_products_are_jax_s(name):
    same_function(MAPPED[name], f32([[1, 2], [3, 4]]))


SAMPLED = {
    "all": (STACK[0], RHS[0], i32([[0, 1], [2, 0], [9, 9]]), (((1,), (0,)), NONE)),
    "batch sparse": (STACK, RHS, i32([[0, 1, 1], [2, 0, 0]]), (((2,), (1,)), ((0,), (0,)))),
    "batch": (STACK, RHS, i32([[[0, 1]], [[2, 0]], [[1, 1]]]), (((2,), (1,)), ((0,), (0,)))),
    "dense": (STACK, RHS, i32([[1], [2]]), (((2,), (1,)), NONE)),
    "batch and dense": (STACK, RHS, i32([[[1]], [[2]], [[0]]]), (((2,), (1,)), ((0,), (0,)))),
    "no sparse axis": (STACK[0], RHS[0], np.zeros((3, 2, 1, 0), np.int32), (((1,), (0,)), NONE)),
}


@oracle
@pytest.mark.parametrize("name", SAMPLED)
def test_elements_of_products_are_jax_s(name):
    a, b, indices, numbers = SAMPLED[name]

    def program(jax, sparse):
        f = lambda a, b, i: sparse.bcoo_dot_general_sampled(a, b, i, dimension_numbers=numbers)  # noqa: E731
        grads = lambda a, b, i: jax.grad(lambda a, b: (f(a, b, i) ** 2).sum(), (0, 1))(a, b)  # noqa: E731
        return lambda a, b, i: (f(a, b, i), grads(a, b, i))

    same_function(program, a, b, indices)

    def mapped(jax, jnp, sparse):
        f = lambda a, b, i: sparse.bcoo_dot_general_sampled(a, b, i, dimension_numbers=numbers)  # noqa: E731
        return lambda a, b, i: jax.vmap(f, in_axes=(0, None, 0))(jnp.stack([a, 2 * a]), b, jnp.stack([i, i]))

    if not numbers[1][0]:  # jax maps no batches
        same_function(mapped, a, b, indices, jaxpr=False)


PAIRS = {
    "matrices": (0, 0, (((2,), (1,)), NONE)),
    "all axes": (0, 0, (((2, 0, 1), (1, 0, 2)), NONE)),
    "batch": (1, 1, (((2,), (1,)), ((0,), (0,)))),
    "outer products of batches": (1, 1, (((), ()), ((0,), (0,)))),
    "batch left on the left": (1, 0, (((2,), (1,)), NONE)),
    "batch left on the right": (0, 1, (((2,), (1,)), NONE)),
    "a contracted batch": (1, 1, (((0, 2), (0, 1)), NONE)),
    "a batch that is sparse": (0, 0, (((2,), (1,)), ((0,), (0,)))),
}


@oracle
@pytest.mark.parametrize("name", PAIRS)
def test_products_of_two_bcoo_are_jax_s(name):
    lhs_batch, rhs_batch, numbers = PAIRS[name]

    def program(jax, sparse):
        lhs, rhs = sparse.BCOO.fromdense(STACK, n_batch=lhs_batch), sparse.BCOO.fromdense(RHS % 3, n_batch=rhs_batch)

        def f(d, e):
            a, b = sparse.BCOO((d, lhs.indices), shape=lhs.shape), sparse.BCOO((e, rhs.indices), shape=rhs.shape)
            return sparse.bcoo_dot_general(a, b, dimension_numbers=numbers)

        pushed = jax.jvp(lambda d, e: f(d, e).todense(), (lhs.data, rhs.data), (lhs.data, rhs.data))[1]
        return f(lhs.data, rhs.data).todense(), f(lhs.data, rhs.data).nse, pushed

    same_result(program)


ERRORS = {
    "a sparse batch": lambda sparse: sparse.bcoo_dot_general(
        sparse.BCOO.fromdense(M), M, dimension_numbers=(NONE, ((0,), (0,)))
    ),
    "a contracted dense axis": lambda sparse: sparse.bcoo_dot_general(
        sparse.BCOO.fromdense(M, n_dense=1), M, dimension_numbers=(((1,), (1,)), NONE)
    ),
    "sizes that differ": lambda sparse: _dot(sparse, sparse.BCOO.fromdense(M), M),
    "pairs with dense axes": lambda sparse: _dot(
        sparse, sparse.BCOO.fromdense(M, n_dense=1), sparse.BCOO.fromdense(M.T)
    ),
    "a gradient of pairs": lambda jax, sparse: jax.grad(
        lambda d: _dot(sparse, sparse.BCOO((d, i32([[0, 1]])), shape=(2, 2)), sparse.BCOO.fromdense(M[:2])).data.sum()
    )(f32([1])),
}


@oracle
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_jax_s(name):
    same_result(ERRORS[name])
