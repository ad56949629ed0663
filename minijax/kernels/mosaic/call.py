"""Lowers `pallas_call` for TPUs: the module of the kernel, and the call of it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.hlo import spell
from minijax.ir.types import ShapedArray
from minijax.kernels.grid import INDEX, dynamic_grid_dim
from minijax.kernels.mapping import GridMapping
from minijax.kernels.memory import CoreMemorySpace, is_semaphore
from minijax.kernels.mosaic import einshape, elementwise, random, shapes, sizes, transfers
from minijax.kernels.mosaic.references import memory, type_of_memory
from minijax.kernels.mosaic.walk import Grid, Kernel
from minijax.kernels.mosaic.windows import attributes, block_type, check_blocks, hidden, write_transforms
from minijax.kernels.parameters import CoreType, Tiling
from minijax.kernels.text import I32
from minijax.run.programs.kernel_modules import mosaic_bytecode, mosaic_has_communication, mosaic_text

TARGET = "tpu_custom_call"
_COLORS = {"hbm": 0, "vmem": 1, "smem": 4, "host": 5}
_VMEM = 1
_OF_OPERANDS = 0, 1  # the colors that operands may have
_SEMAPHORES = {CoreType.TC: 2, CoreType.SC_SCALAR_SUBCORE: 8}
_RULES = (einshape, elementwise, random, shapes, transfers)  # modules that register rules

_INT32 = np.dtype(np.int32)


def kernel_module(
    jaxpr: Any,
    mapping: GridMapping,
    name: str,
    compiler_params: Any = None,
    mesh: Mapping[str, int] | None = None,
    module_attributes: str = "",
) -> str:
    """The module of a kernel as text. Raises NotImplementedError for an operation that Mosaic does not have."""
    k = Kernel(dict(mesh or {}))
    blocks = mapping.block_mappings
    count = mapping.num_index_operands
    others = [*range(count), *range(count + len(blocks), len(jaxpr.invars))]  # scalars and scratch
    avals = [v.aval for v in jaxpr.invars]
    avals[count : count + len(blocks)] = [block.ref_aval for block in blocks]
    types = {i: type_of_memory(avals[i]) for i in others}
    types |= {count + i: block_type(block) for i, block in enumerate(blocks)}
    steps = [n if isinstance(n, int) else None for n in mapping.grid]

    def body(*args):
        ids, refs = args[: len(steps)], args[len(steps) :]
        unseen = {count + i: hidden(block) for i, block in enumerate(blocks)}
        operands = [memory(r, a, unseen.get(i)) for i, (r, a) in enumerate(zip(refs, avals, strict=True))]
        k.grid = Grid(ids, steps, mapping.vmapped_dims, mapping.grid_names or ())
        k.values(jaxpr, operands)
        return []

    ordered = [types[i] for i in range(len(avals))]
    head = f"func.func {spell.symbol(name)}"
    spelled = spell.dictionary(attributes(mapping, compiler_params))
    k.function(head, [I32] * len(steps) + ordered, body, "func.return", attributes=spelled)
    write_transforms(k, mapping)
    return k.module(attributes=module_attributes)


def lower(
    e: Any, ins: Sequence[Any], outs: Sequence[Any], operands: Sequence[str], params: Mapping[str, Any]
) -> list[str]:
    """Emits a call of the compiled kernel by the HLO emitter, and returns the names of its results.

    Raises NotImplementedError in a program for several devices outside of `shard_map`, and ValueError for blocks that
    the compiler does not take.
    """
    jaxpr, mapping, options = params["jaxpr"], params["grid_mapping"], params["compiler_params"]
    mesh = mesh_around(e)
    where = jaxpr.debug_info.func_src_info
    if jaxpr.constvars:
        raise NotImplementedError(
            f"pallas_call {where}: kernels for TPUs cannot capture references; pass them as operands"
        )
    check_tiling(options, f"pallas_call {where}")
    check_blocks(mapping, where)
    name = function_name(params["name"] or jaxpr.debug_info.func_name)
    fixed, notes = sizes.without_symbolic((jaxpr, mapping), ins, where)
    text = kernel_module(*fixed, name, options, mesh, notes)
    if params["debug"]:
        text = mosaic_text(text, "canonicalize,cse")
        print(f"\nThe kernel jaxpr for pallas_call {where}:\n{jaxpr}")
        print(f"\nThe Mosaic module for pallas_call {where}:\n{text}")
    spaces = [block.result_space for block in mapping.block_mappings_output]
    colors = colors_of(ins, spaces, params["input_output_aliases"], CoreType.TC)
    config = backend_config(text, params, colors)
    moved = mapping.num_dynamic_grid_bounds
    values = as_arguments(e, operands, ins)
    values = [*_grid_sizes(e, mapping.grid, values[:moved]), *values[moved:]]
    unknown = sum(not isinstance(n, int) for n in mapping.grid)
    options = dict(
        aliases={i + unknown: o for i, o in params["input_output_aliases"]},
        frontend=metadata(params["metadata"], [jaxpr], mapping.grid_names or ()),
    )
    return emit(e, name, config, values, outs, params["compiler_params"], options)


def check_tiling(options: Any, where: str) -> None:
    """Raises ValueError for a kernel of TensorCores with an option of SparseCores."""
    if getattr(options, "use_tc_tiling_on_sc", None) is not None:
        raise ValueError(f"{where}: use_tc_tiling_on_sc is an option of kernels for SparseCores")


def function_name(name: str) -> str:
    """The name of a kernel as that of a function."""
    return re.sub(r"[^0-9a-zA-Z_]", "_", name)


def mesh_around(e: Any) -> dict[str, int]:
    """The sizes of the axes of the mesh around the call. Raises NotImplementedError unless all are manual."""
    if e.manual is None:
        if e.num_partitions > 1:
            raise _not_partitioned()
        return {}
    mesh, manual = e.manual
    if any(n not in manual and size > 1 for n, size in mesh.shape.items()):
        raise _not_partitioned()
    return dict(mesh.shape)


def _not_partitioned() -> NotImplementedError:
    return NotImplementedError(
        "Mosaic kernels cannot be automatically partitioned. Please wrap the call in a shard_map."
    )


def _representation(aval: Any) -> ShapedArray:
    """The type of an operand or result of the call: flags are integers, semaphores their numbers."""
    if is_semaphore(aval.dtype) or aval.dtype == np.bool_:
        return ShapedArray(aval.shape, _INT32)
    return spell.physical(aval)


def _grid_sizes(e: Any, grid: Sequence[Any], dynamic: Sequence[tuple]) -> list[tuple[str, ShapedArray]]:
    """The sizes of axes that are known only when the program runs; the dynamic ones are operands."""
    given = iter(dynamic)
    unknown = [n for n in grid if not isinstance(n, int)]
    return [next(given) if n is dynamic_grid_dim else (e.size_as(n, INDEX), INDEX) for n in unknown]


def as_arguments(e: Any, operands: Sequence[str], ins: Sequence[Any]) -> list[tuple[str, ShapedArray]]:
    """The operands of the call with their types."""
    own = [_representation(a) for a in ins]
    return [(e.convert(x, a, r) if a.dtype == np.bool_ else x, r) for x, a, r in zip(operands, ins, own, strict=True)]


def emit(
    e: Any, name: str, config: str, values: Sequence[tuple], outs: Sequence[Any], params: Any, options: dict
) -> list[str]:
    """Emits the call of a module, and returns the names of its results."""
    names, ins = [x for x, _ in values], [a for _, a in values]
    own = [_representation(a) for a in outs]
    row_major = lambda avals: [tuple(reversed(range(len(a.shape)))) for a in avals]  # noqa: E731
    found = e.custom_call(
        TARGET,
        names,
        ins,
        own,
        api_version=1,
        backend_config=config,
        has_side_effect=_has_side_effect(params),
        operand_layouts=row_major(ins),
        result_layouts=row_major(own),
        kernel_name=name,
        **options,
    )
    return [e.convert(x, r, a) if a.dtype == np.bool_ else x for x, r, a in zip(found, own, outs, strict=True)]


def _has_side_effect(options: Any) -> bool:
    effect = getattr(options, "has_side_effects", False)
    return effect is True or getattr(effect, "name", "") in ("SIDE_EFFECTING", "DATAFLOW_SIDE_EFFECTING")


def metadata(given: Any, jaxprs: Sequence[Any], own_axes: Iterable[Any]) -> dict[str, str]:
    """The metadata of the call: the user's texts, and the axes of the mesh over which the kernel's devices talk."""
    texts = {} if given is None else dict(given.items)
    if axes := set[str]().union(*map(_axes_in, jaxprs)).difference(own_axes):
        texts["mesh_axes"] = json.dumps(sorted(axes))
    return {"kernel_metadata": json.dumps(texts, indent=0, separators=(",", ":")) if texts else "{}"}


def _axes_in(jaxpr: Any) -> set[str]:
    """The names of the axes of the mesh on which positions are read."""
    found = {eqn.params["axis_name"] for eqn in jaxpr.eqns if eqn.primitive.name == "axis_index"}
    return found.union(*map(_axes_in, jaxpr.inner))


# ---- the configuration -----------------------------------------------------------------------------------


class SparseCores(NamedTuple):
    """How the SparseCores run a kernel: the tiling of arrays, and on how many cores."""

    tiling: Tiling
    count: int

    def entries(self) -> dict[str, Any]:
        """The entries of the configuration that tell of SparseCores."""
        return {"sparse_core_config": {"tiling": f"TILING_{self.tiling.name}"}, "device_type": "DEVICE_TYPE_SPARSECORE"}


def backend_config(
    text: str, params: Mapping[str, Any], colors: Sequence[list | None], sparse: SparseCores | None = None
) -> str:
    """The configuration of the call, in which the module is, as JSON with jax's order of keys.

    `colors` are the memory spaces of operands and of results, `sparse` is given for kernels of SparseCores.
    """
    options, cost = params["compiler_params"], params["cost_estimate"]
    option = lambda name: getattr(options, name, None)  # noqa: E731
    communicates, has_barrier = mosaic_has_communication(text)
    collective = option("collective_id")
    _check_collective(collective, has_barrier, bool(option("allow_collective_id_without_custom_barrier")))
    body = base64.b64encode(mosaic_bytecode(text)).decode()
    numerics = option("shape_invariant_numerics")
    call = {
        "body": body,
        "has_communication": communicates or None,
        "collective_id": collective,
        "cost_estimate": None if cost is None else dict(sorted(json.loads(cost.to_json()).items())),
        "serialization_format": option("serialization_format") or 1,
        "needs_layout_passes": _needs_layout_passes(options, sparse),
        "shape_invariant_numerics": False if numerics is False else None,
        "allow_input_fusion": None if not option("allow_input_fusion") else list(option("allow_input_fusion")),
        "internal_scratch_in_bytes": option("internal_scratch_in_bytes"),
        "output_memory_space_colors": colors[1],
        "input_memory_space_colors": colors[0],
        "disable_bounds_checks": option("disable_bounds_checks") or None,
        "disable_semaphore_checks": option("disable_semaphore_checks") or None,
        "skip_device_barrier": option("skip_device_barrier") or None,
    }
    whole = {
        "custom_call_config": _present(call),
        **(sparse.entries() if sparse else {}),
        "scoped_memory_configs": _memory_limit(option("vmem_limit_bytes")),
        "flag_configs": [_flag(n, v) for n, v in dict(option("flags") or {}).items()] or None,
    }
    if sparse and sparse.count == 1:
        whole["megachip_parallelism_config"] = {"cores": ["0"]}
    return json.dumps(_present(whole))


def _memory_limit(limit: int | None) -> list[dict[str, int]] | None:
    return None if limit is None else [{"memory_space": _VMEM, "offset": 0, "size": limit}]


def _needs_layout_passes(options: Any, sparse: SparseCores | None) -> bool | None:
    """TensorCores always infer layouts, SparseCores unless told not to."""
    return sparse is None or getattr(options, "needs_layout_passes", True) or None


def _present(entries: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value is not None}


def _check_collective(collective: int | None, has_barrier: bool, allowed: bool) -> None:
    if has_barrier and collective is None:
        raise ValueError("collective_id has to be specified when using a custom barrier")
    if collective is not None and not has_barrier and not allowed:
        raise ValueError("collective_id has to be unspecified or None when not using a custom barrier")


def colors_of(
    ins: Sequence[Any], spaces: Sequence[Any], aliases: Iterable[tuple[int, int]], core: CoreType | None
) -> tuple[list[dict] | None, list[dict] | None]:
    """The memory spaces that operands and results of a kernel name, `spaces` those of results.

    An operand and the result that it is aliased to have one. `core` is the kind of the cores, None for several.

    Raises ValueError for different ones of an alias, and for memory that a result cannot be in.
    """
    taken = [_color(getattr(a, "memory_space", None), core) for a in ins]
    given = [_color(space, core) for space in spaces]
    for i, o in aliases:
        if None not in (taken[i], given[o]) and taken[i] != given[o]:
            raise ValueError(f"In/out memory space conflict for alias {i}->{o}: {ins[i]} and {spaces[o]}")
        taken[i] = given[o] = given[o] if taken[i] is None else taken[i]
    where = lambda o: {} if len(given) == 1 else {"shape_index": [o]}  # noqa: E731
    operands = [{"operand_index": i, "color": c} for i, c in enumerate(taken) if c in _OF_OPERANDS]
    return operands or None, [{"color": c, **where(o)} for o, c in enumerate(given) if c is not None] or None


def _color(space: Any, core: CoreType | None) -> int | None:
    """The number of a memory space for XLA. Raises ValueError for one that belongs to other cores."""
    kind = str(space)
    if type(space) is CoreMemorySpace:
        kind, core = str(space.memory_space), space.mesh.core_type
        if kind == "vmem" and core is not CoreType.TC:
            raise ValueError(f"Invalid core type for VMEM: {core}. XLA knows the VMEM of TensorCores")
        kind = kind if kind in ("vmem", "semaphore_mem") else ""
    if kind == "semaphore_mem" and core not in _SEMAPHORES:
        raise ValueError(f"Invalid kernel type for semaphore: {core}. Say whose it is by `@ mesh`")
    return _SEMAPHORES[core] if kind == "semaphore_mem" else _COLORS.get(kind)  # type: ignore[index]


def _flag(name: str, value: Any) -> dict[str, Any]:
    kind = {bool: "boolean_value", int: "integer_value"}.get(type(value))
    if kind is None:
        raise ValueError(f"invalid flag value: {value!r} of {name}; flags are bools and ints")
    return {"flag_type": name, "value": {kind: value}}
