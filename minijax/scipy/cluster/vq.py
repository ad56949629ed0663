"""Vector quantization."""

from __future__ import annotations

import operator
from typing import Any

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base.faces import documented
from minijax.numpy import linalg
from minijax.primitives.promote import arrays, promote_dtypes_inexact
from minijax.run.arrays.array import ArrayLike


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Any, Any]:
    """Returns the index of the code nearest to each observation, and the distance.

    Codes and observations are rows. `check_finite` has no effect. Raises ValueError for ranks other than 1 or 2, or for
    different ranks.

    Example:
      >>> codes, distances = jax.scipy.cluster.vq.vq(jnp.array([[0.0], [9.0]]), jnp.array([[1.0], [8.0]]))
      >>> codes
      Array([0, 1], dtype=int32)
    """
    obs, code_book = (jnp.asarray(x) for x in promote_dtypes_inexact(*arrays("scipy.cluster.vq.vq", obs, code_book)))
    if obs.ndim != code_book.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if obs.ndim == 1:
        obs, code_book = obs[..., None], code_book[..., None]
    if obs.ndim != 2:
        raise ValueError("ndim different than 1 or 2 are not supported")
    distances = linalg.norm(obs[:, None, :] - code_book[None], axis=-1)
    nearest = jnp.argmin(distances, axis=-1)
    return nearest, vmap(operator.getitem)(distances, nearest)


__all__, __dir__ = documented(__name__, "vq")
