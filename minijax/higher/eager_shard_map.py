"""Eager `shard_map`: records its body, and runs the recorded equations when a value is inspected."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.base import dtypes
from minijax.base.thread import outside_traces
from minijax.calls.custom_derivatives import CustomRule
from minijax.higher.shard_map import ManualRegion, devices_of, shard_map_p
from minijax.ir import effects, state
from minijax.ir.jaxpr import DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, checked_values, constants_to_inputs
from minijax.ir.types import ShapedArray
from minijax.partition.meshes import P, axes_of
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import squeeze


class EagerBody(JaxprTrace):
    """Records a body whose values can be inspected. An inspection runs the equations recorded since the last one.

    A body without inspections is compiled as one program.
    """

    __slots__ = ("region", "operands", "specs", "_values", "_slice_eqns")

    def __init__(self, info: DebugInfo, region: ManualRegion, operands: Sequence, specs: Sequence[P]):
        super().__init__(None, info, False)
        self.region = region
        self.operands, self.specs = list(operands), list(specs)  # of the inputs recorded so far
        self._values: dict[Var, tuple[Any, P]] = {}  # the stacked per-device values
        self._slice_eqns: list[JaxprEqn] = []  # for each computed value, the equation that slices it from an input

    def process(self, primitive, operands, params):
        if primitive.name == "new_ref":
            raise ValueError("Eager shard_map cannot return a `jax.Ref`: make it in a function under `jax.jit`")
        if primitive.name == "device_put" and (there := [d for d in params["devices"] if d is not None]):
            raise ValueError(f"device_put in an eager shard_map cannot move a shard, but got device {there[0]}")
        if isinstance(primitive, CustomRule):
            return checked_values(primitive.to_lo(checked_values(operands), params))
        results = super().process(primitive, operands, params)
        if self.eqns and self.eqns[-1].effects:
            self._run([])
        return results

    def shown(self, x: DynamicJaxprTracer) -> str:
        """Formats the value of each device."""
        if not self.alive:
            return super().shown(x)
        mesh, (parts, spec) = devices_of(self.region.mesh, self.operands), self._device_values(x)
        at = [mesh.axis_names.index(name) for entry in spec for name in axes_of(entry)]
        sizes = [mesh.axis_sizes[i] for i in at]
        names, blocks = ", ".join(map(str, mesh.axis_names)), []
        with outside_traces():
            devices = cast("Any", mesh).devices
            for place in np.ndindex(*mesh.axis_sizes):
                device = devices[place]
                part = parts[int(np.ravel_multi_index([place[i] for i in at], sizes)) if at else 0]
                where = f"On {device.platform}:{device.id} at mesh coordinates ({names},) = {place}:"
                blocks.append(f"{where}\n{part}\n")
        return "\n".join(blocks)

    def known(self, x: DynamicJaxprTracer) -> Any:
        """The concrete value if it is replicated; None if it may vary over devices."""
        if not self.alive or not self.region.check_vma or type(x.aval) is not ShapedArray:
            return None
        if not x.aval.manual_axis_type.empty:
            return None
        parts, _ = self._device_values(x)
        with outside_traces():
            return parts[0]

    def _device_values(self, x: DynamicJaxprTracer) -> tuple[Any, P]:
        """The per-device values, stacked along a new first axis, and their spec. Keys remain an array of keys."""
        if type(x.val) is Literal:
            return np.asarray(x.val.val, x.aval.dtype)[None], P()
        if x.val not in self._values:
            self._run([x.val])
        parts, spec = self._values[x.val]
        return (parts if dtypes.is_extended(x.aval.dtype) else np.asarray(parts)), spec

    def _run(self, others: Sequence[Var]) -> None:
        """Runs the recorded equations. Their results, and the inputs `others`, become inputs of later equations."""
        computed = [
            v for eqn in self.eqns for v in eqn.outvars if type(v.aval) is ShapedArray and v not in self._values
        ]
        computed += [v for v in others if v not in computed]
        with state.set_current_trace(self):
            tracers: list[Any] = [DynamicJaxprTracer(self, v, None) for v in computed]
            stacked = [self.atom(expand_dims(x, (0,))) for x in tracers]
        effs = effects.join(*(e.effects for e in self.eqns if e.effects))
        jaxpr = Jaxpr(list(self.constvars()), self.invars, stacked, self.eqns, effs, self.debug_info)
        specs = [self.region.residual_spec(v.aval) for v in stacked]
        mesh, axes, check_vma = self.region
        params: dict[str, Any] = dict(mesh=mesh, newly_manual_axes=axes, check_vma=check_vma)
        params |= dict(in_specs=(*[P()] * len(self.consts), *self.specs), out_specs=tuple(specs))
        with outside_traces():
            values = shard_map_p.at_once(*self.consts, *self.operands, jaxpr=constants_to_inputs(jaxpr), **params)
        self.eqns, self.invars = list(self._slice_eqns), list(self.invars)
        for v, aval, parts, spec in zip(computed, [s.aval for s in stacked], values, specs, strict=True):
            self._values[v] = parts, spec
            self._replace(v, aval, parts, spec)

    def _replace(self, var: Var, aval: ShapedArray, parts: Any, spec: P) -> None:
        """Records that a computed value is the device's slice of a new input."""
        if var in self.invars:
            return
        shard: Any = self.new_arg(aval)
        self.operands.append(parts)
        self.specs.append(spec)
        with state.set_current_trace(self):
            squeeze(shard, (0,))
        self.eqns[-1] = self.eqns[-1].replace(outvars=[var])
        self._slice_eqns.append(self.eqns[-1])
