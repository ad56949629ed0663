"""Arrays of NumPy's variable-length strings: they can be put on CPU devices, but programs do not take them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.base import dtypes
from minijax.partition.layouts import Format
from minijax.partition.shardings import Sharding

_DURING_CALL = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


def check_place(device: Any) -> None:
    """Raises TypeError for a device, sharding or format with other devices than CPUs, which cannot hold strings."""
    there = device.sharding if isinstance(device, Format) else device
    devices = there._device_assignment if isinstance(there, Sharding) else (there,)
    if any(getattr(d, "platform", "") != "cpu" for d in devices):
        raise TypeError(
            f"String arrays can only be sharded to CPU devices. Received unsupported device or sharding: {device}"
        )


def put(value: Any, sig: Any) -> Any:
    """Puts strings on devices with the sharding of a signature; their value is read from a copy on the host."""
    kept = np.array(value, dtypes.string)
    kept.flags.writeable = False
    parts = sig.sharding.addressable_devices_indices_map(sig.shape)
    values = [np.array(kept[index], dtypes.string) for index in parts.values()]
    raw = _jax.batched_device_put(sig, sig.native, values, list(parts), sig.committed, False, _DURING_CALL, True)
    raw._npy_value = kept  # to read strings, jaxlib would import jax
    return raw


def joined(raws: Sequence[Any], sig: Any) -> Any:
    """As `put`, from the shards on the devices of this process."""
    whole = np.empty(sig.shape, dtypes.string)
    for raw, index in zip(raws, sig.sharding.addressable_devices_indices_map(sig.shape).values(), strict=True):
        whole[index] = raw._npy_value
    return put(whole, sig)
