"""Reshards arrays, or changes their layouts, on the devices of one client, without the host."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo, _jax

from minijax.base import dtypes
from minijax.base.cache import cache
from minijax.hlo.emitter import Emitter
from minijax.hlo.module import lower_jaxpr
from minijax.hlo.program import Port, Program
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.ir.types import ShapedArray
from minijax.partition.shardings import GSPMDSharding
from minijax.run.arrays import host
from minijax.run.arrays.array import Signature, copied_raw, put_host, signature, unreduced_as_replicated
from minijax.run.clients import client
from minijax.run.programs.compile import compile_text
from minijax.run.programs.launch import launcher

_NO_COLLECTIVES = frozenset((dtypes.int2, dtypes.uint2))  # XLA's collectives on CPU mix up elements of two bits
# Starting a program with collectives takes longer than copying this many bytes in one thread.
_SMALL = 1 << 20

Plan = Callable[[Any], Any]  # from a raw array to a raw array


def moved(raw: Any, old: Signature, new: Signature) -> Any:
    """Reshards a raw array to the sharding of `new`; None if a transfer through the host is faster or the only way."""
    plan = _transfer_plan(old, new)
    return plan and plan(raw)


@cache(maxsize=4096)
def _transfer_plan(old: Signature, new: Signature) -> Plan | None:
    change = _Change(old, new)
    return next(plan(old, new) for applies, plan in _PLANS if applies(change))


class _Change:
    """A change of the sharding of an array, as the conditions of `_PLANS` see it."""

    def __init__(self, old: Signature, new: Signature):
        self.old, self.new = old, new
        self.devices, self.targets = old.sharding._device_assignment, new.sharding._device_assignment
        self.spans_processes = not (old.sharding.is_fully_addressable and new.sharding.is_fully_addressable)

    @property
    def is_in_default_memory(self) -> bool:
        return self.old.sharding._in_default_memory and self.new.sharding._in_default_memory

    @property
    def has_same_shards(self) -> bool:
        """True if the HLO sharding and the number of devices do not change."""
        return len(self.devices) == len(self.targets) and _tiles(self.old) == _tiles(self.new)


def _tiles(sig: Signature) -> Any:
    return client.hlo_sharding(sig.sharding, len(sig.shape))


def _through_host(old: Signature, new: Signature) -> None:
    return None


def _relocation(old: Signature, new: Signature) -> Plan:
    return lambda raw: moved_to_devices(raw, new)


def _scattering(old: Signature, new: Signature) -> Plan:
    return lambda raw: _scatter_from_one(raw, old, new)


def _resharding_to_reordered(old: Signature, new: Signature) -> Plan:
    there = _with_device_order(old.sharding._device_assignment, new)
    reuse = _jax.ArrayCopySemantics.REUSE_INPUT
    return lambda raw: _jax.reorder_shards(_resharder(old, there)(raw), new.native, reuse)


def _relocation_and_resharding(old: Signature, new: Signature) -> Plan:
    targets = new.sharding._device_assignment
    there = signature(old.aval, GSPMDSharding(targets, _tiles(old)), new.committed)
    return lambda raw: _resharder(there, new)(moved_to_devices(raw, there))


def _resharding_via_single_device(old: Signature, new: Signature) -> Plan:
    return lambda raw: _via_single_device(raw, old, new)


def _is_small(old: Signature, new: Signature) -> bool:
    """Returns whether an array on CPU devices is resharded fastest by copies of its memory."""
    devices, size = new.sharding._device_assignment, math.prod(new.shape) * new.dtype.itemsize
    sums = any(old.aval.reduction_state) or any(new.aval.reduction_state) if type(old.aval) is ShapedArray else False
    return devices[0].platform == "cpu" and size * len(devices) <= _SMALL and not sums and host.can_read(new.dtype)


def _via_single_device(raw, old, new):
    """Reshards from several devices to another number of devices, through the first device that both have."""
    devices = old.sharding._device_assignment
    k = next((k for k, d in enumerate(devices) if d in new.sharding.device_set), 0)
    whole = signature(old.aval, GSPMDSharding.get_replicated(devices), True)
    raw, alone = _resharder(old, whole)(raw), signature(old.aval, client.single_device_sharding(devices[k]), True)
    if devices[k].platform == "cpu":  # with the other branch, jaxlib would import jax
        raw = put_host(host.read_shard(raw, k, whole.sharding, whole.shape, whole.dtype), alone)
    else:
        part = host.shard_raw(raw, k, whole.sharding, len(whole.shape))._fully_replicated_shard()
        raw = part._rewrap_with_aval_and_sharding(alone, alone.native)
    return moved_to_devices(raw, new) if new.device is not None else _scatter_from_one(raw, alone, new)


@cache(maxsize=1024)
def _with_device_order(devices: tuple, sig: Signature) -> Signature:
    """The signature of the same shards, with an equivalent sharding that lists the devices in this order."""
    hlo, targets = client.hlo_sharding(sig.sharding, len(sig.shape)), sig.sharding._device_assignment
    if not hlo.is_replicated():
        places = [devices.index(targets[k]) for k in hlo.tile_assignment_devices()]
        grid = np.array(places).reshape(hlo.tile_assignment_dimensions())
        hlo = _hlo.HloSharding.subgroup_with_device_ordering(grid, hlo.subgroup_types())
    return signature(sig.aval, GSPMDSharding(devices, hlo, memory_kind=sig.sharding.memory_kind), sig.committed)


def moved_to_devices(raw: Any, sig: Signature) -> Any:
    """Moves the shards to the devices and memory kind of `sig`; shards that are there already are not copied."""
    return copied_raw(raw, sig, _jax.ArrayCopySemantics.REUSE_INPUT)._rewrap_with_aval_and_sharding(sig, sig.native)


def _scatter_from_one(raw, old, new):
    """Reshards from one device to several."""
    whole = unreduced_as_replicated(new)
    raw = _sliced_and_sent(raw, old, whole)
    return raw if whole is new else _resharder(whole, new)(raw)


def _sliced_and_sent(raw, old, new):
    """Reshards from one device to several, without partial sums: slices the array, then sends the shards."""
    cut, order, devices = _slicing_plan(old, new)
    pieces = [raw] if cut is None else cut([raw])
    parts = [pieces[k] for k in order]
    return _jax.batched_device_put(new, new.native, parts, devices, new.committed, force_copy=True, enable_x64=True)


@cache(maxsize=1024)
def _slicing_plan(old: Signature, new: Signature) -> tuple[Callable | None, list[int], list]:
    """A program that slices the array into distinct shards (None if replicated), each device's shard, the devices."""
    parts = new.sharding.devices_indices_map(new.shape)
    places = list(map(host.shard_key, parts.values()))
    distinct = tuple(dict.fromkeys(places))
    cut = None
    if len(distinct) > 1:
        cut = _slicer(ShapedArray(old.shape, old.dtype), old.device, distinct)
    return cut, [distinct.index(p) for p in places], list(parts)


@cache(maxsize=1024)
def _slicer(aval: ShapedArray, device: Any, places: Sequence) -> Callable[[list], list]:
    bounds = [[(a or 0, n if b is None else b) for (a, b), n in zip(p, aval.shape, strict=True)] for p in places]
    outs = [ShapedArray(tuple([b - a for a, b in p]), aval.dtype) for p in bounds]
    e = Emitter(device.platform)

    def body(names):
        return [
            e.slice(names[0], aval, out, [a for a, _ in p], [b for _, b in p])
            for p, out in zip(bounds, outs, strict=True)
        ]

    e.main([aval], outs, body)
    alone = client.single_device_sharding(device)
    loaded = compile_text(e.written("jit__cut", {}).text(), name="jit__cut", devices=[device])
    return launcher(loaded, [signature(out, alone, True) for out in outs])


def laid_out(raw: Any, old: Signature, new: Signature) -> Any:
    """Changes the layout of a raw array to that of `new`, on the same devices."""
    return _resharder(old, new)(raw)


def check_complex_unreduced(have: ShapedArray, want: ShapedArray) -> None:
    """Raises NotImplementedError if complex values would become unreduced, since XLA would end the process."""
    if dtypes.is_complex(want.dtype) and not want.reduction_state[0] <= have.reduction_state[0]:
        raise NotImplementedError(
            f"reshard: XLA cannot make complex values unreduced, as {have.text} to {want.text}; their real and "
            "imaginary parts can be"
        )


@cache(maxsize=1024)
def _resharder(old: Signature, new: Signature) -> Callable[[Any], Any]:
    check_complex_unreduced(old.aval, new.aval)
    v, devices = Var(old.aval), new.sharding._device_assignment
    ports = [
        Port(old.aval, layout=sig.layout, sharding=sig.sharding if len(devices) > 1 else None) for sig in (old, new)
    ]
    closed = ClosedJaxpr(Jaxpr([], [v], [v], []))
    module = lower_jaxpr(Program("jit__identity", closed, (ports[0],), (ports[1],), num_partitions=len(devices)))
    launch = launcher(compile_text(module.text, name=module.name, devices=devices), [new])
    return lambda raw: launch([raw])[0]


# The first plan whose condition holds is used; a condition assumes that those above it do not hold.
_PLANS: tuple[tuple[Callable[[_Change], bool], Callable[[Signature, Signature], Plan | None]], ...] = (
    (lambda c: c.devices[0].client is not c.targets[0].client, _through_host),
    (lambda c: c.old.device is not None and c.new.device is not None, _relocation),
    (lambda c: c.old.dtype in _NO_COLLECTIVES, _through_host),
    (lambda c: c.spans_processes and {*c.devices} != {*c.targets}, _through_host),
    (lambda c: c.has_same_shards and c.devices != c.targets and not c.spans_processes, _relocation),
    (lambda c: not c.is_in_default_memory and c.has_same_shards, _relocation),
    (lambda c: not c.is_in_default_memory, _through_host),
    (lambda c: c.old.device is not None, _scattering),
    (lambda c: c.devices == c.targets and not c.spans_processes and _is_small(c.old, c.new), _through_host),
    (lambda c: c.devices == c.targets, _resharder),
    (lambda c: c.spans_processes, _resharding_to_reordered),
    (lambda c: len(c.devices) == len(c.targets), _relocation_and_resharding),
    (lambda c: True, _resharding_via_single_device),
)
