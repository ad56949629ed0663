"""BCOO in other orders and layouts: transposed, sorted, without duplicates, against jax."""

import pytest
from compare import Outcome, outcome
from sparse_language import STACK, M, i32, on, same_function, same_result

import minijax

oracle = pytest.mark.oracle
LAYOUTS = ((0, 0), (1, 0), (1, 1), (0, 2), (3, 0))
INDICES = i32([[2, 3], [0, 1], [2, 3], [9, 9], [1, 0]])
DATA = M.ravel()[1:6]


def of_data(function, shape=(3, 4)):
    """A program of the data of a BCOO with duplicates and padding."""
    return lambda sparse: lambda d: function(sparse)(sparse.BCOO((d, INDICES), shape=shape))._bufs


FUNCTIONS = {
    "transpose": of_data(lambda sparse: lambda m: sparse.bcoo_transpose(m, permutation=(1, 0))),
    "transpose to the same": of_data(lambda sparse: lambda m: sparse.bcoo_transpose(m, permutation=(0, 1))),
    "sort": of_data(lambda sparse: sparse.bcoo_sort_indices),
    "sum": of_data(lambda sparse: lambda m: sparse.bcoo_sum_duplicates(m, nse=4)),
    "sum to less": of_data(lambda sparse: lambda m: sparse.bcoo_sum_duplicates(m, nse=2)),
    "sum to more": of_data(lambda sparse: lambda m: sparse.bcoo_sum_duplicates(m, nse=7)),
    "eliminate": of_data(lambda sparse: lambda m: sparse.bcoo.bcoo_eliminate_zeros(m, nse=4)),
}


@oracle
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_buffers_and_their_derivatives_are_jax_s(name):
    program = FUNCTIONS[name]
    same_function(program, DATA)

    def derived(jax, jnp, sparse):
        f = lambda d: program(sparse)(d)[0]  # noqa: E731
        loss = lambda d: (f(d) * jnp.arange(f(d).size)).sum()  # noqa: E731
        return lambda d: (jax.jvp(f, (d,), (d,))[1], jax.grad(loss)(d), jax.vmap(f)(jnp.stack([d, 2 * d])))

    same_function(derived, DATA, jaxpr=name == "transpose")


@oracle
@pytest.mark.parametrize("n_batch", [1, 2])
def test_batches_are_transposed_sorted_and_summed_as_jax_s(n_batch):
    def program(jax, jnp, sparse):
        def f(x):
            m = sparse.bcoo_fromdense(x, nse=4, n_batch=n_batch)
            m = sparse.BCOO((m.data, m.indices[..., ::-1, :]), shape=m.shape)
            shared = sparse.BCOO((m.data, m.indices[:1]), shape=m.shape)
            order = (0, 2, 1) if n_batch == 1 else (1, 0, 2)
            moved = m.transpose(order)
            return [g(m)._bufs for g in (sparse.bcoo_sort_indices, lambda m: m.sum_duplicates(nse=3, remove_zeros=False))], [
                moved._bufs, shared.sort_indices()._bufs, jax.vmap(sparse.bcoo_sort_indices)(m)._bufs
            ]  # fmt: skip

        return f

    same_function(program, STACK)


@oracle
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_jax_s(layout):
    def program(sparse):
        m = sparse.BCOO.fromdense(STACK, n_batch=layout[0], n_dense=layout[1])
        new = [m.update_layout(n_batch=b, n_dense=d, on_inefficient=None) for b, d in LAYOUTS]
        return [(n.nse, n.n_batch, n.n_dense, n.indices_sorted, n.todense()) for n in new]

    same_result(program)


ERRORS = {
    "no permutation": lambda sparse: sparse.BCOO.fromdense(M).transpose((0, 0)),
    "a batch axis made sparse": lambda sparse: sparse.BCOO.fromdense(M, n_batch=1).T,
    "a dense axis made sparse": lambda sparse: sparse.BCOO.fromdense(M, n_dense=1).T,
    "a traced sum": lambda jax, sparse: jax.jit(lambda m: m.sum_duplicates())(sparse.BCOO.fromdense(M)),
    "sums": lambda sparse: [
        (m.nse, m._bufs)
        for m in (
            sparse.BCOO((DATA * s, INDICES), shape=(3, 4)).sum_duplicates(remove_zeros=z)
            for s in (0, 1)
            for z in (0, 1)
        )
    ],
    "too many axes": lambda sparse: sparse.BCOO.fromdense(M).update_layout(n_batch=3),
    "fewer than no axes": lambda sparse: sparse.BCOO.fromdense(M).update_layout(n_dense=-1),
    "more batch axes": lambda sparse: sparse.BCOO.fromdense(M).update_layout(n_batch=1),
    "more dense axes": lambda sparse: sparse.BCOO.fromdense(M).update_layout(n_dense=1),
}


@oracle
@pytest.mark.parametrize("name", ERRORS)
def test_results_and_errors_are_jax_s(name):
    same_result(ERRORS[name])


def test_inefficient_layouts_warn():
    program = lambda sparse: sparse.BCOO.fromdense(M).update_layout(n_dense=1, on_inefficient="warn")  # noqa: E731
    with pytest.warns(UserWarning, match="increasing n_dense from 0 to 1"):
        ended = outcome(lambda: on(minijax, program))
    assert isinstance(ended, Outcome)
    assert ended.error is None
