"""The matrix: a program under each transform is a program again, which `compare` holds against jax.

`transformed(case, "vmap_of_grad")` is a cell; `matrix(cases)` is a pytest parameter for every case under every
transform. A `Transform` maps a function to a function and arguments to arguments: `vmap` stacks the arguments, `jvp` adds
tangents; `then` composes two.
"""

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from compare import FLOAT0, LISTED, Case, run_on

_Function = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Transform:
    """Maps a function, given arguments of the types of `args`, and the arguments."""

    function: Callable[[ModuleType, _Function, tuple], _Function]
    arguments: Callable[[tuple], tuple] = lambda args: args


def then(outer: Transform, inner: Transform) -> Transform:
    """`outer` of `inner`."""

    def function(jax: ModuleType, f: _Function, args: tuple) -> _Function:
        return outer.function(jax, inner.function(jax, f, args), inner.arguments(args))

    return Transform(function, lambda args: outer.arguments(inner.arguments(args)))


def is_inexact(leaf: Any) -> bool:
    name = str(leaf.dtype) if hasattr(leaf, "dtype") else type(leaf).__name__
    return name.startswith(("float", "bfloat", "complex"))


def _tree_util() -> ModuleType:
    # Imported late: tests without the oracle are collected without jax too.
    return importlib.import_module("minijax.tree_util")


def _map(change: Callable, args: Any) -> Any:
    return _tree_util().tree_map(change, args)


def inexact_argnums(args: tuple) -> tuple[int, ...]:
    """The arguments to differentiate with respect to; the first one, jax's default, if none is inexact."""
    inexact = [i for i, arg in enumerate(args) if all(map(is_inexact, _tree_util().tree_leaves(arg)))]
    return tuple(inexact) or (0,)


def _loss(jax: ModuleType, f: _Function) -> _Function:
    """The sum of the inexact results of `f`; without inexact results the first one, which the derivative rejects."""

    def loss(*args: Any) -> Any:
        results = jax.tree_util.tree_leaves(f(*args))
        reals = [jax.numpy.real(r) if jax.numpy.iscomplexobj(r) else r for r in results if is_inexact(r)]
        return functools.reduce(lambda a, b: a + b, map(jax.numpy.sum, reals)) if reals else results[0]

    return loss


def _by_argnums(f: _Function, args: tuple, argnums: tuple[int, ...]) -> tuple[_Function, list]:
    """`f` as a function of the arguments at `argnums`, and those arguments."""

    def partial(*chosen: Any) -> Any:
        given = dict(zip(argnums, chosen, strict=True))
        return f(*(given.get(i, arg) for i, arg in enumerate(args)))

    return partial, [args[i] for i in argnums]


def _with_tangents(args: tuple) -> tuple:
    def tangent(x: Any) -> Any:
        if not is_inexact(x):
            return np.zeros(np.shape(x), FLOAT0)
        return x * 0.5 + 0.25 if isinstance(x, float | complex) else (x * 0.5 + 0.25).astype(x.dtype)

    return args, [_map(tangent, args[i]) for i in inexact_argnums(args)]


def _batched(args: tuple) -> tuple:
    """Three copies of each argument, each with the values rotated."""
    narrow = {float: np.float32, int: np.int32, complex: np.complex64}
    return _map(lambda x: np.stack([np.roll(np.asarray(x, narrow.get(type(x))), i) for i in range(3)]), args)


def _derivative(order: str) -> Transform:
    return Transform(lambda jax, f, args: getattr(jax, order)(_loss(jax, f), argnums=inexact_argnums(args)))


def _jvp(jax: ModuleType, f: _Function, args: tuple) -> _Function:
    def pushed(args: tuple, tangents: list) -> Any:
        g, chosen = _by_argnums(f, args, argnums)
        return jax.jvp(g, tuple(chosen), tuple(tangents))

    argnums = inexact_argnums(args)
    return pushed


def _linearize(jax: ModuleType, f: _Function, args: tuple) -> _Function:
    def linearized(args: tuple, tangents: list) -> Any:
        g, chosen = _by_argnums(f, args, argnums)
        results, push = jax.linearize(g, *chosen)
        return results, push(*tangents)

    argnums = inexact_argnums(args)
    return linearized


def _vjp(jax: ModuleType, f: _Function, args: tuple) -> _Function:
    def cotangent(r: Any) -> Any:
        return jax.numpy.ones_like(r) if is_inexact(r) else np.zeros(np.shape(r), FLOAT0)

    def pulled(*args: Any) -> Any:
        g, chosen = _by_argnums(f, args, argnums)
        results, pull = jax.vjp(g, *chosen)
        return results, pull(jax.tree_util.tree_map(cotangent, results))

    argnums = inexact_argnums(args)
    return pulled


def _jacobians(jax: ModuleType, f: _Function, args: tuple) -> _Function:
    argnums = inexact_argnums(args)
    return jax.jacfwd(jax.jacrev(f, argnums=argnums), argnums=argnums)


def _transforms() -> dict[str, Transform]:
    jit = Transform(lambda jax, f, args: jax.jit(f))
    vmap = Transform(lambda jax, f, args: jax.vmap(f), _batched)
    grad = _derivative("grad")
    jvp = Transform(_jvp, _with_tangents)
    checkpoint = Transform(lambda jax, f, args: jax.checkpoint(f))
    return {
        "plain": Transform(lambda jax, f, args: f),
        "jit": jit,
        "grad": grad,
        "value_and_grad": _derivative("value_and_grad"),
        "jvp": jvp,
        "vjp": Transform(_vjp),
        "linearize": Transform(_linearize, _with_tangents),
        "vmap": vmap,
        "vmap_of_grad": then(vmap, grad),
        "vmap_of_vmap": then(vmap, vmap),
        "grad_of_vmap": then(grad, vmap),
        "jvp_of_grad": then(jvp, grad),
        "jit_of_grad": then(jit, grad),
        "jit_of_vmap_of_jvp": then(jit, then(vmap, jvp)),
        "hessian": _derivative("hessian"),
        "jacfwd_of_jacrev": Transform(_jacobians),
        "checkpoint": checkpoint,
        "grad_of_checkpoint": then(grad, checkpoint),
    }


TRANSFORMS = _transforms()
MATRIX = tuple(TRANSFORMS)


def _vmap(places: Callable[[tuple], tuple]) -> Transform:
    """`vmap` with the axes that `places` gives for arguments like `args`."""

    def arguments(args: tuple) -> tuple:
        def along(x: Any, axis: int | None) -> Any:
            return x if axis is None else _map(lambda a: np.moveaxis(a, 0, axis), _batched(x))

        return tuple(map(along, args, places(args)))

    return Transform(lambda jax, f, args: jax.vmap(f, places(args)), arguments)


def vmap_along(axis: int) -> Transform:
    """`vmap` of all arguments along an axis, or along their last if they have fewer."""
    return _vmap(lambda args: tuple(min(axis, np.ndim(x)) for x in args))


def vmap_of_one(number: int, axis: int) -> Transform:
    """`vmap` of one argument along an axis, or along its last if it has fewer."""
    return _vmap(lambda args: tuple(min(axis, np.ndim(x)) if i == number else None for i, x in enumerate(args)))


def _more() -> dict[str, Transform]:
    of = {f"vmap_of_{name}": then(TRANSFORMS["vmap"], TRANSFORMS[name]) for name in ("jvp", "vjp")}
    all_along = {f"vmap_along_{axis}": vmap_along(axis) for axis in (1, 2)}
    one = {f"vmap_{number}_along_{axis}": vmap_of_one(number, axis) for number in range(5) for axis in range(5)}
    return of | all_along | one


TRANSFORMS |= _more()


def matrix(cases: Sequence[Case], transforms: Sequence[str] = MATRIX) -> list:
    """A pytest parameter for every case under every transform; the test passes it to `check`."""
    cells = [transformed(case, name) for case in cases for name in transforms]
    return [pytest.param(cell, id=cell.name) for cell in cells]


def transformed(case: Case, name: str) -> Case:
    """The case under a transform. If raising.txt lists it, both sides must raise the same error."""
    transform = TRANSFORMS[name]

    def program(jax: ModuleType) -> _Function:
        return transform.function(jax, run_on(jax, case.program), case.args)

    return dataclasses.replace(
        case,
        name=f"{case.name}-{name}",
        program=program,
        args=transform.arguments(case.args),
        raises=case.raises or (name != "plain" and LISTED),
    )
