"""Equations made by hand whose parameters do not fit: the checker refuses those that jax's refuses."""

import importlib

import compare
import pytest


def _check_jaxpr(jax, jaxpr):
    importlib.import_module(f"{jax.__name__}.extend.core").check_jaxpr(jaxpr)


def _programs(jax, jnp, lax):
    x = jnp.ones(3)
    return {
        "scan": lambda x: lax.scan(lambda c, a: (c * 2 + a, c.sum()), x, jnp.ones((4, 3))),
        "cond": lambda x: lax.cond(x[0] > 0, lambda x: x * 2, lambda x: x + 1, x),
        "while": lambda x: lax.while_loop(lambda c: c[0][0] < 10, lambda c: (c[0] * 2, c[1] + 1), (x, 0)),
        "jit": lambda x: jax.jit(lambda x: x * 2)(x),
    }, x


def _check(jax, jnp, lax, name, change):
    """Checks a jaxpr in which the equation of that name has other operands, results or parameters."""
    programs, x = _programs(jax, jnp, lax)
    jaxpr = jax.make_jaxpr(programs[name])(x).jaxpr
    at = next(i for i, e in enumerate(jaxpr.eqns) if e.primitive.name == name)
    eqn = jaxpr.eqns[at]

    def body(f, *args):
        return jax.make_jaxpr(f)(*args)

    changes = change(eqn, eqn.params, body, jnp)
    parts = {key: changes.pop(key) for key in ("invars", "outvars") if key in changes}
    eqns = list(jaxpr.eqns)
    eqns[at] = eqn.replace(params=dict(eqn.params) | changes, **parts)
    _check_jaxpr(jax, jaxpr.replace(eqns=eqns, debug_info=jaxpr.debug_info))


SCAN = {
    "as it was": lambda e, p, body, jnp: {},
    "another length": lambda e, p, body, jnp: dict(length=5),
    "a negative length": lambda e, p, body, jnp: dict(length=-1),
    "no carry": lambda e, p, body, jnp: dict(num_carry=0),
    "too many carries": lambda e, p, body, jnp: dict(num_carry=2),
    "a negative number of carries": lambda e, p, body, jnp: dict(num_carry=-1),
    "a constant too many": lambda e, p, body, jnp: dict(num_consts=1),
    "constants beyond the operands": lambda e, p, body, jnp: dict(num_consts=3),
    "reverse as a number": lambda e, p, body, jnp: dict(reverse=1),
    "reverse": lambda e, p, body, jnp: dict(reverse=True),
    "unroll by a word": lambda e, p, body, jnp: dict(unroll="a"),
    "unroll below zero": lambda e, p, body, jnp: dict(unroll=-1),
    "slices of another type": lambda e, p, body, jnp: dict(
        jaxpr=body(lambda c, a: (c * 2, c.sum()), jnp.ones(3), jnp.ones(3, "int32"))
    ),
    "slices of another shape": lambda e, p, body, jnp: dict(
        jaxpr=body(lambda c, a: (c * 2, c.sum()), jnp.ones(3), jnp.ones((3, 1)))
    ),
    "a body of one argument": lambda e, p, body, jnp: dict(jaxpr=body(lambda c: (c * 2, c.sum()), jnp.ones(3))),
    "a body of one result": lambda e, p, body, jnp: dict(jaxpr=body(lambda c, a: c * 2, jnp.ones(3), jnp.ones(3))),
    "a carry that changes dtype": lambda e, p, body, jnp: dict(
        jaxpr=body(lambda c, a: (c.astype(int), c.sum()), jnp.ones(3), jnp.ones(3))
    ),
    "a carry that changes shape": lambda e, p, body, jnp: dict(
        jaxpr=body(lambda c, a: (c[:2], c.sum()), jnp.ones(3), jnp.ones(3))
    ),
    "an open body": lambda e, p, body, jnp: dict(jaxpr=p["jaxpr"].jaxpr),
    "no body": lambda e, p, body, jnp: dict(jaxpr=None),
    "operands swapped": lambda e, p, body, jnp: dict(invars=e.invars[::-1]),
    "an operand less": lambda e, p, body, jnp: dict(invars=e.invars[:1]),
    "an operand more": lambda e, p, body, jnp: dict(invars=[*e.invars, e.invars[0]]),
    "a result less": lambda e, p, body, jnp: dict(outvars=e.outvars[:1]),
    "results swapped": lambda e, p, body, jnp: dict(outvars=e.outvars[::-1]),
}
COND = {
    "as it was": lambda e, p, body, jnp: {},
    "no branch": lambda e, p, body, jnp: dict(branches=()),
    "one branch": lambda e, p, body, jnp: dict(branches=p["branches"][:1]),
    "other arguments": lambda e, p, body, jnp: dict(branches=(p["branches"][0], body(lambda x: x * 2, jnp.ones(2)))),
    "other results": lambda e, p, body, jnp: dict(branches=(p["branches"][0], body(lambda x: x[0], jnp.ones(3)))),
    "an argument more": lambda e, p, body, jnp: dict(
        branches=(p["branches"][0], body(lambda x, y: x, jnp.ones(3), jnp.ones(3)))
    ),
    "a result more": lambda e, p, body, jnp: dict(branches=(p["branches"][0], body(lambda x: (x, x), jnp.ones(3)))),
    "other arguments of both": lambda e, p, body, jnp: dict(branches=(body(lambda x: x * 2, jnp.ones(2)),) * 2),
    "other results of both": lambda e, p, body, jnp: dict(branches=(body(lambda x: x.astype(int), jnp.ones(3)),) * 2),
    "an array for the index": lambda e, p, body, jnp: dict(invars=[e.invars[1], e.invars[1]]),
    "no operand": lambda e, p, body, jnp: dict(invars=e.invars[:1]),
    "an operand more": lambda e, p, body, jnp: dict(invars=[*e.invars, e.invars[1]]),
    "open branches": lambda e, p, body, jnp: dict(branches=tuple(b.jaxpr for b in p["branches"])),
    "a list of branches": lambda e, p, body, jnp: dict(branches=list(p["branches"])),
}
WHILE = {
    "as it was": lambda e, p, body, jnp: {},
    "a carry of another shape": lambda e, p, body, jnp: dict(body_jaxpr=body(lambda a, b: (a[:2], b), jnp.ones(3), 0)),
    "a carry swapped": lambda e, p, body, jnp: dict(body_jaxpr=body(lambda a, b: (b, a), jnp.ones(3), 0)),
    "a carry less": lambda e, p, body, jnp: dict(body_jaxpr=body(lambda a, b: a, jnp.ones(3), 0)),
}
JIT = {
    "as it was": lambda e, p, body, jnp: {},
    "other arguments": lambda e, p, body, jnp: dict(jaxpr=body(lambda x: x.sum() * jnp.ones(3), jnp.ones(2))),
    "an argument more": lambda e, p, body, jnp: dict(jaxpr=body(lambda x, y: x * 2, jnp.ones(3), 1)),
    "no operand": lambda e, p, body, jnp: dict(invars=[]),
    "another result": lambda e, p, body, jnp: dict(jaxpr=body(lambda x: x.sum(), jnp.ones(3))),
}
CASES = [(n, c) for n, t in (("scan", SCAN), ("cond", COND), ("while", WHILE), ("jit", JIT)) for c in t]


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda x: x)
def test_equations_that_do_not_fit_their_parameters(name, case):
    change = {"scan": SCAN, "cond": COND, "while": WHILE, "jit": JIT}[name][case]

    def end(side):
        return compare.outcome(lambda: compare.run_on(side, lambda jax, jnp, lax: _check(jax, jnp, lax, name, change)))

    ours, theirs = end(compare.ours()), end(compare.theirs())
    assert (ours.error is None) == (theirs.error is None), (ours, theirs)
    # Where jax fails an internal assertion, minijax raises the error of a wrong jaxpr.
    assert ours.error is None or type(ours.error).__name__ == "JaxprTypeError", ours


def test_messages_name_the_variable_and_show_the_equation():
    def call(jax, jnp):
        jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) + jnp.cos(x))(jnp.float32(1)).jaxpr
        jaxpr.eqns[0].outvars[0].aval = jax.typeof(jnp.int32(1))
        return lambda: _check_jaxpr(jax, jaxpr)

    expected = "Value for variable 'b' inconsistently typed as f32[] for let-binder of type i32[]"
    compare.same_refusal(call, phrases=[f"{expected}\n\nin equation:\n\nb:i32[] = sin a"])


def test_traces_are_checked_where_checks_are_enabled():
    def program(jax, jnp, lax):
        programs, x = _programs(jax, jnp, lax)
        with jax.enable_checks(True):
            return [jax.jit(jax.grad(lambda x, f=f: jnp.sum(f(x)[0])))(x) for f in list(programs.values())[:2]]

    compare.same(program)
