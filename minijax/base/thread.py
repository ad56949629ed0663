"""Thread-local state: the current trace, which receives operations, the named axes, and the options."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class EqnContext(NamedTuple):
    """The thread state under which an equation was recorded and is evaluated again."""

    name_stack: tuple[Any, ...] = ()  # named scopes and transformations
    compute_type: str | None = None
    xla_metadata: Any = None
    cur_abstract_mesh: Any = None
    threefry_partitionable: bool | None = None  # for equations that draw bits or split keys


EMPTY = EqnContext()
NEVER: tuple[Any, object] = (None, None)  # options with an epoch that is never the current one


class _Thread(threading.local):
    trace: Any = None  # None: operations run eagerly
    axes: tuple = ()  # for each named axis (name, size, *mesh axes it is sharded over), the innermost last
    manual: Any = ()  # inside `shard_map` with check_vma: the `primitives.varying.ManualAxes` of its mesh
    origin: Any = None  # the source position of the equation that is being evaluated
    context: EqnContext = EMPTY
    budgets: tuple = ()  # the active `dispatch.explain.recompile_budget`s, which count traces

    # The state of the options, which only base/config.py sets.
    current: tuple[Any, object] = NEVER  # their interned values, and the epoch in which these were read
    ready: tuple[Any, object] = NEVER  # equals `current` if there is no current trace; calls are looked up by it
    pinned: dict | None = None  # see `config.run_as_of`

    def __init__(self):
        self.overrides: dict = {}
        self.saved: list[tuple[Any, list]] = []


thread = _Thread()


def set_trace(trace: Any) -> None:
    """Sets this thread's current trace; with None, operations run eagerly."""
    thread.trace, thread.ready = trace, NEVER


def run_under(trace: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """Calls `fun` with `trace` as the current trace, then ends the trace and restores the thread's state."""
    saved = thread.trace, thread.axes, thread.manual, thread.origin, thread.context
    try:
        thread.trace, thread.ready = trace, NEVER
        return fun(*args)
    finally:
        # No function calls here: an interrupt may come at any call.
        thread.trace, thread.axes, thread.manual, thread.origin, thread.context = saved
        thread.ready = NEVER
        trace.alive = False


# These are classes, since an interrupt may suspend a generator half-way, which then resumes when it is collected.
class under_trace:
    """Context manager that makes `trace` the current trace."""

    __slots__ = ("_trace", "_saved")

    def __init__(self, trace: Any):
        self._trace = trace

    def __enter__(self) -> None:
        self._saved = thread.trace
        thread.trace, thread.ready = self._trace, NEVER

    def __exit__(self, *exception: object) -> None:
        thread.trace, thread.ready = self._saved, NEVER


def called_under(trace: Any, fun: Callable[..., Any], /, *args: Any, **params: Any) -> Any:
    """Calls `fun` with `trace` as the current trace: what `under_trace` does, in one call."""
    outer, thread.trace, thread.ready = thread.trace, trace, NEVER
    try:
        return fun(*args, **params)
    finally:
        thread.trace, thread.ready = outer, NEVER


def called_at_own_lines(fun: Callable[..., Any], /, *args: Any) -> Any:
    """Calls a user's rule: its operations have its own source positions, not that of the equation being evaluated."""
    outer, thread.origin = thread.origin, None
    try:
        return fun(*args)
    finally:
        thread.origin = outer


class outside_traces:
    """Context manager under which operations run eagerly, as if nothing were being traced."""

    __slots__ = ("_saved",)

    def __enter__(self) -> None:
        self._saved = thread.trace, thread.axes, thread.manual, thread.origin, thread.context
        thread.trace, thread.axes, thread.manual, thread.origin = None, (), (), None
        thread.context, thread.ready = EMPTY, NEVER

    def __exit__(self, *exception: object) -> None:
        thread.trace, thread.axes, thread.manual, thread.origin, thread.context = self._saved
        thread.ready = NEVER


class named_axis:
    """Context manager that defines a named axis."""

    __slots__ = ("_axis", "_saved")

    def __init__(self, name: Any, size: int, spmd_name: Any = None, explicit_mesh_axis: Any = None):
        self._axis = (name, size, spmd_name, explicit_mesh_axis)

    def __enter__(self) -> None:
        self._saved = thread.axes
        # A third equal axis in a row is left out, so that nested batched programs share cache entries, as in jax.
        if self._saved[-2:] != (self._axis, self._axis):
            thread.axes = (*self._saved, self._axis)

    def __exit__(self, *exception: object) -> None:
        thread.axes = self._saved


class manual_axes:
    """Context manager that defines the manual axes of a mesh. Types record which of `names` a value varies over."""

    __slots__ = ("_sizes", "_names", "_saved")

    def __init__(self, sizes: Sequence[tuple[Any, int]], names: Any):
        self._sizes, self._names = sizes, names

    def __enter__(self) -> None:
        self._saved = thread.axes, thread.manual
        thread.axes = (*thread.axes, *[(name, size, None, None) for name, size in self._sizes])
        thread.manual = self._names

    def __exit__(self, *exception: object) -> None:
        thread.axes, thread.manual = self._saved


class entered:
    """Context manager that sets the thread's equation context."""

    __slots__ = ("_context", "_saved")

    def __init__(self, context: EqnContext):
        self._context = context

    def __enter__(self) -> None:
        self._saved = thread.context
        thread.context = self._context

    def __exit__(self, *exception: object) -> None:
        thread.context = self._saved


class within:
    """Sets the thread's context and origin for each equation of a jaxpr in turn, nested in the current ones.

    Enclosing names precede those of an equation; one without a context, or an origin, uses the current one.
    """

    __slots__ = ("_outer", "_inner", "_joined", "_origin")

    def __enter__(self) -> Callable[[EqnContext, Any], None]:
        self._outer = self._joined = thread.context
        self._inner, self._origin = EMPTY, thread.origin
        return self._enter_equation

    def _enter_equation(self, inner: EqnContext, origin: Any) -> None:
        if inner is not self._inner:  # consecutive equations often share one context object
            outer, self._inner = self._outer, inner
            if inner == EMPTY:
                self._joined = outer
            elif outer.name_stack:
                self._joined = EqnContext(outer.name_stack + inner.name_stack, *inner[1:])
            else:
                self._joined = inner
        thread.context, thread.origin = self._joined, origin or self._origin

    def __exit__(self, *exception: object) -> None:
        thread.context, thread.origin = self._outer, self._origin
