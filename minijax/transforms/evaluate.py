"""Evaluation: programs compiled and run, single operations among them."""

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, config, dtypes, errors, monitoring, stack
from minijax.hlo import module
from minijax.ir import context, effects, state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from minijax.ir.primitive import programs_in
from minijax.ir.shardings import UNSPECIFIED, GSPMDSharding, NamedSharding
from minijax.ir.trace import EvalTrace, Tracer, escaped_message, eval_jaxpr, forbid_tracing, trace_to_jaxpr
from minijax.ir.types import ShapedArray
from minijax.run import client, compile, guards, spread, transfer, watch
from minijax.run.array import ArrayImpl, copied
from minijax.transforms.discharge import discharged
from minijax.transforms.lift import lift_constants
from minijax.transforms.placement import Placement, ProgramOptions, choose_placement
from minijax.transforms.prune import prune_closed

_SCALARS = frozenset((bool, int, float, complex))
_SMALL_CONSTANT = 32


class Lowered(NamedTuple):
    """A program's text, which arguments it takes, and the constants that follow them."""

    module: module.Module
    closed: ClosedJaxpr
    kept: tuple[int, ...]
    hidden: list
    donated: tuple[bool, ...]
    placement: Placement
    label: str


def operand(x: Any) -> ArrayImpl:
    """`x` as an array on a device."""
    kind = type(x)
    if kind is ArrayImpl:
        return x
    if kind is np.ndarray:
        is_float0 = x.dtype.kind == "V" and x.dtype == dtypes.float0
        return transfer.no_numbers(x) if is_float0 else transfer.from_numpy(x)
    if kind in _SCALARS or isinstance(x, np.number):
        return transfer.scalar_operand(x)
    if hasattr(x, "_sig"):
        return x
    if isinstance(x, Tracer):
        raise errors.UnexpectedTracerError(escaped_message(x))
    return transfer.to_device(x)


@stack.deep
def lower_program(
    closed: ClosedJaxpr,
    options: ProgramOptions,
    placement: Placement,
    platform: str = "",
    locate: Callable | None = None,
    lifted: Collection[Var] = (),
) -> Lowered:
    """The StableHLO of a jaxpr, without what nothing reads unless `keep_unused`; `locate`: see hlo.module.

    Large constants, and those that are `lifted`, are arguments.
    """
    closed = discharged(closed)
    pruned, used = prune_closed(closed, (True,) * len(closed.outvars), options.keep_unused)
    kept = tuple(i for i, u in enumerate(used) if u)
    donated = tuple(options.donated[i] for i in kept) if options.donated else ()
    hoisted, hidden = [], []
    for v, c in zip(pruned.jaxpr.constvars, pruned.consts, strict=True):
        if v in lifted or (
            isinstance(v.aval, ShapedArray) and v.aval.shape and v.aval.size * v.aval.dtype.itemsize > _SMALL_CONSTANT
        ):
            hoisted.append(v)
            hidden.append(c)
    info = pruned.debug_info
    laid: dict[str, Any] = {}
    if placement.is_spread:
        hidden = on_mesh(hidden, placement)
        ins = [placement.in_shardings[i] for i in kept] + [c._sig.sharding for c in hidden]
        laid = dict(
            in_shardings=ins,
            out_shardings=placement.out_shardings,
            num_partitions=len(placement.devices),
            memory_kinds=placement.memory_kinds(pruned.out_avals),
        )
    platform = platform or client.lowering_platform(placement.devices[0])
    made = module.lower_jaxpr(
        pruned,
        name=f"jit_{options.name}",
        platform=platform,
        donated=donated,
        hoisted=hoisted,
        arg_names=info.arg_names,
        result_names=_result_names(info, pruned),
        locate=locate,
        **laid,
    )
    return Lowered(made, pruned, kept, hidden, donated, placement, f"jit({options.name})")


def _result_names(info: DebugInfo, closed: ClosedJaxpr) -> Sequence[str] | None:
    paths = info.result_paths
    return paths if paths is not None and len(paths) == len(closed.outvars) else None


def on_mesh(constants: Sequence, placement: Placement) -> list:
    """Captured values on the devices of a program; a sharded array that is there stays as it lies."""
    everywhere = placement.alone()
    with guards.asked_for(free=True):
        arrays = [operand(c) for c in constants]
        return [
            x if x._sig.sharding._device_assignment == placement.devices else transfer.to_device(x, everywhere)
            for x in arrays
        ]


class Runner:
    """A compiled program on one device: call it with arrays, in the order of the jaxpr's inputs."""

    __slots__ = ("placement", "program", "run", "out_avals", "out_shardings", "device", "committed", "kept",
                 "hidden", "deleted")  # fmt: skip

    # It keeps no jaxpr: what is remembered of a jaxpr must not keep it.
    def __init__(self, lowered: Lowered, program: compile.Program):
        self.placement, self.program, self.kept = lowered.placement, program, lowered.kept
        self.device, self.committed = program.devices[0], lowered.placement.committed
        # The user may donate or delete an array that a function captured: the program has its own.
        self.hidden = [_own(c, self.device)._raw for c in lowered.hidden]
        self.out_avals = avals = tuple(lowered.closed.out_avals)
        self.out_shardings = outs = lowered.placement.result_shardings(len(avals))
        self.run = program.bind_outputs(avals, outs, self.committed, lowered.label)
        self.deleted = [self.kept[n] for n in lowered.module.aliases]
        _warn_of_lost(lowered, lowered.closed.in_avals)

    @property
    def in_shardings(self) -> list:
        """How the arguments that are read lie."""
        return self.placement.argument_shardings(self.kept)

    def __call__(self, operands: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        device = self.device
        raws = []
        for i in self.kept:
            x = operands[i]
            if x._sig.device is not device:
                x = transfer.to_device(x, device, committed=self.committed)
            raws.append(x._raw)
        results = self.run([*raws, *self.hidden] if self.hidden else raws)
        for i in self.deleted:
            if not operands[i].is_deleted():
                operands[i].delete()
        return results

    def takes(self, operands: Sequence) -> bool:
        """Whether operands with these signatures are run as they lie."""
        return arrays_on(operands, self.device)

    def shortcut(self, places: Sequence[int], rebuild: Callable | None) -> Callable[[Sequence], Any]:
        """A function of values that runs the program on those at `places`, arrays on its device.

        `rebuild` makes the result of the arrays that come out; None: there is one, which is the result.
        """
        at = [places[i] for i in self.kept]
        lost = [places[i] for i in self.deleted]
        hidden = self.hidden
        if hidden or watch.is_on():
            launch, finish, raws_of = self.run, rebuild or operator.itemgetter(0), compile.raws_at(at)
            run = lambda values: finish(launch(raws_of(values) + hidden))  # noqa: E731
        else:
            run = self.program.bind_call(self.out_avals, self.out_shardings, self.committed, at, rebuild)
        if not lost:
            return run

        def call(values):
            result = run(values)
            for i in lost:
                if not values[i].is_deleted():
                    values[i].delete()
            return result

        return call


def _warn_of_lost(lowered: Lowered, parts: Sequence) -> None:
    given, made = lowered.donated, lowered.module
    lost = [n for n, d in enumerate(given) if d and n not in made.aliases and n not in made.donors]
    if lost:
        kinds = ", ".join(parts[n].str_short() for n in lost)
        errors.warn(f"Some donated buffers were not usable: {kinds}.")


def _own(constant: Any, device: Any) -> ArrayImpl:
    """A captured value in memory that is no user's."""
    if type(constant) is np.ndarray and not constant.ndim and device is client.default_device():
        return transfer.scalar_operand(constant[()])
    return transfer.to_device(constant, device, copy=True)


class SpreadRunner:
    """A compiled program on several devices: call it with arrays, which are laid out as it wants them."""

    __slots__ = ("program", "run", "kept", "hidden", "deleted", "donated", "in_shardings", "out_shardings", "placed")
    device = None

    def __init__(self, lowered: Lowered, program: compile.Program):
        self.program, self.kept = program, lowered.kept
        closed, placement = lowered.closed, lowered.placement
        ins, outs = spread.chosen_shardings(program, len(closed.in_avals), len(closed.out_avals))
        given = [placement.in_shardings[i] for i in self.kept]
        self.in_shardings = _settled(given, ins, closed.in_avals, placement)
        outs = _settled(placement.out_shardings, outs, closed.out_avals, placement)
        if kinds := placement.memory_kinds(closed.out_avals):
            outs = [s.with_memory_kind(kind) for s, kind in zip(outs, kinds, strict=True)]
        self.out_shardings = outs
        self.hidden = [copied(transfer.to_device(c, c._sig.sharding))._raw for c in lowered.hidden]
        # For each argument, the signatures of arrays that need not be moved.
        self.placed: list[set] = [set() for _ in self.kept]
        self.run = spread.bind_spread(program, closed.out_avals, self.out_shardings, lowered.label)
        self.deleted = [*lowered.module.aliases]
        self.donated = [*self.deleted, *lowered.module.donors]
        if len(self.donated) < sum(lowered.donated):
            _warn_of_lost(lowered, list(map(module.on_one_device, closed.in_avals, given)))

    def takes(self, operands: Sequence[ArrayImpl]) -> bool:
        """Whether operands with these signatures are run as they lie, and none is donated."""
        pairs = zip(self.kept, self.in_shardings, strict=True)
        return not self.donated and all(spread.is_placed(operands[i]._sig, wanted) for i, wanted in pairs)

    def shortcut(self, places: Sequence[int], rebuild: Callable | None) -> Callable[[Sequence], Any]:
        """A function of values, those at `places` operands that the program takes, to its result."""
        run, hidden, at = self.run, self.hidden, [places[i] for i in self.kept]
        finish = rebuild or operator.itemgetter(0)
        return lambda values: finish(run([*[values[i]._raw for i in at], *hidden]))

    def __call__(self, operands: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        raws = []
        for i, wanted, placed in zip(self.kept, self.in_shardings, self.placed, strict=True):
            x = operands[i]
            if x._sig not in placed:
                if spread.is_placed(x._sig, wanted):
                    placed.add(x._sig)
                else:
                    x = transfer.to_device(x, wanted)
            raws.append(x._raw)
        if self.donated:
            spread.check_donated(raws, self.donated)
        results = self.run([*raws, *self.hidden] if self.hidden else raws)
        for n in self.deleted:
            x = operands[self.kept[n]]
            if x._raw is raws[n] and not x.is_deleted():
                x.delete()
        return results


def _settled(given: Sequence, chosen: Sequence, avals: Sequence, placement: Placement) -> list:
    """Shardings of arguments or results: those that were asked for, and what XLA made of the others."""
    if len(placement.devices) == 1:
        return [placement.alone() if s is None else s for s in given]
    return [
        s if isinstance(s, NamedSharding | GSPMDSharding) else spread.named_sharding(placement.mesh, hlo, aval.ndim)
        for s, hlo, aval in zip(given, chosen, avals, strict=False)
    ]


def compile_program(
    closed: ClosedJaxpr, options: ProgramOptions, placement: Placement, lift: bool = False
) -> Runner | SpreadRunner:
    """Lowers and compiles a jaxpr for the devices of its placement.

    Constants become operands if `lift`, or if an earlier program differs from this one in constants alone.
    """
    if options.donated and watch.is_checking():
        options = options._replace(donated=())  # what gave a NaN is run again
    return compile_lowered(told_of(_sharing, closed, options, placement, lift), options)


def told_of(
    lower: Callable[..., Lowered], closed: ClosedJaxpr, options: ProgramOptions, placement: Placement, *rest: Any
) -> Lowered:
    """What `lower` makes of all this; listeners and the log hear of it."""
    name = f"jit({options.name})"
    laid = placement.in_shardings if placement.is_spread else [UNSPECIFIED] * len(closed.in_avals)
    monitoring.log_program(name, closed.in_avals, laid)
    with monitoring.timed(monitoring.LOWERING, name):
        return lower(closed, options, placement, *rest)


def _sharing(closed: ClosedJaxpr, options: ProgramOptions, placement: Placement, lift: bool) -> Lowered:
    lowered = None if lift else lower_program(closed, options, placement)
    if lowered is None or _is_worth_sharing(lowered, options):
        lowered = _lifted(closed, options, placement, lowered)
    return lowered


_LARGEST_SHARED = 1 << 16  # the length of a text that is cheap to write twice
_shared_texts = cache.BoundedDict(8192)


def _is_worth_sharing(lowered: Lowered, options: ProgramOptions) -> bool:
    made, placement = lowered.module, lowered.placement
    return (
        len(made.text) <= _LARGEST_SHARED
        and not (lowered.closed.effects or placement.is_spread or options.compiler_options)
        and not compile.is_compiled(made.text, placement.devices)
    )


def _lifted(closed: ClosedJaxpr, options: ProgramOptions, placement: Placement, plain: Lowered | None) -> Lowered:
    """The program with constants as operands, unless there is a plain one and this one is new."""
    found = lift_constants(closed, plain is not None)
    if not found.values:
        return plain or lower_program(closed, options, placement)
    lowered = lower_program(found.closed, options, placement, lifted=found.values)
    if plain is None:
        is_small = len(lowered.module.text) <= _LARGEST_SHARED
        return lowered if is_small else lower_program(closed, options, placement)
    key = compile.digest(lowered.module.text), placement, config.state()
    if key in _shared_texts:
        return lowered
    _shared_texts[key] = None
    return plain


def compile_lowered(lowered: Lowered, options: ProgramOptions) -> Runner | SpreadRunner:
    placement, made = lowered.placement, lowered.module
    with monitoring.timed(monitoring.COMPILING, lowered.label):
        monitoring.record_event(monitoring.CACHE_REQUEST)
        program = compile.compile_text(
            made.text, name=made.name, devices=placement.devices, options=dict(options.compiler_options)
        )
    with guards.asked_for(free=True):
        return SpreadRunner(lowered, program) if placement.is_spread else Runner(lowered, program)


@cache.weak_cache
def _runs_of(closed: ClosedJaxpr) -> cache.BoundedDict:
    """What runs a jaxpr, by how it is compiled and the signatures of its operands."""
    return cache.BoundedDict(256)


def run_closed(
    closed: ClosedJaxpr,
    operands: Sequence,
    how: tuple,
    options_of: Callable[..., ProgramOptions] = ProgramOptions,
    operation: str = "",
) -> list[ArrayImpl]:
    """Compiles a jaxpr, with the options of `how`, once per kind of operands, and runs it.

    `operation`: the primitive that the jaxpr consists of, if it is one.
    """
    arrays = [x if type(x) is ArrayImpl else operand(x) for x in operands]
    sigs = [x._sig for x in arrays]
    key = (config.state(), *how, *sigs)
    runs = _runs_of(closed)
    run = runs.get(key)
    if run is None:
        run = runs.once(
            key, lambda: config.run_as_of(key[0], _compile_closed, closed, arrays, options_of(*how), operation)
        )
    return run(arrays)


def _compile_closed(closed, arrays, options, operation):
    runner = compile_program(closed, options, choose_placement([x._sig for x in arrays], options, closed))
    run = _direct(runner, arrays)
    if operation:
        return watch.named(run, operation)
    return watch.explained(run, lambda arrays: eval_jaxpr(closed.jaxpr, closed.consts, *arrays))


def _direct(runner, arrays) -> Callable[[Sequence[ArrayImpl]], list]:
    """The shortest way from arrays with these signatures to all results."""
    if not arrays_on(arrays, runner.device) or runner.deleted or len(runner.kept) < len(arrays):
        return runner
    if len(runner.out_avals) != 1:
        return runner.shortcut(range(len(arrays)), list)
    run = runner.shortcut(range(len(arrays)), None)
    return lambda arrays: [run(arrays)]


# ---- single operations ------------------------------------------------------------------------------

_operations = cache.BoundedDict(16384)


def one_equation(primitive: Any, avals: Sequence, params: dict) -> ClosedJaxpr:
    """The jaxpr of a single operation."""
    invars = [Var(a) for a in avals]
    out_avals, effs = primitive.typed(avals, params)
    outvars = [Var(a) for a in out_avals]
    eqn = JaxprEqn(invars, outvars, primitive, params, effs, None, context.EMPTY)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], effects.join(effs), DebugInfo("jit", primitive.name)))


def evaluate(primitive: Any, operands: Sequence, params: dict, compiled: bool = False) -> list:
    """Runs one operation at once, as a program of its own if `compiled`."""
    if primitive.impl is not None and not compiled:
        for x in operands:
            if isinstance(x, Tracer):
                raise errors.UnexpectedTracerError(escaped_message(x))
        if "impl" in primitive.__dict__:
            return primitive.evaluate(operands, params)
        return primitive.impl(*operands, **params)
    for x in operands:
        if type(x) is not ArrayImpl:
            operands = [operand(x) for x in operands]
            break
    sigs = [x._sig for x in operands]
    if params:
        # With the names: rules bind the same parameters in other orders.
        key = (primitive, config.state(), *params, cache.key(tuple(params.values())), *sigs)
    else:
        key = (primitive, config.state(), *sigs)
    run = _operations.get(key)
    if run is None:
        run = _first_run(primitive, operands, params, sigs, key)
    return run(operands)


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Compiles and runs one operation, whatever its own way to be run."""
    results = evaluate(prim, args, params, compiled=True)
    return results if prim.multiple_results else results[0]


def _first_run(primitive, arrays, params, sigs, key):
    make = lambda: config.run_as_of(key[1], _compile_operation, primitive, arrays, params)  # noqa: E731
    owner = next(programs_in(params.values()), None)
    if owner is None:
        return _operations.once(key, make)
    values = cache.key(_without(owner, tuple(params.values())))
    return _operations_of(owner).once((primitive, key[1], *params, values, *sigs), make)


@cache.weak_cache
def _operations_of(program: Any) -> cache.BoundedDict:
    """The operations whose parameters hold a jaxpr or a function; they die with it."""
    return cache.BoundedDict(256)


def _without(owner: Any, values: tuple) -> tuple:
    return tuple([None if v is owner else _without(owner, v) if isinstance(v, tuple) else v for v in values])


def _compile_operation(primitive, arrays, params) -> Callable[[Sequence[ArrayImpl]], list]:
    forbid_tracing(primitive.name)
    with state.set_current_trace(None):
        with monitoring.timed(monitoring.TRACING, primitive.name):
            closed = one_equation(primitive, [x._sig.aval for x in arrays], params)
        runner = _compile_for(closed, primitive.name, arrays, primitive.lift is not None)
        return watch.named(_direct(runner, arrays), primitive.name)


def compile_function(fun: Callable, arrays: Sequence[ArrayImpl], name: str) -> Callable[[Sequence], Any]:
    """What runs a flat function of one result, as one program, on arrays with the signatures of these."""
    jaxpr, consts = trace_to_jaxpr(fun, [x._sig.aval for x in arrays], DebugInfo("jit", name))
    runner = _compile_for(ClosedJaxpr(jaxpr, consts), name, arrays)
    if arrays_on(arrays, runner.device):
        return watch.named(runner.shortcut(range(len(arrays)), None), name)
    return watch.named(lambda arrays: runner(arrays)[0], name)


def _compile_for(closed, name, arrays, lift=False):
    options = ProgramOptions(name, keep_unused=True)
    placement = choose_placement([x._sig for x in arrays], options, closed)
    return compile_program(closed, options, placement, lift and not (placement.is_spread or closed.effects))


def arrays_on(leaves: Sequence, device: Any) -> bool:
    """Whether all of these are arrays on that one device."""
    return device is not None and all(isinstance(x, ArrayImpl) and x._sig.device is device for x in leaves)


EvalTrace.process = staticmethod(evaluate)
