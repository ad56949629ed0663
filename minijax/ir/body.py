"""Traces functions of pytrees to cached jaxprs with their captured values; names arguments and results."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base import cache, monitoring, paths, source, tree
from minijax.base.thread import thread
from minijax.ir import effects, state
from minijax.ir.hitypes import full_type
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from minijax.ir.refs import Ref
from minijax.ir.trace import JaxprTrace, Tracer, constants_to_inputs, is_live, referent, trace_to_jaxpr
from minijax.ir.types import AbstractValue, hi_classes, is_value


class Flat:
    """A function of pytrees as a function of their leaves; `out_tree` is the tree of its latest results.

    `arguments` maps the unflattened leaves to (args, kwargs). Without it they are all positional.
    """

    def __init__(
        self,
        fun: Callable,
        in_tree: Any,
        arguments: Callable[[Any], tuple] | None = None,
        is_leaf: Callable[[Any], bool] | None = None,
    ):
        self.fun, self.in_tree, self.arguments, self.is_leaf = fun, in_tree, arguments, is_leaf
        self.out_tree: Any = None
        self.out_paths: tuple[str, ...] | None = None  # with the keys that objects of users' classes give
        self.__name__ = function_name(fun)

    def __call__(self, *leaves):
        values = self.in_tree.unflatten(leaves)
        if self.arguments is None:
            return self.flattened(self.fun(*values))
        args, kwargs = self.arguments(values)
        return self.flattened(self.fun(*args, **kwargs))

    def flattened(self, result: Any) -> list:
        """The leaves of a result, whose tree is stored."""
        leaves, self.out_tree = tree.flatten(result, self.is_leaf)
        if paths.has_own_keys(self.out_tree):
            self.out_paths = _of_results(paths.leaf_paths(self.out_tree, result))
        return leaves


def as_inputs(jaxpr: Jaxpr, consts: list) -> tuple[ClosedJaxpr, list]:
    """The jaxpr with all captured values as leading inputs, and those values."""
    return ClosedJaxpr(constants_to_inputs(jaxpr)), consts


def as_consts(jaxpr: Jaxpr, consts: list) -> tuple[ClosedJaxpr, list]:
    """The jaxpr closed over all captured values, including tracers."""
    return ClosedJaxpr(jaxpr, consts), []


def as_inputs_if_live(jaxpr: Jaxpr, consts: list) -> tuple[ClosedJaxpr, list]:
    """As `as_inputs` if a tracer or a reference was captured, else as `as_consts`."""
    return (as_inputs if any(map(is_live, consts)) else as_consts)(jaxpr, consts)


# How captured values are bound: (jaxpr, their values) -> (closed jaxpr, values of its leading inputs).
Capture = Callable[[Jaxpr, list], tuple[ClosedJaxpr, list]]


class Body(NamedTuple):
    """A function of pytrees as a jaxpr; `captured` has the values of its leading inputs."""

    closed: ClosedJaxpr
    captured: list
    out_tree: Any

    @property
    def jaxpr(self) -> Jaxpr:
        return self.closed.jaxpr

    @property
    def in_avals(self) -> list[AbstractValue]:
        """The types of the function's own arguments."""
        return self.closed.in_avals[len(self.captured) :]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the leaves of the function's own arguments."""
        return (self.closed.debug_info.arg_names or ())[len(self.captured) :]


def is_alive(body: Any) -> bool:
    """Returns whether the traces of all captured tracers still run, and captured states have their former types."""
    if not body.captured:
        return True
    if not all(x._trace.alive for x in body.captured if isinstance(x, Tracer)):
        return False
    return not hi_classes or all(full_type(x) == a for x, a in zip(body.captured, body.closed.in_avals, strict=False))


@cache.weak_cache
def _bodies_of(fun: Callable) -> cache.Keyed:
    return cache.Keyed(256)


def trace_body(
    fun: Callable, avals: Sequence[AbstractValue], treedef: Any, purpose: str, capture: Capture = as_inputs
) -> Body:
    """Traces a function of positional arguments, with the tree `treedef`, as a body of control flow.

    The body is cached on the function while the values that it captured are alive. Raises TypeError for a result
    that is not a value, NotImplementedError for effects that control flow does not support.
    """
    try:
        bodies = _bodies_of(fun)
    except TypeError:
        bodies = cache.Keyed(1)
    key = (*state.trace_key(), tuple(avals), treedef, purpose, capture)
    body = bodies.get(key)
    if body is None or not is_alive(body):
        bodies.pop(key)
        body = bodies.once(key, _trace_body, fun, tuple(avals), treedef, purpose, capture)
    return body


def _trace_body(fun: Callable, avals: tuple, treedef: Any, purpose: str, capture: Capture) -> Body:
    body = trace_flat(Flat(fun, treedef), avals, debug_info(fun, purpose, treedef), capture)
    banned = effects.control_flow_allowed_effects.filter_not_in(body.closed.effects)
    if banned:
        raise NotImplementedError(f"Effects not supported in `{purpose}`: {banned}")
    return body


def trace_flat(
    flat: Flat,
    avals: Sequence[AbstractValue],
    info: DebugInfo,
    capture: Capture = as_inputs,
    name: str | None = None,
    trace: JaxprTrace | None = None,
) -> Body:
    """Traces a function of leaves to a body, by `trace` if given.

    If a `name` is given and no other trace is running, monitoring listeners receive the duration.

    Raises TypeError for a result that is not a value, ValueError for a reference.
    """

    def checked(*leaves):
        results = flat(*leaves)
        check_results(info, results, lambda: flat.out_paths or result_paths(flat.out_tree), leaves)
        return results

    # The duration of a nested trace is already part of the outer one's.
    with monitoring.timed(monitoring.TRACING, name) if name and thread.trace is None else contextlib.nullcontext():
        jaxpr, consts = trace_to_jaxpr(checked, avals, info, trace)
    jaxpr.debug_info = info._replace(result_paths=flat.out_paths or result_paths(flat.out_tree))
    return Body(*capture(jaxpr, consts), flat.out_tree)


def debug_info(fun: Callable, purpose: str, treedef: Any) -> DebugInfo:
    """The source of a function of positional arguments, and the names of their leaves."""
    both = tree.treedef_tuple((treedef, _NO_KEYWORDS))
    return DebugInfo(purpose, source_of(fun), argument_names(signature_of(fun), both, ()))


_NO_KEYWORDS = tree.tree_structure({})


# ---- captured values --------------------------------------------------------------------------------


def merge_captured_inputs(bodies: Sequence[Body]) -> tuple[list[ClosedJaxpr], list]:
    """The bodies' jaxprs with the union of their captured values as leading inputs, and these in order of first use."""
    values = {id(x): x for body in bodies for x in body.captured}
    place = {key: i for i, key in enumerate(values)}
    types = tuple(full_type(x) for x in values.values())
    closed = [with_leading(body.closed, tuple(place[id(x)] for x in body.captured), types) for body in bodies]
    return closed, list(values.values())


@cache.weak_cache
def with_leading(closed: ClosedJaxpr, places: tuple[int, ...], types: tuple) -> ClosedJaxpr:
    """The jaxpr with leading inputs of `types`, in which its own leading inputs have the positions `places`."""
    jaxpr, n = closed.jaxpr, len(places)
    leading = [Var(aval) for aval in types]
    for place, v in zip(places, jaxpr.invars[:n], strict=True):
        leading[place] = v
    info = jaxpr.debug_info
    if info.arg_names is not None:
        info = info._replace(arg_names=("",) * len(types) + info.arg_names[n:])
    return ClosedJaxpr(jaxpr.replace(invars=[*leading, *jaxpr.invars[n:]], debug_info=info), closed.consts)


# ---- names in messages and modules ------------------------------------------------------------------


def signature_of(fun: Callable) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def check_callable(fun: Any, name: str) -> None:
    """Raises TypeError, in the name of a transformation, if `fun` is not callable."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}. {name} takes the function itself, not its result.")


def function_name(fun: Callable) -> str:
    """The name of a function in equations and modules."""
    if isinstance(fun, functools.partial):
        return function_name(fun.func)
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) and name else "<unnamed function>"


def wrapping(fun: Callable, **options: Any) -> Callable[[Callable], Any]:
    """As `functools.wraps`, also for a callable object whose `__name__` or `__qualname__` is not a string."""

    def wrap(wrapper):
        try:
            return functools.update_wrapper(wrapper, fun, **options)
        except TypeError:
            named = [x for x in functools.WRAPPER_ASSIGNMENTS if isinstance(getattr(fun, x, 0), str)]
            return functools.update_wrapper(wrapper, fun, **{**options, "assigned": named})

    return wrap


def with_name_of(inner: Callable, fun: Callable) -> Callable:
    """`inner` with the name and source line of the user's `fun` that it calls, for messages."""
    inner.__signature__ = inspect.signature(inner)  # pyright: ignore[reportFunctionMemberAccess]
    return wrapping(fun, updated=())(inner)


def named_after(function: Callable, fun: Callable, doc: str | None = None) -> Callable:
    """`function` with the name and documentation of the `fun` that it wraps, which may be a partial."""
    wrapper = wrapping(fun)(function)
    if isinstance(fun, functools.partial):
        wrapper.__name__ = wrapper.__qualname__ = function_name(fun)
    wrapper.__doc__ = doc or wrapper.__doc__
    return wrapper


def source_of(fun: Callable) -> str:
    """The function's name, file and line."""
    inner = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner) if callable(inner) else inner
    code = getattr(inner, "__code__", None)
    name = function_name(fun)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def check_aliases(fun: Callable, purpose: str, leaves: Sequence, names: Callable[[], Sequence[str]]) -> None:
    """Raises ValueError if the same reference is passed twice."""
    seen: dict[int, int] = {}
    for i, x in enumerate(leaves):
        x = referent(x)
        if isinstance(x, Ref) and (first := seen.setdefault(id(getattr(x, "val", x)), i)) != i:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, but "
                f"when tracing {source_of(fun)} for {purpose} the mutable array reference of type "
                f"{x.aval} appeared at both {names()[first]} and {names()[i]}."
            )


def check_positional_aliases(fun: Callable, purpose: str, args: tuple, leaves: Sequence) -> None:
    """As `check_aliases`, for a function called with positional `args`, which have these leaves."""
    check_aliases(fun, purpose, leaves, lambda: argument_names(signature_of(fun), tree.flatten((args, {}))[1], ()))


def leaf_types(fun: Callable, leaves: Sequence, type_of: Callable, names: Callable[[], Sequence[str]]) -> tuple:
    """The types of a function's arguments, given by `type_of`. Raises TypeError for one that is not a value,
    OverflowError for an int that its type cannot hold.
    """
    avals: list[Any] = []
    try:
        avals.extend(map(type_of, leaves))
    except OverflowError as error:
        i = len(avals)
        raise OverflowError(
            "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is "
            f"{names()[i]}. {error}"
        ) from None
    except TypeError:
        i = len(avals)
        raise TypeError(
            f"Error interpreting argument to {fun} as an abstract array. The problematic value is of type "
            f"{type(leaves[i])} and was passed to the function at path {names()[i]}. It is not a valid JAX type. This "
            "typically means that a "
            "jit-wrapped function was called with a non-array argument, and this argument was not marked as "
            "static using the static_argnums or static_argnames parameters of jax.jit. Pass an array, a number or a "
            "pytree of them, or make it static."
        ) from None
    return tuple(avals)


def argument_names(
    signature: inspect.Signature | None, treedef: Any, static: tuple, given: tuple | None = None
) -> tuple[str, ...]:
    """A name for each leaf: the name of the parameter, then the path inside the argument.

    `given`, the dynamic (args, kwargs), tells the keys of users' classes.
    """
    args, kwargs = treedef.children()
    fixed = {i for i, _ in static if isinstance(i, int)}
    count = len(args.children()) + len(fixed)
    named = _positional_names(signature, count)
    owners = [named[i] for i in range(count) if i not in fixed]
    children = [*args.children(), *kwargs.children()]
    names = kwargs.node_data()[1]
    owners += map(functools.partial(_keyword_name, signature), names)
    if given is None:
        found = [paths.leaf_paths(child) for child in children]
    else:
        values = (*given[0], *[given[1][k] for k in names])
        found = [paths.leaf_paths(child, value) for child, value in zip(children, values, strict=True)]
    return tuple([o + "".join(path) for o, own in zip(owners, found, strict=True) for path in own])


def _keyword_name(signature: inspect.Signature | None, name: Any) -> str:
    parameters = {} if signature is None else signature.parameters
    rest = [p.name for p in parameters.values() if p.kind is p.VAR_KEYWORD and name not in parameters]
    return f"{rest[0]}[{name!r}]" if rest else str(name)


def argument_paths(in_tree: Any) -> list[str]:
    """The paths of the leaves of a call's arguments: `args[0]`, `kwargs['b']`, ..."""
    owners = zip(("args", "kwargs"), in_tree.children(), strict=True)
    return [owner + "".join(path) for owner, child in owners for path in paths.leaf_paths(child)]


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
    """The name of each result in a module."""
    return _of_results(paths.leaf_paths(out_tree))


def _of_results(found: Sequence[paths.Path]) -> tuple[str, ...]:
    return tuple(["result" + "".join(path) for path in found])


# In kernels these may return a reference that they got at the same place.
_LOOPS = "scan", "while_loop"


def check_results(info: DebugInfo, leaves: Sequence, out_paths: Callable[[], Sequence[str]], inputs: Sequence) -> None:
    """Raises TypeError for a result that is not a value, ValueError for a reference; `inputs` are the arguments."""
    for i, x in enumerate(leaves):
        if isinstance(x, Ref):
            if info.traced_for in _LOOPS and x.aval.memory_space is not None and any(x is y for y in inputs[i : i + 1]):
                continue
            path = out_paths()[i]
            where = "" if path == "result" else f" at output tree path {path}"
            raise ValueError(
                f"{_returned(info)} mutable array reference of type {x.aval}{where}, but mutable array "
                f"references cannot be returned.{_origin(x, inputs, info)}"
            )
        if not is_value(x):
            path = out_paths()[i].removeprefix("result")
            where = f" at output component {path}" if path else ""
            raise TypeError(
                f"{_returned(info)} value of type {type(x)}{where}, which is not a valid JAX type. Return arrays, "
                "numbers or pytrees of them."
            )


def _returned(info: DebugInfo) -> str:
    return f"function {info.func_src_info} traced for {info.traced_for} returned a"


def _origin(ref: Any, inputs: Sequence, info: DebugInfo) -> str:
    """A sentence that tells whether a returned reference was an argument, or where it was created."""
    trace = thread.trace
    if not isinstance(trace, JaxprTrace):
        return ""
    var = trace.atom(ref)
    for name, x in zip(info.arg_names or (), inputs, strict=False):
        if trace.atom(x) is var:
            return f"\n\nThe returned mutable array was passed in as the argument {name}."
    lines = [source.summary(eqn.traceback, columns=True) for eqn in trace.eqns if var in eqn.outvars]
    return f"\n\nThe returned mutable array was created on line {lines[0]}." if lines else ""
