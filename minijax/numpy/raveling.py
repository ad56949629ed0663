"""`ravel_pytree`: a tree of arrays as one vector, and back."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes, tree
from minijax.ir.types import typeof
from minijax.numpy.creation import values, zeros
from minijax.numpy.shaping import ravel
from minijax.primitives.convert import cast, convert
from minijax.primitives.moving import reshape_to
from minijax.primitives.structural import concatenate, split
from minijax.run.arrays.array import Array


@dataclass(frozen=True)
class _Unravel:
    """Restores the tree from a vector; equal for trees of equal structures and types."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype

    def __call__(self, flat: Any) -> Any:
        if not self.shapes:
            return self.treedef.unflatten([])
        (flat,) = values("unravel", flat)
        is_mixed = any(d != self.dtype for d in self.dtypes)
        have = typeof(flat).dtype
        if is_mixed and have != self.dtype:
            raise TypeError(f"unravel function given array of dtype {have}, but expected dtype {self.dtype}")
        try:
            pieces = split(flat, [prod(s) for s in self.shapes], 0)
        except ValueError as error:
            raise ValueError(f"unravel function: {error}") from None
        parts = zip(pieces, self.shapes, self.dtypes, strict=True)
        return self.treedef.unflatten(
            [cast(reshape_to(p, s), d) if is_mixed else reshape_to(p, s) for p, s, d in parts]
        )


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """Concatenates the leaves of a pytree into a vector, and returns the function that undoes it.

    Optimizers and solvers that take vectors can be used for trees of parameters this way.

    Args:
        pytree: A pytree of arrays and numbers.

    Returns:
        A pair (vector, unravel). The vector has the promoted dtype of the leaves. `unravel` takes such a vector and
        returns a pytree with the structure, shapes and dtypes of `pytree`.

    Raises:
        TypeError: If a leaf is not an array or a number.
        ValueError: By `unravel`, for a vector of another shape.

    See also: `jax.tree.flatten`, `jax.numpy.ravel`.

    Example:
        >>> from minijax.flatten_util import ravel_pytree
        >>> vector, unravel = ravel_pytree({"b": jnp.zeros(2), "w": jnp.ones((1, 2))})
        >>> vector
        Array([0., 0., 1., 1.], dtype=float32)
        >>> unravel(vector + 1)
        {'b': Array([1., 1.], dtype=float32), 'w': Array([[2., 2.]], dtype=float32)}
    """
    leaves, treedef = tree.flatten(pytree)
    if not leaves:
        return zeros(0, np.float32), _Unravel(treedef, (), (), np.dtype(np.float32))
    avals = [typeof(x) for x in leaves]
    kinds = tuple(a.dtype for a in avals)
    dtype = dtypes.result_type(*kinds)
    back = _Unravel(treedef, tuple(a.shape for a in avals), kinds, dtype)
    is_mixed = any(d != dtype for d in kinds)
    return concatenate([ravel(convert(x, dtype) if is_mixed else x) for x in leaves], 0), back
