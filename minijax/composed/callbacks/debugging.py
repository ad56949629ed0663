"""Operations that show a running program: `debug.callback`, `debug.print`, `debug.inspect_array_sharding`."""

import functools
import logging
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import source, tree
from minijax.base.native import replicated
from minijax.composed.callbacks.callback import HostFunction, on_host
from minijax.dispatch.operands import operand
from minijax.dispatch.operations import evaluate
from minijax.ir.effects import DebugEffect, OrderedDebugEffect
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray, is_value
from minijax.partition.shardings import GSPMDSharding, Sharding
from minijax.primitives.structural import index_in_dim
from minijax.run.clients import client
from minijax.run.programs import host_calls, tokens
from minijax.run.programs.compiled_shardings import named_sharding

_log = logging.getLogger("jax._src.debugging")


class Debugging(HostFunction):
    """Shows values on the host. A batched operation shows each row, one after the other."""

    ordered_effect, unordered_effect = OrderedDebugEffect(), DebugEffect()
    answers = True

    def at_once(self, *operands, **params):
        operands = [operand(x) for x in operands]
        if params["partitioned"] and any(x._sig.device is None for x in operands):
            return evaluate(self, operands, params, compiled=True)
        if self.is_ordered(params):
            tokens.wait_for(self.ordered_effect)
        self._show(operands, params)
        return []

    def show(self, values: Sequence, params: dict) -> None:
        """Shows the values."""
        raise NotImplementedError

    def _show(self, values, params):
        with host_calls.logged_failure(_log, "debug.callback"):
            self.show(values, params)

    def function(self, params):
        def show(*arrays):
            self._show(list(map(on_host, arrays)), params)
            return []

        return show

    def lower(self, e, ins, outs, *operands, **params):
        mesh, manual = e.manual or (None, ())
        once = [n for n in mesh.axis_names if n not in manual] if mesh is not None else []
        if not once or self.is_ordered(params):
            return super().lower(e, ins, outs, *operands, **params)
        number, flag = ShapedArray((), np.dtype(np.int32)), ShapedArray((), np.dtype(np.bool_))

        def shown(*names, axes=once):
            """Calls from the device that is the first along each of the axes that are not manual."""
            if not axes:
                return super(Debugging, self).lower(e, ins, outs, *names, **params)
            first = e.compare("EQ", e.index_along_mesh_axis(mesh, axes[0], number), e.constant(0, number), number)
            return e.case_(e.convert(first, flag, number), [tuple, lambda: shown(*names, axes=axes[1:])], [])

        return e.fully_manual(operands, ins, outs, shown)

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), []

    def transpose(self, cts, *operands, **params):
        return [None] * len(operands)  # a tangent that is not computed cannot be shown

    def batch(self, axis, operands, dims, **params):
        for i in range(axis.size):
            self.bind(
                *(
                    x if d is None else index_in_dim(x, i, d, keepdims=False)
                    for x, d in zip(operands, dims, strict=True)
                ),
                **params,
            )
        return [], []


class DebugCallback(Debugging):
    """Calls a user's function of arrays."""

    name = "debug_callback"

    def is_ordered(self, params):
        return params["effect"] == self.ordered_effect

    def show(self, values, params):
        params["callback"](*values)


class DebugPrint(Debugging):
    """Prints or logs arrays by a format string."""

    name = "debug_print"

    def show(self, values, params):
        args, kwargs = _with_static(values, params["static_args"], params["in_tree"])
        with np.printoptions(**dict(params["np_printoptions"])):
            fmt = params["fmt"]
            text = fmt.format(*args, **kwargs) if params["has_placeholders"] else " ".join(map(str, [fmt, *args]))
        record = params["logging_record"]
        if record is None:
            print(f"{text}\n", end="")  # in one write, because other devices print too
        else:
            _log.handle(logging.makeLogRecord({**vars(record), "msg": text}))


debug_callback_p, debug_print_p = DebugCallback(), DebugPrint()


def _split_static(args: tuple, kwargs: dict) -> tuple[list, tuple, Any]:
    """The leaves that are values, the other leaves with their positions, and the structure of all."""
    leaves, in_tree = tree.flatten((args, kwargs))
    static = tuple((i, x) for i, x in enumerate(leaves) if not is_value(x))
    return [x for x in leaves if is_value(x)], static, in_tree


def _with_static(values: Sequence, static: Sequence, in_tree: Any) -> tuple:
    leaves = list(values)
    for i, x in static:
        leaves.insert(i, x)
    return in_tree.unflatten(leaves)


# ---- the public functions ---------------------------------------------------------------------------


@source.boundary
def debug_callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Calls a Python function on the host, with the values of traced arrays, for debugging.

    The call does not change the program: it may be reordered or repeated with it, and it is made when the values are
    computed. Under `jax.vmap` it is called for each slice; under `jax.grad`, in the forward pass.

    Args:
        callback: The function; its result is ignored. Without it, the result is a function that takes the other
            arguments.
        *args, **kwargs: Its arguments: arrays, which it gets as `jax.Array`s, and other values.
        ordered: If true, calls are made in the order of the program.
        partitioned: If true, each device makes a call with its shards of the arrays.

    See also: `jax.debug.print`, `jax.effects_barrier`, `jax.experimental.io_callback`.

    Example:
        >>> seen = []
        >>> f = jax.jit(lambda x: jax.debug.callback(lambda x: seen.append(float(x)), x))
        >>> f(2.0)
        >>> jax.effects_barrier()
        >>> seen
        [2.0]
    """

    # Equations show the qualified names of these two functions, as in jax.
    def _debug_callback(callback: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        if not callable(callback):
            raise TypeError(
                f"first argument to jax.debug.callback must be callable, but got an object of type {type(callback)}"
            )
        values, static, in_tree = _split_static(args, kwargs)

        def _flat_callback(*values):
            args, kwargs = _with_static(values, static, in_tree)
            callback(*args, **kwargs)

        effect = Debugging.ordered_effect if ordered else Debugging.unordered_effect
        debug_callback_p.bind(*values, callback=_flat_callback, effect=effect, partitioned=partitioned)

    _check_partitioned("jax.debug.callback", ordered, partitioned)
    return _in_one_or_two_calls("debug_callback", _debug_callback, callback, args, kwargs)


@source.boundary
def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Prints the values of traced arrays, each time that they are computed.

    Python's `print` in a traced function prints tracers, once. This prints values, on the host, when the program runs.

    Args:
        fmt: A text with fields as for `str.format`; no f-string. Without it, the result is a function that takes the
            other arguments.
        *args, **kwargs: The values of the fields.
        ordered: If true, texts are printed in the order of the program.
        partitioned: If true, each device prints its shards of the arrays.
        skip_format_check: If true, `fmt` is not compared with the arguments.

    Raises:
        IndexError, KeyError: If a field has no argument.
        ValueError: If an argument has no field.

    See also: `jax.debug.callback`, `jax.debug.log`, `jax.effects_barrier`.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     jax.debug.print("x = {x}, twice {}", 2 * x, x=x)
        ...     return x
        >>> y, _ = f(3), jax.effects_barrier()
        x = 3, twice 6
    """

    def call(fmt: str, *args: Any, **kwargs: Any) -> None:
        if not isinstance(fmt, str):
            raise TypeError(f"jax.debug.print: fmt must be a string; expected str, got {type(fmt).__name__}")
        if not skip_format_check:
            _Checker().check(fmt, args, kwargs)
        record = None
        if _use_logging:
            file, line = next(((f.file_name, f.line_num) for f in source.user_frames(source.here())), ("", 0))
            record = logging.LogRecord(_log.name, logging.INFO, file, line, "", (), None)
        values, static, in_tree = _split_static(args, kwargs)
        debug_print_p.bind(
            *values,
            fmt=fmt,
            ordered=ordered,
            partitioned=partitioned,
            in_tree=in_tree,
            static_args=static,
            np_printoptions=tuple(np.get_printoptions().items()),
            has_placeholders=any(field is not None for _, field, _, _ in string.Formatter().parse(fmt)),
            logging_record=record,
        )

    _check_partitioned("jax.debug.print", ordered, partitioned)
    return _in_one_or_two_calls("debug_print", call, fmt, args, kwargs)


debug_log = functools.partial(debug_print, _use_logging=True)
debug_log.__doc__ = "Logs the values of traced arrays at level INFO; the arguments are those of `debug.print`."


def _in_one_or_two_calls(name: str, call: Callable, first: Any, args: tuple, kwargs: dict) -> Callable | None:
    """Calls `call` if the first argument is given; otherwise returns `call`, for the second call of the form."""
    if first is not None:
        return call(first, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"{name} received unexpected arguments in the two-call form: {args}, {kwargs}")
    return call


def _check_partitioned(name: str, ordered: bool, partitioned: bool) -> None:
    if ordered and partitioned:
        raise ValueError(f"{name}: ordered and partitioned callbacks are not supported together")


class _Checker(string.Formatter):
    """Checks the fields of a format as `str.format` does, without formatting values."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [x for i, x in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {unused}")
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {names}. You may be passing an f-string (i.e, "
                '`f"{x}"`) into `jax.debug.print` and instead should pass in a regular string.'
            )

    def get_field(self, field_name: str, args: Sequence, kwargs: Any) -> Any:
        first, _ = string._string.formatter_field_name_split(field_name)  # pyright: ignore
        if isinstance(first, str) and first not in kwargs:
            raise KeyError(
                f"{first}: jax.debug.print has no such argument. Pass {first}=..., or write {{{{ for a brace."
            )
        if isinstance(first, int) and first >= len(args):
            raise IndexError(
                f"jax.debug.print: the format has a field of index {first}, but only {len(args)} arguments are given"
            )
        return self.get_value(first, args, kwargs), first

    def check(self, fmt: str, args: tuple, kwargs: dict) -> None:
        """Raises the errors of `str.format` for missing arguments, ValueError for unused ones."""
        self.vformat(fmt, args, kwargs)


class InspectSharding(Primitive):
    """Calls `callback` with the sharding of a value."""

    name = "inspect_sharding"
    multiple_results = True

    def typed(self, avals, params):
        return [], frozenset({DebugEffect()})  # not cached: a cache would keep the function alive

    def at_once(self, x, *, callback):
        callback(operand(x).sharding)
        return []

    def lower(self, e, ins, outs, x, *, callback):
        devices, mesh, (aval,) = e.devices, e.mesh, ins
        if e.num_partitions == 1:
            callback(GSPMDSharding(tuple(devices) or (client.default_device(),), replicated()))
            return []

        def report(hlo):
            callback(GSPMDSharding(tuple(devices), hlo) if mesh is None else named_sharding(mesh, hlo, aval.ndim))

        inspection = host_calls.Inspection(report)
        e.inspect_sharding(inspection, inspection.address(), x, aval)
        return []

    def jvp(self, primals, tangents, *, callback):
        return self.bind(*primals, callback=callback), []

    def transpose(self, cts, x, *, callback):
        return [None]

    def batch(self, axis, operands, dims, *, callback):
        return self.bind(*operands, callback=callback), []


inspect_sharding_p = InspectSharding()


@source.boundary
def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Calls `callback` with the sharding of each array in a tree.

    For a traced value, it is called each time that XLA compiles the program. Its exceptions are raised by the call that
    compiles the program.

    Example:
        >>> jax.debug.inspect_array_sharding(jnp.ones(2), callback=lambda sharding: print(sharding.num_devices))
        1
    """
    for x in tree.tree_leaves(value):
        inspect_sharding_p.bind(x, callback=callback)
