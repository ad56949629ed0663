# The names of this module's table, written by tests/write_stubs.py.

from minijax.run.clients.client import DeviceList as DeviceList

__all__ = [
    "DeviceList"
]
