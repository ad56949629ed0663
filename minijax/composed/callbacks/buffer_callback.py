"""`buffer_callback`: passes the memory of a program's arrays to functions on the host."""

from collections.abc import Callable
from typing import Any

from minijax.base import source, tree
from minijax.composed.callbacks.callback import Callback
from minijax.composed.callbacks.foreign import aliases_of, check_aliases, dtype_of
from minijax.dispatch.operations import evaluate
from minijax.hlo.spell import physical
from minijax.ir.effects import BufferCallbackEffect
from minijax.ir.types import ShapedArray, typeof
from minijax.run.programs import host_calls

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
