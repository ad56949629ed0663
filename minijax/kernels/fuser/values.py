"""The arrays that a fusion captures, as arguments of the kernel that it becomes part of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.api.jit import trace_function
from minijax.base import tree
from minijax.base.mask import Mask
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.ir.refs import is_ref
from minijax.ir.trace import eval_jaxpr
from minijax.kernels.fuser.specs import flattened
from minijax.transforms.discharge import discharge_jaxpr


def get_fusion_values(fusion: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Callable[..., Any], tuple, tuple]:
    """Returns the arrays that a function captures, and the function of these.

    Args:
      fusion: function of arrays, such as a `fuser.Fusion`.
      *args: its arguments, arrays or types.
      **kwargs: its keyword arguments.

    Returns:
      Three values: a function of (captured arrays, *arguments); the captured arrays; and the captured scalars that are
      starts of dynamic slices, which have to be prefetched.

    Raises ValueError if it captures references.

    See also: `fuser.pull_block_spec`, `fuser.get_stateful_input_fusion_values`.

    Example:
        >>> w = jnp.arange(2.0)
        >>> f, values, scalars = pl.fuser.get_fusion_values(lambda x: x + w, jnp.ones(2))
        >>> values, scalars, f(values, jnp.ones(2))
        ((Array([0., 1.], dtype=float32),), (), Array([1., 2.], dtype=float32))
    """
    closed, out_tree = trace_function(fusion, args, kwargs, (), "get_fusion_values")
    if any(map(is_ref, closed.consts)):
        raise ValueError(
            "Ref values are only supported in get_fusion_values when discharge_refs is True. "
            "get_stateful_input_fusion_values takes functions that read references."
        )
    return _parts(closed, out_tree)


def get_stateful_input_fusion_values(
    fusion: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[Callable[..., Any], tuple, tuple]:
    """As `fuser.get_fusion_values`, for a function that reads references: its captured values include these.

    Args:
      fusion: function of arrays, such as a `fuser.Fusion`.
      *args: its arguments, arrays or types.
      **kwargs: its keyword arguments.

    Returns:
      A function of (captured values, *arguments), which takes arrays for references; the values; the scalars.

    Example:
        >>> ref = jax.new_ref(jnp.ones(2))
        >>> f, values, _ = pl.fuser.get_stateful_input_fusion_values(lambda: 2 * ref[...])
        >>> f((jnp.arange(2.0),))
        Array([0., 2.], dtype=float32)
    """
    closed, out_tree = trace_function(fusion, args, kwargs, (), "get_fusion_values")
    discharged, _ = _discharged(closed)
    kept = discharged.jaxpr.replace(outvars=discharged.jaxpr.outvars[: len(closed.jaxpr.outvars)])
    return _parts(discharged.replace(jaxpr=kept), out_tree)


def get_stateful_output_fusion_values(
    fusion: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[Callable[..., Any], tuple, tuple, dict[int, int]]:
    """As `fuser.get_fusion_values`, for a function that writes references: their last values are further results.

    Args:
      fusion: function of arrays, such as a `fuser.Fusion`.
      *args: its arguments, arrays or types.
      **kwargs: its keyword arguments.

    Returns:
      A function of (captured values, *arguments) that returns a list, the results and the last values of references;
      the values; the scalars; and for each result that is such a value, by number, the number of its reference among
      the values.

    Example:
        >>> ref = jax.new_ref(jnp.ones(2))
        >>> def store(x):
        ...     ref[...] = x
        ...     return x
        >>> pl.fuser.get_stateful_output_fusion_values(store, jnp.ones(2))[3]
        {1: 0}
    """
    closed, out_tree = trace_function(fusion, args, kwargs, (), "get_fusion_values")
    discharged, refs = _discharged(closed)
    results = len(closed.jaxpr.outvars)
    f, values, scalars = _parts(discharged, None)
    places = [next(i for i, x in enumerate(values) if x is ref) for ref in refs]
    return f, values, scalars, {results + i: place for i, place in enumerate(places)}


def _discharged(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list]:
    """The jaxpr on the values of the references that it captures, whose last values follow its results."""
    refs = Mask(map(is_ref, closed.consts))
    plain, captured = refs.partition(closed.consts)
    others, variables = refs.partition(closed.jaxpr.constvars)
    jaxpr = closed.jaxpr.replace(constvars=others, invars=[*variables, *closed.jaxpr.invars])
    found = discharge_jaxpr(ClosedJaxpr(jaxpr.replace(debug_info=jaxpr.debug_info._replace(arg_names=None)), plain))
    count, invars = len(captured), found.jaxpr.invars
    # (values, references, arguments) -> captured values and references in their order, then arguments
    constvars = refs.merge(found.jaxpr.constvars, invars[:count])
    opened = found.jaxpr.replace(constvars=constvars, invars=invars[count:])
    return ClosedJaxpr(opened, refs.merge(found.consts, captured)), captured


def _parts(closed: ClosedJaxpr, out_tree: Any) -> tuple[Callable[..., Any], tuple, tuple]:
    """The function of its captured values, these, and the scalars that have to be prefetched."""
    jaxpr = closed.jaxpr
    flat = flattened(closed)
    starts = _starts(flat)
    prefetched = Mask([v in starts and not v.aval.ndim for v in flat.invars[: len(closed.consts)]])
    values, scalars = prefetched.partition(closed.consts)

    def new_kernel_fn(values, *args, **kwargs):
        consts = prefetched.merge(values, scalars)
        results = eval_jaxpr(jaxpr, (), *consts, *tree.tree_leaves((args, kwargs)))
        return results if out_tree is None else out_tree.unflatten(results)

    jaxpr = jaxpr.replace(
        constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars], debug_info=jaxpr.debug_info._replace(arg_names=None)
    )
    return new_kernel_fn, tuple(values), tuple(scalars)


def _starts(jaxpr: Jaxpr) -> set[Var]:
    """The variables that starts of dynamic slices are computed from, in a jaxpr without calls."""
    found: set[Var] = set()
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive.name == "dynamic_slice":
            found.update(a for a in eqn.invars[1:] if type(a) is Var)
        elif found.intersection(eqn.outvars):
            found.update(a for a in eqn.invars if type(a) is Var)
    return found
