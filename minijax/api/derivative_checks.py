"""Checks of derivatives against central differences, along random directions."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax.api.autodiff import jvp, vjp
from minijax.base import dtypes
from minijax.base.mask import Mask
from minijax.base.tree import tree_flatten, tree_map, tree_reduce, tree_unflatten

EPS = 1e-4
# Absolute and relative tolerances by the results' dtypes: differences lose at least half of the digits.
_TOLERANCES = {
    "float16": 1e-2,
    "bfloat16": 1e-1,
    "float32": 2e-3,
    "float64": 1e-5,
    "complex64": 1e-3,
    "complex128": 1e-5,
}
_ROUNDING = {
    "float16": 1e-3,
    "bfloat16": 1e-2,
    "float32": 1e-6,
    "float64": 1e-15,
    "complex64": 1e-6,
    "complex128": 1e-15,
}
Tolerance = float | Mapping[Any, float]


def check_grads(
    f: Callable,
    args: Sequence,
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float | None = None,
) -> None:
    """Checks derivatives of `f` at `args`, up to an order and in the modes, against central differences.

    `f` takes and returns pytrees of arrays. Raises AssertionError if a derivative differs by more than the
    tolerances; their defaults depend on the results' dtypes.

    Example:
        >>> jax.test_util.check_grads(jnp.sin, (1.0,), order=2)
    """
    eps = EPS if eps is None else eps
    jvp_check = partial(check_jvp, atol=atol, rtol=rtol, eps=eps)
    vjp_check = partial(check_vjp, atol=atol, rtol=rtol, eps=eps)

    def check(f, args, order, path):
        if "fwd" in modes:
            here = f"JVP of {path}" if path else "JVP"
            jvp_check(f, partial(jvp, f), args, err_msg=f"{here}: ")
            if order > 1:
                check(partial(jvp, f), (args, args), order - 1, here)
        if "rev" in modes:
            here = f"VJP of {path}" if path else "VJP"
            vjp_check(f, partial(vjp, f), args, err_msg=f"{here}: ")
            if order > 1:

                def pulled_back(*args):
                    out, pullback = vjp(f, *args)
                    return pullback(out)

                check(pulled_back, args, order - 1, here)

    leaves, treedef = tree_flatten(tuple(args))
    inexact = Mask(dtypes.issubdtype(_dtype(x), np.inexact) for x in leaves)

    def of_inexact(*xs):
        return f(*tree_unflatten(treedef, inexact.merge(inexact.unmarked(leaves), xs)))

    check(of_inexact, tuple(inexact.marked(leaves)), order, "")


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence,
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Checks that `f_jvp(primals, tangents)` returns f(*args) and its derivative, against central differences.

    Raises AssertionError that begins with `err_msg`.

    Example:
        >>> f_jvp = lambda primals, tangents: (jnp.sin(*primals), jnp.cos(*primals) * tangents[0])
        >>> jax.test_util.check_jvp(jnp.sin, f_jvp, (1.0,), atol=1e-2)
    """
    tangents = tree_map(partial(_direction, np.random.RandomState(0)), args)
    out, tangents_out = f_jvp(args, tangents)
    _require_close(out, f(*args), atol or 1e-8, rtol or 1e-5, f"{err_msg}primal of the jvp")
    differences = _differences(f, args, tangents, eps)
    _require_close(tangents_out, differences, atol, rtol, f"{err_msg}tangent of the jvp")


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence,
    atol: Tolerance | None = None,
    rtol: Tolerance | None = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Checks that `f_vjp` returns f(*args) and a vjp function, against central differences.

    Raises AssertionError that begins with `err_msg`.

    Example:
        >>> jax.test_util.check_vjp(jnp.sin, lambda x: jax.vjp(jnp.sin, x), (1.0,), atol=1e-2)
    """
    rng = np.random.RandomState(0)
    out, pullback = f_vjp(*args)
    _require_close(out, f(*args), atol or 1e-8, rtol or 1e-5, f"{err_msg}primal of the vjp")
    tangents = tree_map(partial(_direction, rng), args)
    tangents_out = _differences(f, args, tangents, eps)
    cotangents = tree_map(partial(_direction, rng), out)
    cotangents_out = tree_map(np.conj, pullback(tree_map(np.conj, cotangents)), is_leaf=_is_float0)
    here = f"{err_msg}cotangent of the vjp, projected"
    _require_close(_inner(tangents, cotangents_out), _inner(tangents_out, cotangents), atol, rtol, here)


def _is_float0(x: Any) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


def _direction(rng: np.random.RandomState, x: Any) -> Any:
    """Returns normally distributed values of the tangent type of `x`."""
    shape, dtype = np.shape(x), _dtype(x)
    if not dtypes.issubdtype(dtype, np.inexact):
        return np.zeros(shape, dtypes.float0)
    drawn = rng.randn(*shape)
    if dtypes.issubdtype(dtype, np.complexfloating):
        drawn = drawn + 1j * rng.randn(*shape)
    return np.asarray(drawn, dtype)


def _dtype(x: Any) -> np.dtype:
    return np.dtype(x.dtype) if hasattr(x, "dtype") else dtypes.scalar_dtype(type(x))


def _moved(args: Sequence, tangents: Any, by: float) -> Any:
    def one(x, t):
        return x if _is_float0(t) else np.asarray(np.asarray(x) + by * t, t.dtype)

    return tree_map(one, args, tangents)


def _differences(f: Callable, args: Sequence, tangents: Any, eps: float) -> Any:
    after, before = f(*_moved(args, tangents, eps)), f(*_moved(args, tangents, -eps))

    def one(a, b):
        a, b = np.asarray(a), np.asarray(b)
        if not dtypes.issubdtype(a.dtype, np.inexact):
            return np.zeros(a.shape, dtypes.float0)
        return np.asarray((a - b) * (0.5 / eps), a.dtype)

    return tree_map(one, after, before)


def _inner(tangents: Any, cotangents: Any) -> Any:
    def one(t, ct):
        t, ct = np.asarray(t), np.asarray(ct)
        if _is_float0(t) or _is_float0(ct):
            return np.float64(0)
        return np.asarray(np.real(np.vdot(t, ct)), dtypes.to_floating_dtype(ct.dtype))

    return tree_reduce(np.add, tree_map(one, tangents, cotangents), np.float32(0))


def check_close(
    xs: Any, ys: Any, atol: Tolerance | None = None, rtol: Tolerance | None = None, err_msg: str = ""
) -> None:
    """Checks that trees of arrays agree in shapes and, up to tolerances, in values.

    Tolerances are numbers or depend on dtypes. Raises AssertionError that contains `err_msg`.
    """
    _require_close(xs, ys, atol, rtol, err_msg, _ROUNDING)


def _tolerance(dtype: np.dtype, given: Tolerance | None, defaults: Mapping[str, float]) -> float:
    if isinstance(given, Mapping):
        given = {np.dtype(key): value for key, value in given.items()}.get(dtype)
    rest = 0.1 if dtypes.issubdtype(dtype, np.inexact) else 0.0
    return defaults.get(dtype.name, rest) if given is None else given


def _require_close(
    actual: Any,
    expected: Any,
    atol: Tolerance | None,
    rtol: Tolerance | None,
    what: str,
    defaults: Mapping[str, float] = _TOLERANCES,
) -> None:
    def one(x, y):
        x, y = np.asarray(x), np.asarray(y)
        if _is_float0(x) or _is_float0(y):
            return
        if x.shape != y.shape:
            raise AssertionError(f"{what}: shapes {x.shape} and {y.shape} differ")
        kinds = [np.dtype(dtypes.canonicalize_dtype(a.dtype)) for a in (x, y)]
        # Sums of many rounded values differ by more, so tolerances grow with the number of elements.
        absolute, relative = (
            max(_tolerance(kind, given, defaults) for kind in kinds) * max(x.size, 1) for given in (atol, rtol)
        )
        wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(y) else np.float64
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), atol=absolute, rtol=relative, err_msg=what)

    tree_map(one, actual, expected)
