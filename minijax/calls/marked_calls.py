"""Calls lowered to separate functions with attributes for XLA: metadata, or where to compute."""

from collections.abc import Sequence
from typing import Any

from minijax.base.mask import Mask
from minijax.calls.call import Call, Places, forwarded
from minijax.hlo.emitter import compute_attributes
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.primitive import cotangents, is_undefined_primal
from minijax.ir.rules import no_lowering
from minijax.ir.types import Aval, Zero, typeof
from minijax.partition.memory import Device, MemorySpace
from minijax.partition.shardings import MEMORY_KINDS
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.discharge import DischargeableCall
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr
from minijax.transforms.transpose import transpose_jaxpr


class MarkedCall(Call, DischargeableCall):
    """A call whose other parameters are attributes for XLA. Its derivatives are calls with the same parameters."""

    at_once: Any = None  # compiled as a program when run eagerly

    def linearize(self, nonzeros, primals, **params):
        parts, nonzeros, every = linearize_jaxpr(self.body(params), Mask(nonzeros)), Mask(nonzeros), range(len(primals))
        outs = range(len(parts.out_nonzeros))
        results, residuals = self._known(params, parts.primal, primals, every, outs)
        ins = [*(None for _ in residuals), *nonzeros.marked(every)]

        def push(*tangents):
            operands = [*residuals, *tangents]
            return self.bind_all(*self.calling(params, parts.tangent, operands, ins, parts.out_nonzeros.marked(outs)))

        return results, parts.out_nonzeros, push

    def _known(
        self, params: dict, closed: ClosedJaxpr, operands: Sequence, ins: Places, outs: Places
    ) -> tuple[list, list]:
        """Runs a body, (operands) -> (results, residuals). Residuals that are operands are not returned by the call."""
        n = len(outs)
        closed, sources = forwarded(closed, n, (True,) * n, True)
        results = self.bind_all(*self.calling(params, closed, operands, ins, outs))
        values = [operands[i] if kind == "in" else results[i] for kind, i in sources]
        return values[:n], values[n:]

    def transpose(self, cts, *operands, **params):
        linear, nonzero = Mask(map(is_undefined_primal, operands)), nonzero_mask(cts)
        avals = tuple([ct.aval if type(ct) is Zero else typeof(ct) for ct in cts])
        closed, nonzero_in = transpose_jaxpr(self.body(params), linear, nonzero, False, avals)
        values = [*linear.unmarked(operands), *nonzero.marked(cts)]
        results = self.bind_all(*self.calling(params, closed, values, (None,) * len(values), ()))
        return cotangents(operands, results, nonzero_in)


class XlaMetadataCall(MarkedCall):
    """A call whose other parameters are frontend attributes."""

    name = "xla_metadata_call"

    def lower(self, e, ins, outs, *operands, jaxpr, **metadata):
        for name, value in metadata.items():
            if not isinstance(value, str):
                raise NotImplementedError(f"xla_metadata_call: {name}={value!r} is a {type(value)}; it must be a str")
        start = len(e.lines)
        results = e.call_jaxpr(jaxpr, self.name, operands)
        e.annotate(start, metadata)
        return results


class PlacedCall(MarkedCall):
    """A call with a parameter, named by `spaces`, that holds the memory spaces of its results."""

    spaces: str

    def infer(self, *avals, jaxpr, **params):
        return [aval.in_space(space) for aval, space in zip(jaxpr.out_avals, params[self.spaces], strict=True)]

    def shardings(self, params):
        return params[self.spaces]

    def calling(self, params, closed, operands, ins, outs):
        avals, spaces = closed.out_avals, params[self.spaces]
        places = [*outs, *(None for _ in avals[len(outs) :])]
        spaces = [self.added_space(a) if i is None else spaces[i] for a, i in zip(avals, places, strict=True)]
        return list(operands), {**params, "jaxpr": closed, self.spaces: tuple(spaces)}

    def added_space(self, aval: Aval) -> MemorySpace:
        """The memory space of a result that a transformation adds, e.g. a residual."""
        return aval.memory_space

    def partial_eval(self, staging, operands, unknown_in, **params):
        unknown = Mask(unknown_in)
        pe = partial_eval_jaxpr(self.body(params), unknown, (False,) * len(params[self.spaces]))
        known_ins, unknown_ins = unknown.partition(range(len(unknown)))
        known_outs, unknown_outs = pe.out_unknown.partition(range(len(pe.out_unknown)))
        results, residuals = self._known(params, pe.known, unknown.unmarked(operands), known_ins, known_outs)
        values, ins = [*residuals, *unknown.marked(operands)], [*(None for _ in residuals), *unknown_ins]
        call = self.calling(params, pe.unknown, values, ins, unknown_outs)
        return pe.out_unknown.merge(results, staging.process(self, *call))


class ComputeOn(PlacedCall):
    """A call computed on another unit, as `compute_type` specifies."""

    name = "compute_on"
    spaces = "out_memory_spaces"

    def lower(self, e, ins, outs, *operands, jaxpr, compute_type, out_memory_spaces, compiler_options_json):
        inner = (eqn.params["compute_type"] for eqn in jaxpr.eqns if eqn.primitive is self)
        if any(other != compute_type for other in inner):
            raise ValueError(f"Nesting `compute_on` with different compute types is not allowed, within {compute_type}")
        attributes, start = compute_attributes(compute_type), len(e.lines)
        if compiler_options_json is not None:
            attributes["backend_config"] = compiler_options_json
        if compute_type == "device":
            attributes["inlineable"] = "false"
        results = e.call_jaxpr(jaxpr, self.name, operands)
        e.annotate(start, attributes)
        rows = zip(results, outs, out_memory_spaces, strict=True)
        return [e.annotate_placement(x, a, MEMORY_KINDS[s]) if s in MEMORY_KINDS else x for x, a, s in rows]


class Fused(PlacedCall):
    """A call that XLA must fuse, for operands in any memory space. In its body, types have the space `Any`."""

    name = "fused_call"
    spaces = "out_spaces"
    same_memory_space = False

    def added_space(self, aval):
        return Device

    def transpose(self, cts, *operands, **params):
        spaces = [x.aval.memory_space for x in operands if is_undefined_primal(x)]
        linear, nonzero = Mask(map(is_undefined_primal, operands)), nonzero_mask(cts)
        closed, nonzero_in = transpose_jaxpr(params["jaxpr"], linear, nonzero)
        call = {**params, "jaxpr": closed, "out_spaces": tuple(nonzero_in.marked(spaces))}
        return cotangents(operands, self.bind_all([*linear.unmarked(operands), *nonzero.marked(cts)], call), nonzero_in)

    def lower(self, e, ins, outs, *operands, jaxpr, out_spaces):
        if e.platform != "cuda":
            no_lowering(self, e.platform)
        config = dict(out_spaces=list(map(str, out_spaces)), inlineable=False, MUST_FUSE=True)
        return e.custom_call("fused", operands, ins, outs, backend_config=config, called=[e.private(jaxpr, "fused")])


fused_call_p = Fused()
xla_metadata_call_p = XlaMetadataCall()
compute_on_p = ComputeOn()
