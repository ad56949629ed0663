"""Functions of trees as jaxprs: what they capture, how long they are remembered, what their parts are called."""

import gc
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.base import tree
from minijax.ir.body import (
    Flat,
    as_consts,
    as_inputs_if_live,
    debug_info,
    merge_captured_inputs,
    trace_body,
    trace_flat,
)
from minijax.ir.types import typeof

VECTOR, SCALAR = typeof(np.ones(3, np.float32)), typeof(np.float32(0))


def body_of(fun, *args, purpose="test", **how):
    leaves, treedef = tree.flatten(args)
    return trace_body(fun, [typeof(x) for x in leaves], treedef, purpose, **how)


class Counted:
    """A function that counts its calls."""

    def __init__(self, fun):
        self.fun, self.calls = fun, 0

    def __call__(self, *args):
        self.calls += 1
        return self.fun(*args)


# ---- what is captured -------------------------------------------------------------------------------


def test_captured_values_are_leading_inputs_in_the_order_of_their_use():
    first, second = jnp.arange(3.0), np.arange(3.0, dtype=np.float32)
    body = body_of(lambda x: (x + second) * first * second, jnp.ones(3))
    assert [np.asarray(x).tolist() for x in body.captured] == [second.tolist(), [0.0, 1.0, 2.0]]
    assert body.captured[1] is first
    assert body.jaxpr.constvars == [] and len(body.jaxpr.invars) == 3
    assert body.in_avals == [VECTOR]


def test_scalars_on_the_host_are_literals_and_nothing_is_captured_of_them():
    body = body_of(lambda x: x * 2.0 + np.float32(3), 1.0)
    assert body.captured == [] and len(body.jaxpr.invars) == 1


def test_captured_values_are_constants_if_the_caller_requests_it():
    array = jnp.arange(3.0)
    body = body_of(lambda x: x + array, jnp.ones(3), capture=as_consts)
    assert body.captured == [] and body.closed.consts[0] is array


def test_captured_values_are_inputs_if_one_is_traced_and_the_caller_requests_it():
    array, seen = jnp.arange(3.0), []

    def outer(y):
        seen.append(body_of(lambda x: x + array + y, jnp.ones(3), capture=as_inputs_if_live))
        seen.append(body_of(lambda x: x + array, jnp.ones(3), capture=as_inputs_if_live))
        return y

    minijax.make_jaxpr(outer)(jnp.ones(3))
    live, still = seen
    assert len(live.captured) == 2 and live.closed.consts == []
    assert still.captured == [] and len(still.closed.consts) == 1


def test_bodies_are_merged_over_what_they_captured_together():
    shared, own = jnp.arange(3.0), jnp.ones(3)
    bodies = [body_of(lambda x: x + shared, jnp.ones(3)), body_of(lambda x: x * own + shared, jnp.ones(3))]
    closed, captured = merge_captured_inputs(bodies)
    assert [x is y for x, y in zip(captured, (shared, own), strict=True)] == [True, True]
    assert [len(c.invars) for c in closed] == [3, 3]
    assert closed[0].eqns[0].invars[1] is closed[0].invars[0]


# ---- how long it is remembered ----------------------------------------------------------------------


def test_a_function_is_traced_once_for_each_kind_of_arguments():
    fun = Counted(lambda *xs: xs)
    bodies = [body_of(fun, jnp.ones(3)), body_of(fun, jnp.zeros(3))]
    assert fun.calls == 1 and bodies[0] is bodies[1]
    body_of(fun, jnp.ones(4))
    body_of(fun, (jnp.ones(3),))
    body_of(fun, jnp.ones(3), purpose="another")
    body_of(fun, jnp.ones(3), capture=as_consts)
    assert fun.calls == 5


def test_a_function_is_traced_anew_under_other_options():
    fun = Counted(jnp.sin)
    body_of(fun, np.ones(3, np.float32))
    with minijax.default_matmul_precision("float32"):
        body_of(fun, np.ones(3, np.float32))
    assert fun.calls == 2


def test_control_flow_shares_what_it_traces_between_calls():
    step = Counted(lambda carry, x: (carry + x, carry))
    test, double = Counted(lambda x: x < 10), Counted(lambda x: x * 2)
    for _ in range(2):
        minijax.lax.scan(step, 0.0, jnp.arange(3.0))
        minijax.lax.while_loop(test, double, 1)
        minijax.lax.cond(True, double, double, 1)
    assert (step.calls, test.calls, double.calls) == (1, 1, 2)


def test_a_body_is_traced_anew_when_a_trace_that_it_captured_is_over():
    cell = []
    fun = Counted(lambda x: x + cell[0])

    def outer(y):
        cell[:] = [y]
        return [body_of(fun, 1.0), body_of(fun, 1.0)] and y

    minijax.make_jaxpr(lambda y: outer(y))(1.0)
    minijax.make_jaxpr(lambda y: outer(y))(1.0)
    assert fun.calls == 2


def test_a_body_dies_with_its_function():
    array = jnp.arange(3.0)

    def fun(x):
        return x + array

    body = weakref.ref(body_of(fun, jnp.ones(3)).closed)
    gc.collect()
    assert body() is not None
    del fun
    gc.collect()
    assert body() is None


def test_a_loop_whose_carry_stays_dies_with_its_function():
    def step(carry):
        return carry[0] + 1, carry[1]

    minijax.lax.while_loop(lambda carry: carry[0] < 3, step, (0, jnp.ones(3)))
    minijax.lax.while_loop(lambda carry: carry[0] < 3, lambda carry: (carry[0] + 1, carry[1] * 2), (0, jnp.ones(3)))
    alive = weakref.ref(step)
    del step
    gc.collect()
    assert alive() is None


def test_functions_without_a_hash_are_traced_each_time():
    class NoHash(Counted):
        __hash__ = None

    fun = NoHash(jnp.sin)
    body_of(fun, 1.0)
    body_of(fun, 1.0)
    assert fun.calls == 2


# ---- trees and names --------------------------------------------------------------------------------


def test_trees_and_names_of_arguments_and_results():
    def fun(carry, xs):
        return {"sum": carry[0] + xs["a"], "pair": (carry[1], xs["a"])}

    body = body_of(fun, (1.0, 2), {"a": jnp.ones(3)})
    assert body.names == ("carry[0]", "carry[1]", "xs['a']")
    assert body.out_tree == tree.tree_structure({"sum": 0, "pair": (0, 0)})
    assert body.closed.debug_info.result_paths == ("result['pair'][0]", "result['pair'][1]", "result['sum']")
    assert body.closed.debug_info.traced_for == "test"
    assert body.closed.debug_info.func_name == "fun"


def test_captured_values_have_no_names():
    array = jnp.arange(3.0)
    body = body_of(lambda x: x + array, jnp.ones(3))
    assert body.names == ("x",) and body.closed.debug_info.arg_names == ("", "x")


def test_arguments_are_put_back_where_the_function_takes_them():
    def fun(a, b, *, c):
        return a - b, c

    flat = Flat(fun, tree.tree_structure(((0, 0), {"c": 0})), lambda pair: ((pair[0][1], pair[0][0]), pair[1]))
    assert flat(1, 2, 3) == [1, 3]
    assert flat.out_tree == tree.tree_structure((0, 0)) and flat.__name__ == "fun"


@pytest.mark.parametrize("result", ["a", object(), [1.0, "b"]], ids=["str", "object", "in a list"])
def test_results_that_are_not_values_are_refused_and_not_cached(result):
    fun = Counted(lambda x: result)
    for _ in range(2):
        with pytest.raises(TypeError, match="not a valid JAX type"):
            body_of(fun, 1.0)
    assert fun.calls == 2


def test_only_a_named_trace_is_reported_to_listeners():
    heard = []
    minijax.monitoring.register_event_duration_secs_listener(lambda event, *_, **how: heard.append(how.get("fun_name")))
    try:
        flat = Flat(jnp.sin, tree.tree_structure((0,)))
        info = debug_info(jnp.sin, "test", flat.in_tree)
        trace_flat(flat, [SCALAR], info)
        trace_flat(flat, [SCALAR], info, name="mine")
    finally:
        minijax.monitoring.clear_event_listeners()
    assert heard == ["mine"]
