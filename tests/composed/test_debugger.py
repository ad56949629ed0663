"""`jax.debug.breakpoint`: what its prompt shows is what jax's shows, and on a terminal it can be talked to."""

import contextlib
import io
import os
import pty
import subprocess
import sys

import compare
import numpy as np
import pytest
from compare import require

import minijax


def session(namespace, program, *commands) -> str:
    """The output of the prompt of a program's breakpoints for the commands."""
    stdin, stdout = io.StringIO("\n".join([*commands, ""])), io.StringIO()

    def run(jax):
        program(jax, dict(stdin=stdin, stdout=stdout, backend="cli"))
        jax.effects_barrier()

    compare.run_on(namespace, run)
    return stdout.getvalue()


def function(jax, files, **how):
    def f(x):
        y = jax.numpy.sin(x)
        values = {"a": y, "b": [x, 3, "text"]}
        jax.debug.breakpoint(**files, **how)
        return y + values["a"]

    return f


def caller(jax, files):
    f = function(jax, files)

    @jax.jit
    def g(z):
        w = z * 2
        return f(w)

    return g


X = np.float32(2)
PROGRAMS = {
    "eager": lambda jax, files: function(jax, files)(jax.numpy.asarray(X)),
    "jit": lambda jax, files: jax.jit(function(jax, files))(X),
    "grad": lambda jax, files: jax.grad(function(jax, files))(X),
    "vmap": lambda jax, files: jax.vmap(function(jax, files, ordered=True))(jax.numpy.ones(1)),
    "scan": lambda jax, files: jax.lax.scan(lambda c, x: (function(jax, files)(c + x), x), X, np.ones(1, np.float32)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_concrete_and_those_of_jax(name):
    commands = ["p x", "p x, y", "pp values", "p values['b']", "y", "p nope", "", "c"]
    ours, theirs = (session(namespace, PROGRAMS[name], *commands) for namespace in (compare.ours(), compare.theirs()))
    require(ours == theirs, "session", ours, theirs)


def test_a_container_that_holds_itself_takes_no_stack():
    def program(jax, files):
        cycle = {"a": 1}
        cycle["b"] = cycle
        jax.debug.breakpoint(**files)

    def depth(n=0):
        try:
            return depth(n + 1)
        except RecursionError:
            return n

    before = depth()
    assert "<cant_flatten>" in session(minijax, program, "p cycle", "c")
    assert depth() > before - 50  # flattening one takes hundreds


def test_frames_are_those_of_jax():
    program = lambda jax, files: caller(jax, {**files, "num_frames": 3})(X)  # noqa: E731
    commands = ["u", "p w", "p y", "u", "d", "d", "d", "bt", "where", "c"]
    ours, theirs = (session(namespace, program, *commands) for namespace in (compare.ours(), compare.theirs()))
    shown = [line.rstrip() for text in (ours, theirs) for line in text.split("\n")]
    half = len(shown) // 2
    require(shown[:half] == shown[half:], "session", ours, theirs)


def test_frames_can_be_limited_and_shown_in_full():
    def said(*commands, **how):
        return session(minijax, lambda jax, files: jax.jit(function(jax, files, **how))(X), *commands, "c")

    assert "At topmost frame." in said("u", num_frames=1)
    whole = said("ll", "a", "l")
    assert "def f(x):" in whole and "x = Array(2., dtype=float32)" in whole and "->          jax.debug" in whole
    assert "where" in said("help") and "bt: prints the frames" in said("help bt")


def test_an_end_of_input_or_quit_ends_the_process():
    for commands in ([], ["q"], ["exit"]):
        with pytest.raises(SystemExit):
            session(minijax, PROGRAMS["jit"], *commands)


def test_bad_arguments_raise():
    with pytest.raises(ValueError, match="unknown debugger backend 'x'"):
        minijax.debug.breakpoint(backend="x")
    with pytest.raises(TypeError, match="unexpected keyword arguments"):
        minijax.debug.breakpoint(input=3)


SCRIPT = """
import minijax as jax
import minijax.numpy as jnp

def f(x):
    y = jnp.sin(x)
    jax.debug.breakpoint()
    return y * 2

print("result", jax.jit(f)(1.0))
"""


def test_it_talks_on_a_terminal():
    parent, child = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=child, stdout=child, stderr=child)
    os.close(child)
    os.write(parent, b"p y\nc\n")  # read when the prompt is there
    shown = b""
    with contextlib.suppress(OSError):  # at its end
        while data := os.read(parent, 4096):
            shown += data
    os.close(parent)
    assert process.wait(timeout=60) == 0, shown
    assert b"Entering jdb:" in shown and b"Array(0.84147" in shown and b"result 1.68294" in shown, shown
