"""Operations with bodies: their operands and results have roles, and each call can be made again from its parts."""

import compare
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.calls.bodied import CARRY, CONST, RESULT, STACKED, Binder, Bodied, Role, count_of, fixpoint, taken
from minijax.extend.core import jaxpr_as_fun
from minijax.ir.jaxpr import jaxprs_in_params

X, XS = jnp.arange(3.0) + 0.5, jnp.arange(6.0).reshape(2, 3) + 0.5


def scanned(x, xs):
    weights = jnp.cos(x)
    return lax.scan(lambda c, row: (jnp.sin(c * weights), c + row), x, xs)


def chosen(x, xs):
    return lax.switch(jnp.int32(x[0]), [lambda a, b: jnp.sin(a), lambda a, b: b[0] * a, lambda a, b: a], x, xs)


def repeated(x, xs):
    return lax.while_loop(lambda s: s[0] < xs[0, 0], lambda s: (s[0] + 1, s[1] * xs[1]), (x[0], x))


def accumulated(x, xs):
    total = jax.new_ref(x)
    sums = lax.scan(lambda c, row: (c + row, total.addupdate(row * c)), x, xs)[0]
    return sums, total[...]


def jitted(x, xs):
    return jax.jit(lambda a, b: (jnp.sin(a), b * a))(x, xs)


def recomputed(x, xs):
    return jax.checkpoint(lambda a, b: jnp.sin(jnp.sin(a)) * b)(x, xs)


def sharded(x, xs):
    mesh = jax.make_mesh((1,), ("i",))
    return jax.shard_map(lambda a, b: jnp.sin(a) * b, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())(x, xs)


PROGRAMS = scanned, chosen, repeated, accumulated, jitted, recomputed, sharded
TRANSFORMS = {
    "as it is": lambda f: f,
    "jvp": lambda f: lambda *args: jax.jvp(f, args, args),
    "vmap": lambda f: lambda x, xs: jax.vmap(f, (None, 0))(x, jnp.stack([xs, xs])),
    "linearize": lambda f: lambda *args: jax.linearize(f, *args)[1](*args),
    "checkpoint of jvp": lambda f: jax.checkpoint(lambda *args: jax.jvp(f, args, args)),
}


def calls_in(jaxpr):
    inner = [e for eqn in jaxpr.eqns for j in jaxprs_in_params(eqn.params) for e in calls_in(j)]
    return inner + [e for e in jaxpr.eqns if isinstance(e.primitive, Bodied)]


def calls_of(f):
    return calls_in(jax.make_jaxpr(f)(X, XS).jaxpr)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_call_is_made_again_from_its_parts(program, transform):
    calls = calls_of(TRANSFORMS[transform](program))
    assert calls
    for eqn in calls:
        primitive, params = eqn.primitive, eqn.params
        bodies, (ins, outs) = primitive.bodies(params), primitive.binders(params)
        assert len(ins) == len(eqn.invars) and len(outs) == len(eqn.outvars)
        assert [b.number for b in ins] == list(range(len(ins))) and [b.number for b in outs] == list(range(len(outs)))
        assert all(len(b.invars) == sum(taken(ins)) and len(b.outvars) == len(outs) for b in bodies)
        call = primitive.sorted_call(params, bodies, eqn.invars, ins, outs)
        assert call.operands == eqn.invars and {**params, **call.params} == {**call.params, **params}
        assert call.unsorted(eqn.outvars) == eqn.outvars
        assert [b.role for b in ins] == sorted(b.role for b in ins)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_call_whose_operands_and_results_are_in_any_order_is_sorted(reverse):
    (eqn,) = [e for e in calls_of(scanned) if e.primitive.name == "scan"]
    scan, params = eqn.primitive, eqn.params
    (ins, outs), (body,) = scan.binders(params), scan.bodies(params)
    places = {Role.CONST: jnp.cos(X), Role.CARRY: X, Role.SLICE: XS}
    operands = [places[b.role] for b in ins]
    order = range(len(ins))[:: -1 if reverse else 1]
    swapped = jax.make_jaxpr(lambda *xs: [*jaxpr_as_fun(body)(*(xs[i] for i in order))][::-1])(
        *(body.in_avals[i] for i in order)
    )
    results = scan.bound(params, [swapped], [operands[i] for i in order], [ins[i] for i in order], outs[::-1])
    for ours, want in zip(results[::-1], scan.bind(*operands, **params), strict=True):
        assert (ours == want).all()


def test_operands_are_counted_by_role():
    binders = [Binder(Role.INDEX), CONST, CONST, CARRY, STACKED]
    assert taken(binders) == (False, True, True, True, True) and count_of(Role.CONST, binders) == 2
    assert Binder(Role.CARRY, 3, "spec").added == Binder(Role.CARRY, None, "spec")
    assert [b.role for b in (CONST, CARRY, RESULT)] == [Role.CONST, Role.CARRY, Role.RESULT]


def test_flags_grow_until_a_step_adds_none():
    chain = {0: 1, 1: 2}
    steps = []

    def step(flags):
        steps.append(flags)
        return len(steps), [f or any(flags[i] for i, to in chain.items() if to == n) for n, f in enumerate(flags)]

    assert fixpoint(step, (True, False, False, False)) == (3, (True, True, True, False))


# Flags that reach a carry only after several steps of the fixpoint, in each rule that has one.


def rotating(lax, jnp):
    def f(a, b, c, xs):
        return lax.scan(lambda s, x: ((s[1], s[2], s[0] * x), s[0] + x), (a, b, c), xs)

    return f


@pytest.mark.parametrize("wrt", [0, 1, 2, 3])
def test_derivatives_of_a_rotating_carry(wrt):
    args = 1.0, 2.0, 3.0, np.arange(4.0, dtype=np.float32)

    def program(jax, jnp, lax):
        def pushed(*args):
            of_one = lambda x: rotating(lax, jnp)(*args[:wrt], x, *args[wrt + 1 :])  # noqa: E731
            return jax.jvp(of_one, (args[wrt],), (args[wrt],))

        return pushed

    compare.same_jaxpr(program, *args)


@pytest.mark.parametrize("wrt", [0, 1, 2, 3])
def test_gradients_of_a_rotating_carry(wrt):
    args = 1.0, 2.0, 3.0, np.arange(4.0, dtype=np.float32)

    def program(jax, jnp, lax):
        return jax.grad(lambda *args: rotating(lax, jnp)(*args)[0][0], wrt)

    compare.same_jaxpr(program, *args)


@pytest.mark.parametrize("batched", [0, 1, 2])
def test_batches_of_a_rotating_carry(batched):
    args = [1.0, 2.0, 3.0]
    args[batched] = np.arange(2.0, dtype=np.float32)
    axes = tuple(0 if i == batched else None for i in range(3))

    def program(jax, jnp, lax):
        return jax.vmap(lambda *args: rotating(lax, jnp)(*args, jnp.arange(4.0)), axes)

    compare.same_jaxpr(program, *args)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_dead_results_of_a_carry_that_moves_one_way(kept):
    def program(jax, jnp, lax):
        def f(a, b, c, xs):
            return lax.scan(lambda s, x: ((s[1], s[2], s[2] * x), s[0] + x), (a, b, c), xs)[0][kept]

        return f

    compare.same_text(program, 1.0, 2.0, 3.0, np.arange(4.0, dtype=np.float32))


DEAD = [
    lambda jax, jnp: lambda x: jax.jit(lambda a, b: (jnp.sin(a), b)[1])(x, x * 2),
    lambda jax, jnp: lambda x: jax.jit(lambda a, b: b + 1)(jnp.sin(x), x * 2),
    lambda jax, jnp: lambda x: jax.jit(lambda a: jax.jit(lambda b: (jnp.sin(b), b * 2)[1])(a))(x),
    lambda jax, jnp: lambda x: jax.lax.cond(x[0] > 0, lambda a, b: (a + 1, jnp.sin(b))[0], lambda a, b: a, x, x * 2),
    lambda jax, jnp: lambda x: jax.lax.scan(lambda c, a: ((c + 1, jnp.sin(a))[0], a), x, jnp.cos(x)),
    lambda jax, jnp: lambda x: jax.checkpoint(lambda a, b: (jnp.sin(a), b)[1])(x, x * 2),
]


@pytest.mark.parametrize("program", range(len(DEAD)))
def test_dead_code_in_a_body_whose_results_are_all_used(program):
    for _ in range(2):
        compare.same_text(DEAD[program], np.arange(3.0, dtype=np.float32))
