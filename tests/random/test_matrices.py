"""Correlated normal numbers and orthogonal matrices: jaxprs, numbers and errors, against jax, and their laws."""

import numpy as np
import pytest
from compare import Case, same, same_misuse, sweep
from scipy import stats

import minijax
from minijax import random
from minijax.nn import initializers

SEED = np.uint32(7)
M, C = np.float32([1, 2]), np.float32([[2, 0.5], [0.5, 1]])


def drawn(name, draw, *args):
    return Case(name, lambda jax: lambda seed, *args: draw(jax, jax.random.key(seed), *args), (SEED, *args))


def normal(*options, **names):
    return lambda jax, key, mean, cov: jax.random.multivariate_normal(key, mean, cov, *options, **names)


DRAWS = [
    *[drawn(f"normal by {m}", normal((4,), method=m), M, C) for m in ("cholesky", "eigh", "svd")],
    drawn("normal of axes", normal((2, 3)), np.ones((3, 2), np.float32), C[None]),
    drawn("normal of integers", normal(), np.int32([1, 2]), np.eye(2, dtype=np.int32)),
    drawn("half normal", normal((), "bfloat16"), M, C),
    drawn("no normal", normal(), np.zeros(0, np.float32), np.zeros((0, 0), np.float32)),
    *[
        drawn(f"orthogonal {args}", lambda jax, key, args=args: jax.random.orthogonal(key, *args))
        for args in [(3,), (3, (2,)), (3, (), "complex64"), (3, (), None, 2), (2, (2,), None, 3), (0,), (3, (0,))]
    ],
    *[
        drawn(f"{name}{options}({shape})", lambda jax, key, n=name, o=options, s=shape: maker(jax, n, o)(key, s))
        for name, options, shape in [
            ("orthogonal", (2.0,), (3, 2, 4)),
            ("orthogonal", (1.0, 0), (3, 2, 4)),
            ("delta_orthogonal", (), (3, 4, 5)),
            ("delta_orthogonal", (2.0,), (3, 5, 4, 5)),
            ("delta_orthogonal", (), (3, 2, 3, 4, 4)),
        ]
    ],
]


def maker(jax, name, options):
    return getattr(jax.nn.initializers, name)(*options)


@pytest.mark.oracle
def test_draws_equal_jaxs(tier):
    sweep(DRAWS, tier)


@pytest.mark.oracle
def test_draws_equal_jaxs_under_transforms(tier):
    by_cov = drawn("grad", lambda jax, key: jax.grad(lambda c: normal((3,))(jax, key, M, c).sum())(C))
    by_key = Case("vmap", lambda jax: jax.vmap(lambda seed: normal()(jax, jax.random.key(seed), M, C)), (np.arange(3),))
    square = Case("vmap", lambda jax: jax.vmap(lambda s: jax.random.orthogonal(jax.random.key(s), 2)), (np.arange(3),))
    sweep([by_cov, by_key, square], tier)


MISUSES = {
    "r.multivariate_normal(k, M, C, method='x')": "method must be one of",
    "r.multivariate_normal(k, M[0], C)": "requires mean.ndim >= 1",
    "r.multivariate_normal(k, M, M)": "requires cov.ndim >= 2",
    "r.multivariate_normal(k, M, C[:1])": "requires cov.shape",
    "r.multivariate_normal(k, M, C, (3,), 'int32')": "must be a float dtype",
    "r.multivariate_normal(k, M, C + 0j)": "must be a float dtype",
    "r.multivariate_normal(k, np.ones((3, 2)), C, (2,))": "Incompatible shapes for broadcasting",
    "r.orthogonal(k, -1)": "negative dimensions are not allowed",
    "r.orthogonal(k, 3, (), 'int32')": "must be a float or complex dtype",
    "r.orthogonal(k, 3, (), 'float16')": "Unsupported dtype float16",
    "i.orthogonal()(k, (3,))": "at least a 2D shape",
    "i.delta_orthogonal()(k, (3, 4))": "requires a 3D, 4D or 5D shape",
}


@pytest.mark.oracle
@pytest.mark.parametrize("text", MISUSES)
def test_bad_calls_are_refused(text):
    program = text.replace("r.", "jax.random.", 1).replace("i.", "jax.nn.initializers.", 1)
    same_misuse(program.replace("(k", "(jax.random.key(0)"), {"M": M, "C": C}, MISUSES[text])


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors_have_their_covariance(method):
    z = np.asarray(random.multivariate_normal(random.key(2), M, C, (4000,), method=method), np.float64)
    white = (z - M) @ np.linalg.inv(np.linalg.cholesky(C.astype(np.float64))).T
    for column in (*white.T, (white[:, 0] + white[:, 1]) / np.sqrt(2)):
        assert stats.kstest(column, stats.norm().cdf).pvalue > 1e-3


def test_orthogonal_matrices_are_orthogonal_and_uniform():
    q = random.orthogonal(random.key(5), 3, (3000,))
    np.testing.assert_allclose(q @ q.mT, np.broadcast_to(np.eye(3), q.shape), atol=2e-6)
    u = random.orthogonal(random.key(5), 3, (2,), "complex64", 2)
    np.testing.assert_allclose(u.mT.conj() @ u, np.broadcast_to(np.eye(2), (2, 2, 2)), atol=2e-6)
    # An entry of a uniform rotation in three dimensions is uniform (Archimedes).
    assert stats.kstest(np.asarray(q[:, 0, 0]), stats.uniform(-1, 2).cdf).pvalue > 1e-3
    kernel = initializers.delta_orthogonal(2.0)(random.key(0), (3, 4, 5))
    np.testing.assert_allclose(kernel[1] @ kernel[1].T, 4 * np.eye(4), atol=1e-5)
    assert minijax.numpy.count_nonzero(kernel[0]) == minijax.numpy.count_nonzero(kernel[2]) == 0


@pytest.mark.oracle
@pytest.mark.parametrize("mean", [(2,), (3, 2)])
def test_means_of_lower_rank_need_no_rank_promotion(mean):
    def program(jax):
        with jax.numpy_rank_promotion("raise"):
            return jax.random.multivariate_normal(jax.random.key(3), np.ones(mean, np.float32), C, (4, 3))

    same(program)
