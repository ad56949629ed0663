"""`export`, with user-defined lowering rules."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.export.checks import DisabledSafetyCheck
from minijax.api.export.exported import Exported
from minijax.api.export.exporting import exporter
from minijax.interop.lowering import by_rules


def export(
    fun_jit: Callable,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Sequence[tuple[Any, Any]] | None = None,
) -> Callable[..., Exported]:
    """Exports a jitted function as a program that can be serialized, and run elsewhere or later.

    Args:
        fun_jit: A function that `jax.jit` returned.
        platforms: The platforms that the program can run on, such as `("cpu", "tpu")`. By default the current one.
        disabled_checks: `DisabledSafetyCheck`s.

    Returns:
        A function of the arguments of `fun_jit`, or of `jax.ShapeDtypeStruct`s whose dimensions may be symbolic. It
        returns an `Exported`.

    Raises:
        ValueError: For a function that is not jitted, and for custom calls that later versions may not support.

    Example:
        >>> (n,) = jax.export.symbolic_shape("n")
        >>> exported = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((n,), jnp.float32))
        >>> exported.out_avals
        (ShapedArray(float32[n]),)
        >>> exported.call(jnp.zeros(2))
        Array([0., 0.], dtype=float32)
    """
    pairs = _override_lowering_rules or ()
    rules = tuple([(prim, functools.partial(by_rules, prim, {None: (rule, True)})) for prim, rule in pairs])
    return exporter(fun_jit, platforms, disabled_checks, rules)
