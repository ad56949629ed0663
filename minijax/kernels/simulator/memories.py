"""Memories of simulated devices and cores: arrays and semaphores, each with what the simulator knows of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.kernels.memory import MemorySpace, TpuMemorySpace

Place = tuple[int, int | None]  # device and core; memory that the cores of a device share has no core


def is_main(space: Any) -> bool:
    """Returns whether this is main memory, which the cores share and from which they cannot compute."""
    return space is MemorySpace.ANY or space is TpuMemorySpace.HBM


def uninitialized_value(dtype: Any, how: str) -> Any:
    """An element of memory that was not written: NaN or the largest integer, or zero."""
    if how == "zero":
        return np.zeros((), dtype)[()]
    if dtypes.issubdtype(dtype, np.inexact):
        return np.array(np.nan).astype(dtype)[()]
    if dtype == np.bool_:
        return np.True_
    return np.array(dtypes.iinfo(dtype).max, dtype)[()]


def check_dtype(dtype: Any, what: str) -> None:
    """Raises NotImplementedError for a dtype that no array of NumPy has, such as that of keys or semaphores."""
    if dtypes.is_extended(dtype):
        raise NotImplementedError(f"pallas_call: {what} has the dtype {dtype}, which cannot be simulated")


class Buffer:
    """An array in a memory. `bounds` is the shape up to which indices are allowed."""

    __slots__ = ("array", "bounds", "space", "name", "place", "allocation", "empty", "freed", "log")

    def __init__(self, array: np.ndarray, space: Any, name: str, place: Place, empty: Any, bounds: tuple | None = None):
        self.array, self.space, self.name, self.place, self.empty = array, space, name, place, empty
        self.bounds = array.shape if bounds is None else bounds
        self.allocation: Allocation | None = None
        self.freed = False
        self.log: list = []  # accesses, where races are detected

    shape = property(lambda self: self.array.shape)

    def __str__(self):
        device, core = self.place
        owner = f"device {device}" if core is None else f"device {device}, core {core}"
        return f"{self.name} ({self.space}, {owner})"


class Semaphore:
    """A counter, with the copies that will signal it and the clock of those who have."""

    __slots__ = ("count", "clock", "copies", "name", "place")

    def __init__(self, name: str, place: Place):
        self.count, self.name, self.place = 0, name, place
        self.clock: dict[int, int] | None = None
        self.copies: list = []

    def __str__(self):
        return f"{self.name} of device {self.place[0]}, core {self.place[1]}"


class Semaphores:
    """An array of semaphores."""

    __slots__ = ("array", "place", "allocation", "name", "freed")

    def __init__(self, shape: Sequence[int], name: str, place: Place):
        label = (lambda i: f"{name}[{', '.join(map(str, i))}]") if shape else (lambda i: name)
        self.array = np.empty(shape, object)
        for i in np.ndindex(*shape):
            self.array[i] = Semaphore(label(i), place)
        self.place, self.name, self.freed = place, name, False
        self.allocation: Allocation | None = None

    def __str__(self):
        return f"{self.name} of device {self.place[0]}, core {self.place[1]}"


class Allocation:
    """The memories that a place of a kernel allocates on all devices and cores: copies and signals find them here."""

    __slots__ = ("memories", "users")

    def __init__(self):
        self.memories: dict[Place, Any] = {}
        self.users = 0  # cores that have not left the scope of memory that they share

    def at(self, place: Place, make: Callable[[], Any]) -> Any:
        """The memory of a device and core, made by the first call."""
        found = self.memories.get(place)
        return self.put(make()) if found is None or found.freed else found

    def put(self, memory: Any) -> Any:
        """Adds the memory of a device and core."""
        memory.allocation = self
        self.memories[memory.place] = memory
        return memory


def padded(shape: Sequence[int], dtype: Any, space: Any) -> tuple[int, ...]:
    """The shape with whole tiles of a TPU's memory. Scalar memory has no tiles."""
    if space is TpuMemorySpace.SMEM or not shape or dtypes.itemsize_bits(dtype) > 32:
        return tuple(shape)
    if len(shape) == 1:
        return (-(-shape[0] // 128) * 128,)
    rows = 8 * (32 // dtypes.itemsize_bits(dtype))
    *rest, n, m = shape
    if n < rows:
        rows = max(8, 1 << math.ceil(math.log2(max(n, 1))))
    return (*rest, -(-n // rows) * rows, -(-m // 128) * 128)
