"""The base of calls to functions outside of a program: their batching by `vmap_method`, and aliases."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax.base.dtypes import is_extended
from minijax.higher.scan import scan
from minijax.ir.primitive import Axis, Primitive
from minijax.primitives.moving import axis_to_front, expand_dims
from minijax.transforms.batch import with_axis

_METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None]


def check_method(vmap_method: str | None) -> None:
    """Raises ValueError for an unknown `vmap_method`."""
    if vmap_method not in _METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {_METHODS}, but got: {vmap_method}")


class Foreign(Primitive):
    """Calls a function outside of the program, which returns results of the types `result_avals`."""

    multiple_results = True

    def declared_types(self, avals: Sequence, params: dict) -> tuple[list, frozenset]:
        """The result types, whose varying axes and shardings users specify, and the effects."""
        return list(params["result_avals"]), self.effects(*avals, **params)

    def batch(self, axis, operands, dims, **params):
        return self.by_method(axis, operands, dims, params)

    def by_rows(self, axis: Axis, operands: Sequence, dims: Sequence, params: dict, unroll: int = 1) -> tuple:
        """Calls the function for each row, one after the other."""
        rows = [axis_to_front(x, d, axis) for x, d in zip(operands, dims, strict=True) if d is not None]

        def row(_, xs):
            xs = iter(xs)
            values = [x if d is None else next(xs) for x, d in zip(operands, dims, strict=True)]
            return (), tuple(self.bind(*values, **params))

        _, results = scan(row, (), tuple(rows), length=axis.size, unroll=unroll)
        return list(results), [0] * len(results)

    def by_method(self, axis: Axis, operands: Sequence, dims: Sequence, params: dict) -> tuple:
        """Batches the call as `vmap_method` specifies. Raises NotImplementedError if it is None."""
        method = params["vmap_method"]
        if method not in _METHODS[:-1]:
            raise NotImplementedError(
                f"vmap is only supported for the {self.name} primitive when vmap_method is one of 'sequential', "
                "'sequential_unrolled', 'expand_dims', 'broadcast_all', or 'legacy_vectorized'. "
                f"Got vmap_method={method!r}."
            )
        if method.startswith("sequential"):
            return self.by_rows(axis, operands, dims, params, axis.size if method != "sequential" else 1)
        mapped, has_axis = [], []
        for x, d in zip(operands, dims, strict=True):
            if d is not None or method == "broadcast_all":
                x = axis_to_front(x, d, axis)
            elif method == "expand_dims":
                x = expand_dims(x, (0,))
            mapped.append(x)
            has_axis.append(d is not None or method != "legacy_vectorized")
        avals = tuple(with_axis(a, 0, axis) for a in params["result_avals"])
        params = {**params, **self.mapped_params(params, has_axis), "result_avals": avals}
        return self.bind(*mapped, **params), [0] * len(avals)

    def mapped_params(self, params: dict, has_axis: Sequence[bool]) -> dict:
        """The parameters that change if the results and the marked operands get a leading axis."""
        return {}


def dtype_of(x: Any) -> Any:
    """The dtype of an object like an array, e.g. a `ShapeDtypeStruct`."""
    return x.dtype if is_extended(x.dtype) else np.dtype(x.dtype)


def aliases_of(given: Mapping | None) -> dict[int, int]:
    """The numbers of results by those of the operands whose memory they share. Raises ValueError if not numbers."""
    return {int(i): int(o) for i, o in (given or {}).items()}


def check_aliases(aliases: Mapping[int, int], ins: Sequence, outs: Sequence) -> None:
    """Raises ValueError for an alias of values that do not exist or have different types."""
    for i, o in aliases.items():
        for what, k, count in (("input", i, len(ins)), ("output", o, len(outs))):
            if not 0 <= k < count:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' with {what} index {k} outside the range "
                    f"[0, {count})."
                )
        if ins[i].shape != outs[o].shape or ins[i].dtype != outs[o].dtype:
            raise ValueError(
                f"input_output_aliases contains the mapping '{i}:{o}' referring to an input with abstract value "
                f"{ins[i].str_short()} and an output with a different abstract value {outs[o].str_short()}."
            )
