"""`jax.api_util`, `jax.stages.Wrapped` and `fwd_and_bwd`: faces of what `jit` and `vjp` do."""

import importlib

import compare
import numpy as np
import pytest
from compare import Case

CALLS = [
    "donation_vector((0,), ('a',), structure((((1, 2), 3), {'a': [1, 2], 'b': 2})))",
    "donation_vector((), (), structure((((1, 2), 3), {'b': 2})))",
    "donation_vector((5,), (), structure((((1, 2), 3), {})))",
    "donation_vector((1,), (), structure(((1, 2), 3)), kws=False)",
    "rebase_donate_argnums((0, 3), (1,))",
    "rebase_donate_argnums((0, 1, 4), (2,))",
    "rebase_donate_argnums((0, 2), (1, 2))",
    "flatten_axes('in_axes', structure({'a': 1, 'b': (1, 2)}), {'a': 0, 'b': None})",
    "flatten_axes('in_axes', structure((1, (1, 2))), 0)",
    "flatten_axes('in_axes', structure((1, 2)), (0, 1, 2))",
    "flatten_axes('in_axes', structure((1, 2)), (0, 1, 2), tupled_args=True)",
    "[str(shaped_abstractify(x)) for x in (3.0, np.ones(3, np.float32), True)]",
    "shaped_abstractify('a')",
    "safe_map(lambda x, y: x + y, [1, 2], [3, 4])",
    "safe_map(lambda x, y: x + y, [1, 2], [3])",
    "debug_info('made', lambda a, b, c=1, *r: a, (1, (2, 3), 4, 5), {}).arg_names",
    "debug_info('made', lambda a, b, c=1, *r: a, (1, (2, 3), 4, 5), {}, static_argnums=(0,)).arg_names",
    "debug_info('made', lambda a, b: a, (1,), {'b': {'z': 1}}, static_argnames=('b',)).arg_names",
    "debug_info('made', lambda a, b: a, (1,), {'b': {'z': 1}}).arg_names",
    "debug_info('made', lambda a, b: a, (1, 2), {}, sourceinfo='here').func_src_info",
]


@pytest.mark.parametrize("call", CALLS)
def test_api_util(call):
    def program(jax, api_util, tree_util):
        return eval(call, {**vars(api_util), "structure": tree_util.tree_structure, "np": np})

    compare.same(program, raises=compare.LISTED)


@pytest.mark.parametrize("nums, last", [((0,), 2), (1, 2), ((-1,), 2), ((0,), [2]), ((0, 1), [2])])
def test_flat_and_partial_functions(nums, last):
    def program(jax, api_util, tree_util):
        linear_util = importlib.import_module(f"{jax.__name__}.extend.linear_util")

        def fun(x, y):
            return {"a": x + len(str(y)), "b": (y,)}

        f = linear_util.wrap_init(fun, debug_info=api_util.debug_info("test", fun, (1, last), {}))
        flat, out_tree = api_util.flatten_fun(f, tree_util.tree_structure(((1,), {"y": 2})))
        positional, _ = api_util.flatten_fun_nokwargs(f, tree_util.tree_structure((1, 2)))
        part, dynamic = api_util.argnums_partial(f, nums, (1, last))
        return (
            flat.call_wrapped(1, 2),
            str(out_tree()),
            positional.call_wrapped(3, 4),
            part.call_wrapped(*dynamic),
            dynamic,
        )

    compare.same(program, raises=compare.LISTED)


def test_wrapped_functions_are_known():
    def program(jax, stages):
        return [isinstance(x, stages.Wrapped) for x in (jax.jit(abs), abs, 3, jax.jit)]

    compare.same(program)


def passes(argnums, has_aux=False, jitted=True):
    def program(jax, jnp):
        def f(x, y):
            out = {"o": jnp.sin(x) * y}
            return (out, y) if has_aux else out

        fwd, bwd = jax.fwd_and_bwd(f, argnums, has_aux=has_aux, jitted=jitted)

        def run(x, y):
            out, residuals, *aux = fwd(x, y)
            return out, bwd(residuals, out), aux

        return run

    return program


def test_fwd_and_bwd(tier):
    options = [(0,), ((0, 1),), ((1,), True), ([0],), (-1,), (0, False, False), ((0, 1), True, False)]
    cases = [Case(str(o), passes(*o), (1.0, 2.0)) for o in options]
    vmapped = lambda jax, jnp: jax.vmap(passes((0, 1))(jax, jnp))  # noqa: E731
    compare.sweep([*cases, Case("vmap", vmapped, (np.ones(3, np.float32), np.arange(3.0, dtype=np.float32)))], tier)


@pytest.mark.parametrize(
    "call, phrase",
    [
        ("jax.fwd_and_bwd(3, 0)", "callable"),
        ("jax.fwd_and_bwd(abs, 2)[0](1.0)", "Positional argument indices"),
        ("jax.fwd_and_bwd(abs, 'a')[0](1.0)", ""),
        ("jax.fwd_and_bwd(abs, 0)[1](jax.fwd_and_bwd(abs, 0)[0](1.0)[1], (1.0,))", "unexpected tree structure"),
        ("jax.fwd_and_bwd(abs, 0)[1](3, 1.0)", "not callable"),
    ],
)
def test_fwd_and_bwd_misuse(call, phrase):
    compare.same_misuse(call, {}, phrase)


LINEAR = {
    "weak": lambda jax: jax.linear_transpose(lambda x: x * 2, 3.0)(1.0),
    "struct": lambda jax, jnp: jax.linear_transpose(lambda x: x * 2, jax.ShapeDtypeStruct((3,), jnp.float32))(
        jnp.ones(3)
    ),
    "trees": lambda jax: jax.linear_transpose(lambda x: {"a": x, "b": [x]}, 2.0)({"a": 1.0, "b": [2.0]}),
    "two": lambda jax: jax.linear_transpose(lambda x, y: x * 2 + y, 2.0, 3.0)(1.0),
    "integers": lambda jax, jnp: jax.linear_transpose(lambda x: x * 2, jax.ShapeDtypeStruct((2,), jnp.int32))(
        jnp.ones(2, jnp.int32)
    ),
    "constant": lambda jax: jax.linear_transpose(lambda x: 3.0, 2.0)(1.0),
    "complex": lambda jax: jax.linear_transpose(lambda x: x * 1j, 1.0)(1j),
    "not linear": lambda jax, jnp: jax.linear_transpose(jnp.sin, 2.0)(1.0),
    "mixed dtypes": lambda jax, jnp: jax.linear_transpose(lambda x: x.astype(int), jnp.ones(2))(jnp.ones(2, int)),
    "wrong tree": lambda jax: jax.linear_transpose(lambda x: x, 2.0)((1.0,)),
    "wrong shape": lambda jax, jnp: jax.linear_transpose(lambda x: x, 2.0)(jnp.ones(3)),
    "no value": lambda jax: jax.linear_transpose(lambda x: x, "a"),
    "no function": lambda jax: jax.linear_transpose(3, 1.0),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_transpose(name):
    compare.same(LINEAR[name], raises=compare.LISTED)
