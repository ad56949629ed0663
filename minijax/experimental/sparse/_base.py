"""The base classes of sparse arrays: of all, of the formats, and of the formats with batch axes."""

import abc
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.api.vmap import register_vmappable
from minijax.base import tree
from minijax.base.util import named
from minijax.experimental.sparse.util import SparseInfo
from minijax.ir.primitive import Primitive
from minijax.ir.trace import Tracer
from minijax.run.arrays.array import Array


def _missing(operation: str) -> Callable[..., Any]:
    """The method of an operation that a format may lack."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.{operation} is not implemented")

    return named(method, operation, None)


class JAXSparse(abc.ABC):
    """Is the base class of sparse arrays: a pytree with its buffers as leaves, and a shape.

    A subclass names its buffers. Operators that its format does not implement raise NotImplementedError.

    Example:
        >>> isinstance(jax.experimental.sparse.eye(2), jax.experimental.sparse.JAXSparse)
        True
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

    sum = _missing("sum")
    __neg__, __pos__, __getitem__ = map(_missing, ("__neg__", "__pos__", "__getitem__"))
    __matmul__, __rmatmul__, __mul__, __rmul__ = map(_missing, ("__matmul__", "__rmatmul__", "__mul__", "__rmul__"))
    __add__, __radd__, __sub__, __rsub__ = map(_missing, ("__add__", "__radd__", "__sub__", "__rsub__"))


class Format(JAXSparse):
    """The base class of the formats: buffers with the names `_names`, data first, and metadata, fields of `_Info`."""

    _names: ClassVar[tuple[str, ...]]
    _Info: ClassVar[type[NamedTuple]]
    _fromdense: ClassVar[Callable[..., Any]]
    _todense: ClassVar[Primitive]
    dtype = property(lambda self: self.data.dtype)
    _bufs = property(lambda self: tuple([vars(self)[name] for name in self._names]))
    _info = property(lambda self: self._Info(**self._metadata()))

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int]):
        vars(self).update(zip(self._names, map(jnp.asarray, args), strict=True))
        super().__init__(args, shape=shape)

    def _params(self) -> dict[str, Any]:
        """The parameters of the primitives of the format that depend on the array."""
        return {"spinfo": self._info}

    def todense(self) -> Array:
        """Converts to a dense array."""
        return self._todense.bind(*self._bufs, **self._params())

    def tree_flatten(self) -> tuple:
        return self._bufs, self._metadata()

    def _metadata(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in self._Info._fields}

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence) -> Self:
        if aux_data.keys() != set(cls._Info._fields):
            raise ValueError(f"{cls.__name__}.tree_unflatten: invalid {aux_data=}")
        self = object.__new__(cls)
        vars(self).update(zip(cls._names, children, strict=True), **aux_data)
        return self


class BatchedFormat(Format):
    """The base class of the formats with batch, sparse and dense axes. Batch axes of size one are broadcast."""

    indices: Any
    indices_sorted: bool
    unique_indices: bool
    n_batch: Any
    n_dense: Any
    _Info = SparseInfo
    _sparse_shape = property(lambda self: self.shape[self.n_batch : self.ndim - self.n_dense])
    _validated: ClassVar[Callable]  # (*buffers, shape) -> properties; raises ValueError for incompatible shapes
    _batch_axis = "batch dimension"  # its name in errors of vmap

    def __init__(
        self, args: tuple[Any, ...], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        super().__init__(args, shape=shape)
        self._validated(*self._bufs, self.shape)

    def _layout(self):
        sizes = {"n_batch": self.n_batch, "n_dense": self.n_dense}
        return "".join(f", {name}={n}" for name, n in sizes.items() if n)

    @classmethod
    def fromdense(
        cls, mat: Array, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> Self:
        """Converts a dense array. `nse` is the number of nonzero elements by default; traced arrays require it."""
        return cls._fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> Self:
        """Converts a scipy.sparse matrix. Raises NotImplementedError for batch and dense axes."""
        if n_dense or n_batch:
            raise NotImplementedError(f"{cls.__name__}.from_scipy_sparse: n_dense and n_batch must be zero")
        return cls(cls._scipy_buffers(mat, index_dtype or jnp.int32), shape=mat.shape)

    @staticmethod
    def _scipy_buffers(mat: Any, index_dtype: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def _with(self, buffers: Iterable, **metadata: Any) -> Self:
        """A sparse array of these buffers, with metadata that differ from those of this one."""
        return type(self)(tuple(buffers), **(self._metadata() | metadata))


def register_batched(cls: type[BatchedFormat]) -> None:
    """Registers a format as arguments and results of vmap, which maps over batch axes."""
    register_vmappable(cls, int, int, _without_axis, _with_axis, None)


def _without_axis(to_element: Callable, index: Any, mat: BatchedFormat, axis: int | None) -> BatchedFormat:
    """The sparse array without the mapped batch axis, as vmap passes it to a function."""
    if axis is None:
        return mat
    if not -mat.ndim <= axis < mat.ndim or axis % mat.ndim >= mat.n_batch:
        name = type(mat).__name__
        raise ValueError(
            f"Cannot map in_axis={axis} for {name} array with n_batch={mat.n_batch}. in_axes for batched {name} "
            f"operations must correspond to a {mat._batch_axis}."
        )
    axis %= mat.ndim
    buffers = (to_element(x, axis) if x.shape[axis] == mat.shape[axis] else lax.squeeze(x, (axis,)) for x in mat._bufs)
    return mat._with(buffers, shape=mat.shape[:axis] + mat.shape[axis + 1 :])


def _with_axis(from_elements: Callable, size: int, mat: BatchedFormat, axis: int | None) -> BatchedFormat:
    """The sparse array with the mapped axis as a new batch axis, as vmap returns it."""
    if axis is not None and not 0 <= axis <= mat.n_batch:
        name = type(mat).__name__
        raise ValueError(f"{name}: out_axes={axis} of vmap for n_batch={mat.n_batch}, it must become a batch axis")
    shape = mat.shape if axis is None else (*mat.shape[:axis], size, *mat.shape[axis:])
    return mat._with([from_elements(size, x, axis) for x in mat._bufs], shape=shape)
