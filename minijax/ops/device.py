"""Placing values on devices, as an operation."""

from collections.abc import Sequence
from typing import Any

from minijax.ir.primitive import Primitive
from minijax.ir.types import MemorySpace, Zero, typeof
from minijax.run import client, guards, transfer
from minijax.run.array import ArrayImpl


class CopySemantics:
    """Whether placing a value may share its memory."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"ArrayCopySemantics.{self.name}"


REUSE_INPUT, ALWAYS_COPY, DONATE_INPUT = map(CopySemantics, ("REUSE_INPUT", "ALWAYS_COPY", "DONATE_INPUT"))


class DevicePut(Primitive):
    """The same values on the devices that `devices` names; None leaves a value where it is."""

    name = "device_put"
    multiple_results = True

    def infer(self, *avals, devices, srcs, copy_semantics):
        return list(avals)

    def impl(self, *operands, devices, srcs, copy_semantics):
        with guards.asked_for():
            return [place(x, d, copy) for x, d, copy in zip(operands, devices, copy_semantics, strict=True)]

    def lower(self, e, ins, outs, *operands, **params):
        return list(operands)

    def jvp(self, primals, tangents, *, devices, srcs, copy_semantics):
        params = dict(devices=devices, srcs=srcs, copy_semantics=copy_semantics)
        outs = self.bind_all(primals, params)
        moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        if not moving:
            return outs, [Zero(typeof(x).to_tangent_aval()) for x in outs]
        chosen = {k: tuple(v[i] for i in moving) for k, v in params.items()}
        pushed = dict(zip(moving, self.bind_all([tangents[i] for i in moving], chosen), strict=True))
        return outs, [pushed.get(i, t) for i, t in enumerate(tangents)]

    def transpose(self, cts, *operands, devices, srcs, copy_semantics):
        moving = [i for i, ct in enumerate(cts) if type(ct) is not Zero]
        if not moving:
            return list(cts)
        results = self.bind_all(
            [cts[i] for i in moving],
            dict(devices=tuple(srcs[i] for i in moving), srcs=tuple(devices[i] for i in moving),
                 copy_semantics=(ALWAYS_COPY,) * len(moving)),
        )  # fmt: skip
        found = dict(zip(moving, results, strict=True))
        return [found.get(i, ct) for i, ct in enumerate(cts)]

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims


device_put_p = DevicePut()


MEMORY_KINDS = {MemorySpace.Device: "device", MemorySpace.Host: "pinned_host"}


def in_memory(x: Any, space: MemorySpace) -> Any:
    """How an eager value lies, in that memory of its devices."""
    have = x.sharding if type(x) is ArrayImpl else client.single_device_sharding(client.default_device())
    return have.with_memory_kind(MEMORY_KINDS[space])


def place(x: Any, device: Any, copy: CopySemantics) -> Any:
    """An eager value on a device (or by a sharding, or in a memory)."""
    if type(device) is MemorySpace:
        device = in_memory(x, device)
    if type(x) is ArrayImpl and (
        device is None or x._sig.committed and device in (x._sig.device, x._sig.sharding)
    ):
        return x if copy is not ALWAYS_COPY else transfer.to_device(x, copy=True)
    moved = transfer.to_device(x, device, copy=copy is ALWAYS_COPY)
    if copy is DONATE_INPUT and type(x) is ArrayImpl and moved._sig.device is not x._sig.device:
        x.delete()  # on one device they share their memory
    return moved


def placed_like(x: Any, model: Any) -> Any:
    """An eager value where the array `model` lies, if that is committed there and `x` can lie so."""
    if type(model) is not ArrayImpl or type(x) is not ArrayImpl or not model._sig.committed:
        return x
    if model._sig.device is None and x._sig.shape != model._sig.shape:
        return x
    return transfer.to_device(x, model._sig.sharding)


def device_put(xs: Sequence, devices: Sequence, srcs: Sequence, copies: Sequence[CopySemantics]) -> list:
    """Values on devices, under the current trace."""
    params = dict(copy_semantics=tuple(copies), devices=tuple(devices), srcs=tuple(srcs))
    return device_put_p.bind_all(xs, params)
