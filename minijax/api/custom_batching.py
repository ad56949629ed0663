"""Functions with a user-defined batching rule: `custom_vmap`, `sequential_vmap`."""

from collections.abc import Callable
from typing import Any

from minijax.api.custom import _Custom
from minijax.base import source, tree
from minijax.base.mask import Mask
from minijax.calls.custom_vmap import custom_vmap_call_p, flatten_batching_rule
from minijax.higher.mapping import map as map_slices
from minijax.ir.body import Flat, function_name, source_of, trace_flat
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.types import typeof


class custom_vmap(_Custom):  # noqa: N801
    """Gives a function its own batching rule, set by `def_vmap`; without one it cannot be called.

    It is differentiable in forward mode only: for reverse mode, wrap it in a `jax.custom_vjp` function.

    Example:
        >>> @jax.custom_batching.custom_vmap
        ... def f(x):
        ...     return jnp.sin(x)
        >>> @f.def_vmap
        ... def rule(axis_size, in_batched, xs):
        ...     return jnp.sin(xs) + 100, True
        >>> jax.vmap(f)(jnp.zeros(2))
        Array([100., 100.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any]):
        super().__init__(fun)
        self.vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable:
        """Sets the rule, and returns it: (axis size, list of trees of flags, *arguments) -> (result, tree of
        flags), where a flag is whether the value has a leading batch axis.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @source.boundary
    def __call__(self, *args, **kwargs):
        name = function_name(self.fun)
        args = self._positional(args, kwargs)
        if self.vmap_rule is None:
            raise AttributeError(f"No batching rule defined for custom_vmap function {name} using def_vmap.")
        leaves, args_tree = tree.flatten(args)
        info = DebugInfo("custom_vmap", source_of(self.fun))
        call, consts, out_tree = trace_flat(Flat(self.fun, args_tree), [typeof(x) for x in leaves], info)
        in_tree = tree.treedef_tuple([tree.tree_structure(consts), args_tree])
        rule = flatten_batching_rule(self.vmap_rule, name, in_tree, out_tree)
        params = dict(call=call, in_tree=in_tree, out_tree=out_tree, rule=rule)
        return out_tree.unflatten(custom_vmap_call_p.bind(*consts, *leaves, **params))


def sequential_vmap(f: Callable) -> custom_vmap:
    """Gives a function a batching rule that calls it for one slice after the other, like `jax.lax.map`.

    Example:
        >>> @jax.custom_batching.sequential_vmap
        ... def f(x):
        ...     jax.debug.callback(lambda x: print(x.shape), x)
        ...     return x
        >>> _ = jax.vmap(f)(jnp.ones((2, 3)))
        (3,)
        (3,)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, treedef = tree.flatten(args)
        fixed, batched = (are_batched := Mask(tree.tree_leaves(in_batched))).partition(leaves)
        out = map_slices(lambda slices: mapped(*treedef.unflatten(are_batched.merge(fixed, slices))), batched)
        return out, tree.tree_map(lambda _: True, out)

    return mapped
