"""Names of operations with their scopes and transformations: in texts, in optimized HLO, in profiles."""

import glob
import re
from types import SimpleNamespace

import numpy as np
import pytest
from compare import same

import minijax
from minijax.run.programs.compile import compile_count

XS = np.ones(3, np.float32)
X = np.float32(1.0)


def namespace(jax):
    s = SimpleNamespace(jax=jax, lax=jax.lax, jnp=jax.numpy)
    scope = jax.named_scope

    def f(x):
        with scope("foo"):
            y = s.jnp.sin(x)
            with scope("bar"):
                return s.jnp.cos(y) * y

    def within(g):
        def outer(*args):
            with scope("outer"):
                return g(*args)

        return outer

    s.f, s.within, s.jit_f = f, within, lambda x: jax.jit(f)(x) + 1
    s.jvp = lambda g: lambda x: jax.jvp(g, (x,), (x,))
    s.scan = lambda g: lambda x: s.lax.scan(lambda c, _: (g(c), None), x, None, length=3)[0]
    s.cond = lambda x: s.lax.cond(x > 0, f, lambda x: x, x)
    s.loop = lambda x: s.lax.while_loop(lambda x: x < 3, f, x)
    s.sum = lambda g: lambda x: jax.vmap(g)(x).sum()
    s.ck = jax.checkpoint(f)
    s.kept = jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)
    s.custom, s.bent = jax.custom_jvp(f), jax.custom_vjp(f)
    s.custom.defjvp(lambda p, t: (f(*p), 3 * t[0]))
    s.bent.defvjp(lambda x: (f(x), x), lambda r, ct: (f(ct) * r,))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    s.mapped = jax.shard_map(lambda x: s.lax.psum(f(x), "i"), mesh=mesh, in_specs=spec, out_specs=type(spec)())
    return s


CASES = """
f | X
within(f) | X
jax.named_call(f, name='called') | X
jit_f | X
jax.grad(f) | X
jax.value_and_grad(jit_f) | X
jvp(f) | X
lambda x: jax.linearize(f, x)[1](x) | X
within(lambda x: jax.linearize(f, x)[1](x)) | X
within(lambda x: jax.vjp(f, x)[1](x)) | X
within(jax.grad(within(jit_f))) | X
jax.vmap(f) | XS
jax.vmap(jit_f) | XS
jax.vmap(jax.grad(f)) | XS
jax.grad(sum(f)) | XS
jax.grad(jax.grad(f)) | X
jax.hessian(f) | X
jax.jacrev(f) | X
jax.linear_transpose(lambda x: 2 * x, X) | X
within(scan(f)) | X
jax.grad(scan(f)) | X
jax.vmap(scan(f)) | XS
jax.grad(scan(ck)) | X
lambda x: lax.fori_loop(0, 3, lambda i, c: f(c), x) | X
lambda x: lax.map(f, x) | XS
within(cond) | X
jax.grad(cond) | X
jax.vmap(cond) | XS
jax.vmap(jax.grad(lambda x: lax.switch(1, [f, jnp.sin], x))) | XS
within(loop) | X
jax.vmap(loop) | XS
within(ck) | X
jax.grad(ck) | X
jax.value_and_grad(within(ck)) | X
jax.grad(sum(ck)) | XS
jax.grad(jax.jit(ck)) | X
jax.grad(jax.checkpoint(jax.jit(f))) | X
jax.value_and_grad(kept) | X
within(custom) | X
jax.vmap(custom) | XS
within(bent) | X
jax.grad(bent) | X
jax.grad(within(jax.jit(bent))) | X
jax.grad(jax.nn.relu) | X
jax.nn.softmax | XS
mapped | np.ones(4, np.float32)
lambda x: (jax.debug.print('{}', x), f(x))[1] | X
""".strip().splitlines()


def names(text):
    """The names of operations, without those of functions, which some have too."""
    found = set(re.findall(r'loc\("([^"]*)"', text))
    return sorted(n for n in found if "/" in n and not n.endswith((".py", "/jit", "body/closed_call")))


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_names_are_those_of_jax(case):
    program, arg = case.split(" | ")

    def lowered(jax):
        s = dict(vars(namespace(jax)), X=X)
        return names(jax.jit(eval(program, s)).lower(eval(arg)).as_text(debug_info=True))

    assert same(lowered)


def positions(text):
    """By names of operations: the functions and lines that called for them, innermost first."""
    aliases = dict(re.findall(r"^(#loc\d+) = loc\((.*)\)$", text, re.M))

    def whole(location):
        return re.sub(r"#loc\d+", lambda m: whole(aliases[m[0]]), location)

    rows = [re.match(r'"([^"]*)"\((.*)\)$', whole(location)) for location in aliases.values()]
    found = {
        (m[1], tuple(re.findall(r'"([^"]*)"\("[^"]*test_names.py":(\d+)', m[2]))) for m in rows if m and "/" in m[1]
    }
    return sorted(row for row in found if not re.search(r"\.py$|/jit$|/while|/scan$|body/", row[0]))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "case", ["jit_f", "jax.grad(jit_f)", "scan(f)", "scan(jit_f)", "cond", "jax.grad(cond)", "custom", "within(ck)"]
)
def test_positions_are_those_of_jax(case):
    def lowered(jax):
        return positions(jax.jit(eval(case, vars(namespace(jax)))).lower(X).as_text(debug_info=True))

    assert len(same(lowered)) > 2


def metadata(text):
    rows = re.findall(r'metadata=\{op_name="([^"]*)"(?: stack_frame_id=(\d+))?', text)
    return sorted(set(rows)), re.findall(r"^\d+ .*", text, re.M)


@pytest.mark.oracle
def test_optimized_programs_have_jaxs_names_and_positions():
    def program(jax):
        s = namespace(jax)
        text = jax.jit(jax.grad(s.jit_f)).lower(X).compile().as_text()
        shown, frames = metadata(text)
        assert any("test_names.py" in row for row in frames)
        return sorted({name for name, frame in shown if frame})

    assert "jit(<lambda>)/jvp(jit(f))/foo/bar/sin" in same(program)


def scoped(name):
    def f(x):
        with minijax.named_scope(name):
            return minijax.numpy.sin(x) @ x

    return minijax.jit(f)


SQUARE = np.ones((8, 8), np.float32)


def test_programs_that_differ_in_names_share_an_executable_but_when_compiled_ahead():
    f, g = scoped("first"), scoped("second")
    f(SQUARE)
    before = compile_count()
    g(SQUARE)
    assert compile_count() == before
    texts = [h.lower(SQUARE).compile().as_text() for h in (f, g, f)]
    assert [("/first/" in t, "/second/" in t) for t in texts] == [(True, False), (False, True), (True, False)]
    assert compile_count() == before + 1


def test_a_profile_shows_the_names_of_the_function_that_is_called(tmp_path):
    f, g = scoped("one"), scoped("other")
    f(SQUARE), g(SQUARE)
    before = compile_count()
    with minijax.profiler.trace(tmp_path):
        g(SQUARE).block_until_ready()
    (file,) = glob.glob(f"{tmp_path}/**/*.xplane.pb", recursive=True)
    with open(file, "rb") as stream:
        assert b"jit(f)/other/" in stream.read()
    assert compile_count() == before + 1
    g(SQUARE), f(SQUARE)
    assert compile_count() == before + 1


def test_names_of_a_transformation_end_with_it():
    def program(x):
        minijax.grad(minijax.numpy.sin)(x)
        try:
            minijax.vmap(lambda x: 1 / 0)(XS)
        except ZeroDivisionError:
            pass
        return minijax.numpy.cos(x)

    eqns = minijax.make_jaxpr(program)(X).eqns
    assert [str(eqn.source_info.name_stack) for eqn in eqns] == ["jvp()", "jvp()", "transpose(jvp())", ""]
