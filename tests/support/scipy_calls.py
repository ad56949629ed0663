"""Tables of calls of the functions of jax.scipy, compared with jax.

A line of a table is a function's name and the arguments of its calls, which name the operands below; a call
that ends with `!` is refused.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from compare import Case, expression_case, outcome, placed, run_on, sampled, sweep, theirs, wide_numbers
from transform_matrix import transformed

OPERANDS = {
    "x": np.array([[0.25, 0.5, 0.875], [0.1, 0.7, 0.95]], np.float32),
    "y": np.array([[0.3, 1.5, 4.0], [0.6, 2.0, 1.0]], np.float32),
    "r": np.array([0.4, 1.25, 3.0], np.float32),
    "z": np.array([[0.0, 0.5, -2.0], [1.0, -0.5, 3.0]], np.float32),
    "w": np.array([-7.5, -0.3, 2.5, 9.0, 40.0], np.float32),
    "p": np.array([0.0, 1e-30, 0.01, 0.5, 0.9, 1.0, 2.0, -20.0], np.float32),
    "h": np.array([0.25, 0.75, 0.5], np.float16),
    "b": np.array([0.25, 0.75], ml_dtypes.bfloat16),
    "i": np.array([1, 2, 5], np.int32),
    "c": np.array([0.5 + 0.25j, -1.5 - 2j, 3 - 1j], np.complex64),
    "k": np.array([[-2, np.nan, -30.5 - 0.5j], [5 + 7j, -0.25 + 1e-3j, 0.4 - 9j]], np.complex64),
    "s": np.array(0.6, np.float32),
    "g": np.array([[3, 1, 3, 2], [1, 1, 2, 0]], np.float32),
    "n": np.array([2, np.nan, 1], np.float32),
    "e": np.zeros((0, 3), np.float32),
}
# Matrices: definite, Hermitian, of integers, in batches, indefinite, rectangular, larger, and pivots.
_DEFINITE = np.array([[3, 1, 0.5], [1, 4, -0.75], [0.5, -0.75, 2]], np.float32)
_SKEW = np.array([[0, 0.5, 1], [-0.5, 0, 0.25], [-1, -0.25, 0]], np.float32)
OPERANDS |= {
    "A": _DEFINITE,
    "H": (_DEFINITE + 1j * _SKEW).astype(np.complex64),
    "J": np.array([[4, 1, 0], [1, 3, 1], [0, 1, 5]], np.int32),
    "M": np.stack([_DEFINITE, 2 * _DEFINITE.T + np.eye(3, dtype=np.float32)]),
    "N": np.array([[1, 2], [2, 1]], np.float32),
    "B": np.array([[1, 2], [-0.5, 3], [0.25, -1]], np.float32),
    "W": np.array([[[1, 2], [3, -4], [0.5, 6]], [[-1, 2], [7, 1], [2, 0.25]]], np.float32),
    "L": np.array([[2, -1, 0.5, 1], [1, 3, 0, -2], [0.25, 1, 1.5, 0], [-1, 0.5, 2, 4]], np.float32),
    "v": np.array([1, -2, 0.5], np.float32),
    "q": np.array([1, 2, 2], np.int32),
    "Q": np.array([[1, 2, 2], [0, 2, 2]], np.int32),
}
CLOSE = {"rtol": 2e-6, "atol": 1e-7, "why": "XLA fuses the programs of a group in another way"}
CLOSE_IN_DOUBLE = {"rtol": 1e-12, "atol": 1e-14, "why": "XLA fuses the programs of a group in another way"}
WIDE = {"float32": np.float64, "complex64": np.complex128, "int32": np.int64}
TRANSFORMS = ("vmap", "jvp", "grad", "vmap_of_grad", "jit_of_vmap_of_jvp")


def calls(
    path: Path, module: str, operands: dict[str, np.ndarray] = OPERANDS, tolerance: dict[str, Any] = CLOSE
) -> list[Case]:
    cases = []
    for line in path.read_text().splitlines():
        name, colon, rest = line.partition(": ")
        for arguments in rest.split("; ") if colon and line[0] != "#" else ():
            refused, text = arguments.endswith("!"), f"{module}.{name}({arguments.removesuffix('!')})"
            cases.append(dataclasses.replace(expression_case(operands, text), raises=refused, tolerance=tolerance))
    return cases


def agree(cases: Sequence[Case], tier: str, other_jaxprs: tuple[str, ...] = ()) -> None:
    """Compares the cases with jax; without jaxprs those whose names start with one of `other_jaxprs`."""
    sweep([c for c in cases if not c.name.startswith(other_jaxprs)], tier)
    sweep([c for c in cases if c.name.startswith(other_jaxprs)], tier, jaxpr=False)


def under(transform: str, cases: Sequence[Case], tier: str, of: int) -> list[Case]:
    """A share of the calls of single-precision arrays, under a transform."""
    cases = [c for c in cases if not c.raises and c.args and all(x.dtype == np.float32 for x in c.args)]
    return [transformed(c, transform) for c in cases if tier == "full" or sampled(c.name, of, transform)]


def in_all_transforms(cases: Sequence[Case]) -> list[Case]:
    """The calls, and those of single-precision arrays under each transform."""
    return [*cases, *(c for transform in TRANSFORMS for c in under(transform, cases, "full", 1))]


def has_no_derivative(case: Case) -> bool:
    """Returns whether jax raises for a derivative of the case."""
    return any(
        outcome(lambda c=c: theirs().eval_shape(run_on(theirs(), c.program), *placed(theirs(), c.args))).error
        for c in (transformed(case, "jvp"), transformed(case, "grad"))
    )


def agree_in_double(
    cases: Sequence[Case],
    tier: str,
    of: int,
    other_jaxprs: tuple[str, ...] = (),
    tolerance: dict[str, Any] = CLOSE_IN_DOUBLE,
) -> None:
    """As `agree`, for a share of the calls, of arrays of 64-bit numbers."""
    wide = [
        dataclasses.replace(case, args=_widened(case.args), tolerance=tolerance)
        for case in cases
        if sampled(case.name, of, "double")
    ]
    with wide_numbers():
        agree(wide, tier, other_jaxprs)


def _widened(x: Any) -> Any:
    return tuple(map(_widened, x)) if isinstance(x, tuple) else x.astype(WIDE.get(x.dtype.name, x.dtype))
