"""A primitive: a class whose methods are the rules of one operation.

A rule keeps this contract (`ir/rules.py` has the signatures):

1. It returns as many results as the operation has, also for an operation with one result.
2. It runs under the trace below the one that called it: it binds operations, and never asks which trace is current.
3. It keeps shapes, dtypes and weak types: the primal results of `jvp` and `linearize` have the types of the operation's
   results, a tangent that of `to_tangent_aval()`, a cotangent that of `to_ct_aval()` of its operand.
4. It takes `Zero` for any tangent or cotangent, and returns `Zero` rather than an array of zeros.
5. It creates constants by `scalar_like` and its like, with the dtype, weak type and sharding of an operand.
6. It does not depend on values: operands may be tracers, in `batch` with and without a batch axis.
7. It works for empty arrays, and for every dtype that `infer` accepts.
8. `transpose` is linear in the cotangents, and runs no operation on an `UndefinedPrimal`.
9. `lower` depends on nothing but types and parameters, and emits by the verbs of its first argument.
"""

import enum
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from minijax.ir import rules
from minijax.ir.binding import Binding
from minijax.ir.context import path
from minijax.ir.jaxpr import Jaxpr, JaxprEqn, jaxprs_in_params
from minijax.ir.result_types import state_of_first
from minijax.ir.types import Aval, ShapedArray, Val, Zero
from minijax.partition.explicit import restrict_entry
from minijax.partition.meshes import abstract_context


class Axis(NamedTuple):
    """The axis that `vmap` adds: its name, size, and the mesh axes over which it is sharded."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None
    mesh: Any = None  # the mesh of `explicit_mesh_axis`

    @property
    def entry(self) -> Any:
        """The mesh axes in `explicit_mesh_axis` that are Explicit in the context mesh."""
        axes = self.explicit_mesh_axis
        mesh = None if axes is None else abstract_context()
        return axes if mesh is None else restrict_entry(axes, mesh.explicit_axes)


class _AnyName(tuple):
    """In place of the axis names of an operation: it may use any."""

    def __contains__(self, name: Any) -> bool:
        return True


ANY_NAME = _AnyName()


class UndefinedPrimal:
    """In a transpose rule, an operand in which the operation is linear; `aval` is the type of its cotangent."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self):
        weak = "~" * bool(self.aval.weak_type)
        return f"UndefinedPrimal({weak}{self.aval.str_short()})"


def is_undefined_primal(x: Val) -> bool:
    return type(x) is UndefinedPrimal


def linear_operand(name: str, operands: Sequence) -> int:
    """The number of the operand that is undefined. Raises AssertionError, as jax does, if several are."""
    number, *others = [i for i, x in enumerate(operands) if type(x) is UndefinedPrimal]
    if others:
        raise AssertionError(f"{name} of two values that depend on the input is not linear, so it cannot be transposed")
    return number


def cotangents(operands: Sequence, results: Iterable, nonzeros: Iterable[bool]) -> list:
    """The results of a transpose rule: for each linear operand the next result if `nonzeros` marks it, or Zero."""
    results, nonzeros = iter(results), iter(nonzeros)
    ct_of = lambda x: next(results) if next(nonzeros) else Zero(x.aval)  # noqa: E731
    return [ct_of(x) if is_undefined_primal(x) else None for x in operands]


class Folding(enum.Enum):
    """How XLA folds constant operands of an operation; `dispatch/lift.py` makes arguments of those it does not fold."""

    SUM = "adds them to constants of neighbouring sums"
    PRODUCT = "multiplies them by constants of neighbouring products"
    QUOTIENT = "as PRODUCT, unless the constant is the only operand"
    CHOICE = "compares or selects: each bit of the result is a bit of an operand, or a flag"
    SELECTION = "as CHOICE, and readers of the result may see the constant through it"
    MOVE = "moves them, to other positions or another type"
    EXACT = "does not fold them, and rounds no sum"
    PLAIN = "does not fold them"
    OWN = "computes with constants of its own, which may be folded with others"


def fold_as(folding: Folding, *primitives: "Primitive") -> None:
    """Sets how XLA folds constant operands of these operations."""
    for primitive in primitives:
        primitive.folding = folding


class Primitive(Binding):
    """One operation: its traits, and its rules, which transformations, typing and lowering look up here.

    `ir/rules.py` has the arguments and results of each rule. A rule that is None is absent. `Primitive(name)` has no
    rules: users set them in jax's form, and they replace the methods.
    """

    name: str = "primitive"
    multiple_results = False
    call_primitive = skip_canonicalization = False  # programs that interpret jaxprs read them

    # ---- traits: of the equation

    auto_pvary = True  # inside shard_map, operands are cast to vary over the same mesh axes
    never_dead = False  # its equations remain though nothing uses their results
    reads_only = False  # its effect is that it reads references
    owns_refs = False  # the inputs of its jaxpr are new references
    has_bodies = True  # there may be jaxprs among the parameters
    dce_inside = False  # `dce` prunes the jaxprs among the parameters
    splits_known = False  # `partial_eval_custom` splits equations without unknown operands too
    is_hi = False  # an operation that users define, which `to_lo` lowers to others
    has_backward_rule = False  # the user gives the backward rule
    inherits_names: str | None = None  # the parameter whose jaxpr is printed with the names of operands and results

    # ---- traits: of its types

    caches_types = True  # the types of results depend on nothing but operands' types and parameters
    same_memory_space = True  # operands of rank > 0 and the results are in one memory space
    sharding_param: str | None = None  # the parameter by which users request the sharding of the result
    defaults_to_context_mesh = False  # results get the context mesh if no operand's type has a mesh

    # ---- traits: of its lowering

    constrain_results = True  # the lowering emits a sharding constraint for each result
    prints_alike = False  # the lines that it is lowered to depend only on types, parameters and the platform
    moves_data = False  # results are elements of operands, flags or positions: nothing is computed in floats
    folding = Folding.OWN

    # ---- rules: types

    infer: rules.Infer | None = None
    effects: rules.Effects | None = None
    sharding_rule: rules.ShardingRule | None = None
    reduction_state: rules.ReductionState | None = None
    check_out_sharding: rules.CheckOutSharding | None = None
    vma_rule: rules.VmaRule | None = None
    check_equation: rules.CheckEquation | None = None

    # ---- rules: evaluation, recording and lowering

    at_once: rules.AtOnce | None = None
    record: rules.Record | None = None
    fold: rules.Fold | None = None
    lower: rules.Lower | None = None
    shardings: rules.Shardings | None = None

    # ---- rules: transformations

    jvp: rules.Jvp | None = None
    linearize: rules.Linearize | None = None
    transpose: rules.Transpose | None = None
    batch: rules.Batch | None = None
    partial_eval: rules.PartialEval | None = None
    partial_eval_custom: rules.PartialEvalCustom | None = None
    lift: rules.Lift | None = None
    to_lo: rules.ToLo | None = None

    # ---- rules: printing

    show_params: rules.ShowParams | None = None
    show_eqn: rules.ShowEqn | None = None
    as_printed: rules.AsPrinted | None = None

    # ---- what every operation answers

    def __repr__(self):
        return self.name

    def label(self, stack: tuple, params: dict) -> str:
        """The operation's name in profiles, under a name stack; "" if other operations are emitted in its place."""
        return path(stack, self.name)

    def gets_context_mesh(self, avals: Sequence[Aval]) -> bool:
        """Returns whether results get the context mesh, for operands of types without one."""
        return self.defaults_to_context_mesh

    def has_own_constants(self, params: dict) -> bool:
        """Returns whether XLA computes it with constants of its own, into which it folds others."""
        return self.folding is Folding.OWN

    def names_axis(self, params: dict) -> tuple:
        """The axis names in the parameters; `batch` is called for them, also if no operand is batched."""
        return ()

    def jaxprs(self, params: dict) -> Iterable[Jaxpr]:
        """The jaxprs among the parameters."""
        return jaxprs_in_params(params)

    def body_context(self, params: dict) -> AbstractContextManager:
        """The context manager under which the jaxprs among the parameters are traced or checked."""
        return nullcontext()

    def dce(self, used: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
        """(used results) -> (used operands, pruned equation or None); at least one is used, or there are effects."""
        return [True] * len(eqn.invars), eqn


class FirstOrder(Primitive):
    """An operation without jaxprs among its parameters, and whose lines depend on nothing but types and parameters."""

    prints_alike, has_bodies = True, False


class Linear1(Primitive):
    """An operation linear in its one operand."""

    reduction_state: Any = state_of_first

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind_all(primals, params)
        (t,) = tangents
        if type(t) is Zero:
            return [out], [Zero.from_primal_value(out)]
        return [out], self.bind_all(tangents, params)

    def transpose(self, cts, x, **params):
        (ct,) = cts
        return [Zero(x.aval)] if type(ct) is Zero else [self.transposed(ct, x.aval, **params)]

    def transposed(self, ct: Any, aval: ShapedArray, **params: Any) -> Any:
        """The cotangent of the operand, of type `aval`."""
        raise NotImplementedError
