"""Checks that a loop body returns a carry of the type that it takes, and that branches return equal types."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from minijax.base import dtypes, tree
from minijax.ir.body import Body, source_of, trace_body
from minijax.ir.hitypes import full_type
from minijax.ir.types import AbstractValue, varying_axes
from minijax.primitives.convert import convert

# ---- carries ----------------------------------------------------------------------------------------


def trace_loop_body(
    fun: Callable,
    carry: Sequence,
    slices: Sequence[AbstractValue],
    treedef: Any,
    purpose: str,
    init_tree: Any,
    carry_tree: Callable[[Body], Any],
) -> tuple[Body, Sequence]:
    """Traces the body of a loop over (carry, slices). Returns it and the carry, weak types promoted to the results'.

    `carry_tree(body)` is the structure of the new carry. Raises TypeError if its structure or types differ from those
    of the carry that the body takes.
    """
    body = trace_body(fun, (*map(full_type, carry), *slices), treedef, purpose)
    if carry_tree(body).num_leaves == len(carry):
        promoted = _promoted(carry, body)
        if any(a is not b for a, b in zip(promoted, carry, strict=True)):
            carry = promoted
            body = trace_body(fun, (*map(full_type, carry), *slices), treedef, purpose)
    _check_carry(purpose, body, carry_tree(body), init_tree)
    return body, carry


def _promoted(carry: Sequence, body: Body) -> list:
    """The carry, its weakly typed values promoted to the dtypes of the body's results."""
    promoted = []
    types = zip(cast("Sequence[Any]", body.in_avals), cast("Sequence[Any]", body.closed.out_avals), strict=False)
    for x, (aval, out) in zip(carry, types, strict=False):
        if aval.weak_type and not out.is_high and aval.dtype != out.dtype:
            dtype = dtypes.promote((aval.dtype, True), (out.dtype, out.weak_type))[0]
            x = x if dtype == aval.dtype else convert(x, dtype)
        promoted.append(x)
    return promoted


def _check_carry(name: str, body: Body, carry_tree: Any, init_tree: Any) -> None:
    start = f"{name} body function carry input and carry output must have"
    names = body.names
    root = names[0].partition("[")[0] if init_tree.num_leaves else "carry"
    if carry_tree != init_tree:
        reasons = [
            f"the input carry {'component ' * bool(path)}{root}{tree.keystr(path)} is a {one} but the corresponding "
            f"component of the carry output is a {two}, so {why}"
            for path, one, two, why in _tree_errors(init_tree, body.in_avals, carry_tree, body.closed.out_avals)
        ] or [f"the input tree is {init_tree}, the output tree is {carry_tree}"]
        raise TypeError(
            f"{start} the same pytree structure, but they differ:\n\n{_as_list(reasons)}\n\nRevise the function "
            "so that the carry output has the same pytree structure as the carry input."
        )
    pairs = zip(names, body.in_avals, body.closed.out_avals[: init_tree.num_leaves], strict=False)
    reasons = [
        f"the input carry {'component ' * (path != root)}{path} has type {aval.str_short()} but the "
        f"corresponding output carry component has type {out.str_short()}, so "
        f"{_difference_text(aval, out)}"
        for path, aval, out in pairs
        if not aval.is_compatible(out)
    ]
    if reasons:
        pairs = zip(names, body.in_avals, body.closed.out_avals[: init_tree.num_leaves], strict=False)
        advice = _advice([(a, out, f"the initial carry value corresponding to {path}") for path, a, out in pairs])
        raise TypeError(
            f"{start} equal types, but they differ:\n\n{_as_list(reasons)}\n\n{advice}Revise the function so that all "
            "output types match the corresponding input types."
        )


def _difference_text(aval: Any, out: Any) -> str:
    return ", and ".join(_differences(aval, out)) or "the types do not match"


def _advice(pairs: Sequence[tuple[AbstractValue, AbstractValue, str]]) -> str:
    """Advises a cast for each (type, other type, name of the value) that varies over fewer mesh axes than the other."""
    missing = [(tuple(sorted(map(str, varying_axes(b) - varying_axes(a)))), what) for a, b, what in pairs]
    casts = [f"applying `jax.lax.pcast(..., {axes}, to='varying')` to {what}" for axes, what in missing if axes]
    if not casts:
        return ""
    how = f" {casts[0]}." if len(casts) == 1 else f":\n{_as_list(casts)}"
    return f"This might be fixed by{how}\n\n"


# ---- branches ---------------------------------------------------------------------------------------


def check_branches(purpose: str, functions: dict[str, Callable], bodies: Sequence[Body]) -> None:
    """Raises TypeError if a branch returns another structure or other types than the first; `functions` by name."""
    one, *others = functions
    for two, body in zip(others, bodies[1:], strict=True):
        locations = "".join(f"\n{f} is {source_of(functions[f])}" for f in (one, two))
        _check_branch(purpose, locations, one, bodies[0], two, body)


def _check_branch(purpose: str, locations: str, one: str, first: Body, two: str, second: Body) -> None:
    if first.out_tree != second.out_tree:
        reasons = [
            f"{one} output{_at(path)} is a {a} but {two} output{_at(path)} is a {b}, so {why}"
            for path, a, b, why in _tree_errors(
                first.out_tree, first.closed.out_avals, second.out_tree, second.closed.out_avals
            )
        ] or [f"{one} output has structure {first.out_tree}, {two} output has structure {second.out_tree}"]
        raise TypeError(
            f"{purpose} branch outputs must have the same pytree structure, but they differ:\n{locations}\n\n"
            f"{_as_list(reasons, False)}\n\nRevise {one} and/or {two} so that they have the same pytree "
            f"structure."
        )
    pairs = list(zip(first.closed.out_avals, second.closed.out_avals, strict=True))
    if not any(_differences(a, b) for a, b in pairs):
        return
    try:
        paths = [path for path, _ in tree.tree_leaves_with_path(first.out_tree.unflatten(first.closed.out_avals))]
    except Exception:  # of a user's class that takes no types
        paths = [()] * len(pairs)
    reasons = [
        f"the output of {one}{_at(path)} has type {a.str_short()} but the corresponding output of {two} has "
        f"type {b.str_short()}, so {' and '.join(_differences(a, b))}"
        for path, (a, b) in zip(paths, pairs, strict=True)
        if _differences(a, b)
    ]
    rows = [(path, *pair) for path, pair in zip(paths, pairs, strict=True)]
    firsts = [(a, b, f"the output of {one}{_at(path)}") for path, a, b in rows]
    advice = _advice([*firsts, *((b, a, f"the output of {two}{_at(path)}") for path, a, b in rows)])
    raise TypeError(
        f"{purpose} branches must have equal output types but they differ.\n{locations}\n\n{_as_list(reasons)}\n\n"
        f"{advice}Revise {one} and/or {two} so that all output types match."
    )


def _tree_errors(one: Any, avals: Sequence, two: Any, other_avals: Sequence) -> list[tuple]:
    """The differences of two structures, with the keys of users' classes if their constructors take types."""
    try:
        trees = [t.unflatten(types[: t.num_leaves]) for t, types in ((one, avals), (two, other_avals))]
    except Exception:
        return list(tree.equality_errors_pytreedef(one, two))
    return list(tree.equality_errors(*trees))


def _at(path: tuple) -> str:
    return f" at path {tree.keystr(path)}" if path else ""


def _differences(a: Any, b: Any) -> list[str]:
    """The differences between two types, apart from weak types."""
    if isinstance(a, AbstractValue) and isinstance(b, AbstractValue):
        if a.is_compatible(b):
            return []
        a, b = a.normalize(), b.normalize()
    return [
        f"the {field.removeprefix('own_').replace('_', ' ')}s do not match"
        for field in ("dtype", "shape", "memory_space", "own_sharding", "manual_axis_type")
        if getattr(a, field, None) != getattr(b, field, None)
    ]


def _as_list(reasons: Sequence[str], capital: bool = True) -> str:
    """Formats one reason as a sentence, several as a list."""
    if len(reasons) == 1:
        return f"{reasons[0][0].upper() if capital else reasons[0][0]}{reasons[0][1:]}."
    return ";\n".join(f"  * {reason}" for reason in reasons) + "."
