"""The buffer protocol for our arrays, which a class written in Python can offer only from Python 3.12 on."""

import ctypes
import pickle
import sys
from typing import Any

# Offsets in CPython 3.11's objects: a type's table of buffer functions, a slot's description and its place.
_BUFFER_TABLE, _MEMBER, _PLACE = 160, 40, 16
_DELEGATE = 24  # where a PickleBuffer keeps whose buffer it hands out


def _word(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(address)


def _get_buffer(cls: type) -> ctypes.c_void_p:
    """The C function by which instances hand out their memory, as a place to write to."""
    return _word(_word(id(cls) + _BUFFER_TABLE).value or 0)


def lend_raw(cls: type, slot: str) -> None:
    """Has instances of `cls` hand out the buffer of the object in `slot`, which refuses if it has none."""
    if sys.version_info >= (3, 12):
        cls.__buffer__ = lambda self, flags: memoryview(getattr(self, slot))  # pyright: ignore
        return
    # PickleBuffer's function asks the object at one offset in the instance, where our slot happens to be.
    member = _word(id(cls.__dict__[slot]) + _MEMBER).value or 0
    if sys.implementation.name == "cpython" and _word(member + _PLACE).value == _DELEGATE:
        _get_buffer(cls).value = _get_buffer(pickle.PickleBuffer).value


def lend_nothing(cls: Any) -> None:
    """Takes from `cls` what it has inherited of `lend_raw`."""
    if sys.version_info >= (3, 12):
        cls.__buffer__ = None
    else:
        _get_buffer(cls).value = None
