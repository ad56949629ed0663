"""Operations on integers and flags that NumPy does as XLA would: indices and conditions of kernels need no program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.types import ShapedArray


def _divided(x: Any, y: Any) -> Any:
    return _wrapped(_quotient(int(x), int(y)) if y else -1, x.dtype)


def _wrapped(value: int, dtype: np.dtype) -> Any:
    """The integer as XLA stores it in a dtype: the smallest one divided by -1 is itself."""
    return np.array(value, np.int64 if abs(value) < 2**63 else np.uint64).astype(dtype)[()]


def _quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _remainder(x: Any, y: Any) -> Any:
    return x if y == 0 else x.dtype.type(int(x) - _quotient(int(x), int(y)) * int(y))


_BINARY: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "div": _divided,
    "rem": _remainder,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "select_n": lambda which, *cases: cases[int(which)],
}
_SAME = frozenset({"reshape", "squeeze", "broadcast_in_dim", "multiple_of", "transpose", "copy", "copy_p"})


def _is_plain(aval: Any) -> bool:
    return type(aval) is ShapedArray and not aval.shape and np.dtype(aval.dtype).kind in "iub"


def rule_of(eqn: JaxprEqn) -> Callable[..., Any] | None:
    """The function of NumPy scalars that does an operation on integers and flags; None for another operation."""
    atoms = (*eqn.invars, *eqn.outvars)
    if len(eqn.outvars) != 1 or not eqn.invars:
        return None
    if not all(isinstance(getattr(a.aval, "dtype", None), np.dtype) and _is_plain(a.aval) for a in atoms):
        return None
    name = eqn.primitive.name
    if name in _SAME and len(eqn.invars) == 1:
        return lambda x: x
    if name == "convert_element_type":
        dtype = np.dtype(eqn.outvars[0].aval.dtype)
        return lambda x: x.astype(dtype)
    if name in ("div", "rem", "max", "min", "sign", "abs") and eqn.invars[0].aval.dtype == np.bool_:
        return None
    return _BINARY.get(name)
