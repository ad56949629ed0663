"""The kind of the default device, and the dtypes that products of groups take on it."""

from __future__ import annotations

import re
from typing import Any

from minijax import numpy as jnp
from minijax.base.dtypes import DTypeLike, bfloat16
from minijax.run.arrays.array import Array
from minijax.run.clients.client import devices

_GENERATION = re.compile(r"TPU(?: v)?(\d+)")


def tpu_kind() -> str:
    """Returns the kind of the first device, such as "TPU v5 lite"; "cpu" if it is a CPU.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox import common
        >>> common.tpu_kind(), common.is_tpu(), common.supports_bfloat16_matmul()
        ('cpu', False, True)
    """
    return devices()[0].device_kind


def is_tpu() -> bool:
    """Returns whether the first device is a TPU.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox import common
        >>> common.is_tpu()
        False
    """
    return "TPU" in tpu_kind()


def tpu_generation() -> int:
    """Returns the generation of the TPU: 5 for "TPU v5 lite". Raises NotImplementedError for another device.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox import common
        >>> common.tpu_generation() if common.is_tpu() else None
    """
    kind = tpu_kind()
    found = _GENERATION.match(kind)
    if found is None:
        raise NotImplementedError(f"tpu_generation: only TPU devices are supported, and the device is {kind!r}.")
    return int(found[1])


def supports_bfloat16_matmul() -> bool:
    """Returns whether the device multiplies bfloat16 matrices: TPUs do from the fourth generation on.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox import common
        >>> common.supports_bfloat16_matmul()
        True
    """
    return not is_tpu() or tpu_generation() >= 4


def assert_is_supported_dtype(dtype: DTypeLike | None) -> None:
    """Raises ValueError if `dtype` is neither bfloat16 nor float32.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox import common
        >>> common.assert_is_supported_dtype(jnp.bfloat16)
    """
    if dtype not in (jnp.bfloat16, jnp.float32):
        raise ValueError(f"Expected bfloat16 or float32 array but got {dtype}.")


def select_input_dtype(lhs: Array, rhs: Array) -> Any:
    """Returns the dtype in which two arrays are multiplied: bfloat16 if both have it and the device multiplies it.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu.megablox.common import select_input_dtype
        >>> half = jnp.ones(2, jnp.bfloat16)
        >>> select_input_dtype(half, half) is jnp.bfloat16, select_input_dtype(half, jnp.ones(2)) is jnp.float32
        (True, True)
    """
    both = lhs.dtype == bfloat16 and rhs.dtype == bfloat16
    return jnp.bfloat16 if both and supports_bfloat16_matmul() else jnp.float32
