"""Lowers `mpmd_map`: a module with a function for each mesh of cores, and the call of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.hlo import spell
from minijax.kernels.chips import get_tpu_info, is_tpu_device
from minijax.kernels.memory import placed
from minijax.kernels.mosaic import subcores
from minijax.kernels.mosaic.call import (
    SparseCores,
    as_arguments,
    backend_config,
    check_tiling,
    colors_of,
    emit,
    function_name,
    mesh_around,
    metadata,
)
from minijax.kernels.mosaic.references import memory, on_core, type_of_memory
from minijax.kernels.mosaic.verbs import ints, listed
from minijax.kernels.mosaic.walk import Grid, Kernel
from minijax.kernels.mosaic.windows import of_function
from minijax.kernels.parameters import CoreType, Tiling, TpuParams
from minijax.kernels.text import I32
from minijax.run.programs.kernel_modules import mosaic_text

_RULES = (subcores,)  # modules that register rules


def lower(
    e: Any, ins: Sequence[Any], outs: Sequence[Any], operands: Sequence[str], params: Mapping[str, Any]
) -> list[str]:
    """Emits a call of compiled kernels, which run at a time, each over its mesh; returns the names of its results.

    Raises NotImplementedError in a program for several devices outside of `shard_map` and for kernels of TensorCores
    beside others, and ValueError for a device without SparseCores.
    """
    options = params["compiler_params"] or TpuParams()
    count = _check(params["meshes"], params["external_meshes"], options)
    k = Kernel(mesh_around(e), options.needs_layout_passes)
    own_axes: set[Any] = set()
    names = [jaxpr.debug_info.func_name for jaxpr in params["jaxprs"]]
    functions = [params["name"].split(" ")[0]] if params["name"] and len(names) == 1 else names
    for name, mesh, jaxpr in zip(functions, params["meshes"], params["jaxprs"], strict=True):
        _write(k, name, mesh, jaxpr, len(jaxpr.invars) - len(ins) - len(outs))
        own_axes.update(mesh.axis_names)
    text = k.module()
    if params["debug"]:
        _print(params["jaxprs"], text)
    kinds = {mesh.core_type: None for mesh in params["meshes"]}
    aliases = dict(params["input_output_aliases"].items)
    colors = colors_of(
        ins,
        [a.memory_space for a in params["out_avals"]],
        aliases.items(),
        next(iter(kinds)) if len(kinds) == 1 else None,
    )
    tiling = Tiling.SPARSE_CORE if options.use_tc_tiling_on_sc is False else Tiling.COMPACT
    config = backend_config(text, params, colors, None if CoreType.TC in kinds else SparseCores(tiling, count))
    rest = dict(aliases=aliases, frontend=metadata(params["metadata"], params["jaxprs"], own_axes))
    name = function_name(params["name"] or "_".join(names))
    return emit(e, name, config, as_arguments(e, operands, ins), outs, options, rest)


def _check(meshes: Sequence[Any], others: Sequence[Any], options: TpuParams) -> int:
    """The number of SparseCores of meshes. Raises ValueError and NotImplementedError as `lower`."""
    if options.dimension_semantics is not None:
        raise ValueError(
            "pl.kernel: mpmd_map does not support dimension_semantics= in compiler_params=: meshes say how axes run"
        )
    if any(mesh.core_type is CoreType.TC for mesh in meshes):
        if any(mesh.core_type is not CoreType.TC for mesh in (*meshes, *others)):
            raise NotImplementedError(
                f"pl.kernel: mpmd_map does not support TC kernels yet beside others, got {[*meshes, *others]}"
            )
        check_tiling(options, "pl.kernel")
        return 1
    if not is_tpu_device():
        raise ValueError(
            "pl.kernel: SparseCore kernels are only supported on TPU, but the current device is not one. Set an "
            "abstract mesh with the `abstract_device` that they are for"
        )
    info = get_tpu_info()
    if info.sparse_core is None:
        raise ValueError(f"pl.kernel: SparseCore is not available on the current device ({info.chip_version})")
    counts = {next(iter(mesh.shape.values())) for mesh in meshes}
    if len(counts) > 1:
        raise ValueError(f"pl.kernel: kernels that run at a time are for the same number of SparseCores, got {meshes}")
    return counts.pop()


def _print(jaxprs: Sequence[Any], text: str) -> None:
    """Prints the kernels and their module, as `debug=True` asks for."""
    for jaxpr in jaxprs:
        print(f"\nThe kernel jaxpr for mpmd_map {jaxpr.debug_info.func_src_info}:\n{jaxpr}")
    print(f"\nThe Mosaic module for mpmd_map:\n{mosaic_text(text, 'canonicalize')}")


def _write(k: Kernel, name: str, mesh: Any, jaxpr: Any, scratch: int) -> None:
    """Writes the function that a subcore of a mesh runs, whose last arguments are scratch."""
    k.core, sizes = mesh.core_type, list(mesh.shape.values())
    avals = [on_core(placed(v.aval, mesh), k.core) for v in jaxpr.invars]

    def body(*args):
        k.grid = Grid(args[: len(sizes)], sizes, names=tuple(mesh.axis_names))
        refs = args[len(sizes) :]
        k.values(jaxpr, [memory(r, a) for r, a in zip(refs, avals, strict=True)])
        return []

    windows = [_window(k.core, len(sizes), a) for a in avals[: len(avals) - scratch]]
    attributes = of_function(k.core, [s.value for s in mesh.dimension_semantics], scratch)
    attributes |= {"iteration_bounds": ints(sizes), "window_params": listed(windows)}
    head = f"func.func {spell.symbol(function_name(name))}"
    types = [*[I32] * len(sizes), *map(type_of_memory, avals)]
    k.function(head, types, body, "func.return", attributes=spell.dictionary(attributes))


def _window(core: CoreType, axes: int, ref: Any) -> str:
    """The window of a whole array, which SparseCore's compiler wants of arrays that the kernel copies from too."""
    if core is CoreType.TC and str(ref.memory_space) in ("any", "hbm", "semaphore_mem"):
        return "{}"
    steps, zeros = (", ".join(x) for x in ([f"d{i}" for i in range(axes)], ["0"] * len(ref.shape)))
    return f"{{transform_indices = affine_map<({steps}) -> ({zeros})>}}"
