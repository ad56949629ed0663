"""What messages and programs call a function, its arguments and its results; what of them is no value."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import cache, tree
from minijax.ir.refs import Ref
from minijax.ir.types import is_value


def signature_of(fun: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def function_name(fun: Callable) -> str:
    """The name that a function's programs and equations bear."""
    if isinstance(fun, functools.partial):
        return function_name(fun.func)
    return getattr(fun, "__name__", None) or "unnamed function"


def standing_for(inner: Callable, fun: Callable) -> Callable:
    """`inner`, which messages call by the name and the line of the user's `fun` that it calls."""
    inner.__signature__ = inspect.signature(inner)  # pyright: ignore[reportFunctionMemberAccess]
    return functools.update_wrapper(inner, fun, updated=())


def source_of(fun: Callable) -> str:
    """The function's name, file and line."""
    inner = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner) if callable(inner) else inner
    code = getattr(inner, "__code__", None)
    name = function_name(fun)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def check_aliases(fun: Callable, purpose: str, leaves: Sequence, names: Callable[[], Sequence[str]]) -> None:
    """Raises ValueError if a reference is among the arguments twice."""
    seen: dict[int, int] = {}
    for i, x in enumerate(leaves):
        if isinstance(x, Ref) and (first := seen.setdefault(id(getattr(x, "val", x)), i)) != i:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, but "
                f"when tracing {source_of(fun)} for {purpose} the mutable array reference of type "
                f"{x.aval} appeared at both {names()[first]} and {names()[i]}."
            )


def leaf_types(fun: Callable, leaves: Sequence, type_of: Callable, names: Callable[[], Sequence[str]]) -> tuple:
    """What `type_of` says of a function's arguments. Raises TypeError for one that is no value."""
    avals: list[Any] = []
    try:
        avals.extend(map(type_of, leaves))
    except TypeError:
        i = len(avals)
        raise TypeError(
            f"Error interpreting argument to {fun} as an abstract array: the value at path {names()[i]} is "
            f"of type {type(leaves[i])}, which is not a valid JAX type. This typically means that a "
            "jit-wrapped function was called with a non-array argument, and this argument was not marked as "
            "static using the static_argnums or static_argnames parameters of jax.jit."
        ) from None
    return tuple(avals)


def argument_names(signature: inspect.Signature | None, treedef: Any, static: tuple) -> tuple[str, ...]:
    """A name for each leaf: the parameter's, and the path inside the argument."""
    args, kwargs = treedef.children()
    fixed = {i for i, _ in static if isinstance(i, int)}
    count = len(args.children()) + len(fixed)
    named = _positional_names(signature, count)
    owners = [named[i] for i in range(count) if i not in fixed]
    children = [*args.children(), *kwargs.children()]
    owners += [str(k) for k in kwargs.node_data()[1]]
    return tuple([o + path for o, child in zip(owners, children, strict=True) for path in _leaf_paths(child)])


def _leaf_paths(treedef: Any) -> list[str]:
    """How each leaf is reached; its number where the user's class cannot be made of placeholders."""
    count = treedef.num_leaves
    if count == treedef.num_nodes:
        return [""]
    try:
        paths = tree.tree_leaves_with_path(treedef.unflatten(list(range(count))))
    except Exception:
        paths = []
    return [tree.keystr(path) for path, _ in paths] if len(paths) == count else [f"[{i}]" for i in range(count)]


def _positional_names(signature: inspect.Signature | None, count: int) -> list[str]:
    if signature is None:
        return [f"args[{i}]" for i in range(count)]
    names: list[str] = []
    for p in signature.parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{i}]" for i in range(max(0, count - len(names)))]
    return (names + [f"args[{i}]" for i in range(len(names), count)])[:count]


@cache.cache
def result_paths(out_tree: Any) -> tuple[str, ...]:
    """How the text of a program names each result."""
    return tuple(["result" + path for path in _leaf_paths(out_tree)])


def check_results(name: str, leaves: Sequence, out_tree: Any) -> None:
    """Raises TypeError for a result that is no value."""
    for i, x in enumerate(leaves):
        if isinstance(x, Ref):
            raise ValueError(
                f"function {name} traced for jit returned a mutable array reference of type {x.aval}, but "
                f"mutable array references cannot be returned: output component {result_paths(out_tree)[i]}."
            )
        if not is_value(x):
            raise TypeError(
                f"function {name} traced for jit returned a value of type {type(x)} at output component "
                f"{result_paths(out_tree)[i]}, which is not a valid JAX type"
            )
