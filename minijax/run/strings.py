"""Arrays of NumPy's strings of any length: CPU devices hold them, and no program takes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.base import dtypes
from minijax.partition.layouts import Format
from minijax.partition.shardings import Sharding

_DURING_CALL = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


def check_place(device: Any) -> None:
    """Raises TypeError unless strings can be put on this device, or lie by this sharding or format."""
    there = device.sharding if isinstance(device, Format) else device
    devices = there._device_assignment if isinstance(there, Sharding) else (there,)
    if any(getattr(d, "platform", "") != "cpu" for d in devices):
        raise TypeError(
            f"String arrays can only be sharded to CPU devices. Received unsupported device or sharding: {device}"
        )


def put(value: Any, sig: Any) -> Any:
    """The raw array of strings that lies as a signature says; what it holds is read from a copy on the host."""
    kept = np.array(value, dtypes.string)
    kept.flags.writeable = False
    parts = sig.sharding.addressable_devices_indices_map(sig.shape)
    values = [np.array(kept[index], dtypes.string) for index in parts.values()]
    raw = _jax.batched_device_put(sig, sig.native, values, list(parts), sig.committed, False, _DURING_CALL, True)
    raw._npy_value = kept  # jaxlib's own way to read strings imports jax
    return raw


def joined(raws: Sequence[Any], sig: Any) -> Any:
    """As `put`, of the parts on the devices of this process."""
    whole = np.empty(sig.shape, dtypes.string)
    for raw, index in zip(raws, sig.sharding.addressable_devices_indices_map(sig.shape).values(), strict=True):
        whole[index] = raw._npy_value
    return put(whole, sig)
