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


def test_new_shapes_share_programs_and_repeated_ones_get_their_own(monkeypatch):
    key = minijax.random.key(0)
    shapes = []
    drawn = arguments.drawn
    monkeypatch.setattr(arguments, "drawn", lambda *args: shapes.append(args[2][args[4]]) or drawn(*args))
    for shape in [(2, 11), (11, 2), (5,)]:
        minijax.random.normal(key, shape)
    assert shapes == [(2, 11), (11, 2), (5,)]
    often = arguments.SHARED // arguments.SIZES[0]
    first = np.asarray(minijax.random.normal(key, (2, 11)))
    for _ in range(often):
        assert np.asarray(minijax.random.normal(key, (2, 11))).tobytes() == first.tobytes()
    assert len(shapes) == 2 + often
    before = compile_count()
    minijax.random.normal(key, (2, 11))
    assert compile_count() == before


def test_samplers_share_the_program_of_their_bits():
    def compiled(draw):
        before = compile_count()
        minijax.block_until_ready(draw())
        return compile_count() - before

    key, low = minijax.random.key(0), np.float32(np.pi)  # a bound that no other test has compiled
    minijax.random.normal(key, (33,))
    minijax.random.split(key)  # as does `_cut`, whose program the next shape shares
    assert compiled(lambda: minijax.random.laplace(key, (33,), "float16")) <= 3
    assert compiled(lambda: minijax.random.uniform(key, (33,), "float32", low)) <= 1
    assert compiled(lambda: minijax.random.uniform(key, (33,), "float32", low + 1)) == 0


@pytest.mark.parametrize("option", ["disable_jit", "debug_nans", "log_compiles"])
def test_options(option):
    def program(jax, jnp):
        with getattr(jax, option)(True):
            key = jax.random.key(1)
            return [
                jax.random.normal(key, (3,)),
                jax.random.bernoulli(key, 0.3, (2, 3)),
                jax.random.randint(key, (4,), 0, 9),
            ]

    same(program)


@pytest.mark.parametrize("p", [0.3, np.float16(0.3), np.float32(0.3), np.float64(0.3)], ids=lambda p: type(p).__name__)
def test_parameters_of_other_types(p):
    def program(jax, jnp):
        key = jax.random.key(1)
        bounds = (int(9 * p), np.int8(9)), (np.int16(-9), 9)
        flips = [jax.random.bernoulli(key, p, (3,)), jax.random.bernoulli(key, 0.3, (3,))]
        return flips + [jax.random.randint(key, (4,), *each) for each in bounds]

    same(program)


def test_keys_that_are_gone_and_devices():
    key = minijax.random.key(0)
    assert not minijax.random.normal(key, (2,)).committed
    committed = minijax.device_put(key, minijax.devices()[0])
    assert minijax.random.normal(committed, (2,)).committed
    committed.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        minijax.random.normal(committed, (2,))


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
