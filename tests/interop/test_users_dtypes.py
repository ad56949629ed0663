"""Dtypes that users define: their elements are numbers that add up in their own way, as flax's fp8 layers have them."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import mesh_language
import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTING = """
import dataclasses
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax._src import core, dtypes, earray
from jax._src.interpreters import pxla


class kind(dtypes.extended):
    pass


class Rules:
    physical_element_aval = staticmethod(lambda d: core.ShapedArray((), d.of))
    convert_from = staticmethod(lambda mine, other: mine.of == other)
    convert_to = staticmethod(lambda other, mine: mine.of == other)
    tangent_dtype = staticmethod(lambda d: d)
    zero = staticmethod(lambda d: lax.convert_element_type(np.array(-np.inf, d.of), d))
    add = staticmethod(lambda d, x, y: to(lax.max(back(x), back(y))))

    @staticmethod
    def full(shape, value, d):
        return to(lax.full(shape, lax.convert_element_type(value, d.of), d.of))

    @staticmethod
    def global_sharded_result_handler(aval, sharding, committed):
        handler = pxla.global_result_handlers[core.ShapedArray](core.physical_aval(aval), sharding, committed)
        return lambda buffers: earray.EArray(aval, handler(buffers))


@dataclasses.dataclass(frozen=True)
class MaxOf(dtypes.ExtendedDType):
    of: object
    _rules: type = Rules
    type: type = kind

    name = property(lambda self: f"maxof{self.of.name}")

    def __repr__(self):
        return self.name


f32 = jnp.dtype("float32")
most = MaxOf(f32)
x = jnp.arange(3.0)
to = lambda x: lax.convert_element_type(x, most)
back = lambda x: lax.convert_element_type(x, f32)
e = to(x)


@jax.custom_vjp
def keep(x, state):
    return x * 2


keep.defvjp(lambda x, s: (x * 2, (s, jnp.max(x))), lambda res, ct: (ct, to(jnp.maximum(back(res[0]), res[1]))))


def twice(x, s):
    s = to(s)
    return jnp.sum(keep(keep(x, s), s))


def in_a_loop(x, s):
    s = to(s)
    return lax.scan(lambda c, _: (keep(c, s), None), x, None, length=3)[0].sum()


def in_a_branch(x, s):
    return lax.cond(x[0] >= 0, lambda x, s: keep(x, s).sum(), lambda x, s: x.sum(), x, to(s))


def say(f):
    try:
        result = f()
    except Exception as error:
        print(type(error).__name__)
    else:
        print(result, jax.tree.map(lambda r: getattr(r, "dtype", None), result))
"""
CALLS = """
    e, type(e).__name__, isinstance(e, (jax.Array, earray.EArray)), e.shape, e.ndim, len(e), e.aval
    jax.jit(to)(x), jax.jit(back)(e), jax.vmap(back)(e), jax.vmap(to)(x), back(to(1.0))
    jax.make_jaxpr(lambda x: back(to(x)))(x)
    jax.experimental.EArray(core.ShapedArray((3,), most), x), e._data
    to(jnp.arange(3))
    lax.convert_element_type(e, "int32")
    lax.convert_element_type(e, MaxOf(jnp.dtype("float16")))
    to(jax.random.key(0))
    lax.reshape(e, (3, 1)), lax.broadcast(e, (2,)), lax.concatenate([e, e], 0), jnp.stack([e, e]), jax.device_put(e)
    lax.full((2,), 1.0, most), lax.full_like(e, 1.0), jnp.zeros((2,), most), jnp.full((), 2.0, most)
    jnp.where(x > 0, e, e), lax.select(x > 0, e, e), x.astype(most), jnp.asarray(e), jnp.result_type(e, e)
    lax.scan(lambda c, v: (c + back(v), v), 0.0, e), lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, e))
    jax.eval_shape(to, x), jax.eval_shape(back, jax.ShapeDtypeStruct((3,), most))
    [jnp.issubdtype(most, k) for k in (dtypes.extended, kind, jnp.floating, jax.dtypes.prng_key)]
    jax.jvp(back, (e,), (e,)), jax.linearize(back, e)[1](e), jax.vjp(lambda x, z: (x, z), x, e)[1]((x, e))
    jax.grad(lambda z: back(z).sum())(e)
    jax.jit(jax.grad(twice, (0, 1)))(x, 1.0)
    jax.grad(jax.jit(twice), (0, 1))(x, 1.0)
    jax.grad(in_a_loop, (0, 1))(x, 1.0), jax.jit(jax.grad(in_a_loop, (0, 1)))(x, 1.0)
    jax.grad(jax.jit(in_a_loop), (0, 1))(x, 1.0)
    jax.grad(in_a_branch, (0, 1))(x, 1.0), jax.jit(jax.grad(in_a_branch, (0, 1)))(x, 1.0)
    jax.grad(in_a_branch, (0, 1))(x - 1, 1.0)
    e.sum()
    e[0]
    e.at
    e.nbytes
    np.asarray(e)
    [(type(v).__name__, v.dtype, v.shape) for v in jax.device_get([e, x])]
    lax.add(e, e)
    hash(e)
"""


@pytest.mark.oracle
def test_values_of_users_dtypes():
    code = SETTING + "".join(f"say(lambda: ({line.strip()}))\n" for line in CALLS.strip().splitlines())
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    ours, theirs = (
        subprocess.run(
            [sys.executable, *how, code], capture_output=True, text=True, timeout=120, cwd=ROOT, env=environment
        )
        for how in (("-W", "ignore", "-m", "minijax", "-c"), ("-W", "ignore", "-c"))
    )
    assert theirs.stdout.count("\n") > 30, theirs.stderr
    assert ours.stdout == theirs.stdout, ours.stderr


PAIRED = """
jaxpr(lambda x: lax.convert_element_type(lax.convert_element_type(x, paired), "int8"), numbers(3, dtype="int8"))
text(lambda x: lax.convert_element_type(lax.convert_element_type(x, paired), "int8"), numbers(3, dtype="int8"))
jaxpr(lambda x: lax.convert_element_type(x, paired).reshape(3, 1), numbers(3, dtype="int8"))
[str(paired), paired.name, paired == paired_of("int8", "float32", name="paired"), hash(paired) == hash(paired_of("int8", "f4"))]
[repr(paired_of("int8", "bfloat16")), jnp.issubdtype(paired, jax.dtypes.extended)]
[str(a) for a in (jax.core.ShapedArray((3,), paired), jax.core.ShapedArray((3,), paired).to_tangent_aval())]
"""


def test_numbers_whose_derivatives_are_of_another_dtype():
    paired_of = lambda s: importlib.import_module(f"{s.jax.__name__}.experimental").primal_tangent_dtype  # noqa: E731
    mesh_language.same(PAIRED, paired_of=paired_of, paired=lambda s: paired_of(s)("int8", "float32", name="paired"))
