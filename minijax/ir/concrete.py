"""Values that are known while a function is traced."""

from collections.abc import Callable
from typing import Any

from minijax.base import errors
from minijax.base.source import boundary
from minijax.ir.trace import Tracer


def concrete_value(x: Any) -> Any:
    """The value of `x`; None if it is a tracer whose value is not known."""
    return x.concrete_value() if isinstance(x, Tracer) else x


@boundary
def concrete_or_error(force: Callable | None, val: Any, context: str = "") -> Any:
    """Returns `force(val)`, or `val` if `force` is None. Raises ConcretizationTypeError for a traced value."""
    if isinstance(val, Tracer):
        known = val.to_concrete_value()
        if known is None:
            raise errors.ConcretizationTypeError(val, context)
        val = known
    return val if force is None else force(val)
