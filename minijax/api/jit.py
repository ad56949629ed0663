"""`jit`, and tracing functions without running them: `make_jaxpr`, `eval_shape`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Never, ParamSpec, TypeVar, overload

from minijax.api.shapes import ShapeDtypeStruct, abstract, described
from minijax.api.stages import PjitFunction
from minijax.base import errors, source, tree
from minijax.base.mask import Mask
from minijax.dispatch.jit import JitOptions
from minijax.dispatch.jit_shardings import shardings_of
from minijax.dispatch.jitted import Engine, Resolved
from minijax.ir import state
from minijax.ir.body import (
    Flat,
    argument_names,
    as_consts,
    check_callable,
    function_name,
    leaf_types,
    named_after,
    signature_of,
    source_of,
    trace_flat,
    wrapping,
)
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.run.clients.client import Device

P = ParamSpec("P")
R = TypeVar("R")


# No call matches the first overload. mypy uses its result for `partial(jit, ...)`, and Any allows every use of that.
@overload
def jit(fun: Callable[..., Any], /, *, in_partial: Never, **options: Any) -> Any: ...
@overload
def jit(
    fun: Callable[P, R], /, *, in_shardings: Any = ..., out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ..., static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ..., donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ..., device: Any = ..., backend: str | None = ..., inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> PjitFunction[P, R]: ...  # fmt: skip
@overload
def jit(
    fun: None = None, /, *, in_shardings: Any = ..., out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ..., static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ..., donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ..., device: Any = ..., backend: str | None = ..., inline: bool = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Callable[[Callable[P, R]], PjitFunction[P, R]]: ...  # fmt: skip
@source.boundary
def jit(
    fun: Callable | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Creates a compiled version of a function: it is traced, and XLA compiles and runs what was traced.

    A call looks at the abstract values of its arguments: shapes, dtypes, weak types, shardings and trees. The first
    call with a combination traces `fun` with tracers in place of arrays, and compiles the program. Later calls with
    the same combination run the program, and no Python code of `fun`. Hence `fun` should be pure: `print` and changes
    of global state happen while it is traced only, and global values that it read are constants of the program.
    Python's `if` and `while` cannot depend on traced values; use `jax.lax.cond` and the like, or static arguments.

    Args:
        fun: The function to compile, of arrays, numbers, and pytrees of these. If it is omitted, the result is a
            decorator with the options given.
        in_shardings: A sharding, or a pytree prefix of shardings for the positional arguments. None: that of each
            argument. Arguments placed by the user otherwise raise ValueError.
        out_shardings: A sharding, or a pytree prefix of shardings for the results. None: the compiler decides.
        static_argnums: Numbers of positional arguments that are part of the program. They must be hashable, and each
            new value is traced again. By default, those of `static_argnames`.
        static_argnames: Names of arguments that are static, as text or as several.
        donate_argnums: Numbers of positional arguments whose memory may be used for the results. A donated array
            is deleted by the call. By default, those of `donate_argnames`.
        donate_argnames: Names of arguments that are donated.
        keep_unused: If true, arguments that `fun` does not use remain arguments of the compiled program.
        device, backend: Deprecated; place the arguments by `jax.device_put`.
        inline: If true, calls inside another traced function are inlined into its jaxpr.
        compiler_options: A dict of XLA's options for this function.

    Returns:
        A function of the same arguments. Its methods `trace`, `lower` and `eval_shape` stop at earlier stages, and
        `clear_cache` forgets what was compiled.

    Raises:
        TypeError, ValueError: If `fun` is not callable, or does not have an argument that is named.

    See also: `jax.make_jaxpr`, `jax.eval_shape`, `jax.disable_jit`.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     print("traced with", x.shape)
        ...     return 2 * x
        >>> f(jnp.ones(2))
        traced with (2,)
        Array([2., 2.], dtype=float32)
        >>> f(jnp.zeros(2))
        Array([0., 0.], dtype=float32)

        The size below is part of the program:

        >>> zeros = jax.jit(lambda n: jnp.zeros(n), static_argnums=0)
        >>> zeros(3)
        Array([0., 0., 0.], dtype=float32)
    """
    options = {name: value for name, value in locals().items() if name != "fun"}
    shardings = shardings_of("in_shardings", in_shardings), shardings_of("out_shardings", out_shardings)
    if device is not None or backend is not None:
        _check_device_arguments(device, backend, shardings)
    if fun is None:
        return functools.partial(jit, **options)
    check_callable(fun, "jax.jit")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}: wrap the function inside it")
    signature = signature_of(fun)
    resolved = resolve(fun, signature, static_argnums, static_argnames, donate_argnums, donate_argnames)
    compiler = tuple(sorted(compiler_options.items())) if compiler_options else ()
    chosen = JitOptions(keep_unused, inline, device, backend, compiler, *shardings)
    return PjitFunction(Engine(fun, chosen, resolved, None, signature, by_user=True))


def _check_device_arguments(device: Any, backend: str | None, shardings: Sequence) -> None:
    errors.warn(
        "backend and device argument on jit is deprecated. Put the arguments on the device with `jax.device_put`.",
        DeprecationWarning,
    )
    if device is not None and backend is not None:
        raise ValueError(f"can't specify both a device and a backend for jit, got {device=} and {backend=}.")
    for name, s in zip(("in_shardings", "out_shardings"), shardings, strict=True):
        if s is not None:
            raise ValueError(f"If backend or device is specified on jit, then {name} should not be specified.")


def ints(name: str, value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    is_one = hasattr(value, "__index__") and not getattr(value, "shape", ())
    try:
        return tuple(map(operator.index, (value,) if is_one else value))
    except TypeError:
        names = name.replace("nums", "names")
        raise TypeError(
            f"Value of {name} must be an int or a sequence of ints, got {value!r}. Names go to {names}."
        ) from None


def strings(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    strings = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(v, str) for v in strings):
        raise TypeError(f"Value of {name} must be a string or a sequence of strings, got {value!r}")
    return strings


def resolve(
    fun: Callable, signature: inspect.Signature | None, static_argnums, static_argnames, donate_argnums, donate_argnames
) -> Resolved:
    """Resolves static and donated arguments to positions and names; each is inferred from the other if it is
    missing.
    """
    static = infer_nums_and_names(
        signature, ints("static_argnums", static_argnums), strings("static_argnames", static_argnames)
    )
    donate = infer_nums_and_names(
        signature, ints("donate_argnums", donate_argnums), strings("donate_argnames", donate_argnames)
    )
    if signature is None and donate_argnames is not None:
        raise ValueError(
            f"Getting the signature of function {fun} failed. Pass donate_argnums instead of donate_argnames."
        )
    for what, nums, names in (("static", *static), ("donate", *donate)):
        _check_arguments(fun, signature, what, nums, names)
    both = (set(static[0]) & set(donate[0])) | (set(static[1]) & set(donate[1]))
    if both:
        kind = "nums" if all(isinstance(x, int) for x in both) else "names"
        raise ValueError(
            f"static_arg{kind} and donate_arg{kind} cannot intersect: {function_name(fun)} has {both} in both. "
            "Do not donate static arguments, which are no arrays."
        )
    return Resolved(*static, *donate)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def infer_nums_and_names(signature, nums, names) -> tuple[tuple[int, ...], tuple[str, ...]]:
    if signature is None or (nums is None) == (names is None):
        return nums or (), names or ()
    parameters = list(signature.parameters.values())
    if nums is None:
        return tuple(i for i, p in enumerate(parameters) if p.name in names and p.kind in _POSITIONAL), names
    return nums, tuple(p.name for i, p in enumerate(parameters) if i in nums and p.kind in _KEYWORD)


def _check_arguments(fun, signature, what: str, nums: tuple, names: tuple) -> None:
    if signature is None:
        return
    parameters = signature.parameters.values()
    count = len([p for p in parameters if p.kind in _POSITIONAL])
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        bad = [n for n in nums if not -count <= n < count]
        if bad:
            raise ValueError(
                f"jitted function has {what}_argnums={nums} but only accepts {count} positional arguments: "
                f"{function_name(fun)}{signature}. Positions count from 0; others have {what}_argnames."
            )
    nameless = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    if bad := nameless.intersection(names):
        raise ValueError(
            f"jitted function has invalid argnames {bad} in {what}_argnames. These are positional-only, of "
            f"{function_name(fun)}{signature}"
        )
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        known = {p.name for p in parameters if p.kind in _KEYWORD}
        bad = [n for n in names if n not in known]
        if bad:
            raise ValueError(
                f"jitted function has invalid argnames {set(bad)} in {what}_argnames. Function does not take "
                f"these args. Valid names: {known or 'none'}, of {function_name(fun)}{signature}"
            )


@source.boundary
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence | None = None,
    return_shape: bool = False,
) -> Callable[P, Any]:
    """Creates a function that traces a function and returns its jaxpr, without compiling or running anything.

    The jaxpr is the program that transformations and XLA see: printing it shows which operations were traced, and the
    types of all values.

    Args:
        fun: The function to trace.
        static_argnums: Numbers of the positional arguments that are passed to `fun` as they are, not traced.
        axis_env: Pairs (name, size) of named axes over which collectives of `fun` work.
        return_shape: If true, the trees, shapes and dtypes of the results are returned, too.

    Returns:
        A function of the same arguments as `fun`. It returns a closed jaxpr, or with `return_shape` a pair
        (closed jaxpr, results as `jax.ShapeDtypeStruct`s). Arguments may be arrays or `jax.ShapeDtypeStruct`s.

    Example:
        >>> jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
        { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    if not callable(fun):
        raise TypeError(f"make_jaxpr: the first argument must be callable, got {fun}")
    signature = signature_of(fun)
    resolved = Resolved() if static_argnums == () else resolve(fun, signature, static_argnums, None, None, None)
    engine = Engine(fun, JitOptions(), resolved, None, signature)

    @source.boundary
    def jaxpr_of(*args, **kwargs):
        with _axes(axis_env):
            closed, out_tree = _traced_once(engine, args, kwargs)
        if not return_shape:
            return closed
        shapes = [described(a) for a in closed.out_avals]
        return closed, tree.tree_unflatten(out_tree, shapes)

    named = named_after(jaxpr_of, fun)
    named.__name__, named.__qualname__ = f"make_jaxpr({named.__name__})", f"make_jaxpr({named.__qualname__})"
    named.__module__ = "jax"
    return named


def _traced_once(engine: Engine, args: tuple, kwargs: dict) -> tuple[ClosedJaxpr, Any]:
    """The closed jaxpr, and the tree of the result, of a function that is traced once for arguments of these types."""
    call = engine.flatten(args, kwargs)
    avals = leaf_types(engine.fun, call.leaves, abstract, functools.partial(engine.argument_names, call))
    traced = engine.traced_only(avals, call)
    closed, count = traced.closed, len(traced.captured)
    if count:
        jaxpr = closed.jaxpr
        info = jaxpr.debug_info._replace(arg_names=(jaxpr.debug_info.arg_names or ())[count:])
        own = dict(constvars=jaxpr.invars[:count], invars=jaxpr.invars[count:], debug_info=info)
        closed = ClosedJaxpr(jaxpr.replace(**own), traced.captured)
    return closed, traced.out_tree


def _axes(axis_env: Sequence | None) -> Any:
    stack = contextlib.ExitStack()
    for name, size in axis_env or ():
        stack.enter_context(state.named_axis(name, size))
    return stack


def trace_function(
    fun: Callable, args: tuple, kwargs: dict, static: Sequence[int], purpose: str
) -> tuple[ClosedJaxpr, Any]:
    """Traces a function of pytrees: (closed jaxpr, tree of the result)."""
    dynamic, marks, arguments = args, (), lambda values: values
    if static:
        places = {i + len(args) if i < 0 else i for i in static}
        are_static = Mask([i in places for i in range(len(args))])
        dynamic, fixed = map(tuple, are_static.partition(args))
        marks = tuple((i, None) for i in are_static.marked(range(len(args))))
        arguments = lambda values: (are_static.merge(values[0], fixed), values[1])  # noqa: E731
    leaves, treedef = tree.flatten((dynamic, kwargs))
    info = DebugInfo(purpose, source_of(fun), argument_names(signature_of(fun), treedef, marks, (dynamic, kwargs)))
    avals = leaf_types(fun, leaves, abstract, lambda: info.arg_names)
    body = trace_flat(Flat(fun, treedef, arguments), avals, info, as_consts, function_name(fun))
    return body.closed, body.out_tree


@source.boundary
def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Computes the shapes and dtypes of a function's results, without any of its computations.

    `fun` is traced with abstract values, hence this is fast and needs no memory for arrays. Use it to initialize or
    restore large parameters.

    Args:
        fun: The function to trace. Values that it should not trace can be bound by `functools.partial`.
        *args, **kwargs: Its arguments, as arrays, numbers, `jax.ShapeDtypeStruct`s, or pytrees of these.

    Returns:
        The results of `fun`, with each array replaced by a `jax.ShapeDtypeStruct`.

    Example:
        >>> x = jax.ShapeDtypeStruct((2000, 3), jnp.float32)
        >>> jax.eval_shape(lambda x: x @ x.T, x)
        ShapeDtypeStruct(shape=(2000, 2000), dtype=float32)
    """
    if type(fun) is PjitFunction:
        return fun.eval_shape(*args, **kwargs)
    engine, structs = Engine(fun, JitOptions(), Resolved(), None, signature_of(fun)), []

    @wrapping(fun)
    def without_structs(*args, **kwargs):
        leaves, treedef = tree.flatten(fun(*args, **kwargs))
        structs.extend(x for x in leaves if isinstance(x, ShapeDtypeStruct))
        return treedef.unflatten([_Described(x) if isinstance(x, ShapeDtypeStruct) else x for x in leaves])

    engine.fun = without_structs
    closed, out_tree = _traced_once(engine, args, kwargs)
    if structs:
        engine.memory.clear()  # other functions that trace `fun` refuse such results
    return out_tree.unflatten([described(a) for a in closed.out_avals])


@tree.register_pytree_node_class
class _Described:
    """A result that is a `ShapeDtypeStruct` already, as a part of the result's tree."""

    def __init__(self, struct: ShapeDtypeStruct):
        self.struct = struct

    def tree_flatten(self) -> tuple:
        return (), self.struct

    @staticmethod
    def tree_unflatten(struct: ShapeDtypeStruct, _: Any) -> ShapeDtypeStruct:
        return struct
