"""`primal_tangent_dtype`: numbers of one dtype whose derivatives are of another."""

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
    """The kind of dtypes with another dtype for tangents."""


@dataclass(frozen=True)
class PrimalTangentDType(dtypes.ExtendedDType):
    """Numbers of `primal_dtype`, whose tangents are of `tangent_dtype`."""

    primal_dtype: Any
    tangent_dtype: Any
    name: str
    _rules = _Rules
    type = _Kind

    def __repr__(self):
        return self.name


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None) -> PrimalTangentDType:
    """A dtype of numbers of `primal_dtype` whose derivatives are of `tangent_dtype`.

    `lax.convert_element_type` makes such numbers, and numbers of them again.
    """
    pair = np.dtype(primal_dtype), np.dtype(tangent_dtype)
    return PrimalTangentDType(*pair, name or f"PrimalTangentDType{{{'/'.join(map(dtypes.short_name, pair))}}}")
