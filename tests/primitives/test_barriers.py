"""Barriers, sinks, tokens and staged values, and small functions of lax, against jax."""

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, same, sweep
from transform_matrix import TRANSFORMS, transformed

pytestmark = pytest.mark.oracle

X, Y = np.arange(3, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)


def barrier(*of):
    return lambda lax: lambda x: lax.optimization_barrier(tuple(f(x) for f in of))


BARRIERS = [
    Case("one", lambda lax: lax.optimization_barrier, (X,)),
    Case("tree", lambda lax: lambda x: lax.optimization_barrier({"a": (x, None), "b": x * 2}), (X,)),
    Case("number", barrier(lambda x: x * 2, lambda x: 1.0), (X,)),
    Case("used-once", lambda lax: lambda x: lax.optimization_barrier((x * 2, x))[0], (X,)),
    Case("nothing", barrier(), (X,)),
]


@pytest.mark.parametrize("transform", ["plain", "jvp", "vjp", "grad", "vmap", "vmap_of_grad", "jit_of_vmap_of_jvp"])
def test_barriers_equal_jax_s(transform, tier):
    sweep([transformed(case, transform) for case in BARRIERS], tier)


def test_barriers_beside_integers(tier):
    case = Case("integers", lambda lax: lambda x, i: lax.optimization_barrier((x * 2, i)), (X, np.arange(3)))
    ways = ["plain", "vmap", "grad", "jvp", "jvp_of_vjp", "vmap_of_grad", "jit_of_vmap_of_jvp"]
    sweep([transformed(case, way) for way in ways if way in TRANSFORMS], tier)


def sink(*of, **how):
    return lambda lax: lambda x: (lax.dce_sink([f(x) for f in of], **how), x * 3)[1]


@pytest.mark.parametrize("transform", ["plain", "jvp", "grad", "vmap"])
def test_sinks_equal_jax_s(transform, tier):
    cases = [
        Case("one", sink(lambda x: x * 2), (X,)),
        Case("two", sink(lambda x: x, lambda x: 1), (X,)),
        Case("kept", sink(lambda x: x * 2, prevent_mlir_dce=True), (X,)),
        Case("none", sink(), (X,)),
    ]
    sweep([transformed(case, transform) for case in cases], tier)


def test_sinks_inside_control_flow(tier):
    def scanned(lax):
        return lambda x: lax.scan(lambda c, y: (lax.dce_sink(c * 2), (c, y))[1], x, Y)

    def branch(lax):
        return lambda x: lax.cond(True, lambda x: (lax.dce_sink(x * 2), x + 1)[1], lambda x: x, x)

    sweep([Case("scan", lambda lax: scanned(lax), (X,)), Case("cond", lambda lax: branch(lax), (X,))], tier)
    same(lambda jnp, lax: lax.dce_sink(jnp.ones(2), prevent_mlir_dce=True))


def test_tokens_equal_jax_s():
    def printed(jax, lax):
        return [
            str(jax.make_jaxpr(f)())
            for f in (lax.create_token, lax.after_all, lambda: lax.after_all(lax.create_token(), lax.create_token(2)))
        ]

    same(printed)
    same(lambda lax: type(lax.after_all(lax.create_token(), lax.create_token(3))).__name__)
    same(lambda lax: lax.after_all(1.0), raises=True)


def test_staged_values_equal_jax_s(tier):
    same(lambda lax: [lax.stage(value) for value in (1, 1.5, True, 2j, np.ones(2), np.float64(2))])
    same(lambda lax: lax.stage([1, 2]), raises=True)
    cases = [
        Case("x", lambda lax: lax.stage, (X,)),
        Case("number", lambda lax: lambda x: lax.stage(1.0), (X,)),
        Case("array", lambda lax: lambda x: lax.stage(np.arange(3)), (X,)),
    ]
    sweep([*cases, *(transformed(cases[0], t) for t in ("jvp", "grad", "vmap"))], tier)


@pytest.mark.parametrize("wrong", [[1], None, object()])
def test_dtypes_are_those_of_jax(wrong):
    values = (1, 1.0, True, 1j, np.ones(2, np.float32), np.float32, "float32", float, int, np.dtype("int8"),
              np.int16(3), ml_dtypes.bfloat16, X)  # fmt: skip
    same(lambda lax: [str(lax.dtype(value)) for value in values])
    same(lambda lax: lax.dtype(wrong), raises=True)


def test_broadcasting_like_another_array(tier):
    cases = [
        Case(f"{a.shape}-{b.shape}", lambda lax: lax.broadcast_like, (a, b), raises=LISTED)
        for a in (X, Y, Y[:, :1], X[:2], X[0])
        for b in (X, Y)
    ]
    sweep([*cases, Case("number", lambda lax: lambda y: lax.broadcast_like(1, y), (Y,))], tier)
    sweep([transformed(cases[1], t) for t in ("jvp", "vjp", "vmap")], tier)


def test_shapes_as_values():
    same(lambda lax: [np.asarray(lax.shape_as_value((2, 3))), np.asarray(lax.shape_as_value(()))])


def take(*axes):
    return lambda lax: lambda z, i: lax.index_take(z, i, axes)


def test_slices_along_several_axes(tier):
    z, at = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array([[0, 1, -1], [1, 2, 5]], np.int32)
    cases = [Case(f"{axes}", take(*axes), (z, at)) for axes in ((0, 1), (0, 2), (1, 2))]
    sweep([transformed(case, t) for case in cases for t in ("plain", "grad", "vmap")], tier)
    same(lambda jnp, lax: lax.index_take(jnp.asarray(z), jnp.arange(2), (1,)), raises=True)
