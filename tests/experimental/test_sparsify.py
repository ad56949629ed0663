"""sparsify, operators of BCOO, derivatives with respect to BCOO and random ones, against jax."""

import operator
import unittest

import numpy as np
import pytest
from compare import same_refusal
from sparse_language import STACK, M, V, W, same_function, same_result

from minijax import lax, vmap
from minijax.experimental import sparse
from minijax.experimental.sparse import test_util, transform

oracle = pytest.mark.oracle
FUNCTIONS = {
    "product": lambda jnp: lambda m: jnp.sin(m @ jnp.asarray(W)) * 2,
    "sine": lambda jnp: jnp.sin,
    "the same twice": lambda jnp: lambda m: m + m,
    "its square": lambda jnp: lambda m: m * m,
    "scaled": lambda jnp: lambda m: -m * 2 / 3,
    "power": lambda jnp: lambda m: m**3,
    "difference": lambda jnp: lambda m: m - m,
    "transposed in jit": lambda jax: jax.jit(lambda m: m.T * 2),
    "sum": lambda jnp: lambda m: m.sum(),
    "sum over rows": lambda jnp: lambda m: m.sum(0),
    "times an array": lambda jnp: lambda m: m * jnp.asarray(W),
    "dense": lambda sparse: lambda m: sparse.todense(m) + 1,
    "converted": lambda jnp: lambda m: m.astype(int),
    "tree": lambda jnp: lambda m: {"a": m, "b": (m * 2, 3)},
}


@oracle
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sparsified_functions_are_jax_s(name):
    program = FUNCTIONS[name]
    (needs,) = program.__code__.co_varnames[:1]

    def sparsified(jax, jnp, sparse):
        f = sparse.sparsify(program(dict(jax=jax, jnp=jnp, sparse=sparse)[needs]))
        mat = sparse.BCOO.fromdense(M)
        return lambda d: f(sparse.BCOO((d, mat.indices), shape=mat.shape, indices_sorted=True, unique_indices=True))

    same_function(sparsified, M[M != 0], jaxpr=name != "sum over rows")


VALUES = {
    "loop": lambda lax: lambda m: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (m, 0))[0],
    "branches": lambda lax: lambda m: lax.cond(m.sum() > 0, lambda m: m * 2, lambda m: m, m),
    "scan": lambda lax: lambda m: lax.scan(lambda c, _: (c * 2, None), m, None, length=3)[0],
    "index": lambda jnp: lambda m: m[1],
    "slice": lambda jnp: lambda m: m[:, 1:3],
    "reverse": lambda jnp: lambda m: m[::-1, None],
    "rows": lambda jnp: lambda m: m[jnp.array([2, 0])],
    "reshaped": lambda jnp: lambda m: m.reshape(-1),
    "joined": lambda jnp: lambda m: jnp.concatenate([m, m], 1),
    "stacked": lambda jnp: lambda m: jnp.stack([m, m]),
    "spread": lambda jnp: lambda m: jnp.broadcast_to(m, (2, 3, 4)),
    "pairs": lambda jnp: lambda m: m @ m.T,
    "cosine": lambda jnp: jnp.cos,
    "comparison": lambda jnp: lambda m: m > 1,
    "maximum": lambda jnp: lambda m: m.max(),
    "one more": lambda jnp: lambda m: m + 1,
    "one less": lambda jnp: lambda m: m - 1,
    "reciprocal": lambda jnp: lambda m: 1 / m,
    "no power": lambda jnp: lambda m: m**-1,
}


@oracle
@pytest.mark.parametrize("use_tracer", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_values_and_errors_of_sparsified_functions_are_jax_s(name, use_tracer):
    program = VALUES[name]
    (needs,) = program.__code__.co_varnames[:1]

    def result(jax, jnp, lax, sparse):
        f = sparse.sparsify(program(dict(jnp=jnp, lax=lax)[needs]), use_tracer=use_tracer)
        out = jax.jit(f)(sparse.BCOO.fromdense(M))
        return out.shape, out.nse, out.n_batch, np.asarray(out.todense())

    same_result(result)


OPERATORS = {
    "sum of two": lambda m: m + m,
    "difference of two": lambda m: m - m,
    "product of two": lambda m: m * m,
    "matrix product": lambda m: m @ m.T,
    "negative": lambda m: -m,
    "absolute": abs,
    "positive": lambda m: +m,
    "halves": lambda m: m / 2,
    "twice": lambda m: 2.0 * m,
    "square": lambda m: m**2,
    "cast": lambda m: m.astype("float16"),
    "sum": lambda m: m.sum(0),
    "reshape": lambda m: m.reshape(2, 6),
    "row": lambda m: m[1],
    "rows": lambda m: list(m)[2],
}
ARRAYS = {
    "with a vector": lambda m: m @ W,
    "plus an array": lambda m: m + M,
    "equal": lambda m: m == m,
    "reciprocal": lambda m: 2 / m,
    "remainder": lambda m: operator.mod(m, 2),
    "a name": lambda m: m["a"],
    "none": lambda m: m * None,
}


@oracle
@pytest.mark.parametrize("name", [*OPERATORS, *ARRAYS])
def test_operators_are_jax_s(name):
    f = (OPERATORS | ARRAYS)[name]

    def program(sparse):
        out = f(sparse.BCOO.fromdense(M))
        return out if name in ARRAYS else (out.shape, out.nse, out.dtype, np.asarray(out.todense()))

    same_result(program)


def loss(m, v):
    return ((m @ v) ** 2).sum()


DERIVATIVES = {
    "gradient": lambda sparse: sparse.grad(loss),
    "both gradients": lambda sparse: sparse.grad(loss, argnums=(0, 1)),
    "value": lambda sparse: sparse.value_and_grad(lambda m, v: (loss(m, v), v), has_aux=True),
    "forward": lambda sparse: sparse.jacfwd(lambda m, v: (m @ v) ** 2),
    "backward": lambda sparse: sparse.jacrev(lambda m, v: (m @ v) ** 2, argnums=(0, 1)),
    "with aux": lambda sparse: sparse.jacobian(lambda m, v: (m @ v, v), has_aux=True),
    "no argument": lambda sparse: sparse.grad(loss, argnums=5),
    "no scalar": lambda sparse: sparse.grad(lambda m, v: m * 2),
}


@oracle
@pytest.mark.parametrize("n_batch", [0, 1])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_jax_s(name, n_batch):
    same_result(lambda sparse: str(_tree(DERIVATIVES[name](sparse)(sparse.BCOO.fromdense(M, n_batch=n_batch), W))))


def _tree(x):
    if isinstance(x, tuple):
        return tuple(map(_tree, x))
    return (x.shape, x.n_batch, np.asarray(x.todense()).tolist()) if hasattr(x, "todense") else np.asarray(x).tolist()


RANDOM = [
    {}, dict(nse=0.5, n_batch=1), dict(nse=5, sorted_indices=True), dict(nse=5, unique_indices=False), dict(nse=50),
    dict(n_dense=1, dtype="float16"), dict(nse=-1), dict(n_batch=5), dict(indices_dtype="int8"), dict(n_batch=2),
]  # fmt: skip


@oracle
@pytest.mark.parametrize("options", RANDOM, ids=str)
def test_random_ones_are_jax_s(options):
    same_result(
        lambda jax, random, sparse: jax.tree_util.tree_leaves(
            sparse.random_bcoo(random.key(0), (3, 4), **dict(dtype="float32") | options)
        )
    )


def test_an_environment_holds_buffers_once():
    spenv = transform.SparsifyEnv()
    mat = sparse.BCOO.fromdense(M)
    values = transform.arrays_to_spvalues(spenv, (mat, V))
    assert [v.is_bcoo() for v in values] == [True, False]
    (out,), _ = transform.sparsify_raw(lambda m, v: m * 2)(spenv, *values)
    assert out.indices_ref == values[0].indices_ref
    assert (transform.spvalues_to_arrays(spenv, out).todense() == 2 * M).all()
    with pytest.raises(ValueError, match="both"):
        spenv.sparse((3,), V, V, data_ref=0)
    with pytest.raises(RuntimeError, match="no such buffer"):
        spenv.indices(values[1])


def test_users_add_rules():
    rules = transform.sparse_rules_bcoo

    rules[lax.cos_p] = lambda spenv, value, **_: spenv.dense(spenv.data(value))
    try:
        assert (sparse.sparsify(lax.cos)(sparse.BCOO.fromdense(M)) == M[M != 0]).all()
    finally:
        del rules[lax.cos_p]


def test_mapped_axes_of_stacks():

    mat = sparse.BCOO.fromdense(STACK, n_batch=1)
    np.testing.assert_allclose(vmap(lambda m: m @ W)(mat), STACK @ W, 1e-6)


def test_arrays_for_tests_have_layouts_and_numbers_of_elements():
    rng = np.random.RandomState(0)
    layouts = list(test_util.iter_sparse_layouts((2, 3)))
    assert len(layouts) == 6
    for n_batch, n_dense, _ in layouts:
        mat = test_util.rand_bcoo(rng, n_batch=n_batch, n_dense=n_dense)((2, 3), np.float32)
        assert (mat.n_batch, mat.n_dense, mat.shape) == (n_batch, n_dense, (2, 3))
    assert np.count_nonzero(test_util.rand_sparse(rng, nse=2)((3, 4), np.float32)) == 2
    assert list(test_util.iter_subsets("ab")) == [(), ("a",), ("b",), ("a", "b")]
    assert [tuple(layout) for layout in test_util.iter_bcsr_layouts((2, 3, 4))] == [(0, 1, 2), (1, 0, 2)]
    assert test_util.is_sparse(mat)


class Cases(test_util.SparseTestCase):
    def runTest(self):
        rng, rand = np.random.RandomState(0), test_util.rand_bcoo(np.random.RandomState(0), n_batch=1)
        args = lambda: [rand((2, 3), np.float32), rng.rand(3).astype("float32")]  # noqa: E731
        product = lambda m, v: m @ v  # noqa: E731
        self._CheckAgainstDense(product, product, args)
        self._CheckGradsSparse(product, product, args)
        self._CheckBatchingSparse(product, product, args, bdims=self._random_bdims(1, 1))
        self.assertSparseArraysEquivalent(*[args()[0]] * 2)
        with self.assertRaises(AssertionError):
            self._CheckAgainstDense(lambda m, v: 2 * (m @ v), product, args)


def test_cases_compare_sparse_functions_with_dense_ones():
    result = unittest.TestResult()
    Cases().run(result)
    assert not result.errors + result.failures


@oracle
def test_branches_that_give_other_kinds_of_matrices_are_refused():
    def program(jax, jnp, sparse):
        f = sparse.sparsify(lambda x, y: jax.lax.cond(False, lambda x: x[0], lambda x: x[1], (x, y)))
        return lambda: f(sparse.BCOO.fromdense(jnp.arange(5.0)), jnp.arange(5.0))

    same_refusal(program, ["sparsified true_fun output must have same type structure as sparsified false_fun output"])
