"""The arguments of functions by position, name and leaf, for libraries that wrap functions as `jit` does."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax.api import jit
from minijax.api.shapes import abstract
from minijax.base import tree
from minijax.base.linear_util import Store, WrappedFun
from minijax.interop.transformations import transformation2, transformation_with_aux2
from minijax.ir.body import argument_names, signature_of, source_of
from minijax.ir.jaxpr import DebugInfo


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Returns the source of a function, and the names of the leaves of its non-static arguments."""
    fixed = {n % len(args) for n in static_argnums if -len(args) <= n < len(args)}
    dynamic = [a for i, a in enumerate(args) if i not in fixed]
    named = {k: v for k, v in kwargs.items() if k not in static_argnames}
    given = tuple(dynamic), named
    in_tree = tree.tree_structure(given)
    names = argument_names(signature or signature_of(fun), in_tree, tuple((i, None) for i in fixed), given)
    return DebugInfo(traced_for, sourceinfo or source_of(fun), names, result_paths_thunk)


@transformation_with_aux2
def flatten_fun(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list:
    """Returns a wrapped function of the leaves of (args, kwargs), and a thunk for the tree of its result."""
    args, kwargs = in_tree.unflatten(leaves)
    results, out_tree = tree.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return results


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list:
    """Like `flatten_fun`, for the leaves of args."""
    results, out_tree = tree.flatten(f(*in_tree.unflatten(leaves)))
    store.store(out_tree)
    return results


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence, require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple]:
    """Returns the wrapped function of the arguments `dyn_argnums`, with the others fixed, and those arguments.

    Raises ValueError for an unhashable fixed argument if `require_static_args_hashable`.
    """
    nums = (dyn_argnums,) if isinstance(dyn_argnums, int) else dyn_argnums
    dynamic = {n % len(args) for n in nums}
    fixed = tuple(a for i, a in enumerate(args) if i not in dynamic)
    for a in fixed if require_static_args_hashable else ():
        try:
            hash(a)
        except TypeError:
            raise ValueError(
                "Non-hashable static arguments are used in a jit or pmap function: argnums_partial got the "
                f"static argument {a!r} of type {type(a)}."
            ) from None
    dynamic_args = tuple(a for i, a in enumerate(args) if i in dynamic)
    return _with_fixed(f, tuple(sorted(dynamic)), fixed), dynamic_args


@transformation2
def _with_fixed(f: Callable, dynamic: tuple[int, ...], fixed: tuple, *dynamic_args: Any, **kwargs: Any) -> Any:
    rest, args = iter(fixed), dict(zip(dynamic, dynamic_args, strict=True))
    count = len(dynamic) + len(fixed)
    return f(*[args[i] if i in args else next(rest) for i in range(count)], **kwargs)


def donation_vector(
    donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Returns for each leaf of (args, kwargs), or without `kws` of args, whether it is donated."""
    nums, names = set(donate_argnums), set(donate_argnames)
    args, kwargs = in_tree.children() if kws else (in_tree, None)
    owners = [(i in nums, child) for i, child in enumerate(args.children())]
    if kws:
        owners += [(k in names, c) for k, c in zip(kwargs.node_data()[1], kwargs.children(), strict=True)]
    return tuple(donated for donated, child in owners for _ in range(child.num_leaves))


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]) -> tuple[int, ...]:
    """Returns the donated positions after removal of the static arguments. Raises ValueError for one that is both."""
    donated, static = sorted(set(donate_argnums)), sorted(set(static_argnums))
    if set(donated) & set(static):
        raise ValueError(f"`static_argnums` {static} and `donate_argnums` {donated} cannot intersect.")
    return tuple(n - sum(s < n for s in static) for n in donated)


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list[Any]:
    """Returns for each leaf of the tree the entry of the tree prefix `axis_tree`, in which None is a leaf.

    Raises ValueError, with `name`, if it is not a prefix.
    """
    try:
        return tree.flatten_axes(name, treedef, axis_tree)
    except ValueError as error:
        hint = "\nEntries that are not a single value should be wrapped in a tuple of the arguments."
        raise ValueError(f"{error}{hint if tupled_args else ''}") from None


def shaped_abstractify(x: Any) -> Any:
    """Returns the type of a value, or of an object with a shape and a dtype."""
    return abstract(x)


def safe_map(f: Callable, *args: Iterable) -> list:
    """Like `map`, but returns a list. Raises ValueError if the lengths differ."""
    rows = zip(*args, strict=True)
    return [f(*row) for row in list(rows)]


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns the positions and names of the same arguments; either is inferred from the other if it is None."""
    return jit.infer_nums_and_names(sig, jit.ints("argnums", argnums), jit.strings("argnames", argnames))
