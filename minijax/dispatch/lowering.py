"""Jaxprs as programs' texts; those that differ in constants alone share one."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from minijax.base import cache, config, monitoring, stack
from minijax.base.symbolic_solver import variables_of
from minijax.dispatch.captured import warn_of_constants
from minijax.dispatch.lift import lift_constants
from minijax.dispatch.operands import operand
from minijax.dispatch.placement import Placement, ProgramOptions
from minijax.hlo import module
from minijax.ir.effects import ordered_effects, shardable_ordered_effects
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Var
from minijax.ir.types import ShapedArray, of_type
from minijax.partition.shardings import UNSPECIFIED
from minijax.run import client, compile, guards, profiler, transfer
from minijax.transforms.discharge import discharged
from minijax.transforms.prune import prune_closed

_SMALL_CONSTANT = 32


class Lowered(NamedTuple):
    """A program's text, which arguments it takes, and the constants that follow them."""

    module: module.Module
    closed: ClosedJaxpr
    used: tuple[int, ...]
    hidden: list
    donated: tuple[bool, ...]
    placement: Placement
    name: str

    label = property(lambda self: f"jit({self.name})")


@stack.deep
def lower_program(
    closed: ClosedJaxpr,
    options: ProgramOptions,
    placement: Placement,
    platforms: Sequence[str] = (),
    lifted: Collection[Var] = (),
) -> Lowered:
    """The StableHLO of a jaxpr, without what nothing reads unless `keep_unused`.

    Large constants, and those that are `lifted`, are arguments, but not where programs are exported.
    """
    closed = discharged(closed)
    on_one = ordered_effects.filter_in(closed.effects) if placement.num_devices > 1 else []
    if unshardable := shardable_ordered_effects.filter_not_in(on_one):
        raise ValueError(f"The following ordered effects are not supported for more than 1 device: {unshardable}")
    variables = variables_of([a.shape for a in closed.in_avals if isinstance(a, ShapedArray)])
    keeps = options.keep_unused or bool(variables)  # for all sizes are to be checked
    pruned, reads = prune_closed(closed, (True,) * len(closed.outvars), keeps)
    used = tuple(i for i, is_read in enumerate(reads) if is_read)
    donated = tuple(options.donated[i] for i in used) if options.donated else ()
    constants = zip(pruned.jaxpr.constvars, pruned.consts, strict=True)
    as_arguments = {v: of_type(c, v.aval) for v, c in constants if v in lifted or _is_large(v.aval)}
    if options.export is not None:
        as_arguments.clear()
    hidden, laid = _laid(list(as_arguments.values()), pruned, used, options, placement)
    platforms = platforms or (client.lowering_platform(placement.devices[0]),)
    if options.donated:
        _check_donation(platforms)
    info = pruned.debug_info
    names: dict[str, Any] = dict(
        name=f"jit_{options.name}", arg_names=info.arg_names, result_names=_result_names(info, pruned)
    )
    names["scope"] = f"jit({options.name})"
    exporting: dict[str, Any] = {}
    if (leaving := options.export) is not None:
        paths = [leaving.paths[i] for i in used]
        exporting = dict(for_export=True, overrides=dict(leaving.rules), arg_paths=paths)
    arguments: dict[str, Any] = dict(donated=donated, hoisted=list(as_arguments), devices=placement.devices)
    arguments["variables"] = variables
    with profiler.TraceAnnotation("lower_sharding_computation"):
        text = module.lower_jaxpr(pruned, platforms=platforms, **names, **arguments, **laid, **exporting)
    return Lowered(text, pruned, used, hidden, donated, placement, options.name)


def _laid(
    hidden: list, closed: ClosedJaxpr, used: Sequence[int], options: ProgramOptions, placement: Placement
) -> tuple[list, dict[str, Any]]:
    """The hidden arguments where the program wants them, and what its text says of how arguments and results lie."""
    laid: dict[str, Any] = {}
    if placement.is_sharded or options.export is not None and placement.in_shardings:
        ins: list = [placement.in_shardings[i] for i in used]
        if placement.devices:
            hidden = on_mesh(hidden, placement)
            ins += [c._sig.sharding for c in hidden]
        else:
            ins += [placement.replicated()] * len(hidden)
        laid = dict(in_shardings=ins, out_shardings=placement.out_shardings, num_partitions=placement.num_devices)
        laid["mesh"] = placement.mesh
        laid["memory_kinds"] = placement.memory_kinds(closed.out_avals)
    if placement.in_layouts or placement.out_layouts:
        laid["arg_attrs"] = module.layout_attributes([placement.in_layouts[i] for i in used])
        laid["result_attrs"] = module.layout_attributes(placement.out_layouts)
    return hidden, laid


_DONATING = ("cpu", "cuda", "rocm", "tpu", "neuron")


def _check_donation(platforms: Sequence[str]) -> None:
    if len({platform in _DONATING for platform in platforms}) > 1:
        raise NotImplementedError(
            "In multi-platform lowering either all or no lowering platforms should support donation. Lowering for "
            f"{tuple(platforms)}, of which {_DONATING} do"
        )


def _is_large(aval: Any) -> bool:
    return isinstance(aval, ShapedArray) and aval.ndim > 0 and aval.size * aval.dtype.itemsize > _SMALL_CONSTANT


def _result_names(info: DebugInfo, closed: ClosedJaxpr) -> Sequence[str] | None:
    paths = info.result_paths
    return paths if paths is not None and len(paths) == len(closed.outvars) else None


def on_mesh(constants: Sequence, placement: Placement) -> list:
    """Captured values on the devices of a program; a sharded array that is there stays as it lies."""
    everywhere = placement.replicated()
    with guards.asked_for(free=True):
        arrays = [operand(c) for c in constants]
        return [
            x
            if x._sig.sharding._device_assignment == placement.devices and x._sig.layout is None
            else transfer.to_device(x, everywhere)
            for x in arrays
        ]


def lowering_logged(closed: ClosedJaxpr, options: ProgramOptions, placement: Placement) -> AbstractContextManager:
    """What a program is lowered in: the log says what is compiled, listeners hear how long it took."""
    name = f"jit({options.name})"
    warn_of_constants(closed)
    laid = placement.in_shardings or [placement.replicated() if placement.committed else None] * len(closed.in_avals)
    laid = [UNSPECIFIED if s is None else s for s in laid]
    monitoring.log_program(name, closed.in_avals, laid)
    return monitoring.timed(monitoring.LOWERING, name)


# ---- texts that several programs share --------------------------------------------------------------

_LARGEST_SHARED = 1 << 16  # the length of a text that is cheap to write twice
_shared_texts = cache.BoundedDict(8192)


def lower_to_share(closed: ClosedJaxpr, options: ProgramOptions, placement: Placement, lift: bool) -> Lowered:
    """The program as it is to be compiled.

    Constants are operands if `lift`, or if an earlier program differs from this one in constants alone.
    """
    if lift:
        constants = lift_constants(closed, False)
        lowered = lower_program(constants.closed, options, placement, lifted=constants.values)
        is_small = len(lowered.module.text) <= _LARGEST_SHARED
        return lowered if is_small or not constants.values else lower_program(closed, options, placement)
    plain = lower_program(closed, options, placement)
    if plain.module.callbacks or plain.module.watchers or not _is_worth_sharing(plain, options):
        return plain
    constants = lift_constants(closed, True)
    if not constants.values:
        return plain
    lowered = lower_program(constants.closed, options, placement, lifted=constants.values)
    key = compile.digest(lowered.module.text), placement, config.state()
    if key in _shared_texts:
        return lowered
    _shared_texts[key] = None
    return plain


def _is_worth_sharing(lowered: Lowered, options: ProgramOptions) -> bool:
    text, placement = lowered.module.text, lowered.placement
    return (
        len(text) <= _LARGEST_SHARED
        and not (lowered.closed.effects or placement.is_sharded or options.compiler_options)
        and not compile.is_compiled(text, placement.devices)
    )
