"""Derivatives with respect to the data of sparse arrays, returned as sparse arrays of the same indices."""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api import autodiff
from minijax.base import tree
from minijax.base.faces import listing
from minijax.experimental.sparse._base import JAXSparse
from minijax.ir.types import typeof

__all__, __dir__ = listing(__name__, "flatten_fun_for_sparse_ad grad is_sparse jacfwd jacobian jacrev value_and_grad")


def is_sparse(x: Any) -> bool:
    """Returns whether `x` is a sparse array."""
    return isinstance(x, JAXSparse)


def flatten_fun_for_sparse_ad(fun: Callable, argnums: int | tuple[int, ...], args: tuple[Any, ...]) -> tuple:
    """Flattens `fun` and `args` for differentiation with respect to the data of sparse arrays.

    Returns `fun` as a function of leaves, its argnums, the leaves, and a function (gradients by argnum) -> tree.
    """
    single = isinstance(argnums, int)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(-len(args) <= k < len(args) for k in numbers):
        raise AssertionError(f"{argnums=} for {len(args)} positional arguments")
    numbers = tuple(k % len(args) for k in numbers)
    leaves, structure = tree.tree_flatten(args)
    # The arrays of each argument, sparse or dense, and the numbers of their first leaves among all leaves.
    parts_by_argument, structures = [], []
    flat_numbers: list[int] = []
    for k in numbers:
        parts, inner = tree.tree_flatten(args[k], is_leaf=is_sparse)
        parts_by_argument.append(parts)
        structures.append(inner)
        counts = [len(tree.tree_leaves(x)) for x in (args[:k], *parts)]
        flat_numbers += list(itertools.accumulate(counts))[:-1]

    @functools.wraps(fun)
    def flat(*xs):
        return fun(*structure.unflatten(xs))

    def derivative(gradients):
        rest = iter(gradients)
        trees = [
            inner.unflatten([_as_derivative(part, next(rest)) for part in parts])
            for parts, inner in zip(parts_by_argument, structures, strict=True)
        ]
        return trees[0] if single else tuple(trees)

    return flat, tuple(flat_numbers), leaves, derivative


def _as_derivative(x: Any, gradient: Any) -> Any:
    """The derivative as a sparse array if `x` is sparse; additional leading axes become batch axes."""
    if not is_sparse(x):
        return gradient
    (_, *others), aux = x.tree_flatten()
    added = typeof(gradient).shape[: typeof(gradient).ndim - x.data.ndim]
    if added:
        others = [jnp.broadcast_to(buffer, (*added, *buffer.shape)) for buffer in others]
        aux = {**aux, "shape": (*added, *x.shape)}
    return type(x).tree_unflatten(aux, (gradient, *others))


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """Creates a function that computes a value and gradients, as `jax.value_and_grad`, sparse for sparse arguments.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0.0, 5.0]))
        >>> float(jax.experimental.sparse.value_and_grad(lambda x: jnp.sum(x.data**2))(x)[0])
        25.0
    """
    numbers = tuple(argnums) if np.ndim(argnums) else operator.index(argnums)

    @functools.wraps(fun)
    def value_and_grad_fun(*args, **params):
        call = functools.partial(fun, **params) if params else fun
        flat, flat_numbers, leaves, derivative = flatten_fun_for_sparse_ad(call, numbers, args)
        value, grads = autodiff.value_and_grad(flat, argnums=flat_numbers, has_aux=has_aux, **kwargs)(*leaves)
        return value, derivative(grads)

    return value_and_grad_fun


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """Creates a function that computes gradients, as `jax.grad`, which are sparse for sparse arguments.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0.0, 5.0]))
        >>> jax.experimental.sparse.grad(lambda x: jnp.sum(x.data**2))(x).data
        Array([10.], dtype=float32)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @functools.wraps(fun)
    def grad_fun(*args, **params):
        value, gradient = both(*args, **params)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


def _jacobian(
    transform: Callable, fun: Callable, argnums: int | Sequence[int], has_aux: bool, options: dict
) -> Callable:
    numbers = tuple(argnums) if np.ndim(argnums) else operator.index(argnums)

    @functools.wraps(fun)
    def jacfun(*args, **params):
        call = functools.partial(fun, **params) if params else fun
        flat, flat_numbers, leaves, derivative = flatten_fun_for_sparse_ad(call, numbers, args)
        out = transform(flat, argnums=flat_numbers, has_aux=has_aux, **options)(*leaves)
        jacobians, aux = out if has_aux else (out, None)
        blocks = lambda x: isinstance(x, tuple) and len(x) == len(flat_numbers)  # noqa: E731
        jacobians = tree.tree_map(derivative, jacobians, is_leaf=blocks)
        return (jacobians, aux) if has_aux else jacobians

    return jacfun


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """Creates a function that computes Jacobians, as `jax.jacfwd`, which are sparse for sparse arguments.

    The axes of the result become batch axes of a sparse Jacobian.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([0.0, 3.0]))
        >>> sparse.jacfwd(lambda x: (x.data**2).sum())(x).todense()
        Array([0., 6.], dtype=float32)
    """
    return _jacobian(autodiff.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """Creates a function that computes Jacobians, as `jax.jacrev`, which are sparse for sparse arguments.

    The axes of the result become batch axes of a sparse Jacobian.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([0.0, 3.0]))
        >>> sparse.jacobian(lambda x: (x.data**2).sum())(x).todense()
        Array([0., 6.], dtype=float32)
    """
    return _jacobian(autodiff.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
