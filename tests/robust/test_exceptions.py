"""An exception in the middle of anything leaves nothing behind, and the same call works afterwards."""

import sys
import warnings

import compare
import numpy as np
import pytest
from processes import left_behind, reset

import minijax
import minijax.numpy as jnp
from minijax.run.programs.compile import compile_count

X = np.arange(1, 4, dtype=np.float32)


class Boom(Exception):
    """The exception that the programs raise."""


class Fuse:
    """Raises at each use as long as it burns."""

    def __init__(self):
        self.burns, self.uses = True, 0

    def __call__(self, x):
        self.uses += 1
        if self.burns:
            raise Boom("in the middle")
        return x


def _custom_jvp(jax, fuse, fuse_fun=lambda x: x):
    @jax.custom_jvp
    def f(x):
        return fuse_fun(jax.numpy.sin(x))

    f.defjvp(lambda primals, tangents: (f(primals[0]), fuse(tangents[0]) * 2))
    return f


def _custom_vjp(jax, fuse_fwd, fuse_bwd):
    @jax.custom_vjp
    def f(x):
        return jax.numpy.sin(x)

    f.defvjp(lambda x: (fuse_fwd(f(x)), x), lambda x, ct: (fuse_bwd(ct) * x,))
    return f


def _scoped(jax, fuse):
    def f(x):
        with jax.named_scope("a"), jax.default_matmul_precision("highest"), jax.enable_x64(True):
            return jax.vmap(lambda y: fuse(y) * 2, axis_name="i")(x)

    return f


def _identity(x):
    return x


# Each takes the modules, the fuse and an argument.
PROGRAMS = {
    "jit": lambda jax, fuse, x: jax.jit(lambda y: fuse(y * 2))(x),
    "jit of jit": lambda jax, fuse, x: jax.jit(lambda y: jax.jit(lambda z: fuse(z * 2))(y) + 1)(x),
    "grad": lambda jax, fuse, x: jax.grad(lambda y: fuse(y * 2).sum())(x),
    "value_and_grad": lambda jax, fuse, x: jax.value_and_grad(lambda y: fuse(y * 2).sum())(x),
    "jvp": lambda jax, fuse, x: jax.jvp(lambda y: fuse(y * 2), (x,), (x,)),
    "vjp": lambda jax, fuse, x: jax.vjp(lambda y: fuse(y * 2), x)[1](x),
    "linearize": lambda jax, fuse, x: jax.linearize(lambda y: fuse(y * 2), x)[1](x),
    "jacfwd": lambda jax, fuse, x: jax.jacfwd(lambda y: fuse(y * 2))(x),
    "hessian": lambda jax, fuse, x: jax.hessian(lambda y: fuse(y**3).sum())(x),
    "vmap": lambda jax, fuse, x: jax.vmap(lambda y: fuse(y * 2), axis_name="i")(x),
    "vmap of vmap": lambda jax, fuse, x: jax.vmap(
        lambda a: jax.vmap(lambda b: fuse(a * b), axis_name="j")(x), axis_name="i"
    )(x),
    "scan": lambda jax, fuse, x: jax.lax.scan(lambda c, a: (fuse(c + a), c), 0.0, x),
    "grad of scan": lambda jax, fuse, x: jax.grad(lambda y: jax.lax.scan(lambda c, a: (fuse(c * a), c), 1.0, y)[0])(x),
    "cond": lambda jax, fuse, x: jax.lax.cond(x[0] > 0, lambda y: fuse(y * 2), _identity, x),
    "the other branch": lambda jax, fuse, x: jax.lax.cond(x[0] > 0, _identity, lambda y: fuse(y * 2), x),
    "switch": lambda jax, fuse, x: jax.lax.switch(1, [_identity, _identity, lambda y: fuse(y * 2)], x),
    "while's cond": lambda jax, fuse, x: jax.lax.while_loop(lambda y: fuse(y.sum()) < 50, lambda y: y * 2, x),
    "while's body": lambda jax, fuse, x: jax.lax.while_loop(lambda y: y.sum() < 50, lambda y: fuse(y * 2), x),
    "fori": lambda jax, fuse, x: jax.lax.fori_loop(0, 3, lambda i, y: fuse(y * 2), x),
    "map": lambda jax, fuse, x: jax.lax.map(lambda y: fuse(y * 2), x),
    "associative_scan": lambda jax, fuse, x: jax.lax.associative_scan(lambda a, b: fuse(a + b), x),
    "checkpoint": lambda jax, fuse, x: jax.grad(lambda y: jax.checkpoint(lambda z: fuse(z * z))(y).sum())(x),
    "custom_jvp's function": lambda jax, fuse, x: _custom_jvp(jax, _identity, fuse)(x),
    "custom_jvp's rule": lambda jax, fuse, x: jax.jvp(_custom_jvp(jax, fuse), (x,), (x,)),
    "custom_jvp's rule in jit": lambda jax, fuse, x: jax.jit(jax.grad(lambda y: _custom_jvp(jax, fuse)(y).sum()))(x),
    "custom_vjp's forward": lambda jax, fuse, x: jax.grad(lambda y: _custom_vjp(jax, fuse, _identity)(y).sum())(x),
    "custom_vjp's backward": lambda jax, fuse, x: jax.grad(lambda y: _custom_vjp(jax, _identity, fuse)(y).sum())(x),
    "custom_vjp's backward in scan": lambda jax, fuse, x: jax.grad(
        lambda y: jax.lax.scan(lambda c, a: (_custom_vjp(jax, _identity, fuse)(c) * a, c), 1.0, y)[0]
    )(x),
    "make_jaxpr": lambda jax, fuse, x: str(jax.make_jaxpr(lambda y: fuse(y * 2))(x)),
    "make_jaxpr with axes": lambda jax, fuse, x: str(
        jax.make_jaxpr(lambda y: fuse(jax.lax.psum(y, "i")), axis_env=[("i", 2)])(x)
    ),
    "eval_shape": lambda jax, fuse, x: repr(jax.eval_shape(lambda y: fuse(y * 2), x)),
    "lower": lambda jax, fuse, x: len(jax.jit(lambda y: fuse(y * 2)).lower(x).as_text()) > 0,
    "linear_transpose": lambda jax, fuse, x: jax.linear_transpose(lambda y: fuse(y * 2), x)(x),
    "custom_linear_solve": lambda jax, fuse, x: jax.lax.custom_linear_solve(
        lambda y: fuse(y * 2), x, lambda f, y: y / 2, symmetric=True
    ),
    "scopes": lambda jax, fuse, x: _scoped(jax, fuse)(x),
    "scopes in jit": lambda jax, fuse, x: jax.jit(_scoped(jax, fuse))(x),
    "eager constants": lambda jax, fuse, x: jax.jit(lambda y: _eager_inside(jax, fuse, y))(x),
    "vmap in grad in jit": lambda jax, fuse, x: jax.jit(
        jax.grad(lambda y: jax.vmap(lambda z: fuse(z * z), axis_name="i")(y).sum())
    )(x),
    "jit in vmap in scan": lambda jax, fuse, x: jax.lax.scan(
        lambda c, a: (jax.vmap(jax.jit(lambda z: fuse(z * a)))(c), a), x, x
    ),
}


def _eager_inside(jax, fuse, y):
    with jax.ensure_compile_time_eval():
        constant = fuse(jax.numpy.ones(3) * 2)
    return y + constant


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_exception_leaves_nothing_and_the_same_call_works_afterwards(program):
    limit, results = sys.getrecursionlimit(), []
    for side in (compare.ours(), compare.theirs()):
        fuse = Fuse()
        run = lambda fuse=fuse, side=side: PROGRAMS[program](side, fuse, X)  # noqa: E731
        with pytest.raises(Boom, match="in the middle"):
            run()
        assert fuse.uses == 1
        assert left_behind(limit) == []
        fuse.burns = False
        results.append(run())
        assert left_behind(limit) == []
    if program.startswith("make_jaxpr"):
        results = [compare.normal(text) for text in results]
    compare.same_value(*results)


# One function object, which jit and others remember


def _remembered(jax, fuse):
    def f(y):
        return fuse(y * 2)

    def step(c, a):
        return f(c), a

    rule, jitted = _custom_vjp(jax, _identity, fuse), jax.jit(f)
    static = jax.jit(lambda y, n: f(y) * n, static_argnums=1)
    donating, saving = jax.jit(f, donate_argnums=0), jax.checkpoint(f)
    return {
        "jit": jitted,
        "jit of grad": jax.jit(jax.grad(lambda y: f(y).sum())),
        "jit with static": lambda x: static(x, 2),
        "jit with donation": lambda x: donating(jax.numpy.array(x)),
        "jit inside": lambda x: jax.jit(lambda y: jitted(y) + 1)(x),
        "scan": lambda x: jax.lax.scan(step, x, x),
        "cond": lambda x: jax.lax.cond(True, f, _identity, x),
        "while": lambda x: jax.lax.while_loop(lambda y: y.sum() < 90, f, x),
        "checkpoint": jax.grad(lambda y: saving(y).sum()),
        "a rule in jit": jax.jit(jax.grad(lambda y: rule(y).sum())),
        "a pulled-back jit": lambda x: jax.vjp(jitted, x)[1](x),
        "vmap of jit": jax.vmap(jitted),
    }


@pytest.mark.parametrize("name", _remembered(minijax, _identity))
def test_a_trace_that_fails_is_not_remembered(name):
    fuse = Fuse()
    call = _remembered(minijax, fuse)[name]
    for uses in (1, 2):
        with pytest.raises(Boom):
            call(X)
        assert fuse.uses == uses
    fuse.burns = False
    first = minijax.tree.leaves(call(X))
    assert all(np.isfinite(a).all() for a in first)
    if name.startswith("jit"):
        uses = fuse.uses
        call(X)
        assert fuse.uses == uses


# After tracing: lowering, compiling, running


def test_a_rule_that_raises_while_lowering_leaves_nothing():
    from minijax.primitives.elementwise import sin_p

    class Breaking(type(sin_p)):
        burns = True

        def lower(self, *args, **params):
            if self.burns:
                raise Boom("while lowering")
            return super().lower(*args, **params)

    from minijax.primitives.families import INEXACT

    breaking = Breaking("sin_that_breaks", "sine", INEXACT, lambda t, ans, x: t)
    f, limit = minijax.jit(lambda x: breaking(x) + 1), sys.getrecursionlimit()
    for call in (lambda: f(X), lambda: breaking(jnp.asarray(X)), lambda: minijax.jit(minijax.vmap(breaking))(X)):
        with pytest.raises(Boom):
            call()
        assert left_behind(limit) == []
    Breaking.burns = False
    assert np.allclose(f(X), np.sin(X) + 1) and np.allclose(breaking(X), np.sin(X))


BAD_OPTIONS = {"unknown": {"no_such_option": 1}, "wrong kind": {"xla_embed_ir_in_executable": "maybe"}}


@pytest.mark.oracle
@pytest.mark.parametrize("options", BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_a_compiler_option_that_xla_rejects_raises_and_is_forgotten(options):
    compare.same_refusal(lambda jax: lambda: jax.jit(lambda x: x + 7.5, compiler_options=options)(X))
    f, before = minijax.jit(lambda x: x + 7.5, compiler_options=options), compile_count()
    for _ in range(2):
        with pytest.raises(minijax.errors.JaxRuntimeError):
            f(X)
    with pytest.raises(minijax.errors.JaxRuntimeError):
        minijax.jit(lambda x: x + 7.5).lower(X).compile(options)
    assert left_behind(sys.getrecursionlimit()) == [] and compile_count() == before
    assert minijax.jit(lambda x: x + 7.5)(X).tolist() == [8.5, 9.5, 10.5]


def test_a_warning_turned_into_an_error_leaves_nothing():
    f = minijax.jit(lambda x: x[0] * 1.75, donate_argnums=0)
    limit = sys.getrecursionlimit()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="donated"):
            f(jnp.asarray(X))
    assert left_behind(limit) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(jnp.asarray(X)) == 1.75


# Exceptions that the user's function handles


def test_an_exception_caught_inside_a_trace_does_not_disturb_it():
    def fails(kind):
        def f(x):
            raise kind("caught")

        return f

    def outer(x):
        tries = [
            lambda: minijax.jit(fails(ValueError))(x),
            lambda: minijax.grad(fails(ValueError))(x.sum()),
            lambda: minijax.vmap(fails(KeyError), axis_name="i")(x),
            lambda: minijax.lax.scan(lambda c, a: fails(ValueError)(c), x, x),
            lambda: minijax.lax.cond(x[0] > 0, fails(ZeroDivisionError), jnp.sin, x),
            lambda: bool(x[0] > 0),
            lambda: x @ jnp.ones(7),
            lambda: minijax.linearize(fails(ValueError), x),
        ]
        caught = 0
        for call in tries:
            try:
                call()
            except (ValueError, KeyError, ZeroDivisionError, TypeError):
                caught += 1
        with pytest.raises(NameError):
            minijax.lax.psum(x, "i")
        return x * caught

    assert minijax.jit(outer)(X).tolist() == [8, 16, 24]
    assert minijax.jit(minijax.grad(lambda x: outer(x).sum()))(X).tolist() == [8, 8, 8]
    assert left_behind(sys.getrecursionlimit()) == []


def test_reset_is_not_needed():
    # The clean state is that of a new thread.
    before = left_behind(sys.getrecursionlimit())
    reset()
    assert before == []
