"""`checkpoint` as users call it, and its policies."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from minijax.api.jit import resolve
from minijax.base import source
from minijax.control.call import JitOptions
from minijax.control.checkpoint import name_p, opened, remat_p
from minijax.control.jitted import Jitted, signature_of
from minijax.ops.dot import dot_general_p


def checkpoint(fun: Callable, *, prevent_cse: bool | Sequence[bool] = True,
               policy: Callable[..., bool] | None = None, static_argnums: int | tuple[int, ...] = (),
               static_argnames: str | Iterable[str] = ()) -> Callable:  # fmt: skip
    """A function whose intermediate values are computed again in the backward pass instead of being kept.

    `policy(primitive, *avals, **params)` says which results may be kept after all. Static arguments must be
    hashable.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    signature = signature_of(fun)
    resolved = resolve(fun, signature, static_argnums, static_argnames, None, None)
    engine = Jitted(fun, JitOptions(), resolved, None, signature, purpose="checkpoint")

    @functools.wraps(fun)
    @source.boundary
    def checkpointed(*args, **kwargs):
        leaves, treedef, static = engine.flatten(args, kwargs)
        traced = engine.traced(leaves, treedef, static)
        jaxpr, consts = opened(traced.closed)
        results = remat_p.bind_all(
            [*consts, *traced.captured, *leaves],
            dict(jaxpr=jaxpr, prevent_cse=prevent_cse, differentiated=False, policy=policy),
        )
        return traced.out_tree.unflatten(results)

    return checkpointed


remat = checkpoint


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keep every value."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keep no value."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Keep the results of matrix products."""

    only_if_no_batch_dims: bool

    def __call__(self, primitive, *_, **params):
        if primitive is not dot_general_p:
            return False
        return not self.only_if_no_batch_dims or not any(params["dimension_numbers"][1])


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Keep values that `checkpoint_name` gave one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, primitive, *_, **params):
        return primitive is name_p and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Keep values that `checkpoint_name` gave another name than these."""

    names: frozenset[str]

    def __call__(self, primitive, *_, **params):
        return primitive is name_p and params["name"] not in self.names


def save_only_these_names(*names: str) -> Callable:
    """Keep only the values with these names."""
    return SaveOnlyTheseNames(frozenset(names))


def save_any_names_but_these(*names: str) -> Callable:
    """Keep only named values, but not those with these names."""
    return SaveAnyNamesButThese(frozenset(names))


def save_anything_except_these_names(*names: str) -> Callable:
    """Keep every value but those with these names."""
    excluded = frozenset(names)
    return lambda primitive, *_, **params: not (primitive is name_p and params["name"] in excluded)


def save_from_both_policies(policy_1: Callable, policy_2: Callable) -> Callable:
    """Keep what either policy keeps."""

    def policy(primitive, *avals, **params):
        return policy_1(primitive, *avals, **params) or policy_2(primitive, *avals, **params)

    return policy


_dots, _plain_dots = DotsSaveable(False), DotsSaveable(True)
checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable, nothing_saveable=nothing_saveable, dots_saveable=_dots,
    checkpoint_dots=_dots, dots_with_no_batch_dims_saveable=_plain_dots,
    checkpoint_dots_with_no_batch_dims=_plain_dots, save_only_these_names=save_only_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_anything_except_these_names=save_anything_except_these_names,
    save_from_both_policies=save_from_both_policies,
)  # fmt: skip
