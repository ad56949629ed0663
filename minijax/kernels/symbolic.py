"""Kernels whose blocks have symbolic sizes: where they may be traced, and with numbers in the place of sizes."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

from minijax.base.symbolic.dimension import SymbolicDim
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from minijax.ir.refs import AbstractRef
from minijax.ir.types import ShapedArray

_LARGEST = 2**31 - 1


class _Allowed(threading.local):
    value = False


_allowed = _Allowed()


class pallas_export_experimental:
    """Lets blocks of kernels have symbolic sizes while it is entered, or forbids it.

    Args:
      dynamic_shapes: whether blocks may have symbolic sizes.

    Such kernels can be exported for TPUs only, with the check of custom calls disabled.

    Example:
        >>> (m,) = jax.export.symbolic_shape("m")
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = 2 * x_ref[...]
        >>> x = jax.ShapeDtypeStruct((m, 128), jnp.float32)
        >>> with pl.pallas_export_experimental(dynamic_shapes=True):
        ...     out = jax.eval_shape(pl.pallas_call(double, x), x)
        >>> out.shape
        (m, 128)
    """

    def __init__(self, dynamic_shapes: bool):
        self._dynamic_shapes = bool(dynamic_shapes)

    def __enter__(self) -> None:
        self._saved = _allowed.value
        _allowed.value = self._dynamic_shapes

    def __exit__(self, *exception: object) -> None:
        _allowed.value = self._saved


def are_allowed() -> bool:
    """Whether blocks may have symbolic sizes in this thread."""
    return _allowed.value


class Placeholders:
    """Numbers in the place of symbolic sizes, from the largest 32-bit integer downwards."""

    def __init__(self):
        self.numbers: dict[SymbolicDim, int] = {}

    def replaced(self, x: Any) -> Any:
        """A size, type, jaxpr, or a structure of them, with numbers in the place of symbolic sizes."""
        if isinstance(x, SymbolicDim):
            return self.numbers.setdefault(x, _LARGEST - len(self.numbers))
        if isinstance(x, ShapedArray):
            return x.update(shape=self.replaced(x.shape)) if any(isinstance(d, SymbolicDim) for d in x.shape) else x
        if isinstance(x, AbstractRef):
            return AbstractRef(self.replaced(x.inner_aval), x.memory_space)
        if isinstance(x, Jaxpr):
            return self._jaxpr(x)
        if isinstance(x, ClosedJaxpr):
            return x.map_jaxpr(self._jaxpr)
        if isinstance(x, tuple):
            items = [self.replaced(item) for item in x]
            return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            return self._dataclass(x)
        return x

    def _dataclass(self, x: Any) -> Any:
        fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init}
        changed = {n: new for n, old in fields.items() if (new := self.replaced(old)) is not old and new != old}
        return dataclasses.replace(x, **changed) if changed else x

    def _jaxpr(self, jaxpr: Jaxpr) -> Jaxpr:
        names: dict[Any, Any] = {}

        def atom(a: Any) -> Any:
            if isinstance(a, Literal):
                return a
            if a not in names:
                new = self.replaced(a.aval)
                names[a] = a if new is a.aval else type(a)(new)
            return names[a]

        def equation(eqn: JaxprEqn) -> JaxprEqn:
            params = {name: self.replaced(value) for name, value in eqn.params.items()}
            return eqn.replace(invars=[*map(atom, eqn.invars)], outvars=[*map(atom, eqn.outvars)], params=params)

        return jaxpr.replace(
            constvars=[*map(atom, jaxpr.constvars)],
            invars=[*map(atom, jaxpr.invars)],
            eqns=[*map(equation, jaxpr.eqns)],
            outvars=[*map(atom, jaxpr.outvars)],
        )
