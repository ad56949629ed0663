"""The module of a function that calls kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.export.checks import DisabledSafetyCheck
from minijax.api.export.exporting import exported_of
from minijax.api.jit import jit
from minijax.kernels.symbolic import pallas_export_experimental

_UNCHECKED = DisabledSafetyCheck.custom_call("tpu_custom_call")


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
      dynamic_shapes: whether blocks may have symbolic sizes; the module is then that of an exported program.
      device: device whose platform the module is for.
      static_argnames: names of static arguments.
      platforms: names of platforms; "tpu" by default.
      **kwargs: keyword arguments.

    Returns:
      A text.

    Example:
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = 2 * x_ref[...]
        >>> x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> "tpu_custom_call" in pl.lower_as_mlir(pl.pallas_call(double, x), x)
        True
    """
    if platforms is None:
        platforms = ("tpu",) if device is None else (device.platform,)
    with pallas_export_experimental(dynamic_shapes):
        traced = jit(f, static_argnames=tuple(static_argnames)).trace(*args, **kwargs)
        if dynamic_shapes:
            return exported_of(traced, tuple(platforms), [_UNCHECKED]).mlir_module()
    return traced.lower(lowering_platforms=tuple(platforms)).as_text(debug_info=True)
