"""The steps of `jax.numpy.vectorize`, for libraries that combine them with their own."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from minijax.numpy.vectorizing import check_core, checked_results, parse_signature

Names = Sequence[tuple[str, ...]]


def signature_of(signature: str) -> tuple[Names, Names]:
    """Parses a gufunc signature into the core dimensions of each argument and each result.

    Raises ValueError if it is not one.
    """
    arguments, results = parse_signature(signature)
    return arguments, results


def sizes_of(args: Sequence[Any], core: Names, where: str = "") -> tuple[tuple[int, ...], dict[str, int]]:
    """Returns the broadcast shape of the other dimensions, and the sizes of the core dimensions.

    Raises ValueError if the shapes disagree or have too few dimensions, and TypeError for a wrong number of arguments.
    """
    if len(args) != len(core):
        raise TypeError(f"wrong number of positional arguments: expected {len(core)}, got {len(args)} {where}")
    sizes: dict[str, int] = {}
    shapes = []
    for arg, names in zip(args, core, strict=True):
        outer = arg.ndim - len(names)
        if outer < 0:
            raise ValueError(f"input with shape {arg.shape} does not have enough dimensions for {names} {where}")
        check_core(arg.shape[outer:], names, sizes, where)
        shapes.append(arg.shape[:outer])
    return np.broadcast_shapes(*shapes), sizes


def checked(func: Callable, sizes: dict[str, int], core: Names, where: str = "") -> Callable:
    """Returns the function with its results checked against the core dimensions and their sizes."""
    return checked_results(func, list(core), dict(sizes), where)


def without_excluded(
    func: Callable, excluded: Collection[int | str], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable, Sequence[Any], dict[str, Any]]:
    """Returns the function of the arguments that are not excluded, and these arguments."""
    if not excluded:
        return func, args, kwargs
    fixed = {i: x for i, x in enumerate(args) if i in excluded}
    named = {name: x for name, x in kwargs.items() if name in excluded}

    def rest(*others: Any, **options: Any) -> Any:
        left = iter(others)
        return func(*(fixed[i] if i in fixed else next(left) for i in range(len(args))), **options, **named)

    return (
        rest,
        [x for i, x in enumerate(args) if i not in fixed],
        {name: x for name, x in kwargs.items() if name not in named},
    )
