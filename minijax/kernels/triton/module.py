"""Calls of kernels on GPUs: the grid, the module of a kernel, and the custom call that runs it."""

import json
import re
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minijax.hlo import spell
from minijax.ir.types import Aval
from minijax.kernels.blocks import Element, Squeezed
from minijax.kernels.text import Value, scalar
from minijax.kernels.triton.kernel import Kernel
from minijax.kernels.triton.memory import Block
from minijax.kernels.triton.verbs import I32, pointer_to
from minijax.run.programs.kernel_modules import triton_bytecode, triton_text

TARGET = "__gpu$xla.gpu.triton"
_MOST_BLOCKS = 65535  # on the second and the third axis of a launch


class Launch(NamedTuple):
    """How the axes of a grid become the three axes of a launch: the first `folded` ones of `order` become one."""

    order: Sequence[int]
    folded: int
    sizes: tuple[int, int, int]


def launch_of(grid: Sequence[int], vmapped: Sequence[int] = ()) -> Launch:
    """The launch for a grid, whose vmapped axes come last, the innermost one first."""
    order = [*[i for i in range(len(grid)) if i not in vmapped], *sorted(vmapped, reverse=True)]
    sizes = [grid[i] for i in order]
    large = [i + 1 for i, n in enumerate(sizes) if n > _MOST_BLOCKS]
    folded = max(len(sizes) - 2, 0, *large)
    three = [prod(sizes[:folded]), *sizes[folded:]] if folded else sizes
    if three and three[0] >= 2**31 - 1:
        raise ValueError(
            f"Cannot fit the pallas kernel launch grid {tuple(grid)} within CUDA limits: {three[0]} blocks"
        )
    return Launch(order, folded, tuple([*three, 1, 1, 1][:3]))


def _ids(k: Kernel, launch: Launch, grid: Sequence[int]) -> list[Value]:
    """The number of the step on each axis of the grid."""
    ids: dict[int, Value] = {}
    where = lambda axis: k.program_id(axis) if launch.sizes[axis] != 1 else k.constant(0, I32)  # noqa: E731
    if launch.folded:
        rest = where(0)
        for axis in launch.order[: launch.folded]:
            size = k.constant(grid[axis], I32)
            ids[axis] = k.like("arith.remui", rest, size)
            rest = k.like("arith.divui", rest, size)
    for i, axis in enumerate(launch.order[launch.folded :]):
        ids[axis] = where(i + bool(launch.folded))
    return [ids[axis] for axis in range(len(grid))]


def module_text(name: str, jaxpr: Any, mapping: Any, platform: str) -> str:
    """The module of a kernel as text, in MLIR's generic form.

    Raises NotImplementedError for an operation, and for a block, that Triton does not have.
    """
    _check(mapping)
    k = Kernel(platform, mapping)
    blocks = mapping.block_mappings
    pointers = [scalar(pointer_to(b.array_aval.dtype)) for b in blocks]

    def body(*arguments: Value) -> list[Value]:
        k.ids = _ids(k, launch_of(mapping.grid, mapping.vmapped_dims), mapping.grid)
        typed = [x._replace(dtype=b.array_aval.dtype) for x, b in zip(arguments, blocks, strict=True)]
        k.walk(jaxpr, [_block(k, x, b) for x, b in zip(typed, blocks, strict=True)])
        return []

    attributes = ["{tt.divisibility = 32 : i32}"] * len(blocks)
    k.function(f"tt.func public {spell.symbol(name)}", pointers, body, "tt.return", arg_attributes=attributes)
    return k.module(name)


def _check(mapping: Any) -> None:
    """Raises NotImplementedError for parts of a call that Triton does not have."""
    if not all(isinstance(n, int) for n in mapping.grid):
        raise NotImplementedError("dynamic grid bounds not supported in the Triton backend")
    if mapping.num_index_operands:
        raise NotImplementedError("scalar prefetch not implemented in the Triton backend")
    if mapping.scratch_avals:
        raise NotImplementedError("scratch memory not implemented in the Triton backend")
    for block in mapping.block_mappings:
        if block.pipeline_mode is not None:
            raise NotImplementedError("Pipeline mode is not supported in Triton lowering.")
        if any(type(d) is Element and any(d.padding) for d in block.block_shape):
            raise NotImplementedError("Unblocked indexing with padding is not supported in Triton lowering.")


def _block(k: Kernel, pointer: Value, mapping: Any) -> Block:
    """The reference of an operand: its first element, from the numbers that the index map returns."""
    numbers = [k.tile(x) for x in k.walk(mapping.index_map_jaxpr.jaxpr, k.ids, mapping.index_map_jaxpr.consts)]
    starts = []
    for number, dim in zip(numbers, mapping.block_shape, strict=True):
        is_number = type(dim) in (Element, Squeezed)
        starts.append(number if is_number else k.arith("mul", number, k.constant(dim.block_size, number.dtype)))
    squeezed = frozenset(i for i, dim in enumerate(mapping.block_shape) if type(dim) is Squeezed)
    shape = mapping.array_aval.shape
    return Block(pointer, shape, tuple(starts), squeezed, mapping.transformed_block_aval.shape)


def lower(e: Any, ins: Sequence[Aval], outs: Sequence[Aval], operands: Sequence, params: dict) -> list:
    """Lowers a call of a kernel to a custom call that XLA compiles with Triton, on the platforms cuda and rocm."""
    jaxpr, mapping, options = params["jaxpr"], params["grid_mapping"], params["compiler_params"]
    if getattr(options, "BACKEND", "triton") != "triton":
        raise ValueError(
            f"Cannot lower pallas_call on platform: gpu. Its compiler_params are {type(options)}, those of another "
            "platform: use pl.triton.CompilerParams."
        )
    name = re.sub(r"[^\w.-]", "_", params["name"] or jaxpr.debug_info.func_name)
    text = module_text(name, jaxpr, mapping, e.platform)
    if params["debug"]:
        _show(jaxpr, mapping, text)
    config = _config(
        name, triton_bytecode(text), launch_of(mapping.grid, mapping.vmapped_dims).sizes, options, e.platform
    )
    if params["metadata"]:
        config["serialized_metadata"] = json.dumps(dict(params["metadata"].items))
    layouts = [[*reversed(range(len(a.shape)))] for a in (*ins, *outs)]
    return e.custom_call(
        TARGET, operands, ins, outs, backend_config=config, aliases=dict(params["input_output_aliases"]),
        operand_layouts=layouts[: len(ins)], result_layouts=layouts[len(ins) :],
    )  # fmt: skip


def _config(name: str, module: bytes, sizes: Sequence[int], options: Any, platform: str) -> dict[str, Any]:
    warps, stages = getattr(options, "num_warps", None), getattr(options, "num_stages", None)
    numbers = {
        **{f"grid_{axis}": size for axis, size in zip("xyz", sizes, strict=True)},
        "num_warps": 4 if warps is None else warps,
        "num_stages": (1 if platform == "rocm" else 3) if stages is None else stages,
    }
    return {"name": name, "ir": module, "debug": False, **{key: np.int32(n) for key, n in numbers.items()}}


def _show(jaxpr: Any, mapping: Any, text: str) -> None:
    where = jaxpr.debug_info.func_src_info
    print(f"\nThe kernel jaxpr for pallas_call {where}:\n{jaxpr}")
    print(f"The grid mapping for pallas_call {where}:\n{mapping}")
    print(f"\nThe Triton module for pallas_call {where}:\n{triton_text(text)}")
