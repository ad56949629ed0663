"""The module of a function that calls kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.jit import jit


def lower_as_mlir(
    f: Callable,
    *args: Any,
    dynamic_shapes: bool = False,
    device: Any = None,
    static_argnames: Sequence[str] = (),
    platforms: Sequence[str] | None = None,
    **kwargs: Any,
) -> str:
    """Returns the StableHLO module of a function that calls kernels, with its source positions.

    Args:
      f: function of arrays, jitted or not.
      *args: arguments, arrays or `jax.ShapeDtypeStruct`s.
      dynamic_shapes: whether blocks may have symbolic sizes, which they may not here.
      device: device whose platform the module is for.
      static_argnames: names of static arguments.
      platforms: names of platforms; "tpu" by default.
      **kwargs: keyword arguments.

    Returns:
      A text.

    Raises NotImplementedError for `dynamic_shapes`.

    Example:
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = 2 * x_ref[...]
        >>> x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> "tpu_custom_call" in pl.lower_as_mlir(pl.pallas_call(double, x), x)
        True
    """
    if dynamic_shapes:
        raise NotImplementedError("lower_as_mlir: blocks of symbolic sizes cannot be lowered; give the sizes")
    if platforms is None:
        platforms = ("tpu",) if device is None else (device.platform,)
    traced = jit(f, static_argnames=tuple(static_argnames)).trace(*args, **kwargs)
    return traced.lower(lowering_platforms=tuple(platforms)).as_text(debug_info=True)
