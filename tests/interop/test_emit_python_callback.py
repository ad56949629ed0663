"""Calls of the host that users' lowering rules build with `emit_python_callback`."""

import importlib

import numpy as np
import pytest
from compare import canonical, same

import minijax
from minijax.interpreters import mlir as _mlir

X = np.array([0.5, -1.5, 2.0], np.float32)


def primitive(jax, host, has_side_effect=False, count=1):
    """An operation whose results, of the type of its operand, `host` gives."""
    mlir = importlib.import_module(f"{jax.__name__}.interpreters.mlir")
    core = importlib.import_module(f"{jax.__name__}.extend.core")
    p = core.Primitive("asks_the_host")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [x] * count)

    def rule(ctx, x):
        results, token, held = mlir.emit_python_callback(
            ctx, host, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=has_side_effect
        )
        assert token is None and held is not None
        return results

    mlir.register_lowering(p, rule)
    return p


@pytest.mark.oracle
def test_results_texts_and_arguments_are_those_of_jax():
    def program(jax):
        seen = []

        def host(x):
            seen.append((type(x), x.shape, x.dtype))
            return np.asarray(x) * 2, np.asarray(x) + 1

        p = primitive(jax, host, count=2)
        twice = lambda x: p.bind(p.bind(x)[0])  # noqa: E731
        loop = lambda x: jax.lax.scan(lambda c, _: (p.bind(c)[0], c), x, None, length=3)  # noqa: E731
        beside = lambda x: (jax.pure_callback(np.sin, x, x), p.bind(x), jax.pure_callback(np.cos, x, x))  # noqa: E731
        results = [jax.jit(f)(x) for f in (p.bind, twice, loop, beside) for x in (X, X.reshape(3, 1))]
        jax.block_until_ready(results)
        return results, canonical(jax.jit(p.bind).lower(X).as_text()), sorted(map(str, seen))

    same(program)


def test_empty_arrays_do_not_pass_through_xla():
    p = primitive(minijax, lambda x: (np.zeros(x.shape, x.dtype),), has_side_effect=True)
    assert minijax.jit(p.bind)(X[:0])[0].shape == (0,)


def test_an_ordered_call_takes_and_gives_a_token():
    log = []
    core = importlib.import_module("minijax.extend.core")
    p = core.Primitive("logs")
    p.multiple_results = True
    effect = minijax.debug.OrderedDebugEffect()
    p.def_effectful_abstract_eval(lambda x: ([], {effect}))

    def rule(ctx, x):
        token = ctx.tokens_in.get(effect)
        results, token, _ = _mlir.emit_python_callback(
            ctx, lambda x: log.append(float(x)) or (), token, [x], ctx.avals_in, [], has_side_effect=True
        )
        ctx.set_tokens_out(_mlir.TokenSet({effect: token}))
        return results

    _mlir.register_lowering(p, rule)

    def body(c, _):
        p.bind(c)
        minijax.debug.callback(lambda x: log.append(-float(x)), c, ordered=True)
        return c + 1, None

    minijax.jit(lambda x: minijax.lax.scan(body, x, None, length=3)[0])(1.0)
    minijax.effects_barrier()
    assert log == [1, -1, 2, -2, 3, -3]


def test_errors_and_wrong_results_of_the_function_are_reported():
    def fail(x):
        raise KeyError("of the host")

    with pytest.raises(minijax.errors.JaxRuntimeError, match="KeyError: .of the host"):
        minijax.block_until_ready(minijax.jit(primitive(minijax, fail).bind)(X))
    wrong = primitive(minijax, lambda x: (np.zeros(7, np.float32),))
    with pytest.raises(Exception, match=r"\(7,\)|float32\[7\]"):
        minijax.block_until_ready(minijax.jit(wrong.bind)(X))
    assert minijax.jit(lambda x: x + 1)(X).shape == (3,)
