"""What tests of sparse arrays are written with: layouts, and random arrays."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.experimental.sparse._base import JAXSparse, late
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.ir.types import typeof

MATMUL_TOL = {np.float32: 1e-5, np.float64: 1e-10, np.complex64: 1e-5, np.complex128: 1e-10}


class BatchedDotGeneralProperties(NamedTuple):
    """A product of batched sparse arrays: shapes, layout and dimension numbers."""

    lhs_shape: tuple[int, ...]
    rhs_shape: tuple[int, ...]
    n_batch: int
    n_dense: int
    dimension_numbers: Any


class SparseLayout(NamedTuple):
    """How many axes of each kind there are."""

    n_batch: int
    n_dense: int
    n_sparse: int


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse array."""
    return isinstance(x, JAXSparse)


def iter_subsets(s: Sequence) -> Iterable[tuple]:
    """All subsequences, shorter ones first."""
    return itertools.chain.from_iterable(itertools.combinations(s, n) for n in range(len(s) + 1))


def iter_sparse_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterable[SparseLayout]:
    """The layouts of BCOO of this shape."""
    for n_batch in range(min_n_batch, len(shape) + 1):
        for n_dense in range(len(shape) + 1 - n_batch):
            yield SparseLayout(n_batch=n_batch, n_dense=n_dense, n_sparse=len(shape) - n_batch - n_dense)


def iter_bcsr_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterable[SparseLayout]:
    """The layouts of BCSR of this shape: two axes are sparse."""
    return (layout for layout in iter_sparse_layouts(shape, min_n_batch) if layout.n_sparse == 2)


def _standard(rng: np.random.RandomState) -> Callable:
    def draw(shape, dtype):
        numbers = 3 * rng.standard_normal(shape)
        if np.issubdtype(dtype, np.complexfloating):
            numbers = numbers + 3j * rng.standard_normal(shape)
        return np.asarray(numbers).astype(dtype)

    return draw


def _stored(nse: int | float, shape: Sequence[int]) -> int:
    size = math.prod(shape)
    return math.ceil(nse * size) if 0 <= nse < 1 else int(nse)


def _rand(fromdense: str, rng: Any, rand_method: Callable, nse: int | float, n_batch: int, n_dense: int) -> Callable:
    draw = rand_method(rng)

    def make(shape: Sequence[int], dtype: Any):
        n_sparse = len(shape) - n_batch - n_dense
        batch, sparse = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
        count, size = _stored(nse, sparse), math.prod(sparse)
        mask = np.zeros((math.prod(batch), size), bool)
        for row in mask:
            row[rng.choice(size, count, replace=False)] = True
        mask = mask.reshape(*batch, *sparse, *[1] * n_dense)
        array = np.where(mask, draw(shape, dtype), np.zeros((), dtype))
        return late(fromdense).fromdense(array, nse=count, n_batch=n_batch, n_dense=n_dense)

    return make


def rand_bcoo(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] = _standard,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., BCOO]:
    """A function (shape, dtype) that makes a BCOO with `nse` stored elements, or that share of all."""
    return _rand("BCOO", rng, rand_method, nse, n_batch, n_dense)


def rand_bcsr(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] = _standard,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., Any]:
    """As `rand_bcoo`, for BCSR."""
    return _rand("BCSR", rng, rand_method, nse, n_batch, n_dense)


def rand_sparse(
    rng: np.random.RandomState, nse: int | float = 0.5, post: Callable = lambda x: x, rand_method: Callable = _standard
) -> Callable:
    """A function (shape, dtype) that makes an array with `nse` elements, or that share of all, and zeros."""
    draw = rand_method(rng)

    def make(shape, dtype):
        array = np.array(draw(shape, dtype))
        dropped = math.prod(typeof(array).shape) - _stored(nse, array.shape)
        flat = array.reshape(-1)
        flat[rng.choice(flat.size, max(dropped, 0), replace=False)] = 0
        return post(flat.reshape(array.shape))

    return make
