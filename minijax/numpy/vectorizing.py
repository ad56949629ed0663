"""`vectorize`: functions of core arrays, broadcast over the leading axes."""

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from minijax.api.vmap import vmap
from minijax.base import tree
from minijax.base.source import boundary
from minijax.ir.body import check_callable
from minijax.ir.types import typeof
from minijax.numpy.creation import asarray
from minijax.primitives.moving import expand_dims
from minijax.primitives.promote import check_ranks
from minijax.primitives.structural import broadcast_shapes, squeeze

_CORE = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(f"{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*")


def parse_signature(signature: str) -> list[list[tuple[str, ...]]]:
    """The names of the core axes of each argument, and of each result."""
    text = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.fullmatch(text):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    return [[tuple(re.findall(r"\w+", c)) for c in re.findall(_CORE, s)] for s in text.split("->")]


def check_core(shape: tuple, names: tuple[str, ...], sizes: dict[str, int], where: str) -> None:
    """Adds the sizes of core axes to `sizes`. Raises ValueError if a name has another size there."""
    for name, size in zip(names, shape, strict=True):
        if sizes.setdefault(name, size) != size:
            mismatch = f"{name!r}: {size} vs {sizes[name]}"
            advice = "Slice the arguments to one size, or name the dimensions differently in the signature."
            raise ValueError(f"inconsistent size for core dimension {mismatch} {where}. {advice}")


def checked_results(f: Callable, signatures: list[tuple[str, ...]], sizes: dict[str, int], where: str) -> Callable:
    """`f`, with the number and the core shapes of its results checked against the signature."""

    def checked(*args):
        out = f(*args)
        if len(signatures) > 1 and not isinstance(out, tuple):
            raise TypeError(f"output must be a tuple when multiple outputs are expected, got: {out} {where}")
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(signatures):
            expected = f"expected {len(signatures)}, got {len(outs)}"
            raise TypeError(f"wrong number of output arguments: {expected} {where}")
        for names, shape in zip(signatures, (typeof(x).shape for x in outs), strict=True):
            if len(shape) != len(names):
                raise ValueError(f"output shape {shape} does not match core dimensions {names} {where}")
            check_core(shape, names, sizes, where)
        return out

    return checked


def _without_excluded(f: Callable, excluded: frozenset, args: Sequence, kwargs: dict) -> tuple[Callable, list]:
    fixed = {i: x for i, x in enumerate(args) if i in excluded}
    places = [i for i in range(len(args)) if i not in fixed]

    def rest(*others):
        by_place = fixed | dict(zip(places, others, strict=True))
        return f(*(by_place[i] for i in range(len(args))), **kwargs)

    return (rest if fixed or kwargs else f), [args[i] for i in places]


def mapped(f: Callable, args: list, leads: list[tuple[int, ...]], name: str | None = None) -> Any:
    """Maps `f` of core arrays over the shape that the leading shapes broadcast to.

    With a `name`, implicit rank promotion warns or raises, as `jax_numpy_rank_promotion` specifies.
    """
    shape = broadcast_shapes(*leads) if leads else ()
    if name is not None:
        check_ranks(name, leads)
    padded = [(1,) * (len(shape) - len(lead)) + lead for lead in leads]
    for i in reversed(range(len(shape))):
        axes = tuple(None if lead[i] == 1 else 0 for lead in padded)
        f = f if set(axes) == {None} else vmap(f, axes)
    units = [tuple(i for i, n in enumerate(lead) if n == 1) for lead in leads]
    out = f(*(squeeze(x, unit) if unit else x for x, unit in zip(args, units, strict=True)))
    new = tuple(i for i, n in enumerate(shape) if n == 1)
    return tree.tree_map(lambda x: expand_dims(x, new), out) if new else out


def vectorize(
    pyfunc: Callable, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable:
    """Maps a function over the elements, or over the slices, of its arguments.

    Leading axes of the arguments broadcast, and the function is mapped over them by `vmap`; hence it must be traceable.
    `signature`, such as "(n),(n)->()", names the axes that the function itself gets. `excluded` are positions or names
    of arguments that are not mapped. Unlike in NumPy, it does not take `otypes`, `cache` and `doc`.

    Example:
      >>> f = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
      >>> f(jnp.ones((4, 3)), jnp.ones(3))
      Array([3., 3., 3., 3.], dtype=float32)
    """
    _check_vectorizable(pyfunc, excluded)
    where = f"on vectorized function with {excluded=} and {signature=}"
    excluded = frozenset(excluded)

    @functools.wraps(pyfunc)
    def vectorized(*args, **kwargs):
        fun, args, kwargs = _with_mapped_keywords(pyfunc, excluded, args, kwargs)
        absent = {i for i, x in enumerate(args) if x is None and i not in excluded}
        f, rest = _without_excluded(fun, excluded | absent, args, kwargs)
        values = [asarray(x) for x in rest]
        shapes = [typeof(x).shape for x in values]
        name = f"jnp.vectorize with {signature=}, where operands with shapes {shapes} require rank promotion,"
        if signature is None:
            return mapped(f, values, shapes, name)
        inner, outer = parse_signature(signature)
        places = [i for i in range(len(args)) if i not in excluded]
        if len(places) != len(inner):
            expected = f"expected {len(inner)}, got {len(places)}"
            raise TypeError(f"wrong number of positional arguments: {expected} {where}")
        cores = _cores_of_present(dict(zip(places, inner, strict=True)), absent, signature)
        leads, sizes = _split_shapes(shapes, cores, where)
        check_ranks(name, shapes, list(map(len, cores)))
        return mapped(checked_results(f, outer, sizes, where), values, leads)

    return vectorized


def _with_mapped_keywords(
    fun: Callable, excluded: frozenset, args: tuple, kwargs: dict
) -> tuple[Callable, tuple, dict]:
    """The function and its arguments, where keyword arguments that are not excluded are the last positional ones."""
    names, count = [name for name in kwargs if name not in excluded], len(args)
    if not names:
        return fun, args, kwargs

    def by_position(*values, **fixed):
        return fun(*values[:count], **dict(zip(names, values[count:], strict=True)), **fixed)

    fixed = {name: x for name, x in kwargs.items() if name in excluded}
    return by_position, (*args, *[kwargs[name] for name in names]), fixed


def _check_vectorizable(pyfunc: Any, excluded: Collection) -> None:
    check_callable(pyfunc, "jax.numpy.vectorize")
    if not all(isinstance(e, (str, int)) for e in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but {excluded=}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"{excluded=} contains negative numbers")


def _cores_of_present(cores: dict[int, tuple[str, ...]], absent: set[int], signature: str) -> list[tuple[str, ...]]:
    """The core axes of the arguments that are not None. Raises ValueError if one that is None has core axes."""
    cored = {i for i, names in cores.items() if i in absent and names}
    if cored:
        raise ValueError(f"Cannot pass None at locations {cored} with {signature=}")
    return [names for i, names in cores.items() if i not in absent]


@boundary
def _split_shapes(shapes: list, cores: list[tuple[str, ...]], where: str) -> tuple[list[tuple], dict[str, int]]:
    """The shapes without their core axes, and the sizes of these. Raises ValueError if they do not fit."""
    leads: list[tuple] = []
    sizes: dict[str, int] = {}
    for names, shape in zip(cores, shapes, strict=True):
        if len(shape) < len(names):
            raise ValueError(
                f"input with shape {shape} does not have enough dimensions for all core dimensions {names} {where}"
            )
        split = len(shape) - len(names)
        leads.append(shape[:split])
        check_core(shape[split:], names, sizes, where)
    return leads, sizes
