"""Lowers jaxprs to modules; programs that differ only in constants share one."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from minijax.base import cache, config, monitoring, stack
from minijax.base.symbolic.solver import variables_of
from minijax.dispatch.captured import warn_of_constants
from minijax.dispatch.lift import folded_constants, lift_constants
from minijax.dispatch.operands import operand
from minijax.dispatch.placement import Placement, ProgramOptions, without_sharding
from minijax.hlo import module
from minijax.hlo.program import Port, Program
from minijax.ir.effects import ordered_effects, shardable_ordered_effects
from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.types import Aval, ShapedArray, of_type
from minijax.partition.shardings import UNSPECIFIED
from minijax.run.arrays import transfer
from minijax.run.clients import client, guards
from minijax.run.programs import compile
from minijax.run.watching import profiler
from minijax.transforms.discharge import discharged
from minijax.transforms.prune import prune_closed

_SMALL_CONSTANT = 32
_LARGEST_FOLDED = 1 << 20  # bytes of a constant in the text of a module


class LoweredProgram(NamedTuple):
    """A lowered program: its module, which arguments it reads, and the constants that follow them."""

    module: module.Module
    program: Program
    used: tuple[int, ...]  # the numbers of the arguments that are read
    hidden: list
    placement: Placement
    name: str

    label = property(lambda self: f"jit({self.name})")

    @property
    def is_open(self) -> compile.Open:
        """The inputs and the results of the module whose shardings XLA chooses, where there are several devices."""
        if len(self.placement.devices) < 2:
            return compile.CLOSED
        tokens, ports = (False,) * len(self.module.ordered), (self.program.ins, self.program.outs)
        ins, outs = ((*tokens, *[port.sharding is None for port in side]) for side in ports)
        return (*ins, *(False,) * len(self.hidden)), outs

    closed = property(lambda self: self.program.closed)


@stack.deep
def lower_program(
    closed: ClosedJaxpr,
    options: ProgramOptions,
    placement: Placement,
    platforms: Sequence[str] = (),
    lifted: Collection[Var] = (),
) -> LoweredProgram:
    """Lowers a jaxpr to StableHLO, without unused arguments and dead equations unless `keep_unused`.

    Large constants, and those that are `lifted`, become arguments unless the program is exported or not to be run.
    """
    if (values := discharged(closed)) is not closed:
        closed, outs = values, zip(placement.outs, values.out_avals, strict=True)
        placement = placement._replace(outs=tuple([_as_weak_as(port, aval) for port, aval in outs]))
    _check_effects(closed, placement)
    variables = variables_of([a.shape for a in closed.in_avals if isinstance(a, ShapedArray)])
    keeps = options.keep_unused or bool(variables)  # the program checks the sizes of all arguments
    pruned, reads = prune_closed(closed, (True,) * len(closed.outvars), keeps)
    used = tuple(i for i, is_read in enumerate(reads) if is_read)
    is_run = options.export is None and all(map(client.is_attached, placement.devices[:1]))
    as_arguments = _argument_constants(pruned, lifted, placement) if is_run else {}
    platforms = tuple(platforms) or (client.lowering_platform(placement.devices[0]),)
    if any(port.donated for port in placement.ins):
        _check_donation(platforms)
    hidden, ports = _constant_ports(as_arguments, placement)
    program = Program(
        name=f"jit_{options.name}",
        closed=pruned,
        ins=tuple([placement.ins[i] for i in used]),
        outs=placement.outs,
        constants=ports,
        platforms=platforms,
        devices=placement.devices,
        scope=f"jit({options.name})",
        variables=variables,
        for_export=options.export is not None,
        overrides=dict(options.export or ()),
    )
    if placement.is_sharded or options.export is not None:
        program = program._replace(num_partitions=placement.num_devices, mesh=placement.mesh)
    else:
        program = program._replace(ins=without_sharding(program.ins), outs=without_sharding(program.outs))
    with profiler.TraceAnnotation("lower_sharding_computation"):
        lowered = module.lower_jaxpr(program)
    return LoweredProgram(lowered, program, used, hidden, placement, options.name)


def _as_weak_as(port: Port, aval: Aval) -> Port:
    """The port with the weak type of a value that was read from a reference: what was written last has its own."""
    is_same = not isinstance(aval, ShapedArray) or port.aval.weak_type == aval.weak_type
    return port if is_same else port._replace(aval=port.aval.update(weak_type=aval.weak_type))


def _argument_constants(closed: ClosedJaxpr, lifted: Collection[Var], placement: Placement) -> dict[Var, Any]:
    """The constants that become arguments: those that are lifted, and large ones that XLA does not compute with."""
    constants = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    chosen = {v: of_type(c, v.aval) for v, c in constants.items() if v in lifted or _is_large(v.aval)}
    if chosen and not placement.is_sharded:
        for v in folded_constants(closed).intersection(chosen).difference(lifted):
            if v.aval.size * v.aval.dtype.itemsize <= _LARGEST_FOLDED:
                del chosen[v]
    return chosen


def _check_effects(closed: ClosedJaxpr, placement: Placement) -> None:
    unshardable = shardable_ordered_effects.filter_not_in(ordered_effects.filter_in(closed.effects))
    if unshardable and placement.num_devices > 1:
        raise ValueError(f"The following ordered effects are not supported for more than 1 device: {unshardable}")


def _constant_ports(constants: dict[Var, Any], placement: Placement) -> tuple[list, dict[Var, Port]]:
    """The constants that become arguments, on the program's devices, and their ports."""
    values = list(constants.values())
    if not placement.is_sharded:
        return values, {v: Port(v.aval) for v in constants}
    if placement.devices:
        values = on_mesh(values, placement)
        shardings = [c._sig.sharding for c in values]
    else:
        shardings = [placement.replicated()] * len(values)
    kinds = [s.memory_kind if placement.names_memory else None for s in shardings]
    ports = {
        v: Port(v.aval, sharding=s, memory_kind=kind) for v, s, kind in zip(constants, shardings, kinds, strict=True)
    }
    return values, ports


_DONATING = ("cpu", "cuda", "rocm", "tpu", "neuron")


def _check_donation(platforms: Sequence[str]) -> None:
    if len({platform in _DONATING for platform in platforms}) > 1:
        raise NotImplementedError(
            "In multi-platform lowering either all or no lowering platforms should support donation. Lowering for "
            f"{tuple(platforms)}, of which {_DONATING} do"
        )


def _is_large(aval: Any) -> bool:
    return isinstance(aval, ShapedArray) and aval.ndim > 0 and aval.size * aval.dtype.itemsize > _SMALL_CONSTANT


def on_mesh(constants: Sequence, placement: Placement) -> list:
    """Transfers captured values to the devices of a program; an array that is on them already keeps its sharding."""
    everywhere = placement.replicated()
    with guards.explicit_transfers(free=True):
        arrays = [operand(c) for c in constants]
        return [
            x
            if x._sig.sharding._device_assignment == placement.devices and x._sig.layout is None
            else transfer.to_device(x, everywhere)
            for x in arrays
        ]


def lowering_logged(closed: ClosedJaxpr, options: ProgramOptions, placement: Placement) -> AbstractContextManager:
    """Logs the program that is compiled; returns a context manager that reports the time of lowering to listeners."""
    name = f"jit({options.name})"
    warn_of_constants(closed)
    shardings = [port.sharding for port in placement.ins]
    if not any(shardings) and placement.committed and placement.devices and not placement.is_sharded:
        shardings = [placement.replicated()] * len(shardings)
    shardings = [UNSPECIFIED if s is None else s for s in shardings]
    monitoring.log_program(name, closed.in_avals, shardings)
    return monitoring.timed(monitoring.LOWERING, name)


# ---- modules that several programs share --------------------------------------------------------------

_LARGEST_SHARED = 1 << 16  # the length of a module that is cheap to emit twice
_shared_texts = cache.BoundedDict(8192)


def lower_to_share(closed: ClosedJaxpr, options: ProgramOptions, placement: Placement, lift: bool) -> LoweredProgram:
    """Lowers a program to be compiled.

    Constants become operands if `lift`, or if an earlier program differs from this one in constants only.
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
    key = compile.digest(lowered.module.text), placement.devices, placement.committed, config.state()
    if key in _shared_texts:
        return lowered
    _shared_texts[key] = None
    return plain


def _is_worth_sharing(lowered: LoweredProgram, options: ProgramOptions) -> bool:
    text, placement = lowered.module.text, lowered.placement
    return (
        len(text) <= _LARGEST_SHARED
        and not (lowered.closed.effects or placement.is_sharded or options.compiler_options)
        and not compile.is_compiled(text, placement.devices)
    )
