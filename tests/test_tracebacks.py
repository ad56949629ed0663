"""Tracebacks show the user's frames alone; an exception inside a trace leaves nothing behind."""

import contextlib
import traceback

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.ir import context, state

ROOT = jax.__file__.removesuffix("__init__.py")
NOTE = "JAX has removed its internal frames"


class Mine(Exception):
    """Raised by the functions below."""


def fails(*xs):
    raise Mine


def mistaken(x, *rest):
    return x + jnp.ones(7)


X = np.ones(3, np.float32)
XX = np.ones((2, 3), np.float32)


@jax.custom_jvp
def with_rule(x):
    return x


CALLS = {
    "jit": lambda f: jax.jit(f)(X),
    "nested jit": lambda f: jax.jit(lambda x: jax.jit(f)(x))(X),
    "grad": lambda f: jax.grad(f)(X),
    "value_and_grad": lambda f: jax.value_and_grad(f)(X),
    "jvp": lambda f: jax.jvp(f, (X,), (X,)),
    "vjp": lambda f: jax.vjp(f, X),
    "linearize": lambda f: jax.linearize(f, X),
    "vmap": lambda f: jax.vmap(f)(XX),
    "vmap with a name": lambda f: jax.vmap(f, axis_name="i")(XX),
    "jacfwd": lambda f: jax.jacfwd(f)(X),
    "jacrev": lambda f: jax.jacrev(f)(X),
    "hessian": lambda f: jax.hessian(f)(X),
    "checkpoint": lambda f: jax.checkpoint(f)(X),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(X),
    "eval_shape": lambda f: jax.eval_shape(f, X),
    "lower": lambda f: jax.jit(f).lower(X),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), X, XX),
    "while_loop": lambda f: lax.while_loop(lambda c: True, f, X),
    "while_loop's test": lambda f: lax.while_loop(f, lambda c: c, X),
    "fori_loop": lambda f: lax.fori_loop(0, 3, lambda i, c: f(c), X),
    "cond": lambda f: lax.cond(True, f, f, X),
    "switch": lambda f: lax.switch(1, [f, f], X),
    "map": lambda f: lax.map(f, XX),
    "associative_scan": lambda f: lax.associative_scan(lambda a, b: f(a), XX),
    "custom_jvp": lambda f: _custom_jvp(f)(X),
    "jit of grad of scan": lambda f: jax.jit(jax.grad(lambda x: lax.scan(lambda c, y: (f(c), y), x, XX)[0].sum()))(X),
    "vmap of grad of jit": lambda f: jax.vmap(jax.grad(jax.jit(f)))(XX),
    "grad of vmap of cond": lambda f: jax.grad(lambda x: jax.vmap(lambda y: lax.cond(y[0] > 0, f, f, y))(x).sum())(XX),
    "a custom_jvp's rule": lambda f: _rule(f),
    "a custom_vjp's fwd": lambda f: jax.grad(_custom_vjp(f, lambda res, ct: (ct,)))(1.0),
    "a custom_vjp's bwd": lambda f: jax.grad(_custom_vjp(lambda x: (x, x), f))(1.0),
}


def _custom_jvp(f):
    fun = jax.custom_jvp(f)
    fun.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return fun


def _rule(f):
    with_rule.defjvp(lambda primals, tangents: f(primals[0]))
    return jax.grad(with_rule)(1.0)


def _custom_vjp(fwd, bwd):
    fun = jax.custom_vjp(lambda x: x)
    fun.defvjp(fwd, bwd)
    return fun


def raised(call, f):
    with pytest.raises((Mine, TypeError, ValueError)) as found:
        call(f)
    return found.value


def names(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("name", CALLS)
def test_an_exception_leaves_no_trace_behind(name):
    error = raised(CALLS[name], fails)
    assert type(error) is Mine
    assert state.thread.trace is None and state.thread.axes == ()
    assert context.current_context() is context.EMPTY or context.current_context() == context.EMPTY
    assert (jnp.ones(3) + 1).tolist() == [2, 2, 2]
    assert float(jax.grad(lambda x: x * x)(2.0)) == 4
    assert float(jax.jit(lambda x: x + 1)(2.0)) == 3


@pytest.mark.parametrize("name", CALLS)
def test_the_librarys_frames_are_left_out(name):
    shown = names(raised(CALLS[name], fails))
    assert not any(file.startswith(ROOT) for file in shown), shown
    frames = traceback.extract_tb(raised(CALLS[name], fails).__traceback__)
    assert frames[-1].name == "fails"


@pytest.mark.parametrize("name", [n for n in CALLS if "rule" not in n and "'s" not in n and "test" not in n])
def test_the_last_frame_is_the_line_that_called_the_library(name):
    error = raised(CALLS[name], mistaken)
    assert "ncompatible shapes for broadcasting" in str(error)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "mistaken"
    assert len([note for note in error.__notes__ if NOTE in note]) == 1


MISUSE = {
    "an argument of jit": lambda: jax.jit(lambda x: x)("a"),
    "grad of an int": lambda: jax.grad(lambda x: x)(1),
    "sizes of vmap": lambda: jax.vmap(lambda x, y: x)(X, XX),
    "scan's carry": lambda: lax.scan(lambda c, x: (1, x), 1.0, X),
    "cond's branches": lambda: lax.cond(True, lambda x: x, lambda x: 1, 1.0),
    "while's test": lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0),
    "an unhashable static argument": lambda: jax.jit(lambda n: 1, static_argnums=0)([1]),
    "a jitted library function": lambda: jnp.dot(jnp.ones(3), jnp.ones(4)),
}


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_shown_at_the_users_call(name):
    with pytest.raises((TypeError, ValueError)) as found:
        MISUSE[name]()
    assert traceback.extract_tb(found.value.__traceback__)[-1].name == "<lambda>"
    assert not any(file.startswith(ROOT) for file in names(found.value))


def test_the_same_frames_as_in_jax_but_for_jaxs_own():
    real = pytest.importorskip("jax")
    shown = []
    for module, call in ((jax, CALLS["jit of grad of scan"]), (real, None)):
        f = mistaken if call else lambda x: x + real.numpy.ones(7)
        call = call or (
            lambda f: real.jit(real.grad(lambda x: real.lax.scan(lambda c, y: (f(c), y), x, XX)[0].sum()))(X)
        )
        with pytest.raises(TypeError) as found:
            call(f)
        root = module.__file__.removesuffix("__init__.py")
        shown.append([file for file in names(found.value) if not file.startswith(root)])
    # The first frames are this test's own; then each shows the call, two lambdas and the function.
    assert shown[0][-4:] == shown[1][-4:] == [__file__] * 4


@contextlib.contextmanager
def _updated(mode):
    saved = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", mode)
    try:
        yield
    finally:
        jax.config.update("jax_traceback_filtering", saved)


def test_filtering_can_be_turned_off_and_made_quiet():
    with _updated("off"):
        error = raised(CALLS["jit"], fails)
        assert any(file.startswith(ROOT) for file in names(error)) and not hasattr(error, "__notes__")
    with _updated("quiet_remove_frames"):
        error = raised(CALLS["jit"], fails)
        assert not any(file.startswith(ROOT) for file in names(error)) and NOTE in error.__notes__[0]
        assert error.__cause__ is None
    with _updated("remove_frames"):
        error = raised(CALLS["jit"], fails)
        assert not any(file.startswith(ROOT) for file in names(error)) and not hasattr(error, "__notes__")
        assert type(error.__cause__).__name__ == "UnfilteredStackTrace"
        assert any(file.startswith(ROOT) for file in names(error.__cause__))
    with _updated("tracebackhide"):
        frames = list(traceback.walk_tb(raised(CALLS["jit"], fails).__traceback__))
        marks = {f.f_code.co_filename: "__tracebackhide__" in f.f_locals for f, _ in frames}
        assert marks.items() >= {(__file__, False)}
        assert all(marked == file.startswith(ROOT) for file, marked in marks.items())


EAGER = {
    "an operation": lambda: lax.add(1, 1.0),
    "an operator": lambda: jnp.ones(3) + jnp.ones(4),
    "a function that moves data": lambda: jnp.concatenate([jnp.ones(3), jnp.ones((2, 2))]),
    "an index": lambda: jnp.ones(3)["a"],
    "a jitted function over others": lambda: jax.jit(lambda x: lax.scan(lambda c, y: (c + jnp.ones(7), y), x, XX))(X),
}


@pytest.mark.parametrize("name", EAGER)
def test_every_way_of_filtering_holds_for_functions_called_one_in_the_other(name):
    def ours(error):
        return [file.startswith(ROOT) for file in names(error)]

    call = lambda f: EAGER[name]()  # noqa: E731
    with _updated("off"):
        whole = ours(raised(call, None))
    assert sum(whole) > 2
    with _updated("quiet_remove_frames"):
        error = raised(call, None)
        assert sum(ours(error)) <= 2 and error.__notes__ == [error.__notes__[0]] and error.__context__ is None
    with _updated("remove_frames"):
        error = raised(call, None)
        cause = error.__cause__
        assert sum(ours(error)) <= 2 and type(cause).__name__ == "UnfilteredStackTrace" and cause.__cause__ is None
        # Together they have every frame once: those above the last that filtered are the exception's own.
        above = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        below = [frame for frame, _ in traceback.walk_tb(cause.__traceback__)]
        assert sum(f.f_code.co_filename.startswith(ROOT) for f in {*above, *below}) == sum(whole)
        assert len({*below}) == len(below)
    with _updated("tracebackhide"):
        frames = [frame for frame, _ in traceback.walk_tb(raised(call, None).__traceback__)]
        assert all(f.f_locals.get("__tracebackhide__", False) == f.f_code.co_filename.startswith(ROOT) for f in frames)


def test_an_error_that_is_handled_within_the_library_is_not_shown():
    leaked = []
    jax.jit(lambda x: leaked.append(x))(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError) as found:
        leaked[0] + 1
    assert found.value.__context__ is None
    try:
        raise KeyError("of the user's")
    except KeyError:
        with pytest.raises(jax.errors.UnexpectedTracerError) as found:
            leaked[0] + 1
    assert type(found.value.__context__) is KeyError and found.value.__context__.__context__ is None


def test_causes_and_contexts_are_kept():
    def chained(x):
        try:
            raise KeyError("first")
        except KeyError as error:
            raise Mine("second") from error

    def during(x):
        try:
            raise KeyError("first")
        except KeyError:
            raise Mine("second")  # noqa: B904

    for name in ("jit", "scan", "jit of grad of scan"):
        assert type(raised(CALLS[name], chained).__cause__) is KeyError
        error = raised(CALLS[name], during)
        assert error.__cause__ is None and type(error.__context__) is KeyError


def test_deleted_arrays_are_reported_without_the_runtimes_own_error():
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]") as found:
        x + 1
    assert found.value.__suppress_context__


def test_warnings_point_at_the_users_line():
    with pytest.warns(UserWarning, match="donated buffers were not usable") as seen:
        jax.jit(lambda a: a[0], donate_argnums=0)(jnp.ones(5))
    assert seen[0].filename == __file__
