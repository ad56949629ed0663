"""`fori_loop`: repeats a function of a counter. It is a `scan` if the bounds are known, otherwise a `while_loop`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import config, source
from minijax.base.symbolic.dimension import is_int
from minijax.higher.scan import scan
from minijax.higher.while_loop import while_loop
from minijax.ir.body import with_name_of
from minijax.ir.concrete import concrete_value
from minijax.ir.types import typeof
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import add, lt
from minijax.primitives.families import one_like

_disable_jit = config.option("disable_jit")


@source.boundary
def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: int | bool | None = None) -> Any:
    """Repeats a function for the integers from a lower up to an upper bound, in one compiled loop.

    It equals `for i in range(lower, upper): val = body_fun(i, val)`. If the bounds are known when it is traced, it
    becomes a `jax.lax.scan`, which has a reverse-mode derivative; otherwise it becomes a `jax.lax.while_loop`.

    Args:
        lower: The first index, an integer scalar.
        upper: The bound, an integer scalar; it is not reached. If it is not above `lower`, the body does not run.
        body_fun: A function (i, val) -> val. It must keep the tree, shapes and dtypes of the value.
        init_val: The first value: an array, a number, or a pytree of these.
        unroll: How many steps an iteration of the loop runs, for known bounds. True: all.

    Returns:
        The last value.

    Raises:
        TypeError: If the body changes the tree, a shape or a dtype of the value, or if the bounds differ in dtype.
        ValueError: If `unroll` is set and the bounds are not known.

    See also: `jax.lax.scan`, `jax.lax.while_loop`.

    Example:
        >>> int(jax.lax.fori_loop(1, 6, lambda i, product: i * product, 1))
        120
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    dtype = _bounds_dtype(typeof(lower), typeof(upper))
    counts = _known_range(lower, upper)
    if counts is None:
        if unroll is not None and unroll is not False and unroll != 1:
            raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")
        lower, upper = (b if typeof(b).dtype == dtype else convert(b, dtype) for b in (lower, upper))
        return _while_below(lower, upper, body_fun, init_val)
    if _disable_jit.value:
        for i in counts:
            init_val = body_fun(i, init_val)
        return init_val
    return _scan_over_range(counts, body_fun, init_val, 1 if unroll is None else unroll)


def _known_range(lower: Any, upper: Any) -> range | None:
    """The range of the counter if the values of both bounds are known."""
    bounds = [concrete_value(b) for b in (lower, upper)]
    if not all(is_int(b) and b is not None and not typeof(b).shape for b in bounds):
        return None
    return range(*(int(b) if isinstance(b, int) else int(np.asarray(b).item()) for b in bounds))


def _bounds_dtype(lower: Any, upper: Any) -> np.dtype:
    """The dtype of the counter: that of both bounds, or of the one that is not weakly typed."""
    if lower.dtype == upper.dtype:
        return lower.dtype
    signed = all(np.issubdtype(b.dtype, np.signedinteger) for b in (lower, upper))
    if not signed or lower.weak_type == upper.weak_type:
        raise TypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {lower.dtype.name} and "
            f"{upper.dtype.name}"
        )
    return upper.dtype if lower.weak_type else lower.dtype


def _while_below(lower: Any, upper: Any, body_fun: Callable, init_val: Any) -> Any:
    def test(loop_carry):
        return lt(loop_carry[0], loop_carry[1])

    def step(loop_carry):
        i, end, val = loop_carry
        return add(i, one_like(i)), end, body_fun(i, val)

    return while_loop(test, with_name_of(step, body_fun), (lower, upper, init_val))[2]


def _scan_over_range(counts: range, body_fun: Callable, init_val: Any, unroll: int | bool) -> Any:
    def step(loop_carry, _):
        i, val = loop_carry
        return (add(i, one_like(i)), body_fun(i, val)), None

    body = with_name_of(step, body_fun)
    return scan(body, (counts.start, init_val), None, length=len(counts), unroll=unroll)[0][1]
