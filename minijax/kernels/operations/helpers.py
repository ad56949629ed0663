"""Short functions for kernels: conditions, loops, sizes, slices, empty arrays, prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.api.checkify_errors import check
from minijax.base import config, dtypes, tree
from minijax.base.symbolic.dimension import SymbolicDim
from minijax.composed.callbacks.debugging import debug_print as print_values
from minijax.composed.refs import new_ref
from minijax.higher.cond import cond
from minijax.higher.fori_loop import fori_loop
from minijax.ir.types import is_value, typeof
from minijax.kernels.memory import MemoryRef
from minijax.numpy.creation import asarray
from minijax.primitives.counting import empty as empty_array
from minijax.primitives.elementwise import div
from minijax.primitives.gather_dims import Slice

enable_debug_checks = config.option("pallas_enable_debug_checks")

enable_poison_buffers = config.option("pallas_poison_buffers")


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """Runs the decorated function at once, if a condition holds.

    Args:
      condition: bool, or a scalar array. A Python bool decides while the kernel is traced.

    See also: `jax.lax.cond`.

    Example:
        >>> def kernel(o_ref):
        ...     o_ref[...] = jnp.zeros((), jnp.int32)
        ...     @pl.when(pl.program_id(0) == 1)
        ...     def _():
        ...         o_ref[...] = jnp.ones((), jnp.int32)
        >>> print(pl.pallas_call(kernel, jax.ShapeDtypeStruct((), jnp.int32), grid=2, interpret=True)())
        1
    """

    def decorate(f):
        if isinstance(condition, bool):
            if condition:
                f()
        else:
            cond(condition, f, lambda: None)

    return decorate


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable], Any]:
    """Runs the decorated function for each index from a lower up to an upper bound.

    Args:
      lower: first index, an integer.
      upper: bound, which is not reached.
      init_carry: value that is passed from index to index; the function then is (index, carry) -> carry, and the
        decorated name is the last carry. None: the function is (index) -> None.
      step: difference of two indices.
      unroll: how many indices are done in one iteration; True: all.

    See also: `jax.lax.fori_loop`.

    Example:
        >>> def kernel(o_ref):
        ...     @pl.loop(0, 6, step=2)
        ...     def _(i):
        ...         o_ref[i] = i
        >>> print(pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)()[0])
        0
    """

    def decorate(f):
        (first, end, stride), zero = (lower, upper, step), 0
        for n in (lower, upper, step):
            if not is_value(n) or not dtypes.issubdtype(typeof(n).dtype, np.integer):
                raise TypeError(f"loop: lower, upper and step arguments must be integers, got {n!r}")
        if not all(isinstance(n, int) for n in (lower, upper, step)):
            first, end, stride = (asarray(n, np.int32) for n in (lower, upper, step))
            zero = np.int32(0)
        count = cdiv(end - first, stride)
        index = lambda i: first + i * stride  # noqa: E731

        def with_carry(i, carry):
            return f(index(i), carry)

        def without_carry(i, carry):
            if f(index(i)) is not None:
                raise ValueError("loop: the function must return None if there is no `init_carry`")
            return carry

        body = without_carry if init_carry is None else with_carry
        return fori_loop(zero, count, body, init_carry, unroll=unroll)

    return decorate


def cdiv(a: Any, b: Any) -> Any:
    """Returns a / b rounded up, for non-negative integers.

    Example:
        >>> pl.cdiv(5, 2)
        3
    """
    if isinstance(a, int | SymbolicDim) and isinstance(b, int | SymbolicDim):
        return (a + b - 1) // b
    return div(a + (b - 1), b)


def align_to(a: Any, alignment: Any) -> Any:
    """Returns the least multiple of `alignment` that is not below `a`.

    Example:
        >>> pl.align_to(5, 4)
        8
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """Returns the least power of 2 that is not below `x`.

    Raises ValueError for a negative number.

    Example:
        >>> pl.next_power_of_2(5)
        8
    """
    if x < 0:
        raise ValueError(f"`next_power_of_2` requires a non-negative integer, got {x}.")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the distances of neighbours along each axis, in elements, of an array in row-major order.

    Example:
        >>> pl.strides_from_shape((2, 3, 4))
        (12, 4, 1)
    """
    return tuple([int(np.prod(shape[i + 1 :])) for i in range(len(shape))])


def dslice(start: Any, size: Any = None, stride: int | None = None) -> Any:
    """Returns an index of a reference: `size` elements from `start`, which may be traced.

    Args:
      start: first element; the size, if it is the only argument; None: all elements.
      size: number of elements.
      stride: distance of elements.

    Example:
        >>> pl.ds(2, 4)
        Slice(start=2, size=4, stride=1)
    """
    if start is None:
        return slice(None)
    if stride is None:
        stride = 1
    if not isinstance(stride, int | np.integer):
        raise ValueError(f"Non-static stride in `dslice`: got {stride!r}, which must be an integer")
    if size is None:
        if not isinstance(start, int):
            raise TypeError("Size must be an integer if only one argument is given: it is the size of the slice")
        start, size = 0, start
    return Slice(start, size, stride)


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """Returns an array whose elements are not set: zeros, where nothing else is known.

    Args:
      shape: shape.
      dtype: dtype.
      out_sharding: sharding.

    Example:
        >>> pl.empty((2, 3), jnp.float32).shape
        (2, 3)
    """
    return empty_array(shape, dtype, out_sharding=out_sharding)


def empty_like(x: Any) -> Any:
    """Returns a tree of arrays whose elements are not set, with the shapes and dtypes of those of `x`.

    Example:
        >>> jax.tree.map(jnp.shape, pl.empty_like({"w": jnp.ones((2, 3)), "b": jnp.ones(3)}))
        {'b': (3,), 'w': (2, 3)}
    """
    return tree.tree_map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: Any) -> Any:
    """Returns references to arrays whose elements are not set, with the shapes, dtypes and memory spaces of `x`.

    Example:
        >>> ref = pl.empty_ref_like(jax.ShapeDtypeStruct((2,), jnp.float32))
        >>> ref[...] = jnp.array([1.0, 2.0])
        >>> ref[...]
        Array([1., 2.], dtype=float32)
    """

    def like(leaf):
        if not hasattr(leaf, "shape"):
            raise ValueError(f"empty_ref_like does not support {type(leaf)}")
        space = leaf.memory_space if isinstance(leaf, MemoryRef) else None
        return new_ref(empty(leaf.shape, leaf.dtype), memory_space=space)

    return tree.tree_map(like, x)


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """Returns a function of values that runs a function of references to them, and returns their last values.

    Example:
        >>> def double(x_ref):
        ...     x_ref[...] = 2 * x_ref[...]
        >>> print(pl.run_state(double)(jnp.arange(3)))
        [0 2 4]
    """

    def on_values(values):
        leaves, treedef = tree.flatten(values)
        refs = [new_ref(x) for x in leaves]
        f(treedef.unflatten(refs))
        return treedef.unflatten([r[...] for r in refs])

    return on_values


def debug_print(fmt: str, *args: Any) -> None:
    """Prints values from within a kernel, with `{}` in the text for each; after a text without `{}`, as GPUs do.

    Example:
        >>> def kernel(x, o):
        ...     pl.debug_print("x = {}", x[0])
        ...     o[...] = x[...]
        >>> _ = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)(jnp.array([7, 8]))
        x = 7
        >>> jax.effects_barrier()
    """
    print_values(fmt, *args, skip_format_check="{" not in fmt)


def debug_checks_enabled() -> bool:
    """Returns whether kernels check the conditions of `pl.debug_check`."""
    return enable_debug_checks.value


def debug_check(condition: Any, message: str) -> None:
    """Checks a condition in kernels, as `checkify.debug_check` does, if `pl.enable_debug_checks` is set.

    Example:
        >>> def kernel(x, o):
        ...     pl.debug_check(x[0] > 0, 'x is not positive')
        ...     o[...] = x[...]
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32))
        >>> with pl.enable_debug_checks(True):
        ...     print('check' in str(jax.make_jaxpr(f)(jnp.array([-1, 2]))))
        True
    """
    if np.ndim(condition) or not is_value(condition) or typeof(condition).dtype != np.bool_:
        raise TypeError(f"debug_check takes a scalar pred as argument, got {condition}")
    if enable_debug_checks.value:
        check(condition, message, debug=True)
