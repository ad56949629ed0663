"""What one operation is: a class whose methods are its rules."""

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from minijax.base.errors import ShardingTypeError
from minijax.base.source import hide_frames
from minijax.ir import state
from minijax.ir.context import path
from minijax.ir.jaxpr import NO_EFFECTS, ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.ir.types import (
    NOT_MANUAL,
    Aval,
    Ct,
    ManualAxisType,
    Name,
    ShapedArray,
    Val,
    Zero,
    is_value,
    space_of,
    typeof,
    varying_axes,
)
from minijax.partition.explicit import joined_entry, repeats_an_axis, sharding_in_type
from minijax.partition.memory import Device
from minijax.partition.meshes import abstract_context, axes_of, explicit_meshes

_MAX_MEMO = 4096


def programs_in(values: Iterable) -> Iterator[Any]:
    """The jaxprs and functions among parameters, which may hold alive what a user's function captured."""
    for value in values:
        if isinstance(value, tuple):
            yield from programs_in(value)
        elif isinstance(value, (Jaxpr, ClosedJaxpr)) or callable(value):
            yield value


def no_rule(primitive: "Primitive", rule: str) -> NotImplementedError:
    """The error of a transformation that needs a rule which the primitive does not have."""
    return NotImplementedError(f"{rule} for '{primitive.name}' not implemented")


class Axis(NamedTuple):
    """The axis that `vmap` adds: its name, size, and how it is spread over devices."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None
    mesh: Any = None  # that of `explicit_mesh_axis`

    @property
    def entry(self) -> Any:
        """Those of the mesh axes `explicit_mesh_axis` that are Explicit here."""
        mesh = None if self.explicit_mesh_axis is None else abstract_context()
        if mesh is None:
            return self.explicit_mesh_axis
        return joined_entry(*[n for n in axes_of(self.explicit_mesh_axis) if n in mesh.explicit_axes])


class UndefinedPrimal:
    """Stands, in a transpose rule, for an operand in which the operation is linear; `aval`: its cotangent's type."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval

    def __repr__(self):
        weak = "~" * bool(self.aval.weak_type)
        return f"UndefinedPrimal({weak}{self.aval.str_short()})"


def is_undefined_primal(x: Val) -> bool:
    return type(x) is UndefinedPrimal


def cotangents(operands: Sequence, results: Iterable, nonzeros: Iterable[bool]) -> list:
    """The results of a transpose rule: for linear operands the next result that `nonzeros` marks, or Zero."""
    results, nonzeros = iter(results), iter(nonzeros)
    ct_of = lambda x: next(results) if next(nonzeros) else Zero(x.aval)  # noqa: E731
    return [ct_of(x) if is_undefined_primal(x) else None for x in operands]


class Folding(enum.Enum):
    """What XLA does with constants that meet an operation; `dispatch/lift.py` makes operands of those it leaves."""

    SUM = "adds them to those of the sums around it"
    PRODUCT = "multiplies them with those of the products around it"
    QUOTIENT = "as PRODUCT, but not with a constant as operand alone"
    CHOICE = "compares or picks: each bit of the result is one of an operand, or a flag"
    SELECTION = "as CHOICE, and what reads the result may see the constant through it"
    MOVE = "hands them on, elsewhere or in another type"
    EXACT = "leaves them, and rounds no sum"
    PLAIN = "leaves them"
    OWN = "computes with constants of its own, which may be put together with others"


def fold_as(folding: Folding, *primitives: "Primitive") -> None:
    """Says what XLA does with constants that meet these operations."""
    for primitive in primitives:
        primitive.folding = folding


class Primitive:
    """One operation and what every transformation must know about it.

    The leading arguments of the rules are named below; parameters follow by keyword. A rule that is None may be
    absent. `Primitive(name)` has no rules; those that it is given, in jax's form, take the places of the methods.
    """

    name: str = "primitive"
    multiple_results = False
    call_primitive = False
    skip_canonicalization = False
    dce_inside = False
    auto_pvary = True  # inside `shard_map`, operands are made to vary over the same mesh axes, and results do
    constrain_results = True  # programs constrain its results to their types' shardings; else its jaxprs do
    sharding_param: str | None = None  # by which users say how the result lies over Explicit axes
    defaults_to_context_mesh = False  # results lie over the mesh that is set where no operand knows one
    same_memory_space = True  # operands of rank > 0 must lie in one memory, where results lie too
    has_backward_rule = False  # which the user gives
    is_hi = False  # of a user's, who says by which others it is computed
    inlinable = False  # recorded as the equations of `jaxpr` where the parameter `inline` says so
    moves_data = False  # results are elements of operands, flags or positions: nothing is computed in floats
    folding = Folding.OWN

    def __init__(self, name: str | None = None):
        if name is not None:
            self.name = name
            self.impl = self._no_evaluation

    def _no_evaluation(self, *operands, **params):
        raise no_rule(self, "Evaluation rule")

    def __repr__(self):
        return self.name

    def label(self, stack: tuple, params: dict) -> str:
        """Its name in profiles, under a name stack; none where other operations stand in its place."""
        return path(stack, self.name)

    def has(self, rule: str) -> bool:
        """Whether it has the rule, a method's name."""
        return getattr(getattr(self, rule), "__func__", None) is not getattr(Primitive, rule)

    def listed(self, results: Any) -> list:
        """The results of a user's rule, one or several, as a list."""
        return list(results) if self.multiple_results else [results]

    def _listed_types(self, types: Any) -> list:
        if isinstance(types, list | tuple) != self.multiple_results:
            raise ValueError(
                f"{self}.abstract_eval() method should return a tuple or a list if and only if "
                f"{self}.multiple_results, which is {self.multiple_results}. It returned {types}."
            )
        return self.listed(types)

    @property
    def impl(self) -> Callable:
        """What runs the operation: (*operands, **params) -> the result, or results. It can be set."""
        return self.__dict__.get("_impl", self._computed)

    @impl.setter
    def impl(self, impl: Callable) -> None:
        self._impl, self.at_once = impl, self._evaluated

    def def_impl(self, impl: Callable) -> Callable:
        """Sets what runs the operation."""
        self.impl = impl
        return impl

    def _computed(self, *operands, **params):
        """Runs the operation as it is, whatever was set."""
        at_once = type(self).at_once
        if at_once is None:
            results = state.eval_trace[0].compute(self, operands, params)
        else:
            results = at_once(self, *operands, **params)
        return results if self.multiple_results else results[0]

    def _evaluated(self, *operands, **params):
        return self.evaluate(operands, params)

    def def_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """Sets the typing rule: (*operand types, **params) -> the result's type, or types."""
        self.infer = lambda *avals, **params: self._listed_types(abstract_eval(*avals, **params))
        self.__dict__.pop("effects", None)
        self._memo = {}
        return abstract_eval

    def def_effectful_abstract_eval(self, effectful_abstract_eval: Callable) -> Callable:
        """As `def_abstract_eval`, for a rule that returns the types and a set of effects."""
        rule = effectful_abstract_eval
        self.infer = lambda *avals, **params: self._listed_types(rule(*avals, **params)[0])
        self.effects = lambda *avals, **params: frozenset(rule(*avals, **params)[1])
        self._memo = {}
        return effectful_abstract_eval

    def abstract_eval(self, *args: Aval, **params: Any) -> tuple[Any, frozenset]:
        """The result's type, or types, and the effects."""
        avals, effects = self.typed(args, params)
        return (avals if self.multiple_results else avals[0]), effects

    def get_bind_params(self, params: dict) -> dict:
        """The parameters of `bind` for those of an equation."""
        return params

    def bind_with_trace(self, trace: Any, args: Sequence, avals: Sequence, params: dict, /) -> Any:
        """As `bind`, by an interpreter that need not be the current one."""
        results = self.rebind(trace, args, params)
        return results if self.multiple_results else results[0]

    def evaluate(self, operands: Sequence, params: dict) -> list:
        """Runs what `impl` was set to."""
        for x in operands:
            if not is_value(x):
                self._refuse(operands)
        return self.listed(self.impl(*operands, **params))

    def _refuse(self, operands: Sequence) -> None:
        """Raises TypeError for an operand that is no value."""
        for i, x in enumerate(operands):
            try:
                typeof(x)
            except TypeError as error:
                raise TypeError(
                    f"Error interpreting argument to {self} as a JAX value. The problematic value is of type "
                    f"{type(x)} and was passed to {self} at position {i}. {error}"
                ) from None

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Runs or records the operation; the result, or a list if `multiple_results`."""
        if state.thread.manual and self.auto_pvary:
            operands = state.thread.manual.unite(operands)
        try:
            try:
                results = (state.thread.trace or state.eval_trace[0]).process(self, operands, params)
            except TypeError:
                self._refuse(operands)
                raise
        except Exception as error:
            hide_frames(error)
            raise
        return results if self.multiple_results else results[0]

    def bind_all(self, operands: Sequence, params: dict) -> list:
        """As `bind`; always a list."""
        if state.thread.manual and self.auto_pvary:
            operands = state.thread.manual.unite(operands)
        return (state.thread.trace or state.eval_trace[0]).process(self, operands, params)

    def rebind(self, trace: Any, operands: Sequence, params: dict) -> list:
        """Hands a recorded equation to a trace again."""
        if state.thread.manual and self.auto_pvary:
            operands = state.thread.manual.unite(operands)
        return trace.process(self, operands, params)

    def check_equation(self, avals: Sequence[Aval], params: dict) -> None:
        """Raises JaxprTypeError where an equation's parameters are none, or do not fit the operands."""

    def typed(self, avals: Sequence[Aval], params: dict) -> tuple[list[Aval], frozenset]:
        """Result types and effects, remembered per operand types and parameters."""
        try:
            key = (*avals, *params.items())
            if explicit_meshes and self.defaults_to_context_mesh:
                key = (abstract_context(), *key)
            typed = self._memo.get(key)
        except TypeError:
            return self._typed(avals, params)
        except AttributeError:
            self._memo = {}
            typed = None
        if typed is None and _any_has_mesh(avals):
            key = (abstract_context(), *key)  # the types' mesh must be the one that is set
            typed = self._memo.get(key)
        if typed is None:
            typed = self._typed(avals, params)
            if len(self._memo) >= _MAX_MEMO:
                self._memo.clear()
            if next(programs_in(params.values()), None) is None:
                self._memo[key] = typed
        return typed

    def _typed(self, avals, params):
        outs = self.infer(*avals, **params)
        requested = params.get(self.sharding_param)
        if requested is not None:
            self.check_out_sharding(avals, requested, params)
            outs = [o.update(sharding=sharding_in_type(requested, o.ndim)) for o in outs]
        elif _any_has_mesh(avals):
            outs = self._sharded(avals, outs, params)
        elif explicit_meshes and self.defaults_to_context_mesh:
            outs = self._over_set_mesh(avals, outs)
        if self.auto_pvary and outs:
            kind = self.vma_rule(avals, params)
            outs = outs if kind is None else [o.update(manual_axis_type=kind) if _differs(o, kind) else o for o in outs]
            if self.same_memory_space and any(space_of(a) is not Device for a in avals):
                space = self._memory_space(avals)
                outs = [o.in_space(space) if type(o) is ShapedArray else o for o in outs]
        return outs, self.effects(*avals, **params)

    def _over_set_mesh(self, avals, outs):
        mesh = abstract_context()
        if mesh is None or not mesh.explicit_axes:
            return outs
        return [o.sharded_over(mesh, o.entries) if type(o) is ShapedArray and o._sharding is None else o for o in outs]

    def _sharded(self, avals, outs, params):
        """The types of the results with how they lie over Explicit axes."""
        mesh, *others = {a._sharding.mesh: None for a in avals if type(a) is ShapedArray and a._sharding is not None}
        if others:
            raise ValueError(
                f"{self.name}: Mesh for all inputs should be equal, but operands lie on {mesh} and on {others[0]}"
            )
        if self.has("shard") and not self._is_of_context(mesh, avals):
            return outs
        specs = self.shard(mesh, avals, outs, **params)
        if specs is None:
            return outs
        if any(map(repeats_an_axis, specs)):
            results = ", ".join([o.str_with_sharding(s) for o, s in zip(outs, specs, strict=True)])
            raise ShardingTypeError(
                f"{self.name} operation on {', '.join([a.text for a in avals])} produces an illegally sharded result, "
                f"with a mesh axis twice: {results}"
            )
        sums, explicit = self.reduction_state(avals, params) if _are_sums(avals) else (), set(mesh.explicit_axes)
        return [o.sharded_over(mesh, s, *(axes & explicit for axes in sums)) for o, s in zip(outs, specs, strict=True)]

    def _is_of_context(self, mesh, avals):
        """Whether operands lie over the mesh that is set, if one is. Raises where one that does not is split."""
        context = abstract_context()
        if context is None or context.has_axes_of(mesh):
            return True
        if not any([a.is_sharded for a in avals if type(a) is ShapedArray]):
            return False
        types = ", ".join([str(a) for a in avals])
        if context.manual_axes and not mesh.manual_axes:
            raise NotImplementedError(
                "Closing over inputs to shard_map where the input is sharded on `Explicit` axes is not implemented: "
                f"they can be arguments. {self.name} has operands of types {types}"
            )
        raise ValueError(
            f"For primitive {self.name}, context mesh {context} should match the aval mesh {mesh} of operands of types "
            f"{types}"
        )

    def reduction_state(self, avals: Sequence[Aval], params: dict) -> tuple[frozenset, frozenset]:
        """Over which Explicit and manual axes the results are unreduced and reduced, where an operand is."""
        types = ", ".join([a.text for a in avals])
        raise NotImplementedError(
            f"unreduced/reduced rule for {self.name} is not implemented: its operands are {types}"
        )

    def check_out_sharding(self, avals: Sequence[Aval], requested: Any, params: dict) -> None:
        """Raises where results cannot lie as `requested`, the parameter `sharding_param`, says."""

    def shard(self, mesh: Any, avals: Sequence[Aval], outs: Sequence[Aval], /, **params: Any) -> Sequence | None:
        """For each result the entries of its axes (`partition/explicit.py`), where a type of an operand has some.

        Raises ShardingTypeError where that is ambiguous. None: the types that `infer` gave say it.
        """
        return None

    def _memory_space(self, avals):
        arrays = [a for a in avals if type(a) is ShapedArray and a.shape]
        for a, b in itertools.pairwise(arrays):
            if a.memory_space is not b.memory_space:
                raise ValueError(
                    f"memory_space of all inputs passed to `{self.name}` must be the same. Got one operand "
                    f"with type: {a.str_short()} and another operand with type: {b.str_short()}"
                )
        return arrays[0].memory_space if arrays else Device

    def vma_rule(self, avals: Sequence[Aval], params: dict) -> ManualAxisType | None:
        """How the results lie over manual mesh axes. None: the types that `infer` gave say it."""
        varying = self.varying([varying_axes(a) for a in avals], params)
        if not _are_sums(avals):
            return ManualAxisType(varying) if varying else NOT_MANUAL
        kinds = [a.manual_axis_type for a in avals if type(a) is ShapedArray]
        manual = frozenset().union(*[axes for kind in kinds for axes in kind[1:]])
        return ManualAxisType(varying, *(axes & manual for axes in self.reduction_state(avals, params)))

    def varying(self, axes: Sequence[frozenset], params: dict) -> frozenset:
        """Over which mesh axes the results vary, given those of the operands."""
        return frozenset().union(*axes)

    def body_context(self, params: dict) -> AbstractContextManager:
        """The thread state that the jaxprs among the parameters are to be looked at in."""
        return nullcontext()

    def infer(self, *avals: Aval, **params: Any) -> list[Aval]:
        """The types of the results."""
        raise no_rule(self, "Abstract evaluation")

    def effects(self, *avals: Aval, **params: Any) -> frozenset:
        """Its effects: what it does besides giving results."""
        return NO_EFFECTS

    at_once: Any = None
    """(*values) -> results, computed at once. None: the operation is compiled as a program of its own."""

    def lower(
        self, e: Any, ins: Sequence[Aval], outs: Sequence[Aval], *operands: Name, **params: Any
    ) -> Sequence[Name]:
        """The names of the results, which verbs of the Emitter `e` write; `ins` and `outs` are types."""
        raise NotImplementedError(
            f"MLIR translation rule for primitive '{self.name}' not found for platform {e.platform}"
        )

    def jvp(self, primals: Sequence[Val], tangents: Sequence[Ct], **params: Any) -> tuple[list[Val], list[Ct]]:
        """The results and their tangents; `Zero` stands for tangents known to be zero."""
        raise no_rule(self, "Differentiation rule")

    linearize: Any = None
    """(which tangents are not zero, primals) -> results, which of theirs are not, a function of those tangents.
    None, for the rule or from it: `jvp` is followed."""

    def transpose(self, cts: Sequence[Ct], *operands: Val, **params: Any) -> Sequence[Ct | None]:
        """The cotangents of operands that are `UndefinedPrimal`, and None for the others."""
        raise no_rule(self, "Transpose rule (for reverse-mode differentiation)")

    def batch(
        self, axis: Axis, operands: Sequence[Val], dims: Sequence[int | None], **params: Any
    ) -> tuple[Sequence[Val], Sequence[int | None]]:
        """The results and where they have the mapped axis; `dims` says it of the operands, None: nowhere."""
        raise no_rule(self, "Batching rule")

    def has_own_constants(self, params: dict) -> bool:
        """Whether XLA computes it with constants of its own, next to which others are folded."""
        return self.folding is Folding.OWN

    def names_axis(self, params: dict) -> tuple:
        """The axis names that the parameters speak of: `batch` is called for them, mapped or not."""
        return ()

    def shardings(self, params: dict) -> Sequence:
        """The shardings that the parameters prescribe, which tell on what devices a program runs."""
        return ()

    def dce(self, used: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
        """Which operands are read if these results are (some, but for effects), and the smaller equation, if any."""
        return [True] * len(eqn.invars), eqn

    partial_eval_custom: Any = None
    """(equation, which operands are unknown, policy) -> its known and its staged part. None, for the rule or from it:
    known if all operands are."""

    partial_eval: Any = None
    """(trace of the unknown part, operands, which are unknown) -> results. None: all is unknown."""

    lift: Any = None
    """(equation, which operands are constants, lift) -> the equation with its jaxprs' constants as operands, where
    lift(jaxpr, which inputs are constants) gives the jaxpr with more inputs in front, and what to pass."""

    to_lo: Any = None
    """(operands, parameters) -> results, where values or jaxprs are of users' types, by operations on others."""

    fold: Any = None
    """(*literals) -> the result as a literal, or None, where an equation is inlined. None: it is always written."""

    def show_params(self, eqn: JaxprEqn) -> list[tuple[str, Any]] | None:
        """The parameters that the printed equation names; None: all of them."""
        return None


def _differs(aval: Aval, kind: ManualAxisType) -> bool:
    return type(aval) is ShapedArray and aval.manual_axis_type != kind


def _any_has_mesh(avals: Sequence[Aval]) -> bool:
    """Whether one of the types knows a mesh."""
    return any([type(a) is ShapedArray and a._sharding is not None for a in avals])


def _are_sums(avals: Sequence[Aval]) -> bool:
    """Whether one of the types is unreduced or reduced over some axes."""
    return any([any(a.reduction_state) for a in avals if type(a) is ShapedArray])


class Linear1(Primitive):
    """An operation linear in its one operand."""

    def reduction_state(self, avals, params):
        return avals[0].reduction_state

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
