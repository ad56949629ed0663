"""Compiled programs as bytes, for other processes with the same devices (`jax.experimental.serialize_executable`)."""

import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any

from minijax.api.stages import Compiled
from minijax.base.native import JAXLIB_VERSION
from minijax.run.clients import client
from minijax.run.programs import compile

_MAGIC = b"minijax executable 1\n"
_HASH = 32


class _Pickler(pickle.Pickler):
    """Pickles devices as their index among the program's devices."""

    def __init__(self, file: Any, devices: Sequence[Any]):
        super().__init__(file)
        self._number = {device: i for i, device in enumerate(devices)}

    def persistent_id(self, obj: Any) -> int | None:
        return self._number.get(obj) if isinstance(obj, client.Device) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, devices: Sequence[Any]):
        super().__init__(file)
        self._devices = devices

    def persistent_load(self, pid: int) -> Any:
        return self._devices[pid]


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Serializes a compiled program: (bytes, tree of its arguments, tree of its results).

    Raises ValueError for a program that calls Python functions, has ordered effects, or captures references.
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize: only compiled programs can be serialized, got {compiled!r} of type {type(compiled)}"
        )
    if compiled._captured:
        raise ValueError(f"serialize: cannot serialize with a closed-over reference, and {compiled._name} has some")
    executable, loaded = compiled._executable, compiled._executable.loaded
    if executable.needs_process:
        raise ValueError(
            f"serialize: {compiled._name} calls functions of this process, or has ordered effects, which another "
            "process cannot continue"
        )
    devices = loaded.devices
    header = (JAXLIB_VERSION, devices[0].client.platform, [device.id for device in devices])
    file = io.BytesIO()
    pickle.dump(header, file)
    _Pickler(file, devices).dump((compiled._serialized(), compiled._state()))
    body = file.getvalue()
    return _MAGIC + hashlib.sha256(body).digest() + body, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None, execution_devices: Sequence[Any] | None = None
) -> Compiled:
    """Loads a compiled program that `serialize` wrote; it runs on as many devices as it was compiled for.

    By default those are the devices with the same ids. Loading can run any code, so load only what you trust. Raises
    ValueError for other bytes, another version of jaxlib, or devices or trees that do not fit.
    """
    file = io.BytesIO(_checked_body(serialized))
    version, platform, ids = pickle.load(file)
    if version != JAXLIB_VERSION:
        raise ValueError(
            f"deserialize_and_load: the program was compiled by jaxlib {version}; this is {JAXLIB_VERSION}"
        )
    devices = _devices(backend, execution_devices, platform, ids)
    program, state = _Unpickler(file, devices).load()
    for what, own, given in (("in_tree", "_flat_avals", in_tree), ("out_tree", "_out_avals", out_tree)):
        if given.num_leaves != len(state[own]):
            raise ValueError(f"deserialize_and_load: the program has {len(state[own])} values for {what}={given}")
    loaded = compile.load_serialized(program, devices, state["_name"])
    return Compiled._restored(loaded, state, in_tree, out_tree)


def _checked_body(serialized: Any) -> bytes:
    if not isinstance(serialized, bytes):
        raise TypeError(f"deserialize_and_load: serialized must be bytes, got {type(serialized)}")
    start = len(_MAGIC) + _HASH
    body = serialized[start:]
    if serialized[:start] != _MAGIC + hashlib.sha256(body).digest():
        raise ValueError("deserialize_and_load: these bytes are not what `serialize` of this version has written")
    return body


def _devices(backend: Any, execution_devices: Sequence[Any] | None, platform: str, ids: Sequence[int]) -> tuple:
    """Returns the devices to run on."""
    if backend is None and execution_devices:
        backend = execution_devices[0].client
    elif backend is None or isinstance(backend, str):
        backend = client.get_client(backend or platform)
    if backend.platform != platform:
        raise ValueError(f"deserialize_and_load: a program for {platform} cannot run on {backend.platform}")
    if execution_devices is None:
        by_id = {device.id: device for device in backend.devices()}
        execution_devices = [by_id[i] for i in ids if i in by_id]
    if any(device.client is not backend for device in execution_devices):
        raise ValueError("deserialize_and_load: Execution devices belong to a client other than `backend`")
    if len(execution_devices) != len(ids):
        raise ValueError(
            f"deserialize_and_load: the program runs on {len(ids)} devices, there are {len(execution_devices)}: "
            f"{list(execution_devices)}"
        )
    return tuple(execution_devices)
