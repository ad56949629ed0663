"""Queries about types, values and the state of tracing, for code that inspects jaxprs or does its own tracing."""

import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes, errors, source
from minijax.base.thread import set_trace, thread, under_trace
from minijax.ir import context, state
from minijax.ir.context import NameStack, SourceInfo
from minijax.ir.effects import Effect
from minijax.ir.jaxpr import NO_EFFECTS, JaxprEqn, Var
from minijax.ir.primitive import Primitive
from minijax.ir.trace import JaxprTrace, Trace, Tracer, the_eval_trace
from minijax.ir.types import AbstractValue, ShapedArray, ValueKind, checked_type, is_value, value_kinds
from minijax.partition.meshes import Mesh, PartitionSpec, empty_mesh, legacy_context_mesh
from minijax.partition.shardings import NamedSharding
from minijax.primitives.sharding import explicit_sharding, named_sharding
from minijax.transforms.batch import BatchTrace

# ---- types and values --------------------------------------------------------------------------------


def valid_jaxtype(x: Any) -> bool:
    """Returns whether `x` can be an operand. Raises OverflowError for an int that its type cannot hold."""
    try:
        checked_type(x)
    except TypeError:
        return False
    return True


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """Returns the sharding over its abstract mesh, or None without a mesh. Raises ValueError for axes not Explicit."""
    if sharding is None:
        return None
    named = named_sharding(api_name, sharding)
    if check_mesh_consistency:
        explicit_sharding(api_name, named)
    return None if named.mesh.empty else NamedSharding(named.mesh.abstract_mesh, named.spec)


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """Returns the type of one slice along `axis` of a value of type `aval`; for None, `aval`."""
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    if not 0 <= axis < aval.ndim or aval.shape[axis] != size:
        raise AssertionError(f"mapped_aval: axis {axis} of {aval} does not have size {size}")
    return aval.without_axis(axis)


def unmapped_aval(size: int, axis: int | None, aval: AbstractValue, explicit_mesh_axis: Any = None) -> AbstractValue:
    """Returns the type of `size` values of type `aval` stacked along a new `axis`; for None, `aval`."""
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    if not 0 <= axis <= aval.ndim:
        raise AssertionError(f"unmapped_aval: axis {axis} is out of bounds for {aval} with one more axis")
    return aval.with_axis(axis, size, explicit_mesh_axis)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """Returns the dtype of tangents of values of this dtype: float0 for ints and bools."""
    return ShapedArray((), primal_dtype).to_tangent_aval().dtype


def is_concrete(x: Any) -> bool:
    """Returns whether the value is known during tracing."""
    return to_concrete_value(x) is not None


def to_concrete_value(x: Any) -> Any:
    return x.to_concrete_value() if isinstance(x, Tracer) else x if is_value(x) else None


def concretization_function_error(fun: Callable, suggest_astype: bool = False) -> Callable:
    """Returns a function of a tracer that raises because `fun` needs a concrete value."""

    def error(self, arg):
        if fun is bool:
            raise errors.TracerBoolConversionError(arg)
        name = getattr(fun, "__name__", fun)
        advice = f" If it is the result of x.astype({name}), say jnp.astype." if suggest_astype else ""
        raise errors.ConcretizationTypeError(arg, f"The problem arose with the `{name}` function.{advice}")

    return error


def is_constant_dim(d: Any) -> bool:
    """Returns whether a dimension is a number rather than symbolic."""
    return isinstance(d, int) or np.ndim(d) == 0 and isinstance(d, np.integer)


def is_constant_shape(s: Sequence) -> bool:
    return all(map(is_constant_dim, s))


array_types = {np.ndarray, *dtypes.ml_scalar_types}
array_types |= {t for t in np.sctypeDict.values() if issubclass(t, (np.number, np.bool_))}
literalable_types = {*dtypes.PYTHON_SCALARS, *array_types}


class ValueTable(MutableMapping):
    """Maps a Python type to one of the functions of its `ValueKind`."""

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
    """Returns a function that creates a new variable of a type."""
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
    """Creates an equation, by default with the current context and source position."""
    ctx = context.current_context() if ctx is None else ctx
    if source_info is not None:
        ctx = ctx._replace(name_stack=tuple(source_info.name_stack))
    return JaxprEqn(list(invars), list(outvars), primitive, params, frozenset(effects), source_info, ctx)


# ---- the state of tracing ----------------------------------------------------------------------------


class TraceTag:
    """A tag for the traces of one transformation; all tags are equal."""

    def __hash__(self):
        return hash(TraceTag)

    def __eq__(self, other):
        return isinstance(other, TraceTag)


class set_current_trace(state.set_current_trace):
    """Context manager: makes `trace` the current trace."""

    __slots__ = ()

    def __init__(self, trace: Trace, check_leaks: bool = False):
        super().__init__(trace)


class take_current_trace(under_trace):
    """Context manager: returns the current trace, and unsets it inside."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None)

    def __enter__(self) -> Trace:
        super().__enter__()
        return self._saved or the_eval_trace


def full_lower(val: Any) -> Any:
    """Returns the value of a tracer whose trace does not transform it; any other value unchanged."""
    return val.full_lower() if isinstance(val, Tracer) else val


def find_top_trace(_: Any) -> Trace:
    """Returns the current trace."""
    return state.current_trace()


class OpaqueTraceState:
    """Identifies a trace: two states are equal if they are of the same live trace."""

    __hash__ = None

    def __init__(self, trace: Trace):
        self._trace = weakref.ref(trace)

    def __eq__(self, other):
        return type(other) is OpaqueTraceState and self._trace() is not None and self._trace() is other._trace()


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Returns a value that is equal to another one if both were requested under the same current trace."""
    return OpaqueTraceState(state.current_trace())


def trace_state_clean() -> bool:
    """Returns whether no transformation is running."""
    return state.is_eager()


def _under(kind: type) -> bool:
    trace = state.thread.trace
    while trace is not None:
        if isinstance(trace, kind):
            return True
        trace = getattr(trace, "parent_trace", None) or trace.parent
    return False


def unsafe_am_i_under_a_jit() -> bool:
    """Returns whether a jaxpr is being traced."""
    return _under(JaxprTrace)


def unsafe_am_i_under_a_vmap() -> bool:
    """Returns whether a `vmap` is running."""
    return _under(BatchTrace)


def nonempty_axis_env() -> bool:
    """Returns whether an axis name is bound."""
    return bool(state.axis_names())


def unsafe_get_axis_names() -> list:
    """Returns the axis names that are bound."""
    return state.axis_names()


class TracingContext:
    """Gives access to this thread's current trace."""

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
    """Context manager: evaluates operations eagerly, also during tracing."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None)


class ResourceEnv(NamedTuple):
    """The mesh that `with mesh:` has entered."""

    physical_mesh: Mesh

    def __repr__(self):
        return f"ResourceEnv(mesh=Mesh({', '.join(f'{name!r}: {n}' for name, n in self.physical_mesh.shape.items())}))"


class ThreadResources:
    """Each thread's mesh, entered by `with mesh:`; older programs read it."""

    __slots__ = ()

    @property
    def env(self) -> ResourceEnv:
        return ResourceEnv(legacy_context_mesh() or empty_mesh())


thread_resources = ThreadResources()
no_effects = NO_EFFECTS
Effects = Set[Effect]
OutputType = tuple[AbstractValue, ...]
ParamDict = dict[str, Any]
Value = Any
ArrayMapping = dict[Any, int]
Index = int | slice | tuple


def current() -> SourceInfo:
    """Returns the current source position and name stack."""
    return SourceInfo(source.here(), current_name_stack())


def new_source_info() -> SourceInfo:
    """Returns an empty source information."""
    return SourceInfo(None, NameStack())


def current_name_stack() -> NameStack:
    """Returns the current name stack."""
    return NameStack(context.current_context().name_stack)


def new_name_stack(name: str = "") -> NameStack:
    """Returns a name stack of one name, or an empty one."""
    return NameStack((name,) if name else ())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Returns the user's innermost lines as `file:line (function)`."""
    return source.summary(source_info, num_frames) if source_info.traceback is not None else ""


class set_name_stack(context.entered):
    """Context manager: replaces the name stack."""

    __slots__ = ()

    def __init__(self, name_stack: NameStack):
        super().__init__(context.current_context()._replace(name_stack=tuple(name_stack)))


class reset_name_stack(set_name_stack):
    """Context manager: empties the name stack."""

    __slots__ = ()

    def __init__(self):
        super().__init__(NameStack())


class extend_name_stack(set_name_stack):
    """Context manager: extends the name stack by a name, and returns it."""

    __slots__ = ()

    def __init__(self, name: str):
        super().__init__(current_name_stack().extend(name))

    def __enter__(self) -> NameStack:
        super().__enter__()
        return current_name_stack()


class user_context(set_name_stack):
    """Context manager: sets the name stack of an equation's `source_info`."""

    __slots__ = ()

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None):
        super().__init__(current_name_stack() if name_stack is None else name_stack)
