"""A call of a kernel as a call of the host, which simulates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.hlo.spell import physical
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.kernels.grid import INDEX, dynamic_grid_dim
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.mosaic.call import mesh_around
from minijax.kernels.simulator.machine import Core, Machine, Run
from minijax.kernels.simulator.meeting import Meeting
from minijax.kernels.simulator.memories import Buffer
from minijax.kernels.simulator.options import InterpretParams, check_options
from minijax.kernels.simulator.plans import Builder, Step, plan_of
from minijax.kernels.simulator.rules import RULES, allocate, memory_names
from minijax.kernels.simulator.steps import Block, Moves, parallel_orders, points_of, run_steps
from minijax.run.programs.host_calls import HostCall
from minijax.run.programs.inline import InlineProgram


def lower(e: Any, ins: Sequence, outs: Sequence, operands: Sequence, params: dict) -> list:
    """Lowers a call of a kernel to a call of the simulator, which gets the position of the device and the operands."""
    around = e.manual
    mesh = {} if around is None else mesh_around(e)  # without a mesh, one device gets the whole arrays
    simulation = Simulation(params, mesh)
    position = [] if around is None else [e.index_along_mesh_axis(around[0], name, INDEX) for name in mesh]
    ins, outs = [*[INDEX] * len(position), *map(physical, ins)], list(map(physical, outs))
    call = HostCall(simulation, ins, outs, False)
    passed = [(x, a) for x, a in zip([*position, *operands], ins, strict=True) if a.size]
    names, avals = zip(*passed, strict=True) if passed else ((), ())
    kept = [a for a in outs if a.size]
    results = iter(e.host_call(call, names, avals, kept, has_side_effect=True))
    return [next(results) if a.size else e.zeros(a) for a in outs]


def _nested(b: Builder, eqn: JaxprEqn) -> Step:
    """A call of a kernel within one."""
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]
    if isinstance(eqn.params["interpret"], InterpretParams):
        simulation = Simulation(eqn.params, {})
        run: Callable[[Sequence], Sequence] = lambda values: simulation(*values)  # noqa: E731
    else:
        given: list[Any] = [Var(a.aval) for a in eqn.invars]
        run = InlineProgram(ClosedJaxpr(Jaxpr([], given, eqn.outvars, [eqn.replace(invars=given)])))

    def step(core, values):
        for i, x in zip(outs, run([np.asarray(values[i]) for i in ins]), strict=True):
            values[i] = x

    return step


RULES["pallas_call"] = _nested


def _has_links(jaxpr: Jaxpr) -> bool:
    """Returns whether a kernel copies or signals to other devices."""
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name == "get_barrier_semaphore":
            return True
        if name == "dma_start" and eqn.params["tree"].unflatten(eqn.invars)[4] is not None:
            return True
        if name == "semaphore_signal" and eqn.params["args_tree"].unflatten(eqn.invars)[2] is not None:
            return True
    return any(map(_has_links, jaxpr.inner))


class Simulation:
    """A call of a kernel, as a function of (positions on the mesh, sizes of dynamic axes, scalars, inputs)."""

    def __init__(self, params: Mapping[str, Any], mesh: Mapping[Any, int]):
        self.jaxpr: Jaxpr = params["jaxpr"]
        self.options: InterpretParams = params["interpret"]
        check_options(self.options)
        self.mapping, self.mesh = params["grid_mapping"], mesh
        self.aliases = dict(params["input_output_aliases"])
        compiler = params["compiler_params"]
        self.collective_id = getattr(compiler, "collective_id", None)
        on_cores = params["mesh"] is not None
        self.cores = prod(self.mapping.grid) if on_cores else self.options.num_cores_or_threads
        semantics = None if on_cores else getattr(compiler, "dimension_semantics", None)
        self.orders = None if on_cores else parallel_orders(self.mapping, semantics, self.options.random_seed)
        self.plan = plan_of(self.jaxpr, (), self.options, RULES)
        mappings, n = self.mapping.block_mappings, self.mapping.num_inputs
        self.blocks = [Block(b, self.options, i - n if i >= n else i, i >= n) for i, b in enumerate(mappings)]
        first = self.mapping.num_index_operands
        self.labels = memory_names(self.jaxpr, self.jaxpr.invars, "memory")
        self.refs = [v.aval for v in self.jaxpr.invars]
        self.scratch = self.refs[first + len(mappings) :]
        count = prod(mesh.values())
        self.meeting = Meeting(count, self._run) if count > 1 and _has_links(self.jaxpr) else None

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        device = 0
        for i, n in zip(arrays, self.mesh.values(), strict=False):
            device = device * n + int(i)
        operands = arrays[len(self.mesh) :]
        return self._run({device: operands})[device] if self.meeting is None else self.meeting.join(device, operands)

    def _run(self, operands: Mapping[int, Sequence[np.ndarray]]) -> dict[int, list[np.ndarray]]:
        """The results of devices that run together."""
        machine = Machine(self.options, self.mesh, self.cores, self.collective_id)
        arrays = {device: self._arrays(machine, device, operands[device]) for device in sorted(operands)}
        with np.errstate(all="ignore"):
            runs = [run for device in arrays for run in self._cores(machine, device, operands[device], arrays[device])]
            machine.run(runs)
        for semaphore in machine.left_over():
            print(f"{semaphore} has a non-zero count at kernel exit: {semaphore.count}")
        n = self.mapping.num_inputs
        return {device: [b.array for b in buffers[n:]] for device, buffers in arrays.items()}

    def _split(self, operands: Sequence[np.ndarray]) -> tuple[Sequence, Sequence, Sequence]:
        n = self.mapping.num_dynamic_grid_bounds
        m = n + self.mapping.num_index_operands
        return operands[:n], operands[n:m], operands[m:]

    def _arrays(self, machine: Machine, device: int, operands: Sequence[np.ndarray]) -> list[Buffer]:
        """The operands and results of a device, in its main memory."""
        _, _, inputs = self._split(operands)
        first, begins, made = self.mapping.num_index_operands, {o: i for i, o in self.aliases.items()}, []
        for i, mapping in enumerate(self.mapping.block_mappings):
            aval, output = mapping.array_aval, i - self.mapping.num_inputs
            if output in begins:
                made.append(made[begins[output] - first])
                continue
            buffer = machine.buffer(aval.shape, aval.dtype, TpuMemorySpace.HBM, self.labels[first + i], (device, None))
            machine.allocation(("array", i)).put(buffer)
            if output < 0:
                buffer.array[...] = inputs[i]
            made.append(buffer)
        return made

    def _cores(self, machine: Machine, device: int, operands: Sequence, arrays: Sequence[Buffer]) -> list[Run]:
        """The runs of a device's cores."""
        bounds, scalars, _ = self._split(operands)
        sizes = iter(bounds)
        grid = [int(next(sizes)) if n is dynamic_grid_dim else n for n in self.mapping.grid]
        hidden = self.mapping.vmapped_dims
        orders = self.orders
        points = [[p] for p in np.ndindex(*grid)] if orders is None else points_of(grid, orders, self.cores)
        runs = []
        for number, steps in enumerate(points):
            core = Core(machine, device, number)
            core.sizes = [np.int32(n) for axis, n in enumerate(grid) if axis not in hidden]
            core.names = self.mapping.grid_names or ()
            own = [self._scalar(core, i, x) for i, x in enumerate(scalars)]
            first = len(own)
            blocks = [
                array if block.is_whole else allocate(core, ("block", i), self.refs[first + i], self.labels[first + i])
                for i, (block, array) in enumerate(zip(self.blocks, arrays, strict=True))
            ]
            last = first + len(blocks)
            scratch = [allocate(core, ("scratch", i), r, self.labels[last + i]) for i, r in enumerate(self.scratch)]
            moves = Moves(core, self.blocks, arrays, blocks)
            runs.append(run_steps(core, self.plan, steps, moves, own, scratch, hidden))
        return runs

    def _scalar(self, core: Core, i: int, value: np.ndarray) -> Any:
        """A prefetched scalar or table, in the memory of a core."""
        memory = allocate(core, ("scalar", i), self.refs[i], self.labels[i])
        memory.array[...] = value
        return memory
