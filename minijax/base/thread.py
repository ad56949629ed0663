"""What a thread is doing: the trace that its operations are handed to, the axes that have names, its options."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class EqnContext(NamedTuple):
    """Thread state that an equation was recorded under and is replayed under."""

    name_stack: tuple[Any, ...] = ()  # scopes, and transformations
    compute_type: str | None = None
    xla_metadata: Any = None
    cur_abstract_mesh: Any = None
    threefry_partitionable: bool | None = None  # of an equation that draws bits or splits keys


EMPTY = EqnContext()
NEVER: tuple[Any, object] = (None, None)  # options with an epoch that is not now


class _Thread(threading.local):
    trace: Any = None  # None: operations are run at once
    axes: tuple = ()  # of each named axis (name, size, *mesh axes that it is spread over), the innermost last
    manual: Any = ()  # inside `shard_map` with check_vma: the `primitives.varying.ManualAxes` of its mesh
    origin: Any = None  # where the operations are from that a jaxpr's equations make again
    context: EqnContext = EMPTY
    budgets: tuple = ()  # the `dispatch.explain.recompile_budget`s that count traces

    # Of the options, which base/config.py alone sets.
    current: tuple[Any, object] = NEVER  # their interned values, and the epoch that these are of
    ready: tuple[Any, object] = NEVER  # `current` where no trace is on, for calls to be looked up by
    pinned: dict | None = None  # see `config.run_as_of`

    def __init__(self):
        self.overrides: dict = {}
        self.saved: list[tuple[Any, list]] = []


thread = _Thread()


def set_trace(trace: Any) -> None:
    """Hands this thread's operations to `trace`; None: they are run at once."""
    thread.trace, thread.ready = trace, NEVER


def run_under(trace: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """Calls `fun` with `trace` as the current trace, which ends with it, and puts the thread's state back."""
    saved = thread.trace, thread.axes, thread.manual, thread.origin, thread.context
    try:
        thread.trace, thread.ready = trace, NEVER
        return fun(*args)
    finally:
        # Without calls, for an interrupt may come at any call.
        thread.trace, thread.axes, thread.manual, thread.origin, thread.context = saved
        thread.ready = NEVER
        trace.alive = False


# These are classes since an interrupt may leave a generator half-way, to go on when it is collected.
class under_trace:
    """Hands operations to `trace` for a while."""

    __slots__ = ("_trace", "_saved")

    def __init__(self, trace: Any):
        self._trace = trace

    def __enter__(self) -> None:
        self._saved = thread.trace
        thread.trace, thread.ready = self._trace, NEVER

    def __exit__(self, *exception: object) -> None:
        thread.trace, thread.ready = self._saved, NEVER


class outside_traces:
    """Runs operations at once for a while, as if nothing was being traced."""

    __slots__ = ("_saved",)

    def __enter__(self) -> None:
        self._saved = thread.trace, thread.axes, thread.manual, thread.origin, thread.context
        thread.trace, thread.axes, thread.manual, thread.origin = None, (), (), None
        thread.context, thread.ready = EMPTY, NEVER

    def __exit__(self, *exception: object) -> None:
        thread.trace, thread.axes, thread.manual, thread.origin, thread.context = self._saved
        thread.ready = NEVER


class named_axis:
    """Makes a named axis known for a while."""

    __slots__ = ("_axis", "_saved")

    def __init__(self, name: Any, size: int, spmd_name: Any = None, explicit_mesh_axis: Any = None):
        self._axis = (name, size, spmd_name, explicit_mesh_axis)

    def __enter__(self) -> None:
        self._saved = thread.axes
        # Programs nested in a batched one share what is remembered of them, as jax's do.
        if self._saved[-2:] != (self._axis, self._axis):
            thread.axes = (*self._saved, self._axis)

    def __exit__(self, *exception: object) -> None:
        thread.axes = self._saved


class manual_axes:
    """Makes the axes of a mesh known for a while; types say over which of those of these `names` a value varies."""

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
    """Makes `context` the thread's for a while."""

    __slots__ = ("_context", "_saved")

    def __init__(self, context: EqnContext):
        self._context = context

    def __enter__(self) -> None:
        self._saved = thread.context
        thread.context = self._context

    def __exit__(self, *exception: object) -> None:
        thread.context = self._saved


class within:
    """Makes contexts and origins of a jaxpr's equations the thread's, one after the other, within the present ones.

    The names around the jaxpr go before theirs; an equation without a context, or an origin, has the present one.
    """

    __slots__ = ("_outer", "_inner", "_joined", "_origin")

    def __enter__(self) -> Callable[[EqnContext, Any], None]:
        self._outer = self._joined = thread.context
        self._inner, self._origin = EMPTY, thread.origin
        return self._go

    def _go(self, inner: EqnContext, origin: Any) -> None:
        if inner is not self._inner:  # those of neighbours are one object
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
