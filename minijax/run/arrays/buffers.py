"""The buffer protocol for our arrays; classes written in Python can implement it only from Python 3.12 on."""

import ctypes
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

# Offsets in CPython 3.11's objects: a type's table of buffer functions, a slot's description and the slot's offset.
_BUFFER_TABLE, _MEMBER, _PLACE = 160, 40, 16
_DELEGATE = 24  # the offset at which a PickleBuffer stores the object whose buffer it exports


def _word(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(address)


def _get_buffer(cls: type) -> ctypes.c_void_p:
    """The pointer to the C function that exports the buffer of instances, which may be overwritten."""
    return _word(_word(id(cls) + _BUFFER_TABLE).value or 0)


def export_buffer_of_slot(cls: type, slot: str) -> None:
    """Makes instances of `cls` export the buffer of the object in `slot`; fails if that object has no buffer."""
    if sys.version_info >= (3, 12):
        cls.__buffer__ = lambda self, flags: memoryview(getattr(self, slot))  # pyright: ignore
        return
    # PickleBuffer's function exports the buffer of the object at a fixed offset, which is that of our slot.
    member = _word(id(cls.__dict__[slot]) + _MEMBER).value or 0
    if sys.implementation.name == "cpython" and _word(member + _PLACE).value == _DELEGATE:
        _get_buffer(cls).value = _get_buffer(pickle.PickleBuffer).value


def export_no_buffer(cls: Any) -> None:
    """Removes the buffer protocol that `cls` inherits through `export_buffer_of_slot`."""
    if sys.version_info >= (3, 12):
        cls.__buffer__ = None
    else:
        _get_buffer(cls).value = None


def export_buffer_of(cls: type, value: Callable[[Any], Any]) -> None:
    """Makes an instance `x` of `cls` export the buffer of `value(x)`."""

    def wanted(x):
        try:
            return value(x)
        except KeyboardInterrupt:  # who asks for a buffer goes on without one: interrupts it once more
            threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
            raise

    if sys.version_info >= (3, 12):
        cls.__buffer__ = lambda self, flags: memoryview(wanted(self))  # pyright: ignore
        return

    def get_buffer(x, view, flags):
        try:
            return ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(wanted(x)), ctypes.c_void_p(view), flags)
        except BaseException:  # CPython raises SystemError for it
            return -1

    if sys.implementation.name == "cpython":
        _kept.append(ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(get_buffer))
        _get_buffer(cls).value = ctypes.cast(_kept[-1], ctypes.c_void_p).value


_kept: list[Any] = []  # functions that C calls
