"""How each operation of a kernel runs on a simulated machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minijax.base import source
from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.refs import AbstractRef
from minijax.kernels.operations.base import type_of
from minijax.kernels.operations.semaphores import DeviceIdType
from minijax.kernels.simulator import views
from minijax.kernels.simulator.copies import Copy, size_in_bytes
from minijax.kernels.simulator.flow import FLOW
from minijax.kernels.simulator.machine import Core
from minijax.kernels.simulator.memories import Semaphore, Semaphores, is_main
from minijax.kernels.simulator.plans import Builder, Get, Step

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
    _, _, semaphore, *_ = eqn.params["tree"].unflatten(eqn.invars)
    _, dst, *_ = eqn.params["tree"].unflatten([a.aval for a in eqn.invars])
    view, size = b.view(semaphore), size_in_bytes(type_of(dst))
    line = source.summary(eqn.traceback)
    return lambda core, values: core.wait(_one(view(values)), size, True, line)


# ---- the core's own ----------------------------------------------------------------------------------


def _program_id(b: Builder, eqn: JaxprEqn) -> Step:
    out, axis = b.number(eqn.outvars[0]), eqn.params["axis"]

    def step(core, values):
        values[out] = core.ids[axis]

    return step


def _num_programs(b: Builder, eqn: JaxprEqn) -> Step:
    out, axis = b.number(eqn.outvars[0]), eqn.params["axis"]

    def step(core, values):
        values[out] = core.sizes[axis]

    return step


def _axis_index(b: Builder, eqn: JaxprEqn) -> Step:
    out, name = b.number(eqn.outvars[0]), eqn.params["axis_name"]

    def step(core, values):
        values[out] = core.position(name)

    return step


def _random_bits(b: Builder, eqn: JaxprEqn) -> Step:
    out, aval = b.number(eqn.outvars[0]), eqn.outvars[0].aval
    zeros = np.zeros(aval.shape, aval.dtype)

    def step(core, values):
        values[out] = zeros

    return step


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
    "program_id": _program_id,
    "num_programs": _num_programs,
    "axis_index": _axis_index,
    "prng_random_bits": _random_bits,
    "prng_seed": _nothing,
    "delay": _nothing,
    "trace_value": _nothing,
    "add_dependency": _nothing,
    "host function": _host_function,
}
