"""Functions of sparse arrays in any format."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from minijax.api.jit import eval_shape
from minijax.api.vmap import vmap
from minijax.base import tree
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import listing
from minijax.experimental.sparse._base import JAXSparse
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.experimental.sparse.coo import COO
from minijax.experimental.sparse.csr import CSC, CSR
from minijax.experimental.sparse.matrices import Composed
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import ShapedArray
from minijax.primitives.zeros import instantiate
from minijax.run.arrays.array import Array

__all__, __dir__ = listing(__name__, "empty eye todense todense_p")

_FORMATS = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


class AsDense(Composed):
    """The dense array of a sparse array with these leaves, or the leaf itself for a dense array."""

    name = "todense"

    def compute(self, *bufs, tree):
        arr = tree.unflatten(bufs)
        return [arr.todense() if isinstance(arr, JAXSparse) else arr]

    def infer(self, *avals, tree):
        structs = eval_shape(lambda *bufs: self.compute(*bufs, tree=tree), *avals)
        return [ShapedArray(s.shape, s.dtype, s.weak_type) for s in structs]

    def transpose(self, cts, data, *others, tree):
        (ct,) = cts
        if not is_undefined_primal(data) or any(map(is_undefined_primal, others)):
            raise ValueError("todense: can be transposed with respect to the data only")
        return self.transposed(instantiate(ct), (data, *others), tree=tree)

    def batch(self, axis, operands, dims, *, tree):
        return vmap(lambda *bufs: self.compute(*bufs, tree=tree), in_axes=tuple(dims))(*operands), [0]


todense_p = AsDense()


def todense(arr: JAXSparse | Array) -> Array:
    """Converts a sparse array to a dense one; returns a dense array unchanged.

    Example:
        >>> jax.experimental.sparse.todense(jax.experimental.sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    bufs, structure = tree.tree_flatten(arr)
    return todense_p.bind(*bufs, tree=structure)


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Creates a sparse array of zeros in format bcoo, bcsr, coo, csr or csc. `kwds` depend on the format.

    Example:
        >>> jax.experimental.sparse.empty((2, 3)).shape
        (2, 3)
    """
    if sparse_format not in _FORMATS:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be one of {list(_FORMATS)}")
    return _FORMATS[sparse_format]._empty(tuple(shape), dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Creates a sparse N x M (by default N x N) matrix with ones on its k-th diagonal. `kwds` depend on the format.

    Example:
        >>> jax.experimental.sparse.eye(2)
        BCOO(float32[2, 2], nse=2)
    """
    cls = _FORMATS[sparse_format]
    N, M, k = map(operator.index, (N, N if M is None else M, k))
    return cls._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds)
