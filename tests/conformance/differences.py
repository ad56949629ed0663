"""Derivatives against differences of values, in double precision."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from transform_matrix import inexact_argnums, is_inexact

STEP = 2.0**-17


def same_as_differences(jax: ModuleType, f: Callable, args: tuple, rtol: float = 1e-6) -> None:
    """Requires that derivatives along a random direction, forward and reverse, are differences of values."""
    argnums = inexact_argnums(args)
    random = np.random.RandomState(1)
    point = [args[i] for i in argnums]
    tangents = [_direction(random, x) for x in point]

    def g(*chosen: Any) -> list:
        given = dict(zip(argnums, chosen, strict=True))
        results = jax.tree_util.tree_leaves(f(*(given.get(i, arg) for i, arg in enumerate(args))))
        return [r for r in results if is_inexact(r)]

    values = jax.jit(g)
    here, pushed = jax.jvp(g, point, tangents)
    ahead, behind = (values(*(x + s * t for x, t in zip(point, tangents, strict=True))) for s in (STEP, -STEP))
    slopes = [(np.asarray(a) - np.asarray(b)) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
    for slope, tangent in zip(slopes, pushed, strict=True):
        np.testing.assert_allclose(np.asarray(tangent), slope, rtol, rtol, err_msg="forward")
    cts = [_direction(random, np.asarray(r)) for r in here]
    pulled = jax.vjp(g, *point)[1](cts)
    np.testing.assert_allclose(_inner(pulled, tangents), _inner(cts, slopes), rtol, rtol, err_msg="reverse")


def _direction(random: np.random.RandomState, x: Any) -> Any:
    t = random.normal(size=np.shape(x))
    return np.asarray(t + 1j * random.normal(size=np.shape(x)) if np.asarray(x).dtype.kind == "c" else t, x.dtype)


def _inner(xs: Any, ys: Any) -> float:
    """Cotangents are linear functions of tangents; of complex ones the real part counts."""
    products = (np.sum(np.asarray(x) * np.asarray(y)).real for x, y in zip(xs, ys, strict=True))
    return functools.reduce(lambda a, b: a + b, products, 0.0)
