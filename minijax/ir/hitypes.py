"""User-defined (hijax) types, and primitives on their values.

Lowering replaces a value of a *hi* type by values of its `lo_ty`. The values of a mutable type have a state. A trace
follows the type of that state ("quasi-dynamic data", QDD) while it records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minijax.ir import state
from minijax.ir.primitive import Primitive
from minijax.ir.types import AbstractValue, Aval, checked_type, hi_classes, is_value, register_value_type, typeof

_NO_AXIS = "scan got value with no leading axis to scan over: a mutable value, which functions can capture instead"


def _must_override(name: str, what: str = "", error: type[Exception] = AssertionError) -> Callable:
    """A method that a user-defined type must override if it is called."""

    def method(self, *args, **kwargs):
        raise error(what or f"must override: {type(self).__name__} has no `{name}`, which is needed here")

    method.__name__ = name
    return method


class _UserDefined(AbstractValue):
    """The base of user-defined types, immutable and mutable."""

    is_high = True

    to_tangent_aval: Callable = _must_override("to_tangent_aval")
    shard: Callable = _must_override("shard")
    unshard: Callable = _must_override("unshard")
    dec_rank: Callable = _must_override("dec_rank")
    inc_rank: Callable = _must_override("inc_rank")
    leading_axis_spec: Callable = _must_override("leading_axis_spec")

    def without_axis(self, axis):
        return self.dec_rank(None, self._spec(axis))

    def with_axis(self, axis, size, entry=None, mesh=None):
        return self.inc_rank(size, self._spec(axis))

    def _spec(self, axis):
        return self.leading_axis_spec() if type(axis) is int and axis == 0 else axis

    def __repr__(self):
        fields = ",".join([f"{name}={value!r}" for name, value in getattr(self, "__dict__", {}).items()])
        return f"{type(self).__name__}({fields})"


class HiType(_UserDefined):
    """A user-defined type of immutable values, which are lowered to values of `lo_ty`."""

    lo_ty: Callable = _must_override("lo_ty")
    lower_val: Callable = _must_override("lower_val")
    raise_val: Callable = _must_override("raise_val")
    vspace_zero: Callable = _must_override("vspace_zero")
    vspace_add: Callable = _must_override("vspace_add")
    nospec: Callable = _must_override("nospec")


class MutableHiType(_UserDefined):
    """A user-defined type of mutable values; the lo types depend on the type of the state (`lo_ty_qdd`)."""

    has_qdd = True
    lo_ty: Callable = _must_override("lo_ty", "mutable hitypes should use lo_ty_qdd instead")
    lower_val: Callable = _must_override("lower_val", "a mutable value cannot be passed on or returned")
    lo_ty_qdd: Callable = _must_override("lo_ty_qdd")
    new_from_loval: Callable = _must_override("new_from_loval")
    read_loval: Callable = _must_override("read_loval")
    update_from_loval: Callable = _must_override("update_from_loval")
    leading_axis_spec: Callable = _must_override("leading_axis_spec", _NO_AXIS, ValueError)


class MutableQDD:
    """The type of a value's state while operations on it are recorded."""

    __slots__ = ("init_val", "cur_val")

    def __init__(self, init_val: Any):
        self.init_val = self.cur_val = init_val

    def update(self, val: Any) -> None:
        """Records that the state has this type now."""
        self.cur_val = val


class AvalQDD(AbstractValue):
    """A mutable type with the initial type `qdd` of a value's state."""

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
        """A new AvalQDD whose initial state type is the last one recorded here."""
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
    """The argument of `abstract_eval` for a mutable operand: its type, and its state's, which the rule may update."""

    aval: AbstractValue
    mutable_qdd: MutableQDD


class aval_method(NamedTuple):
    """A method of values, defined as an attribute of their type."""

    fun: Callable


class aval_property(NamedTuple):
    """A property of values, defined as an attribute of their type."""

    fget: Callable


class HiPspec:
    """How values of a user-defined type are sharded over a mesh, in place of a PartitionSpec."""

    to_lo: Callable = _must_override("to_lo")
    to_tangent_spec: Callable = _must_override("to_tangent_spec")
    to_ct_spec: Callable = _must_override("to_ct_spec")


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Registers a class of values: `typeof_fn` gives the user-defined type of an instance."""
    hi_classes.add(val_cls)
    register_value_type(val_cls, typeof_fn)


def full_type(x: Any) -> Aval:
    """The type of a value, with the type of its state if it is mutable."""
    aval = checked_type(x)
    return AvalQDD(aval, cur_qdd(x)) if aval.has_qdd else aval


def cur_qdd(x: Any) -> Any:
    """Returns the current type of a mutable value's state. Raises AttributeError for other values."""
    return state.current_trace().qdd_of(x) if typeof(x).has_qdd else x.cur_qdd()


class HiPrimitive(Primitive):
    """A user-defined (hijax) primitive, implemented by other operations.

    Subclasses define `abstract_eval`, (*types, **params) -> the result's type, or types, and a set of effects;
    `to_lojax`, (*values, **params) -> the result, or results, by other operations; and, where needed,
    `jvp`, (primals, tangents, **params) -> results and tangents, and `transpose`, (cotangents, *operands,
    **params) -> the operands' cotangents.
    """

    auto_pvary = False
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

    abstract_eval: Callable = _must_override("abstract_eval")
    to_lojax: Callable = _must_override("to_lojax")

    def evaluate(self, operands, params):
        for x in operands:
            if not (is_value(x) or hasattr(x, "dtype")):  # a user-defined value may hold ShapeDtypeStructs
                self._refuse(operands)
        return self.to_lo(operands, params)

    def to_lo(self, operands: Sequence, params: dict) -> list:
        return self.listed(self.to_lojax(*operands, **params))

    def typed(self, avals, params):
        rule_types = [AvalMutableQDD(a.aval, a.mutable_qdd) if type(a) is AvalQDD else a for a in avals]
        types, effects = self.abstract_eval(*rule_types, **params)
        return self.listed(types), frozenset(effects)

    def _jvp(self, primals, tangents, **params):
        own: Any = type(self)
        results, pushed = own.jvp(self, primals, tangents, **params)
        return self.listed(results), self.listed(pushed)

    def _transpose(self, cts, *operands, **params):
        own: Any = type(self)
        return own.transpose(self, cts if self.multiple_results else cts[0], *operands, **params)
