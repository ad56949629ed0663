"""Functions that are given to kernels in place of arrays, and the operation `fusible`, a kernel that takes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from minijax.base import tree
from minijax.calls.call import OpenCall
from minijax.ir.body import Flat, debug_info, trace_flat
from minijax.ir.primitive import Primitive
from minijax.ir.types import typeof
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import squeeze


@dataclasses.dataclass
class Fusion:
    """Is a function that a fusible kernel gets in place of an array, with the types of its arguments and results.

    Args:
      func: the function.
      in_type: the types of its arguments: positional ones, and keyword arguments.
      out_type: the types of its results.
      strict_mode: whether the sizes of blocks are checked when the function becomes part of a kernel.

    See also: `fuser.fusible`, `fuser.get_fusion_values`.

    Example:
        >>> x = jax.ShapeDtypeStruct((2,), jnp.float32)
        >>> double = pl.fuser.Fusion(lambda x: 2 * x, ((x,), {}), x)
        >>> double.shape, double(jnp.ones(2))
        ((2,), Array([2., 2.], dtype=float32))
    """

    func: Callable[..., Any]
    in_type: tuple[Any, dict[str, Any]]
    out_type: Any
    strict_mode: bool = True

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)

    @property
    def shape(self) -> Any:
        """The shapes of the results."""
        return tree.tree_map(lambda x: x.shape, self.out_type)

    @property
    def dtype(self) -> Any:
        """The dtypes of the results."""
        return tree.tree_map(lambda x: x.dtype, self.out_type)

    @property
    def type(self) -> Any:
        """The types of the results."""
        return self.out_type

    @property
    def in_shape(self) -> Any:
        """The shapes of the arguments."""
        return tree.tree_map(lambda x: x.shape, self.in_type)

    @property
    def in_dtype(self) -> Any:
        """The dtypes of the arguments."""
        return tree.tree_map(lambda x: x.dtype, self.in_type)


def constant(x: Any) -> Fusion:
    """The function of nothing that returns a value."""
    return Fusion(lambda: x, ((), {}), typeof(x))


class Fusible(OpenCall):
    """Runs a fusible kernel that nothing is fused with: its jaxpr, whose captured values are the first operands."""

    name = "fusible"
    jvp, partial_eval_custom = Primitive.jvp, Primitive.partial_eval_custom

    def batch(self, axis, operands, dims, **params):
        if axis.size != 1:
            raise NotImplementedError("fusible does not support non-trivial batching: batch inside of the kernel")
        alone = [x if d is None else squeeze(x, (d,)) for x, d in zip(operands, dims, strict=True)]
        results = self.bind_all(alone, params)
        return [expand_dims(r, (0,)) for r in results], [0] * len(results)


fusible_p = Fusible()


def fusible(f: Callable[..., Any] | None = None, *, output_fusion_prefix: Any = True) -> Callable[..., Any]:
    """Makes a kernel fusible: it takes functions in place of arrays, which `fuser.fuse` makes of what is around it.

    Args:
      f: function that gets a `fuser.Fusion` of no arguments for each argument, then one for its results, or None where
        nothing follows them, and that returns its results, passed through the latter.
      output_fusion_prefix: a tree prefix of the results. A function is made for each leaf of it; True: one for all.

    Returns:
      A function of arrays. Called outside of `fuser.fuse` it runs `f` on functions that return these arrays.

    See also: `fuser.fuse`, `fuser.Fusion`.

    Example:
        >>> @pl.fuser.fusible
        ... def double(x_fn, out_fn):
        ...     result = 2 * x_fn()
        ...     return result if out_fn is None else out_fn(result)
        >>> double(jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """

    def decorator(f):
        def wrapper(*args):
            leaves, in_tree = tree.flatten(args)

            def run(*values):
                fusions = tree.tree_map(constant, values)
                return f(*fusions, tree.tree_map(lambda _: None, output_fusion_prefix))

            avals = list(map(typeof, leaves))
            body = trace_flat(Flat(run, in_tree), avals, debug_info(f, "fusible", in_tree))
            results = fusible_p.bind(
                *body.captured,
                *leaves,
                func=f,
                in_tree=in_tree,
                jaxpr=body.jaxpr,
                num_consts=len(body.captured),
                out_tree=body.out_tree,
                output_fusion_prefix=output_fusion_prefix,
            )
            return body.out_tree.unflatten(results)

        return wrapper

    return decorator if f is None else decorator(f)
