"""Functions with transformations around them, against jax's."""

import importlib

import compare
import pytest


def same(program):
    def run(jax):
        lu = importlib.import_module(f"{jax.__name__}.extend.linear_util")
        info = None
        if jax.__name__ == "jax":
            info = jax.api_util.debug_info("test", lambda *args: args, (1,), {})
        return program(lu, lambda f, params=None: lu.wrap_init(f, params, debug_info=info))

    compare.same(run)


def around(lu):
    """Transformations of each kind, which note in `seen` when they run."""
    seen = []

    @lu.transformation
    def scaled(scale, *args, **kwargs):
        seen.append("scaled")
        result = yield [a * scale for a in args], kwargs
        yield result + 1

    @lu.transformation_with_aux
    def counted(*args, **kwargs):
        seen.append("counted")
        result = yield args, kwargs
        yield result, len(args)

    @lu.transformation2
    def shifted(f, shift, *args):
        seen.append("shifted")
        return f(*(a + shift for a in args)) * 10

    @lu.transformation_with_aux2
    def named(f, store, *args):
        seen.append("named")
        result = f(*args)
        store.store("name")
        return result

    return seen, scaled, counted, shifted, named


def test_transformations_run_from_the_outermost_in():
    def program(lu, init):
        seen, scaled, counted, shifted, named = around(lu)
        f, count = counted(scaled(init(lambda x, y, z=0: x + y + z, {"z": 100}), 3))
        g, name = named(shifted(f, 2))
        return g.call_wrapped(1, 2), seen, count(), name(), f.params, f.__name__, len(g.transforms)

    same(program)


def test_an_auxiliary_result_is_there_once_the_function_has_run():
    def program(lu, init):
        _, _, counted, _, _ = around(lu)
        first, aux1 = counted(init(lambda x: x))
        second, aux2 = counted(init(lambda x: x))
        answers = []
        for call in (
            aux1,
            lambda: lu.merge_linear_aux(aux1, aux2),
            lambda: second.call_wrapped(1),
            lambda: lu.merge_linear_aux(aux1, aux2),
            lambda: lu.merge_linear_aux(aux2, aux1),
            lambda: second.call_wrapped(1),
            lambda: first.call_wrapped(1),
            lambda: lu.merge_linear_aux(aux1, aux2),
        ):
            try:
                answers.append(call())
            except lu.StoreException:
                answers.append("StoreException")
        return answers

    same(program)


def test_functions_with_equal_parts_are_equal():
    def program(lu, init):
        _, scaled, _, shifted, _ = around(lu)
        f, g = (lambda x: x), (lambda x: x)
        pairs = [
            (init(f), init(f)),
            (init(f), init(g)),
            (scaled(init(f), 2), scaled(init(f), 3)),
            (shifted(init(f), 2), scaled(init(f), 2)),
            (init(f, {"a": 1}), init(f, {"a": 1})),
            (init(f, {"a": 1}), init(f)),
        ]
        return [(a == b, hash(a) == hash(b)) for a, b in pairs]

    same(program)


def test_results_are_remembered():
    def program(lu, init):
        calls = []

        @lu.cache
        def call(fun, *args):
            calls.append(args)
            return fun.call_wrapped(*args)

        def base(x, y):
            return x + y

        return [call(init(base), *args) for args in ((1, 2), (1, 2), (3, 4))], calls

    same(program)


@pytest.mark.parametrize("values", [(1, 1), (1, 2)])
def test_a_store_for_equal_values_may_be_written_again(values):
    def program(lu, init):
        @lu.transformation_with_aux2
        def noted(f, store, x):
            store.store(x)
            return f(x)

        f, aux = noted(init(lambda x: x), use_eq_store=True)
        try:
            return [f.call_wrapped(v) for v in values], aux()
        except lu.StoreException:
            return "StoreException"

    same(program)
