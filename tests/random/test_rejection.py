"""Distributions drawn by rejection: gamma and its kin, and counts; against jax, and against their laws."""

import numpy as np
import pytest
from compare import Case, same_misuse, sweep
from scipy import stats

import minijax
import minijax.numpy as jnp
from minijax import random

oracle = pytest.mark.oracle
SEED = np.uint32(7)
A = np.float32([0.2, 1.0, 2.5])
P = np.float32([0.2, 0.3, 0.5])
CLOSE = {"rtol": 2e-6, "atol": 1e-7, "why": "XLA fuses the programs of a group in another way"}


def drawn(name, draw, *args, **options):
    return Case(
        name, lambda random: lambda seed, *args: draw(random, random.key(seed), *args), (SEED, *args), **options
    )


CALLS = {
    "gamma": [(A,), (2.0,), (A, (2, 3)), (3, (2,), "bfloat16"), (A, (2, 3), "float16"), (A, (0, 3))],
    "loggamma": [(A,), (0.01, (3,)), (2, (2,), "float16")],
    "beta": [(A, 2.0), (A, A, (2, 3)), (1, 2, (2,), "float16")],
    "dirichlet": [(A,), (A, (2,)), (np.ones((2, 3), np.float32),), (A, (2,), "bfloat16")],
    "chisquare": [(A,), (2, (3,)), (A, (2, 3))],
    "t": [(A,), (2, (2, 3)), (np.float16(2), (2, 3), "float16")],
    "f": [(A, 3.0), (2.0, 3.0, (2, 3))],
    "generalized_normal": [(1.5, (2,)), (2.0,), (1, (2,), "float16")],
    "ball": [(3,), (3, 1.5, (2,)), (2, 1, (), "float16")],
    "poisson": [(A,), (2.0, (3,)), (np.float32([50, 0, np.nan, 1e10, -1]),), (A, (2, 3)), (5, (2,), "int8"), (30, (2,), "uint16")],
    "binomial": [(10, 0.5), (10.0, P), (np.float32([-1, np.nan, np.inf, 100, 1000]), np.float32([0.5, 0.5, 0.5, 0.7, 0.2])),
                 (np.float16(10), 0.3, (2,), "float16"), (20, P, (2, 3))],
}  # fmt: skip
CASES = [
    drawn(f"{name}{args}", lambda r, k, name=name, args=args: getattr(r, name)(k, *args), tolerance=CLOSE)
    for name, calls in CALLS.items() for args in calls
]  # fmt: skip
CASES += [
    drawn("multinomial", lambda r, k: r.multinomial(k, 10, P)),
    drawn("multinomial of rows", lambda r, k: r.multinomial(k, np.float32([10, 20]), P[None], shape=(4, 2, 3))),
    drawn("multinomial of integers", lambda r, k: r.multinomial(k, 10, P, dtype="int32", unroll=2)),
    drawn("multinomial of nothing", lambda r, k: r.multinomial(k, 10, np.zeros(0, np.float32))),
]


@oracle
def test_draws_equal_jaxs(tier):
    sweep(CASES, tier)


@oracle
def test_draws_equal_jaxs_in_64_bits(tier):
    names = ("gamma(2.0,)", "loggamma(0.01, (3,))", "ball(3,)", "poisson(2.0, (3,))", "binomial(10, 0.5)")
    with minijax.enable_x64(True), __import__("jax").enable_x64(True):
        sweep([case for case in CASES if case.name in names], tier)


def seeds(jax):
    return jax.vmap(jax.random.key)(np.arange(3))


TRANSFORMED = {
    "grad of loggamma": lambda jax: lambda a: jax.grad(lambda a: jax.random.loggamma(jax.random.key(0), a).sum())(a),
    "vmap of keys": lambda jax: lambda a: jax.vmap(jax.random.gamma, (0, None))(seeds(jax), a),
    "vmap of shapes": lambda jax: lambda a: jax.vmap(jax.random.gamma, (None, 0))(jax.random.key(0), a),
    "vmap of both": lambda jax: lambda a: jax.vmap(lambda k, a: jax.random.gamma(k, a, (4, 2)), (0, 1))(
        seeds(jax), jax.numpy.stack([a, a])
    ),
    "vmap of grad of beta": lambda jax: lambda a: jax.vmap(
        jax.grad(lambda a, k: jax.random.beta(k, a, 2.0))
    )(a, seeds(jax)),
    "vmap of poisson": lambda jax: lambda a: jax.vmap(jax.random.poisson)(seeds(jax), a),
    "vmap of binomial": lambda jax: lambda a: jax.vmap(jax.random.binomial, (0, None, 0))(seeds(jax), 10.0, a / 4),
    "scan of gamma": lambda jax: lambda a: jax.lax.scan(lambda c, k: (c, jax.random.gamma(k, a)), 0, seeds(jax))[1],
}  # fmt: skip


@oracle
def test_draws_equal_jaxs_under_transforms(tier):
    """jax moves a constant of the derivative by a shape out of the scan over them."""
    cases = [Case(name, program, (A,), tolerance=CLOSE) for name, program in TRANSFORMED.items()]
    sweep([case for case in cases if "grad" not in case.name], tier)
    sweep([case for case in cases if "grad" in case.name], tier, jaxpr=False)


MISUSES = {
    "gamma(k, A, (2,))": "Incompatible shapes for broadcasting",
    "gamma(k, A, None, 'int32')": "must be a float dtype",
    "beta(k, A, np.ones(2))": "Incompatible shapes for broadcasting",
    "beta(k, A, A, None, 'float16')": "cannot safely cast",
    "t(k, A, None, 'float16')": "cannot safely cast",
    "dirichlet(k, 1.0)": "alpha.ndim >= 1",
    "ball(k, 3, 2, (), 'int32')": "must be a float dtype",
    "poisson(k, A, (2,))": "broadcasting",
    "poisson(k, A, dtype='float32')": "nteger",
    "poisson(k, [1.0])": "requires ndarray or scalar arguments",
    "poisson(jax.random.key(0, impl='rbg'), 1.0)": "only implemented for the threefry2x32 RNG",
    "binomial(k, 10, A, (2,))": "Incompatible shapes for broadcasting",
    "binomial(k, 10, A, dtype='int32')": "must be a float dtype",
    "binomial(k, [10.0], 0.5)": "requires ndarray or scalar arguments",
    "multinomial(k, 10, 0.5)": "axis",
    "multinomial(k, np.ones(2), A)": "Cannot broadcast to shape with fewer dimensions",
}


@oracle
@pytest.mark.parametrize("text", MISUSES)
def test_bad_calls_are_refused(text):
    same_misuse("jax.random." + text.replace("(k,", "(jax.random.key(0),", 1), {"A": A}, MISUSES[text])


LAWS = {
    "gamma": ((0.5,), stats.gamma(0.5)),
    "loggamma": ((2.5,), stats.loggamma(2.5)),
    "beta": ((0.5, 2.0), stats.beta(0.5, 2)),
    "chisquare": ((3.0,), stats.chi2(3)),
    "t": ((4.0,), stats.t(4)),
    "f": ((4.0, 6.0), stats.f(4, 6)),
    "generalized_normal": ((1.5,), stats.gennorm(1.5)),
}


@pytest.mark.parametrize("name", LAWS)
def test_draws_have_their_law(name):
    arguments, law = LAWS[name]
    sample = np.asarray(getattr(random, name)(random.key(3), *arguments, shape=(4000,)), np.float64)
    assert stats.kstest(sample, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("sample", "law"),
    [
        (lambda k: random.poisson(k, 3.0, (4000,)), stats.poisson(3)),
        (lambda k: random.poisson(k, 40.0, (4000,)), stats.poisson(40)),
        (lambda k: random.binomial(k, 12, 0.3, (4000,)), stats.binom(12, 0.3)),
        (lambda k: random.binomial(k, 100, 0.7, (4000,)), stats.binom(100, 0.7)),
        (lambda k: random.multinomial(k, 12.0, P, shape=(4000, 3))[:, 1], stats.binom(12, 0.3)),
    ],
    ids=["poisson", "large poisson", "binomial", "large binomial", "multinomial"],
)
def test_counts_have_their_law(sample, law):
    counts = np.asarray(sample(random.key(4)), int)
    edges = np.unique(law.ppf(np.linspace(0, 1, 9)[1:-1]).astype(int))
    expected = np.diff(law.cdf(np.r_[-1, edges, 1e9])) * counts.size
    observed = np.bincount(np.searchsorted(edges, counts), minlength=len(edges) + 1)
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_points_of_a_ball_and_of_a_simplex_are_uniform():
    radii = jnp.linalg.norm(random.ball(random.key(1), 3, 2, (4000,)), axis=-1)
    assert stats.kstest(np.asarray(radii, np.float64) ** 3, stats.uniform().cdf).pvalue > 1e-3
    weights = random.dirichlet(random.key(1), jnp.ones(3), (4000,))
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert stats.kstest(np.asarray(weights[:, 0], np.float64), stats.beta(1, 2).cdf).pvalue > 1e-3


def test_derivatives_by_the_shape_hold_the_probability():
    """Of a number x drawn for a: dP(X < x)/da + density * dx/da = 0."""
    a = 1.7
    x, by_a = minijax.value_and_grad(lambda a: random.gamma(random.key(2), a))(a)
    h = 1e-4
    moved = (stats.gamma(a + h).cdf(x) - stats.gamma(a - h).cdf(x)) / (2 * h)
    np.testing.assert_allclose(by_a, -moved / stats.gamma(a).pdf(x), rtol=1e-3)
