"""`explain` shows what became of a program, and `diff` where two programs part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.api.stages import Compiled, Lowered, Traced
from minijax.base import source, tree
from minijax.base.html import amount
from minijax.explaining.costs import times_of
from minijax.explaining.difference import Difference, Stages, compare
from minijax.explaining.program import Program, build, read_jaxpr
from minijax.explaining.texts import read_hlo, read_module
from minijax.ir.types import AbstractValue
from minijax.partition.meshes import Mesh
from minijax.partition.shardings import NamedSharding, SingleDeviceSharding
from minijax.run.clients.machines import GPUS, devices_of


@source.boundary
def explain(f: Callable, *args: Any, target: str | None = None, measure: bool = False, **kwargs: Any) -> Program:
    """Returns a page that shows what a function becomes for these arguments: its texts side by side, linked by line.

    The page has the source, the jaxpr, StableHLO and optimized HLO: pointing at a line shows all that belongs to it.
    Below are the costs of each equation, the fusions, the memory over time with the buffers alive at its peak and the
    lines that made them, shardings, and collectives. A line whose origin is not known is marked as such.

    Args:
      f: function, jitted or not. It is traced and compiled, but not run.
      *args: its arguments, or `ShapeDtypeStruct`s in their place.
      target: machine to compile for, which need not be attached: `"tpu:v5e:4x4"`, `"cuda:h100"`, as
        `minijax.devices_of` takes them. Meshes of the arguments are moved there.
      measure: whether to run each equation of the jaxpr by itself, on the arguments, and to show its time. The
        optimized program fuses equations, so these times do not add up to its own; callbacks are called several times.
      **kwargs: its arguments by keyword.

    Returns:
      A `Program`: a notebook shows its page, `save(path)` writes it as an HTML file, `print` shows a table.

    Raises:
      RuntimeError: the compiler of the target is not installed.
      ValueError: the target is not the name of a machine, or has fewer devices than a mesh of the arguments; or
        `measure` is given with a target or with arguments that have no values.

    Example:
        >>> shown = minijax.explain(lambda x: jnp.sin(x @ x), jnp.ones((8, 8)))
        >>> [(e.name, e.flops) for e in shown.equations]
        [('dot_general', 1024), ('sin', 64)]
    """
    if measure and target is not None:
        raise ValueError("explain: measure=True runs the program, which target= only compiles; pass one of them")
    devices = None
    if target is not None:
        devices = _devices(target)
        args, kwargs = tree.tree_map(lambda x: _on(x, devices), (args, kwargs))
    traced = _traced(f, args, kwargs)
    if measure:
        _check_values(traced)
    lowered = traced.lower()
    compiled, error = _compiled(lowered, devices is not None)
    used = lowered._program.placement.devices or ()
    module = lowered.as_text(debug_info=True)
    optimized = _optimized(compiled, module) if compiled else ""
    program = build(traced, module, compiled, optimized, used)
    program.error = error or _excess(program)
    program.fits = not program.error
    if measure:
        _measure(traced, program)
    return program


def _traced(f: Callable, args: Sequence, kwargs: dict) -> Traced:
    return (f if hasattr(f, "trace") else jit(f)).trace(*args, **kwargs)


def _devices(target: str) -> list[Any]:
    try:
        return devices_of(target)
    except RuntimeError as error:
        package = (
            "libtpu" if target.startswith("tpu") else "jax-cuda13-plugin jax-cuda13-pjrt nvidia-cuda-nvcc nvidia-nvvm"
        )
        raise RuntimeError(
            f"explain: cannot compile for {target!r}, since its compiler is not installed or does not know it "
            f"({error}). Install it with: pip install {package}"
        ) from error


def _on(x: Any, devices: list[Any]) -> Any:
    """The type of an argument, placed on the devices as it is placed now."""
    if not hasattr(x, "dtype"):
        return x
    sharding = getattr(x, "sharding", None)
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
        mesh: Any = sharding.mesh
        if not set(mesh.devices.flat) <= set(devices):
            if mesh.size > len(devices):
                raise ValueError(f"explain: the arguments' mesh has {mesh.size} devices, the target {len(devices)}")
            grid = mesh.devices.copy()
            grid.flat = devices[: mesh.size]
            sharding = NamedSharding(Mesh(grid, mesh.axis_names, mesh.axis_types), sharding.spec)
    elif not (sharding is not None and sharding.device_set <= set(devices)):
        sharding = SingleDeviceSharding(devices[0])
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


def _compiled(lowered: Lowered, may_not_fit: bool) -> tuple[Compiled | None, str]:
    """The compiled program, or why it does not fit into the memory of the device."""
    try:
        return lowered.compile(), ""
    except RuntimeError as error:
        if may_not_fit and "RESOURCE_EXHAUSTED" in str(error):
            return None, str(error)
        raise


def _excess(program: Program) -> str:
    """Says by how much the buffers exceed the memory of a GPU; its compiler does not refuse such programs."""
    sizes = program.xla_memory
    needed = sizes.get("argument", 0) + sizes.get("output", 0) + sizes.get("temp", 0) - sizes.get("alias", 0)
    memory = next((gpu.memory << 20 for gpu in GPUS.values() if gpu.name == program.device), None)
    if memory is None or needed <= memory:
        return ""
    return f"its buffers take {amount(needed)}; {program.device} has {amount(memory)}"


def _optimized(compiled: Compiled, module: str) -> str:
    """The optimized HLO with the locations of this module: a cached program may have those of an equal one."""
    text = compiled.as_text()
    origins = [o for c in read_hlo(text)[1] for op in c.instructions if op.opcode != "parameter" for o in op.origins]
    places = {origin.place for _, origin in read_module(module) if origin}
    if origins and all(o.name in module and (o.place is None or o.place in places) for o in origins):
        return text
    return compiled._again().as_text()


def _values(traced: Traced) -> list[Any]:
    return [*traced._of.captured, *traced._call.leaves]


def _check_values(traced: Traced) -> None:
    if any(isinstance(x, ShapeDtypeStruct | AbstractValue) for x in _values(traced)):
        raise ValueError("explain: measure=True runs the equations, and needs arrays rather than ShapeDtypeStructs")


def _measure(traced: Traced, program: Program) -> None:
    _, equations, found = read_jaxpr(traced.jaxpr)
    numbers = {id(eqn): e.number for e, eqn in zip(equations, found, strict=True)}
    for eqn, seconds in times_of(traced.jaxpr, _values(traced)):
        program.equations[numbers[id(eqn)]].seconds = seconds


@source.boundary
def diff(f: Callable, g: Callable, *args: Any, **kwargs: Any) -> Difference:
    """Returns where two functions part for the same arguments: the first equation that differs, and the lines that do.

    The jaxprs, StableHLO and optimized HLO are shown side by side. Lines that differ only in the names of variables are
    matched with each other, and marked.

    Args:
      f: function, jitted or not. Neither of the two is run.
      g: function to compare it with.
      *args: arguments of both, or `ShapeDtypeStruct`s in their place.
      **kwargs: arguments by keyword.

    Returns:
      A `Difference`: a notebook shows its page, `save(path)` writes it as an HTML file, `print` shows a summary. It is
      false if the two differ in names at most.

    Example:
        >>> minijax.diff(lambda x: jnp.sin(x) * 2, lambda x: jnp.cos(x) * 2, 1.0)
        The jaxprs part at equation 0:
          f: b:f32[] = sin a (...)
          g: b:f32[] = cos a (...)
        ...
    """
    return compare(*[_stages(h, args, kwargs) for h in (f, g)])


def _stages(f: Callable, args: Sequence, kwargs: dict) -> Stages:
    traced = _traced(f, args, kwargs)
    lowered = traced.lower()
    lines, equations, _ = read_jaxpr(traced.jaxpr)
    texts = {
        "jaxpr": [line.text for line in lines],
        "stablehlo": lowered.as_text().splitlines(),
        "hlo": lowered.compile().as_text().splitlines(),
    }
    return Stages(traced.fun_name, equations, texts)
