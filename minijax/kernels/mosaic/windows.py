"""The windows of operands and results: which blocks the compiler allows, and how the module describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.base import dtypes
from minijax.kernels.blocks import Blocked, Element, RevisitMode, Squeezed
from minijax.kernels.mapping import BlockMapping, GridMapping
from minijax.kernels.mosaic.control import inlined
from minijax.kernels.mosaic.references import element_of_memory, memory, space_of, stored_shape, type_of_memory
from minijax.kernels.mosaic.verbs import ints, listed, memref
from minijax.kernels.mosaic.walk import Kernel
from minijax.kernels.parameters import CoreType
from minijax.kernels.text import I32, Type

LANES, SUBLANES = 128, 8
_WHOLE = ("any", "hbm", "semaphore_mem", "host")  # memory spaces in which the kernel gets the whole array
_DYNAMIC = -(2**63)  # the size of an axis that is known only when the program runs
_RULE = "The Pallas TPU lowering currently "


class LoweringException(Exception):
    """Is raised for a window that Mosaic does not have.

    Example:
        >>> issubclass(pltpu.LoweringException, Exception)
        True
    """


def check_blocks(mapping: GridMapping, where: str) -> None:
    """Raises ValueError for a block that the compiler does not take."""
    for block in mapping.block_mappings:
        problem = _problem(block)
        if problem:
            raise ValueError(
                f"{_RULE}{problem}Block spec for {block.origin} in pallas_call {where} has block shape "
                f"{block.block_shape}, array shape {block.array_aval.shape}, and index_map {block.index_map_jaxpr}, in "
                f"memory space {block.memory_space!r}.{_nearest(block)}"
            )


def _problem(block: BlockMapping) -> str:
    """The reason why a block is refused, as the second half of a sentence; "" if it is not."""
    space, sizes, shape = space_of(block.memory_space), block.sizes, block.array_aval.shape
    if space in _WHOLE:
        if not block.has_trivial_window():
            return (
                f"supports in memory space {space.upper()} only blocks having the same block shape as the array shape "
                "and a trivial index_map (returning all 0s). "
            )
        return ""
    if type(block.array_aval.dtype) is dtypes.KeyType or (space == "smem" and block.has_trivial_window()):
        return ""
    if not shape:
        return "supports only blocks of rank >= 1. "
    if len(shape) == 1:
        return _problem_of_vector(sizes[0], shape[0], block.array_aval.dtype)
    for size, full, unit in zip(sizes[-2:], shape[-2:], (SUBLANES, LANES), strict=True):
        if size != full and size % unit:
            return (
                "requires that the last two dimensions of your block shape are divisible by 8 and 128 respectively, or "
                "be equal to the respective dimensions of the overall array. "
            )
    return ""


def _problem_of_vector(size: int, full: int, dtype: Any) -> str:
    bits = dtypes.itemsize_bits(dtype)
    smallest = LANES * (32 // bits)
    if size == full or size % (LANES * SUBLANES) == 0 or (size >= smallest and size & (size - 1) == 0):
        return ""
    return (
        "requires that rank 1 block shapes, either 1) the first (and only) dimension of the block shape is equal to "
        "the first (and only) dimension of the array shape, or 2) the first (and only) dimension of the block shape is "
        f"a multiple of {LANES * SUBLANES}, or 3) the first (and only) dimension of the block shape is a power of 2 "
        f"and at least the tiling size ({smallest} = {LANES} * (32 // {bits})) of the array shape. "
    )


def _nearest(block: BlockMapping) -> str:
    """The nearest block that is allowed, as a sentence; "" if it would not help."""
    shape = block.array_aval.shape
    if len(shape) < 2 or space_of(block.memory_space) in _WHOLE:
        return ""
    sizes = list(block.sizes)
    for axis, unit in ((-2, SUBLANES), (-1, LANES)):
        if sizes[axis] != shape[axis]:
            sizes[axis] = min(-(-sizes[axis] // unit) * unit, shape[axis])
    return f" The next larger block that is allowed is {tuple(sizes)}."


def block_type(block: BlockMapping) -> Type:
    """The type of the kernel's reference to a block: dimensions that it does not see have size 1."""
    aval = block.transformed_block_aval
    return memref(stored_shape(block.sizes, aval.dtype), element_of_memory(aval.dtype), space_of(aval.memory_space))


def hidden(block: BlockMapping) -> list[bool]:
    """For each dimension of a block, whether the kernel does not see it."""
    rank = len(stored_shape(block.sizes, block.array_aval.dtype))
    return [i < len(block.sizes) and type(block.block_shape[i]) is Squeezed for i in range(rank)]


def semantics(mapping: GridMapping, compiler_params: Any) -> list[str]:
    """How the steps on each axis depend on each other. Raises ValueError unless there are as many as axes."""
    given = getattr(compiler_params, "dimension_semantics", None)
    own = [i for i in range(len(mapping.grid)) if i not in mapping.vmapped_dims]
    if given is None:
        given = ("arbitrary",) * len(own)
    if len(given) != len(own):
        raise ValueError(
            "Length of grid does not match length of dimension semantics. "
            f"len(grid)={len(own)}, len(dimension_semantics)={len(given)}"
        )
    names = iter([str(getattr(s, "value", s)).lower() for s in given])
    return [next(names) if i in own else "parallel" for i in range(len(mapping.grid))]


def attributes(mapping: GridMapping, compiler_params: Any) -> dict[str, str]:
    """The attributes of the kernel's function."""
    steps = semantics(mapping, compiler_params)
    found = of_function(CoreType.TC, steps, len(mapping.scratch_avals), mapping.num_index_operands)
    if mapping.grid:
        sizes = [n if isinstance(n, int) else _DYNAMIC for n in mapping.grid]
        found["iteration_bounds"] = ints(sizes)
        windows = [_window(i, block) for i, block in enumerate(mapping.block_mappings)]
        found["window_params"] = f"[{', '.join(windows)}]"
    return found


def of_function(core: CoreType, steps: Sequence[str], scratch: int, scalars: int = 0) -> dict[str, str]:
    """The attributes that functions of all kinds of cores have; `steps` are the semantics of the axes."""
    return {
        "dimension_semantics": listed([f"#tpu.dimension_semantics<{s}>" for s in steps]),
        "scalar_prefetch": f"{scalars} : i64",
        "scratch_operands": f"{scratch} : i64",
        "tpu.core_type": f"#tpu.core_type<{core.value}>",
    }


def has_window(block: BlockMapping) -> bool:
    """Returns whether the kernel gets blocks, not the whole array where it is."""
    return space_of(block.memory_space) not in _WHOLE


def _window(number: int, block: BlockMapping) -> str:
    if not has_window(block):
        return "{}"
    parts = [
        f"transform_indices = @transform_{number}",
        f"window_bounds = {ints(stored_shape(block.sizes, block.array_aval.dtype))}",
    ]
    parts = [*_pipelining(block), *parts]
    if (kind := _kind(block)) is not None:
        parts.append(f"window_kind = {kind}")
    return f"{{{', '.join(parts)}}}"


def _pipelining(block: BlockMapping) -> list[str]:
    """How a block is copied while the kernel runs, as attributes; none leave it to the compiler."""
    how = block.pipeline_mode
    if space_of(block.memory_space) == "vmem" and block.is_everything():
        return ["pipeline_mode = #tpu.pipeline_mode<synchronous>"]
    if how is None:
        return []
    modes = {1: "synchronous", 2: "double_buffered"}
    if how.buffer_count not in modes:
        raise LoweringException(f"Only single (1) and double (2) buffering are supported. Got {how.buffer_count}.")
    if how.buffer_count == 2 and how.revisit is RevisitMode.ANY:
        raise LoweringException("RevisitMode.ANY is not supported with double buffering.")
    revisit = [] if how.revisit is None else [f"revisit_mode = #tpu.revisit_mode<{how.revisit.value}>"]
    return [f"pipeline_mode = #tpu.pipeline_mode<{modes[how.buffer_count]}>", *revisit]


def _kind(block: BlockMapping) -> str | None:
    """The attribute of windows that are placed by elements. Raises NotImplementedError for other dimensions."""
    dims = [d for d in block.block_shape if type(d) is not Squeezed]
    for d in dims:
        if type(d) not in (Blocked, Element):
            raise NotImplementedError(
                f"Unsupported block dimension type: {type(d)} for block shape: {block.block_shape}"
            )
    if not any(type(d) is Element for d in dims):
        return None
    if not all(type(d) is Element for d in block.block_shape):
        raise NotImplementedError("All block dimensions must be Elements or none of them can be Elements.")
    low, high = zip(*[d.padding for d in dims], strict=True)
    return f"#tpu.element_window<{listed(low)}, {listed(high)}>"


def write_transforms(k: Kernel, mapping: GridMapping) -> None:
    """Writes the functions that give the block of each window in a step."""
    for number, block in enumerate(mapping.block_mappings):
        if has_window(block) and mapping.grid:
            _write_transform(k, mapping, number, block)


def _write_transform(k: Kernel, mapping: GridMapping, number: int, block: BlockMapping) -> None:
    avals = mapping.index_map_avals
    scalars = [a for a in avals if hasattr(a, "inner_aval")]
    types = [I32] * len(mapping.grid) + [type_of_memory(a) for a in scalars]

    rank = len(stored_shape(block.sizes, block.array_aval.dtype))

    def body(*args):
        ids, refs = args[: len(mapping.grid)], args[len(mapping.grid) :]
        k.grid = k.grid._replace(ids=ids)
        operands = [*ids, *[memory(r, a) for r, a in zip(refs, scalars, strict=True)]]
        closed = block.index_map_jaxpr
        found = inlined(k, closed, operands)
        numbers = [k.value(x, v.aval) for x, v in zip(found, closed.jaxpr.outvars, strict=True)]
        zero = k.i32(0)  # jax's modules have it too
        return [*numbers, *[zero] * (rank - len(numbers))]

    k.function(f"func.func @transform_{number}", types, body, "func.return", [I32] * rank)
