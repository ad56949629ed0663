"""Eager draws of many shapes share programs, and are the same numbers as draws of each shape by its own program."""

import numpy as np
import pytest
from compare import same

import minijax
from minijax.random import arguments
from minijax.run.programs.compile import compile_count

SHAPES = [(), (3,), (7, 3), (64,), (33, 2), (1000,), (4096,), (4097,), (2, 0)]


@pytest.fixture(autouse=True)
def forgotten():
    """No shape has been drawn."""
    arguments._draws.cache_clear()
    yield
    arguments._draws.cache_clear()


def everything(jax, jnp):
    key = jax.random.key(7)
    draws = {
        "normal": lambda shape: jax.random.normal(key, shape),
        "normal of bfloat16": lambda shape: jax.random.normal(key, shape, jnp.bfloat16),
        "normal of complex": lambda shape: jax.random.normal(key, shape, complex),
        "uniform": lambda shape: jax.random.uniform(key, shape),
        "uniform between": lambda shape: jax.random.uniform(key, shape, minval=-0.3, maxval=0.7),
        "bits": lambda shape: jax.random.bits(key, shape),
        "bits of 8": lambda shape: jax.random.bits(key, shape, "uint8"),
        "exponential": lambda shape: jax.random.exponential(key, shape),
        "truncated": lambda shape: jax.random.truncated_normal(key, -1.0, 2.0, shape),
        "flips": lambda shape: jax.random.bernoulli(key, 0.3, shape),
        "finer flips": lambda shape: jax.random.bernoulli(key, 0.3, shape, mode="high"),
        "flips of many chances": lambda shape: jax.random.bernoulli(key, jnp.linspace(0, 1, shape[-1]), shape),
        "signs": lambda shape: jax.random.rademacher(key, shape),
        "integers": lambda shape: jax.random.randint(key, shape, -3, 1000),
        "integers of 8": lambda shape: jax.random.randint(key, shape, -100, 300, "int8"),
        "finer gumbel": lambda shape: jax.random.gumbel(key, shape, mode="high"),
        "finest gumbel": lambda shape: jax.random.gumbel(key, shape, mode="highest"),
    }
    return {name: [draw(shape) for shape in ((2,), (3,), (4, 5), (70, 70))] for name, draw in draws.items()}


def test_numbers_are_those_of_jax():
    same(everything)


@pytest.mark.parametrize("name", ["normal", "uniform", "bits", "laplace", "logistic", "cauchy", "gumbel", "rademacher"])
def test_numbers_do_not_depend_on_the_program(name):
    draw, key = getattr(minijax.random, name), minijax.random.key(3)
    compiled = [np.asarray(minijax.jit(draw, static_argnums=1)(key, shape)) for shape in SHAPES]
    for want, shape in zip(compiled, SHAPES, strict=True):
        got = draw(key, shape)
        assert got.shape == shape and got.dtype == want.dtype and got.weak_type is False
        assert np.asarray(got).tobytes() == want.tobytes()


def test_new_shapes_share_a_program_and_repeated_ones_get_their_own(monkeypatch):
    key = minijax.random.key(0)
    sizes = []
    drawn = arguments.drawn
    monkeypatch.setattr(
        arguments, "drawn", lambda draw, values, at: sizes.append(values[at]) or drawn(draw, values, at)
    )
    minijax.random.normal(key, (5,))
    assert sizes == []
    for shape in [(2, 11), (11, 2), (5,)]:
        minijax.random.normal(key, shape)
    assert sizes == [(2, 11), (11, 2)]
    for _ in range(2 * arguments.REPEATED):
        minijax.random.normal(key, (2, 11))
    assert len(sizes) == arguments.REPEATED + 1
    before = compile_count()
    minijax.random.normal(key, (2, 11))
    assert compile_count() == before


def test_traces_and_other_generators_do_not_share(monkeypatch):
    monkeypatch.setattr(arguments, "drawn", None)
    key, keys = minijax.random.key(0), minijax.random.split(minijax.random.key(0), 2)
    for n in range(3, 6):
        minijax.jit(lambda k, n=n: minijax.random.normal(k, (n,)))(key)
        minijax.vmap(lambda k, n=n: minijax.random.normal(k, (n,)))(keys)
        minijax.random.normal(minijax.random.key(0, impl="rbg"), (n,))
        minijax.random.uniform(key, (n,), minval=np.zeros(n, np.float32))
        with minijax.threefry_partitionable(False):
            minijax.random.normal(key, (n,))
