"""Executables: loaded programs with their placement."""

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, dtypes, errors, monitoring, tree
from minijax.dispatch.dumps import dump_jaxpr, dump_program
from minijax.dispatch.lowering import Lowered, lower_to_share, lowering_logged
from minijax.dispatch.placement import Placement, ProgramOptions, check_argument_layouts, choose_placement, mesh_of_type
from minijax.hlo import module
from minijax.ir.effects import FfiEffect
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.types import ShapedArray, token_type
from minijax.partition.layouts import Format, Layout, settled
from minijax.partition.shardings import GSPMDSharding, NamedSharding
from minijax.run import client, compile, guards, launch, profiler, tokens, transfer, watch
from minijax.run.array import ArrayImpl, copied, hidden, signature
from minijax.run.compiled_shardings import chosen_shardings, has_sharding, sharding_of_result


class Programs(cache.Keyed):
    """A cache of programs: functions of operands, by keys that begin with the options' state."""

    __slots__ = ()


class Executable:
    """A loaded program with its placement: call it with arrays, in the order of the jaxpr's inputs."""

    __slots__ = (
        *"loaded device used hidden in_shardings out_shardings in_layouts out_layouts aliased donated".split(),
        *"_signatures _run _placed has_effects _constants _label needs_process".split(),
    )

    # It keeps no jaxpr: what is remembered of a jaxpr must not keep it.
    def __init__(self, lowered: Lowered, loaded: compile.Loaded):
        placement, avals = lowered.placement, lowered.closed.out_avals
        self.loaded, self.used = loaded, lowered.used
        self.device = None if placement.is_sharded else loaded.devices[0]
        if placement.is_sharded:
            self.in_shardings, self.out_shardings = _settled_shardings(lowered, loaded)
        else:
            self.in_shardings = placement.argument_shardings(self.used)
            asked = [placement.in_shardings[i] for i in self.used] if placement.in_shardings else ()
            laid = placement.result_shardings(len(avals))
            self.out_shardings = _named_as_argument(laid, avals, placement, asked, lowered.closed.in_avals)
        # The user may donate or delete an array that a function captured: the program has its own.
        self._keep_constants([_copied_constant(c, self.device) for c in lowered.hidden])
        is_committed = placement.committed or placement.is_sharded
        self.in_layouts, self.out_layouts = _settled_layouts(lowered, loaded)
        laid = zip(avals, self.out_shardings, self.out_layouts, strict=True)
        self._signatures = [signature(aval, s, is_committed, layout) for aval, s, layout in laid]
        ordered, calls = lowered.module.ordered, lowered.module.callbacks
        effects = lowered.closed.effects
        self.has_effects = bool(ordered or calls or FfiEffect() in effects)
        if ordered or calls and effects:
            self._bind(_effects(ordered, placement), lowered.label)
        else:
            self._bind(self._noted(calls), lowered.label)
        self.needs_process = bool(ordered or calls or lowered.module.watchers)
        self.aliased = lowered.module.aliases  # of the inputs, by number, those whose memory a result takes
        self.donated = [*self.aliased, *lowered.module.donors]
        _warn_of_unused_donations(lowered)

    def _noted(self, calls: Sequence = ()) -> launch.Effects | None:
        """How a program without ordered effects is waited for."""
        return launch.Effects(note=tokens.note_calling if calls else tokens.note) if self.has_effects else None

    def _keep_constants(self, constants: Sequence[ArrayImpl]) -> None:
        self._constants = [hidden(getattr(x, "_base_array", x)) for x in constants]  # of keys the numbers
        self.hidden = [x._raw for x in self._constants]

    def _bind(self, effects: launch.Effects | None, label: str) -> None:
        self._label = label
        self._run = watch.watched(launch.bind(self.loaded, self._signatures, effects), label)
        # For each input, the signatures of arrays that need not be moved.
        self._placed: list[set] = [set() for _ in self.used]

    def state(self) -> dict[str, Any]:
        """All but the loaded program, for another process; see `restored`."""
        state = {name: getattr(self, name) for name in _STATE}
        constants = [(x._value, None if self.device else x._sig.sharding) for x in self._constants]
        results = [(s.aval, s.sharding, s.committed, s.layout) for s in self._signatures]
        return {**state, "constants": constants, "results": results}

    @classmethod
    def restored(cls, loaded: compile.Loaded, state: dict[str, Any]) -> "Executable":
        """The executable whose state another process has written, of the program loaded again."""
        self = cls.__new__(cls)
        self.loaded, self.needs_process = loaded, False
        for name in _STATE:
            setattr(self, name, state[name])
        self.device = loaded.devices[0] if state["device"] is not None else None
        places = [(value, sharding or self.device) for value, sharding in state["constants"]]
        self._keep_constants([transfer.to_device(value, place, copy=True) for value, place in places])
        self._signatures = [signature(*fields) for fields in state["results"]]
        self._bind(self._noted(), self._label)
        return self

    def __call__(self, operands: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        raws = []
        for n, (i, placed) in enumerate(zip(self.used, self._placed, strict=True)):
            x = operands[i]
            if x._sig not in placed:
                x = self._as_placed(x, n)
            raws.append(x._raw)
        if self.donated and self.device is None:
            launch.check_donated(raws, self.donated)
        results = self._run([*raws, *self.hidden] if self.hidden else raws)
        for n in self.donated:
            x = operands[self.used[n]]
            is_taken = n in self.aliased and x._raw is raws[n]
            if (is_taken or self._is_spread(x, n)) and not x.is_deleted():
                x.delete()
        return results

    def _is_spread(self, x: ArrayImpl, n: int) -> bool:
        """Whether an array of one device is handed whole to that device and others."""
        asked, here = self.in_shardings[n], x._sig.device
        return self.device is None and here is not None and asked.is_fully_replicated and here in asked.device_set

    def _as_placed(self, x: Any, n: int) -> Any:
        if not self._lies(x, n):
            if x._sig.aval is token_type:
                return transfer.moved_token(x, self.device or self.in_shardings[n])
            if (layout := self.in_layouts[n]) is not None:
                return transfer.to_device(x, Format(layout, self.in_shardings[n]))
            return transfer.to_device(x, self.device or self.in_shardings[n])
        self._placed[n].add(x._sig)
        return x

    def _lies(self, x: ArrayImpl, n: int) -> bool:
        """Whether an array lies as the program expects its input `n`."""
        if x._sig.layout != self.in_layouts[n]:
            return False
        if x._sig.aval is token_type:
            return x._sig.sharding._device_assignment == tuple(self.loaded.devices)
        if self.device is not None:
            return x._sig.device is self.device
        return has_sharding(x._sig, self.in_shardings[n])

    def takes(self, operands: Sequence[ArrayImpl]) -> bool:
        """Whether operands with these signatures are run as they lie."""
        return all(self._lies(operands[i], n) for n, i in enumerate(self.used))

    def caller(self, operands: Sequence[ArrayImpl], finish: Callable | None = None) -> Callable[[Sequence], Any]:
        """The shortest way from operands with the signatures of these to what `finish` makes of the results.

        Without `finish` there is one result, which is given.
        """
        donates_shards = self.donated and self.device is None
        if donates_shards or not self.takes(operands):
            of_results = finish or operator.itemgetter(0)
            return lambda operands: of_results(self(operands))
        raws_of = launch.raws_at(self.used, len(operands), self.hidden)
        if self.has_effects or watch.is_on():
            run, of_results = self._run, finish or operator.itemgetter(0)
            call = lambda operands: of_results(run(raws_of(operands)))  # noqa: E731
        else:
            call = launch.bind_call(self.loaded, self._signatures, raws_of, finish)
        return self._donating(call) if self.aliased else call

    def tree_caller(self, operands: Sequence[ArrayImpl], out_tree: Any) -> Callable[[Sequence], Any]:
        """As `caller`, to the results as a tree."""
        return self.caller(operands, None if tree.treedef_is_strict_leaf(out_tree) else out_tree.unflatten)

    def _donating(self, call: Callable[[Sequence], Any]) -> Callable[[Sequence], Any]:
        places = [self.used[n] for n in self.aliased]

        def call_and_delete(operands):
            result = call(operands)
            for i in places:
                if not operands[i].is_deleted():
                    operands[i].delete()
            return result

        return call_and_delete


_STATE = "device used in_shardings out_shardings in_layouts out_layouts aliased donated has_effects _label".split()


def _effects(ordered: Sequence, placement: Placement) -> launch.Effects:
    where = placement.replicated()
    return launch.Effects(ordered, signature(token_type, where, True), lambda: transfer.fresh_token(where)._raw)


def _warn_of_unused_donations(lowered: Lowered) -> None:
    text = lowered.module
    unused = [n for n, d in enumerate(lowered.donated) if d and n not in text.aliases and n not in text.donors]
    if not unused:
        return
    parts: Sequence = lowered.closed.in_avals
    if lowered.placement.is_sharded:
        shardings = [lowered.placement.in_shardings[i] for i in lowered.used]
        parts = list(map(module.on_one_device, parts, shardings))
    kinds = ", ".join(parts[n].str_short() for n in unused)
    errors.warn(f"Some donated buffers were not usable: {kinds}.")


def _copied_constant(constant: Any, device: Any) -> ArrayImpl:
    """A captured value in memory of the program's own."""
    if isinstance(constant, ArrayImpl) and not constant.is_fully_addressable:
        raise RuntimeError(
            "Closing over jax.Array that spans non-addressable (non process local) devices is not allowed: pass "
            f"{constant.aval.str_short()} as an argument to the function."
        )
    if device is None:
        return copied(transfer.to_device(constant, constant._sig.sharding))
    if type(constant) is np.ndarray and not constant.ndim and device is client.default_device():
        return transfer.scalar_operand(constant[()])
    return transfer.to_device(constant, device, copy=True)


def _settled_shardings(lowered: Lowered, loaded: compile.Loaded) -> tuple[list, list]:
    """Those of the arguments that are read and of the results: as asked for, or as XLA chose."""
    placement, ins, outs = lowered.placement, lowered.closed.in_avals, lowered.closed.out_avals
    ordered = len(lowered.module.ordered)
    chosen_ins, chosen_outs = chosen_shardings(loaded, len(ins), len(outs), ordered)
    in_shardings = [placement.in_shardings[i] for i in lowered.used]
    out_shardings = _settled(placement.out_shardings, chosen_outs, outs, placement)
    out_shardings = _named_as_argument(out_shardings, outs, placement, in_shardings, ins)
    if kinds := placement.memory_kinds(outs):
        out_shardings = [s.with_memory_kind(kind) for s, kind in zip(out_shardings, kinds, strict=True)]
    return _settled(in_shardings, chosen_ins, ins, placement), out_shardings


def _settled_layouts(lowered: Lowered, loaded: compile.Loaded) -> tuple[list, list]:
    """Those of the arguments that are read and of the results."""
    placement, outs = lowered.placement, len(lowered.closed.out_avals)
    ins = [placement.in_layouts[i] for i in lowered.used] if placement.in_layouts else [None] * len(lowered.used)
    results = placement.out_layouts or (None,) * outs
    if Layout.AUTO not in (*ins, *results):
        return ins, list(results)
    first = len(lowered.module.ordered)
    executable = loaded.executable
    chosen_ins, chosen = executable.get_parameter_layouts()[first:], executable.get_output_layouts()[first:]
    return settled(ins, chosen_ins), settled(results, chosen)


def _settled(shardings: Sequence, chosen: Sequence, avals: Sequence, placement: Placement) -> list:
    if len(placement.devices) == 1:
        return [placement.replicated() if s is None else s for s in shardings]
    rows = zip(shardings, chosen, avals, strict=False)
    return [s if isinstance(s, NamedSharding | GSPMDSharding) else _read(placement, *row) for s, *row in rows]


def _read(placement: Placement, hlo: Any, aval: Any) -> Any:
    if aval is token_type:
        return placement.replicated()
    return sharding_of_result(mesh_of_type(placement.mesh, aval), hlo, aval)


def _are_alike(a: Any, b: Any) -> bool:
    """Whether arrays of both types, none of keys, have as many axes."""
    if not type(a) is type(b) is ShapedArray or a.ndim != b.ndim:
        return False
    return not (dtypes.is_extended(a.dtype) or dtypes.is_extended(b.dtype))


def _named_as_argument(
    shardings: Sequence, avals: Sequence, placement: Placement, ins: Sequence, taken: Sequence
) -> list:
    """What was left open, under the name that the first argument over a mesh has where both lie alike."""
    named = ((s, aval) for s, aval in zip(ins, taken, strict=False) if isinstance(s, NamedSharding))
    model, first = next(named, (None, None))
    if model is None or model.mesh.explicit_axes:
        return list(shardings)
    asked = placement.out_shardings or (None,) * len(avals)
    return [
        model if a is None and _are_alike(first, aval) and s.is_equivalent_to(model, aval.ndim) else s
        for s, a, aval in zip(shardings, asked, avals, strict=True)
    ]


def compile_lowered(lowered: Lowered, options: ProgramOptions) -> Executable:
    """The executable of a program's text, with its own names."""
    dump_program(lowered)
    return _executable_of(lowered, _compiled(lowered, options, True))


def compile_afresh(lowered: Lowered, options: ProgramOptions) -> compile.Loaded:
    """A program as XLA compiles it, though an equal one is at hand or stored."""
    text = lowered.module
    devices, compiler_options = lowered.placement.devices, dict(options.compiler_options)
    return compile.compile_afresh(text.located().text, text.name, devices, compiler_options)


def _executable_of(lowered: Lowered, loaded: compile.Loaded) -> Executable:
    with guards.asked_for(free=True):
        return Executable(lowered, loaded)


def _compiled(lowered: Lowered, options: ProgramOptions, own_names: bool) -> compile.Loaded:
    text = lowered.module
    with monitoring.timed(monitoring.COMPILING, lowered.label):
        compile.disk_cache.note_request()
        return compile.compile_text(
            text.text,
            name=text.name,
            devices=lowered.placement.devices,
            options=dict(options.compiler_options),
            host_calls=text.callbacks,
            watchers=text.watchers,
            located=text.located,
            own_names=own_names,
        )


def executable_for(
    closed: ClosedJaxpr, options: ProgramOptions, operands: Sequence[ArrayImpl], lift: bool = False
) -> Executable:
    """A jaxpr, lowered and compiled for operands that lie as these do; `lift`: see `lower_to_share`."""
    if options.donated and watch.is_checking():
        options = options._replace(donated=())  # what gave a NaN is run again
    signatures = [x._sig for x in operands]
    placement = choose_placement(signatures, options, closed)
    if not placement.devices:
        raise ValueError(f"{options.name} can be lowered, not run: its mesh has no devices, {placement.mesh}")
    check_argument_layouts(signatures, options)
    lift = lift and not (placement.is_sharded or closed.effects)
    with lowering_logged(closed, options, placement):
        lowered = lower_to_share(closed, options, placement, lift)
    dump_jaxpr(lowered)
    own_names = dump_program(lowered) or profiler.is_watching()
    loaded = _compiled(lowered, options, own_names)
    if loaded.users > 1 and not own_names:
        loaded = _borrowed(loaded, closed, options, placement, lift)
    return _executable_of(lowered, loaded)


def _borrowed(
    loaded: compile.Loaded, closed: ClosedJaxpr, options: ProgramOptions, placement: Placement, lift: bool
) -> launch.Borrowed:
    """The executable of another program with the same text, which in profiles shows what this jaxpr says."""
    remembered = weakref.ref(closed)

    def own():
        closed = remembered()
        if closed is None:
            return loaded
        return _compiled(lower_to_share(closed, options, placement, lift), options, True)

    return launch.Borrowed(loaded, own)
