"""Callbacks on the host: of pure functions, of functions with side effects, and of functions of arrays' memory."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, source, thread, tree
from minijax.base.dtypes import is_extended
from minijax.dispatch.operands import operand
from minijax.dispatch.operations import evaluate
from minijax.higher.scan import scan
from minijax.hlo.spell import physical
from minijax.ir.effects import BufferCallbackEffect, IOEffect, OrderedIOEffect
from minijax.ir.primitive import Axis, Primitive
from minijax.ir.result_types import no_reduction_state
from minijax.ir.types import ShapedArray, token_type, typeof
from minijax.partition.shardings import Sharding, SingleDeviceSharding
from minijax.primitives.moving import axis_to_front, expand_dims
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl, put_host, signature, wrapped
from minijax.run.clients import client
from minijax.run.programs import host_calls, tokens
from minijax.transforms.batch import with_axis

_log = logging.getLogger("jax._src.callback")

_METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None]


def check_method(vmap_method: str | None) -> None:
    """Raises ValueError for an unknown `vmap_method`."""
    if vmap_method not in _METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {_METHODS}, but got: {vmap_method}")


class Foreign(Primitive):
    """Calls a function outside of the program, which returns results of the types `result_avals`."""

    multiple_results = True

    def declared_types(self, avals: Sequence, params: dict) -> tuple[list, frozenset]:
        """The result types, whose varying axes and shardings users specify, and the effects."""
        return list(params["result_avals"]), self.effects(*avals, **params)

    def batch(self, axis, operands, dims, **params):
        return self.by_method(axis, operands, dims, params)

    def by_rows(self, axis: Axis, operands: Sequence, dims: Sequence, params: dict, unroll: int = 1) -> tuple:
        """Calls the function for each row, one after the other."""
        rows = [axis_to_front(x, d, axis) for x, d in zip(operands, dims, strict=True) if d is not None]

        def row(_, xs):
            xs = iter(xs)
            values = [x if d is None else next(xs) for x, d in zip(operands, dims, strict=True)]
            return (), tuple(self.bind(*values, **params))

        _, results = scan(row, (), tuple(rows), length=axis.size, unroll=unroll)
        return list(results), [0] * len(results)

    def by_method(self, axis: Axis, operands: Sequence, dims: Sequence, params: dict) -> tuple:
        """Batches the call as `vmap_method` specifies. Raises NotImplementedError if it is None."""
        method = params["vmap_method"]
        if method not in _METHODS[:-1]:
            raise NotImplementedError(
                f"vmap is only supported for the {self.name} primitive when vmap_method is one of 'sequential', "
                "'sequential_unrolled', 'expand_dims', 'broadcast_all', or 'legacy_vectorized'. "
                f"Got vmap_method={method!r}."
            )
        if method.startswith("sequential"):
            return self.by_rows(axis, operands, dims, params, axis.size if method != "sequential" else 1)
        mapped, has_axis = [], []
        for x, d in zip(operands, dims, strict=True):
            if d is not None or method == "broadcast_all":
                x = axis_to_front(x, d, axis)
            elif method == "expand_dims":
                x = expand_dims(x, (0,))
            mapped.append(x)
            has_axis.append(d is not None or method != "legacy_vectorized")
        avals = tuple(with_axis(a, 0, axis) for a in params["result_avals"])
        params = {**params, **self.mapped_params(params, has_axis), "result_avals": avals}
        return self.bind(*mapped, **params), [0] * len(avals)

    def mapped_params(self, params: dict, has_axis: Sequence[bool]) -> dict:
        """The parameters that change if the results and the marked operands get a leading axis."""
        return {}


def dtype_of(x: Any) -> Any:
    """The dtype of an object like an array, e.g. a `ShapeDtypeStruct`."""
    return x.dtype if is_extended(x.dtype) else np.dtype(x.dtype)


def aliases_of(given: Mapping | None) -> dict[int, int]:
    """The numbers of results by those of the operands whose memory they share. Raises ValueError if not numbers."""
    return {int(i): int(o) for i, o in (given or {}).items()}


def check_aliases(aliases: Mapping[int, int], ins: Sequence, outs: Sequence) -> None:
    """Raises ValueError for an alias of values that do not exist or have different types."""
    for i, o in aliases.items():
        for what, k, count in (("input", i, len(ins)), ("output", o, len(outs))):
            if not 0 <= k < count:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' with {what} index {k} outside the range "
                    f"[0, {count})."
                )
        if ins[i].shape != outs[o].shape or ins[i].dtype != outs[o].dtype:
            raise ValueError(
                f"input_output_aliases contains the mapping '{i}:{o}' referring to an input with abstract value "
                f"{ins[i].str_short()} and an output with a different abstract value {outs[o].str_short()}."
            )


@dataclasses.dataclass(frozen=True)
class _FlatCallback:
    """A user's function of trees as a function of leaves."""

    callback_func: Callable
    in_tree: Any

    def __call__(self, *leaves: Any) -> list:
        args, kwargs = self.in_tree.unflatten(leaves)
        return tree.tree_leaves(self.callback_func(*args, **kwargs))


def on_host(x: np.ndarray) -> ArrayImpl:
    """Converts a program's array to the array on a CPU device that users' functions take."""
    sig = signature(ShapedArray(x.shape, x.dtype), client.single_device_sharding(client.cpu_device()), True)
    return wrapped(put_host(x, sig), sig)


class HostFunction(Foreign):
    """Calls a function on the host. Its parameters specify the function and whether the call is ordered."""

    ordered_effect: Any  # of calls that are ordered
    unordered_effect: Any = None
    answers = False  # whether TPUs wait for a function without results
    caches_types = False  # a cache would keep the function alive

    def is_ordered(self, params: dict) -> bool:
        return params.get("ordered", False)

    def function(self, params: dict) -> Callable[..., list]:
        """The function of arrays, as XLA passes them, that returns a list of values."""
        raise NotImplementedError

    def effects(self, *avals, **params):
        effect = self.ordered_effect if self.is_ordered(params) else self.unordered_effect
        return frozenset() if effect is None else frozenset({effect})

    def infer(self, *avals, result_avals=(), **params):
        return list(result_avals)

    def reduction_state(self, avals, params):
        if any(a.reduction_state[0] for a in avals):
            no_reduction_state(self, avals)
        return frozenset(), frozenset()

    def lower(self, e, ins, outs, *operands, **params):
        ins, outs, function = list(map(physical, ins)), list(map(physical, outs)), self.function(params)
        backend = client.lowering_platform(e.devices[0]) if e.devices else e.platform
        if backend != e.platform:
            raise ValueError(
                f"{self.name}: the platform for the specified backend {backend} is different from the lowering "
                f"platform {e.platform}; the function can be called in this process only."
            )
        if e.manual is not None and len(e.manual[1]) < len(e.manual[0].axis_names):
            raise NotImplementedError(
                f"{self.name}: callbacks are only supported in spmd computations when all mesh axes are partitioned "
                "manually (no partial automatic sharding)."
            )
        ordered = self.is_ordered(params)
        call = host_calls.HostCall(function, ins, outs, ordered)
        passed = [(x, a) for x, a in zip(operands, ins, strict=True) if a.size]
        tokens_in = [(e.tokens[self.ordered_effect], token_type)] if ordered else []
        names, avals = zip(*tokens_in, *passed, strict=True) if tokens_in or passed else ((), ())
        sharding = params.get("sharding")
        results = e.host_call(
            call,
            names,
            avals,
            [*(a for _, a in tokens_in), *(a for a in outs if a.size)],
            has_side_effect=bool(self.effects(**params)),
            partitioned=params.get("partitioned", False),
            device=None if sharding is None else e.number_of(sharding._device_assignment[0]),
            answers=self.answers,
        )
        if ordered:
            e.tokens[self.ordered_effect], *results = results
        rest = iter(results)
        return [next(rest) if a.size else e.zeros(a) for a in outs]


class Callback(HostFunction):
    """Calls a user's function of arrays, which returns arrays of the types `result_avals`."""

    def function(self, params):
        callback = params["callback"]

        def call(*arrays):
            with host_calls.logged_failure(_log, self.name):
                return callback(*map(on_host, arrays))

        return call

    def at_once(self, *operands, **params):
        operands = [operand(getattr(x, "_base_array", x)) for x in operands]
        if any(x._sig.device is None for x in operands):
            return evaluate(self, operands, params, compiled=True)
        if self.is_ordered(params):
            tokens.wait_for(self.ordered_effect)
        values = [on_host(x._value) for x in operands]
        avals = params["result_avals"]
        try:
            with thread.outside_traces(), host_calls.logged_failure(_log, self.name):
                results = host_calls.checked_results(params["callback"], values, avals)
        except Exception as error:
            raise host_calls.as_runtime_error(error) from None
        committed = next((x._sig.device for x in operands if x._sig.committed), None)
        return [transfer.to_device(x, committed) for x in results]

    def jvp(self, primals, tangents, **params):
        raise ValueError(f"{self.plural} do not support JVP.{self.advice}")

    def transpose(self, cts, *operands, **params):
        raise ValueError(f"{self.plural} do not support transpose.{self.advice}")

    plural = advice = ""


class PureCallback(Callback):
    """Calls a function without side effects, which may be called several times or not at all."""

    name = "pure_callback"
    plural = "Pure callbacks"
    advice = " Please use `jax.custom_jvp` to use callbacks while taking gradients."


class IOCallback(Callback):
    """Calls a function exactly once each time that the program executes the call."""

    name = "io_callback"
    plural = "IO callbacks"
    ordered_effect, unordered_effect = OrderedIOEffect(), IOEffect()

    def batch(self, axis, operands, dims, *, ordered, **params):
        if ordered:
            raise ValueError("Cannot `vmap` ordered IO callback.")
        return self.by_rows(axis, operands, dims, dict(params, ordered=False))


pure_callback_p, io_callback_p = PureCallback(), IOCallback()

# ---- the public functions ---------------------------------------------------------------------------


@source.boundary
def pure_callback(
    callback: Callable,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Sharding | None = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a Python function on the host, as an operation of a traced program.

    The function gets `jax.Array`s and returns NumPy arrays or other array-likes. It must be pure: JAX may call it
    several times, not at all, or at another time. It is slow compared to compiled code. There are no derivatives: give
    the function around it a `jax.custom_jvp` or `jax.custom_vjp` rule.

    Args:
        callback: The function. It must not call JAX functions that wait for the program that calls it.
        result_shape_dtypes: A pytree of objects with `shape` and `dtype`, such as `jax.ShapeDtypeStruct`s, that
            describes the results.
        *args, **kwargs: The arguments of the function: arrays, numbers, and pytrees of these.
        sharding: On several devices, a `SingleDeviceSharding` whose device makes the call.
        vmap_method: How the call is batched by `jax.vmap`. None: not at all. `"sequential"`: one call for each
            slice. `"expand_dims"`: one call; arguments get a leading axis, of size 1 where they are not mapped.
            `"broadcast_all"`: one call; all arguments get the whole leading axis.

    Returns:
        Arrays with the tree, shapes and dtypes of `result_shape_dtypes`.

    Raises:
        ValueError: If `vmap_method` is unknown.
        JaxRuntimeError: When the result is waited for, if the function raises or returns something else.

    See also: `jax.experimental.io_callback`, for side effects; `jax.debug.callback`, without results.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     return 1 + jax.pure_callback(np.sinc, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        >>> f(jnp.zeros(2))
        Array([2., 2.], dtype=float32)
    """
    check_method(vmap_method)
    return _bind(
        pure_callback_p, callback, result_shape_dtypes, args, kwargs, sharding=sharding, vmap_method=vmap_method
    )


@source.boundary
def io_callback(
    callback: Callable,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Sharding | None = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with side effects on the host, as an operation of a traced program.

    It is called once each time that the program executes the call, and is never left out.

    Args:
        callback: The function of arrays. It returns NumPy arrays, or None if `result_shape_dtypes` is None.
        result_shape_dtypes: A pytree of objects with `shape` and `dtype` that describes the results.
        *args, **kwargs: The arguments of the function: arrays, numbers, and pytrees of these.
        sharding: On several devices, a `SingleDeviceSharding` whose device makes the call.
        ordered: If true, calls are made in the order of the program, and before those of programs that run later.

    Returns:
        Arrays with the tree, shapes and dtypes of `result_shape_dtypes`.

    See also: `jax.pure_callback`, `jax.debug.callback`, `jax.effects_barrier`.

    Example:
        >>> log = []
        >>> @jax.jit
        ... def f(x):
        ...     jax.experimental.io_callback(lambda x: log.append(int(x)), None, x, ordered=True)
        ...     return x + 1
        >>> y, _ = f(1), jax.effects_barrier()
        >>> log
        [1]
    """
    return _bind(io_callback_p, callback, result_shape_dtypes, args, kwargs, sharding=sharding, ordered=ordered)


def _bind(primitive: Callback, callback: Callable, results: Any, args: tuple, kwargs: dict, **params: Any) -> Any:
    leaves, in_tree = tree.flatten((args, kwargs))
    avals, out_tree = tree.flatten(results)
    sharding = params["sharding"]
    if sharding is not None and not isinstance(sharding, SingleDeviceSharding):
        raise NotImplementedError(f"{primitive.name} only supports SingleDeviceSharding, but got {type(sharding)}")
    for i, x in enumerate(leaves):
        try:
            typeof(x)
        except TypeError:
            raise TypeError(
                f"Error interpreting argument to {primitive.name} as a JAX value. The problematic value is of type "
                f"{type(x)} and was passed to {primitive.name} at position {i}."
            ) from None
    types = tuple(map(_result_type, avals))
    flat = _FlatCallback(callback, in_tree)
    return out_tree.unflatten(primitive.bind(*leaves, callback=flat, result_avals=types, **params))


def _result_type(x: Any) -> ShapedArray:
    dtype = np.dtype(x.dtype)
    if dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError("result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled")
    return ShapedArray(tuple(x.shape), dtype)


Buffer, ExecutionContext, ExecutionStage = host_calls.Buffer, host_calls.ExecutionContext, host_calls.ExecutionStage


class BufferCallback(Callback):
    """Calls a user's function of buffers, which fills the buffers of the results."""

    name = "buffer_callback"
    constrain_results = False
    plural = "Buffer callbacks"
    advice = " Please use `jax.custom_jvp` to use callbacks while taking gradients."

    def at_once(self, *operands, **params):
        return evaluate(self, operands, params, compiled=True)

    def typed(self, avals, params):
        return self.declared_types(avals, params)

    def effects(self, *avals, has_side_effect=False, **params):
        return frozenset({BufferCallbackEffect()}) if has_side_effect else frozenset()

    def lower(self, e, ins, outs, *operands, **params):
        function, count = params["callback"], len(ins)
        in_tree, out_tree = params["in_tree"], params["out_tree"]

        def call(context, *buffers):
            args, kwargs = in_tree.unflatten(buffers[:count])
            with host_calls.host_callback_context():
                if function(context, out_tree.unflatten(buffers[count:]), *args, **kwargs) is not None:
                    raise ValueError("buffer_callback: the callback must not return any values")
            return ()

        return e.buffer_call(
            call,
            operands,
            list(map(physical, ins)),
            list(map(physical, outs)),
            has_side_effect=params["has_side_effect"],
            aliases=dict(params["input_output_aliases"]),
            in_graphs=params["command_buffer_compatible"],
        )


buffer_callback_p = BufferCallback()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: object,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function of arrays that calls `callback(context, results, *args, **kwargs)` with their memory, as `Buffer`s.

    The callback fills the results, a tree like `result_shape_dtypes`, whose leaves have a shape and a dtype.
    `input_output_aliases` maps the numbers of argument leaves to those of the result leaves that share their memory.
    `vmap_method` is as in `pure_callback`. On GPUs, `command_buffer_compatible` allows the call in a graph, which is
    recorded once. The function raises ValueError for aliases of leaves that do not exist or have different types.
    """
    leaves, out_tree = tree.flatten(result_shape_dtypes)
    results = tuple([ShapedArray(tuple(x.shape), dtype_of(x)) for x in leaves])

    @source.boundary
    def wrapped_callback(*args: Any, **kwargs: Any) -> Any:
        operands, in_tree = tree.flatten((args, kwargs))
        aliases = aliases_of(input_output_aliases)
        check_aliases(aliases, list(map(typeof, operands)), results)
        outs = buffer_callback_p.bind(
            *operands,
            callback=callback,
            result_avals=results,
            in_tree=in_tree,
            out_tree=out_tree,
            vmap_method=vmap_method,
            has_side_effect=has_side_effect,
            input_output_aliases=tuple(aliases.items()),
            command_buffer_compatible=command_buffer_compatible,
        )
        return out_tree.unflatten(outs)

    return wrapped_callback
