"""DLPack: exchange of memory with other libraries, and the mapping of its device numbers."""

import ctypes
import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.run.arrays import host
from minijax.run.clients import client

ALIGNMENT = 64  # bytes; required of memory that XLA's programs read on CPU


class DLDeviceType(enum.IntEnum):
    """The kinds of devices, with dlpack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10


PLATFORMS = {DLDeviceType.kDLCPU: "cpu", DLDeviceType.kDLCUDA: "cuda", DLDeviceType.kDLROCM: "rocm"}


def device_at(place: Sequence[int]) -> client.Device:
    """The device of a kind and a number. Raises BufferError, RuntimeError or JaxRuntimeError if it does not exist."""
    kind, number = place
    if int(kind) not in PLATFORMS:
        raise BufferError(f"__dlpack__: dl_device is of an unsupported device type (DLDeviceType: {int(kind)})")
    return client.get_client(PLATFORMS[DLDeviceType(int(kind))]).device_from_local_hardware_id(int(number))


def place_of(device: client.Device) -> tuple[DLDeviceType, int]:
    """The dlpack kind and number of a device; all CPU devices have number 0.

    Raises BufferError for devices that dlpack does not support.
    """
    if device.platform == "cpu":
        return DLDeviceType.kDLCPU, 0
    version = device.client.platform_version
    for kind, name in PLATFORMS.items():
        if name in version:
            return kind, device.local_hardware_id
    raise BufferError(f"__dlpack__: arrays on {device.platform} cannot be exchanged by dlpack")


def needs_copy(source: client.Device, target: client.Device) -> ValueError:
    """The error for a transfer to another device if copies are forbidden."""
    return ValueError(
        f"Specified device={target!r} which requires a copy since the source device is {source!r}, however copy=False. "
        "Set copy=True or copy=None to perform the requested operation."
    )


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# dlpack type codes that NumPy does not support: 4 is bfloat16, and the 8-bit floats start at 7.
_ML_FLOATS = "e3m4 e4m3 e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz e8m0fnu".split()
_ML_CODES = {4: "bfloat16", **{code: f"float8_{name}" for code, name in enumerate(_ML_FLOATS, 7)}}


def numpy_of(x: Any) -> np.ndarray:
    """A NumPy view of an object's memory. Raises TypeError for dtypes that NumPy and ml_dtypes lack."""
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError):
        return _numpy_of_capsule(x.__dlpack__())


def _numpy_of_capsule(capsule) -> np.ndarray:
    tensor = _DLTensor.from_address(host.capsule_pointer(capsule, b"dltensor"))
    dtype = dtypes.BY_NAME.get(_ML_CODES.get(tensor.code, ""))
    if dtype is None:
        raise TypeError(f"from_dlpack: dlpack type code {tensor.code} with {tensor.bits} bits is not supported")
    shape = tuple(tensor.shape[: tensor.ndim])
    if not math.prod(shape):
        return np.empty(shape, dtype)
    strides = [s * dtype.itemsize for s in tensor.strides[: tensor.ndim]] if tensor.strides else None
    span = (
        math.prod(shape)
        if strides is None
        else 1 + sum((n - 1) * s // dtype.itemsize for n, s in zip(shape, strides, strict=True))
    )
    memory = (ctypes.c_char * (span * dtype.itemsize)).from_address(tensor.data + tensor.byte_offset)
    memory._capsule = capsule
    return np.ndarray(shape, dtype, memory, strides=strides)
