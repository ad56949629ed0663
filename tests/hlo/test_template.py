"""Lines that are printed from templates equal those that the operation's own rule prints."""

import numpy as np
import pytest
from compare import same_text

import minijax as jax
import minijax.numpy as jnp
from minijax.hlo import template

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def text(function, *args):
    return jax.jit(lambda *xs: function(*xs)).lower(*args).as_text()


def filled(value):
    return lambda x: x.at[jnp.array([5])].get(mode="fill", fill_value=value)


@pytest.mark.parametrize("one, other", [(0.0, -0.0), (0, -0.0), (np.nan, 1.0), (1.0, 2.0)])
def test_parameters_that_are_equal_but_not_the_same_are_kept_apart(one, other):
    for _ in range(3):
        first, second = text(filled(one), X), text(filled(other), X)
    assert first != second


@pytest.mark.parametrize("times", range(3))
def test_each_repeated_lowering_has_jax_s_text(times):
    same_text(lambda jnp, lax: lambda x: (
        jnp.sin(x) + 1, x @ x.T, x.sum(0), jnp.sort(x), x[:, 1], jnp.argmax(x, 1), jnp.cumsum(x), x.astype("int8"),
        jnp.where(x > 1, x, 0), lax.rev(x, (0,)), jnp.pad(x, 1), lax.clamp(0.0, x, 1.0)), X)  # fmt: skip


def test_options_are_part_of_the_key():
    program = lambda x: x @ x.T  # noqa: E731
    plain = [text(program, X) for _ in range(3)]
    with jax.default_matmul_precision("highest"):
        highest = [text(program, X) for _ in range(3)]
    assert len(set(plain)) == len(set(highest)) == 1 and plain[0] != highest[0] == highest[2]
    assert text(program, X) == plain[0]


def test_a_rule_that_a_user_registers_is_called_each_time():
    from minijax.interpreters import mlir

    p = jax.extend.core.Primitive("counted")
    p.def_abstract_eval(lambda x: x)
    calls = []
    mlir.register_lowering(p, lambda ctx, x: calls.append(1) or [x])
    for _ in range(3):
        text(lambda x: p.bind(p.bind(x)), X)
    assert len(calls) == 6


def test_templates_of_a_program_with_weak_types_and_widths_are_apart():
    assert text(lambda x: x * 2, X) != text(lambda x: x * 2, X.astype(np.float16))
    with jax.enable_x64(True):
        assert "f64" in text(lambda x: x * 2, X.astype(np.float64))


def test_most_lines_of_a_repeated_program_come_from_templates(monkeypatch):
    program = lambda x: jnp.tanh(jnp.tanh(jnp.tanh(x)))  # noqa: E731
    text(program, X), text(program, X)
    monkeypatch.setattr(template, "_learned", None)
    assert text(program, X).count("stablehlo.tanh") == 3
