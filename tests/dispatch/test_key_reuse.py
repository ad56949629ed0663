"""`jax_debug_key_reuse`: which programs use a key twice, compared with jax (`key_reuse.txt`)."""

import copy
import pathlib
import pickle
import re

import compare
import numpy as np
import pytest

import minijax
from minijax import lax, random
from minijax.experimental.scheduling_groups import xla_metadata_call

_TABLE = pathlib.Path(__file__).with_name("key_reuse.txt").read_text().splitlines()[1:]
ROWS = [pytest.param(*line.split(" | ", 3), id=line.partition(" ")[0]) for line in _TABLE]


def verdict(jax, jnp, lax, source, jitted):
    """Where a key is used again: in an operation of a program, or with a "+" between programs."""
    R = jax.random
    names = dict(R=R, U=lambda k: R.uniform(k, ()), B=R.bits, S=R.split, F=R.fold_in, N=R.normal, K=R.key)
    f = eval(source, dict(jax=jax, jnp=jnp, lax=lax, **names))
    with jax.debug_key_reuse(False):
        args = (R.key(42), jnp.int32(1))[: f.__code__.co_argcount]
    with jax.debug_key_reuse(True):
        try:
            (jax.jit(f) if jitted else f)(*args)
        except jax.errors.KeyReuseError as error:
            text = str(error)
            if match := re.match(r"In (\w+), argument \d+ is already consumed", text):
                return match[1]
            if match := re.match(
                r"Previously-consumed key passed to (jit|\w+)(-compiled function)? at index \d+", text
            ):
                return "+" + match[1]
            return text.partition(" ")[0]
    return ""


@pytest.mark.parametrize("name, jitted, eager, source", ROWS)
def test_programs_that_use_a_key_twice_are_refused(name, jitted, eager, source):
    program = lambda jax, jnp, lax: (verdict(jax, jnp, lax, source, True), verdict(jax, jnp, lax, source, False))  # noqa: E731
    assert compare.run_on(minijax, program) == (jitted, eager)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name, jitted, eager, source", [row for row in ROWS if compare.sampled(str(row.id), of="key reuse")]
)
def test_the_verdicts_are_those_of_jax(name, jitted, eager, source):
    program = lambda jax, jnp, lax: (verdict(jax, jnp, lax, source, True), verdict(jax, jnp, lax, source, False))  # noqa: E731
    assert compare.run_on(compare.theirs(), program) == (jitted, eager)


def test_without_the_option_keys_are_not_watched():
    key = random.key(0)
    assert np.array_equal(random.bits(key), random.bits(key))
    assert not np.any(key._consumed)


def test_keys_that_a_function_captured_are_consumed():
    with minijax.debug_key_reuse(True):
        key = random.key(0)
        f = minijax.jit(lambda: random.uniform(key))
        f()
        with pytest.raises(
            minijax.errors.KeyReuseError, match="Previously-consumed key passed to jit-compiled function"
        ):
            f()


def test_the_option_is_part_of_the_keys_of_programs():
    f = minijax.jit(lambda k: random.bits(k) + random.bits(k))
    key = random.key(0)
    f(key)
    with minijax.debug_key_reuse(True), pytest.raises(minijax.errors.KeyReuseError, match="In random_bits, argument 0"):
        f(key)
    f(key)
    with minijax.debug_key_reuse(True):
        for look in (f.trace, f.lower, minijax.make_jaxpr(f)):
            with pytest.raises(minijax.errors.KeyReuseError):
                look(key)


def test_a_clone_and_new_keys_are_not_consumed():
    with minijax.debug_key_reuse(True):
        key = random.key(0)
        random.bits(key)
        assert np.all(key._consumed) and not np.any(random.clone(key)._consumed)
        assert np.all(minijax.device_put(key)._consumed)
        keys = random.split(random.clone(key), 3)
        random.bits(keys[1])
        assert list(keys._consumed) == [False, True, False]
        random.bits(random.fold_in(key, 1))


def test_a_program_returns_the_keys_it_consumed_as_consumed():
    with minijax.debug_key_reuse(True):
        first, second, new = minijax.jit(lambda k: (random.bits(k), k, random.fold_in(k, 1)))(random.key(0))
        del first
        assert np.all(second._consumed) and not np.any(new._consumed)


def test_errors_of_loops_describe_the_body():
    def scan(k):
        return lax.scan(lambda c, x: ((c[1], c[0]), random.bits(c[0])), (k, random.key(1)), np.arange(3))

    with minijax.debug_key_reuse(True), pytest.raises(minijax.errors.KeyReuseError) as info:
        minijax.jit(scan)(random.key(0))
    assert "signature=KeyReuseSignature(Sink(0), Forward(0, 1), Forward(1, 0))" in str(info.value)
    assert "scan[" in str(info.value)


def test_consumed_keys_are_copied_and_pickled():
    key = random.key(0)
    with minijax.debug_key_reuse(True):
        random.bits(key)
    for twin in (copy.copy(key), copy.deepcopy(key), pickle.loads(pickle.dumps(key))):
        assert np.array_equal(random.key_data(twin), random.key_data(key))


def test_a_zero_sized_axis_of_keys_is_never_consumed():
    with minijax.debug_key_reuse(True):
        keys = random.split(random.key(0), 0)
        minijax.vmap(random.bits)(keys)
        minijax.vmap(random.bits)(keys)


@pytest.mark.parametrize("jitted", [False, True])
def test_keys_are_followed_through_custom_calls(jitted):
    call = xla_metadata_call(a="b")

    def split(key):
        one, other = call(random.split)(key)
        return random.bits(one), random.bits(other)

    def twice(key):
        return call(lambda k: random.bits(k) + random.bits(k))(key)

    with minijax.debug_key_reuse(True):
        (minijax.jit(split) if jitted else split)(random.key(0))
        with pytest.raises(minijax.errors.KeyReuseError, match="already consumed"):
            (minijax.jit(twice) if jitted else twice)(random.key(0))
