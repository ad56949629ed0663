"""The methods and operators of BCOO and BCSR that call functions of the package; importing this module sets them."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.experimental.sparse import bcoo_dense, bcoo_layout, sparsify_rules as sparsify_rules
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcsr import BCSR
from minijax.experimental.sparse.transform import sparsify

# ---- methods -----------------------------------------------------------------------------------------


def transpose(self: BCOO, axes: Sequence[int] | None = None) -> BCOO:
    """Permutes the axes, reversed if `axes` is None. Batch, sparse and dense axes cannot be exchanged."""
    return bcoo_layout.bcoo_transpose(self, permutation=range(self.ndim)[::-1] if axes is None else axes)


def sort_indices(self: BCOO) -> BCOO:
    """Sorts the stored elements by their indices."""
    return bcoo_layout.bcoo_sort_indices(self)


def sum_duplicates(self: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """Adds elements of equal indices. `nse`, of the result, is required under transformations."""
    return (bcoo_layout.bcoo_eliminate_zeros if remove_zeros else bcoo_layout.bcoo_sum_duplicates)(self, nse=nse)


def update_layout(
    self: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str = "error"
) -> BCOO:
    """Changes the numbers of batch and dense axes; `on_inefficient` is 'error', 'warn' or None."""
    return bcoo_layout.bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


# ---- sparsified methods and operators ----------------------------------------------------------------


def _sparsified(name: str) -> Callable:
    """The method `name` of dense arrays, sparsified."""

    def method(self, *args, **kwargs):
        return sparsify(lambda x: getattr(x, name)(*args, **kwargs))(self)

    method.__name__ = name
    return method


def _swapped(f: Callable) -> Callable:
    return sparsify(lambda x, y: f(y, x))


def _iter(self: Any) -> Any:
    return (self[k] for k in range(self.shape[0]))


def _pow(self: Any, exponent: Any) -> Any:
    return sparsify(lambda x: x**exponent)(self) if isinstance(exponent, int) else sparsify(jnp.power)(self, exponent)


_BINARY = dict(matmul=jnp.matmul, mul=jnp.multiply, truediv=jnp.divide, add=jnp.add, sub=jnp.subtract, pow=jnp.power)
_COMPARISONS = dict(
    eq=jnp.equal, ne=jnp.not_equal, lt=jnp.less, le=jnp.less_equal, gt=jnp.greater, ge=jnp.greater_equal
)
_UNARY = dict(abs=lax.abs, neg=lax.neg, pos=lambda x: x)
_METHODS: dict[str, Callable] = {
    **{name: _sparsified(name) for name in ("sum", "reshape", "astype", "__getitem__")},
    **{f"__{name}__": sparsify(f) for name, f in (_UNARY | _BINARY | _COMPARISONS).items()},
    **{f"__r{name}__": _swapped(f) for name, f in _BINARY.items()},
    **{f.__name__: f for f in (transpose, sort_indices, sum_duplicates, update_layout)},
    "__iter__": _iter,
    "__pow__": _pow,
}


BCOO._fromdense, BCOO._todense = bcoo_dense.bcoo_fromdense, bcoo_dense.bcoo_todense_p
for _name, _function in _METHODS.items():
    setattr(BCOO, _name, _function)
for _name in ("__getitem__", "__matmul__", "__rmatmul__"):
    setattr(BCSR, _name, _METHODS[_name])
abc.update_abstractmethods(BCOO)
