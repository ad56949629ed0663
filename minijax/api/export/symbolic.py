"""Descriptions of arguments whose shapes are symbolic."""

from collections.abc import Sequence
from typing import Any

from minijax.api.shapes import ShapeDtypeStruct, abstract
from minijax.base import tree
from minijax.base.symbolic.dimension import GUIDE, is_symbolic_dim
from minijax.base.symbolic.scope import SymbolicScope as SymbolicScope, symbolic_shape as symbolic_shape
from minijax.primitives import dimension_value  # noqa: F401  makes symbolic dimensions values of programs


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Returns `args` with each leaf replaced by a `ShapeDtypeStruct` of the shape that `shapes_specs` describes.

    `shapes_specs` is a tree prefix of `args` with texts as in `symbolic_shape`; None is the leaf's own shape.
    Variables are of `scope`, or of a new one with `constraints`.
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    leaves, treedef = tree.flatten(args)
    avals = [abstract(x) for x in leaves]
    for error in tree.prefix_errors(shapes_specs, args, _is_none):
        raise error("export.symbolic_args_specs shapes_specs")
    specs = tree.broadcast_prefix(shapes_specs, args, _is_none)
    shapes = [symbolic_shape(spec, like=aval.shape, scope=scope) for spec, aval in zip(specs, avals, strict=True)]
    return treedef.unflatten(ShapeDtypeStruct(shape, aval.dtype) for shape, aval in zip(shapes, avals, strict=True))


def check_scopes(name: str, args: tuple, kwargs: dict) -> None:
    """Raises ValueError if the shapes of arguments have variables of different scopes."""
    scope, place = None, ""
    for path, x in tree.tree_leaves_with_path((args, kwargs)):
        for d in getattr(x, "shape", ()):
            if not is_symbolic_dim(d):
                continue
            where = f"{('args', 'kwargs')[path[0].idx]}{tree.keystr(path[1:])}"
            if scope is None:
                scope, place = d.scope, where
            if d.scope is not scope:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {name}.\nExpected current (from {place}) scope "
                    f"{scope}\nand found for '{d}' ({where}) scope {d.scope}\n"
                    f"See {GUIDE}#user-specified-symbolic-constraints."
                )


def _is_none(x: Any) -> bool:
    return x is None
