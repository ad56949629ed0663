"""The engine of jitted functions: arguments, traces, programs, each remembered."""

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, config, monitoring, source, tree
from minijax.base.thread import thread
from minijax.control.call import JitOptions, call_params, jit_p, specified
from minijax.control.explain import explain_miss
from minijax.control.laid_out import spread_over
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.refs import Ref, is_ref
from minijax.ir.shardings import UNSPECIFIED
from minijax.ir.trace import JaxprTrace, Tracer, constants_to_inputs, forbid_tracing, is_live, trace_to_jaxpr
from minijax.ir.types import is_value, typeof
from minijax.run import client, transfer, watch
from minijax.run.array import ArrayImpl, array_types
from minijax.run.host_calls import bind_host_call
from minijax.transforms.evaluate import Runner, SpreadRunner, compile_program, operand
from minijax.transforms.placement import ProgramOptions, choose_placement

_disable_jit = config.option("disable_jit")
_config_state = config.state
_epoch = config.epoch
# With their type, these tell a value from others.
KEYS_OF_THEMSELVES = frozenset((bool, int, str, type(None)))


class Static:
    """A static argument in a cache key: equal by type and value."""

    __slots__ = ("value", "key")

    def __init__(self, value: Any):
        hash(value)  # a key can be made of lists too
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


class Traced(NamedTuple):
    """A function's jaxpr for one kind of arguments."""

    closed: ClosedJaxpr
    captured: list  # values of the leading inputs: what the function captured, if any of it is traced
    out_tree: Any
    info: DebugInfo
    params: dict[str, Any]  # of the equation that a call makes; filled in by the first


class Memory:
    """What is remembered of one callable and one set of options: its traces and its programs.

    `calls` are programs too, by arguments that need no flattening: arrays, None and static values.
    """

    __slots__ = ("traces", "programs", "calls", "__weakref__")

    def __init__(self):
        self.calls = cache.BoundedDict(4096)
        self.traces = cache.BoundedDict(4096)
        self.programs = cache.BoundedDict(4096)

    def clear(self) -> None:
        for store in (self.calls, self.traces, self.programs):
            store.cache_clear()


@cache.weak_cache
def _shared_memory(fun: Callable, options: tuple) -> Memory:
    return Memory()


def _memory_of(fun: Callable, options: tuple) -> Memory:
    try:
        return _shared_memory(fun, options)
    except TypeError:
        return Memory()


class Resolved(NamedTuple):
    """Which arguments are static or donated, by position and by name."""

    static_nums: tuple[int, ...] = ()
    static_names: tuple[str, ...] = ()
    donate_nums: tuple[int, ...] = ()
    donate_names: tuple[str, ...] = ()


def signature_of(fun: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def function_name(fun: Callable) -> str:
    """The name that a function's programs and equations bear."""
    if isinstance(fun, functools.partial):
        return function_name(fun.func)
    return getattr(fun, "__name__", None) or "unnamed function"


def standing_for(inner: Callable, fun: Callable) -> Callable:
    """`inner`, which messages call by the name and the line of the user's `fun` that it calls."""
    inner.__signature__ = inspect.signature(inner)  # pyright: ignore[reportFunctionMemberAccess]
    return functools.update_wrapper(inner, fun, updated=())


def source_of(fun: Callable) -> str:
    """The function's name, file and line."""
    inner = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner) if callable(inner) else inner
    code = getattr(inner, "__code__", None)
    name = function_name(fun)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


class Jitted:
    """A function whose calls are traced once per kind of arguments, compiled, and run."""

    __slots__ = (
        *"fun name options resolved memory signature purpose".split(),
        *"has_static takes_trees takes_numbers recall __dict__ __weakref__".split(),
    )

    def __init__(
        self,
        fun: Callable,
        options: JitOptions,
        resolved: Resolved,
        name: str | None = None,
        signature: inspect.Signature | None = None,
        purpose: str = "jit",
    ):
        self.fun = fun
        self.purpose = purpose
        self.name = name or function_name(fun)
        self.options = options
        self.resolved = resolved
        self.signature = signature
        self.memory = _memory_of(fun, (options, resolved, self.name, purpose))
        self.has_static = bool(resolved.static_nums or resolved.static_names)
        self.takes_trees = False  # whether some call had arguments that must be flattened
        self.takes_numbers = False  # whether some call had host values where arrays are wanted
        self.recall = self.memory.calls.get
        functools.update_wrapper(self, fun, updated=())

    def __repr__(self):
        return f"<PjitFunction of {self.fun!r}>"

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return types.MethodType(self, instance)

    # ---- calling ------------------------------------------------------------------------------------

    def __call__(self, *args, **kwargs):
        try:
            options, since = thread.ready
            if since is not _epoch[0]:
                if thread.trace is not None:
                    return self._call_under_trace(args, kwargs)
                options = config.make_ready()
            # Only with options that do not disable jit are calls remembered.
            if not kwargs:
                if len(args) == 1 and type(args[0]) is ArrayImpl:
                    run = self.recall((options, args[0]._sig))
                    return run(args) if run is not None else self._call(args, kwargs, args)
                if len(args) == 2 and type(args[0]) is type(args[1]) is ArrayImpl:
                    run = self.recall((options, args[0]._sig, args[1]._sig))
                    return run(args) if run is not None else self._call(args, kwargs, args)
            if self.has_static:
                values = (*args, *kwargs.values()) if kwargs else args
                try:
                    run = None if self.takes_numbers else self.recall(_mixed_key(options, kwargs, values))
                except Exception:
                    run = None  # a value's own hash or comparison raises: `flatten` and `Static` complain
                return run(values) if run is not None else self._call(args, kwargs, values)
            values, run, count = args, None, len(args)
            if kwargs:
                values = (*args, *kwargs.values())
                try:
                    if not (self.takes_trees or self.takes_numbers):
                        run = self.recall((options, *kwargs, *[x._sig for x in values]))
                except AttributeError:
                    run = None  # a tree or a host value
            elif count == 1 and type(args[0]) is np.ndarray:
                run = self.recall((options, args[0].shape, args[0].dtype))
            elif count == 2 and type(args[0]) is ArrayImpl and type(args[1]) in _NUMBERS:
                try:
                    values = args[0], transfer.scalar_operand(args[1])
                    run = self.recall((options, values[0]._sig, values[1]._sig))
                except Exception:
                    run = None  # a number that its type cannot hold
            elif not (self.takes_trees or self.takes_numbers):
                try:
                    run = self.recall((options, *[x._sig for x in args]))
                except AttributeError:
                    run = None  # a tree or a host value
            return run(values) if run is not None else self._call(args, kwargs, values)
        except Exception as error:
            source.hide_frames(error)
            raise

    def _call_under_trace(self, args, kwargs):
        inlined = self.options.inline and type(thread.trace) is JaxprTrace
        if inlined:
            thread.trace.capture(args)
        if inlined or _disable_jit.value:
            return self.fun(*args, **kwargs)
        return self._call_traced(args, kwargs)

    def _call(self, args, kwargs, values):
        short_key = None
        if not self.takes_trees:
            try:
                if kwargs or self.has_static:
                    values = self._with_arrays(args, kwargs, values)
                    short_key = _mixed_key(_config_state(), kwargs, values)
                else:
                    values = [_TO_ARRAY[type(x)](x) for x in values]
                    short_key = (_config_state(), *[x._sig for x in values])
                run = self.recall(short_key)
            except KeyError:
                self.takes_trees = True
            except Exception:
                run = None  # None among the values, or what `flatten`, `traced` and `Static` complain of
            else:
                if run is not None:
                    self.takes_numbers = True
                    if len(args) == 1 and not kwargs and type(args[0]) is np.ndarray:
                        self._remember_numpy(args[0], values[0]._sig, short_key[0], run)
                    return run(values)
        try:
            leaves, treedef, static = self.flatten(args, kwargs)
        except ValueError:
            if _disable_jit.value:  # the function may take what jit does not
                return self.fun(*args, **kwargs)
            raise
        places = short_key and _places(len(args), kwargs, values, leaves, static)
        if places is not None:
            leaves = [values[i] for i in places]
        try:
            sigs = [x._sig for x in leaves]
        except AttributeError:
            sigs = None
        if sigs is None and any(map(is_ref, leaves)):
            return self._call_traced(args, kwargs)
        if sigs is None:
            leaves, given = [], leaves
            try:
                leaves += [x if type(x) in array_types else operand(x) for x in given]
            except TypeError:
                self.traced(given, treedef, static)  # which complains of what is no value
                raise
            sigs = [x._sig for x in leaves]
        key = (_config_state(), treedef, static, *sigs)
        run = self.memory.programs.get(key)
        if run is None:
            return config.run_as_of(key[0], self._first_call, key, args, kwargs, leaves, values, short_key, places)
        return run(leaves)

    def _remember_numpy(self, x, sig, options, run):
        """For calls with a NumPy array that lies in memory as it will on the device."""
        if x.dtype is sig.dtype and (call := bind_host_call(run, sig)):
            self.memory.calls[(options, x.shape, x.dtype)] = call

    def _first_call(self, key, args, kwargs, leaves, values, short_key, places):
        if _disable_jit.value:
            return self.fun(*args, **kwargs)
        options, treedef, static = key[:3]
        traced = self.traced(leaves, treedef, static)
        if traced.captured or traced.closed.effects:
            return self._call_traced(args, kwargs)

        def made():
            runner = self._program(traced, treedef, static, leaves)
            if places is not None and short_key[0] is options and not watch.is_checking():
                call = shortcut(runner, leaves, traced.out_tree, places)
                self.memory.calls[short_key] = call
            run = shortcut(runner, leaves, traced.out_tree, range(len(leaves)))
            return watch.explained(run, lambda leaves: self._call_plainly(treedef.unflatten(leaves), static))

        return self.memory.programs.once(key, made)(leaves)

    def _with_arrays(self, args, kwargs, values):
        """The values with arrays for host values that are not static. Raises KeyError for other things."""
        made = list(values)
        for i in _dynamic(self.resolved, len(args), *kwargs):
            x = made[i]
            if type(x) is not ArrayImpl:
                made[i] = _TO_ARRAY[type(x)](x)
        return made

    def flatten(self, args: tuple, kwargs: dict) -> tuple[list, Any, tuple]:
        """The leaves of the dynamic arguments, their tree, and the static arguments as a key."""
        nums, names = self.resolved.static_nums, self.resolved.static_names
        if not nums and not (names and kwargs):
            leaves, treedef = tree.flatten((args, kwargs))
            return leaves, treedef, ()
        at = _in_range(nums, len(args))
        static = [(i, self._static(args[i], i)) for i in at]
        static += [(k, self._static(kwargs[k], k)) for k in sorted(names) if k in kwargs]
        dynamic = tuple(a for i, a in enumerate(args) if i not in at)
        leaves, treedef = tree.flatten((dynamic, {k: v for k, v in kwargs.items() if k not in names}))
        return leaves, treedef, tuple(static)

    def _static(self, value: Any, where: int | str) -> Static:
        try:
            return Static(value)
        except TypeError as error:
            raise ValueError(
                f"Non-hashable static arguments are not supported: {self.name} was called with the static "
                f"argument {where!r}, {value!r} of type {type(value)}, which has no hash ({error}). Use a "
                "tuple or a frozen value, or make the argument dynamic."
            ) from None

    def _call_traced(self, args, kwargs):
        leaves, treedef, static = self.flatten(args, kwargs)
        check_aliases(self.fun, self.purpose, leaves, lambda: argument_names(self.signature, treedef, static))
        traced = self.traced(leaves, treedef, static)
        if not traced.params:
            traced.params.update(self.params(traced, treedef, static))
        return traced.out_tree.unflatten(jit_p.bind_all([*traced.captured, *leaves], traced.params))

    def params(self, traced: Traced, treedef: Any, static: tuple) -> dict:
        """The parameters of the equation that a call makes."""
        donated = [False] * len(traced.captured) + self.donated(treedef, static)
        o = self.options
        if o.in_shardings is None and o.out_shardings is None:
            return call_params(traced.closed, self.name, donated, o.keep_unused, o.inline, o.compiler_options)
        ins, outs = self.shardings(treedef, traced.out_tree)
        ins = (*(UNSPECIFIED,) * (len(traced.captured) if ins else 0), *ins)
        return call_params(traced.closed, self.name, donated, o.keep_unused, o.inline, o.compiler_options, ins, outs)

    def shardings(self, treedef: Any, out_tree: Any) -> tuple[tuple, tuple]:
        """How the leaves of the dynamic arguments and of the results are to lie; () where all is open."""
        given = self.options
        args, kwargs = treedef.children()
        if given.in_shardings is not None and kwargs.num_leaves:
            raise ValueError("pjit does not support kwargs when in_shardings is specified.")
        return (
            spread_over("in_shardings", given.in_shardings, args),
            spread_over("out_shardings", given.out_shardings, out_tree),
        )

    def program_options(self, treedef: Any, static: tuple, out_tree: Any) -> ProgramOptions:
        o = self.options
        device = o.device
        if device is None and o.backend is not None:
            device = client.local_devices(backend=o.backend)[0]
        donated = self.donated(treedef, static)
        ins, outs = self.shardings(treedef, out_tree)
        return ProgramOptions(
            self.name,
            tuple(donated) if any(donated) else (),
            o.keep_unused,
            device,
            o.compiler_options,
            specified(ins),
            specified(outs),
        )

    def _program(self, traced: Traced, treedef, static, leaves) -> Runner | SpreadRunner:
        options = self.program_options(treedef, static, traced.out_tree)
        placement = choose_placement([x._sig for x in leaves], options, traced.closed)
        return compile_program(traced.closed, options, placement)

    # ---- tracing ------------------------------------------------------------------------------------

    def donated(self, treedef: Any, static: tuple) -> list[bool]:
        """Which leaves of the dynamic arguments are donated."""
        nums, names = self.resolved.donate_nums, self.resolved.donate_names
        if not nums and not names:
            return [False] * treedef.num_leaves
        args, kwargs = treedef.children()
        fixed = {i for i, _ in static if isinstance(i, int)}
        count = args.num_nodes and len(args.children()) + len(fixed)
        places = [i for i in range(count) if i not in fixed]
        flags = []
        for i, child in zip(places, args.children(), strict=True):
            flags += [i in nums] * child.num_leaves  # jax ignores negative ones
        for k, child in zip(kwargs.node_data()[1], kwargs.children(), strict=True):
            flags += [k in names] * child.num_leaves
        return flags

    def traced(self, leaves: Sequence, treedef: Any, static: tuple) -> Traced:
        """The function's jaxpr for these arguments; traced at the first call."""
        names = functools.partial(argument_names, self.signature, treedef, static)
        avals = leaf_types(self.fun, leaves, typeof, names)
        return self.traced_for(avals, treedef, static)

    def traced_for(self, avals: tuple, treedef: Any, static: tuple) -> Traced:
        key = (avals, treedef, static, state.trace_key())
        found = self.memory.traces.get(key)
        if found is not None:
            if all(c._trace.alive for c in found.captured if isinstance(c, Tracer)):
                return found
            self.memory.traces.pop(key)
        if config.explain_cache_misses.value:
            known = self.memory.traces.names()
            names = functools.partial(argument_names, self.signature)
            explain_miss(self.fun, source_of(self.fun), key, known, names)
        return self.memory.traces.once(key, lambda: config.run_as_of(key[3][0], self._trace, avals, treedef, static))

    def _trace(self, avals, treedef, static) -> Traced:
        info = self.debug_info(treedef, static)
        forbid_tracing(info.func_src_info)
        outs: list[Any] = []

        def flat(*xs):
            args, kwargs = self.rebuild(treedef.unflatten(xs), static)
            leaves, out_tree = tree.flatten(self.fun(*args, **kwargs))
            outs[:] = [out_tree]
            check_results(self.name, leaves, out_tree)
            return leaves

        with monitoring.timed(monitoring.TRACING, self.name):
            jaxpr, consts = trace_to_jaxpr(flat, avals, info)
        captured = consts if any(map(is_live, consts)) else []
        closed = ClosedJaxpr(constants_to_inputs(jaxpr), []) if captured else ClosedJaxpr(jaxpr, consts)
        paths = result_paths(outs[0])
        closed.jaxpr.debug_info = closed.jaxpr.debug_info._replace(result_paths=paths)
        return Traced(closed, captured, outs[0], info, {})

    def _call_plainly(self, dynamic: tuple, static: tuple) -> Any:
        args, kwargs = self.rebuild(dynamic, static)
        return self.fun(*args, **kwargs)

    def rebuild(self, dynamic: tuple, static: tuple) -> tuple[list, dict]:
        """Arguments with the static ones back in their places."""
        args, kwargs = list(dynamic[0]), dynamic[1]
        for where, s in static:
            if isinstance(where, int):
                args.insert(where, s.value)
            else:
                kwargs = {**kwargs, where: s.value}
        return args, kwargs

    def debug_info(self, treedef: Any, static: tuple) -> DebugInfo:
        return DebugInfo(self.purpose, source_of(self.fun), argument_names(self.signature, treedef, static))


def check_aliases(fun: Callable, purpose: str, leaves: Sequence, names: Callable[[], Sequence[str]]) -> None:
    """Raises ValueError if a reference is among the arguments twice."""
    seen: dict[int, int] = {}
    for i, x in enumerate(leaves):
        if isinstance(x, Ref) and (first := seen.setdefault(id(getattr(x, "val", x)), i)) != i:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, but "
                f"when tracing {source_of(fun)} for {purpose} the mutable array reference of type "
                f"{x.aval} appeared at both {names()[first]} and {names()[i]}."
            )


def leaf_types(fun: Callable, leaves: Sequence, type_of: Callable, names: Callable[[], Sequence[str]]) -> tuple:
    """What `type_of` says of a function's arguments. Raises TypeError for one that is no value."""
    avals: list[Any] = []
    try:
        avals.extend(map(type_of, leaves))
    except TypeError:
        i = len(avals)
        raise TypeError(
            f"Error interpreting argument to {fun} as an abstract array: the value at path {names()[i]} is "
            f"of type {type(leaves[i])}, which is not a valid JAX type. This typically means that a "
            "jit-wrapped function was called with a non-array argument, and this argument was not marked as "
            "static using the static_argnums or static_argnames parameters of jax.jit."
        ) from None
    return tuple(avals)


def argument_names(signature: inspect.Signature | None, treedef: Any, static: tuple) -> tuple[str, ...]:
    """A name for each leaf: the parameter's, and the path inside the argument."""
    args, kwargs = treedef.children()
    fixed = {i for i, _ in static if isinstance(i, int)}
    count = len(args.children()) + len(fixed)
    named = _positional_names(signature, count)
    owners = [named[i] for i in range(count) if i not in fixed]
    children = [*args.children(), *kwargs.children()]
    owners += [str(k) for k in kwargs.node_data()[1]]
    return tuple([o + path for o, child in zip(owners, children, strict=True) for path in _leaf_paths(child)])


def _leaf_paths(treedef: Any) -> list[str]:
    """How each leaf is reached; its number where the user's class cannot be made of placeholders."""
    count = treedef.num_leaves
    if count == treedef.num_nodes:
        return [""]
    try:
        paths = tree.tree_leaves_with_path(treedef.unflatten(list(range(count))))
    except Exception:
        paths = []
    return [tree.keystr(path) for path, _ in paths] if len(paths) == count else [f"[{i}]" for i in range(count)]


def _positional_names(signature: inspect.Signature | None, count: int) -> list[str]:
    if signature is None:
        return [f"args[{i}]" for i in range(count)]
    names: list[str] = []
    for p in signature.parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{i}]" for i in range(max(0, count - len(names)))]
    return (names + [f"args[{i}]" for i in range(len(names), count)])[:count]


@cache.cache
def result_paths(out_tree: Any) -> tuple[str, ...]:
    """How the text of a program names each result."""
    return tuple(["result" + path for path in _leaf_paths(out_tree)])


def check_results(name: str, leaves: Sequence, out_tree: Any) -> None:
    """Raises TypeError for a result that is no value."""
    for i, x in enumerate(leaves):
        if isinstance(x, Ref):
            raise ValueError(
                f"function {name} traced for jit returned a mutable array reference of type {x.aval}, but "
                f"mutable array references cannot be returned: output component {result_paths(out_tree)[i]}."
            )
        if not is_value(x):
            raise TypeError(
                f"function {name} traced for jit returned a value of type {type(x)} at output component "
                f"{result_paths(out_tree)[i]}, which is not a valid JAX type"
            )


class _ToArray(dict):
    """By the type of an argument, what makes an array of it; KeyError for trees."""

    def __missing__(self, kind):
        if kind not in array_types and not issubclass(kind, np.generic):
            raise KeyError(kind)
        make = transfer.scalar_operand if issubclass(kind, np.number) else transfer.to_device
        found = self[kind] = _unchanged if kind in array_types else make
        return found


def _unchanged(x):
    return x


_NUMBERS = frozenset((bool, int, float, complex))
_TO_ARRAY = _ToArray(dict.fromkeys(_NUMBERS, transfer.scalar_operand))
_TO_ARRAY |= {ArrayImpl: _unchanged, type(None): _unchanged, np.ndarray: transfer.from_numpy}


def _mixed_key(options: config.State, kwargs: dict, values: Sequence) -> tuple:
    """What a call with keywords or static arguments is remembered by; True and 1 differ, in tuples too."""
    if len(values) == 1 and not kwargs:
        kind = type(values[0])
        if kind in KEYS_OF_THEMSELVES:
            return options, kind, values[0]
    key = (options, *kwargs)
    for x in values:
        kind = type(x)
        if kind in array_types:
            key += (x._sig,)
        else:
            key += (kind, x, *map(type, x)) if kind is tuple else (kind, x)
    return key


def _places(n: int, kwargs: dict, values: Sequence, leaves: Sequence, static: tuple) -> list[int] | None:
    """Where the leaves are among the values of a call with `n` positional arguments.

    None if they, None and static values that their keys tell apart are not all that there is.
    """
    by_name = [n + i for _, i in sorted(zip(kwargs, range(len(kwargs)), strict=True))]
    places = [i for i in (*range(n), *by_name) if isinstance(values[i], ArrayImpl)]
    if len(places) != len(leaves):
        return None
    others = [v for i, v in enumerate(values) if v is not None and i not in places]
    fixed = {id(s.value) for _, s in static if _is_key_of_itself(s)}
    return places if all(id(v) in fixed for v in others) else None


def _is_key_of_itself(static: Static) -> bool:
    """Whether a static value and its type tell it from others: not so 0.0 and -0.0, nor nested tuples."""
    value, key = static.value, static.key
    if type(value) is tuple:  # the types of its items are in the key of a call
        return all(type(item) in KEYS_OF_THEMSELVES for item in value)
    return key is value or type(key) is tuple and len(key) == 2 and key[0] is type(value) and key[1] is value


@cache.cache
def _in_range(nums: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Which of `count` arguments are meant, from the front and in order."""
    return tuple(sorted({i + count if i < 0 else i for i in nums if -count <= i < count}))


@cache.cache
def _dynamic(resolved: Resolved, count: int, *names: str) -> tuple[int, ...]:
    """Which values are not static, of `count` positional ones and others by name."""
    fixed = _in_range(resolved.static_nums, count)
    by_name = [count + i for i, name in enumerate(names) if name not in resolved.static_names]
    return (*[i for i in range(count) if i not in fixed], *by_name)


def shortcut(
    runner: Runner | SpreadRunner, arrays: Sequence, out_tree: Any, places: Sequence[int]
) -> Callable[[Sequence], Any]:
    """A function of values to the program's result; the arrays are those at `places`."""
    rebuild = out_tree.unflatten
    of_one = None if tree.treedef_is_strict_leaf(out_tree) else rebuild
    if runner.takes(arrays):
        return runner.shortcut(places, of_one)
    return lambda values: rebuild(runner([values[i] for i in places]))


def jitted(
    name: str | None = None, *, static: Sequence[str] = (), inline: bool = False, keep_unused: bool = False
) -> Callable[[Callable], Jitted]:
    """Decorator for library functions that jax jits: `static` names the static parameters."""

    def wrap(fun: Callable) -> Jitted:
        signature = signature_of(fun)
        nums = tuple(
            i
            for i, p in enumerate(signature.parameters.values())
            if p.name in static and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        )
        options = JitOptions(keep_unused=keep_unused, inline=inline)
        return Jitted(fun, options, Resolved(nums, tuple(static)), name, signature)

    return wrap
