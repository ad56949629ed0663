"""Types of values that users define in terms of others, and operations on them.

Where programs are lowered, values of such a *high* type have those of its `lo_ty` in their place. The values of a
mutable type have a state, whose type ("quasi-dynamic data", QDD) a trace follows as it records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minijax.ir import state
from minijax.ir.primitive import Primitive
from minijax.ir.types import AbstractValue, Aval, checked_type, hi_classes, is_value, register_value_type, typeof


def _to_define(name: str, what: str = "") -> Callable:
    """A method that users' types must have where it is needed."""

    def method(self, *args, **kwargs):
        raise AssertionError(what or f"must override: {type(self).__name__} has no `{name}`, which is needed here")

    method.__name__ = name
    return method


class _Defined(AbstractValue):
    """What both kinds of users' types have in common."""

    is_high = True

    to_tangent_aval: Callable = _to_define("to_tangent_aval")
    shard: Callable = _to_define("shard")
    unshard: Callable = _to_define("unshard")
    dec_rank: Callable = _to_define("dec_rank")
    inc_rank: Callable = _to_define("inc_rank")
    leading_axis_spec: Callable = _to_define("leading_axis_spec")

    def without_axis(self, axis):
        return self.dec_rank(None, self._spec(axis))

    def with_axis(self, axis, size, entry=None, mesh=None):
        return self.inc_rank(size, self._spec(axis))

    def _spec(self, axis):
        return self.leading_axis_spec() if type(axis) is int and axis == 0 else axis

    def __repr__(self):
        fields = ",".join([f"{name}={value!r}" for name, value in getattr(self, "__dict__", {}).items()])
        return f"{type(self).__name__}({fields})"


class HiType(_Defined):
    """A type of values that users define, in terms of types that XLA has."""

    lo_ty: Callable = _to_define("lo_ty")
    lower_val: Callable = _to_define("lower_val")
    raise_val: Callable = _to_define("raise_val")
    vspace_zero: Callable = _to_define("vspace_zero")
    vspace_add: Callable = _to_define("vspace_add")
    nospec: Callable = _to_define("nospec")


class MutableHiType(_Defined):
    """A type of values that change in place; how their state lies in arrays depends on the state's type."""

    has_qdd = True
    lo_ty: Callable = _to_define("lo_ty", "mutable hitypes should use lo_ty_qdd instead")
    lower_val: Callable = _to_define("lower_val", "a value that changes in place cannot be handed on or returned")
    lo_ty_qdd: Callable = _to_define("lo_ty_qdd")
    new_from_loval: Callable = _to_define("new_from_loval")
    read_loval: Callable = _to_define("read_loval")
    update_from_loval: Callable = _to_define("update_from_loval")


class MutableQDD:
    """The type of a value's state while operations on it are recorded."""

    __slots__ = ("init_val", "cur_val")

    def __init__(self, init_val: Any):
        self.init_val = self.cur_val = init_val

    def update(self, val: Any) -> None:
        """Notes that the state is of this type now."""
        self.cur_val = val


class AvalQDD(AbstractValue):
    """A mutable type with the type `qdd` of the state that a value begins with."""

    __slots__ = ("aval", "qdd", "mutable_qdd")
    is_high = has_qdd = True

    def __init__(self, aval: Any, qdd: Any):
        self.aval, self.qdd, self.mutable_qdd = aval, qdd, MutableQDD(qdd)

    def __eq__(self, other):
        return type(other) is AvalQDD and (self.aval, self.qdd) == (other.aval, other.qdd)

    def __hash__(self):
        return hash((self.aval, self.qdd))

    def __repr__(self):
        return f"AvalQDD(aval={self.aval}, qdd={self.qdd})"

    def last(self) -> "AvalQDD":
        """The type after what was recorded; alone, it is one that nothing was done to."""
        return AvalQDD(self.aval, self.mutable_qdd.cur_val)

    def lo_ty(self) -> list[AbstractValue]:
        return self.aval.lo_ty_qdd(self.qdd)

    def new_from_loval(self, *lo_vals: Any) -> Any:
        return self.aval.new_from_loval(self.qdd, *lo_vals)

    def read_loval(self, val: Any) -> list:
        return self.aval.read_loval(self.qdd, val)

    def to_tangent_aval(self) -> "AvalQDD":
        return AvalQDD(self.aval.to_tangent_aval(), self.qdd.to_tangent_qdd())

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return self.aval.str_short(short_dtypes)


@dataclass(frozen=True)
class AvalMutableQDD:
    """What a typing rule is told of an operand with a state: its type, and the state's, which it may change."""

    aval: AbstractValue
    mutable_qdd: MutableQDD


class aval_method(NamedTuple):
    """A method of the values of a type, an attribute of the type."""

    fun: Callable


class aval_property(NamedTuple):
    """A property of the values of a type, an attribute of the type."""

    fget: Callable


class HiPspec:
    """How values of a user's type are cut over a mesh."""

    to_lo: Callable = _to_define("to_lo")
    to_tangent_spec: Callable = _to_define("to_tangent_spec")
    to_ct_spec: Callable = _to_define("to_ct_spec")


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Says what type the values of a class have."""
    hi_classes.add(val_cls)
    register_value_type(val_cls, typeof_fn)


def full_type(x: Any) -> Aval:
    """The type of a value, with that of its state if it has one."""
    aval = checked_type(x)
    return AvalQDD(aval, cur_qdd(x)) if aval.has_qdd else aval


def cur_qdd(x: Any) -> Any:
    """The type of the state of a value that changes in place. Raises AttributeError for another value."""
    return state.current_trace().qdd_of(x) if typeof(x).has_qdd else x.cur_qdd()


class HiPrimitive(Primitive):
    """An operation on values of users' types, in terms of others.

    Subclasses have `abstract_eval`, (*types, **params) -> the result's type, or types, and a set of effects;
    `to_lojax`, (*values, **params) -> the result, or results, by other operations; and, where they are needed,
    `jvp`, (primals, tangents, **params) -> results and tangents, and `transpose`, (cotangents, *operands,
    **params) -> the operands' cotangents.
    """

    unites = False
    is_hi = True

    def __init__(self, name: str):
        super().__init__(name)
        hi_classes.add(type(self))
        own = type(self)
        self.impl = self.to_lojax
        if own.jvp is not Primitive.jvp:
            self.jvp = self._jvp
        if own.transpose is not Primitive.transpose:
            self.transpose = self._transpose

    def is_high(self, *avals: Aval, **params: Any) -> bool:
        return any(a.is_high for a in avals)

    abstract_eval: Callable = _to_define("abstract_eval")
    to_lojax: Callable = _to_define("to_lojax")

    def evaluate(self, operands, params):
        for x in operands:
            if not (is_value(x) or hasattr(x, "dtype")):  # descriptions of arrays may be parts of users' values
                self._refuse(operands)
        return self.to_lo(operands, params)

    def to_lo(self, operands: Sequence, params: dict) -> list:
        return self.listed(self.to_lojax(*operands, **params))

    def typed(self, avals, params):
        told = [AvalMutableQDD(a.aval, a.mutable_qdd) if type(a) is AvalQDD else a for a in avals]
        types, effects = self.abstract_eval(*told, **params)
        return self.listed(types), frozenset(effects)

    def _jvp(self, primals, tangents, **params):
        results, pushed = type(self).jvp(self, primals, tangents, **params)
        return self.listed(results), self.listed(pushed)

    def _transpose(self, cts, *operands, **params):
        return type(self).transpose(self, cts if self.multiple_results else cts[0], *operands, **params)
