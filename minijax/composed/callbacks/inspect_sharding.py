"""`debug.inspect_array_sharding`: reports the sharding of a value when its program is compiled."""

from collections.abc import Callable
from typing import Any

from minijax.base import source, tree
from minijax.base.native import replicated
from minijax.dispatch.operands import operand
from minijax.ir.effects import DebugEffect
from minijax.ir.primitive import Primitive
from minijax.partition.shardings import GSPMDSharding, Sharding
from minijax.run.clients import client
from minijax.run.programs import host_calls
from minijax.run.programs.compiled_shardings import named_sharding


class InspectSharding(Primitive):
    """Calls `callback` with the sharding of a value."""

    name = "inspect_sharding"
    multiple_results = True

    def typed(self, avals, params):
        return [], frozenset({DebugEffect()})  # not cached: a cache would keep the function alive

    def at_once(self, x, *, callback):
        callback(operand(x).sharding)
        return []

    def lower(self, e, ins, outs, x, *, callback):
        devices, mesh, (aval,) = e.devices, e.mesh, ins
        if e.num_partitions == 1:
            callback(GSPMDSharding(tuple(devices) or (client.default_device(),), replicated()))
            return []

        def report(hlo):
            callback(GSPMDSharding(tuple(devices), hlo) if mesh is None else named_sharding(mesh, hlo, aval.ndim))

        inspection = host_calls.Inspection(report)
        e.inspect_sharding(inspection, inspection.address(), x, aval)
        return []

    def jvp(self, primals, tangents, *, callback):
        return self.bind(*primals, callback=callback), []

    def transpose(self, cts, x, *, callback):
        return [None]

    def batch(self, axis, operands, dims, *, callback):
        return self.bind(*operands, callback=callback), []


inspect_sharding_p = InspectSharding()


@source.boundary
def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Calls `callback` with the sharding of each array in a tree.

    For a traced value, it is called each time that XLA compiles the program. Its exceptions are raised by the call that
    compiles the program.
    """
    for x in tree.tree_leaves(value):
        inspect_sharding_p.bind(x, callback=callback)
