"""jax.experimental.transfer: arrays sent from one process to another on request."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    "minijax.run.clients.transfer_server: TransferConnection TransferServer make_error_array start_transfer_server",
)
