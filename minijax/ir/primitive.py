"""A primitive: a class whose methods are the rules of one operation."""

import enum
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from minijax.ir.binding import Binding, no_rule
from minijax.ir.context import path
from minijax.ir.jaxpr import Jaxpr, JaxprEqn, jaxprs_in_params
from minijax.ir.types import Aval, Ct, Name, ShapedArray, Val, Zero
from minijax.ir.typing import state_of_first
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
    """One operation and its rules, which transformations, typing and lowering look up here.

    The leading arguments of the rules are named below; parameters follow by keyword. A rule that is absent is None; a
    missing one that a transformation requires raises NotImplementedError. `Primitive(name)` has no rules: users set
    them in jax's form, and they replace the methods.
    """

    name: str = "primitive"
    multiple_results = False
    call_primitive = False
    skip_canonicalization = False
    dce_inside = False
    never_dead = False  # its equations remain though nothing uses their results
    auto_pvary = True  # inside shard_map, operands are cast to vary over the same mesh axes
    constrain_results = True  # the lowering emits a sharding constraint for each result
    sharding_param: str | None = None  # the parameter by which users request the sharding of the result
    defaults_to_context_mesh = False  # results get the context mesh if no operand's type has a mesh
    without_context_mesh: tuple[int, ...] = ()  # numbers of operands for which they do not
    same_memory_space = True  # operands of rank > 0 and the results are in one memory space
    caches_types = True  # the types of results depend on nothing but operands' types and parameters
    has_backward_rule = False  # the user gives the backward rule
    is_hi = False  # an operation that users define, which `to_lo` lowers to others
    has_bodies = True  # there may be jaxprs among the parameters
    prints_alike = False  # the lines that it is lowered to depend only on types, parameters and the platform
    moves_data = False  # results are elements of operands, flags or positions: nothing is computed in floats
    folding = Folding.OWN

    def __repr__(self):
        return self.name

    def has(self, rule: str) -> bool:
        """Returns whether the primitive has the rule, the name of a method."""
        return getattr(getattr(self, rule), "__func__", None) is not getattr(Primitive, rule)

    def label(self, stack: tuple, params: dict) -> str:
        """The operation's name in profiles, under a name stack; "" if other operations are emitted in its place."""
        return path(stack, self.name)

    # ---- types

    def infer(self, *avals: Aval, **params: Any) -> list[Aval]:
        """The shapes and dtypes of the results, as types; `ir/typing.py` derives the rest."""
        raise no_rule(self, "Abstract evaluation")

    effects: Any = None
    """(*operand types) -> the set of effects. None: there are none."""

    sharding_rule: Any = None
    """(mesh, operand types, result types) -> for each result its entries (`partition/explicit.py`), or None if `infer`
    gives them. Called if an operand's type has a mesh. Raises ShardingTypeError if the sharding is ambiguous."""

    reduction_state: Any = None
    """(operand types, parameters) -> (unreduced, reduced) axes of the results. Called if an operand has any."""

    check_out_sharding: Any = None
    """(operand types, requested sharding, parameters) -> the sharding, or None for the requested one. Raises if it is
    impossible."""

    vma_rule: Any = None
    """(operand types, parameters) -> the ManualAxisType of the results, or None if `infer` gives it. None: results vary
    over the axes over which operands do."""

    check_equation: Any = None
    """(operand types, parameters): raises JaxprTypeError for parameters that are invalid or do not fit the operands."""

    # ---- evaluation and lowering

    at_once: Any = None
    """(*values) -> results, computed eagerly. None: the operation is compiled as a program of its own."""

    def lower(
        self, e: Any, ins: Sequence[Aval], outs: Sequence[Aval], *operands: Name, **params: Any
    ) -> Sequence[Name]:
        """Emits the operation by verbs of the Emitter `e` and returns the names of its results."""
        raise NotImplementedError(
            f"MLIR translation rule for primitive '{self.name}' not found for platform {e.platform}"
        )

    shardings: Any = None
    """(parameters) -> the shardings that they name, which determine the devices of a program."""

    record: Any = None
    """(trace, operands, parameters) -> results, which are recorded by other equations. None, as rule or result: by one of
    this operation."""

    fold: Any = None
    """(*literals) -> the result as a literal, or None. None: the equation is always recorded."""

    def has_own_constants(self, params: dict) -> bool:
        """Returns whether XLA computes it with constants of its own, into which it folds others."""
        return self.folding is Folding.OWN

    # ---- transformations

    def jvp(self, primals: Sequence[Val], tangents: Sequence[Ct], **params: Any) -> tuple[list[Val], list[Ct]]:
        """The results and their tangents; a tangent that is known to be zero is a `Zero`."""
        raise no_rule(self, "Differentiation rule")

    linearize: Any = None
    """(nonzero tangents, primals) -> (results, which have nonzero tangents, function of nonzero tangents). None, as
    rule or result: `jvp` is used."""

    def transpose(self, cts: Sequence[Ct], *operands: Val, **params: Any) -> Sequence[Ct | None]:
        """The cotangents of operands that are `UndefinedPrimal`, and None for the others."""
        raise no_rule(
            self,
            "Transpose rule (for reverse-mode differentiation)",
            ". jax.linear_transpose takes linear functions, jax.vjp any; a primitive of yours needs a transpose rule.",
        )

    def batch(
        self, axis: Axis, operands: Sequence[Val], dims: Sequence[int | None], **params: Any
    ) -> tuple[Sequence[Val], Sequence[int | None]]:
        """The results and their batch dimensions; `dims` are those of the operands, None: not batched."""
        raise no_rule(self, "Batching rule")

    def names_axis(self, params: dict) -> tuple:
        """The axis names in the parameters; `batch` is called for them, also if no operand is batched."""
        return ()

    # ---- operations with jaxprs among their parameters

    def bodies(self, params: dict) -> Iterable[Jaxpr]:
        """The jaxprs among the parameters."""
        return jaxprs_in_params(params)

    def dce(self, used: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
        """(used results) -> (used operands, pruned equation or None); at least one is used, or there are effects."""
        return [True] * len(eqn.invars), eqn

    partial_eval: Any = None
    """(trace of the unknown part, operands, which are unknown) -> results, also where none is unknown. None: if one is,
    all results are."""

    partial_eval_custom: Any = None
    """(equation, which operands are unknown, policy) -> its known and its staged part. None, as rule or result: the
    equation is known if all operands are."""

    lift: Any = None
    """(equation, which operands are constants, lift_body) -> the equation with its jaxprs' constants as operands;
    lift_body(jaxpr, which inputs are constants) -> (jaxpr with leading inputs, new operands)."""

    to_lo: Any = None
    """(operands, parameters) -> results, for values or jaxprs of hi types, by operations on lo types."""

    def body_context(self, params: dict) -> AbstractContextManager:
        """The context manager under which the jaxprs among the parameters are traced or checked."""
        return nullcontext()

    show_params: Any = None
    """(equation) -> the parameters that the printed equation names, or None for all. None: all of them."""


class FirstOrder(Primitive):
    """An operation without jaxprs among its parameters, and whose lines depend on nothing but types and parameters."""

    prints_alike, has_bodies = True, False


class Linear1(Primitive):
    """An operation linear in its one operand."""

    reduction_state = state_of_first

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
