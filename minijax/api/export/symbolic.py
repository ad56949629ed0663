"""Arguments with symbolic shapes, for programs that are exported."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import tree
from minijax.base.symbolic_scope import SymbolicScope as SymbolicScope, symbolic_shape as symbolic_shape
from minijax.ir.types import typeof
from minijax.primitives import dimension_value  # noqa: F401  makes symbolic dimensions values of programs


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Describes arguments as `args`, a tree of arrays or of shapes and dtypes, with symbolic shapes.

    `shapes_specs` is a text (see `symbolic_shape`), None for shapes as they are, or a tree of these that is a prefix
    of `args`. Variables are of `scope`, or of a new one with `constraints`. Raises ValueError for texts that name no
    shape, or another one than the argument's, and for trees that do not fit.
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`.")
    leaves, treedef = tree.flatten(args)
    specs = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda s: s is None)
    return treedef.unflatten([_described(x, spec, scope) for x, spec in zip(leaves, specs, strict=True)])


def _described(x: Any, spec: str | None, scope: SymbolicScope) -> ShapeDtypeStruct:
    aval = x if hasattr(x, "shape") and hasattr(x, "dtype") else typeof(x)
    shape = tuple(aval.shape) if spec is None else symbolic_shape(spec, like=tuple(aval.shape), scope=scope)
    return ShapeDtypeStruct(shape, np.dtype(aval.dtype) if not hasattr(aval.dtype, "_rules") else aval.dtype)
