"""What programs that walk jaxprs or trace by themselves ask about types, values and the state of tracing."""

import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes, errors
from minijax.base.source import hide_frames
from minijax.base.thread import set_trace, thread, under_trace
from minijax.ir import context, state
from minijax.ir.effects import Effect
from minijax.ir.jaxpr import NO_EFFECTS, JaxprEqn, Var
from minijax.ir.primitive import Primitive
from minijax.ir.trace import JaxprTrace, Trace, Tracer, the_eval_trace
from minijax.ir.types import AbstractValue, ShapedArray, ValueKind, checked_type, is_value, value_kinds
from minijax.partition.meshes import Mesh, empty_mesh, entered_mesh
from minijax.transforms.batch import BatchTrace

# ---- types and values --------------------------------------------------------------------------------


def valid_jaxtype(x: Any) -> bool:
    """Whether `x` can be an operand. Raises OverflowError for an int that its type cannot hold."""
    try:
        checked_type(x)
    except TypeError:
        return False
    return True


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """The type of one slice of a value of type `aval`, along `axis`; None: the same type."""
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    if not 0 <= axis < aval.ndim or aval.shape[axis] != size:
        raise AssertionError(f"mapped_aval: axis {axis} of {aval} does not have size {size}")
    return aval.without_axis(axis)


def unmapped_aval(size: int, axis: int | None, aval: AbstractValue, explicit_mesh_axis: Any = None) -> AbstractValue:
    """The type of `size` values of type `aval` stacked along a new `axis`; None: the same type."""
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    if not 0 <= axis <= aval.ndim:
        raise AssertionError(f"unmapped_aval: axis {axis} is not one of {aval} with one axis more")
    return aval.with_axis(axis, size, explicit_mesh_axis)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of this dtype: float0 for ints and bools."""
    return ShapedArray((), primal_dtype).to_tangent_aval().dtype


def is_concrete(x: Any) -> bool:
    """Whether the value is known now."""
    return to_concrete_value(x) is not None


def to_concrete_value(x: Any) -> Any:
    return x.to_concrete_value() if isinstance(x, Tracer) else x if is_value(x) else None


def concrete_or_error(force: Callable | None, val: Any, context: str = "") -> Any:
    """`force(val)`, or `val` if `force` is None. Raises ConcretizationTypeError for a traced value."""
    try:
        force = force or (lambda x: x)
        if not isinstance(val, Tracer):
            return force(val)
        known = val.to_concrete_value()
        if known is None:
            raise errors.ConcretizationTypeError(val, context)
        return force(known)
    except Exception as error:
        hide_frames(error)
        raise


def concretization_function_error(fun: Callable, suggest_astype: bool = False) -> Callable:
    """A function of a tracer that raises because `fun` needs its value."""

    def error(self, arg):
        if fun is bool:
            raise errors.TracerBoolConversionError(arg)
        name = getattr(fun, "__name__", fun)
        advice = f" If it is the result of x.astype({name}), say jnp.astype." if suggest_astype else ""
        raise errors.ConcretizationTypeError(arg, f"The problem arose with the `{name}` function.{advice}")

    return error


def is_constant_dim(d: Any) -> bool:
    """Whether a dimension is a number rather than a symbol."""
    return isinstance(d, int) or np.ndim(d) == 0 and isinstance(d, np.integer)


def is_constant_shape(s: Sequence) -> bool:
    return all(map(is_constant_dim, s))


array_types = {np.ndarray, *dtypes.ml_scalar_types}
array_types |= {t for t in np.sctypeDict.values() if issubclass(t, (np.number, np.bool_))}
literalable_types = {*dtypes.PYTHON_SCALARS, *array_types}


class ValueTable(MutableMapping):
    """Python type -> one of the functions of its `ValueKind`."""

    def __init__(self, field: str):
        self._field = field

    def __getitem__(self, cls: type) -> Callable:
        return getattr(value_kinds[cls], self._field)

    def __setitem__(self, cls: type, function: Callable) -> None:
        kind = value_kinds.get(cls, ValueKind(function, lambda x: x))
        value_kinds[cls] = kind._replace(**{self._field: function})

    def __delitem__(self, cls: type) -> None:
        del value_kinds[cls]

    def __iter__(self) -> Iterator[type]:
        return iter(value_kinds)

    def __len__(self) -> int:
        return len(value_kinds)


pytype_aval_mappings = ValueTable("typeof")
canonicalize_dtype_handlers = ValueTable("canonicalise")

# ---- building jaxprs ---------------------------------------------------------------------------------


def gensym() -> Callable[[AbstractValue], Var]:
    """A function that makes a new variable of a type."""
    return Var


def new_jaxpr_eqn(
    invars: Sequence,
    outvars: Sequence,
    primitive: Primitive,
    params: dict,
    effects: Any,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation, by default in the surroundings of now."""
    ctx = context.current_context() if ctx is None else ctx
    if source_info is not None:
        ctx = ctx._replace(name_stack=tuple(source_info.name_stack))
    return JaxprEqn(list(invars), list(outvars), primitive, params, frozenset(effects), source_info, ctx)


# ---- the state of tracing ----------------------------------------------------------------------------


class TraceTag:
    """Names the traces of one transformation; all are equal."""

    def __hash__(self):
        return hash(TraceTag)

    def __eq__(self, other):
        return isinstance(other, TraceTag)


class set_current_trace(state.set_current_trace):
    """Hands operations to `trace` for a while."""

    __slots__ = ()

    def __init__(self, trace: Trace, check_leaks: bool = False):
        super().__init__(trace)


class take_current_trace(under_trace):
    """Gives the current trace, and has none for a while."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None)

    def __enter__(self) -> Trace:
        super().__enter__()
        return self._saved or the_eval_trace


def full_lower(val: Any) -> Any:
    """What a tracer that does not transform its value stands for; other values are what they are."""
    return val.full_lower() if isinstance(val, Tracer) else val


def find_top_trace(_: Any) -> Trace:
    """The trace that operations are handed to now."""
    return state.current_trace()


class OpaqueTraceState:
    """Equal as long as the same trace is current."""

    __hash__ = None

    def __init__(self, trace: Trace):
        self._trace = weakref.ref(trace)

    def __eq__(self, other):
        return type(other) is OpaqueTraceState and self._trace() is not None and self._trace() is other._trace()


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """A value that is equal to another such one if both were asked for in the same trace."""
    return OpaqueTraceState(state.current_trace())


def trace_state_clean() -> bool:
    """Whether nothing is being transformed."""
    return state.is_eager()


def _under(kind: type) -> bool:
    trace = state.thread.trace
    while trace is not None:
        if isinstance(trace, kind):
            return True
        trace = getattr(trace, "parent_trace", None) or trace.parent
    return False


def unsafe_am_i_under_a_jit() -> bool:
    """Whether operations are being recorded."""
    return _under(JaxprTrace)


def unsafe_am_i_under_a_vmap() -> bool:
    """Whether a function is being vectorised."""
    return _under(BatchTrace)


def nonempty_axis_env() -> bool:
    """Whether an axis name is bound."""
    return bool(state.axis_names())


def unsafe_get_axis_names() -> list:
    """The axis names that are bound."""
    return state.axis_names()


class TracingContext:
    """This thread's current trace."""

    @property
    def trace(self) -> Trace:
        return state.current_trace()

    def is_top_level(self) -> bool:
        return state.is_eager() and not thread.axes

    def set_trace(self, trace: Trace | None) -> None:
        set_trace(None if trace is the_eval_trace else trace)

    def reset(self) -> None:
        set_trace(None)
        thread.axes = ()


trace_ctx = TracingContext()


class eval_context(state.set_current_trace):
    """Runs operations at once for a while, whatever is being traced."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None)


class ResourceEnv(NamedTuple):
    """What `with mesh:` has entered."""

    physical_mesh: Mesh

    def __repr__(self):
        return f"ResourceEnv(mesh=Mesh({', '.join(f'{name!r}: {n}' for name, n in self.physical_mesh.shape.items())}))"


class ThreadResources:
    """What each thread has entered by `with mesh:`; older programs look here for their mesh."""

    __slots__ = ()

    @property
    def env(self) -> ResourceEnv:
        return ResourceEnv(entered_mesh() or empty_mesh())


thread_resources = ThreadResources()
no_effects = NO_EFFECTS
Effects = Set[Effect]
OutputType = tuple[AbstractValue, ...]
ParamDict = dict[str, Any]
Value = Any
ArrayMapping = dict[Any, int]
Index = int | slice | tuple
