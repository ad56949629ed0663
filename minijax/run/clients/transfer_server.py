"""Sends arrays from one process to another on request, by jaxlib's servers; these import jax when they receive."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jaxlib import _jax

from minijax.base import tree
from minijax.ir.types import ShapedArray
from minijax.partition.shardings import Sharding
from minijax.run.arrays.array import ArrayImpl, Signature, signature


class _ArrayType:
    """The type of an array to create, with the attributes that jaxlib reads."""

    def __init__(self, sig: Signature):
        self.shape, self.dtype, self.weak_type, self.sharding = sig.shape, sig.dtype, sig.weak_type, sig.native


def _signature(name: str, x: Any) -> Signature:
    if not isinstance(getattr(x, "sharding", None), Sharding):
        raise AttributeError(f"{name}: the description of an array must have a sharding, got {x}")
    return signature(ShapedArray(x.shape, x.dtype), x.sharding, True)


def _array(raw: Any, sig: Signature) -> ArrayImpl:
    return sig.wrap(raw._rewrap_with_aval_and_sharding(sig, sig.native), sig)


class TransferConnection:
    """A connection to one server."""

    def __init__(self, raw: Any):
        self._raw = raw

    def pull(self, uuid: int, xs: Any, timeout: datetime | None = None) -> Any:
        """Fetches the arrays that the server offers under this number; `xs` has their types and shardings."""
        leaves, treedef = tree.flatten(xs)
        sigs = [_signature("pull", x) for x in leaves]
        if not sigs:
            return treedef.unflatten([])
        backend = sigs[0].sharding._device_assignment[0].client
        raws = self._raw._pull_flat(uuid, backend, list(map(_ArrayType, sigs)), timeout)
        return treedef.unflatten(map(_array, raws, sigs))


class TransferServer:
    """A server from which other processes pull arrays."""

    def __init__(self, raw: Any):
        self._raw = raw

    def address(self) -> str:
        """The address at which the server listens."""
        return self._raw.address()

    def connect(self, address: str) -> TransferConnection:
        """Connects to the server at an address. Raises JaxRuntimeError for an invalid address."""
        return TransferConnection(self._raw.connect(address))

    def await_pull(self, uuid: int, arrays: Any, timeout: datetime | None = None) -> None:
        """Offers a tree of arrays under a number, to be pulled once. Raises TypeError for other leaves than arrays."""
        leaves = tree.tree_leaves(arrays)
        for x in leaves:
            if not isinstance(x, ArrayImpl):
                raise TypeError(f"await_pull: only arrays can be pulled, got {type(x)}")
            x._check_alive()
        self._raw._await_pull_flat(uuid, [x._settled_raw for x in leaves], timeout)


def start_transfer_server(
    client: Any, address: str = "[::]:0", transport_addresses: Sequence[str] = (), max_num_parallel_copies: int = 8,
    transfer_size: int = 256 * 1024 * 1024, supports_pinned_allocator: bool = False, use_raw_buffers: bool = False,
) -> TransferServer:  # fmt: skip
    """Starts a server for the arrays of a client (`device.client`)."""
    options = max_num_parallel_copies, transfer_size, supports_pinned_allocator, use_raw_buffers
    return TransferServer(_jax.start_transfer_server(client, address, list(transport_addresses), *options))


def make_error_array(aval: Any, message: str) -> ArrayImpl:
    """An array with the type and sharding of `aval` whose computation has failed with this message."""
    sig = _signature("make_error_array", aval)
    return _array(_jax._make_error_array(sig.sharding._device_assignment[0].client, _ArrayType(sig), message), sig)
