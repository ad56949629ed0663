"""XLA metadata and compute types: jaxprs, contexts and modules, compared with jax."""

import importlib
import re

import compare
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.experimental.compute_on import compute_on
from minijax.experimental.xla_metadata import set_xla_metadata

X = np.arange(4, dtype=np.float32)
_EXPERIMENTAL = "xla_metadata", "compute_on"


def tools(jax):
    return [getattr(importlib.import_module(f"{jax.__name__}.experimental.{m}"), f)
            for m, f in (("xla_metadata", "set_xla_metadata"), ("compute_on", "compute_on"))]  # fmt: skip


def scoped(manager, f):
    def within(x):
        with manager:
            return f(x)

    return within


# name -> a function of (jax, jnp, set_xla_metadata, compute_on)
PROGRAMS = {
    "value": lambda jax, jnp, tag, on: lambda x: tag(jnp.sin(x), a="b", n=3, t=True, f=1.5),
    "tree": lambda jax, jnp, tag, on: lambda x: tag((jnp.sin(x), {"k": x * 2}), a="b"),
    "argument": lambda jax, jnp, tag, on: lambda x: tag(x, a="b") + 1,
    "none": lambda jax, jnp, tag, on: lambda x: tag(jnp.sin(x), a=None) + x,
    "no names": lambda jax, jnp, tag, on: lambda x: tag(jnp.sin(x)) + x,
    "twice": lambda jax, jnp, tag, on: lambda x: tag(tag(jnp.sin(x), a="b", z=1), a="c", d=2),
    "value in context": lambda jax, jnp, tag, on: scoped(tag(a="ctx", k=1), lambda x: tag(jnp.sin(x), a="val", c=2)),
    "grad": lambda jax, jnp, tag, on: jax.grad(lambda x: tag(jnp.sin(x), a="b").sum()),
    "jvp": lambda jax, jnp, tag, on: lambda x: jax.jvp(lambda x: tag(jnp.sin(x), a="b"), (x,), (x,)),
    "vmap": lambda jax, jnp, tag, on: jax.vmap(lambda x: tag(jnp.sin(x), a="b")),
    "call": lambda jax, jnp, tag, on: lambda x: tag(jax.jit(lambda x: jnp.sin(x) * 2)(x), a="b"),
    "cond": lambda jax, jnp, tag, on: lambda x: tag(jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), a="b"),
    "scatter": lambda jax, jnp, tag, on: lambda x: tag(x.at[1].add(2.0), a="b"),
    "sort": lambda jax, jnp, tag, on: lambda x: tag(jax.lax.sort((x, x)), a="b"),
    "context": lambda jax, jnp, tag, on: scoped(tag(a="b", d=True, e=None), lambda x: jnp.sin(x) + jax.jit(jnp.cos)(x)),
    "odd": lambda jax, jnp, tag, on: scoped(tag(**{'a b"': 'q"\\'}), jnp.sin),
    "empty": lambda jax, jnp, tag, on: scoped(tag(), jnp.sin),
    "unset": lambda jax, jnp, tag, on: scoped(tag(a=1, b=2), scoped(tag(a=None), jnp.sin)),
    "loop": lambda jax, jnp, tag, on: scoped(tag(a="b"), lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 2, x)),
    "branches": lambda jax, jnp, tag, on: scoped(
        tag(a="b"), lambda x: jax.lax.cond(x[0] < 0, jnp.sin, scoped(tag(a=None), jnp.cos), x)
    ),
    "gradient in context": lambda jax, jnp, tag, on: scoped(tag(a="b"), jax.grad(lambda x: (x**3).sum())),
    "gradient of context": lambda jax, jnp, tag, on: jax.grad(lambda x: scoped(tag(a="b"), jnp.sin)(x).sum()),
    "decorator": lambda jax, jnp, tag, on: tag(a="b")(lambda x: scoped(tag(c="d"), jnp.sin)(x)),
    "host": lambda jax, jnp, tag, on: scoped(on("device_host"), lambda x: jnp.sin(x) * 2),
    "host call": lambda jax, jnp, tag, on: on("device_host")(jax.jit(lambda x: jnp.sin(x) * 2)),
    "device": lambda jax, jnp, tag, on: scoped(on("device_host"), scoped(on("device"), jnp.sin)),
    "sparsecore": lambda jax, jnp, tag, on: scoped(on("tpu_sparsecore"), lambda x: x + 1),
    "stream": lambda jax, jnp, tag, on: scoped(on("gpu_stream:3"), scoped(tag(a="ctx", k=1), lambda x: jnp.sin(x) + 1)),
    "host loop": lambda jax, jnp, tag, on: on("device_host")(
        lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: c * 2, x)
    ),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxprs_contexts_and_texts_are_those_of_jax(name):
    def program(jax, jnp, lax):
        f = PROGRAMS[name](jax, jnp, *tools(jax))
        closed = jax.make_jaxpr(f)(X)
        text = jax.jit(f).lower(X).as_text()
        attrs = re.findall(r"(call|stablehlo\.\w+|\}\)).*?(\{mhlo\.frontend_attributes = \{.*?\}\})", text)
        contexts = [(str(e.primitive), e.ctx.xla_metadata, e.ctx.compute_type) for e in closed.jaxpr.eqns]
        return compare.normal(str(closed)), contexts, sorted(attrs)

    compare.same(lambda jax, jnp, lax: program(jax, jnp, lax))


def test_eager_values_pass_and_trees_without_leaves():
    tree = {"a": [X, 1], "b": ()}
    out = set_xla_metadata(tree, a="b")
    assert out["b"] == () and out["a"][1] == 1 and np.array_equal(out["a"][0], X)
    with pytest.raises(TypeError):
        set_xla_metadata("text", a="b")


def test_programs_are_remembered_by_metadata_and_compute_type():
    f = minijax.jit(lambda x: jnp.sin(x))
    text = lambda: f.lower(X).as_text()  # noqa: E731
    plain = text()
    with set_xla_metadata(b=1):
        assert 'b = "1"' in text()
        with set_xla_metadata(b=True):
            assert 'b = "true"' in text()
        assert 'b = "1"' in text()
        assert np.allclose(f(X), np.sin(X))
    with compute_on("device_host"):
        assert '"host"' in text()
    assert text() == plain and "frontend" not in plain


def test_a_decorated_function_is_traced_and_lowered_under_the_metadata():
    @set_xla_metadata(a="b")
    @minijax.jit
    def f(x):
        """Doc."""
        return x + 1

    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert [e.ctx.xla_metadata for e in f.trace(1.0).jaxpr.eqns] == [{"a": "b"}]
    assert 'a = "b"' in f.lower(1.0).as_text()
    assert f(1.0) == 2.0

    class Model:
        @set_xla_metadata(a="b")
        def call(self, x):
            return x + 1

    assert Model().call(1.0) == 2.0


def test_one_manager_may_be_entered_within_itself():
    manager = set_xla_metadata(a="b")
    metadata = lambda: minijax.make_jaxpr(jnp.sin)(1.0).eqns[0].ctx.xla_metadata  # noqa: E731
    with manager, manager:
        assert metadata() == {"a": "b"}
    assert metadata() is None


def test_an_exception_within_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError), set_xla_metadata(a="b"), compute_on("device_host"):
        raise ZeroDivisionError
    assert "frontend" not in minijax.jit(jnp.cos).lower(X).as_text()


@pytest.mark.parametrize("kind, error", [(None, TypeError), (3, TypeError), ("", ValueError), ("cpu", ValueError)])
def test_compute_types_that_do_not_exist_are_refused(kind, error):
    with pytest.raises(error):
        compute_on(kind)


def test_metadata_that_has_no_hash_is_refused():
    with pytest.raises(TypeError), set_xla_metadata(a=np.ones(2)):
        pass


@pytest.mark.oracle
def test_operations_that_a_rule_calls_are_recorded_in_the_context_of_its_equation():
    def recorded(jax):
        jax.make_jaxpr(jax.grad(jax.nn.relu))(1.0)  # what the rule calls is known without a compute type
        f = jax.jit(tools(jax)[1]("device_host")(lambda x: jax.nn.relu(x)))
        forward = jax.make_jaxpr(jax.grad(f))(1.0).eqns[0].params["jaxpr"]
        return [(str(e.primitive), e.ctx.compute_type) for e in forward.eqns]

    ours = compare.same(recorded)
    assert ("gt", "device_host") in ours
