"""`recompile_budget`: an error with the explanation where a function is traced too often."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

X = np.arange(4, dtype=np.float32)


def test_traces_within_the_budget_are_free_and_one_more_raises():
    f = minijax.jit(lambda x: x * 2)
    with minijax.recompile_budget(2):
        for n in (1, 2, 1, 2, 2):
            f(X[:n])
        with pytest.raises(minijax.RecompileError, match="is traced 3 times, the budget is 2") as info:
            f(X[:3])
    (difference,) = info.value.explanation.differences
    assert difference == ("shape", "x", "(2,)", "(3,)")
    assert "shape" in str(info.value) and __file__ in str(info.value)
    assert f(X[:3]).shape == (3,)  # what a budget refused is not remembered as a failure


def test_known_calls_cost_nothing_and_a_budget_may_be_zero():
    f = minijax.jit(lambda x: x * 2)
    f(X)
    with minijax.recompile_budget(0):
        f(X)
        with pytest.raises(minijax.RecompileError):
            f(X[:1])


def test_functions_made_in_a_loop_count_as_one():
    def loop():
        for n in range(3):
            minijax.jit(lambda x: x + n)(X)  # noqa: B023

    with pytest.raises(minijax.RecompileError, match="a new object"), minijax.recompile_budget(2):
        loop()


def test_functions_of_the_library_do_not_count():
    with minijax.recompile_budget(0):
        for n in range(1, 4):
            jnp.where(X[:n] > 1, X[:n], 0.0)


def test_as_a_decorator_each_call_has_its_own_budget():
    f = minijax.jit(lambda x: x * 3)

    @minijax.recompile_budget(1)
    def step(n):
        """Doc."""
        return f(X[:n])

    assert [step(n).shape for n in (1, 2, 3)] == [(1,), (2,), (3,)]
    assert step.__name__ == "step" and step.__doc__ == "Doc."


def test_budgets_nest_and_are_those_of_the_thread():
    f = minijax.jit(lambda x: x * 5)
    budget = minijax.recompile_budget(1)
    with minijax.recompile_budget(3), budget, pytest.raises(minijax.RecompileError, match="budget is 1"):
        with budget:
            f(X[:1])
        f(X[:2])
    f(X[:3])


def test_traces_inside_others_count():
    f = minijax.jit(lambda x: x * 7)
    with minijax.recompile_budget(1), pytest.raises(minijax.RecompileError):
        minijax.jit(lambda x: f(x) + f(x[:1]))(X)


@pytest.mark.parametrize("n, error", [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_a_budget_is_a_number_of_traces(n, error):
    with pytest.raises(error):
        minijax.recompile_budget(n)


def test_objects_that_can_be_called_count_by_themselves():
    class Model:
        def __call__(self, x):
            return x * 2

    with minijax.recompile_budget(1):
        f, g = minijax.jit(Model()), minijax.jit(Model())
        f(X), g(X)
        with pytest.raises(minijax.RecompileError):
            g(X[:2])
    assert f.why().earlier is None
