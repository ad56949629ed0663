"""`primal_tangent_dtype`: extended dtypes with separate dtypes for primals and tangents."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.ir.types import ShapedArray


class _Rules:
    allow_conversion = True

    @staticmethod
    def physical_element_aval(dtype: "PrimalTangentDType") -> ShapedArray:
        return ShapedArray((), dtype.primal_dtype)

    @staticmethod
    def tangent_dtype(dtype: "PrimalTangentDType") -> Any:
        return dtype.tangent_dtype

    @staticmethod
    def convert_from(mine: "PrimalTangentDType", other: Any) -> bool:
        return mine.primal_dtype == other

    @staticmethod
    def convert_to(other: Any, mine: "PrimalTangentDType") -> bool:
        return mine.primal_dtype == other


class _Kind(dtypes.extended):
    """The rules of dtypes that have another dtype for tangents."""


@dataclass(frozen=True)
class PrimalTangentDType(dtypes.ExtendedDType):
    """The dtype of numbers of `primal_dtype` whose tangents have `tangent_dtype`."""

    primal_dtype: Any
    tangent_dtype: Any
    name: str
    _rules = _Rules
    type = _Kind

    def __repr__(self):
        return self.name


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None) -> PrimalTangentDType:
    """Creates a dtype of numbers of `primal_dtype` whose tangents have `tangent_dtype`.

    `lax.convert_element_type` converts to and from it.

    Example:
        >>> jax.experimental.primal_tangent_dtype(jnp.int8, jnp.float32, name="quantized")
        quantized
    """
    pair = np.dtype(primal_dtype), np.dtype(tangent_dtype)
    return PrimalTangentDType(*pair, name or f"PrimalTangentDType{{{'/'.join(map(dtypes.short_name, pair))}}}")
