"""How each operation of a kernel runs on a simulated machine, control flow and the scopes of memories among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import source
from minijax.ir.jaxpr import Jaxpr, JaxprEqn
from minijax.ir.refs import AbstractRef
from minijax.kernels.memory import is_semaphore
from minijax.kernels.operations.base import type_of
from minijax.kernels.operations.copies import sizes_of
from minijax.kernels.operations.semaphores import DeviceIdType
from minijax.kernels.simulator import views
from minijax.kernels.simulator.copies import Copy, size_in_bytes
from minijax.kernels.simulator.machine import Core
from minijax.kernels.simulator.memories import Semaphore, Semaphores, is_main
from minijax.kernels.simulator.plans import Builder, Get, Step


def _call(b: Builder, eqn: JaxprEqn) -> Step:
    plan = b.plan(eqn.primitive.body(eqn.params))
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]

    def step(core, values):
        results = yield from plan.run(core, [values[i] for i in ins])
        _assign(values, outs, results)

    return step


def _assign(values: list, numbers: Sequence[int], results: Sequence[Any]) -> None:
    for i, x in zip(numbers, results, strict=True):
        values[i] = x


def _cond(b: Builder, eqn: JaxprEqn) -> Step:
    plans = [b.plan(branch) for branch in eqn.params["branches"]]
    which, *ins = [b.number(a) for a in eqn.invars]
    outs = [b.number(v) for v in eqn.outvars]
    is_empty = [not p.steps and not outs for p in plans]
    last = len(plans) - 1

    def step(core, values):
        i = min(max(int(values[which]), 0), last)
        return None if is_empty[i] else run(plans[i], core, values)

    def run(plan, core, values):
        results = yield from plan.run(core, [values[i] for i in ins])
        _assign(values, outs, results)

    return step


def _while(b: Builder, eqn: JaxprEqn) -> Step:
    n, m = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test, body = b.plan(eqn.params["cond_jaxpr"]), b.plan(eqn.params["body_jaxpr"])
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]

    def step(core, values):
        given = [values[i] for i in ins]
        of_test, of_body, carry = given[:n], given[n : n + m], given[n + m :]
        while True:
            (goes_on,) = yield from test.run(core, [*of_test, *carry])
            if not goes_on:
                break
            carry = yield from body.run(core, [*of_body, *carry])
        _assign(values, outs, carry)

    return step


def _scan(b: Builder, eqn: JaxprEqn) -> Step:
    params = eqn.params
    n, m, length = params["num_consts"], params["num_consts"] + params["num_carry"], params["length"]
    body, count = b.plan(params["jaxpr"]), params["num_carry"]
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]
    order = range(length)[::-1] if params["reverse"] else range(length)
    stacked = [v.aval for v in eqn.outvars[count:]]

    def step(core, values):
        given = [values[i] for i in ins]
        consts, carry, xs = given[:n], given[n:m], given[m:]
        ys = [np.empty(a.shape, a.dtype) for a in stacked]
        for i in order:
            results = yield from body.run(core, [*consts, *carry, *[x[i] for x in xs]])
            carry = results[:count]
            for y, row in zip(ys, results[count:], strict=True):
                y[i] = row
        _assign(values, outs, [*carry, *ys])

    return step


# ---- scopes ------------------------------------------------------------------------------------------


def memory_names(jaxpr: Jaxpr, variables: Sequence[Any], word: str) -> list[str]:
    """The names of references in messages: those of the function's arguments, where they are known."""
    names = jaxpr.debug_info.arg_names
    if names is not None and len(names) == len(variables):
        return [str(n) or f"{word} {i}" for i, n in enumerate(names)]
    return [f"{word} {i}" for i in range(len(variables))]


def allocate(core: Core, name: Any, ref: Any, label: str) -> Any:
    """Memory of a core, or of its device if the cores share it."""
    aval, space, machine = ref.inner_aval, ref.memory_space, core.machine
    if is_semaphore(aval.dtype):
        return machine.allocation(name).at(core.place, lambda: Semaphores(aval.shape, label, core.place))
    place = (core.device, None if is_main(space) else core.number)
    make = lambda: machine.buffer(aval.shape, aval.dtype, space, label, place)  # noqa: E731
    return machine.allocation(name).at(place, make)


def _run_scoped(b: Builder, eqn: JaxprEqn) -> Step:
    jaxpr: Jaxpr = eqn.params["jaxpr"]
    refs = [v.aval for v in jaxpr.invars]
    for ref in refs:
        if is_main(ref.memory_space) and not b.options.allow_hbm_allocation_in_run_scoped:
            raise ValueError(
                "Cannot allocate HBM in `run_scoped`. Give the kernel an operand in HBM, or set "
                "allow_hbm_allocation_in_run_scoped of InterpretParams."
            )
    plan, labels = b.plan(jaxpr), memory_names(jaxpr, jaxpr.invars, "scoped memory")
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]

    def step(core, values):
        site = core.visit(id(eqn))
        memories = [allocate(core, (site, i), r, labels[i]) for i, r in enumerate(refs)]
        results = yield from plan.run(core, [*[values[i] for i in ins], *memories])
        for memory in memories:
            _release(core, memory)
        _assign(values, outs, results)

    return step


def _release(core: Core, memory: Any) -> None:
    """Ends the use of memory by a core; what cores share ends when the last one leaves it."""
    if memory.place[1] is None:
        memory.allocation.users += 1
        memory.freed = memory.allocation.users == core.machine.num_cores
        return
    memory.freed = True


FLOW: dict[str, Callable[[Builder, JaxprEqn], Step]] = {
    "call": _call,
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "run_scoped": _run_scoped,
}


# ---- reading and writing -----------------------------------------------------------------------------


def _check_space(name: str, aval: Any) -> None:
    """Raises ValueError for main memory, from which cores cannot compute."""
    if type(aval) is AbstractRef and is_main(aval.memory_space):
        raise ValueError(
            f"{name}_p: Buffers with a memory space of HBM or ANY cannot be referenced directly. Instead, use "
            "`pltpu.sync_copy` or `pltpu.async_copy`."
        )


def _is_watched(b: Builder) -> bool:
    return b.options.detect_races or b.options.logging_mode is not None


def _view_of(b: Builder, eqn: JaxprEqn, first: int) -> Get:
    """The view of an operation on (reference, ..., arrays of the path from number `first`)."""
    memory = b.number(eqn.invars[0])
    stages = views.stages_of(eqn.params["path"], [b.get(a) for a in eqn.invars[first:]])
    return lambda values: (values[memory], stages(values))


def _get(b: Builder, eqn: JaxprEqn) -> Step:
    _check_space("get", eqn.invars[0].aval)
    return _reading(b, eqn, _view_of(b, eqn, 1))


def _reading(b: Builder, eqn: JaxprEqn, view: Get) -> Step:
    out, raises = b.number(eqn.outvars[0]), b.options.out_of_bounds_reads == "raise"
    read = views.read
    if not _is_watched(b):

        def step(core, values):
            buffer, stages = view(values)
            values[out] = read(buffer, stages, raises)

        return step
    line = source.summary(eqn.traceback)

    def watched(core, values):
        buffer, stages = view(values)
        values[out] = read(buffer, stages, raises)
        core.note(buffer, stages, False, line)

    return watched


def _swap(b: Builder, eqn: JaxprEqn) -> Step:
    _check_space("swap", eqn.invars[0].aval)
    return _writing(b, eqn, _view_of(b, eqn, 2), b.get(eqn.invars[1]))


def _writing(b: Builder, eqn: JaxprEqn, view: Get, value: Get, adds: bool = False, mask: Get | None = None) -> Step:
    """A step that writes, after it read what it replaces if that is used."""
    old = b.number(eqn.outvars[0]) if eqn.outvars and b.is_used(eqn.outvars[0]) else None
    raises, is_watched = b.options.out_of_bounds_reads == "raise", _is_watched(b)
    line = source.summary(eqn.traceback) if is_watched else ""
    write = views.write
    if old is None and not is_watched and mask is None:

        def step(core, values):
            buffer, stages = view(values)
            write(buffer, stages, value(values), adds)

        return step

    def careful(core, values):
        buffer, stages = view(values)
        where = None if mask is None else mask(values)
        if old is not None:
            before = views.read(buffer, stages, raises)
            values[old] = before if where is None else np.where(where, before, value(values))
        write(buffer, stages, value(values), adds, where)
        if is_watched:
            core.note(buffer, stages, True, line)

    return careful


def _addupdate(b: Builder, eqn: JaxprEqn) -> Step:
    _check_space("addupdate", eqn.invars[0].aval)
    return _writing(b, eqn, _view_of(b, eqn, 2), b.get(eqn.invars[1]), adds=True)


def _masked_load(b: Builder, eqn: JaxprEqn) -> Step:
    _check_space("load", eqn.invars[0].aval)
    view, mask, other = eqn.params["args_tree"].unflatten(eqn.invars)
    step = _reading(b, eqn, b.view(view))
    if mask is None or other is None:
        return step
    out, where, rest = b.number(eqn.outvars[0]), b.get(mask), b.get(other)

    def masked(core, values):
        step(core, values)
        values[out] = np.where(where(values), values[out], np.asarray(rest(values), values[out].dtype))

    return masked


def _masked_swap(b: Builder, eqn: JaxprEqn) -> Step:
    _check_space("swap", eqn.invars[0].aval)
    view, value, mask = eqn.params["args_tree"].unflatten(eqn.invars)
    return _writing(b, eqn, b.view(view), b.get(value), mask=None if mask is None else b.get(mask))


# ---- semaphores --------------------------------------------------------------------------------------


def _one(place: tuple[Semaphores, views.Stages]) -> Semaphore:
    """The semaphore that a view selects. Raises IndexError for one that is not there."""
    memory, stages = place
    found: Any = memory.array
    for stage in stages:
        found = views.viewed(found, stage)
    return found if type(found) is Semaphore else found[()]


def _elsewhere(semaphore: tuple[Semaphores, views.Stages], core: Core, place: tuple[int, int]) -> Semaphore:
    """The same semaphore of another device and core. Raises RuntimeError if its scope ended."""
    memory, stages = semaphore
    if place == memory.place:
        return _one(semaphore)
    assert memory.allocation is not None
    if not (0 <= place[1] < core.machine.num_cores):
        raise ValueError(f"core {place[1]} is beyond the {core.machine.num_cores} cores of a device")
    other = memory.allocation.memories.get(place)
    if other is None:  # the other core has not come to the scope yet
        other = memory.allocation.put(Semaphores(memory.array.shape, memory.name, place))
    if other.freed:
        raise RuntimeError(
            f"device {core.device}, core {core.number} signals {other}, whose scope ended. Give the semaphore in "
            "scratch_shapes."
        )
    return _one((other, stages))


def _device_of(b: Builder, device: Any, kind: DeviceIdType) -> Callable[[Core, list], tuple[int, int]]:
    """A function (core, values) -> (device, core), from the argument `device_id`."""
    if device is None:
        return lambda core, values: core.place
    if kind is DeviceIdType.LOGICAL:
        number = b.get(device)
        return lambda core, values: (_checked(core, int(number(values))), core.number)
    if isinstance(device, Mapping):
        named = [(name, b.get(a)) for name, a in device.items()]
        return lambda core, values: _at_names(core, {name: int(get(values)) for name, get in named})
    gets = [b.get(a) for a in (device if isinstance(device, tuple | list) else (device,))]

    def of_coordinates(core, values):
        if len(gets) != len(core.machine.mesh):
            raise ValueError(
                f"Number of device ids must match the number of mesh axes, but got {len(gets)} ids for the mesh axes "
                f"{list(core.machine.mesh)}."
            )
        return core.machine.device_at(
            {n: int(g(values)) for n, g in zip(core.machine.mesh, gets, strict=True)}
        ), core.number

    return of_coordinates


def _checked(core: Core, number: int) -> int:
    if not 0 <= number < core.machine.num_devices:
        raise ValueError(f"device_id {number} is beyond the {core.machine.num_devices} devices of the mesh")
    return number


def _at_names(core: Core, given: dict) -> tuple[int, int]:
    number = core.number
    for name in list(given):
        if name in core.names:
            number = given.pop(name)
    unknown = [n for n in given if n not in core.machine.mesh]
    if unknown:
        raise ValueError(
            f"device_id names axes {unknown} that the mesh of axes {list(core.machine.mesh)} does not have"
        )
    return core.machine.device_at({**core.coordinates, **given}), number


def _signal(b: Builder, eqn: JaxprEqn) -> Step:
    view, inc, device, index = eqn.params["args_tree"].unflatten(eqn.invars)
    semaphore, increment = b.view(view), b.get(inc)
    place = _device_of(b, device, eqn.params["device_id_type"])
    number = None if index is None else b.get(index)

    def step(core, values):
        on, at = place(core, values)
        if number is not None:
            at = int(number(values))
        core.signal(_elsewhere(semaphore(values), core, (on, at)), int(increment(values)))

    return step


def _wait(b: Builder, eqn: JaxprEqn) -> Step:
    view, value = eqn.params["args_tree"].unflatten(eqn.invars)
    semaphore, count, decrement = b.view(view), b.get(value), eqn.params["decrement"]
    line = source.summary(eqn.traceback)
    return lambda core, values: core.wait(_one(semaphore(values)), int(count(values)), decrement, line)


def _read(b: Builder, eqn: JaxprEqn) -> Step:
    (view,) = eqn.params["args_tree"].unflatten(eqn.invars)
    semaphore, out = b.view(view), b.number(eqn.outvars[0])

    def step(core, values):
        values[out] = np.int32(_one(semaphore(values)).count)

    return step


def _barrier(b: Builder, eqn: JaxprEqn) -> Step:
    out = b.number(eqn.outvars[0])

    def step(core, values):
        if core.machine.collective_id is None:
            raise ValueError("get_barrier_semaphore: the kernel has no collective_id among its compiler_params")
        values[out] = core.machine.barrier(core.place)

    return step


# ---- copies ------------------------------------------------------------------------------------------


def _dma_start(b: Builder, eqn: JaxprEqn) -> Step:
    src, dst, arrived, sent, device = eqn.params["tree"].unflatten(eqn.invars)
    source_view, target, end = b.view(src), b.view(dst), b.view(arrived)
    begin = None if sent is None else b.view(sent)
    place, adds = _device_of(b, device, eqn.params["device_id_type"]), eqn.params["add"]
    line, eager = source.summary(eqn.traceback), b.options.dma_execution_mode == "eager"

    def step(core, values):
        at = place(core, values)
        ends = _elsewhere(end(values), core, at), None if begin is None else _one(begin(values))
        Copy(core, source_view(values), target(values), ends, at, adds, line).start(eager)

    return step


def _dma_wait(b: Builder, eqn: JaxprEqn) -> Step:
    _, target, semaphore, *_ = eqn.params["tree"].unflatten(eqn.invars)
    _, dst, *_ = eqn.params["tree"].unflatten([a.aval for a in eqn.invars])
    free = {axis: b.get(n) for axis, n in sizes_of(target).items()}
    view, size = b.view(semaphore), size_in_bytes(type_of(dst), free)
    line = source.summary(eqn.traceback)
    counts = list(free.values())
    return lambda core, values: core.wait(_one(view(values)), size * prod(int(n(values)) for n in counts), True, line)


# ---- the core's own ----------------------------------------------------------------------------------


def _known(read: Callable[[Any, dict[str, Any], Any], Any]) -> Callable[[Builder, JaxprEqn], Step]:
    """The rule of an operation without operands, whose result is `read(core, parameters, its type)`."""

    def rule(b, eqn):
        out, params, aval = b.number(eqn.outvars[0]), eqn.params, eqn.outvars[0].aval

        def step(core, values):
            values[out] = read(core, params, aval)

        return step

    return rule


def _nothing(b: Builder, eqn: JaxprEqn) -> Step:
    return lambda core, values: None


def _host_function(b: Builder, eqn: JaxprEqn) -> Step:
    function = eqn.primitive.function(eqn.params)
    ins, outs = [b.get(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]

    def step(core, values):
        results = function(*[np.asarray(get(values)) for get in ins])
        for i, x in zip(outs, results, strict=True):
            values[i] = np.asarray(x)

    return step


RULES: dict[str, Callable[[Builder, JaxprEqn], Step]] = {
    **FLOW,
    "get": _get,
    "swap": _swap,
    "addupdate": _addupdate,
    "masked_load": _masked_load,
    "masked_swap": _masked_swap,
    "semaphore_signal": _signal,
    "semaphore_wait": _wait,
    "semaphore_read": _read,
    "get_barrier_semaphore": _barrier,
    "dma_start": _dma_start,
    "dma_wait": _dma_wait,
    "program_id": _known(lambda core, params, aval: core.ids[params["axis"]]),
    "num_programs": _known(lambda core, params, aval: core.sizes[params["axis"]]),
    "axis_index": _known(lambda core, params, aval: core.position(params["axis_name"])),
    "prng_random_bits": _known(lambda core, params, aval: np.zeros(aval.shape, aval.dtype)),
    "prng_seed": _nothing,
    "delay": _nothing,
    "trace_value": _nothing,
    "add_dependency": _nothing,
    "host function": _host_function,
}
