"""Evaluation: programs compiled and run, single operations among them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base import cache, config, errors
from minijax.hlo import module
from minijax.ir import context, effects, state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from minijax.ir.trace import EvalTrace, Tracer, escaped_message
from minijax.ir.types import ShapedArray
from minijax.run import client, compile, transfer
from minijax.run.array import ArrayImpl
from minijax.transforms.prune import prune_closed

_SCALARS = frozenset((bool, int, float, complex))
_SMALL_CONSTANT = 32


class ProgramOptions(NamedTuple):
    """How a jaxpr is compiled, besides what it computes."""

    name: str
    donated: tuple[bool, ...] = ()
    keep_unused: bool = False
    device: Any = None
    compiler_options: tuple[tuple[str, Any], ...] = ()


class Lowered(NamedTuple):
    """A program's text, which arguments it takes, and the constants that follow them."""

    module: module.Module
    closed: ClosedJaxpr
    kept: tuple[int, ...]
    hidden: list
    donated: tuple[bool, ...]


def operand(x: Any) -> ArrayImpl:
    """`x` as an array on a device."""
    kind = type(x)
    if kind is ArrayImpl or hasattr(x, "_sig"):
        return x
    if kind in _SCALARS:
        return transfer.scalar_operand(x)
    if isinstance(x, Tracer):
        raise errors.UnexpectedTracerError(escaped_message(x))
    return transfer.to_device(x)


def lower_program(closed: ClosedJaxpr, options: ProgramOptions, platform: str,
                  locate: Callable | None = None) -> Lowered:  # fmt: skip
    """The StableHLO of a jaxpr, without what nothing reads unless `keep_unused`; `locate`: see hlo.module."""
    pruned, used = prune_closed(closed, (True,) * len(closed.outvars), options.keep_unused)
    kept = tuple(i for i, u in enumerate(used) if u)
    donated = tuple(options.donated[i] for i in kept) if options.donated else ()
    hoisted, hidden = [], []
    for v, c in zip(pruned.jaxpr.constvars, pruned.consts, strict=True):
        if (
            isinstance(v.aval, ShapedArray)
            and v.aval.shape
            and v.aval.size * v.aval.dtype.itemsize > _SMALL_CONSTANT
        ):
            hoisted.append(v)
            hidden.append(c)
    info = pruned.debug_info
    made = module.lower_jaxpr(
        pruned, name=f"jit_{options.name}", platform=platform, donated=donated, hoisted=hoisted,
        arg_names=info.arg_names, result_names=_result_names(info, pruned), locate=locate,
    )  # fmt: skip
    return Lowered(made, pruned, kept, hidden, donated)


def _result_names(info: DebugInfo, closed: ClosedJaxpr) -> Sequence[str] | None:
    paths = info.result_paths
    return paths if paths is not None and len(paths) == len(closed.outvars) else None


def choose_device(operands: Sequence[ArrayImpl], options: ProgramOptions) -> tuple[Any, bool]:
    """The device to run on, and whether an operand (or the option) commits the results to it.

    Raises ValueError if operands are committed to different devices.
    """
    if options.device is not None:
        return options.device, True
    found = None
    for x in operands:
        sig = x._sig
        if sig.committed:
            if found is not None and sig.device is not found:
                raise ValueError(
                    f"Received incompatible devices for jitted computation. Got arguments of {options.name} "
                    f"committed to {found} and to {sig.device}."
                )
            found = sig.device
    return (client.default_device(), False) if found is None else (found, True)


class Runner:
    """A compiled program: call it with arrays, in the order of the jaxpr's inputs."""

    __slots__ = ("lowered", "program", "run", "device", "committed", "kept", "hidden", "deleted")

    def __init__(self, lowered: Lowered, program: compile.Program, device: Any, committed: bool):
        self.lowered, self.program = lowered, program
        self.device, self.committed = device, committed
        self.kept = lowered.kept
        sharding = client.single_device_sharding(device)
        # The user may donate or delete an array that a function captured: the program has its own.
        self.hidden = [transfer.to_device(c, device, copy=True)._raw for c in lowered.hidden]
        avals = lowered.closed.out_avals
        self.run = program.bind_outputs(avals, [sharding] * len(avals), committed)
        self.deleted = [self.kept[n] for n in lowered.module.aliases]
        lost = [n for n, donated in enumerate(lowered.donated) if donated and n not in lowered.module.aliases]
        if lost:
            kinds = ", ".join(lowered.closed.in_avals[n].str_short() for n in lost)
            errors.warn(f"Some donated buffers were not usable: {kinds}.")

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


def compile_program(closed: ClosedJaxpr, options: ProgramOptions, device: Any, committed: bool) -> Runner:
    """Lowers and compiles a jaxpr for one device."""
    lowered = lower_program(closed, options, device.platform)
    return compile_lowered(lowered, options, device, committed)


def compile_lowered(lowered: Lowered, options: ProgramOptions, device: Any, committed: bool) -> Runner:
    program = compile.compile_text(
        lowered.module.text, name=lowered.module.name, device=device, options=dict(options.compiler_options)
    )
    return Runner(lowered, program, device, committed)


@cache.weak_cache
def _runner(closed: ClosedJaxpr, options: ProgramOptions, device: Any, committed: bool, key: Any) -> Runner:
    return compile_program(closed, options, device, committed)


def run_closed(closed: ClosedJaxpr, operands: Sequence, options: ProgramOptions) -> list[ArrayImpl]:
    """Compiles a jaxpr once per device, and runs it."""
    arrays = [operand(x) for x in operands]
    device, committed = choose_device(arrays, options)
    return _runner(closed, options, device, committed, config.state())(arrays)


# ---- single operations ------------------------------------------------------------------------------

_operations = cache.BoundedDict(16384)


def one_equation(primitive: Any, avals: Sequence, params: dict) -> ClosedJaxpr:
    """The jaxpr of a single operation."""
    invars = [Var(a) for a in avals]
    out_avals, effs = primitive.typed(avals, params)
    outvars = [Var(a) for a in out_avals]
    eqn = JaxprEqn(primitive, invars, outvars, params, effs, None, context.EMPTY)
    return ClosedJaxpr(
        Jaxpr([], invars, outvars, [eqn], effects.join(effs), DebugInfo("jit", primitive.name))
    )


def evaluate(primitive: Any, operands: Sequence, params: dict) -> list:
    """Runs one operation at once."""
    if primitive.impl is not None:
        return primitive.impl(*operands, **params)
    arrays = [x if type(x) is ArrayImpl else operand(x) for x in operands]
    # With the names: rules bind the same parameters in other orders.
    named = (*params, cache.key(tuple(params.values()))) if params else ()
    key = (primitive, named, config.state(), client.default_device(), *(x._sig for x in arrays))
    run = _operations.get(key)
    if run is None:
        run = _operations[key] = _compile_operation(primitive, arrays, params)
    return run(arrays)


def _compile_operation(primitive, arrays, params) -> Callable[[Sequence[ArrayImpl]], list]:
    options = ProgramOptions(primitive.name, keep_unused=True)
    device, committed = choose_device(arrays, options)
    with state.set_current_trace(None):
        closed = one_equation(primitive, [x._sig.aval for x in arrays], params)
        runner = compile_program(closed, options, device, committed)
    if all(x._sig.device is device for x in arrays):
        run = runner.run
        return lambda arrays: run([x._raw for x in arrays])
    return runner


EvalTrace.evaluate = staticmethod(evaluate)
