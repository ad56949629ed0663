"""checkify: messages, values and jaxprs of checked programs, compared with jax."""

import importlib
import re

import numpy as np
import pytest
from compare import both, same

import minijax

V = np.arange(3, dtype=np.float32)
SETS = ("user_checks", "nan_checks", "div_checks", "index_checks", "float_checks", "automatic_checks", "all_checks")


def checkify_of(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.checkify")


def checked(program):
    """The function x -> result that the program makes, checked with a name of a set."""

    def make(module, checkify, errors):
        return checkify.checkify(program(module, module.numpy, checkify), errors=getattr(checkify, errors))

    return make


def outcome(run):
    """The message of a program's error and its values; or class and text of the exception that it raised."""
    try:
        err, out = run()
    except Exception as e:
        return type(e).__name__, str(e).split("\n")[0][:60]
    return err.get(), out


def assert_same(make, errors, *args):
    same(lambda jax: outcome(lambda: make(jax, checkify_of(jax), errors)(*map(jax.numpy.asarray, args))))


def must(checkify, pred, *args):
    checkify.check(pred, "must hold {} {}", *args, *args)


def scan_of(jax, jnp, checkify):
    def step(c, x):
        must(checkify, c < 2, c)
        return c + x, jnp.log(x) / c

    return lambda x: jax.lax.scan(step, x[0], x)


def while_of(jax, jnp, checkify):
    def test(c):
        must(checkify, c[0] < 4, c[0])
        return jnp.log(c[0] + 1) < 1.5

    return lambda x: jax.lax.while_loop(test, lambda c: (c[0] + 1 / x[0], jnp.sin(c[1] / x[1])), (x[1], x[2]))


def cond_of(jax, jnp, checkify):
    def yes(x):
        must(checkify, x[0] > 5, x)
        return x / 0

    return lambda x: jax.lax.cond(x[0] > 0, yes, lambda x: jnp.log(x - 1), x)


def switch_of(jax, jnp, checkify):
    branches = [lambda x: x, lambda x: (must(checkify, x[0] > 5, x[0]), x)[1], lambda x: jnp.log(x - 9)]
    return lambda x: jax.lax.switch(x[1].astype(int), branches, x)


def custom_jvp_of(jax, jnp, checkify):
    f = jax.custom_jvp(lambda x: jnp.log(x - 1))
    f.defjvp(lambda p, t: (f(*p), t[0] / 0))
    return f


def custom_vjp_of(jax, jnp, checkify):
    f = jax.custom_vjp(lambda x: jnp.log(x - 1))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (g / (r * 0),))
    return f


PROGRAMS = {
    "sin": lambda jax, jnp, checkify: jnp.sin,
    "log": lambda jax, jnp, checkify: lambda x: jnp.log(x - 1),
    "div": lambda jax, jnp, checkify: lambda x: x / x,
    "integers": lambda jax, jnp, checkify: lambda x: jax.lax.div(x.astype(int), x.astype(int) * 0),
    "check": lambda jax, jnp, checkify: lambda x: (must(checkify, x[0] > 0, x), x)[1],
    "debug": lambda jax, jnp, checkify: lambda x: (checkify.debug_check(x[0] > 0, "no"), x)[1],
    "index": lambda jax, jnp, checkify: lambda x: x[x.astype(int) * 2],
    "scalar index": lambda jax, jnp, checkify: lambda x: x[x[2].astype(int) + 5],
    "update": lambda jax, jnp, checkify: lambda x: x.at[x.astype(int) * 2].set(x / x),
    "add": lambda jax, jnp, checkify: lambda x: x.at[x.astype(int) * 3].add(x),
    "slice": lambda jax, jnp, checkify: lambda x: jax.lax.dynamic_slice(x, (x[2].astype(int),), (2,)),
    "write": lambda jax, jnp, checkify: lambda x: jax.lax.dynamic_update_slice(x, x[:2], (x[2].astype(int),)),
    "jit": lambda jax, jnp, checkify: jax.jit(lambda x: (must(checkify, x[0] > 0, x), jnp.log(x / x))[1]),
    "two": lambda jax, jnp, checkify: lambda x: (x[9], jnp.log(x - 5), x / 0),
    "scan": scan_of,
    "while": while_of,
    "cond": cond_of,
    "switch": switch_of,
    "custom_jvp": custom_jvp_of,
    "custom_vjp": custom_vjp_of,
    "vmap": lambda jax, jnp, checkify: jax.vmap(lambda x: (must(checkify, x > 1, x), 1 / x)[1]),
    "remat": lambda jax, jnp, checkify: jax.checkpoint(lambda x: (must(checkify, x[0] > 0, x), jnp.log(x / x))[1]),
    "reduce": lambda jax, jnp, checkify: lambda x: jnp.sum(x * np.float32(np.inf)),
}


def graded(program):
    return lambda jax, jnp, checkify: jax.grad(lambda x: jnp.sum(program(jax, jnp, checkify)(x)))


@pytest.mark.parametrize("errors", ("all_checks", "user_checks", "automatic_checks"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, errors):
    assert_same(checked(PROGRAMS[name]), errors, V)


@pytest.mark.parametrize("errors", SETS)
def test_sets(errors):
    assert_same(checked(PROGRAMS["two"]), errors, V)
    assert_same(checked(PROGRAMS["check"]), errors, V)


@pytest.mark.parametrize(
    "name", [n for n in PROGRAMS if n not in ("while", "two", "integers", "cond", "scan", "switch")]
)
def test_of_gradients(name):
    assert_same(checked(graded(PROGRAMS[name])), "all_checks", V)


@pytest.mark.parametrize("name", ["log", "check", "index", "jit", "scan", "cond", "custom_jvp", "custom_vjp"])
def test_under_vmap_and_jit(name):
    rows = np.stack([V, V + 1, V * 0])

    def mapped(module, checkify, errors):
        return module.jit(module.vmap(checked(PROGRAMS[name])(module, checkify, errors)))

    assert_same(mapped, "all_checks", rows)


@pytest.mark.parametrize("name", ["log", "check", "jit", "custom_jvp", "custom_vjp", "remat"])
def test_gradients_of_checked(name):
    def pulled(module, checkify, errors):
        f = checked(PROGRAMS[name])(module, checkify, errors)
        total = lambda x: (lambda e, y: (module.numpy.sum(y), e))(*f(x))  # noqa: E731
        return lambda x: module.value_and_grad(total, has_aux=True)(x)[0][1:] + (module.grad(lambda x: total(x)[0])(x),)

    assert_same(pulled, "all_checks", V)


def kinds(jaxpr):
    text = re.sub(r"\b\d+:i32\[\]", "code", str(jaxpr))
    return [line.strip() for line in text.split("\n") if " = " in line]


@pytest.mark.parametrize(
    "name", ["sin", "log", "div", "check", "jit", "scan", "while", "cond", "custom_jvp", "custom_vjp", "remat"]
)
@pytest.mark.parametrize("errors", ("all_checks", "user_checks"))
def test_jaxprs(name, errors):
    def program(jax):
        f = checked(PROGRAMS[name])(jax, checkify_of(jax), errors)
        return kinds(jax.make_jaxpr(f)(V[1:] + 1 if name != "while" else V))

    if name in ("scan", "while", "cond", "jit", "check", "remat"):
        ours, theirs = both(program)
        assert len(ours) <= len(theirs)
    else:
        same(program)


@pytest.mark.parametrize("pred", [True, 1, 0.0, "a", np.zeros(2, bool), None])
def test_predicates(pred):
    def make(module, checkify, errors):
        return lambda: (checkify.init_error, [checkify.check(pred, "x"), checkify.debug_check(True, "y")])

    assert_same(make, "")


@pytest.mark.parametrize("args", [(), (1.0,), ("s",), (V,), ({"a": [1]},)])
def test_eager_checks(args):
    def make(module, checkify, errors):
        return lambda: checkify.check(False, "shown {}", *args)

    assert_same(make, "")


@pytest.mark.parametrize(
    "program",
    [
        lambda jax, checkify, f: jax.jit(f)(-1.0),
        lambda jax, checkify, f: jax.grad(f)(jax.numpy.float32(-1)),
        lambda jax, checkify, f: jax.vmap(f)(-V),
        lambda jax, checkify, f: jax.lax.map(f, -V),
        lambda jax, checkify, f: checkify.check_error(checkify.checkify(f)(jax.numpy.float32(-1))[0]),
        lambda jax, checkify, f: jax.vmap(checkify.checkify(f))(-V)[0].throw(),
        lambda jax, checkify, f: checkify.checkify(f)(jax.numpy.float32(-1))[0].throw(),
        lambda jax, checkify, f: jax.jit(checkify.checkify(f))(jax.numpy.float32(-1))[0].throw(),
        lambda jax, checkify, f: checkify.check_error(3),
        lambda jax, checkify, f: checkify.checkify(jax.vmap(lambda x: jax.lax.while_loop(lambda c: c < x, f, x)))(V),
    ],
)
def test_errors(program):
    def ended(jax):
        checkify = checkify_of(jax)

        def f(x):
            checkify.check(x > 0, "{} is not positive", jax.numpy.asarray(x))
            return x

        kind, words = outcome(lambda: program(jax, checkify, f))
        return kind, "while" if "while" in words else words

    same(ended)


@pytest.mark.parametrize("vma", (True, False))
@pytest.mark.parametrize("name", ["log", "div", "check", "custom_jvp"])
def test_devices(name, vma):
    def parted(jax, jnp, checkify):
        mesh = jax.make_mesh((3,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        spec = jax.sharding.PartitionSpec("d")
        f = PROGRAMS[name](jax, jnp, checkify)
        return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=vma))

    assert_same(checked(parted), "all_checks", V)


def test_pmap():
    def parted(jax, jnp, checkify):
        return jax.pmap(lambda x: (must(checkify, x > 1, x), 1 / x)[1])

    assert_same(checked(parted), "all_checks", V)


def _cut(jax):
    mesh = jax.make_mesh((3,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    return jax.shard_map(lambda x: x / x, mesh=mesh, in_specs=spec, out_specs=spec)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: minijax.numpy.log(_cut(minijax)(x)),
        lambda x: _cut(minijax)(_cut(minijax)(x)),
        lambda x: minijax.lax.scan(lambda c, _: (_cut(minijax)(c), None), x, None, length=2),
        lambda x: minijax.lax.cond(x[0] < 1, _cut(minijax), minijax.numpy.sin, x),
        lambda x: minijax.lax.fori_loop(0, x[2].astype(int), lambda _, c: _cut(minijax)(c), x),
    ],
)
def test_mapped_errors_go_on(program):
    """Where jax stops with an error of shapes."""
    checkify = checkify_of(minijax)
    err, _ = checkify.checkify(program, errors=checkify.all_checks)(minijax.numpy.asarray(V))
    assert err.get().split("\n")[0] == "at mapped index 0: division by zero"


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_derivatives_of_jitted_checked_rules(kind):
    """Where jax stops with an error of lengths."""
    checkify = checkify_of(minijax)
    f = minijax.jit(checkify.checkify(PROGRAMS[kind](minijax, minijax.numpy, checkify), errors=checkify.all_checks))
    slope, err = minijax.grad(lambda x: f(x)[::-1], has_aux=True)(0.0)
    assert err.get() is None
    assert np.isposinf(slope) or np.isnan(slope)
    assert f(0.0)[0].get() == "nan generated by primitive: log."


def test_nested_checkify():
    def make(module, checkify, errors):
        def f(x):
            checkify.check(x[0] > 1, "outer")
            return x / 0

        inner = checkify.checkify(f, errors=checkify.div_checks)
        return checkify.checkify(lambda x: inner(x)[1], errors=checkify.user_checks | checkify.nan_checks)

    assert_same(make, "", V)


def test_errors_are_trees():
    checkify = checkify_of(minijax)
    err, _ = checkify.checkify(lambda x: x[7], errors=checkify.index_checks)(minijax.numpy.arange(3))
    leaves, treedef = minijax.tree.flatten(err)
    assert len(leaves) == 3
    assert treedef.unflatten(leaves).get() == err.get()
    assert minijax.jit(lambda e: e)(err).get() == err.get()
    assert checkify.init_error.get() is None
    assert str(checkify.init_error) == "Error(None)"


def test_one_program_for_equal_calls():
    checkify = checkify_of(minijax)
    f = minijax.jit(checkify.checkify(minijax.numpy.sin, errors=checkify.float_checks))
    f(1.0)
    text = f.lower(1.0).as_text()
    assert text.count("func.func public") == 1
    assert f(np.inf)[0].get() == "nan generated by primitive: sin."


def test_public_names():
    same(lambda jax: sorted(n for n in dir(checkify_of(jax)) if not n.startswith("__")))
