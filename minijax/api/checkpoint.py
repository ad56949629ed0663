"""The public `checkpoint`, its policies, and `print_saved_residuals`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

from minijax.api.jit import resolve
from minijax.base import source, tree
from minijax.calls.call import opened
from minijax.calls.remat import name_p, origin, remat_p
from minijax.dispatch.jit import JitOptions
from minijax.dispatch.jitted import Engine
from minijax.ir.body import Flat, argument_names, check_callable, named_after, signature_of, source_of
from minijax.ir.jaxpr import DebugInfo, Literal
from minijax.ir.trace import checked_values, trace_to_jaxpr
from minijax.ir.types import typed_value, typeof
from minijax.primitives.dot import dot_general_p
from minijax.transforms.linearize import linearize_flat
from minijax.transforms.partial_eval_custom import Offloadable, Recompute, Saveable

P = ParamSpec("P")
R = TypeVar("R")


class _Deprecated:
    """The default of a removed parameter."""

    def __repr__(self):
        return "Deprecated"


_DEPRECATED = _Deprecated()


@source.boundary
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = _DEPRECATED,
) -> Callable[P, R]:
    """Wraps a function to recompute its intermediate values in the backward pass instead of saving them.

    Reverse mode saves residuals of the forward pass. Within `checkpoint` only the arguments are saved (and what the
    policy allows), and the function runs again when its derivative is needed. This trades computation for memory;
    values and gradients do not change.

    Args:
        fun: The function to wrap. Its name, `jax.remat` too, may be used as a decorator.
        prevent_cse: If true, an optimization barrier keeps XLA from merging the recomputation with the forward pass,
            which would undo it. A tuple has a boolean, or a pytree prefix of booleans, for each argument. Inside
            `jax.lax.scan` it may be false.
        policy: Decides which intermediate values are saved; one of `jax.checkpoint_policies`, for example
            `jax.checkpoint_policies.dots_saveable`, or a function of (primitive, *abstract values, **parameters) that
            returns a boolean. None: none are saved.
        static_argnums: Numbers of the positional arguments that are not traced; they need not be hashable.
        static_argnames: Names of arguments that are not traced.
        concrete: Removed from jax; do not set it.

    Returns:
        A function of the same arguments and results as `fun`.

    See also: `jax.ad_checkpoint.checkpoint_name`, `jax.ad_checkpoint.print_saved_residuals`.

    Example:
        >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
        >>> print(jax.grad(f)(2.0))
        -0.2556...
        >>> jax.ad_checkpoint.print_saved_residuals(f, 2.0)
        f32[] from the argument x
    """
    if concrete is not _DEPRECATED:
        raise NotImplementedError("The `concrete` option to `jax.checkpoint` was removed; use `static_argnums`")
    check_callable(fun, "jax.checkpoint")
    signature = signature_of(fun)
    resolved = resolve(fun, signature, static_argnums, static_argnames, None, None)
    engine = Engine(fun, JitOptions(), resolved, None, signature, purpose="checkpoint")

    @source.boundary
    def checkpointed(*args, **kwargs):
        call = engine.flatten(args, kwargs)
        traced = engine.traced(call)
        leaves = list(map(typed_value, checked_values(call.leaves)))
        jaxpr, consts = opened(traced.closed)
        results = remat_p.bind_all(
            [*consts, *traced.captured, *leaves],
            dict(
                jaxpr=jaxpr,
                prevent_cse=_apart(prevent_cse, len(consts) + len(traced.captured), *call.given),
                differentiated=False,
                policy=policy,
            ),
        )
        return traced.out_tree.unflatten(results)

    return named_after(checkpointed, fun)


def _apart(prevent_cse: Any, captured: int, args: tuple, kwargs: dict) -> bool | tuple[bool, ...]:
    """A bool, or one for each operand: False for captured values, of a tree's prefix for the arguments."""
    if isinstance(prevent_cse, bool):
        return prevent_cse
    if not isinstance(prevent_cse, tuple | list):
        raise TypeError(f"checkpoint: prevent_cse must be a bool or tuple of bools, got a {type(prevent_cse)}")
    flags = tree.broadcast_prefix(tuple(prevent_cse), (args, kwargs) if kwargs else args)
    return (*(False,) * captured, *flags)


def remat(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    concrete: Any = _DEPRECATED,
) -> Callable[P, R]:
    """Wraps a function to recompute intermediate values in the backward pass: the older name of `jax.checkpoint`.

    Example:
        >>> jax.grad(jax.remat(lambda x: jnp.sin(jnp.sin(x))))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return checkpoint(fun, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums, concrete=concrete)


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Saves every value."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Saves no value."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Saves the results of matrix products."""

    only_if_no_batch_dims: bool

    def __call__(self, prim, *args, **params):
        if prim is not dot_general_p:
            return False
        return not self.only_if_no_batch_dims or not any(params["dimension_numbers"][1])


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Saves values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, primitive, *_, **params):
        return primitive is name_p and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Saves values that `checkpoint_name` gave a name that is not one of these."""

    names: frozenset[str]

    def __call__(self, primitive, *_, **params):
        return primitive is name_p and params["name"] not in self.names


def save_only_these_names(*names_which_can_be_saved: str) -> Callable:
    """Saves only the values with these names."""
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Callable:
    """Saves only named values, except those with these names."""
    return SaveAnyNamesButThese(frozenset(names_not_to_save))


def save_anything_except_these_names(*names_not_to_save: str) -> Callable:
    """Saves every value except those with these names."""
    excluded = frozenset(names_not_to_save)
    return lambda prim, *_, **params: not (prim is name_p and params["name"] in excluded)


def save_from_both_policies(policy_1: Callable, policy_2: Callable) -> Callable:
    """Saves the values that either policy saves. Both must return booleans."""

    def policy(prim, *args, **params):
        keep_1, keep_2 = policy_1(prim, *args, **params), policy_2(prim, *args, **params)
        if not (isinstance(keep_1, bool) and isinstance(keep_2, bool)):
            raise ValueError(
                "save_from_both_policies: the return value of the policies should be a boolean. Got: "
                f"{keep_1} and {keep_2}"
            )
        return keep_1 or keep_2

    return policy


def offload_dot_with_no_batch_dims(offload_src: Any, offload_dst: Any) -> Callable:
    """Offloads the results of matrix products without batch dimensions to the memory `offload_dst`."""

    def policy(prim, *_, **params):
        keep = prim is dot_general_p and not any(params["dimension_numbers"][1])
        return Offloadable(src=offload_src, dst=offload_dst) if keep else Recompute

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: Any,
    offload_dst: Any,
) -> Callable:
    """Saves the values with some names, and offloads those with others to the memory `offload_dst`.

    Raises ValueError for a name that is in both lists.
    """
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if both := saved & offloaded:
        raise ValueError(
            "save_and_offload_only_these_names: the names should be exclusive, but names_which_can_be_saved "
            f"and names_which_can_be_offloaded share {both}"
        )

    def policy(prim, *_, **params):
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(src=offload_src, dst=offload_dst)
        return Recompute

    return policy


_dots, _plain_dots = DotsSaveable(False), DotsSaveable(True)
checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=_dots,
    checkpoint_dots=_dots,
    dots_with_no_batch_dims_saveable=_plain_dots,
    checkpoint_dots_with_no_batch_dims=_plain_dots,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)


@source.boundary
def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Prints the residuals of the backward pass of `f` at these arguments, one a line.

    Constants come first, then arguments, then results of operations with their source lines.

    Example:
        >>> jax.ad_checkpoint.print_saved_residuals(lambda x: jnp.sin(x), 1.0)
        f32[] output of cos from ...
    """
    leaves, in_tree = tree.flatten((args, kwargs))
    info = DebugInfo("saved_residuals", source_of(f), argument_names(signature_of(f), in_tree, ()))

    flat = Flat(f, in_tree, lambda pair: pair)

    def residuals(*xs):
        return linearize_flat(flat, xs, None, info)[3]

    jaxpr, _ = trace_to_jaxpr(residuals, [typeof(x) for x in leaves], info)
    residual_vars = dict.fromkeys(v for v in jaxpr.outvars if type(v) is not Literal)
    lines = [(v, "from a constant") for v in jaxpr.constvars]
    lines += [(v, f"from the argument {n}") for v, n in zip(jaxpr.invars, info.arg_names, strict=True)]
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    lines += [(v, origin(eqn, makers)) for v, eqn in makers.items()]
    for v in jaxpr.outvars:
        if type(v) is Literal:
            print(v.aval.str_short(True), "from a literal")
    for v, text in lines:
        if v in residual_vars:
            print(v.aval.str_short(True), text)
