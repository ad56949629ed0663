"""Calls lowered to separate functions with attributes for XLA: metadata, or where to compute."""

from typing import Any

from minijax.base.mask import Mask
from minijax.calls.bodied import Bodied
from minijax.calls.call import KeptCall, forwarding
from minijax.hlo.emitter import compute_attributes
from minijax.ir.primitive import cotangents, is_undefined_primal
from minijax.ir.rules import no_lowering
from minijax.ir.types import Aval
from minijax.partition.memory import Device, MemorySpace
from minijax.partition.shardings import MEMORY_KINDS
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.discharge import DischargeableCall
from minijax.transforms.transpose import transpose_jaxpr


class MarkedCall(KeptCall, DischargeableCall):
    """A call whose other parameters are attributes for XLA. Its derivatives are calls with the same parameters."""

    at_once: Any = None  # compiled as a program when run eagerly

    copies_known = False

    def residuals(self, params, known, others, ins, outs):
        return forwarding(known, others, outs, True)


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
    partial_eval = Bodied.partial_eval

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
