"""Densities estimated from samples by Gaussian kernels."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import random
from minijax.base import tree
from minijax.lax import linalg as lax_linalg
from minijax.numpy import linalg
from minijax.numpy.custom_rules import logsumexp
from minijax.primitives import elementwise as lax
from minijax.primitives.promote import check_arraylike, promote_dtypes_inexact
from minijax.scipy.special.errors import ndtr

_PARTS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@tree.register_pytree_node_class
@dataclasses.dataclass(frozen=True, init=False)
class gaussian_kde:  # noqa: N801
    """The sum of normal densities around the points of `dataset`, the columns of a matrix, with `weights`.

    `bw_method` is a factor of the kernels' width, a function from the estimate to it, "scott" or "silverman".
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: Any, bw_method: str | Callable | Any = None, weights: Any = None):
        check_arraylike("gaussian_kde", dataset)
        dataset = jnp.atleast_2d(dataset)
        if jnp.issubdtype(dataset.dtype, np.complexfloating):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if not dataset.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        (dataset,) = promote_dtypes_inexact(dataset)
        d, n = dataset.shape
        if weights is None:
            weights = jnp.full(n, 1 / n, dtype=dataset.dtype)
        else:
            check_arraylike("gaussian_kde", weights)
            (weights,) = promote_dtypes_inexact(jnp.atleast_1d(weights))
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if len(weights) != n:
                raise ValueError("`weights` input should be of length n")
            weights = weights / jnp.sum(weights)
            dataset, weights = promote_dtypes_inexact(dataset, weights)
        parts = vars(self)
        parts.update(neff=1 / jnp.sum(jnp.square(weights)), dataset=dataset, weights=weights)
        covariance = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        parts["covariance"] = covariance * self._factor(bw_method) ** 2
        parts["inv_cov"] = linalg.inv(covariance) / self._factor(bw_method) ** 2

    def _factor(self, method: Any) -> Any:
        if method is None or isinstance(method, str) and method == "scott":
            return jnp.power(self.neff, -1.0 / (self.d + 4))
        if isinstance(method, str) and method == "silverman":
            return jnp.power(self.neff * (self.d + 2) / 4.0, -1.0 / (self.d + 4))
        if jnp.isscalar(method) and not isinstance(method, str):
            return method
        if callable(method):
            return method(self)
        raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")

    @property
    def d(self) -> int:
        """The dimension of the points."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def tree_flatten(self) -> tuple[tuple, None]:
        return tuple(getattr(self, name) for name in _PARTS), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: tuple) -> Any:
        estimate = cls.__new__(cls)
        vars(estimate).update(zip(_PARTS, children, strict=True))
        return estimate

    def evaluate(self, points: Any) -> Any:
        """The density at points, the columns of a matrix."""
        check_arraylike("evaluate", points)
        return jnp.sum(self.weights * jnp.exp(self._log_kernels(points)), axis=1)

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points."""
        check_arraylike("logpdf", x)
        return logsumexp(jnp.log(self.weights) + self._log_kernels(x), axis=1)

    def _log_kernels(self, points: Any) -> Any:
        """The logarithms of the normal densities: a row for each of `points`, a column for each data point."""
        whitening = lax_linalg.cholesky(self.inv_cov)
        data, points = jnp.dot(self.dataset.T, whitening), jnp.dot(self._reshape_points(points).T, whitening)
        log_norm = jnp.sum(jnp.log(jnp.diag(whitening))) - 0.5 * self.d * math.log(2 * np.pi)
        return log_norm - 0.5 * jnp.sum(jnp.square(data - points[:, None]), axis=2)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times a normal density."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return _overlap(self.dataset, self.weights, mean[:, None], jnp.ones(1, mean.dtype), self.covariance + cov)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability between two bounds, in one dimension."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if np.ndim(low) or np.ndim(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        sigma = jnp.squeeze(jnp.sqrt(self.covariance))
        low, high = (jnp.squeeze((limit - self.dataset) / sigma) for limit in (low, high))
        return jnp.sum(self.weights * (ndtr(high) - ndtr(low)))

    def integrate_kde(self, other: Any) -> Any:
        """The integral of the product of two estimates."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        cov = self.covariance + other.covariance
        return _overlap(self.dataset, self.weights, other.dataset, other.weights, cov)

    def resample(self, key: Any, shape: tuple = ()) -> Any:
        """Points drawn from the density: an array of the dimension and `shape`."""
        choice_key, noise_key = random.split(key)
        which = random.choice(choice_key, self.n, shape=shape, p=self.weights)
        normal = random.normal(noise_key, (*shape, self.d), self.dataset.dtype)
        noise = jnp.einsum("...ij,...j->...i", lax_linalg.cholesky(self.covariance), normal)
        return self.dataset[:, which] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Raises NotImplementedError: only `integrate_box_1d` is available."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Raises NotImplementedError: the bandwidth is chosen when the estimate is made."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")

    def _reshape_points(self, points: Any) -> Any:
        (points,) = promote_dtypes_inexact(jnp.atleast_2d(points))
        d, m = points.shape
        if d == self.d:
            return points
        if d == 1 and m == self.d:
            return jnp.reshape(points, (self.d, 1))
        raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")


def _overlap(points: Any, weights: Any, others: Any, other_weights: Any, cov: Any) -> Any:
    factor = lax_linalg.cholesky(cov)
    d = points.shape[0]
    apart = (points[:, :, None] - others[:, None, :]).reshape(d, -1)
    y = lax_linalg.triangular_solve(factor, apart, left_side=True, lower=True)
    energies = jnp.sum(jnp.square(y), axis=0) / 2
    norm = (2 * np.pi) ** (d / 2) * jnp.prod(jnp.diag(factor))
    products = (weights[:, None] * other_weights[None]).reshape(-1)
    return jnp.sum(lax.exp(-energies) * products) / norm
