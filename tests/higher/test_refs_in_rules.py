"""References as arguments of functions with rules of their own: backward rules read and write them."""

import itertools

import compare
import numpy as np
import pytest

import minijax


def _stash(jax):
    """The identity, whose backward rule writes the cotangent into a reference."""

    @jax.custom_vjp
    def stash(ref, x):
        return x

    def bwd(ref, ct):
        ref[...] = ct * 2 + ref[...]
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), bwd)
    return stash


def _primal(jax, around):
    jnp, lax, stash = jax.numpy, jax.lax, _stash(jax)

    def body(ref, x):
        return jnp.sin(stash(ref, jnp.sin(x)))

    def primal(ref, x):
        inner = jax.checkpoint(body) if "checkpoint" in around else body
        if "scan" in around:
            x = lax.scan(lambda x, _: (inner(ref, x), None), x, None, length=3)[0]
        elif "cond" in around:
            x = lax.cond(x > 0, lambda x: inner(ref, x), lambda x: x, x)
        else:
            x = inner(ref, x)
        return stash(ref, x * 3) if "twice" in around else x

    for _ in range(around.count("jit")):
        primal = jax.jit(primal)
    return primal


AROUND = [(), *itertools.combinations(("jit", "checkpoint", "scan", "twice"), 1), ("jit", "jit"), ("jit", "scan")]
AROUND += [("jit", "checkpoint"), ("jit", "checkpoint", "scan"), ("jit", "jit", "scan", "twice"), ("scan", "twice")]


@pytest.mark.parametrize("around", AROUND, ids="-".join)
@pytest.mark.parametrize("whole", [False, True])
def test_backward_rules_write_references(around, whole):
    def program(jax, jnp):
        gradient = jax.grad(_primal(jax, around), 1)
        gradient = jax.jit(gradient) if whole else gradient
        ref = jax.new_ref(jnp.float32(0))
        return [(gradient(ref, jnp.float32(x)), ref[...]) for x in (1.0, 2.0)]

    compare.same(program, rtol=1e-6, why="programs are cut in other places")


@pytest.mark.parametrize("jitted", [False, True])
def test_backward_rules_write_references_that_were_captured(jitted):
    def program(jax, jnp):
        ref = jax.new_ref(jnp.zeros(3))
        primal = _primal(jax, ("jit",) if jitted else ())
        value, pullback = jax.vjp(lambda x: primal(ref, x), jnp.arange(3.0))
        return value, pullback(jnp.ones(3)), ref[...]

    compare.same(program, rtol=1e-6, why="programs are cut in other places")


@pytest.mark.parametrize("jitted", [False, True])
def test_backward_rules_keep_a_history(jitted):
    def program(jax, jnp):
        @jax.custom_vjp
        def scaled(x, history):
            return x

        def bwd(history, ct):
            history[:] = jnp.roll(history[:], 1).at[0].set(jnp.max(jnp.abs(ct)))
            return ct / jnp.max(history[:]), None

        scaled.defvjp(lambda x, history: (x, history), bwd)
        history = jax.new_ref(jnp.zeros(5))
        loss = lambda x, y: scaled(jnp.dot(x, y), history).sum()  # noqa: E731
        loss = jax.jit(loss) if jitted else loss
        gradients = [jax.grad(loss, (0, 1))(jnp.ones(5) * i, jnp.ones(5)) for i in (1, 2, 3)]
        return gradients, history[...]

    compare.same(program)


def test_functions_of_differentiated_references():
    def program(jax, jnp):
        @jax.custom_vjp
        def read(ref):
            return ref[...]

        read.defvjp(lambda ref: (read(ref), None), lambda _, ct: (ct,))
        jitted = jax.jit(read)
        pulled = [jax.vjp(lambda x, f=f: f(jax.new_ref(x)) * x, 3.0)[1](1.0) for f in (read, jitted)]
        return read(jax.new_ref(3.0)), jitted(jax.new_ref(3.0)), pulled

    compare.same(program)


def _of_two(jax, fwd=lambda x, ref: (x, ref)):
    f = jax.custom_vjp(lambda x, ref: x)
    f.defvjp(fwd, lambda ref, ct: (ct, None))
    return f


@pytest.mark.parametrize("jitted", [False, True])
def test_references_that_rules_must_not_return(jitted):
    def call(jax, jnp):
        f = _of_two(jax, lambda x, ref: (x, jax.new_ref(0.0)))
        return lambda: jax.vjp(jax.jit(f) if jitted else f, 3.0, jax.new_ref(0.0))

    compare.same_refusal(call, phrases=["custom_vjp fwd function"])


@pytest.mark.parametrize("jitted", [False, True])
def test_functions_with_rules_return_no_references(jitted):
    def call(jax, jnp):
        f = jax.custom_vjp(lambda ref: ref)
        f.defvjp(lambda ref: (ref, None), lambda _, ct: (ct,))
        return lambda: (jax.jit(f) if jitted else f)(jax.new_ref(0.0))

    compare.same_refusal(call, phrases=["returned a mutable array"])


@pytest.mark.parametrize("jitted", [False, True])
def test_a_reference_is_given_once(jitted):
    def call(jax, jnp):
        f = jax.custom_vjp(lambda x_ref, y_ref: None)
        f.defvjp(lambda x_ref, y_ref: (None, None), lambda _, ct: (None, None))
        ref = jax.new_ref(0.0)
        return lambda: (jax.jit(f) if jitted else f)(ref, ref)

    compare.same_refusal(call, phrases=["x_ref and y_ref"])


@pytest.mark.parametrize("use", [lambda jax, ref: ref[...], lambda jax, ref: jax.free_ref(ref)])
def test_references_that_were_freed(use):
    def call(jax):
        def f(x):
            ref = jax.new_ref(x)
            jax.free_ref(ref)
            return use(jax, ref)

        return lambda: jax.jit(f)(1.0)

    for side in (compare.ours(), compare.theirs()):
        with pytest.raises(Exception):  # noqa: B017
            compare.run_on(side, call)()


def test_references_that_a_jitted_function_does_not_touch():
    def program(jax, jnp):
        ref = jax.new_ref(jnp.arange(3.0))
        inner = jax.jit(lambda ref, x: x * 2)
        return inner(ref, 1.0), jax.jit(lambda ref, x: inner(ref, x) + ref[0])(ref, np.float32(2)), ref[...]

    compare.same(program)


def _stores(jax):
    """Functions of one number that write to a reference, by name."""
    jnp, lax = jax.numpy, jax.lax

    def set_array(x):
        r = jax.new_ref(jnp.zeros_like(x))
        r[...] = jnp.float32(2) * x
        return r[...]

    def set_constant(x):
        r = jax.new_ref(1.5)
        r[...] = np.float32(2)
        return x * r[...]

    def set_number(x):
        r = jax.new_ref(2)
        r[...] = r[...] * 3
        return x * r[...], r[...]

    def in_loop(x):
        r = jax.new_ref(x)
        lax.fori_loop(0, 2, lambda i, _: r.__setitem__(..., r[...] + r[...]), None)
        return jax.freeze(r)

    return locals()


def _converted(jax, f):
    def call(*args):
        g, consts = jax.closure_convert(f, *args)
        return g(*args, *consts)

    return call


def _evaluated(jax, f):
    def call(*args):
        closed = jax.make_jaxpr(f)(*args)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *args)

    return call


@pytest.mark.parametrize("x", [1.5, np.float32(1)])
@pytest.mark.parametrize("nested", [_converted, _evaluated, lambda jax, f: jax.jit(f, inline=True)])
@pytest.mark.parametrize("name", ["set_array", "set_constant", "set_number", "in_loop"])
def test_a_jaxpr_that_makes_references_is_recorded_with_them(name, nested, x):
    def program(jax):
        return nested(jax, _stores(jax)[name])

    compare.same_jaxpr(program, x)

    def types(jax):
        results = [jax.jit(compare.run_on(jax, program))(x), compare.run_on(jax, program)(x)]
        return results, [str(jax.typeof(r)) for r in jax.tree.leaves(results)]

    compare.same(types)


@pytest.mark.parametrize("transform", ["plain", "vmap", "jvp"])
def test_a_function_with_a_batching_rule_makes_references(transform):
    def double(jax):
        def f(x):
            r = jax.new_ref(x)
            r[...] = r[...] * 2
            return r[...]

        g = jax.custom_batching.custom_vmap(f)
        g.def_vmap(lambda size, batched, x: (jax.vmap(f)(x), True))
        forms = {"plain": g, "vmap": jax.vmap(g), "jvp": lambda x: jax.jvp(g, (x,), (x,))}
        return forms[transform]

    x = np.arange(3, dtype=np.float32)
    compare.same(lambda jax, custom_batching: double(jax)(x))
    # jax refuses some of these under jit.
    compare.same_value(minijax.jit(double(minijax))(x), double(minijax)(x))


RETURNING = {
    "made": lambda jax: jax.new_ref,
    "with more": lambda jax: lambda x: (jax.new_ref(x * 2), x),
    "of a constant": lambda jax: lambda x: jax.new_ref(jax.numpy.zeros(2)),
}
CALLS = {
    "jvp": lambda jax, f, x: jax.jvp(f, (x,), (x,)),
    "jvp aux": lambda jax, f, x: jax.jvp(lambda x: (x, f(x)), (x,), (x,), has_aux=True),
    "linearize": lambda jax, f, x: jax.linearize(f, x)[0],
    "vjp": lambda jax, f, x: jax.vjp(f, x)[0],
    "vjp aux": lambda jax, f, x: jax.vjp(lambda x: (x, f(x)), x, has_aux=True)[2],
    "grad aux": lambda jax, f, x: jax.grad(lambda x: (jax.numpy.sum(x), f(x)), has_aux=True)(x),
    "in jit": lambda jax, f, x: jax.jit(lambda x: jax.tree.map(_read, jax.jvp(f, (x,), (x,))))(x),
}


def _read(x):
    return x[...] if "Ref" in type(x).__name__ or "Ref" in str(getattr(x, "aval", "")) else x


@pytest.mark.parametrize("x", [1.5, np.arange(3, dtype=np.float32)])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", RETURNING)
def test_a_transformed_function_returns_references_to_values_of_the_caller(name, call, x):
    def program(jax):
        results = jax.tree.leaves(CALLS[call](jax, RETURNING[name](jax), x))
        return [(type(r).__name__.replace("TypedFloat", "float") == "Ref", _read(r)) for r in results]

    compare.same(program)


@pytest.mark.parametrize("name", ["made", "with more"])
def test_a_mapped_function_returns_references_to_all_rows(name):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    compare.same(lambda jax: jax.tree.map(_read, jax.vmap(RETURNING[name](jax))(x)))


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_jacobians_of_references_are_refused(name):
    compare.same_refusal(lambda jax: lambda: getattr(jax, name)(jax.new_ref)(np.float32(1)))


@pytest.mark.parametrize("policy", [None, "everything_saveable"])
def test_checkpoint_of_a_function_without_a_transpose_is_refused(policy):
    def program(jax, custom_batching):
        f = custom_batching.custom_vmap(lambda x: x * 2)
        f.def_vmap(lambda size, batched, x: (x * 2, True))
        chosen = policy and getattr(jax.checkpoint_policies, policy)
        return lambda: jax.grad(jax.checkpoint(f, policy=chosen))(1.5)

    compare.same_refusal(program, ["Linearization failed to produce known values"])


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("differentiated", [True, False])
def test_checkpoint_refuses_a_callback_after_its_derivative(ordered, differentiated):
    def program(jax, experimental):
        def f(x, y):
            shape = jax.ShapeDtypeStruct((), np.float32)
            experimental.io_callback(np.asarray, shape, x if differentiated else y, ordered=ordered)
            return x * 2

        return lambda: jax.grad(jax.checkpoint(f))(np.float32(1), np.float32(2))

    compare.same_refusal(program)
