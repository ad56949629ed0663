"""Transfer guards: transfers between host and devices are allowed, logged or disallowed."""

import logging
import threading
from typing import Any

from jaxlib._jax import guard_lib

from minijax.base import config
from minijax.base.native import JaxRuntimeError

_log = logging.getLogger("jax._src.transfer_guard")
_OPTIONS = {
    "host-to-device": config.transfer_guard_host_to_device,
    "device-to-device": config.transfer_guard_device_to_device,
    "device-to-host": config.transfer_guard_device_to_host,
}
_UNGUARDED = (None, "allow")
_armed = [any(option.value not in _UNGUARDED for option in _OPTIONS.values())]  # has any guard ever been set?


def _arm(value: Any, thread_only: bool) -> None:
    _armed[0] |= value not in _UNGUARDED


for _option in _OPTIONS.values():
    _option.on_change(_arm)


def _guard_garbage(level: str | None, thread_only: bool) -> None:
    """Sets the guard for arrays in reference cycles in jaxlib, which reports its raw arrays and hence ours."""
    state = guard_lib.thread_local_state() if thread_only else guard_lib.global_state()
    state.garbage_collect_array = level and getattr(guard_lib.GarbageCollectionGuardLevel, level.upper())


config.array_garbage_collection_guard.on_change(_guard_garbage)
_guard_garbage(config.array_garbage_collection_guard.value, False)


class _Local(threading.local):
    are_explicit = False
    are_internal = False


_local = _Local()


class explicit_transfers:
    """Context manager that marks transfers as explicitly requested by the user or, if `free`, as internal."""

    __slots__ = ("_free", "_saved")

    def __init__(self, free: bool = False):
        self._free = free

    def __enter__(self) -> None:
        self._saved = _local.are_explicit, _local.are_internal
        _local.are_explicit, _local.are_internal = True, self._free or _local.are_internal

    def __exit__(self, *exception: object) -> None:
        _local.are_explicit, _local.are_internal = self._saved


def is_guarded() -> bool:
    """Returns whether transfers from the host are guarded in this thread."""
    return _armed[0] and _OPTIONS["host-to-device"].value not in _UNGUARDED


def check(direction: str, aval: Any, sharding: Any) -> None:
    """Logs a transfer, or raises JaxRuntimeError, if its guard requires that."""
    if not _armed[0] or _local.are_internal:
        return
    mode = _OPTIONS[direction].value
    if mode in _UNGUARDED or _local.are_explicit and not mode.endswith("_explicit"):
        return
    what = f"{direction} transfer: aval={aval!r}, dst_sharding={sharding!r}"
    if mode.startswith("disallow"):
        advice = "Transfer with jax.device_put or jax.device_get, or allow it: jax.transfer_guard('allow')."
        raise JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed {what}. {advice}")
    _log.warning(what)
