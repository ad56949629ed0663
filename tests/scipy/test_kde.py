"""Gaussian kernel density estimates, against jax's."""

import compare
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

LINE = np.array([-1.5, 0.25, 0.5, 2.0, 3.5], np.float32)
PLANE = np.array([[-1.5, 0.25, 0.5, 2.0, 3.5], [0.5, 1.0, -2.0, 0.75, 1.5]], np.float32)
WEIGHTS = np.array([1, 2, 3, 2, 1], np.float32)
CLOSE = {"rtol": 1e-5, "atol": 1e-6, "why": "products are summed in another order"}


def estimates(jax, data, **options):
    k = jax.scipy.stats.gaussian_kde(jax.numpy.asarray(data), **options)
    mean, cov = np.ones(k.d, np.float32), np.eye(k.d, dtype=np.float32)
    results = [
        k(data[..., :3]),
        k.logpdf(data),
        k.neff,
        k.covariance,
        k.integrate_kde(k),
        k.integrate_gaussian(mean, cov),
    ]
    return [*results, k.resample(jax.random.key(0), (3,)), jax.tree_util.tree_leaves(k)]


@pytest.mark.parametrize("data", [LINE, PLANE], ids=["line", "plane"])
@pytest.mark.parametrize(
    "bw_method", [None, "silverman", 0.5, lambda k: 0.3], ids=["scott", "silverman", "scalar", "callable"]
)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_estimates_are_jax_s(data, bw_method, weights):
    compare.same(lambda jax: estimates(jax, data, bw_method=bw_method, weights=weights), **CLOSE)


def test_probability_of_an_interval():
    compare.same(lambda jax: jax.scipy.stats.gaussian_kde(LINE).integrate_box_1d(-1, 2), **CLOSE)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda jax: jax.scipy.stats.gaussian_kde(1.0),
        lambda jax: jax.scipy.stats.gaussian_kde(LINE * 1j),
        lambda jax: jax.scipy.stats.gaussian_kde(LINE, weights=LINE[:2]),
        lambda jax: jax.scipy.stats.gaussian_kde(LINE, weights=PLANE),
        lambda jax: jax.scipy.stats.gaussian_kde(LINE, bw_method="wide"),
        lambda jax: jax.scipy.stats.gaussian_kde(PLANE).integrate_box_1d(0, 1),
        lambda jax: jax.scipy.stats.gaussian_kde(PLANE)(np.ones((3, 2))),
        lambda jax: jax.scipy.stats.gaussian_kde(PLANE).integrate_kde(jax.scipy.stats.gaussian_kde(LINE)),
        lambda jax: jax.scipy.stats.gaussian_kde(PLANE).integrate_gaussian(np.ones(3), np.eye(3)),
        lambda jax: jax.scipy.stats.gaussian_kde(PLANE).integrate_box(0, 1),
        lambda jax: jax.scipy.stats.gaussian_kde(PLANE).set_bandwidth(),
    ],
)
def test_misuse(misuse):
    compare.same(misuse, raises=True)
