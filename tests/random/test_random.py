"""jax.random: bits, keys as arrays, jaxprs and errors, against jax."""

import copy
import functools
import pickle

import numpy as np
import pytest
from compare import (
    Case,
    ours,
    run_on,
    same,
    same_jaxpr,
    same_printed,
    same_refusal,
    same_text,
    same_value,
    sweep,
    theirs,
    wide_numbers,
)
from given import given
from scipy import stats

import minijax
from minijax import random
from minijax.base import config
from minijax.composed.random import PRNGImpl, random_seed_p
from minijax.random.keys import PRNGSpec

oracle = pytest.mark.oracle
SEED = np.uint32(7)
SHAPES = ((), (2, 3), (0,), (7,))
X = np.arange(6, dtype=np.int32).reshape(3, 2)
P = np.float32([0.2, 0.3, 0.5])
LOGITS = np.float32([[0.2, 0.3, 0.5], [1, 2, 3]])


def drawn(name, draw, *args):
    """A case that draws with the key of a seed."""
    return Case(name, lambda random: lambda seed, *args: draw(random, random.key(seed), *args), (SEED, *args))


# ---- bits -------------------------------------------------------------------------------------------


@oracle
@pytest.mark.parametrize(("partitionable", "x64"), [(True, False), (False, False), (False, True)])
def test_bits_keys_and_numbers_equal_jaxs_in_every_mode(partitionable, x64):
    widths = (8, 16, 32, 64) if x64 else (8, 16, 32)

    def program(jax, random):
        def all_of(seed):
            key = random.key(seed)
            keys = random.split(key, 4)
            found = {
                "bits": [[random.bits(key, s, f"uint{width}") for s in SHAPES] for width in widths],
                "split": [random.key_data(random.split(key, s)) for s in SHAPES],
                "fold_in": random.key_data(random.fold_in(key, 2**32 - 1)),
                "each": jax.vmap(lambda k: (random.bits(k, (3,)), random.key_data(random.split(k))))(keys),
                "by axis": jax.vmap(jax.vmap(random.bits), 1)(random.split(key, (2, 3))),
                "both": jax.vmap(lambda k: jax.vmap(lambda i: random.key_data(random.fold_in(k, i)))(np.arange(3)))(
                    keys
                ),
                "normal": random.normal(key, (3,)),
                "randint": random.randint(key, (5,), -3, 9),
                "permutation": random.permutation(key, 9),
            }
            return found

        return jax.jit(all_of)(SEED)

    with minijax.threefry_partitionable(partitionable), minijax.enable_x64(x64):
        mine = run_on(ours(), program)
    with theirs().threefry_partitionable(partitionable), theirs().enable_x64(x64):
        same_value(mine, run_on(theirs(), program))


@oracle
def test_bits_are_drawn_as_the_option_was_set_when_recorded():
    def program(jax, random):
        def drawing(partitionable):
            def drawn(seed):
                with jax.threefry_partitionable(partitionable):
                    return random.bits(random.key(seed), (5,), "uint16")

            return drawn

        old, new = drawing(False), drawing(True)
        both = lambda seed: (old(seed), new(seed), random.bits(random.key(seed), (5,), "uint16"))  # noqa: E731
        remembered = [jax.checkpoint(draw)(SEED) for draw in (old, new, old)]
        mapped = [jax.vmap(both)(np.arange(3)), jax.jit(jax.vmap(both))(np.arange(3)), jax.lax.map(both, np.arange(3))]
        recorded = [eqn.ctx.threefry_partitionable for eqn in jax.make_jaxpr(both)(SEED).eqns if "bits" in str(eqn)]
        return both(SEED), jax.jit(both)(SEED), jax.lax.cond(True, old, new, SEED), remembered, mapped, recorded

    same_value(run_on(ours(), program), run_on(theirs(), program))


def test_keys_are_split_as_the_option_was_set_when_recorded():
    def halves(seed):
        with minijax.threefry_partitionable(False):
            return random.key_data(random.split(random.key(seed), 4))

    assert minijax.jit(halves)(SEED).tolist() == halves(SEED).tolist()
    assert halves(SEED).tolist() != random.key_data(random.split(random.key(SEED), 4)).tolist()


@oracle
@pytest.mark.parametrize("x64", [False, True])
def test_seeds_of_every_size_make_jaxs_keys(x64):
    seeds = (0, -1, True, 42, 2**31 - 1, 2**40 + 7, -(2**40), np.int8(-5), np.uint64(2**40 + 5), np.array(3))
    with wide_numbers(x64):
        for seed in seeds:
            for make in (lambda r, s: r.key_data(r.key(s)), lambda r, s: r.PRNGKey(s)):
                same_value(make(random, seed), make(theirs().random, seed))


def test_bits_are_known():
    key = random.key(0)
    words = [[1797259609, 2579123966], [928981903, 3453687069]]
    assert random.key_data(random.split(key)).tolist() == words
    assert random.split(random.PRNGKey(0)).tolist() == words
    assert random.bits(key, (2,)).tolist() == [4070199207, 4202968722]
    assert random.key_data(random.fold_in(key, 7)).tolist() == [2716826189, 292468403]
    assert np.asarray(random.uniform(key, (2,))).view(np.uint32).tolist() == [1064475214, 1064993846]
    with minijax.threefry_partitionable(False):
        assert random.bits(key, (2,)).tolist() == random.key_data(random.split(key, 1))[0].tolist()


# ---- distributions ----------------------------------------------------------------------------------

DRAWS = [
    Case("key", lambda random: lambda seed: random.key_data(random.key(seed)), (SEED,)),
    Case("key-signed", lambda random: lambda seed: random.key_data(random.key(seed)), (np.int32(-3),)),
    Case("key-narrow", lambda random: lambda seed: random.key_data(random.key(seed)), (np.uint8(3),)),
    Case("PRNGKey", lambda random: lambda: random.PRNGKey(3)),
    Case("split-raw", lambda random: lambda k: random.split(k), (np.uint32([1, 2]),)),
    Case("fold-raw", lambda random: lambda k, i: random.fold_in(k, i), (np.uint32([1, 2]), 3)),
    Case("clone-raw", lambda random: lambda k: random.clone(k), (np.uint32([1, 2]),)),
    Case("wrap", lambda random: lambda k: random.key_data(random.wrap_key_data(k)), (np.uint32([[1, 2]]),)),
    Case("normal-raw", lambda random: lambda k: random.normal(k, (3,)), (np.uint32([1, 2]),)),
    drawn("split", lambda r, k: r.key_data(r.split(k, (2, 3)))),
    drawn("fold_in", lambda r, k: r.key_data(r.fold_in(k, 3))),
    drawn("fold_in-traced", lambda r, k, i: r.key_data(r.fold_in(k, i)), 3),
    drawn("clone", lambda r, k: r.key_data(r.clone(k))),
    drawn("bits-8", lambda r, k: r.bits(k, (3,), "uint8")),
    drawn("bits-4", lambda r, k: r.bits(k, (3,), "uint4")),
    *(drawn(f"uniform-{d}", lambda r, k, d=d: r.uniform(k, (3, 2), d, 1, 2))
      for d in ("float32", "float16", "bfloat16", "float8_e4m3fn")),
    drawn("uniform-scalar", lambda r, k: r.uniform(k)),
    drawn("uniform-bounds", lambda r, k, low: r.uniform(k, (2, 3), minval=low), P),
    *(drawn(f"normal-{d}", lambda r, k, d=d: r.normal(k, (3,), d))
      for d in ("float32", "float16", "bfloat16", "complex64")),
    *(drawn(f"randint-{d}", lambda r, k, d=d: r.randint(k, (3,), -2, 7, d))
      for d in ("int32", "uint32", "int8", "uint8", "uint16", "int4")),
    drawn("randint-wide", lambda r, k: r.randint(k, (), -2, 300, "int8")),
    drawn("randint-narrow-bound", lambda r, k, low: r.randint(k, (3,), low, 10), np.int8(3)),
    drawn("randint-other-bound", lambda r, k, low: r.randint(k, (3,), low, 300, "int8"), np.int16(3)),
    drawn("randint-bounds", lambda r, k, low: r.randint(k, (2, 3), low, 10), np.arange(3)),
    drawn("randint-float-bound", lambda r, k: r.randint(k, (3,), 0.0, 10)),
    drawn("randint-beyond", lambda r, k: r.randint(k, (3,), 0, np.uint32(2**32 - 1), "uint32")),
    drawn("randint-empty-range", lambda r, k: r.randint(k, (3,), 5, 1)),
    drawn("bernoulli", lambda r, k: r.bernoulli(k)),
    drawn("bernoulli-shape", lambda r, k, p: r.bernoulli(k, p, (2, 3)), P),
    drawn("bernoulli-high", lambda r, k, p: r.bernoulli(k, p, (2, 3), mode="high"), P),
    drawn("permutation", lambda r, k: r.permutation(k, 5)),
    drawn("permutation-of", lambda r, k, x: r.permutation(k, x, -1), X),
    drawn("permutation-each", lambda r, k, x: r.permutation(k, x, 1, independent=True), X),
    drawn("permutation-twice", lambda r, k: r.permutation(k, 5000)),
    drawn("choice", lambda r, k: r.choice(k, 5, (3,))),
    drawn("choice-one", lambda r, k: r.choice(k, 5)),
    drawn("choice-of", lambda r, k, x: r.choice(k, x, (2, 2), axis=1), X),
    drawn("choice-none", lambda r, k, x: r.choice(k, x, (0, 2), axis=1), X),
    drawn("choice-once", lambda r, k: r.choice(k, 5, (3,), replace=False)),
    drawn("choice-once-p", lambda r, k, p, x: r.choice(k, x, (3,), False, p), P, X),
    drawn("categorical", lambda r, k, x: r.categorical(k, x), LOGITS),
    drawn("categorical-axis", lambda r, k, x: r.categorical(k, x, axis=0, shape=(4, 3)), LOGITS),
    drawn("categorical-once", lambda r, k, x: r.categorical(k, x, shape=(2, 2), replace=False), LOGITS),
    drawn("categorical-once-axis", lambda r, k, x: r.categorical(k, x, 0, (2, 3), False, "high"), LOGITS),
    *(drawn(f"{n}-{d}", lambda r, k, n=n, d=d: getattr(r, n)(k, (3,), d))
      for n in ("gumbel", "exponential", "laplace", "logistic", "cauchy") for d in ("float32", "float16")),
    drawn("gumbel-high", lambda r, k: r.gumbel(k, (3,), mode="high")),
    drawn("gumbel-highest", lambda r, k: r.gumbel(k, (3,), mode="highest")),
    drawn("gumbel-highest-scalar", lambda r, k: r.gumbel(k, mode="highest")),
    drawn("gumbel-highest-float16", lambda r, k: r.gumbel(k, (3,), "float16", mode="highest")),
    drawn("categorical-highest", lambda r, k, x: r.categorical(k, x, mode="highest"), LOGITS),
    drawn("rademacher", lambda r, k: r.rademacher(k, (3,), "int8")),
    drawn("truncated_normal", lambda r, k: r.truncated_normal(k, -1, 1.0, (3,))),
    drawn("truncated_normal-bounds", lambda r, k, a: r.truncated_normal(k, a, 1.0, (2, 3)), P),
]  # fmt: skip


# Draws with parameters, by name: the arguments that follow the key.
PARAMETRIC = {
    "lognormal": [
        (),
        (2.0, (3,)),
        (P,),
        (P, (2, 3)),
        (np.float16(2), None, "float16"),
        (1, (0,)),
        (1.0, (2,), "complex64"),
    ],
    "rayleigh": [(1.0,), (P,), (P, (2, 3)), (2, (3,), "bfloat16"), (P, (2, 0, 3))],
    "pareto": [(2.0,), (2.0, (3,)), (P, (2, 3)), (3, (2,), "float16")],
    "weibull_min": [(1.0, 2.0), (P, 2.0, (2, 3)), (1, 2, (3,)), (1.0, P, (3,), "bfloat16")],
    "maxwell": [(), ((3,),), ((2, 3), "float16"), ((0,),)],
    "double_sided_maxwell": [(1.0, 2.0), (P, 2.0), (P, 2.0, (2, 3)), (1, 2, (3,), "float16")],
    "triangular": [(0.0, 0.5, 1.0), (P, 0.5, 1.0, (2, 3)), (0, 1, 2), (-1.0, P, 2.0), (0.0, 0.5, 1.0, (3,), "float16")],
    "wald": [(1.0,), (P,), (P, (2, 3)), (2, (3,), "bfloat16")],
    "geometric": [(0.5,), (P,), (P, (2, 3)), (0.25, (3,)), (0.5, (3,), "int8"), (np.float16(0.5), (2,))],
}
DRAWS += [
    drawn(f"{name}{args}", lambda r, k, *_, name=name, args=args: getattr(r, name)(k, *args))
    for name, calls in PARAMETRIC.items() for args in calls
]  # fmt: skip
WIDE = ("uniform-scalar", "uniform-bounds", "normal-bfloat16", "randint-int32", "randint-bounds", "bernoulli",
        "permutation", "choice", "categorical", "gumbel-float16", "truncated_normal")  # fmt: skip


@oracle
def test_draws_equal_jaxs(tier):
    sweep(DRAWS, tier)


@oracle
def test_draws_equal_jaxs_in_64_bits():
    wide = [case for case in DRAWS if case.name in WIDE]
    with wide_numbers():
        sweep(wide)


def mapped(name, draw, in_axes=0, shape=(4,)):
    def program(jax, random):
        f = draw(jax, random)
        return lambda words: jax.vmap(f, in_axes)(random.wrap_key_data(words))

    return Case(name, program, (np.arange(2 * int(np.prod(shape)), dtype=np.uint32).reshape(*shape, 2),))


def derivative(jax, random):
    def loss(low, key):
        return jax.numpy.sum(random.uniform(key, (3,), minval=low, maxval=2.0) * random.normal(key, (3,)))

    return lambda low, seed: jax.value_and_grad(loss)(low, random.key(seed))


TRANSFORMED = [
    mapped("split", lambda jax, r: lambda k: r.key_data(r.split(k))),
    mapped("bits", lambda jax, r: lambda k: r.bits(k, (3,))),
    mapped("normal", lambda jax, r: lambda k: r.normal(k, (3,))),
    mapped("randint", lambda jax, r: lambda k: r.randint(k, (3,), 0, 9)),
    mapped("axis", lambda jax, r: jax.vmap(lambda k: r.key_data(r.split(k))), 1, (2, 3)),
    mapped("unwrap", lambda jax, r: r.key_data, 1, (2, 3)),
    mapped("fold-one", lambda jax, r: lambda k: r.key_data(r.fold_in(k, 7))),
    mapped("fold-all", lambda jax, r: lambda k: jax.vmap(lambda i: r.key_data(r.fold_in(k, i)))(np.arange(3))),
    Case("seeds", lambda jax, random: jax.vmap(lambda s: random.key_data(random.key(s))), (np.arange(3),)),
    Case("grad", derivative, (np.float32(0.5), SEED)),
    Case(
        "scan",
        lambda jax, random: (
            lambda seed: jax.lax.scan(
                lambda c, k: (c + random.normal(k), random.bits(k)), 0.0, random.split(random.key(seed), 3)
            )
        ),
        (SEED,),
    ),
    Case(
        "carried",
        lambda jax, random: (
            lambda seed: random.key_data(jax.lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), random.key(seed)))
        ),
        (SEED,),
    ),
    Case(
        "cond",
        lambda jax, random: (
            lambda p, seed: random.key_data(
                jax.lax.cond(p, lambda k: random.split(k)[0], lambda k: k, random.key(seed))
            )
        ),
        (True, SEED),
    ),
]


@oracle
def test_keys_go_through_transformations_as_in_jax(tier):
    sweep(TRANSFORMED, tier)


@oracle
def test_keys_have_no_derivative_but_may_be_differentiated_by():
    def program(jax, random):
        def loss(x, keys):
            return x * random.uniform(keys[0]) * random.normal(keys[1])

        return jax.vjp(loss, np.float32(2), random.split(random.key(0)))[1](np.float32(1))

    same(program)


@oracle
@pytest.mark.parametrize(
    "case", [c for c in DRAWS if c.name in ("split", "fold_in", "bits-8", "normal-float32", "PRNGKey")]
)
def test_programs_lower_to_jaxs_stablehlo(case):
    same_text(case.program, *case.args)


@oracle
def test_keys_are_constants_and_operands_in_jaxprs():
    same_jaxpr(lambda random: lambda: random.normal(random.key(3)))
    for program in (
        lambda jax, random: jax.make_jaxpr(lambda k: (k[0], k[1:], k.T))(random.split(random.key(0), 3)),
        lambda jax, random: jax.make_jaxpr(functools.partial(lambda k: k, random.split(random.key(0))))(),
        lambda jax, random: jax.make_jaxpr(lambda k: jax.numpy.where(True, k, k))(random.key(0)),
        lambda jax, random: jax.make_jaxpr(random.clone)(random.key(0)),
    ):
        same_printed("jaxpr", lambda side, program=program: str(run_on(side, program)), program)


# ---- keys as arrays ---------------------------------------------------------------------------------

SAME_REPR = [
    lambda k: k,
    lambda kk: kk,
    lambda k: f"{k}",
    lambda kk: str(kk),
    lambda kk: kk[:0],
    lambda r, k: r.split(k, (2, 2)),
    lambda k: k.dtype,
    lambda k: str(k.dtype),
    lambda k: k.dtype.name,
    lambda k: k.dtype.itemsize,
    lambda k: k.shape,
    lambda kk: kk.shape,
    lambda kk: kk.ndim,
    lambda kk: kk.size,
    lambda k: k.itemsize,
    lambda kk: kk.nbytes,
    lambda kk: len(kk),
    lambda kk: list(kk),
    lambda kk: kk[0],
    lambda kk: kk[-1],
    lambda kk: kk[1:],
    lambda kk: kk[None],
    lambda kk: kk[kk.shape[0] - 2],
    lambda kk: kk[np.array([0, 2])],
    lambda jnp, kk: kk[jnp.array(1)],
    lambda kk: kk.T,
    lambda kk: kk.reshape(3, 1),
    lambda kk: kk.reshape((1, 3)),
    lambda kk: kk.ravel(),
    lambda kk: kk.flatten(),
    lambda kk: kk.squeeze(),
    lambda k, kk: kk.at[0].set(k),
    lambda kk: kk.copy(),
    lambda k: k == k,
    lambda kk: kk == kk,
    lambda kk: kk[0] == kk,
    lambda k: k != k,
    lambda kk: kk.block_until_ready(),
    lambda kk: kk.is_deleted(),
    lambda k: k.committed,
    lambda jnp, k: jnp.stack([k, k]),
    lambda jnp, kk: jnp.concatenate([kk, kk]),
    lambda jnp, kk: jnp.ndim(kk),
    lambda jnp, kk: jnp.shape(kk),
    lambda jnp, kk: jnp.size(kk),
    lambda jnp, kk: jnp.asarray(kk),
    lambda jnp, k: jnp.array([k, k]),
    lambda jnp, k: jnp.broadcast_to(k, (2,)),
    lambda jnp, k, kk: jnp.where(np.array([True, False, True]), kk, k),
    lambda jax, kk: jax.typeof(kk),
    lambda k: k.aval,
    lambda jax, k: isinstance(k, jax.Array),
    lambda jax, r, k: jax.eval_shape(r.split, k),
    lambda jax, k: jax.tree.leaves({"a": k}),
    lambda jax, k: jax.jit(lambda x: x)(k),
    lambda jax, kk: jax.jit(lambda: kk)(),
    lambda jax, k: jax.jit(lambda: k)(),
    lambda jax, r, k: jax.jit(lambda d: {"a": r.split(d["k"]), "b": d["x"]})({"k": k, "x": 1.0}),
    lambda jax, kk: jax.vmap(lambda k: k)(kk),
    lambda k: k.devices(),
    lambda jax, k: jax.dtypes.issubdtype(k.dtype, jax.dtypes.prng_key),
    lambda jax, k: jax.dtypes.issubdtype(k.dtype, np.integer),
    lambda k: k.dtype == "int32",
    lambda r, k: k.dtype == r.key(1).dtype,
    lambda r, k: r.key_impl(k),
    lambda r, K: r.key_impl(K),
    lambda r: r.key_dtype(),
    lambda r, kk: r.clone(kk),
    lambda r, k: r.key(0, impl=k.dtype),
    lambda r, k: r.key(0, dtype=k.dtype),
    lambda r, k: r.key(0, impl=r.key_impl(k)),
    lambda r, K: r.wrap_key_data(K),
    lambda r: r.wrap_key_data(np.zeros((3, 2), "uint32")),
    lambda r, K: r.split(K),
    lambda r, K: r.fold_in(K, 3),
    lambda r, k: r.fold_in(k, 1.5),
    lambda r, k: r.fold_in(k, np.int64(-7)),
    lambda r, k: r.fold_in(k, np.array(7)),
    lambda r, K: r.key_data(K),
    lambda r, k: r.split(k, ()),
]


def with_keys(jax, jnp, random, function):
    """Calls a function of modules, a key `k`, three keys `kk` and a raw key `K`."""
    key = random.key(0)
    return given(function, dict(jax=jax, jnp=jnp, r=random, k=key, kk=random.split(key, 3), K=random.PRNGKey(0)))


@oracle
@pytest.mark.parametrize("function", SAME_REPR)
def test_keys_look_and_behave_as_jaxs(function):
    same(lambda jax, jnp, random: repr(with_keys(jax, jnp, random, function)))


RAISING = [
    lambda r: r.key(1.0),
    lambda r: r.key("a"),
    lambda r, k: r.key(k),
    lambda r, kk: r.key(kk),
    lambda r: r.key(np.float32(1)),
    lambda r: r.key(None),
    lambda r: r.key(np.arange(2)),
    lambda r: r.PRNGKey(1.5),
    lambda r: r.key(2**63),
    lambda r: r.key(-(2**64)),
    lambda r: r.key(0, impl="nope"),
    lambda r: r.key(0, impl=3),
    lambda r, K: r.split(r.split(K)),
    lambda r, k: r.split(k, 2.0),
    lambda r: r.split([1, 2]),
    lambda r: r.split(np.array([1, 2])),
    lambda r: r.split(np.array([1, 2, 3], "uint32")),
    lambda r: r.split(np.uint32(2)),
    lambda r, k: r.fold_in(k, -1),
    lambda r, k: r.fold_in(k, 2**32),
    lambda r, k: r.fold_in(k, np.arange(2)),
    lambda r, kk: r.fold_in(kk, 1),
    lambda r: r.key_data(3),
    lambda r: r.key_data([1, 2]),
    lambda r: r.wrap_key_data(np.arange(2, dtype="int32")),
    lambda r, k: r.wrap_key_data(k),
    lambda r: r.wrap_key_data([1, 2]),
    lambda r: r.key_impl(3),
    lambda r, k: r.bits(k, (2,), "int32"),
    lambda r, k: r.bits(k, (2,), bool),
    lambda r, kk: r.bits(kk),
    lambda r, kk: r.uniform(kk),
    lambda r, k: r.uniform(k, (2,), int),
    lambda r, k: r.uniform(k, (2.0,)),
    lambda r, k: r.uniform(k, (2,), "complex64"),
    lambda r, k: r.uniform(k, (2,), minval=np.zeros(3)),
    lambda r, k: r.uniform(k, None),
    lambda r: r.uniform(3),
    lambda r, k: r.normal(k, (2,), int),
    lambda r, kk: r.normal(kk),
    lambda r, k: r.randint(k, (2,), 0, 10, float),
    lambda r, k: r.randint(k, (2,), 0, 2**31),
    lambda r, k: r.randint(k, (2,), np.zeros(3, int), 10),
    lambda r, k: r.randint(k, (2,), 0, 10, bool),
    lambda r, k: r.bernoulli(k, 2),
    lambda r, k: r.bernoulli(k, True),
    lambda r, k: r.bernoulli(k, "a"),
    lambda r, k: r.bernoulli(k, 1j),
    lambda r, k: r.bernoulli(k, np.zeros(3), (2,)),
    lambda r, k: r.bernoulli(k, 0.5, mode="x"),
    lambda r, k: r.permutation(k, 5.0),
    lambda r, k: r.permutation(k, 5, 1),
    lambda r, k: r.permutation(k, [1, 2, 3]),
    lambda r, k: r.permutation(k, np.zeros((2, 3)), axis=2),
    lambda r, k: r.permutation(k, True),
    lambda r, k: r.choice(k, 0),
    lambda r, k: r.choice(k, -2),
    lambda r, k: r.choice(k, [1, 2, 3]),
    lambda r, k: r.choice(k, 5, 3),
    lambda r, k: r.choice(k, 5, (6,), replace=False),
    lambda r, k: r.choice(k, 5, (2,), p=[0.1, 0.9]),
    lambda r, k: r.choice(k, np.zeros((2, 3)), (2,), axis=4),
    lambda r, k: r.choice(k, 2, (2,), p=np.zeros((2, 1))),
    lambda r, k: r.categorical(k, [0.1, 0.2]),
    lambda r, k: r.categorical(k, np.zeros((2, 3)), shape=(3,)),
    lambda r, k: r.categorical(k, np.zeros((2, 3)), axis=2),
    lambda r, k: r.categorical(k, np.arange(3)),
    lambda r, k: r.categorical(k, np.zeros((2, 3)), shape=(4, 2), replace=False),
    lambda r, k: r.categorical(k, np.zeros(3), mode="q"),
    lambda r, k: r.gumbel(k, (3,), int),
    lambda r, k: r.gumbel(k, (3,), mode="q"),
    lambda r, k: r.exponential(k, (3,), int),
    lambda r, k: r.truncated_normal(k, 0, 1, (2,), int),
    lambda r, k: r.truncated_normal(k, np.zeros(2), 1, (3,)),
    lambda r, k: r.laplace(k, (2,), int),
    lambda r, k: r.lognormal(k, 1.0, (2,), int),
    lambda r, k: r.lognormal(k, np.ones(3), (2,)),
    lambda r, k: r.lognormal(k, np.float64(1), (), "float16"),
    lambda r, k: r.rayleigh(k, np.ones(2, "float32"), None, "float16"),
    lambda r, k: r.rayleigh(k, 1j),
    lambda r, k: r.pareto(k, np.ones(3), (2,)),
    lambda r, k: r.maxwell(k, (2,), int),
    lambda r, k: r.weibull_min(k, 1.0, 2.0, (2,), int),
    lambda r, k: r.triangular(k, 0.0, np.ones(3), 1.0, (2,)),
    lambda r, k: r.wald(k, 1.0, (2,), "complex64"),
    lambda r, kk: r.wald(kk, 1.0),
    lambda r, k: r.geometric(k, 0.5, (2,), float),
    lambda r, k: r.geometric(k, np.ones(3) / 2, (2,)),
    lambda r, k: r.double_sided_maxwell(k, 0.0, 1.0, (2,), int),
    lambda k: bool(k),
    lambda k: int(k),
    lambda k: float(k),
    lambda k: hash(k),
    lambda k: len(k),
    lambda k: iter(k),
    lambda kk: kk[kk],
    lambda jnp, k: jnp.add(k, k),
    lambda jax, k: jax.grad(lambda k: 1.0)(k),
    lambda jax, k: jax.jvp(lambda k: k, (k,), (k,)),
    lambda kk: kk.item(),
    lambda kk: kk.view("uint32"),
    lambda k: 2.0 * k,
    lambda k: k == 1,
    lambda k: k // 2,
    lambda jnp, k: jnp.maximum(1, k),
    lambda jnp, k: jnp.logaddexp(k, 1),
]
RAISING_WITH = [
    (lambda r, kk: r.split(kk), "accepts a single key, but was given a key array of shape (3,) != ()"),
    (lambda r: r.split(None), "unexpected PRNG key type"),
    (lambda r: r.split(3), "JAX encountered invalid PRNG key data"),
    (lambda r: r.key([1]), "Use jax.vmap for batching"),
    (lambda k: k + 1, "add does not accept dtypes key<fry>, int32"),
    (lambda k: np.asarray(k), "cannot be converted to a NumPy array"),
]


@oracle
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("function, phrase", [*[(function, "") for function in RAISING], *RAISING_WITH])
def test_wrong_calls_raise_as_in_jax(function, phrase):
    same_refusal(lambda jax, jnp, random: functools.partial(with_keys, jax, jnp, random, function), phrases=[phrase])


def test_keys_copy_and_pickle():
    keys = random.split(random.key(3), 2)
    for made in (copy.copy(keys), copy.deepcopy(keys), pickle.loads(pickle.dumps(keys))):
        assert made.dtype == keys.dtype and (made == keys).tolist() == [True, True]


# ---- options and generators -------------------------------------------------------------------------


@oracle
@pytest.mark.parametrize("custom", [False, True])
def test_the_option_makes_prng_keys_typed(custom):
    def program(jax, random):
        jax.config.update("jax_enable_custom_prng", custom)
        try:
            return random.PRNGKey(3)
        finally:
            jax.config.update("jax_enable_custom_prng", False)

    same(program)


def test_raw_keys_warn_or_raise_if_the_option_is_set():
    raw = random.PRNGKey(0)
    try:
        minijax.config.update("jax_legacy_prng_key", "warn")
        with pytest.warns(UserWarning, match="Legacy uint32 key array"):
            random.split(raw)
        minijax.config.update("jax_legacy_prng_key", "error")
        with pytest.raises(ValueError, match="Legacy uint32 key array"):
            random.normal(raw)
        random.key_data(raw)
    finally:
        minijax.config.update("jax_legacy_prng_key", "allow")


def test_a_generator_of_ones_own_draws_by_its_functions():
    full = minijax.lax.full
    impl = PRNGImpl(
        (3,),
        lambda seed: full((3,), np.uint32(5)),
        lambda words, shape: full((*shape, 3), np.uint32(6)),
        lambda words, width, shape: full(shape, np.uint32(width)),
        lambda words, data: minijax.lax.add(words, data),
        tag="own",
    )
    key = random_seed_p.bind(np.int32(0), impl=impl)
    assert str(key.dtype) == "key<own>" and random.key_impl(key) == PRNGSpec(impl)
    assert random.key_data(random.split(key, 2)).tolist() == [[6, 6, 6], [6, 6, 6]]
    assert minijax.vmap(lambda k: random.bits(k, (2,)))(random.split(key, 2)).tolist() == [[32, 32]] * 2
    assert random.key_data(random.fold_in(key, 2)).tolist() == [7, 7, 7]


DISTRIBUTED = {
    "lognormal": ((0.5,), stats.lognorm(0.5)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "pareto": ((3.0,), stats.pareto(3)),
    "weibull_min": ((2.0, 1.5), stats.weibull_min(1.5, scale=2)),
    "maxwell": ((), stats.maxwell()),
    "double_sided_maxwell": ((1.0, 2.0), stats.dgamma(1.5, loc=1)),  # of the square
    "triangular": ((-1.0, 0.0, 3.0), stats.triang(0.25, loc=-1, scale=4)),
    "wald": ((1.5,), stats.invgauss(1.5)),
    "normal": ((), stats.norm()),
    "exponential": ((), stats.expon()),
    "gumbel": ((), stats.gumbel_r()),
    "laplace": ((), stats.laplace()),
    "logistic": ((), stats.logistic()),
    "cauchy": ((), stats.cauchy()),
}


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_draws_have_their_distribution(name):
    arguments, expected = DISTRIBUTED[name]
    drawn = np.asarray(getattr(random, name)(random.key(3), *arguments, shape=(4000,)), np.float64)
    if name == "double_sided_maxwell":
        half = (drawn - 1) / 2
        drawn = 1 + np.sign(half) * half**2 / 2
    assert stats.kstest(drawn, expected.cdf).pvalue > 1e-3


def test_geometric_draws_have_their_distribution():
    drawn = np.asarray(random.geometric(random.key(3), 0.3, shape=(4000,)))
    counts = np.bincount(np.minimum(drawn, 12), minlength=13)[1:]
    shares = np.append(stats.geom(0.3).pmf(np.arange(1, 12)), stats.geom(0.3).sf(11))
    assert stats.chisquare(counts, shares * 4000).pvalue > 1e-3


LAID_OUT = {
    "uniform": lambda r, k, s: r.uniform(k, (8,), out_sharding=s),
    "normal": lambda r, k, s: r.normal(k, (8, 3), out_sharding=s),
    "bits": lambda r, k, s: r.bits(k, (8,), out_sharding=s),
    "integers": lambda r, k, s: r.randint(k, (8,), 0, 9, out_sharding=s),
    "permutation": lambda r, k, s: r.permutation(k, 8, out_sharding=s),
    "categories": lambda r, k, s: r.categorical(k, np.zeros(3, np.float32), shape=(8,), out_sharding=s),
    "exponential": lambda r, k, s: r.exponential(k, (8,), out_sharding=s),
    "gamma": lambda r, k, s: r.gamma(k, 2.0, (8,), out_sharding=s),
    "poisson": lambda r, k, s: r.poisson(k, 3.0, (8,), out_sharding=s),
    "normal vectors": lambda r, k, s: r.multivariate_normal(k, np.zeros(2), np.eye(2), (8,), out_sharding=s),
    "no sharding": lambda r, k, s: r.normal(k, (8,), out_sharding=3),
}


@oracle
@pytest.mark.parametrize("name", LAID_OUT)
def test_samples_are_sharded_over_explicit_axes(name):
    def program(jax):
        mesh = jax.make_mesh((4,), ("x",))
        with jax.set_mesh(mesh):
            return LAID_OUT[name](jax.random, jax.random.key(3), jax.NamedSharding(mesh, jax.P("x")))

    same(program, raises=name == "no sharding")


def test_an_option_is_added_to_each_seed():
    key = minijax.jit(random.key)
    assert key(np.int32(17)) == random.key(17)
    before = config.random_seed_offset.value
    try:
        minijax.config.update("jax_random_seed_offset", 3)
        assert random.key_data(random.key(17)).tolist() == [0, 20]
        assert random.PRNGKey(2**31 - 1, impl="rbg").tolist() == [0, 2**31 + 2] * 2
        assert random.key_data(random.key(np.uint8(255))).tolist() == [0, 2]
        assert random.key_data(key(np.int32(17))).tolist() == [0, 20]
    finally:
        minijax.config.update("jax_random_seed_offset", before)
    assert key(np.int32(17)) == random.key(17)


@oracle
def test_rules_with_symbolic_zeros_take_trees_with_keys():
    def program(jax):
        f = jax.custom_vjp(lambda _, state: state)
        seen = []

        def backward(_, cts):
            seen.append((str(cts[1].dtype), type(cts[1]).__name__))
            return cts[0], cts

        f.defvjp(lambda _, state: (jax.tree.map(lambda x: x.value, state), None), backward, symbolic_zeros=True)
        state = (8.0, jax.random.key(3))
        return jax.grad(lambda x: f(x, state)[0])(3.0), seen

    same(program)
