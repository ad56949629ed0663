"""The check `jax_debug_key_reuse`: detects random keys that are used twice, within and across programs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, config, tree
from minijax.base.dtypes import KeyType
from minijax.base.errors import KeyReuseError
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var

Mask = Any  # booleans with the shape of an array of keys, or one boolean for all keys


class KeyUses(NamedTuple):
    """The effect on keys: consumed inputs, results that are new keys, and inputs forwarded to results."""

    sinks: Mapping[int, Mask] = {}
    sources: Mapping[int, Mask] = {}
    forwards: Sequence[tuple[int, int]] = ()  # (index of the input, index of the result)

    def __repr__(self):
        parts = [_shown(kind, masks) for kind, masks in (("Sink", self.sinks), ("Source", self.sources)) if masks]
        parts += [f"Forward({i}, {k})" for i, k in self.forwards]
        return f"KeyReuseSignature({', '.join(parts)})"


def _shown(kind: str, masks: Mapping[int, Mask]) -> str:
    return ", ".join(f"{kind}({i})" if np.all(m) else f"{kind}({i}, {m})" for i, m in sorted(masks.items()))


RUN_WITHOUT_PROGRAM = frozenset(
    ("slice", "device_put", "random_clone")
)  # operations with a rule that run without a program
_FORWARD = KeyUses(forwards=((0, 0),))
_NEW, _USE = KeyUses(sources={0: True}), KeyUses(sinks={0: True})
_RULES: dict[str, KeyUses | Callable[[JaxprEqn], KeyUses]] = {
    **dict.fromkeys("random_clone random_fold_in random_seed random_wrap".split(), _NEW),
    **dict.fromkeys("random_bits random_gamma".split(), _USE),
    "random_split": KeyUses({0: True}, {0: True}),
    **dict.fromkeys("random_unwrap debug_callback eq ne".split(), KeyUses()),
    **dict.fromkeys(
        """
        broadcast_in_dim copy stage convert_element_type reshape squeeze layout_constraint sharding_constraint reshard
        dynamic_slice gather
        """.split(),
        _FORWARD,
    ),
    "dynamic_update_slice": KeyUses({1: True}, forwards=((0, 0),)),
    "scatter": KeyUses({2: True}, forwards=((0, 0),)),
}


def _rule(function: Callable[[JaxprEqn], KeyUses]) -> Callable[[JaxprEqn], KeyUses]:
    _RULES[function.__name__.strip("_")] = function
    return function


class _Keys:
    """An array of keys, shared by all variables that refer to it, and the mask of consumed keys."""

    __slots__ = ("used",)

    def __init__(self, used: np.ndarray):
        self.used = used

    def mask_for(self, shape: tuple[int, ...]) -> np.ndarray:
        """The mask of consumed keys for another shape, in which all keys count as consumed if one is."""
        return self.used if self.used.shape == shape else np.full(shape, self.used.any())

    def consume(self, mask: Mask, shape: tuple[int, ...]) -> None:
        mask = np.broadcast_to(mask, shape)
        self.used = self.used | (mask if mask.shape == self.used.shape else mask.any())


@cache.weak_cache
def signature(jaxpr: Jaxpr) -> KeyUses:
    """The effect of a jaxpr on keys. Raises KeyReuseError if it consumes a key twice."""
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    first = len(jaxpr.constvars)  # constants have negative indices
    keys = {v: _Keys(np.zeros(v.aval.shape, bool)) for v in inputs if _is_key(v)}
    mine = {keys[v]: i - first for i, v in enumerate(inputs) if v in keys}
    for eqn in jaxpr.eqns:
        _apply(eqn, signature_of(eqn), keys)
    sinks = {mine[k]: k.used for k in mine if k.used.any()}
    sources, forwards = {}, []
    for n, v in enumerate(jaxpr.outvars):
        if v in keys:
            if keys[v] in mine:
                forwards.append((mine[keys[v]], n))
            elif not (used := keys[v].mask_for(v.aval.shape)).all():
                sources[n] = ~used
    return KeyUses(sinks, sources, tuple(sorted(forwards)))


def _is_key(v: Any) -> bool:
    return type(v) is Var and isinstance(getattr(v.aval, "dtype", None), KeyType)


def _apply(eqn: JaxprEqn, effect: KeyUses, keys: dict[Any, _Keys]) -> None:
    for i, mask in effect.sinks.items():
        v = eqn.invars[i]
        if v in keys:
            if (keys[v].mask_for(v.aval.shape) & mask).any():
                raise KeyReuseError(f"In {eqn.primitive.name}, argument {i} is already consumed.")
            keys[v].consume(mask, v.aval.shape)
    inputs = {k: eqn.invars[i] for i, k in effect.forwards}
    for n, v in enumerate(eqn.outvars):
        if not _is_key(v):
            continue
        if inputs.get(n) in keys:
            keys[v] = keys[inputs[n]]
        else:
            keys[v] = _Keys(np.broadcast_to(~np.asarray(effect.sources.get(n, False)), v.aval.shape))


def signature_of(eqn: JaxprEqn) -> KeyUses:
    """The effect of an equation on keys; an operation without a rule consumes all keys that it reads."""
    rule = _RULES.get(eqn.primitive.name)
    if callable(rule):
        return rule(eqn)
    if rule is not None:
        return rule
    return KeyUses({i: True for i, v in enumerate(eqn.invars) if _is_key(v)})


# ---- rules that depend on parameters ----------------------------------------------------------------


@_rule
def _slice(eqn: JaxprEqn) -> KeyUses:
    p, mask = eqn.params, np.zeros(eqn.invars[0].aval.shape, bool)
    steps = p["strides"] or (1,) * mask.ndim
    mask[tuple(map(slice, p["start_indices"], p["limit_indices"], steps))] = True
    return KeyUses({0: mask}, {0: True}) if _is_key(eqn.invars[0]) else KeyUses()


@_rule
def _concatenate(eqn: JaxprEqn) -> KeyUses:
    return KeyUses(dict.fromkeys(range(len(eqn.invars)), True), {0: True})


@_rule
def _device_put(eqn: JaxprEqn) -> KeyUses:
    return KeyUses(forwards=[(i, i) for i in range(len(eqn.invars))])


@_rule
def _jit(eqn: JaxprEqn) -> KeyUses:
    return _of_nested(eqn.params["jaxpr"])


_RULES |= dict.fromkeys(("shard_map", "xla_metadata_call", "compute_on"), _jit)


@_rule
def _remat2(eqn: JaxprEqn) -> KeyUses:
    inner = _of_nested(eqn.params["jaxpr"])
    return inner._replace(sinks={}) if eqn.params["differentiated"] else inner  # a recomputation uses the same keys


def _of_nested(program: Jaxpr | ClosedJaxpr) -> KeyUses:
    """The signature of a nested jaxpr, without its effect on its constants."""
    whole = signature(getattr(program, "jaxpr", program))
    sinks = {i: mask for i, mask in whole.sinks.items() if i >= 0}
    return whole._replace(sinks=sinks, forwards=tuple([pair for pair in whole.forwards if pair[0] >= 0]))


@_rule
def _cond(eqn: JaxprEqn) -> KeyUses:
    branches = [_of_nested(closed) for closed in eqn.params["branches"]]
    sinks: dict[int, Mask] = {}
    sources: dict[int, Mask] = {}
    for branch in branches:
        for i, mask in branch.sinks.items():
            sinks[i + 1] = sinks.get(i + 1, False) | np.asarray(mask)
        for n, mask in branch.sources.items():
            sources[n] = sources.get(n, False) | np.asarray(mask)
    common = set.intersection(*(set(branch.forwards) for branch in branches))
    return KeyUses(sinks, sources, [(i + 1, n) for i, n in sorted(common)])


@_rule
def _scan(eqn: JaxprEqn) -> KeyUses:
    body, consts, carry = _of_nested(eqn.params["jaxpr"]), eqn.params["num_consts"], eqn.params["num_carry"]
    why = "scan body function leads to key reuse when repeatedly executed, because"
    if any(i < consts for i in body.sinks):
        raise KeyReuseError(f"{why} key constants are repeatedly consumed:\n  signature={body}\n  {eqn=!s}")
    if any(i < consts + carry and i - consts not in body.sources for i in body.sinks):
        raise KeyReuseError(f"{why} consumed inputs don't match sourced outputs:\n  signature={body}\n  {eqn=!s}")
    sinks = {i: np.broadcast_to(mask, eqn.invars[i].aval.shape) for i, mask in body.sinks.items()}
    sources = {n: np.broadcast_to(mask, eqn.outvars[n].aval.shape) for n, mask in body.sources.items()}
    carried = [(i, n) for i, n in body.forwards if consts <= i < consts + carry and n < carry]
    return KeyUses(sinks, sources, carried)


@_rule
def _while(eqn: JaxprEqn) -> KeyUses:
    p = eqn.params
    cond, body = _of_nested(p["cond_jaxpr"]), _of_nested(p["body_jaxpr"])
    n, m = p["cond_nconsts"], p["body_nconsts"]
    again = "function leads to key reuse when repeatedly executed:\n "
    if any(i < m or i - m not in body.sources for i in body.sinks):
        raise KeyReuseError(f"while_loop body {again} body_signature={body}\n  {eqn=!s}")
    if any(i < n or i - n not in body.sources for i in cond.sinks):
        raise KeyReuseError(f"while_loop cond {again} cond_signature={cond}\n  {eqn=!s}")
    if {i - n for i in cond.sinks} & {i - m for i in body.sinks}:
        same = f"  cond_signature={cond}\n  body_signature={body}\n  {eqn=!s}"
        raise KeyReuseError(f"while_loop cond and body functions both use the same key:\n{same}")
    return KeyUses(
        {i + n: mask for i, mask in body.sinks.items()}, body.sources, [(i + n, k) for i, k in body.forwards]
    )


# ---- across programs --------------------------------------------------------------------------------


def is_on() -> bool:
    """Returns whether the check is enabled."""
    return config.state().debug_key_reuse


_SPLIT = "Split the key with jax.random.split, and use each part once."


def watched(run: Callable[[Sequence], Any], closed: ClosedJaxpr, name: str) -> Callable[[Sequence], Any]:
    """Wraps `run`, the call of a program: raises KeyReuseError for consumed keys, and marks those it consumes."""
    if not is_on():
        return run
    effect, consts = signature(closed.jaxpr), list(closed.consts)
    if not any(map(_is_key, (*closed.jaxpr.constvars, *closed.jaxpr.invars, *closed.jaxpr.outvars))):
        return run
    outs, inputs = closed.jaxpr.outvars, {k: i for i, k in effect.forwards}

    def call(operands: Sequence) -> Any:
        of = lambda i: operands[i] if i >= 0 else consts[i]  # noqa: E731
        for i, mask in effect.sinks.items():
            if np.any(of(i)._consumed & mask):
                raise KeyReuseError(f"Previously-consumed key passed to {name} at index {max(i, 0)}. {_SPLIT}")
        results = run(operands)
        for i, mask in effect.sinks.items():
            of(i)._consumed = np.broadcast_to(of(i)._consumed | mask, of(i).shape)
        leaves = tree.tree_leaves(results)
        for n, v in enumerate(outs):
            if _is_key(v):
                old = _Keys(np.asarray(of(inputs[n])._consumed)) if n in inputs else None
                used = old.mask_for(v.aval.shape) if old else ~np.asarray(effect.sources.get(n, False))
                leaves[n]._consumed = np.broadcast_to(used, v.aval.shape)
        return results

    return call
