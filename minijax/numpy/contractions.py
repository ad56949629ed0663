"""Einsum, and the products of numpy other than matmul and dot."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Any

import numpy as np

from minijax.base import cache, dims, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.source import boundary
from minijax.base.symbolic.dimension import is_int
from minijax.composed.arrays.selecting import where
from minijax.dispatch.fused import fused
from minijax.dispatch.jitted import jitted
from minijax.ir.context import extended_name_stack
from minijax.ir.types import typeof
from minijax.numpy import reductions
from minijax.numpy.contraction_path import PathInfo
from minijax.numpy.creation import asarray, zeros_like
from minijax.numpy.products import PRODUCT_STATIC, typed_product
from minijax.numpy.shaping import moveaxis
from minijax.numpy.ufuncs import multiply, promoting
from minijax.numpy.vectorizing import vectorize
from minijax.primitives import counting, elementwise as lax, moving, structural
from minijax.primitives.convert import as_type, convert
from minijax.primitives.dot import PrecisionLike, dot_general
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import arrays, check_no_float0, check_out, promote_dtypes
from minijax.primitives.reduce import reduce_or, reduce_sum
from minijax.primitives.sharding import requested_sharding, with_auto_axes
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike

_Sum = Callable[[Any, str, Sequence[int]], tuple[Any, str]]

# ---- einsum: the equation ----------------------------------------------------------------------------


def _equation(subscripts: Any, operands: tuple) -> tuple[str, tuple]:
    """The equation string and the operands, for either calling form."""
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), operands
    items = (subscripts, *operands)
    lists, values = items[1::2], items[0 : len(items) // 2 * 2 : 2]
    if len(items) % 2:
        lists = (*lists, items[-1])
    try:
        labels = sorted({k for row in lists for k in row if k is not Ellipsis})
    except TypeError:
        raise TypeError(
            "einsum: in the form without an equation, each operand has a list of labels after it, each either"
            f" Ellipsis or a hashable and comparable object (e.g. int, str); got {lists!r}."
        ) from None
    letters = dict(zip(labels, ascii_letters, strict=False)) | {Ellipsis: "..."}
    rows = ["".join(letters[k] for k in row) for row in lists]
    text = ",".join(rows[: len(values)])
    return (f"{text}->{rows[-1]}" if len(items) % 2 else text), values


@cache.cache
def _parse(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The axis labels of each operand and of the result, with ellipses expanded."""
    left, arrow, output = equation.partition("->")
    if set(left + output) & set("->"):
        raise ValueError(f"einsum: Subscripts can only contain one '->', got {equation!r}")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ValueError(
            f"Number of einsum subscripts, {len(inputs)}, must equal the number of operands, {len(ranks)}."
        )
    unused = [c for c in ascii_letters if c not in equation]
    extra = [max(0, n - len(s) + 3) if "..." in s else 0 for s, n in zip(inputs, ranks, strict=True)]
    end = min(max(ranks), len(unused))  # opt_einsum's letters, which `einsum_path` shows
    ellipsis = "".join(unused[max(0, end - max(extra)) : end])
    inputs = [s.replace("...", ellipsis[len(ellipsis) - n :], 1) for s, n in zip(inputs, extra, strict=True)]
    letters = "".join(inputs)
    if not arrow:
        output = "".join(sorted(c for c in set(letters) - set(ellipsis) if letters.count(c) == 1))
        output = ellipsis + output
    output = output.replace("...", ellipsis, 1)
    if "." in letters + output:
        raise ValueError(f"einsum: Invalid Ellipses; '...' may appear once in a term, got {equation!r}")
    for i, (names, rank) in enumerate(zip(inputs, ranks, strict=True)):
        if len(names) != rank:
            raise ValueError(
                f"Einstein sum subscript {names!r} does not contain the correct number of indices for "
                f"operand {i} of rank {rank}. Write a letter for each of its axes, or `...` for the others."
            )
    for c in output:
        if output.count(c) > 1:
            raise ValueError(f"einsum: Output character {c!r} appeared more than once in the output.")
        if c not in letters:
            raise ValueError(f"einsum: Output character {c!r} did not appear in the input {equation!r}.")
    return tuple(inputs), output


def _check_sizes(inputs: tuple[str, ...], shapes: tuple) -> None:
    sizes: dict[str, int] = {}
    for i, (names, shape) in enumerate(zip(inputs, shapes, strict=True)):
        for c, n in zip(names, shape, strict=True):
            if sizes.get(c, 1) != 1 and n not in (1, sizes[c]):
                raise ValueError(
                    f"Size of label {c!r} for operand {i} ({n}) does not match previous terms ({sizes[c]}). "
                    "Use another letter, or transpose or slice the operand: in einsum a letter has one size."
                )
            sizes[c] = max(n, sizes.get(c, 1)) if n else 0


_OPTIMAL = "auto auto-hq optimal dp dynamic-programming branch-all branch-1 branch-2".split()
_GREEDY = "greedy eager opportunistic random-greedy random-greedy-128".split()
_MAX_SEARCHED = 6  # the number of contraction orders grows as a squared factorial


_ASSUMED_SIZE = 8  # the size assumed for a symbolic dimension when orders are compared


@cache.cache
def _path(inputs: tuple[str, ...], output: str, shapes: tuple, optimize: Any) -> tuple:
    """The contraction path: the operands of each step, whose result is appended to the list of operands."""
    count = len(inputs)
    _check_sizes(inputs, shapes)
    shapes = tuple([tuple([n if is_int(n) else _ASSUMED_SIZE for n in shape]) for shape in shapes])
    if isinstance(optimize, tuple):
        return tuple(tuple(sorted(map(operator.index, step))) for step in optimize)
    if count <= 2 or optimize is False:
        return ((0, 1),) * (count - 1) or ((0,),)
    if optimize is not True and optimize not in (*_OPTIMAL, *_GREEDY):
        raise KeyError(f"Path optimizer {optimize!r} not found, valid options are {(*_OPTIMAL, *_GREEDY)}.")
    if optimize not in _GREEDY and count <= _MAX_SEARCHED:
        return _best_path(inputs, output, shapes)
    operands = [np.broadcast_to(np.int8(0), shape) for shape in shapes]  # numpy reads only the shapes
    contractions = np.einsum_path(f"{','.join(inputs)}->{output}", *operands, optimize=("greedy", 2**62))[0][1:]
    steps = [tuple(sorted(map(int, step))) for step in contractions]
    # numpy may contract all remaining operands in one last step.
    return (*steps[:-1], *((0, 1),) * (len(steps[-1]) - 1))


def _sizes(inputs: tuple[str, ...], shapes: tuple) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for names, shape in zip(inputs, shapes, strict=True):
        sizes |= {c: max(n, sizes.get(c, 1)) for c, n in zip(names, shape, strict=True)}
    return sizes


def _best_path(inputs: tuple[str, ...], output: str, shapes: tuple) -> tuple:
    """The first of the pairwise contraction orders with the fewest operations."""
    sizes = _sizes(inputs, shapes)
    best: tuple[float, tuple] = (math.inf, ())
    # The result of a pair depends on the other terms too, but opt_einsum, which jax uses, caches it by the pair.
    known: dict[tuple, tuple] = {}

    def search(cost: float, path: tuple, terms: list[frozenset]) -> None:
        nonlocal best
        if len(terms) == 1:
            best = cost, path
            return
        for i, j in itertools.combinations(range(len(terms)), 2):
            rest = [t for k, t in enumerate(terms) if k not in (i, j)]
            pair = terms[i], terms[j]
            if pair not in known:
                both = terms[i] | terms[j]
                left = both & frozenset(output).union(*rest)
                count = math.prod(sizes[c] for c in both) * (2 if terms[i] & terms[j] - left else 1)
                known[pair] = left, count
            left, count = known[pair]
            if cost + count < best[0]:
                search(cost + count, (*path, (i, j)), [*rest, left])

    search(0, (), [frozenset(names) for names in inputs])
    return best[1]


@boundary
def _planned(subscripts: Any, operands: tuple, optimize: Any) -> tuple[list, tuple[str, ...], str, tuple]:
    equation, operands = _equation(subscripts, operands)
    values = arrays("einsum", *operands)
    check_no_float0("einsum", *values)
    shapes = tuple(typeof(x).shape for x in values)
    inputs, output = _parse(equation, tuple(map(len, shapes)))
    if isinstance(optimize, (list, tuple)):
        optimize = tuple(map(tuple, optimize))
    return values, inputs, output, _path(inputs, output, shapes, optimize)


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | list[tuple[int, ...]] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable = dot_general,
    out_sharding: Any = None,
) -> Array:
    """Computes a sum of products of arrays that is written in Einstein's notation.

    Args:
      subscripts: string such as "ij,jk->ik", with one letter for each axis of each operand. Letters that the output
        lacks are summed over; "..." stands in place of axes that are broadcast. Without "->" the output has the letters
        that occur once, in alphabetical order. Alternatively the first operand, with each operand followed by a list of
        integers.
      *operands: arrays.
      out: must be `None`.
      optimize: how to find the order in which two operands at a time are contracted: "auto", "optimal", "greedy",
        `True`, `False` (from left to right), or a path from `einsum_path`.
      precision: `None`, a string such as "highest", a `jax.lax.Precision`, or a pair of these.
      preferred_element_type: dtype in which products are summed, and dtype of the result.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array with one axis for each letter of the output.

    Raises:
      ValueError: if the letters do not fit the shapes of the operands.
      NotImplementedError: for `out`, and for a path that contracts three operands at once.

    Differences from NumPy:
      It does not take `dtype`, `order` and `casting`. The order of contraction is found when the function is traced, so
      that it costs nothing in a jitted function that runs again. Each step is a `dot_general`.

    See also: `jax.numpy.einsum_path`, `jax.numpy.tensordot`, `jax.numpy.matmul`.

    Example:
      >>> x = jnp.arange(6.0).reshape(2, 3)
      >>> jnp.einsum("ij,kj->ik", x, x)
      Array([[ 5., 14.],
             [14., 50.]], dtype=float32)
      >>> jnp.einsum("ii", jnp.eye(3))
      Array(3., dtype=float32)
      >>> jnp.einsum("...i,i->...", x, jnp.ones(3))
      Array([ 3., 12.], dtype=float32)
    """
    check_out("einsum", out)
    how = (optimize, precision, preferred_element_type, *(() if _dot_general is dot_general else (_dot_general,)))
    if out_sharding is None:
        return _contracted(operands, subscripts, *how)
    subscripts, operands = _equation(subscripts, operands)
    if len(operands) > 2:
        return with_auto_axes("einsum", lambda *xs: _contracted(xs, subscripts, *how), operands, out_sharding)
    return _contracted(operands, subscripts, *how, requested=requested_sharding("einsum", out_sharding))


@fused(whole=True)
def _contracted(
    operands: tuple,
    subscripts: Any,
    optimize: Any,
    precision: Any,
    preferred: Any,
    dot: Callable = dot_general,
    requested: Any = None,
) -> Any:
    values, inputs, output, path = _planned(subscripts, operands, optimize)
    with extended_name_stack(*([subscripts] if isinstance(subscripts, str) else [])):
        return _einsum(tuple(values), inputs, output, path, precision, preferred, dot, requested)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: bool | str | list[tuple[int, ...]] = "auto"
) -> tuple[list, PathInfo]:
    """Finds an order in which `einsum` contracts its operands two at a time.

    Returns a pair: the path, a list of pairs of positions, and a `PathInfo`, which is printed as a table of the steps
    and has their costs as attributes. Only shapes are read, so operands may be traced. Unlike in NumPy, the path has no
    name as its first element; `einsum` takes it as `optimize`.

    Example:
      >>> jnp.einsum_path("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 4)))[0]
      [(0, 1)]
    """
    values, inputs, output, path = _planned(subscripts, operands, optimize)
    shapes = tuple(typeof(x).shape for x in values)
    return list(path), PathInfo(inputs, output, _sizes(inputs, shapes), shapes, list(path))


# ---- einsum: the contractions ------------------------------------------------------------------------


_EINSUM_STATIC = ("inputs", "output", "path", "precision", "preferred", "dot", "requested")


@jitted("_einsum", static=_EINSUM_STATIC, inline=True)
def _einsum(
    operands: tuple,
    inputs: tuple[str, ...],
    output: str,
    path: tuple,
    precision: Any,
    preferred: Any,
    dot: Callable,
    requested: Any,
) -> Any:
    weak = False
    preferred = dtypes.requested_dtype(preferred, "einsum")
    if preferred is None:
        preferred, weak = dtypes.result_type(*operands, return_weak_type_flag=True)
    terms = list(zip(operands, inputs, strict=True))
    for n, step in enumerate(path):
        if len(step) > 2:
            raise NotImplementedError(
                "jax.numpy.einsum does not support simultaneous contraction of 3 or more operands; "
                f"the path has {step}."
            )
        taken = [terms.pop(i) for i in reversed(step)]
        needed = set("".join([output, *(names for _, names in terms)]))
        letters = dict.fromkeys("".join(names for _, names in taken))
        result = output if n == len(path) - 1 else "".join(c for c in letters if c in needed)
        if len(taken) == 1:
            sums = functools.partial(_sum, preferred=preferred, requested=requested)
            x, names = _sum_repeated(*_sum_unique(*taken[0], set(result), sums), set(result), sums)
        else:
            how = functools.partial(dot, precision=precision, preferred_element_type=preferred)
            x, names = _product(*taken, result, how, functools.partial(_sum, preferred=preferred), requested)
        x = x if names == result else moving.transpose(x, [names.index(c) for c in result])
        terms.append((x, result))
    return as_type(terms[0][0], preferred, weak)


def _product(lhs: tuple, rhs: tuple, result: str, dot: Callable, sums: _Sum, requested: Any) -> tuple[Any, str]:
    """Contracts two operands; returns the result and its axis labels. `requested`: the result's sharding."""
    lhs, rhs = _without_unit_axes(lhs, rhs), _without_unit_axes(rhs, lhs)
    lhs, rhs = _sum_unique(*lhs, {*result, *rhs[1]}, sums), _sum_unique(*rhs, {*result, *lhs[1]}, sums)
    (x, left), (y, right) = _sum_repeated(*lhs, {*result, *rhs[1]}, sums), _sum_repeated(*rhs, {*result, *lhs[1]}, sums)
    shared = set(left) & set(right)
    batch = [c for c in result if c in shared]
    contracted = sorted(shared - set(batch))
    sides = left, right
    at = [tuple(tuple(s.index(c) for c in group) for s in sides) for group in (contracted, batch)]
    free = ["".join(c for c in names if c not in shared) for names in sides]
    if "".join([*batch, *reversed(free)]) == result:
        return dot(y, x, tuple(pair[::-1] for pair in at), **_product_sharding(requested, result, result)), result
    names = "".join([*batch, *free])
    return dot(x, y, tuple(at), **_product_sharding(requested, result, names)), names


def _product_sharding(requested: Any, result: str, names: str) -> dict[str, Any]:
    """The `out_sharding` argument of a product with axes `names`, given the sharding requested for axes `result`."""
    if requested is None:
        return {}
    entries = requested.spec.padded(len(result))
    spec = requested.spec.update(partitions=[entries[result.index(c)] for c in names])
    return dict(out_sharding=requested.update(spec=spec))


def _without_unit_axes(own: tuple, other: tuple) -> tuple[Any, str]:
    """Drops the axes of `own` that have size 1 there and a larger size in `other`."""
    (x, names), shape = own, typeof(own[0]).shape
    longer = {c for c, n in zip(other[1], typeof(other[0]).shape, strict=True) if n != 1}
    axes = tuple(i for i, c in enumerate(names) if shape[i] == 1 and c in longer)
    return (structural.squeeze(x, axes), "".join(c for i, c in enumerate(names) if i not in axes)) if axes else own


def _sum(x: Any, names: str, axes: Sequence[int], preferred: Any, requested: Any = None) -> tuple[Any, str]:
    if dtypes.result_type(x, preferred) != typeof(x).dtype:
        x = convert(x, dtypes.check_and_canonicalize_user_dtype(preferred, "einsum"))
    is_flag = typeof(x).dtype == np.bool_
    total = reduce_or(x, axes) if is_flag else reduce_sum(x, axes, out_sharding=requested)
    return total, "".join(c for i, c in enumerate(names) if i not in axes)


def _sum_unique(x: Any, names: str, keep: set[str], sums: _Sum) -> tuple[Any, str]:
    """Sums over the axes whose label occurs once and is not in `keep`."""
    axes = tuple(i for i, c in enumerate(names) if names.count(c) == 1 and c not in keep)
    return sums(x, names, axes) if axes else (x, names)


def _sum_repeated(x: Any, names: str, keep: set[str], sums: _Sum) -> tuple[Any, str]:
    """Takes the diagonal over axes with the same label, and sums it unless the label is in `keep`."""
    for c in dict.fromkeys(names):
        axes = tuple(i for i, d in enumerate(names) if c == d)
        if len(axes) > 1:
            shape = typeof(x).shape
            mask = _diagonal(tuple(shape[i] for i in axes))
            mask = mask if len(axes) == len(shape) else moving.broadcast_in_dim(mask, shape, axes)
            x = lax.select(mask, x, moving.filled(shape, scalar_like(x, 0)))
            x, names = sums(x, names, axes[:-1] if c in keep else axes)
    return x, names


def _diagonal(shape: tuple[int, ...]) -> Any:
    """The mask of the elements whose indices are all equal."""
    indices = [counting.broadcasted_iota(np.uint32, shape, i) for i in range(len(shape))]
    first, *others = [lax.eq(a, b) for a, b in zip(indices[:-1], indices[1:], strict=True)]
    for other in others:
        first = lax.bitwise_and(first, other)
    return first


# ---- products ----------------------------------------------------------------------------------------


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Sums the products of elements of two arrays over pairs of axes.

    Args:
      a: array.
      b: array.
      axes: number `n`, for the last `n` axes of `a` and the first `n` of `b`; or a pair of axes, or of sequences of
        axes: those of `a`, and those of `b` with the same lengths.
      precision: `None`, a string such as "highest", a `jax.lax.Precision`, or a pair of these.
      preferred_element_type: dtype in which products are summed, and dtype of the result.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array with the remaining axes of `a`, then those of `b`.

    Raises:
      TypeError: if `axes` has another form, names more axes than there are, or pairs axes of different lengths.

    Differences from NumPy:
      The last three arguments are additions. `axes` must be static under `jit`.

    See also: `jax.numpy.einsum`, `jax.numpy.dot`, `jax.lax.dot_general`.

    Example:
      >>> a, b = jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5))
      >>> jnp.tensordot(a, b, axes=((1, 2), (1, 0))).shape
      (2, 5)
      >>> jnp.tensordot(a, b, axes=1).shape
      (2, 3, 3, 5)
    """
    a, b = arrays("tensordot", a, b)
    check_no_float0("tensordot", a, b)
    contracted = _tensordot_axes(axes, typeof(a).shape, typeof(b).shape)
    preferred = dtypes.requested_dtype(preferred_element_type, "tensordot")
    return _tensordot(
        a, b, contracted, precision=precision, preferred_element_type=preferred, out_sharding=out_sharding
    )


def _tensordot_axes(axes: Any, left: tuple, right: tuple) -> tuple:
    if isinstance(axes, (int, np.integer)):
        if axes > min(len(left), len(right)):
            raise TypeError(f"tensordot axes (axes {axes}) exceeds input ranks ({left} and {right})")
        return tuple(range(len(left) - axes, len(left))), tuple(range(axes))
    if not isinstance(axes, (list, tuple, np.ndarray)) or len(axes) != 2:
        raise TypeError(
            f"tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of ints; got {axes!r}."
        )
    scalar = [isinstance(a, (int, np.integer)) for a in axes]
    pair = [(a,) if s else tuple(a) for a, s in zip(axes, scalar, strict=True)]
    if scalar[0] != scalar[1] or len(pair[0]) != len(pair[1]):
        raise TypeError(f"tensordot requires axes lists to have equal length, got {axes[0]} and {axes[1]}.")
    ranked = zip(pair, (len(left), len(right)), strict=True)
    return tuple(tuple(dims.canonical_axis(i, rank) for i in p) for p, rank in ranked)


@jitted("tensordot", static=("contracted", *PRODUCT_STATIC), inline=True)
def _tensordot(a, b, contracted, *, precision, preferred_element_type, out_sharding):
    return typed_product("tensordot", a, b, (contracted, ((), ())), precision, preferred_element_type, out_sharding)


@jitted(static=PRODUCT_STATIC, inline=True)
def inner(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Sums the products of elements of two arrays over their last axes.

    The shape of the result is `a.shape[:-1] + b.shape[:-1]`; a scalar multiplies the other argument. `precision` is
    that of the multiplications, and `preferred_element_type` the dtype of the sums. Raises TypeError if the last axes
    differ in length.

    Example:
      >>> jnp.inner(jnp.array([1, 2]), jnp.array([3, 4]))
      Array(11, dtype=int32)
    """
    a, b = arrays("inner", a, b)
    left, right = typeof(a).ndim, typeof(b).ndim
    if left and right:
        return typed_product(
            "tensordot", a, b, (((left - 1,), (right - 1,)), ((), ())), precision, preferred_element_type
        )
    if preferred_element_type is not None:
        dtype = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, "inner")
        a, b = as_type(a, dtype), as_type(b, dtype)
    return multiply(a, b)


def _flat(x: Any) -> Any:
    return moving.reshape_to(x, (typeof(x).size,))


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Multiplies each element of one array with each element of another.

    Args:
      a: array, which is flattened.
      b: array, which is flattened.
      out: must be `None`.

    Returns:
      A matrix of shape `(a.size, b.size)`, of the dtype that `a` and `b` promote to.

    Raises:
      NotImplementedError: for `out`.

    See also: `jax.numpy.inner`, `jax.numpy.einsum`, `jax.numpy.multiply`.

    Example:
      >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4, 5]))
      Array([[ 3,  4,  5],
             [ 6,  8, 10]], dtype=int32)
    """
    check_out("outer", out)
    return _outer(a, b)


@jitted("outer", inline=True)
def _outer(a, b):
    a, b = promote_dtypes(*arrays("outer", a, b))
    return multiply(moving.expand_dims(_flat(a), (1,)), moving.expand_dims(_flat(b), (0,)))


@jitted(static=PRODUCT_STATIC, inline=True)
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Computes the dot product of two arrays as flat vectors, conjugating the first.

    `precision` is that of the multiplications, and `preferred_element_type` the dtype of the sum. Raises TypeError if
    the sizes differ.

    Example:
      >>> jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1j, 3.0]))
      Array(7.+0.j, dtype=complex64)
    """
    a, b = arrays("vdot", a, b)
    a = lax.conj(a) if is_complex(a) else a
    return typed_product("dot", _flat(a), _flat(b), (((0,), (0,)), ((), ())), precision, preferred_element_type)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the dot products of vectors along an axis, conjugating the first.

    Other axes broadcast. `precision` is that of the multiplications, and `preferred_element_type` the dtype of the
    sums. Raises ValueError if the axes differ in length.

    Example:
      >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
      Array([3, 7], dtype=int32)
    """
    x1, x2 = arrays("jnp.vecdot", x1, x2)
    shapes = typeof(x1).shape, typeof(x2).shape
    if shapes[0][axis] != shapes[1][axis]:
        raise ValueError(f"axes must match; got shapes {shapes[0]} and {shapes[1]} with {axis=}")

    def core(a, b):
        return vdot(a, b, precision=precision, preferred_element_type=preferred_element_type)

    return vectorize(core, signature="(n),(n)->()")(moveaxis(x1, axis, -1), moveaxis(x2, axis, -1))


@promoting(arrays)
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiplies matrices in the last two axes with vectors in the last axis.

    Leading axes broadcast. It does not take `out`, `dtype` and `axes`.

    Example:
      >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
      Array([3, 7], dtype=int32)
    """
    return _MATVEC(x1, x2)


@promoting(arrays)
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiplies conjugated vectors in the last axis with matrices in the last two axes.

    Leading axes broadcast. It does not take `out`, `dtype` and `axes`.

    Example:
      >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]]))
      Array([4, 6], dtype=int32)
    """
    return _VECMAT(lax.conj(x1) if is_complex(x1) else x1, x2)


_MATVEC = vectorize(
    lambda a, b: typed_product("dot", a, b, (((1,), (0,)), ((), ())), None, None), signature="(n,m),(m)->(n)"
)
_VECMAT = vectorize(
    lambda a, b: typed_product("dot", a, b, (((0,), (0,)), ((), ())), None, None), signature="(n),(n,m)->(m)"
)


@jitted()
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Computes the Kronecker product of two arrays.

    It is made of copies of `b`, each multiplied with one element of `a`. The array of smaller rank gets axes of length
    1 in front. The dtype is the one that both promote to.

    Example:
      >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2, 3]))
      Array([ 1,  2,  3, 10, 20, 30], dtype=int32)
    """
    a, b = promote_dtypes(*arrays("kron", a, b))
    rank = max(typeof(a).ndim, typeof(b).ndim)
    a, b = structural.broadcast_to_rank(a, rank), structural.broadcast_to_rank(b, rank)
    shape = tuple(m * n for m, n in zip(typeof(a).shape, typeof(b).shape, strict=True))
    product = lax.mul(moving.expand_dims(a, range(1, 2 * rank, 2)), moving.expand_dims(b, range(0, 2 * rank, 2)))
    return moving.reshape(product, shape)


@jitted("cross", static=("axisa", "axisb", "axisc", "axis"))
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Computes the cross product of vectors of two or three components.

    `axisa`, `axisb` and `axisc` are the axes of the components of `a`, of `b` and of the result; `axis` replaces all
    three. The third component of a vector of two is zero. For two vectors of two the result is the third component
    only. Other axes broadcast. Raises ValueError for other numbers of components.

    Example:
      >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = arrays("cross", a, b)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    sizes = a.shape[-1], b.shape[-1]
    if not {2, 3}.issuperset(sizes):
        raise ValueError(f"Dimension must be either 2 or 3 for cross product, got {sizes[0]} and {sizes[1]}")
    if sizes == (2, 2):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    (a0, a1, a2), (b0, b1, b2) = map(_components, (a, b))
    return moveaxis(asarray([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]), 0, axisc)


def _components(x: Any) -> list:
    components = [x[..., i] for i in range(x.shape[-1])]
    return components if len(components) == 3 else [*components, zeros_like(components[1])]


@jitted(static=("axis1", "axis2", "dtype"))
def trace(
    a: ArrayLike,
    offset: int | ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sums the elements on a diagonal of a matrix, or of each matrix in an array.

    Args:
      a: array of rank 2 or more.
      offset: integer, the diagonal: above the main one if positive, below it if negative. It may be traced.
      axis1: axis of the rows.
      axis2: axis of the columns.
      dtype: dtype of the sum. By default that of `a`, but narrow integers are summed in the default integer dtype.
      out: must be `None`.

    Returns:
      An array of the shape of `a` without the two axes.

    Raises:
      ValueError: if the axes are equal, or if `offset` is not an integer.

    See also: `jax.numpy.diagonal`, `jax.numpy.einsum`.

    Example:
      >>> a = jnp.arange(9).reshape(3, 3)
      >>> jnp.trace(a)
      Array(12, dtype=int32)
      >>> jnp.trace(a, offset=1)
      Array(6, dtype=int32)
    """
    check_out("trace", out)
    (a,) = arrays("trace", a)
    axes = tuple(dims.canonical_axis(i, typeof(a).ndim) for i in (axis1, axis2))
    if axes[0] == axes[1]:
        raise ValueError(f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    offset_aval = typeof(offset)
    if offset_aval.shape or not dtypes.issubdtype(offset_aval.dtype, np.integer):
        raise ValueError(f"trace: offset must be a scalar integer; got {offset_aval}")
    a = moveaxis(a, axes, (-2, -1))
    int_type = dtypes.default_int_dtype()
    rows, columns = (counting.broadcasted_iota(int_type, typeof(a).shape[-2:], i) for i in (0, 1))
    offset = int_type.type(offset) if isinstance(offset, int) else as_type(offset, int_type)
    mask = lax.eq(lax.add(rows, offset), columns)
    dtype = dtypes.requested_dtype(dtype, "trace")
    return reductions.sum(where(mask, a, zeros_like(a)), axis=(-2, -1), dtype=dtype)
