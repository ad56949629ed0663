"""The operation that places values on devices, by shardings or in memory spaces."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minijax.base import dtypes
from minijax.ir import state
from minijax.ir.primitive import Primitive, is_undefined_primal
from minijax.ir.types import AbstractValue, Zero, is_value, space_of, typeof
from minijax.partition import meshes
from minijax.partition.explicit import sharding_in_type
from minijax.partition.layouts import Format
from minijax.partition.memory import MemorySpace
from minijax.partition.meshes import AbstractMesh
from minijax.partition.shardings import MEMORY_KINDS, NamedSharding, Sharding
from minijax.primitives.varying import cast_to_vary
from minijax.run.arrays import gather, transfer
from minijax.run.arrays.array import Array, ArrayImpl
from minijax.run.arrays.token import Token
from minijax.run.clients import client, guards


class CopySemantics:
    """Specifies whether the placed value may share the buffer of its operand."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"ArrayCopySemantics.{self.name}"


REUSE_INPUT, ALWAYS_COPY, DONATE_INPUT = map(CopySemantics, ("REUSE_INPUT", "ALWAYS_COPY", "DONATE_INPUT"))


class DevicePut(Primitive):
    """Places each value as its item of `devices` specifies: a device, sharding or memory space; None: no change."""

    name = "device_put"
    multiple_results = True
    same_memory_space = False

    def infer(self, *avals, devices, srcs, copy_semantics):
        return [_placed_type(a, d) for a, d in zip(avals, devices, strict=True)]

    def vma_rule(self, avals, params):
        return None

    def shardings(self, params):
        return [d for d in params["devices"] if isinstance(d, Sharding | MemorySpace)]

    def at_once(self, *operands, devices, srcs, copy_semantics):
        with guards.explicit_transfers():
            return [put(x, d, copy) for x, d, copy in zip(operands, devices, copy_semantics, strict=True)]

    def lower(self, e, ins, outs, *operands, **params):
        if e.platform == "cpu":
            return list(operands)
        results = []
        for x, aval, out, place in zip(operands, ins, outs, params["devices"], strict=True):
            # An argument may be in a memory that its type does not tell: `in_shardings` names it.
            is_named = e.names_memory and isinstance(place, Sharding | MemorySpace)
            if not is_named and space_of(out) is space_of(aval):
                results.append(x)
                continue
            if isinstance(place, Sharding):
                x = e.sharding_constraint(x, aval, place)
            results.append(e.annotate_placement(x, out, MEMORY_KINDS[space_of(out)]))
        return results

    def jvp(self, primals, tangents, *, devices, srcs, copy_semantics):
        params = dict(devices=devices, srcs=srcs, copy_semantics=copy_semantics)
        outs = self.bind_all(primals, params)
        nonzero = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        if not nonzero:
            return outs, [Zero.from_primal_value(x) for x in outs]
        chosen = {k: tuple(v[i] for i in nonzero) for k, v in params.items()}
        pushed = dict(zip(nonzero, self.bind_all([tangents[i] for i in nonzero], chosen), strict=True))
        return outs, [pushed.get(i, t) for i, t in enumerate(tangents)]

    def transpose(self, cts, *operands, devices, srcs, copy_semantics):
        nonzero = [i for i, ct in enumerate(cts) if type(ct) is not Zero]
        if not nonzero:
            return list(cts)
        sources = tuple(_ct_destination(srcs[i], operands[i], cts[i]) for i in nonzero)
        back = dict(devices=sources, srcs=tuple(devices[i] for i in nonzero))
        results = self.bind_all([cts[i] for i in nonzero], dict(back, copy_semantics=(ALWAYS_COPY,) * len(nonzero)))
        put_back = dict(zip(nonzero, results, strict=True))
        return [put_back.get(i, ct) for i, ct in enumerate(cts)]

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims


device_put_p = DevicePut()


def _placed_type(aval: Any, place: Any) -> AbstractValue:
    place = place.sharding if isinstance(place, Format) else place
    space = place
    if isinstance(place, Sharding):
        space = place._memory_space
        if isinstance(place, NamedSharding):
            aval = aval.update(sharding=sharding_in_type(place, aval.ndim))
    return aval.in_space(space) if isinstance(space, MemorySpace) else aval


def _ct_destination(src: Any, operand: Any, ct: Any) -> Any:
    """The place for the cotangent of an operand."""
    space = space_of(operand.aval if is_undefined_primal(operand) else typeof(operand))
    return space if src is None and space_of(typeof(ct)) is not space else src


def _traced_sharding(x: Any) -> NamedSharding | None:
    """The sharding in the type of a traced value; None if it has none."""
    aval = typeof(x)
    if state.is_eager() or not aval.has_mesh:
        return None
    return aval.own_sharding.with_memory_kind(MEMORY_KINDS[aval.memory_space])


def in_memory(x: Any, space: MemorySpace) -> Any:
    """The sharding of an eager value, but in the memory space `space` of its devices."""
    if space not in MEMORY_KINDS:
        raise ValueError(f"device_put: a value can be in jax.memory.Space.Device or Host, not in {space}")
    have = x.sharding if isinstance(x, ArrayImpl) else client.single_device_sharding(client.default_device())
    return cast("Any", have).with_memory_kind(MEMORY_KINDS[space])


def put(x: Any, device: Any, copy: CopySemantics) -> Any:
    """Places an eager value on a device, by a sharding, or in a memory space."""
    if type(x) is Token:
        return transfer.token_on_devices(x, device)
    if type(device) is MemorySpace:
        device = in_memory(x, device)
    if type(x) is ArrayImpl and _is_placed(x, device):
        return x if copy is not ALWAYS_COPY else transfer.to_device(x, copy=True)
    if isinstance(device, Sharding) and not device.is_fully_addressable:
        _check_is_shared(x, device)
    if copy is DONATE_INPUT and type(x) is ArrayImpl:
        return _place_donated(x, device)
    return transfer.to_device(x, device, copy=copy is ALWAYS_COPY)


def _is_placed(x: ArrayImpl, device: Any) -> bool:
    """Returns whether `x` is already where it is to be placed."""
    return device is None or x._sig.committed and device in (x._sig.device, x._sig.sharding)


def _place_donated(x: ArrayImpl, device: Any) -> Any:
    """Places an array and deletes it, unless both share a buffer because they are on the same device."""
    is_on_several = x._sig.device is None  # shards that do not move would share their buffers
    placed = transfer.to_device(x, device, copy=is_on_several)
    if is_on_several or placed._sig.device is not x._sig.device:
        x.delete()
    return placed


def _check_is_shared(x: Any, sharding: Sharding) -> None:
    """Raises AssertionError if processes hold different values, ValueError for an array committed to one process."""
    if not isinstance(x, ArrayImpl):
        gather.check_same_everywhere(transfer.as_host(x), sharding)
    elif x.is_fully_addressable and sharding.num_devices > 1:
        if x.committed:
            raise ValueError(
                f"device_put: an array that is committed to devices of this process, {x.sharding}, cannot be put on "
                f"those of others: {sharding}. jaxlib's {x.platform()} client does not support cross-host device "
                "transfers."
            )
        if not dtypes.is_extended(x.dtype):
            gather.check_same_everywhere(np.asarray(x), sharding)


def place_like(x: Any, model: Any) -> Any:
    """Places an eager `x` by the sharding of `model`, a committed array or a ShapeDtypeStruct, if that fits `x`.

    Inside `shard_map`, casts `x` to vary over the mesh axes that `model` varies over.
    """
    if state.thread.manual:
        kind = getattr(typeof(model) if is_value(model) else model, "manual_axis_type", None)
        return cast_to_vary(x, kind.varying) if kind else x
    if type(x) is not ArrayImpl:
        return x
    if type(model) is not ArrayImpl:
        describes = isinstance(getattr(model, "sharding", None), Sharding) and not isinstance(model, Array)
        sharding = _concrete_sharding(model) if describes and x.shape == model.shape else None
        return transfer.to_device(x, sharding) if isinstance(sharding, Sharding) else x
    if not model._sig.committed or model._sig.device is None and x._sig.shape != model._sig.shape:
        return x
    return transfer.filled_at(x, model._sig.sharding)


def _concrete_sharding(model: Any) -> Any:
    """The sharding of a ShapeDtypeStruct; if its mesh is abstract, over the context mesh of the same axes, or None."""
    sharding: Any = getattr(model, "sharding", None)
    if not isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        return sharding
    context = meshes.context_mesh()
    is_of_context = context is not None and context.abstract_mesh.shape_tuple == sharding.mesh.shape_tuple
    return NamedSharding(context, sharding.spec) if is_of_context else None


def device_put(xs: Sequence, devices: Sequence, srcs: Sequence, copies: Sequence[CopySemantics]) -> list:
    """Binds device_put under the current trace."""
    sources = tuple([_traced_sharding(x) if src is None else src for x, src in zip(xs, srcs, strict=True)])
    params = dict(copy_semantics=tuple(copies), devices=tuple(devices), srcs=sources)
    return device_put_p.bind_all(xs, params)
