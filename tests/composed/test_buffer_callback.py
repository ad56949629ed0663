"""`jax.experimental.buffer_callback`: jaxprs, texts, results and errors are those of jax."""

import functools
import importlib
import re

import compare
import numpy as np
import pytest
from compare import same_error, same_jaxpr, same_text
from mesh_language import same

import minijax

jax = compare.theirs()

X = np.arange(6, dtype=np.float32).reshape(2, 3)
METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]


def caller(jax, callback, results=None, **options):
    module = importlib.import_module(f"{jax.__name__}.experimental.buffer_callback")
    return module.buffer_callback(
        callback, jax.ShapeDtypeStruct((3,), np.float32) if results is None else results, **options
    )


def add(context, out, x, y=0):
    np.asarray(out)[...] = np.asarray(x) + np.asarray(y)


OPTIONS = [{}, {"has_side_effect": True}, {"input_output_aliases": {0: 0}}, {"command_buffer_compatible": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_operation_is_that_of_jax(options):
    same_jaxpr(lambda jax: caller(jax, add, **options), X[0], X[1])
    same_text(lambda jax: caller(jax, add, **options), X[0], X[1])


PROGRAMS = """
prog(jax.shard_map(fill, mesh=m8, in_specs=P("i"), out_specs=P("i")), np.ones((8, 2), np.float32))
prog(jax.shard_map(fill, mesh=m8, in_specs=P("i"), out_specs=P("i"), check_vma=False), np.ones((8, 2), np.float32))
jaxpr(fill, put(np.ones((8, 2), np.float32), "x", mesh=explicit))
prog(lambda k: call(add, k)(k), random.key(0))
prog(lambda x: lax.scan(lambda c, x: (c, fill(x)), 0, x), X)
jax.jit(jax.shard_map(fill, mesh=m8, in_specs=P("i"), out_specs=P("i")))(np.ones((8, 2), np.float32))
jax.jit(fill)(put(np.ones((8, 2), np.float32), "x"))
jax.pmap(fill)(np.ones((8, 2), np.float32)), jax.jit(lambda x: lax.cond(True, fill, lambda x: x, x))(X)
jax.jit(jax.grad(jax.checkpoint(lambda x: (fill(lax.stop_gradient(x)) * x).sum())))(X)
"""
GIVEN = {
    "call": lambda s: functools.partial(caller, s.jax),
    "fill": lambda s: lambda x: caller(s.jax, double, s.SDS(x.shape, x.dtype))(x),
    "add": lambda s: add,
    "prog": lambda s: lambda f, *args: [re.sub("0x[0-9a-f]+", "", s.jaxpr(f, *args)), s.text(f, *args)],
    "X": lambda s: s.jnp.asarray(X),
}


def double(context, out, x):
    np.asarray(out)[...] = np.asarray(x) * 2


def test_programs_on_several_devices_and_with_keys_are_those_of_jax():
    same(PROGRAMS, **GIVEN)


def test_graphs_of_gpus_may_hold_the_call():
    def text(jax):
        f = jax.jit(caller(jax, add, command_buffer_compatible=True))
        return f.trace(X[0]).lower(lowering_platforms=("cuda",)).as_text()

    for namespace in (minijax, jax):
        assert "@xla_buffer_python_gpu_callback_cmd_buffer(" in text(namespace)


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_mapped_as_in_jax(method):
    for axes in (0, (0, None)):
        same_jaxpr(lambda jax, a=axes: jax.vmap(caller(jax, add, vmap_method=method), in_axes=a), X, X[:, 0])
    f = minijax.jit(minijax.vmap(caller(minijax, add, vmap_method=method)))
    np.testing.assert_array_equal(f(X, X), X + X)


def test_trees_go_in_and_out():
    def swap(context, out, pair, *, scale):
        assert context.stage == importlib.import_module("minijax.experimental.buffer_callback").ExecutionStage.EXECUTE
        assert not pair["a"].writeable and out[0].writeable and out[0].shape == (2,) and out[0].ndim == 1
        np.asarray(out[0])[...] = np.asarray(pair["b"])
        np.asarray(out[1]["c"])[...] = np.asarray(pair["a"]) * np.asarray(scale)

    struct = minijax.ShapeDtypeStruct
    f = caller(minijax, swap, (struct((2,), np.int8), {"c": struct((3,), np.float32)}))
    for call in (f, minijax.jit(f)):
        first, rest = call({"a": X[1], "b": np.int8([5, 6])}, scale=2.0)
        np.testing.assert_array_equal(first, [5, 6])
        np.testing.assert_array_equal(rest["c"], 2 * X[1])


def test_empty_and_no_arrays():
    f = caller(minijax, add, minijax.ShapeDtypeStruct((0, 3), np.float32))
    assert f(X[:0]).shape == (0, 3)
    seen = []
    minijax.block_until_ready(caller(minijax, lambda *args: seen.append(args), (), has_side_effect=True)())
    minijax.effects_barrier()
    assert len(seen) == 1


def test_callbacks_return_nothing():
    with pytest.raises(minijax.errors.JaxRuntimeError, match="must not return any values"):
        minijax.block_until_ready(caller(minijax, lambda *args: 3)(X[0]))


def test_aliased_results_have_the_memory_of_the_argument():
    def same(context, out, x):
        assert np.asarray(out).ctypes.data == np.asarray(x).ctypes.data

    f = caller(minijax, same, input_output_aliases={0: 0})
    np.testing.assert_array_equal(minijax.jit(lambda x: f(x + 1))(X[0]), X[0] + 1)


WRONG = {
    "input": lambda jax: caller(jax, add, input_output_aliases={3: 0})(X[0]),
    "output": lambda jax: caller(jax, add, input_output_aliases={0: 1})(X[0]),
    "types": lambda jax: caller(jax, add, input_output_aliases={0: 0})(X[0, :2]),
    "number": lambda jax: caller(jax, add, input_output_aliases={"a": 0})(X[0]),
    "leaf": lambda jax: caller(jax, add)("a"),
    "result": lambda jax: caller(jax, add, 3),
    "vmap": lambda jax: jax.vmap(caller(jax, add))(X),
    "method": lambda jax: jax.vmap(caller(jax, add, vmap_method="x"))(X),
    "jvp": lambda jax: jax.jvp(caller(jax, add), (X[0],), (X[0],)),
    "tpu": lambda jax: jax.jit(caller(jax, add)).trace(X[0]).lower(lowering_platforms=("tpu",)),
}


@pytest.mark.parametrize("name", WRONG)
def test_misuse_raises_as_in_jax(name):
    same_error(lambda: WRONG[name](minijax), lambda: WRONG[name](jax))


def test_errors_of_the_callback_are_propagated():
    def bad(*args):
        raise KeyError("no such key")

    for f in (caller(minijax, bad), minijax.jit(caller(minijax, bad))):
        with pytest.raises(minijax.errors.JaxRuntimeError, match="KeyError: 'no such key'"):
            minijax.block_until_ready(f(X[0]))
