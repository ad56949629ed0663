"""`checkpoint`: saved and recomputed values, as the jaxprs show them."""

import functools
import os

import compare
import numpy as np
import pytest

import minijax
from minijax.run.programs.compile import compile_count

X = np.array([0.5, -1.5, 2.0], np.float32)
M = np.arange(9.0, dtype=np.float32).reshape(3, 3) / 9


def jaxpr(jax, f, *args):
    return compare._unwrapped(compare.normal(str(jax.make_jaxpr(f)(*args))))


def shown(*ways, **options):
    """Values and jaxprs of the gradient of a small network under `checkpoint`, in some ways."""

    def program(jax, jnp, ad_checkpoint):
        def block(w, x):
            h = ad_checkpoint.checkpoint_name(jnp.sin(w @ x), "h")
            return jnp.sum(ad_checkpoint.checkpoint_name(jnp.cos(h), "c") * x)

        given = {k: v(jax) if callable(v) else v for k, v in options.items()}
        f = jax.checkpoint(block, **given)
        made = {
            "plain": f,
            "grad": jax.grad(f),
            "jit": jax.jit(f),
            "grad of jit": jax.grad(jax.jit(f)),
            "vmap": jax.vmap(f, (None, 0)),
            "jvp": lambda w, x: jax.jvp(f, (w, x), (w, x)),
            "vmap of grad": jax.vmap(jax.grad(f), (None, 0)),
            "scan": lambda w, x: jax.grad(
                lambda w: jax.lax.scan(lambda c, v: (c * f(w, v), None), 1.0, jnp.stack([x, x]))[0]
            )(w),
            "grad of grad": jax.grad(lambda w, x: jax.grad(f)(w, x).sum()),
        }
        results = {}
        for way in ways or ("plain", "grad"):
            args = (M, np.stack([X, X + 1])) if "vmap" in way else (M, X)
            # Which of its results a scan keeps, and in which order, is a matter of scan.
            text = "" if way == "scan" else jaxpr(jax, made[way], *args)
            results[way] = text, made[way](*args)
        return results

    return program


def policy(make):
    return shown("grad", policy=lambda jax: make(jax.checkpoint_policies))


def _static(jax, jnp):
    @functools.partial(jax.checkpoint, static_argnums=(1, 2))
    def f(x, n, mode):
        return x**n if mode else x * 1.0

    @functools.partial(jax.checkpoint, static_argnums=-1)
    def g(x, n):
        return x * n

    return jax.grad(f)(2.0, 3, True), f(2.0, 1, True), jax.grad(g)(2.0, 4)


def _trees(jax, jnp):
    f = jax.checkpoint(lambda t, n=None, *, k: {"o": jnp.sin(t["a"]) * k, "n": n})
    return f({"a": X}, k=2.0), jax.grad(lambda t: f(t, k=3.0)["o"].sum())({"a": X, "b": jnp.ones(2)})


def _calls(jax, jnp):
    inner = jax.jit(lambda x, y: jnp.sin(x) * jnp.cos(y) * jnp.exp(x * y))
    f = jax.checkpoint(lambda x, y: inner(x, y) * y, policy=jax.checkpoint_policies.everything_saveable)
    scanned = lambda x, y: jax.lax.scan(lambda c, v: (f(c, v), None), x, jnp.stack([y, y + 1]))[0]  # noqa: E731
    # Values alone: jax leaves a call that computes nothing in the jaxpr.
    return jax.grad(f, (0, 1))(1.0, 2.0), jax.grad(scanned, (0, 1))(1.0, 2.0)


def _closures(jax, jnp):
    def f(x, y):
        return jax.checkpoint(lambda z: jnp.sin(z * y))(x) + jax.checkpoint(lambda z: z + np.float32(2) * X[0])(y)

    return jaxpr(jax, jax.grad(f, (0, 1)), 1.0, 2.0), jax.grad(f, (0, 1))(1.0, 2.0), jax.vmap(f)(X, X)


def _names(jax, jnp):
    def f(x):
        """doc"""
        return x

    g = jax.checkpoint(f)
    return g.__name__, g.__doc__, g.__wrapped__ is f


def _decorators(jax, jnp):
    @jax.checkpoint
    def f(x):
        return jnp.sin(jnp.sin(x))

    @functools.partial(jax.remat, prevent_cse=False)
    def g(x):
        return jnp.sin(jnp.sin(x))

    return jaxpr(jax, jax.grad(f), 1.0), jaxpr(jax, jax.grad(g), 1.0), jax.grad(f)(1.0), jax.grad(g)(1.0)


def _nested(jax, jnp):
    f = jax.checkpoint(lambda x: jnp.sin(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x)))
    return jaxpr(jax, jax.grad(f), 1.0), jax.grad(f)(1.0)


def _integers(jax, jnp):
    f = jax.checkpoint(lambda x, n: (jnp.sin(x) * n, n + 1))
    return jax.grad(lambda x: f(x, 3)[0])(1.0), jaxpr(jax, jax.grad(lambda x: f(x, 3)[0]), 1.0)


def _a_tangent_that_is_constant(jax, jnp):
    ramp = jax.custom_jvp(lambda x: jax.lax.broadcasted_iota("float32", (2, 3), 0))
    ramp.defjvp(lambda p, t: jax.jvp(ramp.fun, p, t))
    return jax.value_and_grad(jax.checkpoint(lambda x: ramp(x)[1].sum()))(2.0)


def _residual_names(jax, jnp, ad_checkpoint):
    name = ad_checkpoint.checkpoint_name
    return (
        jaxpr(jax, lambda x: name(x, "a"), 1.0),
        name({"a": jnp.float32(1), "b": (jnp.asarray(X),)}, "n"),
        jax.grad(lambda x: name(x * 2, "n"))(1.0),
    )


def _cond_by_policy(make):
    """The operations of the linear part of a `cond` under each policy, and the derivatives."""

    def program(jax, jnp):
        def some(x, y):
            return jax.lax.cond(
                x > 0, lambda x, y: (jnp.sin(x), jnp.cos(y)), lambda x, y: (y, jnp.sin(jnp.exp(x))), x, y
            )

        def chosen(x):
            a, b = some(x, jax.lax.stop_gradient(x))
            return jax.lax.switch(jnp.int32(1), [jnp.exp, lambda a: jnp.sin(jnp.sin(a))], a) * jnp.cos(b)

        f = jax.checkpoint(chosen, policy=make(jax.checkpoint_policies))
        linear = str(jax.make_jaxpr(jax.linearize(f, 0.4)[1])(1.0))
        counts = {name: linear.count(f" = {name} ") for name in ("sin", "cos", "exp")}
        return counts, jax.grad(f)(0.4), jax.grad(jax.grad(f))(-0.4), jax.jit(jax.vmap(jax.grad(f)))(X)

    return program


def _only(name):
    return lambda primitive, *_, **__: str(primitive) == name


def _apart(prevent_cse):
    """The programs of a function of a tree and an array, which captures another, and the barriers of its gradient."""

    def program(jax, jnp):
        d, x, c = {"a": jnp.ones(2), "b": jnp.arange(2.0)}, jnp.full(2, 0.5), jnp.arange(3.0, 5)
        f = jax.checkpoint(lambda d, x: jnp.sin(jnp.sin(d["a"])) * d["b"] * x * c, prevent_cse=prevent_cse)
        total = lambda d, x: f(d, x).sum()  # noqa: E731
        saving = jax.checkpoint(
            lambda d, x: jnp.sin(d["a"] * x) * c,
            prevent_cse=(True, False),
            policy=jax.checkpoint_policies.everything_saveable,
        )
        programs = {
            "plain": (f, d, x),
            "grad": (jax.grad(total, (0, 1)), d, x),
            "grad of one": (jax.grad(total, 1), d, x),
            "jvp": (lambda d, x: jax.jvp(f, (d, x), (d, x)), d, x),
            "linearize": (lambda d, x: jax.linearize(f, d, x)[1](d, x), d, x),
            "vmap": (jax.vmap(f), {k: jnp.stack([v, v]) for k, v in d.items()}, jnp.stack([x, x])),
            "grad of grad": (jax.grad(lambda x: jax.grad(total)(d, x)["a"].sum()), x),
            "saved": (jax.grad(lambda d, x: saving(d, x).sum()), d, x),
            "in a loop": (jax.grad(lambda x: jax.lax.scan(lambda u, _: (f(d, u), u), x, None, 2)[0].sum()), x),
            "without some": (
                lambda d, x: jax.checkpoint(lambda d, x: (d["a"] * 2, x), prevent_cse=prevent_cse)(d, x)[1],
                d,
                x,
            ),
        }
        lowered = jax.jit(jax.grad(total, (0, 1))).lower(d, x).as_text().split("\n")
        barriers = [line.strip() for line in lowered if "barrier" in line]
        return {k: jaxpr(jax, *v) for k, v in programs.items()}, barriers, jax.grad(total, (0, 1))(d, x)

    return program


def _apart_by_keyword(jax, jnp):
    f = lambda p: jax.checkpoint(lambda a, b, k=1.0: jnp.sin(a) * b * k, prevent_cse=p)  # noqa: E731
    x = jnp.ones(2)
    calls = [((x, x), {}), ((x,), {"b": x}), ((x, x), {"k": x}), ((), {"a": x, "b": x})]
    return [jaxpr(jax, lambda args, kwargs: f((True, False))(*args, **kwargs), *call) for call in calls]


VALUES = {
    "prevent_cse of parts": _apart(({"a": True, "b": False}, False)),
    "prevent_cse of the second": _apart((False, True)),
    "prevent_cse of no argument": _apart((False, False)),
    "prevent_cse of all, as a list": _apart([True, True]),
    "prevent_cse and keywords": _apart_by_keyword,
    "cond, cosines saved": _cond_by_policy(lambda p: _only("cos")),
    "cond, sines saved": _cond_by_policy(lambda p: _only("sin")),
    "cond, everything saved": _cond_by_policy(lambda p: p.everything_saveable),
    "cond, nothing saved": _cond_by_policy(lambda p: p.nothing_saveable),
    "a tangent that is constant": _a_tangent_that_is_constant,
    "each transformation": shown("plain", "grad", "jit", "grad of jit", "vmap", "jvp"),
    "vmap of grad": shown("vmap of grad"),
    "in scan": shown("scan"),
    "twice": shown("grad of grad"),
    "prevent_cse=False": shown("grad", prevent_cse=False),
    "everything_saveable": policy(lambda p: p.everything_saveable),
    "nothing_saveable": policy(lambda p: p.nothing_saveable),
    "dots_saveable": policy(lambda p: p.dots_saveable),
    "dots_with_no_batch_dims_saveable": policy(lambda p: p.dots_with_no_batch_dims_saveable),
    "save_only_these_names": policy(lambda p: p.save_only_these_names("h")),
    "save_any_names_but_these": policy(lambda p: p.save_any_names_but_these("h")),
    "save_anything_except_these_names": policy(lambda p: p.save_anything_except_these_names("h")),
    "save_from_both_policies": policy(
        lambda p: p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("c"))
    ),
    "static arguments": _static,
    "the first argument static": lambda jax: jax.grad(
        jax.checkpoint(lambda n, x: x**n if n > 2 else x, static_argnums=0), argnums=1
    )(3, 2.0),
    "trees and keywords": _trees,
    "calls": _calls,
    "closures": _closures,
    "names": _names,
    "decorators": _decorators,
    "nested": _nested,
    "integers": _integers,
    "checkpoint_name": _residual_names,
}

ERRORS = {
    "prevent_cse that is no tuple": (
        lambda jax: jax.checkpoint(lambda x: x, prevent_cse={"x": True})(1.0),
        "prevent_cse must be a bool or tuple of bools",
    ),
    "prevent_cse of another length": (
        lambda jax: jax.checkpoint(lambda x: x, prevent_cse=(True, False))(1.0),
        "different lengths of tuple",
    ),
    "no value": (lambda jax: jax.checkpoint(lambda x: x)("text"), "not a valid JAX type"),
    "no value as result": (lambda jax: jax.checkpoint(lambda x: "text")(1.0), "not a valid JAX type"),
    "bool of a tracer": (
        lambda jax: jax.grad(jax.checkpoint(lambda x: x if x > 0 else -x))(1.0),
        "Attempted boolean conversion of traced array with shape bool[]",
    ),
    "static out of range": (lambda jax: jax.checkpoint(lambda x: x, static_argnums=(3,))(1.0), "static_argnums"),
    "an error inside": (lambda jax: jax.checkpoint(lambda x: {}["key"])(1.0), "key"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_checkpoint_gives_the_results_of_jax(name):
    compare.same(VALUES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_checkpoint_raises_as_in_jax(name):
    program, *phrases = entry if isinstance(entry := ERRORS[name], tuple) else (entry,)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
    )


def test_a_checkpointed_function_is_traced_and_compiled_once():
    seen = []

    def f(x):
        seen.append(1)
        return minijax.numpy.sin(x) * 43.0

    minijax.checkpoint(f)(1.0)
    before = compile_count()
    minijax.checkpoint(f)(2.0)
    assert len(seen) == 1
    assert compile_count() == before


@pytest.mark.oracle
def test_the_log_lists_saved_residuals_if_the_option_is_on(caplog):
    def saved(jax, jnp):
        f = jax.checkpoint(lambda x, y: jnp.sin(jnp.sin(x)) * y)
        everything = jax.checkpoint_policies.everything_saveable
        g = jax.checkpoint(lambda x: jax.jit(jnp.sin)(x) * held, policy=everything)
        steps = jax.checkpoint(lambda c, _: (jnp.sin(c), None))
        jax.grad(f)(1.0, 2.0)
        jax.jit(jax.grad(f))(1.0, 2.0)
        jax.vjp(g, held)
        jax.grad(jax.checkpoint(lambda x: x * 1.0))(1.0)
        jax.grad(lambda x: jax.lax.scan(steps, x, None, length=2)[0])(1.0)

    held = np.arange(40, dtype=np.float32)

    def program(jax, jnp):
        caplog.clear()
        jax.config.update("jax_log_checkpoint_residuals", True)
        try:
            saved(jax, jnp)
        finally:
            jax.config.update("jax_log_checkpoint_residuals", False)
        saved(jax, jnp)
        logged = [(r.name, r.levelname, r.getMessage()) for r in caplog.records if "remat" in r.getMessage()]
        # Answers are recorded in one folder and compared in another.
        return [(name, level, text.replace(os.path.dirname(__file__), "")) for name, level, text in logged]

    first = compare.same(program)
    assert len(first) == 5
    assert any("from output of jitted function 'sin' from " in text for _, _, text in first)


def test_static_arguments_need_no_hash():
    def program(jax):
        f = jax.checkpoint(lambda x, o: jax.numpy.sin(x) * o["k"], static_argnums=1)
        return jax.grad(f)(1.0, {"k": 2.0}), f(2.0, {"k": 1.0}), jax.jit(lambda x: f(x, {"k": x}))(3.0)

    compare.same(program)


def test_static_arguments_may_change():
    """jax takes an object that was changed for what it was."""
    options = {"k": 2.0}
    f = minijax.checkpoint(lambda x, o: x * o["k"], static_argnums=1)
    assert f(3.0, options) == 6
    options["k"] = 3.0
    assert f(3.0, options) == 9
