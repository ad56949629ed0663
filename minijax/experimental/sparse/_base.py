"""The base class of sparse arrays in all formats."""

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import lazy, tree
from minijax.ir.trace import Tracer
from minijax.run.array import Array

_sparse: Any = lazy.defer("minijax.experimental.sparse")


def late(name: str) -> Callable:
    """The function or class `jax.experimental.sparse.name`, looked up at the time of the call."""
    return getattr(_sparse, name)


def operator(name: str) -> Any:
    """A method that calls the sparsified operator or method `name`."""

    def method(self, *args, **kwargs):
        return _sparse.transform.operators[name](self, *args, **kwargs)

    method.__name__ = name
    return method


class JAXSparse(abc.ABC):
    """A sparse array: a pytree with its buffers as leaves, and a shape.

    A subclass names its buffers. Operators that its format does not implement raise NotImplementedError.
    """

    data: Any
    shape: tuple[int, ...]
    __hash__: Any = None

    def __init__(self, args: tuple[Array, ...], *, shape: Sequence[int]):
        self.shape = tuple(shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        name = type(self).__name__
        try:
            shown = f"{name}({self.dtype}{list(self.shape)}, nse={self.nse}{self._layout()})"
        except Exception:
            return f"{name}(<invalid>)"
        data = self.data
        return f"{type(data).__name__}[{shown}]" if isinstance(data, Tracer) else shown

    def _layout(self) -> str:
        """The part of the repr after the number of stored elements."""
        return ""

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """The number of stored elements of each batch."""

    @property
    @abc.abstractmethod
    def dtype(self) -> Any:
        """The dtype of the elements."""

    @abc.abstractmethod
    def tree_flatten(self) -> tuple: ...

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence) -> Any: ...

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any: ...

    @abc.abstractmethod
    def todense(self) -> Array: ...

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def block_until_ready(self) -> Any:
        """Waits until the buffers are computed, and returns the array."""
        for leaf in tree.tree_leaves(self):
            leaf.block_until_ready()
        return self

    def _lacks(self, operation: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__}.{operation} is not implemented")

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        raise self._lacks("sum")

    def __neg__(self) -> Any:
        raise self._lacks("__neg__")

    def __pos__(self) -> Any:
        raise self._lacks("__pos__")

    def __matmul__(self, other: Any) -> Any:
        raise self._lacks("__matmul__")

    def __rmatmul__(self, other: Any) -> Any:
        raise self._lacks("__rmatmul__")

    def __mul__(self, other: Any) -> Any:
        raise self._lacks("__mul__")

    def __rmul__(self, other: Any) -> Any:
        raise self._lacks("__rmul__")

    def __add__(self, other: Any) -> Any:
        raise self._lacks("__add__")

    def __radd__(self, other: Any) -> Any:
        raise self._lacks("__radd__")

    def __sub__(self, other: Any) -> Any:
        raise self._lacks("__sub__")

    def __rsub__(self, other: Any) -> Any:
        raise self._lacks("__rsub__")

    def __getitem__(self, item: Any) -> Any:
        raise self._lacks("__getitem__")
