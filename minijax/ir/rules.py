"""The rules of an operation: for each its arguments, its results, and when it is called.

A primitive defines a rule as a method of that name. Parameters of the operation follow by keyword, so that a method
names those that it reads. A rule that a primitive does not define is None; the transformation that needs it raises
NotImplementedError.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol

from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.types import Aval, Ct, Name, Val

# ---- types ------------------------------------------------------------------------------------------


class Infer(Protocol):
    """Returns the shapes and dtypes of the results, as types; `ir/result_types.py` derives the rest."""

    def __call__(self, *avals: Any, **params: Any) -> Sequence[Aval]: ...


class Effects(Protocol):
    """Returns the set of effects. None: the operation has no effects."""

    def __call__(self, *avals: Any, **params: Any) -> frozenset: ...


class ShardingRule(Protocol):
    """Returns for each result its entries (`partition/explicit.py`), or None if `infer` gives them.

    It is called if an operand's type has a mesh. Raises ShardingTypeError if the sharding is ambiguous.
    """

    def __call__(self, mesh: Any, avals: Sequence[Aval], outs: Sequence[Aval], /, **params: Any) -> Sequence[Any]: ...


class ReductionState(Protocol):
    """Returns the (unreduced, reduced) axes of the results. It is called if an operand has any."""

    def __call__(self, avals: Sequence[Aval], params: dict, /) -> Any: ...


class CheckOutSharding(Protocol):
    """Returns the sharding of the result in place of a requested one, or None for that. Raises if it is impossible."""

    def __call__(self, avals: Sequence[Aval], requested: Any, params: dict, /) -> Any: ...


class VmaRule(Protocol):
    """Returns the ManualAxisType of the results, or None if `infer` gives it.

    Without the rule, results vary over the axes over which operands do.
    """

    def __call__(self, avals: Sequence[Aval], params: dict, /) -> Any: ...


class CheckEquation(Protocol):
    """Raises JaxprTypeError for parameters that are invalid or do not fit the operands."""

    def __call__(self, avals: Sequence[Aval], params: dict, /) -> None: ...


# ---- evaluation, recording and lowering -------------------------------------------------------------


class AtOnce(Protocol):
    """Computes the results eagerly. Without the rule, the operation is compiled as a program of its own."""

    def __call__(self, *operands: Any, **params: Any) -> Sequence[Val]: ...


class Record(Protocol):
    """Returns results that other equations record, or None: then the equation is recorded."""

    def __call__(self, trace: Any, operands: Sequence[Val], params: dict, /) -> list | None: ...


class Fold(Protocol):
    """Returns the result of an operation on literals as a literal, or None: then the equation is recorded."""

    def __call__(self, *literals: Any, **params: Any) -> Any: ...


class Lower(Protocol):
    """Emits the operation by verbs of the Emitter `e`, and returns the names of its results."""

    def __call__(
        self, e: Any, ins: Sequence[Aval], outs: Sequence[Aval], /, *operands: Name, **params: Any
    ) -> Sequence[Name]: ...


class Shardings(Protocol):
    """Returns the shardings that the parameters name, which determine the devices of a program."""

    def __call__(self, params: dict, /) -> Sequence[Any]: ...


# ---- transformations --------------------------------------------------------------------------------


class Jvp(Protocol):
    """Returns the results and their tangents; a tangent that is known to be zero is a `Zero`, given or returned."""

    def __call__(self, primals: Sequence[Val], tangents: Sequence[Ct], /, **params: Any) -> tuple[list, list]: ...


class Linearize(Protocol):
    """Returns results, which of them have nonzero tangents, and a function from nonzero tangents to theirs.

    Without the rule, or if it returns None, `jvp` is used.
    """

    def __call__(self, nonzeros: Sequence[bool], primals: Sequence[Val], /, **params: Any) -> tuple | None: ...


class Transpose(Protocol):
    """Returns the cotangents of operands that are `UndefinedPrimal`, and None for the others."""

    def __call__(self, cts: Sequence[Ct], /, *operands: Val, **params: Any) -> Sequence[Ct | None]: ...


class Batch(Protocol):
    """Returns the results and their batch dimensions.

    `axis` is the `Axis` that is added, and `dims` the positions of that axis in the operands, None: not batched.
    """

    def __call__(
        self, axis: Any, operands: Sequence[Val], dims: Sequence[int | None], /, **params: Any
    ) -> tuple[Sequence[Val], Sequence[int | None]]: ...


class PartialEval(Protocol):
    """Returns the results, where `unknown_in` marks operands that only `staging` has; it records what needs them.

    It is called also if no operand is unknown. Without the rule, all results are unknown if an operand is.
    """

    def __call__(
        self, staging: Any, operands: Sequence[Val], unknown_in: Sequence[bool], /, **params: Any
    ) -> Sequence[Val]: ...


class PartialEvalCustom(Protocol):
    """Returns the known and the staged part of an equation under a policy (`transforms/partial_eval_custom.py`).

    Without the rule, or if it returns None, the equation is known if all operands are.
    """

    def __call__(self, eqn: JaxprEqn, unknown_in: Sequence[bool], policy: Any, /) -> Any: ...


class Lift(Protocol):
    """Returns the equation with its jaxprs' constants as operands; `fixed` marks operands that are constants.

    `lift(jaxpr, which inputs are constants)` returns a jaxpr with leading inputs, and the new operands.
    """

    def __call__(self, eqn: JaxprEqn, fixed: Sequence[bool], lift: Any, /) -> JaxprEqn: ...


class ToLo(Protocol):
    """Returns the results for operands or jaxprs of hi types, by operations on lo types."""

    def __call__(self, operands: Sequence[Val], params: dict, /) -> list: ...


# ---- printing ---------------------------------------------------------------------------------------


class ShowParams(Protocol):
    """Returns the parameters that the printed equation names, as pairs, or None for all. Without the rule: all."""

    def __call__(self, eqn: JaxprEqn, /) -> Iterable[tuple[str, Any]] | None: ...


class ShowEqn(Protocol):
    """Returns the text of an equation, or None; `name(atom, typed)` gives the names of operands and results."""

    def __call__(self, eqn: JaxprEqn, name: Any, /) -> Any: ...


class AsPrinted(Protocol):
    """Returns the equation that is printed in the place of an equation."""

    def __call__(self, eqn: JaxprEqn, /) -> JaxprEqn: ...


# ---- absent rules -----------------------------------------------------------------------------------

_RULES = {
    "impl": "Evaluation rule",
    "infer": "Abstract evaluation",
    "jvp": "Differentiation rule",
    "transpose": "Transpose rule (for reverse-mode differentiation)",
    "batch": "Batching rule",
}
_ADVICE = {
    "transpose": ". jax.linear_transpose takes linear functions, jax.vjp any; a primitive of yours needs a transpose "
    "rule."
}


def no_rule(primitive: Any, rule: str) -> NoReturn:
    """Raises NotImplementedError where a transformation needs a rule that the primitive does not have."""
    raise NotImplementedError(f"{_RULES[rule]} for '{primitive.name}' not implemented{_ADVICE.get(rule, '')}")


def no_reverse_mode_error(primitive: Any) -> ValueError:
    """The error of reverse mode for a primitive that has only a jvp rule."""
    return ValueError(
        f"Linearization failed to produce known values for all output primals: '{primitive.name}' has derivatives in "
        "forward mode only; it does not support reverse-mode autodiff."
    )


def no_lowering(primitive: Any, platform: str) -> NoReturn:
    """Raises NotImplementedError for a primitive that cannot be lowered for a platform."""
    message = "MLIR translation rule for primitive '{}' not found for platform {}"
    raise NotImplementedError(message.format(primitive.name, platform))
