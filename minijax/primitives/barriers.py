"""Operations that order computations or keep them from removal: barriers, sinks, tokens; and `stage`."""

from __future__ import annotations

from typing import Any

from minijax.base import dtypes, tree
from minijax.hlo.emitter import metadata_attributes
from minijax.ir.effects import (
    Effect,
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    lowerable_effects,
)
from minijax.ir.primitive import Linear1, Primitive
from minijax.ir.types import Zero, token_type, typeof
from minijax.primitives.moving import as_array_or_constant
from minijax.primitives.zeros import instantiate
from minijax.run.arrays.array import Array, ArrayLike


class NoDCEEffect(Effect):
    """The effect that keeps an equation without results from dead code elimination."""


for _registry in (lowerable_effects, control_flow_allowed_effects, custom_derivatives_allowed_effects):
    _registry.add_type(NoDCEEffect)
_NO_DCE = frozenset({NoDCEEffect()})


class OptimizationBarrier(Primitive):
    """The identity; the compiler computes all operands before anything that uses a result."""

    name = "optimization_barrier"
    same_memory_space = False
    multiple_results = True

    def infer(self, *avals):
        return list(avals)

    def vma_rule(self, avals, params):
        return None

    def lower(self, e, ins, outs, *operands):
        return e.optimization_barrier(operands, outs)

    def jvp(self, primals, tangents):
        tangents = [*map(instantiate, tangents)]
        results, pushed = self.bind(*primals), self.bind(*tangents)
        return results, [Zero(a) if (a := typeof(t)).dtype == dtypes.float0 else t for t in pushed]

    def transpose(self, cts, *operands):
        return self.bind(*map(instantiate, cts))

    def batch(self, axis, operands, dims):
        return self.bind(*operands), dims


class DCESink(Primitive):
    """Keeps its operand from being removed as dead code; it has no results."""

    name = "dce_sink"
    multiple_results = True

    def infer(self, x, *, prevent_mlir_dce):
        return []

    def effects(self, x, *, prevent_mlir_dce):
        return _NO_DCE

    def at_once(self, x, **params):
        return []

    def lower(self, e, ins, outs, x, *, prevent_mlir_dce):
        if prevent_mlir_dce:
            layout = [tuple(reversed(range(ins[0].ndim)))]
            e.custom_call("dce_sink", [x], ins, [], has_side_effect=True, operand_layouts=layout, result_layouts=[])
        return []

    def jvp(self, primals, tangents, **params):
        self.bind(*primals, **params)
        if type(tangents[0]) is not Zero:
            self.bind(*tangents, **params)
        return [], []

    def linearize(self, nonzeros, primals, **params):
        self.bind(*primals, **params)
        return [], (), lambda *tangents: []

    def batch(self, axis, operands, dims, **params):
        return [], []


class Tokens(Primitive):
    """A token that is ready when all operands, which are tokens too, are ready."""

    def __init__(self, name: str):
        self.name = name

    def infer(self, *avals):
        if any(a is not token_type for a in avals):
            raise TypeError(f"Arguments to {self.name} must be tokens, got {', '.join(map(str, avals))}")
        return [token_type]

    def lower(self, e, ins, outs, *tokens):
        if self is create_token_p:
            return [e.create_token()]
        return [e.after_all(tokens)]


class Stage(Primitive):
    """The value as an array; while a function is traced, as a constant of its jaxpr."""

    name = "stage"

    def bind(self, x):
        typeof(x)
        return as_array_or_constant(x)


optimization_barrier_p, dce_sink_p, stage_p = OptimizationBarrier(), DCESink(), Stage()
create_token_p, after_all_p = Tokens("create_token"), Tokens("after_all")


def optimization_barrier(operand: Any, /) -> Any:
    """Returns the tree `operand` unchanged; no array in it is used before all of them are computed.

    Example:
        >>> jax.make_jaxpr(jax.lax.optimization_barrier)((1.0, 2.0))
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] d:f32[] = optimization_barrier a b
          in (c, d) }
    """
    leaves, treedef = tree.flatten(operand)
    return treedef.unflatten(optimization_barrier_p.bind(*leaves))


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps a tree of values from minijax's dead code elimination; from XLA's too, if `prevent_mlir_dce`.

    Example:
        >>> def f(x):
        ...     jax.lax.dce_sink(jnp.sin(x))
        ...     return x
        >>> jax.jit(f).trace(1.0).jaxpr
        { lambda ; a:f32[]. let
            b:f32[] = sin a
            dce_sink[prevent_mlir_dce=False] b
          in (a,) }
    """
    for leaf in tree.tree_leaves(val):
        typeof(leaf)
        dce_sink_p.bind(leaf, prevent_mlir_dce=prevent_mlir_dce)


def create_token(_: Any = None) -> Any:
    """Creates a token that waits for nothing.

    Example:
        >>> jax.eval_shape(jax.lax.create_token)
        AbstractToken()
    """
    return create_token_p.bind()


def after_all(*operands: Any) -> Any:
    """Creates a token that waits for all the given ones.

    It has no effect but to order the operations that use tokens; `jax.lax.create_token` makes one.

    Example:
        >>> jax.make_jaxpr(lambda: jax.lax.after_all(jax.lax.create_token(), jax.lax.create_token()))()
        { lambda ; . let
            a:Tok = create_token
            b:Tok = create_token
            c:Tok = after_all a b
          in (c,) }
    """
    return after_all_p.bind(*operands)


def stage(x: ArrayLike, /) -> Array:
    """Returns `x` as an array; while a function is traced, as a value in its jaxpr.

    Example:
        >>> jax.lax.stage(1.0), jax.jit(lambda x: isinstance(jax.lax.stage(1.0), jax.core.Tracer))(0)
        (Array(1., dtype=float32, weak_type=True), Array(True, dtype=bool))
    """
    return stage_p.bind(x)


class XlaMetadataValue(Linear1):
    """The identity; the operation that computes the operand gets frontend attributes."""

    name = "xla_metadata_value"

    def infer(self, x, *, xla_metadata_kvs):
        return [x]

    def lower(self, e, ins, outs, x, *, xla_metadata_kvs):
        e.tag([x], metadata_attributes(xla_metadata_kvs), constants=True)
        return [x]

    def transposed(self, ct, aval, *, xla_metadata_kvs):
        return ct

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims


xla_metadata_value_p: Primitive = XlaMetadataValue()


def tagged(x: Any, metadata: dict[str, Any]) -> Any:
    """Attaches metadata to the operations that compute the leaves of `x`."""
    pairs = tuple(sorted(metadata.items()))
    return tree.tree_map(lambda leaf: xla_metadata_value_p.bind(leaf, xla_metadata_kvs=pairs), x)
