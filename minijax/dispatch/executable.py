"""Executables: loaded programs with their placement."""

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, config, dtypes, errors, monitoring, tree
from minijax.dispatch.dumps import dump_jaxpr, dump_program
from minijax.dispatch.lowering import LoweredProgram, lower_to_share, lowering_logged
from minijax.dispatch.placement import Placement, ProgramOptions, check_argument_layouts, choose_placement, mesh_of_type
from minijax.hlo.program import Port
from minijax.hlo.simple import only_computes
from minijax.ir.effects import FfiEffect
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.structure import structure_of
from minijax.ir.types import ShapedArray, token_type
from minijax.partition.layouts import Format, Layout, of_native, settled, shown
from minijax.partition.shardings import GSPMDSharding, NamedSharding
from minijax.run.arrays import pending, transfer
from minijax.run.arrays.array import ArrayImpl, copied, hidden, signature
from minijax.run.clients import client, guards
from minijax.run.programs import ahead, compile, launch, tiered, tokens
from minijax.run.programs.compiled_shardings import chosen_shardings, has_sharding, sharding_of_result
from minijax.run.watching import hlo_transforms, watch


class Programs(cache.Keyed):
    """A cache of programs: functions of operands, by keys that begin with the options' state."""

    __slots__ = ()


class Executable:
    """A loaded program with its placement: call it with arrays, in the order of the jaxpr's inputs."""

    __slots__ = (
        *"loaded device used hidden ins outs aliased donated".split(),
        *"_signatures _run _seen has_effects _constants _label needs_process".split(),
    )

    # It does not hold the jaxpr: caches are keyed by jaxprs weakly, and their values must not keep the key alive.
    def __init__(self, lowered: LoweredProgram, loaded: compile.Loaded):
        placement, text = lowered.placement, lowered.module
        self.loaded, self.used = loaded, lowered.used
        self.device = None if placement.is_sharded else loaded.devices[0]
        self.ins, self.outs = settled_ports(lowered, loaded)
        # The user may donate or delete an array that a function captured: the program holds a copy.
        self._keep_constants([_copied_constant(c, self.device) for c in lowered.hidden])
        is_committed = placement.committed or placement.is_sharded
        self._signatures = [signature(port.aval, port.sharding, is_committed, port.layout) for port in self.outs]
        effects = lowered.closed.effects
        self.has_effects = bool(text.ordered or text.callbacks or FfiEffect() in effects)
        if text.ordered or text.callbacks and effects:
            self._bind(_effects(text.ordered, placement), lowered.label)
        else:
            self._bind(self._effects_to_note(text.callbacks), lowered.label)
        self.needs_process = bool(text.ordered or text.callbacks or text.watchers)
        self.aliased = text.aliases  # input -> the result that uses its memory
        self.donated = [*self.aliased, *text.donors]
        _warn_of_unused_donations(lowered)

    def _effects_to_note(self, calls: Sequence = ()) -> launch.Effects | None:
        """The effects of a program without ordered effects, for `effects_barrier` to wait for."""
        note = tokens.note_program_with_callbacks if calls else tokens.note
        return launch.Effects(note=note) if self.has_effects else None

    def _keep_constants(self, constants: Sequence[ArrayImpl]) -> None:
        self._constants = [hidden(getattr(x, "_base_array", x)) for x in constants]  # for keys their words
        self.hidden = [x._raw for x in self._constants]

    def _bind(self, effects: launch.Effects | None, label: str) -> None:
        self._label = label
        self._run = watch.watched(launch.bind(self.loaded, self._signatures, effects), label)
        # For each input, the signatures of arrays that need not be transferred.
        self._seen: list[set] = [set() for _ in self.used]

    def state(self) -> dict[str, Any]:
        """The state without the loaded program, for another process; see `restored`."""
        state = {name: getattr(self, name) for name in _STATE}
        constants = [(x._value, None if self.device else x._sig.sharding) for x in self._constants]
        results = [(s.aval, s.sharding, s.committed, s.layout) for s in self._signatures]
        return {**state, "constants": constants, "results": results}

    @classmethod
    def restored(cls, loaded: compile.Loaded, state: dict[str, Any]) -> "Executable":
        """The executable of a loaded program with the state that another process wrote."""
        self = cls.__new__(cls)
        self.loaded, self.needs_process = loaded, False
        for name in _STATE:
            setattr(self, name, state[name])
        self.device = loaded.devices[0] if state["device"] is not None else None
        places = [(value, sharding or self.device) for value, sharding in state["constants"]]
        self._keep_constants([transfer.to_device(value, place, copy=True) for value, place in places])
        self._signatures = [signature(*fields) for fields in state["results"]]
        self._bind(self._effects_to_note(), self._label)
        return self

    def __call__(self, operands: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        if self.donated:
            operands = self._with_own_numbers(operands)
        raws = []
        for n, (i, seen) in enumerate(zip(self.used, self._seen, strict=True)):
            x = operands[i]
            if x._sig not in seen:
                x = self._placed(x, n)
            raws.append(x._raw)
        if self.donated and self.device is None:
            launch.check_donated(raws, self.donated)
        results = self._run([*raws, *self.hidden] if self.hidden else raws)
        for n in self.donated:
            x = operands[self.used[n]]
            if self._is_replicated_from(x, n) and not x.is_deleted():
                x.delete()
        return results

    def _with_own_numbers(self, operands: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        """The operands, with copies of donated numbers: all programs share the array of a number."""
        pending.run_all()  # one of them may read what is donated
        own = list(operands)
        for n in self.donated:
            x = own[self.used[n]]
            if x._raw.aval is x._sig.hidden:
                own[self.used[n]] = copied(x)
        return own

    def _is_replicated_from(self, x: ArrayImpl, n: int) -> bool:
        """Returns whether input `n` is `x` replicated over its own device and others."""
        sharding, here = self.ins[n].sharding, x._sig.device
        return self.device is None and here is not None and sharding.is_fully_replicated and here in sharding.device_set

    def _placed(self, x: Any, n: int) -> Any:
        """An operand with the sharding and layout of input `n`."""
        if not self._is_placed(x, n):
            port = self.ins[n]
            if x._sig.aval is token_type:
                return transfer.token_on_devices(x, self.device or port.sharding)
            if x._sig.aval.dtype == dtypes.float0:
                x = np.zeros(x.shape, bool)  # as programs hold it
            if port.layout is not None:
                return transfer.to_device(x, Format(port.layout, port.sharding))
            return transfer.to_device(x, self.device or port.sharding)
        self._seen[n].add(x._sig)
        return x

    def _is_placed(self, x: ArrayImpl, n: int) -> bool:
        """Returns whether an array has the sharding and layout of input `n`."""
        port = self.ins[n]
        if x._sig.layout != port.layout:
            return False
        if x._sig.aval is token_type:
            return x._sig.sharding._device_assignment == tuple(self.loaded.devices)
        if self.device is not None:
            return x._sig.device is self.device
        return has_sharding(x._sig, port.sharding)

    def takes(self, operands: Sequence[ArrayImpl]) -> bool:
        """Returns whether operands with these signatures need no transfer."""
        return all(self._is_placed(operands[i], n) for n, i in enumerate(self.used))

    def formats(self) -> tuple[list[Format], list[Format]]:
        """The layouts that XLA chose, and the shardings, of the inputs that are read and of the results."""
        executable, count = self.loaded.executable, len(self.ins) + len(self.hidden)
        try:
            natives = executable.get_parameter_layouts()[-count:], executable.get_output_layouts()
            layouts = [list(map(of_native, side)) for side in natives]
        except compile.JaxRuntimeError:  # of programs with tokens
            layouts = [[shown(port.layout, port.aval.ndim) for port in side] for side in (self.ins, self.outs)]
        ins, outs = (
            [Format(layout, port.sharding) for layout, port in zip(side, ports, strict=False)]
            for side, ports in zip(layouts, (self.ins, self.outs), strict=True)
        )
        return ins, outs

    def caller(self, operands: Sequence[ArrayImpl], finish: Callable | None = None) -> Callable[[Sequence], Any]:
        """A function specialised to the signatures of these operands: operands -> `finish(results)`.

        Without `finish` it returns the only result. Its attribute `program`, if it has one, is of raw arrays.
        """
        donates_shards = self.donated and self.device is None
        if donates_shards or not self.takes(operands):
            of_results = finish or operator.itemgetter(0)
            return lambda operands: of_results(self(operands))
        used, hidden = self.used, self.hidden
        raws_of = lambda operands: [*[operands[i]._raw for i in used], *hidden]  # noqa: E731
        if self.donated:
            of_own = raws_of
            raws_of = lambda operands: of_own(self._with_own_numbers(operands))  # noqa: E731
        if self.has_effects or watch.is_on():
            run, of_results = self._run, finish or operator.itemgetter(0)
            return lambda operands: of_results(run(raws_of(operands)))
        program = launch.program_of(self.loaded, self._signatures, finish, bool(self.donated))
        call: Any = lambda operands: program(raws_of(operands))  # noqa: E731
        call.loaded = self.loaded  # the weak cache finds it as long as it can be run
        call.program = launch.picking(program, used, len(operands), hidden)
        return call

    def tree_caller(self, operands: Sequence[ArrayImpl], out_tree: Any) -> Callable[[Sequence], Any]:
        """As `caller`; the function returns the results as a tree."""
        return self.caller(operands, None if tree.treedef_is_strict_leaf(out_tree) else _finisher(out_tree))


def _finisher(out_tree: Any) -> Callable[[list], Any]:
    """A function from the list of results to their tree."""
    if out_tree.num_nodes == out_tree.num_leaves + 1:
        kind, _ = out_tree.node_data()
        if kind in (list, tuple):
            return kind
    return out_tree.unflatten


_STATE = "device used ins outs aliased donated has_effects _label".split()


def _effects(ordered: Sequence, placement: Placement) -> launch.Effects:
    where = placement.replicated()
    return launch.Effects(ordered, signature(token_type, where, True), lambda: transfer.ready_token(where)._raw)


def _warn_of_unused_donations(lowered: LoweredProgram) -> None:
    text = lowered.module
    ports = lowered.program.ins
    unused = [port for n, port in enumerate(ports) if port.donated and n not in text.aliases and n not in text.donors]
    if not unused:
        return
    kinds = ", ".join(port.local_aval.str_short() for port in unused)
    errors.warn(f"Some donated buffers were not usable: {kinds}.")


def _copied_constant(constant: Any, device: Any) -> ArrayImpl:
    """A copy of a captured value in memory that the program owns."""
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


def settled_ports(lowered: LoweredProgram, loaded: compile.Loaded) -> tuple[list[Port], list[Port]]:
    """The arguments that are read and the results, with the shardings and layouts that XLA chose filled in."""
    placement, ordered = lowered.placement, len(lowered.module.ordered)
    ins, outs = [placement.ins[i] for i in lowered.used], list(placement.outs)
    chosen = (), ()
    if len(placement.devices) > 1:
        chosen = chosen_shardings(loaded, len(ins), len(outs), ordered)
    first = next((port for port in ins if isinstance(port.sharding, NamedSharding)), None)
    ins, settled_outs = _settled(ins, chosen[0], placement), _settled(outs, chosen[1], placement)
    if first is not None and not first.sharding.mesh.explicit_axes:
        settled_outs = [
            port if requested.sharding is not None else _with_sharding_of(first, port)
            for port, requested in zip(settled_outs, outs, strict=True)
        ]
    if placement.names_memory:
        settled_outs = [p._replace(sharding=p.sharding.with_memory_kind(p.memory_kind)) for p in settled_outs]
    return _with_chosen_layouts(ins, settled_outs, loaded, ordered)


def _settled(ports: Sequence[Port], chosen: Sequence, placement: Placement) -> list[Port]:
    """The ports with the shardings that XLA chose if none was requested."""
    if len(placement.devices) == 1:
        single = placement.replicated()
        return [port if port.sharding is not None else port._replace(sharding=single) for port in ports]
    return [
        port
        if isinstance(port.sharding, NamedSharding | GSPMDSharding)
        else port._replace(sharding=_chosen_sharding(placement, hlo, port.aval))
        for port, hlo in zip(ports, chosen, strict=False)
    ]


def _chosen_sharding(placement: Placement, hlo: Any, aval: Any) -> Any:
    """The sharding that XLA chose, over the mesh of the program."""
    if aval is token_type:
        return placement.replicated()
    return sharding_of_result(mesh_of_type(placement.mesh, aval), hlo, aval)


def _with_sharding_of(first: Port, port: Port) -> Port:
    """A result with the sharding object of the first argument over a mesh, if the two are equivalent."""
    is_equal = _have_equal_ranks(first.aval, port.aval) and port.sharding.is_equivalent_to(
        first.sharding, port.aval.ndim
    )
    return port._replace(sharding=first.sharding) if is_equal else port


def _have_equal_ranks(a: Any, b: Any) -> bool:
    """Returns whether both are types of arrays (not of keys) with equal ranks."""
    if not type(a) is type(b) is ShapedArray or a.ndim != b.ndim:
        return False
    return not (dtypes.is_extended(a.dtype) or dtypes.is_extended(b.dtype))


def _with_chosen_layouts(
    ins: list[Port], outs: list[Port], loaded: compile.Loaded, first: int
) -> tuple[list[Port], list[Port]]:
    """The ports with the layouts that XLA chose for `Layout.AUTO`; `first`: the number of tokens."""
    if Layout.AUTO not in [port.layout for port in (*ins, *outs)]:
        return ins, outs
    executable = loaded.executable
    sides = (ins, executable.get_parameter_layouts()), (outs, executable.get_output_layouts())
    settled_sides = []
    for ports, chosen in sides:
        layouts = settled([port.layout for port in ports], chosen[first:])
        settled_sides.append([port._replace(layout=layout) for port, layout in zip(ports, layouts, strict=True)])
    return settled_sides[0], settled_sides[1]


def compile_lowered(lowered: LoweredProgram, options: ProgramOptions) -> Executable:
    """Compiles a lowered program; profiles show its own names."""
    dump_program(lowered)
    return _executable_of(lowered, _compiled(lowered, options, True))


def compile_uncached(lowered: LoweredProgram, options: ProgramOptions) -> compile.Loaded:
    """Compiles a program even if an equal one is loaded or stored."""
    text = lowered.module
    devices, compiler_options = lowered.placement.devices, dict(options.compiler_options)
    return compile.compile_uncached(text.located().text, text.name, devices, compiler_options, lowered.is_open)


def _executable_of(lowered: LoweredProgram, loaded: compile.Loaded) -> Executable:
    with guards.explicit_transfers(free=True):
        return Executable(lowered, loaded)


def _compiled(
    lowered: LoweredProgram, options: ProgramOptions, own_names: bool, is_to_run: bool = False
) -> compile.Loaded:
    text, load = lowered.module, compile.load_or_build
    own = dict(options.compiler_options)
    if is_to_run and lowered.is_open == compile.CLOSED:
        if tiered.is_on() and not own:
            load = tiered.load
        elif (not own or own == compile.quick_options("cpu")) and _may_be_ahead(lowered):
            load = ahead.load
    with monitoring.timed(monitoring.COMPILING, lowered.label):
        compile.disk_cache.note_request()
        return compile.compile_text(
            text.text,
            name=text.name,
            devices=lowered.placement.devices,
            options=own,
            host_calls=text.callbacks,
            watchers=text.watchers,
            located=text.located,
            own_names=own_names,
            is_open=lowered.is_open,
            load=load,
        )


def _may_be_ahead(lowered: LoweredProgram) -> bool:
    """Returns whether the program only computes results, in default layouts, and nobody watches how."""
    text = lowered.module
    if lowered.closed.effects or text.ordered or text.callbacks or text.watchers or text.aliases or text.donors:
        return False
    placement = lowered.placement
    if any([port.layout for port in (*placement.ins, *placement.outs)]) or _is_watched():
        return False
    returns_keys = any([_is_key(aval) for aval in lowered.closed.out_avals])
    return only_computes(text.text, returns_keys) and ahead.is_possible(placement.devices)


def _is_key(aval: Any) -> bool:
    return type(aval) is ShapedArray and dtypes.is_extended(aval.dtype)


def _is_watched() -> bool:
    """Returns whether somebody looks at each program that is compiled, or checks each run."""
    if watch.is_on() or config.state().is_profiled or monitoring.is_observed() or hlo_transforms.is_any():
        return True
    return bool(config.dump_ir_to.value or config.log_compiles.value)


def executable_for(
    closed: ClosedJaxpr, options: ProgramOptions, operands: Sequence[ArrayImpl], lift: bool = False
) -> Executable:
    """Lowers and compiles a jaxpr for operands with these signatures; `lift`: see `lower_to_share`."""
    if watch.is_checking():
        # A program that returned a NaN is run again on the same operands.
        options = options._replace(ins=tuple([request._replace(donated=False) for request in options.ins]))
    signatures = [x._sig for x in operands]
    key = _key_of_alike(closed, options, signatures, lift)
    alike = None if key is None else _alike.get(key)
    if alike is not None:
        return alike
    placement = choose_placement(signatures, options, closed)
    if not placement.devices:
        raise ValueError(f"{options.name} can be lowered, not run: its mesh has no devices, {placement.mesh}")
    check_argument_layouts(signatures, options)
    lift = lift and not (placement.is_sharded or closed.effects)
    with lowering_logged(closed, options, placement):
        lowered = lower_to_share(closed, options, placement, lift)
    dump_jaxpr(lowered)
    own_names = dump_program(lowered) or config.state().is_profiled
    executable = _executable_of(lowered, _compiled(lowered, options, own_names, is_to_run=True))
    if key is not None and not (executable.has_effects or executable.needs_process):
        _alike[key] = executable
    return executable


# ---- jaxprs with the same equations share executables -------------------------------------------------

_alike = Programs(compile.KEPT)


def _key_of_alike(
    closed: ClosedJaxpr, options: ProgramOptions, signatures: Sequence, lift: bool
) -> tuple[Hashable, ...] | None:
    """A key that is equal for jaxprs that lower to the same module; None if it cannot be told, or who watches would
    not see that this one is compiled.
    """
    if _is_watched() or any([request.donated for request in options.ins]):
        return None
    structure = structure_of(closed)
    info = closed.debug_info
    key = config.state(), structure, info.arg_names, info.result_paths, options, lift, *signatures
    try:
        hash(key)
    except TypeError:
        return None
    return None if structure is None else key
