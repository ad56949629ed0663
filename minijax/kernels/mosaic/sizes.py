"""Kernels with symbolic sizes: how the module says from which sizes of operands a number comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.api.jit import jit
from minijax.base.symbolic.dimension import SymbolicDim
from minijax.base.symbolic.solver import OPERATIONS
from minijax.base.thread import outside_traces
from minijax.hlo import spell
from minijax.ir.types import ShapedArray
from minijax.kernels.mapping import GridMapping
from minijax.kernels.symbolic import Placeholders

_SIZE = ShapedArray((), np.dtype(np.int32))


def without_symbolic(parts: tuple[Any, Any], ins: Sequence[Any], where: str) -> tuple[tuple[Any, Any], str]:
    """A kernel and its blocks with numbers in the place of symbolic sizes, and the attributes of its module.

    Raises NotImplementedError for a variable that is not the size of an operand's axis.
    """
    _, mapping = parts
    shapes = [block.array_aval.shape + block.sizes for block in mapping.block_mappings]
    if not any(isinstance(n, SymbolicDim) for shape in shapes for n in shape):
        return parts, ""
    numbers = Placeholders()
    fixed = numbers.replaced(parts[0]), _in_mapping(numbers, mapping)
    names = sorted(set().union(*[dim.variables() for dim in numbers.numbers]))
    # The symbolic sizes of the grid are the first operands of the call.
    values = [*[(n, -1) for n in mapping.grid if isinstance(n, SymbolicDim)], *[(a, 0) for a in ins]]
    places = ", ".join([_place(name, values, where) for name in names])
    notes = {}
    for dim, number in numbers.numbers.items():
        notes[f"tpu.dynamic_dimension_mapping_indices_{number}"] = f"[{places}]"
        notes[f"tpu.dynamic_dimension_mapping_module_{number}"] = spell.string(_module(dim, names))
    return fixed, spell.dictionary(dict(sorted(notes.items())))


def _in_mapping(numbers: Placeholders, mapping: GridMapping) -> GridMapping:
    """The mapping with numbers in the place of sizes of blocks and of the grid; arrays have these sizes or others."""
    blocks = []
    for block in mapping.block_mappings:
        shape = tuple([numbers.numbers.get(n, n) for n in block.array_aval.shape])
        fixed = numbers.replaced(block.replace(array_aval=None))
        blocks.append(fixed.replace(array_aval=block.array_aval.update(shape=shape)))
    return mapping.replace(block_mappings=tuple(blocks), grid=numbers.replaced(mapping.grid))


def _place(name: str, values: Sequence[tuple[Any, int]], where: str) -> str:
    """The axis of an operand whose size is a variable, -1 if the operand is the variable itself."""
    for operand, (value, first) in enumerate(values):
        for axis, n in enumerate([value] if first else value.shape, first):
            if isinstance(n, SymbolicDim) and str(n) == name:
                return f"{{dimension_index = {axis} : i64, operand_index = {operand} : i64}}"
    raise NotImplementedError(f"pallas_call {where}: the variable {name} is not the size of an axis of an operand")


def _module(dim: SymbolicDim, names: Sequence[str]) -> str:
    """The module that computes a size from those of its variables."""

    def evaluate_shape(dim_values: Sequence[Any]) -> list[Any]:
        return [dim.evaluate(dict(zip(names, dim_values, strict=True)), OPERATIONS)]

    with outside_traces():
        return jit(evaluate_shape, keep_unused=True).lower([_SIZE] * len(names)).as_text(debug_info=True)
