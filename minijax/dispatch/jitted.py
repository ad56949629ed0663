"""The engine of jitted functions: parses arguments, traces and compiles, and caches each step."""

import functools
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from minijax.base import cache, config, source, tree
from minijax.base.naming import known_as
from minijax.base.thread import thread
from minijax.dispatch import explain, key_reuse
from minijax.dispatch.executable import Programs, executable_for
from minijax.dispatch.hot import Hot
from minijax.dispatch.jit import JitOptions, call_params, jit_p, program_options
from minijax.dispatch.jit_shardings import leaf_layouts, leaf_shardings
from minijax.dispatch.operands import argument_type, as_value, operands_of, parse, parse_static, raise_if_donated
from minijax.dispatch.placement import ProgramOptions
from minijax.dispatch.replay import replayed, replayed_alone
from minijax.ir import state
from minijax.ir.body import (
    Flat,
    argument_names,
    as_inputs_if_live,
    check_aliases,
    function_name,
    is_alive,
    leaf_types,
    source_of,
    trace_flat,
)
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.refs import Ref
from minijax.ir.trace import JaxprTrace, Tracer, forbid_tracing
from minijax.ir.types import ShapedArray, hi_classes, offers_array, unwrapped
from minijax.partition.meshes import context_mesh, legacy_context_mesh
from minijax.partition.shardings import UNSPECIFIED
from minijax.run.arrays.array import ArrayImpl
from minijax.run.clients import client
from minijax.run.watching import profiler, watch

P = ParamSpec("P")
R = TypeVar("R")
_epoch = config.epoch


class Static:
    """A static argument in a cache key: equal by type and value."""

    __slots__ = ("value", "key")

    def __init__(self, value: Any):
        hash(value)  # raises for lists, from which `cache.key` could make a key
        self.value = value
        self.key = cache.key(value)

    def __eq__(self, other):
        if self is other:
            return True
        try:
            return type(other) is Static and self.key == other.key
        except Exception as error:
            raise ValueError(
                "static arguments should be comparable using __eq__. Comparing two of the types "
                f"{type(self.value)} and {type(other.value)} raised {error!r}"
            ) from error

    def __hash__(self):
        return hash((type(self.value), self.key))


class Unhashable(Static):
    """A static argument that may change: equal only to itself, so that its trace is not reused."""

    __slots__ = ()

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


class Arguments(NamedTuple):
    """The arguments of one call: the leaves of the dynamic ones, their tree, and the static ones as a key."""

    leaves: Sequence
    treedef: Any
    static: tuple
    given: tuple  # the dynamic (args, kwargs)


class TracedFunction(NamedTuple):
    """A function's jaxpr for one kind of arguments."""

    closed: ClosedJaxpr
    captured: list  # the captured values that are leading inputs, if any of them is traced
    out_tree: Any
    info: DebugInfo
    params: dict[str, Any]  # of the call's equation; filled in by the first call
    is_single: bool  # True if the function's result is one value, not a tree


class Memory:
    """The traces and programs of one callable under one set of options."""

    __slots__ = ("traces", "shared", "plain", "programs", "hot", "count", "number", "__weakref__")

    def __init__(self, shared: cache.Keyed | None = None):
        self.count = 0  # the number of traces
        self.number = next(explain.numbers)
        self.traces = cache.Keyed(4096)
        self.shared = cache.Keyed(4096) if shared is None else shared  # the traces of the callable under all options
        self.plain = cache.BoundedDict(4096)  # of `traces`, those of plain arguments that captured nothing
        self.programs = Programs(4096)
        self.hot = _COLD

    def hot_for(self, ready: tuple[Any, object]) -> Hot:
        """The table of the latest calls under a thread's `ready`, which replaces that of another."""
        if self.hot.ready is not ready:
            self.hot = Hot(ready)
        return self.hot

    def clear(self) -> None:
        self.traces.cache_clear()
        self.shared.cache_clear()
        self.plain.cache_clear()
        self.programs.cache_clear()
        self.hot = _COLD


_COLD = Hot(None)


@cache.weak_cache
def _memories(fun: Callable) -> tuple[dict[tuple, Memory], dict[tuple, cache.Keyed]]:
    """A function's memories by all options, and its traces by those on which they depend."""
    return {}, {}


def _memory_of(fun: Callable, options: JitOptions, resolved: "Resolved", *names: str) -> Memory:
    try:
        memories, traces = _memories(fun)
        memory = memories.get(key := (options, resolved, names))
        if memory is None:
            kind = (resolved.static_nums, resolved.static_names, names)
            memory = memories.setdefault(key, Memory(traces.setdefault(kind, cache.Keyed(4096))))
        return memory
    except TypeError:
        return Memory()


_ABSENT: Any = object()


def _present(x: Any, y: Any, more: tuple) -> tuple:
    """The positional arguments of a call, without those that are absent."""
    return (x, y, *more) if y is not _ABSENT else () if x is _ABSENT else (x,)


_NO_KEY = ()  # of calls with references, which are bound as operations each time


class Resolved(NamedTuple):
    """Which arguments are static or donated, by position and by name."""

    static_nums: tuple[int, ...] = ()
    static_names: tuple[str, ...] = ()
    donate_nums: tuple[int, ...] = ()
    donate_names: tuple[str, ...] = ()


class Engine:
    """Traces a function once per kind of arguments, compiles it, and runs it."""

    __slots__ = (
        *"fun name options resolved memory signature purpose".split(),
        *"static has_static recall inlines replay plain_count by_user unwraps".split(),
    )

    def __init__(
        self,
        fun: Callable,
        options: JitOptions,
        resolved: Resolved,
        name: str | None = None,
        signature: inspect.Signature | None = None,
        purpose: str = "jit",
        by_user: bool = False,
    ):
        self.fun = fun
        self.purpose = purpose
        self.by_user = by_user  # a recompilation budget counts its traces
        self.name = name or function_name(fun)
        self.options = options
        self.resolved = resolved
        self.signature = signature
        self.memory = _memory_of(fun, options, resolved, self.name, purpose)
        nums, names = resolved.static_nums, resolved.static_names
        self.has_static = bool(nums or names)
        # None: some positions count from the end, which `flatten` resolves.
        self.static = None if min(nums, default=0) < 0 else (*nums, *names)
        self.recall = self.memory.programs.get
        # A function of the library gets the operands of an inlined call as they are; users expect tracers.
        self.inlines = options.inline and not by_user
        self.replay: Any = None  # of `dispatch/replay.py`
        self.unwraps = False  # True: objects with `__jax_array__` among the arguments, which are trees, become arrays
        self.plain_count = -1 if min(nums, default=0) < 0 else min(nums, default=sys.maxsize)

    def __reduce__(self):
        made_of = self.fun, self.options, self.resolved, self.name, self.signature, self.purpose, self.by_user
        return type(self), made_of

    # ---- calling ------------------------------------------------------------------------------------

    def call(self, *args, **kwargs):
        return self.call_by_key(args, kwargs)

    def _call_without_jit(self, args: tuple, kwargs: dict) -> Any:
        """Calls the function itself; one of the library gets arrays, not objects with `__jax_array__`."""
        if not self.by_user:
            args, kwargs = tree.tree_map(unwrapped, (args, kwargs), is_leaf=offers_array)
        return self.fun(*args, **kwargs)

    def call_by_key(self, args: tuple, kwargs: dict) -> Any:
        """Calls the program that has the key of this call, and stores it in the table of the latest calls."""
        options, since = thread.ready
        if since is not _epoch[0]:
            if thread.trace is not None:
                return self.call_under_trace(args, kwargs)
            options = config.make_ready()
            if options.disable_jit:
                return self._call_without_jit(args, kwargs)
            if profiler.is_watching():
                return profiler.call_annotated(self.name, self.call, args, kwargs)
        try:
            try:
                key, operands = (self._parse_static if self.has_static else parse)(options, args, kwargs)
            except (TypeError, OverflowError):
                key, operands = self._parse_refs(args, kwargs)
            call: Any = self.recall(key)
            if call is None:
                return self._first_call(key, operands, args, kwargs)
            if hasattr(call, "program") and self.static is not None:
                self.memory.hot_for(thread.ready).keep(call.program, args, kwargs, operands, self.static)
            return call(operands)
        except watch.InvalidResult as error:
            invalid = error
        except RuntimeError as error:
            if not source.has_passed(error, Engine._first_call):
                raise_if_donated(error, tree.tree_leaves((args, kwargs)))
            raise
        watch.explain(invalid, functools.partial(self.fun, *args, **kwargs))

    def call_under_trace(self, args, kwargs):
        trace = thread.trace
        if self.inlines and type(trace) is JaxprTrace:
            for x in args:
                if isinstance(x, Tracer) and x._trace is not trace:
                    trace.offer(args)
                    break
            if self.replay and not kwargs and len(args) <= self.plain_count:
                return self.replay(self, args, self.fun)
            return self.fun(*args, **kwargs)
        options = config.state()
        if options.disable_jit:
            return self._call_without_jit(args, kwargs)
        operands = args
        if not kwargs and len(args) <= self.plain_count:
            key = self._plain_key(options, args)
        else:
            key, operands = self._plain_key_of_static(options, args, kwargs)
        traced = None if key is None else self.memory.plain.get(key)
        if traced is None:
            return self._call_traced(self.flatten(args, kwargs), key)
        results = trace.process(jit_p, operands, traced.params)
        return results[0] if traced.is_single else traced.out_tree.unflatten(results)

    def _plain_key_of_static(self, options: config.State, args: tuple, kwargs: dict) -> tuple[tuple | None, tuple]:
        """As `_plain_key`, and the dynamic arguments, for a call with static ones; all dynamic ones are positional."""
        nums, names = self.resolved.static_nums, self.resolved.static_names
        if not self.has_static or self.by_user:
            return None, ()
        static: list[Any] = []
        for name, x in kwargs.items():
            if name not in names:
                return None, ()
            static += (name, cache.key(x))
        dynamic = []
        for i, x in enumerate(args):
            if i in nums:
                static += (i, cache.key(x))
            else:
                dynamic.append(x)
        key = self._plain_key(options, dynamic)
        try:
            hash(named := (key, *static))
        except TypeError:
            return None, ()
        return (None if key is None else named), tuple(dynamic)

    def _plain_key(self, options: config.State, args: Sequence) -> tuple | None:
        """The key of the trace of a call whose arguments are tracers, arrays and Python scalars; None for others."""
        context = thread.context
        if thread.manual or context[1] or context[2] or self.options.compiler_options:
            return None
        key: list[Any] = [options.traced, thread.axes]
        for x in args:
            kind = type(x)
            if isinstance(x, Tracer):
                aval = x.aval
                if type(aval) is not ShapedArray:
                    return None
                key.append(aval)
            elif kind is ArrayImpl:
                key.append(x._sig.aval)
            elif kind is float or kind is bool or kind is int and x.bit_length() <= 31:
                key.append(kind)
            else:
                return None
        return tuple(key)

    def _parse_static(self, options: config.State, args: tuple, kwargs: dict) -> tuple[tuple, Sequence]:
        """The key and operands of a call with static arguments of any kind."""
        if self.static is not None:
            try:
                return parse_static(options, args, kwargs, self.static)
            except KeyError:
                pass
        leaves, treedef, static, _ = self.flatten(args, kwargs)
        operands, sigs = operands_of(leaves)
        return (options, treedef, static, *sigs), operands

    def _parse_refs(self, args: tuple, kwargs: dict) -> tuple[tuple, Sequence]:
        """No key for a call with references or hi values; raises the error being handled for any other."""
        call = self.flatten(args, kwargs)
        if not any(isinstance(x, Ref) or type(x) in hi_classes for x in call.leaves):
            self.traced(call)  # raises for what is not a value
            raise
        return _NO_KEY, ()

    def _first_call(self, key: tuple, operands: Sequence, args: tuple, kwargs: dict) -> Any:
        call = self.flatten(args, kwargs)
        if key is _NO_KEY:
            return self._call_traced(call)
        run = self.memory.programs.once(key, self._compile, operands, call)
        return self._call_traced(call) if run is None else run(operands)

    # The result is cached with the function, and must not refer to it.
    def _compile(self, operands: Sequence, call: Arguments) -> Callable[[Sequence], Any] | None:
        """A function of operands that runs calls with such arguments; None if each call must be traced anew."""
        count, call = self.memory.count, call._replace(leaves=operands)
        traced = self.traced(call)
        if count == self.memory.count:
            self._note(self._trace_key(tuple([x._sig.aval for x in operands]), call), call, traced.info, is_trace=False)
        if traced.captured:
            return None
        if traced.closed.effects or traced.closed.is_high:
            params, unflatten = self.params(traced, call), traced.out_tree.unflatten
            return lambda operands: unflatten(jit_p.bind_all(operands, params))
        options = self.program_options(traced, call)
        executable = executable_for(traced.closed, options, operands)
        run = executable.tree_caller(operands, traced.out_tree)
        return key_reuse.watched(run, traced.closed, "jit-compiled function")

    def flatten(self, args: tuple, kwargs: dict) -> Arguments:
        nums, names = self.resolved.static_nums, self.resolved.static_names
        if not nums and not (names and kwargs):
            return Arguments(*tree.flatten((args, kwargs)), (), (args, kwargs))
        at = _in_range(nums, len(args))
        static = [(i, self._static(args[i], i)) for i in at]
        static += [(k, self._static(kwargs[k], k)) for k in sorted(names) if k in kwargs]
        positional = tuple(a for i, a in enumerate(args) if i not in at)
        dynamic = positional, {k: v for k, v in kwargs.items() if k not in names}
        return Arguments(*tree.flatten(dynamic), tuple(static), dynamic)

    def _static(self, value: Any, where: int | str) -> Static:
        try:
            return Static(value)
        except TypeError as error:
            if self.purpose == "checkpoint":
                return Unhashable(value)
            raise ValueError(
                f"Non-hashable static arguments are not supported: {self.name} was called with the static "
                f"argument {where!r}, {value!r} of type {type(value)}, which has no hash ({error}). Use a "
                "tuple or a frozen value, or make the argument dynamic."
            ) from None

    def _call_traced(self, call: Arguments, key: tuple | None = None) -> Any:
        """Binds the call as a `jit` equation; its trace is stored under `key` for other calls of plain arguments."""
        if self.options.compiler_options and type(state.thread.trace) is JaxprTrace:
            raise ValueError(
                "`compiler_options` can only be passed to top-level `jax.jit`, whose program they are for. "
                f"{self.name} is called inside another, with compiler_options={dict(self.options.compiler_options)}"
            )
        check_aliases(self.fun, self.purpose, call.leaves, lambda: self.argument_names(call))
        traced = self.traced(call)
        if not traced.params:
            traced.params.update(self.params(traced, call))
        if key is not None and not traced.captured:
            self.memory.plain[key] = traced
        operands = [*traced.captured, *map(as_value, call.leaves)]
        return traced.out_tree.unflatten(jit_p.bind_all(operands, traced.params))

    def params(self, traced: TracedFunction, call: Arguments) -> dict:
        """The parameters of a call's equation."""
        donated = [False] * len(traced.captured) + self.donated(call)
        o = self.options
        if o.in_shardings is None and o.out_shardings is None:
            return call_params(traced.closed, self.name, donated, o.keep_unused, o.inline, o.compiler_options)
        ins, outs = self.shardings(traced, call)
        ins = (*(UNSPECIFIED,) * (len(traced.captured) if ins else 0), *ins)
        in_layouts, out_layouts = self.layouts(traced, call)
        in_layouts = (*(None,) * (len(traced.captured) if in_layouts else 0), *in_layouts)
        kept = o.keep_unused, o.inline, o.compiler_options
        return call_params(traced.closed, self.name, donated, *kept, ins, outs, in_layouts, out_layouts)

    def shardings(self, traced: TracedFunction, call: Arguments) -> tuple[tuple, tuple]:
        """The shardings of the leaves of the dynamic arguments and of the results; () if all are unspecified."""
        options = self.options
        args, kwargs = call.treedef.children()
        if options.in_shardings is not None and kwargs.num_leaves:
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        return (
            leaf_shardings(options.caller, "in_shardings", options.in_shardings, args),
            leaf_shardings(options.caller, "out_shardings", options.out_shardings, traced.out_tree),
        )

    def layouts(self, traced: TracedFunction, call: Arguments) -> tuple[tuple, tuple]:
        """The layouts of the leaves of the dynamic arguments and of the results; () if all are unspecified."""
        o = self.options
        return (
            leaf_layouts("in_shardings", o.in_shardings, call.treedef.children()[0]),
            leaf_layouts("out_shardings", o.out_shardings, traced.out_tree),
        )

    def program_options(self, traced: TracedFunction, call: Arguments) -> ProgramOptions:
        o = self.options
        device, is_pjit = o.device, o.caller == "pjit"
        if (device or o.backend) and (legacy_context_mesh() if is_pjit else context_mesh()) is not None:
            raise ValueError(
                "Mesh context manager should not be used with jit when backend or device is also specified as an "
                f"argument to jit: {self.name} was called under a mesh that is set"
            )
        if device is None and o.backend is not None:
            device = client.local_devices(backend=o.backend)[0]
        if device is not None and not isinstance(device, client.Device):
            raise AttributeError(f"jit: device must be a jax.Device, got {device!r}")
        requested = *self.shardings(traced, call), *self.layouts(traced, call)
        options = program_options(self.name, self.donated(call), o.keep_unused, o.compiler_options, *requested)
        return options._replace(device=device, is_pjit=is_pjit)

    # ---- tracing ------------------------------------------------------------------------------------

    def donated(self, call: Arguments) -> list[bool]:
        """Flags that mark the donated leaves of the dynamic arguments."""
        nums, names = self.resolved.donate_nums, self.resolved.donate_names
        if not nums and not names:
            return [False] * call.treedef.num_leaves
        args, kwargs = call.treedef.children()
        fixed = {i for i, _ in call.static if isinstance(i, int)}
        count = args.num_nodes and len(args.children()) + len(fixed)
        places = [i for i in range(count) if i not in fixed]
        flags = []
        for i, child in zip(places, args.children(), strict=True):
            flags += [i in nums] * child.num_leaves  # jax ignores negative ones
        for k, child in zip(kwargs.node_data()[1], kwargs.children(), strict=True):
            flags += [k in names] * child.num_leaves
        return flags

    def argument_names(self, call: Arguments) -> tuple[str, ...]:
        """A name for each leaf of the dynamic arguments."""
        return argument_names(self.signature, call.treedef, call.static, call.given)

    def traced(self, call: Arguments) -> TracedFunction:
        """The function's jaxpr for these arguments, traced at the first call."""
        avals = leaf_types(self.fun, call.leaves, argument_type, functools.partial(self.argument_names, call))
        return self.traced_for(avals, call)

    def traced_for(self, avals: tuple, call: Arguments) -> TracedFunction:
        """As `traced`, for arguments of these types."""
        key = self._trace_key(avals, call)
        traces = self.memory.traces
        traced = traces.get(key)
        if traced is not None and is_alive(traced):
            return traced
        traces.pop(key)
        if known := self._traced_elsewhere(key):
            traces[key] = known
            return known
        info = DebugInfo(self.purpose, source_of(self.fun), self.argument_names(call))
        self._note(key, call, info, is_trace=True)
        traced = self.memory.shared[key] = traces.once(key, self._trace, avals, call.treedef, call.static, info)
        return traced

    def _traced_elsewhere(self, key: tuple) -> TracedFunction | None:
        """The trace of this function under other options (shardings, donation, …), which do not change its jaxpr."""
        traced = self.memory.shared.get(key)
        return traced._replace(params={}) if traced and is_alive(traced) else None

    def traced_only(self, avals: tuple, call: Arguments) -> TracedFunction:
        """As `traced_for`, where nothing is compiled: without a note for explanations, under the thread's options."""
        key = self._trace_key(avals, call)
        traces = self.memory.traces
        traced = traces.get(key)
        if traced is None or not is_alive(traced):
            traced = self._traced_elsewhere(key)
            if traced is None:
                info = DebugInfo(self.purpose, source_of(self.fun), self.argument_names(call))
                traced = self.memory.shared[key] = self._trace(avals, call.treedef, call.static, info)
                self.memory.count += 1
            traces[key] = traced
        return traced

    def _trace_key(self, avals: tuple, call: Arguments) -> tuple:
        return (*state.trace_key(), avals, call.treedef, call.static)

    def _note(self, key: tuple, call: Arguments, info: DebugInfo, is_trace: bool) -> None:
        """Records the arguments of this trace, or of this program of a cached trace, for explanations."""
        self.memory.count += is_trace
        names = info.arg_names or ()
        signatures = [x._sig for x in call.leaves if type(x) is ArrayImpl]
        signatures = signatures if len(signatures) == len(names) else ()
        described = explain.describe(self.memory.number, (self.options, self.resolved), names, key, signatures)
        explain.note(self.fun, info.func_src_info, described, self.by_user, is_trace)

    def _trace(self, avals: tuple, treedef: Any, static: tuple, info: DebugInfo) -> TracedFunction:
        forbid_tracing(info.func_src_info)
        flat = Flat(self.fun, treedef, lambda dynamic: self.rebuild(dynamic, static))
        body = trace_flat(flat, avals, info, as_inputs_if_live, self.name)
        if key_reuse.is_on():
            key_reuse.signature(body.closed.jaxpr)  # raises for a key that is used twice
        is_single = tree.treedef_is_strict_leaf(body.out_tree)
        return TracedFunction(body.closed, body.captured, body.out_tree, info, {}, is_single)

    def rebuild(self, dynamic: tuple, static: tuple) -> tuple[list, dict]:
        """Arguments with the static ones back in their places."""
        args, kwargs = list(dynamic[0]), dynamic[1]
        if self.unwraps:
            args, kwargs = list(map(unwrapped, args)), {name: unwrapped(x) for name, x in kwargs.items()}
        for where, s in static:
            if isinstance(where, int):
                args.insert(where, s.value)
            else:
                kwargs = {**kwargs, where: s.value}
        return args, kwargs


@known_as("jaxlib._jax.PjitFunction")
class Jitted:
    """A function that an engine runs. Its attributes are those of the function that it wraps."""

    __slots__ = ("_engine", "__dict__", "__weakref__")

    def __init__(self, engine: Engine):
        self._engine, fun = engine, engine.fun
        self.__dict__.update(
            {name: x for name, x in getattr(fun, "__dict__", {}).items() if not hasattr(type(self), name)}
        )
        functools.update_wrapper(self, fun, updated=())
        self.__dict__.setdefault("__name__", engine.name)

    def __reduce__(self):
        return self.__dict__["__qualname__"]  # pickled by its name, as functions are

    def __copy__(self):
        twin = type(self)(self._engine)
        twin.__dict__.update(self.__dict__)
        return twin

    def __repr__(self):
        try:
            return f"<PjitFunction of {self._engine.fun!r}>"
        except Exception:  # of the user's `__repr__`
            return "<PjitFunction>"

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return types.MethodType(self, instance)

    # Two positional parameters, since a tuple of them would take as long as looking them up.
    def __call__(self, x=_ABSENT, y=_ABSENT, /, *more, **kwargs):
        try:
            ready, hot, program = thread.ready, self._engine.memory.hot, None
            if ready is hot.ready and ready[1] is _epoch[0]:
                if type(x) is not ArrayImpl or more or len(kwargs) > (y is _ABSENT):
                    program, raws = hot.find(_present(x, y, more), kwargs)
                elif y is _ABSENT and not kwargs:
                    program, raws = hot.get(x._sig), [x._raw]
                elif type(y) is ArrayImpl:
                    program, raws = hot.get((x._sig, y._sig)), [x._raw, y._raw]
                else:
                    program, raws = hot.find_second(x, y, kwargs)
            if program is None:
                engine = self._engine
                call = engine.call_by_key if thread.trace is None else engine.call_under_trace
                return call(_present(x, y, more), kwargs)
            try:
                return program(raws)
            except RuntimeError as error:
                raise_if_donated(error, tree.tree_leaves((_present(x, y, more), kwargs)))
                raise
        except Exception as error:
            source.hide_frames(error)
            raise


def is_of_library(fun: Any) -> bool:
    """Whether calls of a function may copy earlier ones; users expect that theirs are called each time they trace."""
    return isinstance(fun, Jitted) and not fun._engine.by_user


@cache.cache
def _in_range(nums: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The positions among `count` arguments, counted from the front and in order."""
    return tuple(sorted({i + count if i < 0 else i for i in nums if -count <= i < count}))


def jitted(
    name: str | None = None,
    *,
    static: Sequence[str] = (),
    inline: bool = False,
    keep_unused: bool = False,
    is_one_equation: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator for library functions that jax jits, which returns a `Jitted`: `static` names the static parameters.

    Inlined calls copy the equations of earlier ones; `is_one_equation` states that there is one for most operands.
    """

    def wrap(fun: Callable[P, R]) -> Any:
        signature = inspect.signature(fun)
        nums = tuple(
            i
            for i, p in enumerate(signature.parameters.values())
            if p.name in static and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        )
        options = JitOptions(keep_unused=keep_unused, inline=inline)
        engine = Engine(fun, options, Resolved(nums, tuple(static)), name, signature)
        engine.unwraps = True
        if inline:
            engine.replay = replayed_alone if is_one_equation else replayed
        return Jitted(engine)

    return wrap
