"""Token values outside of programs: operands and results of programs."""

from typing import Any

from minijax.base.naming import known_as
from minijax.ir.types import register_value_type, token_type


@known_as("jax._src.core.Token")
class Token:
    """A token: a program that takes it runs after the program that returned it."""

    __slots__ = ("_raw", "_sig")
    _buf = property(lambda self: self._raw)

    def __init__(self, raw: Any, sig: Any):
        self._raw, self._sig = raw, sig

    def block_until_ready(self) -> None:
        """Waits for the program."""
        self._raw.block_until_ready()


register_value_type(Token, lambda token: token_type)
