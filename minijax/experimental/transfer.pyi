# The names of this module's table, written by tests/write_stubs.py.

from minijax.run.clients.transfer_server import TransferConnection as TransferConnection
from minijax.run.clients.transfer_server import TransferServer as TransferServer
from minijax.run.clients.transfer_server import make_error_array as make_error_array
from minijax.run.clients.transfer_server import start_transfer_server as start_transfer_server

__all__ = [
    "TransferConnection", "TransferServer", "make_error_array", "start_transfer_server"
]
