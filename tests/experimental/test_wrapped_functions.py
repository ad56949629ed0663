"""The transformations of wrapped functions on which jet, odeint and sparsify are built, compared with jax."""

import importlib
import inspect

import compare
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

S, T = np.float32(0.5), np.float32(0.25)
M = np.array([[0, 2], [3, 0]], np.float32)
EXACT = {"rtol": 1e-6, "why": "fused products round differently"}


def module(jax, name):
    return importlib.import_module(f"{jax.__name__}.{name}")


def wrapped(jax, f, *args):
    info = module(jax, "api_util").debug_info("jet", f, args, {})
    return module(jax, "extend.linear_util").wrap_init(f, debug_info=info)


def three(jax):
    """A function of two numbers whose last result is constant."""
    return wrapped(jax, lambda x, y: [jax.numpy.sin(x) * y, x * 3.0, 2.0], S, S)


def jetted(jax, fun=three, order=2):
    jet = module(jax, "experimental.jet")
    return jet.jet_fun(jet.jet_subtrace(fun(jax)), order)


def zero(jax, name):
    return getattr(module(jax, "experimental.jet"), f"zero_{name}")


SERIES = {
    "terms": lambda jax: ([S, T], [S, S]),
    "no terms of one": lambda jax: ([S, T], zero(jax, "series")),
    "no terms": lambda jax: (zero(jax, "series"), zero(jax, "series")),
    "a term that is zero": lambda jax: ([S, T], [S, zero(jax, "term")]),
}


@pytest.mark.parametrize("name", SERIES)
def test_series_of_a_wrapped_function(name):
    series = SERIES[name]
    compare.same(lambda jax: jetted(jax).call_wrapped([S, T], series(jax)), **EXACT)
    jet = "experimental.jet"
    compare.same(lambda jax: module(jax, jet).jet_subtrace(three(jax), None, 2).call_wrapped((S, T), series(jax))[0])


def test_constant_results_have_the_series_that_is_zero():
    def constants(jax):
        jet = module(jax, "experimental.jet")
        _, series = jet.jet_subtrace(three(jax), None, 2).call_wrapped((S, T), ([S, T], jet.zero_series))
        return [s is jet.zero_series for s in series]

    compare.same(constants)
    assert constants(compare.ours()) == [False, False, True]


def test_rules_inside_a_jet_receive_its_order():
    def gives(jax):
        jet, calls = module(jax, "experimental.jet"), []

        def subtrace(tag, order, primals, series):
            calls.append((tag is not None, order, primals, series))
            return (S, T, 1.0), (jet.zero_series, [jet.zero_term, T], [S, S])

        return jet.jet_fun(wrapped(jax, subtrace), 2).call_wrapped([S], [[T, T]]), calls

    compare.same(gives)


def test_jaxprs_of_a_wrapped_function_and_within_jit():
    compare.same_jaxpr(lambda jax: lambda x: jetted(jax).call_wrapped([x, x], [[x, x], [x, x]]), S)
    compare.same(lambda jax: jax.jit(lambda x: jetted(jax).call_wrapped([x, x], [[x], [x]]))(S), **EXACT)


def test_a_wrapped_function_of_leaves():
    def gives(jax):
        structure = jax.tree.structure(([0, 0], [[0, 0], [0, 0]]))
        f, out_tree = module(jax, "experimental.jet").traceable(jetted(jax), structure)
        leaves = f.call_wrapped(S, T, S, S, S, T)
        return leaves, out_tree().unflatten(leaves)

    compare.same(gives, **EXACT)


MISUSES = {
    "one result that is no list": lambda jax: jetted(jax, lambda jax: wrapped(jax, lambda x, y: x * y, S, S)),
    "too few primals": lambda jax: jetted(jax, lambda jax: wrapped(jax, lambda x, y, z: [x], S, S, S)),
    "a function that is not wrapped": lambda jax: module(jax, "experimental.jet").jet_fun(three, 2),
    "no order": lambda jax: module(jax, "experimental.jet").jet_fun(three(jax)),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuses_of_jets_of_wrapped_functions(name):
    def call(jax):
        return lambda: MISUSES[name](jax).call_wrapped([S, T], [[S, S], [S, S]])

    compare.same_error(call(compare.ours()), call(compare.theirs()))


def test_the_traces_of_jet_have_a_tag_and_an_order():
    def made(jax):
        jet = module(jax, "experimental.jet")
        trace = jet.JetTrace(tag="t", parent_trace=None, order=3)
        return trace.tag == "t", trace.order, trace.parent_trace is None, jet.JetTracer(trace, S, [S]).aval.shape

    compare.same(made)


def test_first_arguments_become_vectors():
    tree = {"a": np.arange(3, dtype=np.float32), "b": S}

    def program(jax):
        ode, linear_util = module(jax, "experimental.ode"), module(jax, "extend.linear_util")
        vector, unravel = module(jax, "flatten_util").ravel_pytree(tree)
        slope = lambda y, t, c: {"k": y["a"] * t, "l": y["b"] + c}  # noqa: E731
        info = module(jax, "api_util").debug_info("odeint", slope, (tree, S, T), {})
        of_wrapped = ode.ravel_first_arg_(linear_util.wrap_init(slope, debug_info=info), unravel)
        return of_wrapped.call_wrapped(vector, S, T), ode.ravel_first_arg(slope, unravel, info)(vector, S, T)

    compare.same(program)
    compare.same_refusal(lambda ode: lambda: ode.ravel_first_arg(np.sin, np.sin))


# ---- sparse --------------------------------------------------------------------------------------------

FUNCTIONS = {
    "product": lambda jax: lambda m, v: [m @ v, m * 2.0],
    "constant": lambda jax: lambda m, v: (1.0, m, jax.numpy.sum(m, 0)),
    "no result": lambda jax: lambda m, v: [],
}
NO_LISTS = {"tree": lambda jax: lambda m, v: {"rows": m}, "text": lambda jax: lambda m, v: ["rows"]}


def arguments(jax):
    return module(jax, "experimental.sparse").BCOO.fromdense(M), jax.numpy.ones(2)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrapped_functions_of_sparse_arrays(name):
    def results(jax):
        f = wrapped(jax, FUNCTIONS[name](jax), S, S)
        out = module(jax, "experimental.sparse.transform").sparsify_fun(f, list(arguments(jax)))
        return [(type(x).__name__.startswith("BCOO"), getattr(x, "todense", lambda x=x: x)()) for x in out]

    def values(jax):
        transform = module(jax, "experimental.sparse.transform")
        env = transform.SparsifyEnv()
        spvalues = transform.arrays_to_spvalues(env, arguments(jax))
        f, out = transform.sparsify_subtrace(wrapped(jax, FUNCTIONS[name](jax), S, S), object(), env)
        buffers = f.call_wrapped(spvalues, "ignored")
        own = [np.asarray(b) for b in buffers[:3]]
        return own, [(v.shape, v.is_sparse(), env.data(v), buffers[v.data_ref]) for v in out()]

    compare.same(results)
    compare.same(values)


@pytest.mark.parametrize("name", NO_LISTS)
def test_wrapped_functions_give_lists_of_arrays(name):
    def call(jax):
        transform = module(jax, "experimental.sparse.transform")
        return lambda: transform.sparsify_fun(wrapped(jax, NO_LISTS[name](jax), S, S), arguments(jax))

    compare.same_error(call(compare.ours()), call(compare.theirs()))


NAMES = {
    "experimental.jet": "jet_fun jet_subtrace traceable JetTrace",
    "experimental.ode": "ravel_first_arg ravel_first_arg_",
    "experimental.sparse.transform": "sparsify_fun sparsify_subtrace",
    "example_libraries.stax": "Dense GeneralConv GeneralConvTranspose BatchNorm MaxPool SumPool AvgPool Dropout",
}


@pytest.mark.parametrize("room", NAMES)
def test_arguments_and_defaults_are_jax_s(room):
    """A default that is a function is compared by what it gives, an initializer by its numbers."""

    def default(jax, value):
        if value is inspect.Parameter.empty or not callable(value):
            return value
        return np.asarray(value(jax.random.key(0), (2, 3)))

    def signatures(jax):
        found = {}
        for name in NAMES[room].split():
            parameters = inspect.signature(getattr(module(jax, room), name)).parameters.values()
            found[name] = {p.name: (str(p.kind), default(jax, p.default)) for p in parameters}
        return found

    for ours, theirs in zip(*[signatures(jax).items() for jax in (compare.ours(), compare.theirs())], strict=True):
        np.testing.assert_equal(ours, theirs)
