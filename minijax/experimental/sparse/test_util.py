"""Test utilities for sparse arrays: layouts, random arrays, and a test case class."""

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.api import autodiff
from minijax.api.jit import jit
from minijax.api.vmap import vmap
from minijax.base import tree
from minijax.base.faces import listing
from minijax.experimental.sparse import ad
from minijax.experimental.sparse.ad import is_sparse as is_sparse
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcoo_dense import bcoo_extract
from minijax.experimental.sparse.bcsr import BCSR, bcsr_extract
from minijax.ir.types import typeof

__all__, __dir__ = listing(
    __name__,
    """
    BatchedDotGeneralProperties MATMUL_TOL SparseLayout SparseTestCase is_sparse iter_bcsr_layouts
    iter_sparse_layouts iter_subsets rand_bcoo rand_bcsr rand_sparse
""",
)

try:
    from absl.testing.parameterized import TestCase as _TestCase
except ImportError:
    from unittest import TestCase as _TestCase

MATMUL_TOL = {np.float32: 1e-5, np.float64: 1e-10, np.complex64: 1e-5, np.complex128: 1e-10}


class BatchedDotGeneralProperties(NamedTuple):
    """The shapes, layout and dimension numbers of a product of batched sparse arrays."""

    lhs_shape: tuple[int, ...]
    rhs_shape: tuple[int, ...]
    n_batch: int
    n_dense: int
    dimension_numbers: Any


class SparseLayout(NamedTuple):
    """The number of axes of each kind."""

    n_batch: int
    n_dense: int
    n_sparse: int


def iter_subsets(s: Sequence) -> Iterable[tuple]:
    """All subsequences, shortest first."""
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


def _rand(cls: Any, rng: Any, rand_method: Callable, nse: int | float, n_batch: int, n_dense: int) -> Callable:
    draw = rand_method(rng)

    def make(shape: Sequence[int], dtype: Any, n_batch: int = n_batch, n_dense: int = n_dense):
        n_sparse = len(shape) - n_batch - n_dense
        batch, sparse = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
        count, size = _stored(nse, sparse), math.prod(sparse)
        mask = np.zeros((math.prod(batch), size), bool)
        for row in mask:
            row[rng.choice(size, count, replace=False)] = True
        mask = mask.reshape(*batch, *sparse, *[1] * n_dense)
        array = np.where(mask, draw(shape, dtype), np.zeros((), dtype))
        return cls.fromdense(array, nse=count, n_batch=n_batch, n_dense=n_dense)

    return make


def rand_bcoo(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] = _standard,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., BCOO]:
    """A function (shape, dtype) -> random BCOO with `nse` stored elements, a fraction of the size if below 1."""
    return _rand(BCOO, rng, rand_method, nse, n_batch, n_dense)


def rand_bcsr(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] = _standard,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., Any]:
    """As `rand_bcoo`, for BCSR."""
    return _rand(BCSR, rng, rand_method, nse, n_batch, n_dense)


def rand_sparse(
    rng: np.random.RandomState, nse: int | float = 0.5, post: Callable = lambda x: x, rand_method: Callable = _standard
) -> Callable:
    """A function (shape, dtype) -> random array with `nse` nonzero elements, a fraction of the size if below 1."""
    draw = rand_method(rng)

    def make(shape, dtype):
        array = np.array(draw(shape, dtype))
        dropped = math.prod(typeof(array).shape) - _stored(nse, array.shape)
        flat = array.reshape(-1)
        flat[rng.choice(flat.size, max(dropped, 0), replace=False)] = 0
        return post(flat.reshape(array.shape))

    return make


class SparseTestCase(_TestCase):
    """A test case that compares functions of sparse arrays with functions of dense arrays."""

    def setUp(self):
        super().setUp()
        self._rng = np.random.RandomState(zlib.adler32(self._testMethodName.encode()))

    def rng(self) -> np.random.RandomState:
        return self._rng

    def assertArraysEqual(self, actual: Any, desired: Any, *, check_dtypes: bool = True, **_: Any) -> None:
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(desired))
        self.assertTrue(not check_dtypes or typeof(actual).dtype == typeof(desired).dtype)

    def assertAllClose(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, atol: Any = None, rtol: Any = None, **_: Any
    ) -> None:
        pairs = list(zip(tree.tree_leaves(actual), tree.tree_leaves(desired), strict=True))
        for a, d in pairs:
            a, d = np.asarray(a), np.asarray(d)
            np.testing.assert_allclose(a, d, _tolerance(a.dtype, rtol), _tolerance(a.dtype, atol))

    assertArraysAllClose = assertAllClose

    def assertSparseArraysEquivalent(self, x: Any, y: Any, **options: Any) -> None:
        self.assertEqual(x.shape, y.shape)
        self.assertAllClose(x.todense(), y.todense(), **options)

    def _CheckAgainstDense(
        self, dense_op, sparse_op, args_maker, check_jit=True, check_dtypes=True, tol=None, atol=None, rtol=None, **_
    ):
        args = args_maker()
        expected = dense_op(*_dense(args))
        runs = [sparse_op, jit(sparse_op)] if check_jit else [sparse_op]
        for run in runs:
            self.assertAllClose(_dense(run(*args)), expected, atol=atol or tol, rtol=rtol or tol)

    def _CheckGradsSparse(
        self, dense_fun, sparse_fun, args_maker, *, argnums=None, modes=("fwd", "rev"), atol=None, rtol=None
    ):
        args = args_maker()
        if not any(np.size(x) for x in tree.tree_leaves(dense_fun(*_dense(args)))):
            return  # no elements to differentiate
        argnums = tuple(range(len(args))) if argnums is None else argnums
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for mode in modes:
            sparse_jac, dense_jac = (ad.jacfwd, autodiff.jacfwd) if mode == "fwd" else (ad.jacrev, autodiff.jacrev)
            results = sparse_jac(lambda *xs: _dense(sparse_fun(*xs)), argnums=numbers)(*args)
            dense = dense_jac(dense_fun, argnums=numbers)(*_dense(args))
            leaves = tree.tree_leaves(results, is_leaf=is_sparse), tree.tree_leaves(dense)
            for ours, theirs in zip(*leaves, strict=True):
                ours, theirs = _stored_elements(ours, theirs)
                self.assertAllClose(ours, theirs, atol=atol, rtol=rtol)

    def _random_bdims(self, *args: int) -> list[int]:
        return [self.rng().randint(0, n + 1) for n in args]

    def _CheckBatchingSparse(
        self, dense_fun, sparse_fun, args_maker, *, batch_size=3, bdims=None, check_jit=False, tol=None, atol=None,
        rtol=None, **_,
    ):  # fmt: skip
        many = [args_maker() for _ in range(batch_size)]
        bdims = bdims or [0] * len(many[0])
        stacked = [_stacked(list(column), axis) for column, axis in zip(zip(*many, strict=True), bdims, strict=True)]
        run = vmap(sparse_fun, in_axes=tuple(bdims))
        expected = [tree.tree_leaves(dense_fun(*_dense(args))) for args in many]
        found = tree.tree_leaves(_dense((jit(run) if check_jit else run)(*stacked)))
        for leaf, parts in zip(found, zip(*expected, strict=True), strict=True):
            self.assertAllClose(leaf, np.stack(parts), atol=atol or tol, rtol=rtol or tol)


def _tolerance(dtype: np.dtype, given: Any) -> float:
    if isinstance(given, dict):
        given = given.get(dtype, given.get(dtype.type))
    return given if given is not None else 1e-5 if dtype.itemsize in (4, 8) else 1e-2


def _dense(args: Any) -> Any:
    return tree.tree_map(lambda x: x.todense() if is_sparse(x) else x, args, is_leaf=is_sparse)


def _stored_elements(mat: Any, dense: Any) -> tuple[Any, Any]:
    """The stored elements of `mat`, and the elements of `dense` at the same indices."""
    if isinstance(mat, BCOO):
        return mat.data, bcoo_extract(mat, dense, assume_unique=True).data
    if is_sparse(mat):
        return mat.data, bcsr_extract(mat.indices, mat.indptr, dense)
    return mat, dense


def _stacked(arrays: list, axis: int) -> Any:
    if not is_sparse(arrays[0]):
        return np.stack([np.asarray(x) for x in arrays], axis)
    shape = arrays[0].shape
    one = (*shape[:axis], 1, *shape[axis:])
    nse = max(x.nse for x in arrays)
    padded = [_with_nse(x, nse) for x in arrays]
    buffers = [np.stack([np.asarray(x) for x in parts], axis) for parts in zip(*[x._bufs for x in padded], strict=True)]
    return type(arrays[0])(tuple(buffers), shape=(*one[:axis], len(arrays), *one[axis + 1 :]))


def _with_nse(mat: Any, nse: int) -> Any:
    return mat if mat.nse == nse else mat.sum_duplicates(nse=nse, remove_zeros=False)
