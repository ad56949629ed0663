"""Users' classes in operations: what their constructors are called with, which methods are called, what comes out."""

import collections
import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import same

import minijax

pytestmark = pytest.mark.oracle


def kind_of(jax: Any, x: Any) -> str:
    """What a constructor was called with, in a word."""
    if isinstance(x, jax.core.Tracer):
        return "tracer"
    if isinstance(x, jax.Array) or type(x).__name__ == "TypedNdArray":
        return "array"
    if isinstance(x, np.ndarray | np.generic):
        return "numpy"
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return "description"
    if type(x).__module__.partition(".")[0] in ("jax", "jaxlib", "minijax"):
        return "of the library"
    return type(x).__name__


class Log:
    """The kinds of values that constructors were called with."""

    def __init__(self, jax: Any):
        self.jax, self.kinds, self.is_on = jax, set(), True

    def see(self, x: Any) -> None:
        if self.is_on:
            self.kinds.add(kind_of(self.jax, x))


# Each makes a class of trees with one child; its constructor shows the child to the log.


def a_node(jax: Any, log: Log) -> Callable:
    @jax.tree_util.register_pytree_node_class
    class Node:
        def __init__(self, x):
            log.see(x)
            self.x = x

        def tree_flatten(self):
            return (self.x,), "aux"

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    return Node


def a_keyed_node(jax: Any, log: Log) -> Callable:
    @jax.tree_util.register_pytree_with_keys_class
    class Keyed:
        def __init__(self, x):
            log.see(x)
            self.x = x

        def tree_flatten_with_keys(self):
            return ((jax.tree_util.GetAttrKey("x"), self.x),), "aux"

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    return Keyed


def a_dataclass(jax: Any, log: Log) -> Callable:
    @dataclasses.dataclass
    class Data:
        x: Any
        name: str = dataclasses.field(default="name", metadata=dict(static=True))

        def __post_init__(self):
            log.see(self.x)

    return jax.tree_util.register_dataclass(Data)


def a_namedtuple(jax: Any, log: Log) -> Callable:
    class Pair(collections.namedtuple("Pair", ["x", "y"])):
        __slots__ = ()

        def __new__(cls, x, y=None):
            log.see(x)
            return super().__new__(cls, x, y)

    return Pair


def a_mapping(jax: Any, log: Log) -> Callable:
    class Mapping(collections.OrderedDict):
        def __init__(self, x):
            log.see(x)
            super().__init__(x=x)

    jax.tree_util.register_pytree_node(Mapping, lambda m: (tuple(m.values()), None), lambda _, xs: Mapping(*xs))
    return Mapping


CLASSES = dict(node=a_node, keyed=a_keyed_node, dataclass=a_dataclass, namedtuple=a_namedtuple, mapping=a_mapping)


def with_jvp(jax, f, rule):
    g = jax.custom_jvp(f)
    g.defjvp(rule)
    return g


def with_vjp(jax, f, fwd, bwd):
    g = jax.custom_vjp(f)
    g.defvjp(fwd, bwd)
    return g


def with_vmap(jax, f, rule):
    g = jax.custom_batching.custom_vmap(f)
    g.def_vmap(rule)
    return g


def sharded(jax, f, **specs):
    specs = dict(in_specs=jax.P(), out_specs=jax.P()) | specs
    return jax.shard_map(f, mesh=jax.make_mesh((1,), ("x",)), **specs)


def twice_called(f, *args):
    return f(*args), f(*args)


@dataclasses.dataclass
class Sides:
    """What an operation gets: the modules, a tree of the user's class, functions of such trees."""

    jax: Any
    jnp: Any
    lax: Any
    make: Callable

    def __post_init__(self):
        jax, jnp = self.jax, self.jnp
        self.tree = self.make(jnp.ones(2))
        self.x = jnp.ones(2)
        self.double = lambda t: jax.tree.map(lambda a: a * 2, t)
        self.total = lambda t: sum(jnp.sum(a * a) for a in jax.tree.leaves(t))
        self.other = lambda t: [t]


TREES: dict[str, Callable] = {
    "jit": lambda s: twice_called(s.jax.jit(s.double), s.tree),
    "jit, by name": lambda s: s.jax.jit(lambda *, t: s.double(t))(t=s.tree),
    "jit, donated": lambda s: s.jax.jit(s.double, donate_argnums=0)(s.make(s.jnp.ones(2))),
    "jit, unused": lambda s: s.jax.jit(lambda t: 1)(s.tree),
    "jit of a result": lambda s: s.jax.jit(lambda x: {"a": [s.make(x)]})(s.x),
    "jit in jit": lambda s: s.jax.jit(s.jax.jit(s.double))(s.tree),
    "jit, shardings of a class": lambda s: s.jax.jit(
        s.double, out_shardings=s.jax.sharding.SingleDeviceSharding(s.jax.devices()[0])
    )(s.tree),
    "jit, a wrong result": lambda s: s.jax.jit(lambda x: s.make(s.make))(s.x),
    "jit, a wrong leaf": lambda s: s.jax.jit(lambda t: t)(s.make("text")),
    "jit, wrong shardings": lambda s: s.jax.jit(s.double, in_shardings=([None, None],))(s.tree),
    "jit, wrong result shardings": lambda s: s.jax.jit(s.double, out_shardings=[None, None])(s.tree),
    "jit, escaped": lambda s: escaped(s, lambda t: s.jax.tree.leaves(t)[0]),
    "jit, as a condition": lambda s: s.jax.jit(lambda t: 1 if s.jax.tree.leaves(t)[0] else 2)(s.make(1.0)),
    "jit, to NumPy": lambda s: s.jax.jit(lambda t: np.asarray(s.jax.tree.leaves(t)[0]))(s.tree),
    "jit, donated twice": lambda s: donated_twice(s),
    "grad": lambda s: s.jax.grad(s.total)(s.tree),
    "grad in jit": lambda s: s.jax.jit(s.jax.grad(s.total))(s.tree),
    "grad of grad": lambda s: s.jax.grad(lambda t: s.total(s.jax.grad(s.total)(t)))(s.tree),
    "grad with aux": lambda s: s.jax.grad(lambda x: (s.jnp.sum(x), s.make(x)), has_aux=True)(s.x),
    "grad of a class": lambda s: s.jax.grad(s.double)(s.tree),
    "grad of integers": lambda s: s.jax.grad(s.total)(s.make(1)),
    "grad of integers, allowed": lambda s: s.jax.grad(s.total, allow_int=True)(s.make(s.jnp.arange(2))),
    "grad of text": lambda s: s.jax.grad(s.total)(s.make("text")),
    "value_and_grad": lambda s: s.jax.value_and_grad(s.total)(s.tree),
    "jacfwd": lambda s: s.jax.jacfwd(s.double)(s.tree),
    "jacrev": lambda s: s.jax.jacrev(s.double)(s.tree),
    "hessian": lambda s: s.jax.hessian(s.total)(s.tree),
    "jvp": lambda s: s.jax.jvp(s.double, (s.tree,), (s.tree,)),
    "jvp with aux": lambda s: s.jax.jvp(lambda t: (s.double(t), t), (s.tree,), (s.tree,), has_aux=True),
    "jvp, other trees": lambda s: s.jax.jvp(s.double, (s.tree,), (s.x,)),
    "jvp, other types": lambda s: s.jax.jvp(s.double, (s.tree,), (s.make(s.jnp.ones(3)),)),
    "vjp": lambda s: s.jax.vjp(s.double, s.tree)[1](s.tree),
    "vjp with aux": lambda s: s.jax.vjp(lambda t: (s.double(t), t), s.tree, has_aux=True)[1](s.tree),
    "vjp, another tree": lambda s: s.jax.vjp(s.double, s.tree)[1](s.x),
    "vjp, another type": lambda s: s.jax.vjp(s.double, s.tree)[1](s.make(s.jnp.ones(3))),
    "linearize": lambda s: s.jax.linearize(s.double, s.tree)[1](s.tree),
    "linearize, another tree": lambda s: s.jax.linearize(s.double, s.tree)[1](s.x),
    "linear_transpose": lambda s: s.jax.linear_transpose(s.double, s.tree)(s.tree),
    "linear_transpose, another tree": lambda s: s.jax.linear_transpose(s.double, s.tree)(s.x),
    "linear_transpose of a description": lambda s: s.jax.linear_transpose(
        s.double, s.make(s.jax.ShapeDtypeStruct((2,), s.jnp.float32))
    )(s.tree),
    "vmap": lambda s: s.jax.vmap(s.double)(s.tree),
    "vmap, a tree of axes": lambda s: s.jax.vmap(s.double, in_axes=(s.make(0),))(s.tree),
    "vmap, a tree of result axes": lambda s: s.jax.vmap(s.double, out_axes=s.make(0))(s.tree),
    "vmap, not mapped": lambda s: s.jax.vmap(lambda t, x: (t, x), in_axes=(None, 0), out_axes=(None, 0))(s.tree, s.x),
    "vmap, wrong axes": lambda s: s.jax.vmap(s.double, in_axes=([0, 0],))(s.tree),
    "vmap, wrong result axes": lambda s: s.jax.vmap(s.double, out_axes=[0, 0])(s.tree),
    "vmap, other sizes": lambda s: s.jax.vmap(lambda t, u: t)(s.tree, s.make(s.jnp.ones(3))),
    "vmap, of no axes": lambda s: s.jax.vmap(s.double)(s.make(1.0)),
    "vmap, axes out of range": lambda s: s.jax.vmap(s.double, in_axes=3)(s.tree),
    "pmap": lambda s: s.jax.pmap(s.double)(s.make(s.jnp.ones((1, 2)))),
    "scan, a carry": lambda s: s.lax.scan(lambda c, _: (s.double(c), None), s.tree, None, length=2),
    "scan, slices": lambda s: s.lax.scan(lambda c, t: (c, s.double(t)), 0.0, s.tree),
    "scan in jit": lambda s: s.jax.jit(lambda t: s.lax.scan(lambda c, x: (s.double(c), x), t, t))(s.tree),
    "scan in grad": lambda s: s.jax.grad(
        lambda t: s.total(s.lax.scan(lambda c, _: (s.double(c), c), t, None, length=2))
    )(s.tree),
    "scan, another carry": lambda s: s.lax.scan(lambda c, _: (s.other(c), None), s.tree, None, length=2),
    "scan, another type": lambda s: s.lax.scan(
        lambda c, _: (s.jax.tree.map(lambda a: a.astype(int), c), None), s.tree, None, length=2
    ),
    "scan, no pair": lambda s: s.lax.scan(lambda c, _: c, s.tree, None, length=2),
    "scan, other lengths": lambda s: s.lax.scan(lambda c, t: (c, t), 0.0, s.tree, length=5),
    "scan, without length": lambda s: s.lax.scan(lambda c, t: (c, t), 0.0, s.make(1.0)),
    "scan, not jitted": lambda s: not_jitted(s, lambda: s.lax.scan(lambda c, t: (s.double(c), t), s.tree, s.tree)),
    "lax.map": lambda s: s.lax.map(s.double, s.tree),
    "lax.map in batches": lambda s: s.lax.map(s.double, s.tree, batch_size=1),
    "associative_scan": lambda s: s.lax.associative_scan(lambda a, b: s.jax.tree.map(s.jnp.add, a, b), s.tree),
    "lax.reduce": lambda s: s.lax.reduce(
        s.tree, s.make(s.jnp.float32(0)), lambda a, b: s.jax.tree.map(s.jnp.add, a, b), (0,)
    ),
    "while_loop": lambda s: s.lax.while_loop(lambda t: s.total(t) < 30, s.double, s.tree),
    "while_loop in jvp": lambda s: s.jax.jvp(
        lambda t: s.lax.while_loop(lambda t: s.total(t) < 30, s.double, t), (s.tree,), (s.tree,)
    ),
    "while_loop, another carry": lambda s: s.lax.while_loop(lambda t: s.total(t) < 30, s.other, s.tree),
    "while_loop, another type": lambda s: s.lax.while_loop(
        lambda t: s.total(t) < 30, lambda t: s.jax.tree.map(lambda a: a[:1], t), s.tree
    ),
    "while_loop, no condition": lambda s: s.lax.while_loop(s.double, s.double, s.tree),
    "fori_loop": lambda s: s.lax.fori_loop(0, 2, lambda i, t: s.double(t), s.tree),
    "fori_loop, another carry": lambda s: s.lax.fori_loop(0, 2, lambda i, t: s.other(t), s.tree),
    "cond": lambda s: s.lax.cond(True, s.double, lambda t: t, s.tree),
    "cond in jit": lambda s: s.jax.jit(lambda p, t: s.lax.cond(p, s.double, lambda t: t, t))(True, s.tree),
    "cond in grad": lambda s: s.jax.grad(lambda t: s.total(s.lax.cond(s.total(t) > 0, s.double, lambda t: t, t)))(
        s.tree
    ),
    "cond, another tree": lambda s: s.lax.cond(True, s.double, s.other, s.tree),
    "cond, another type": lambda s: s.lax.cond(True, s.double, lambda t: s.jax.tree.map(lambda a: a[:1], t), s.tree),
    "cond, not jitted": lambda s: not_jitted(s, lambda: s.lax.cond(True, s.double, lambda t: t, s.tree)),
    "switch": lambda s: s.lax.switch(1, [s.double, s.double, lambda t: t], s.tree),
    "switch, another tree": lambda s: s.lax.switch(1, [s.double, s.double, s.other], s.tree),
    "checkpoint": lambda s: s.jax.checkpoint(s.double)(s.tree),
    "checkpoint in grad": lambda s: s.jax.grad(lambda t: s.total(s.jax.checkpoint(s.double)(t)))(s.tree),
    "checkpoint, a wrong leaf": lambda s: s.jax.checkpoint(s.double)(s.make(s.make)),
    "custom_jvp": lambda s: jvp_rule(s)(s.tree),
    "custom_jvp in jvp": lambda s: s.jax.jvp(jvp_rule(s), (s.tree,), (s.tree,)),
    "custom_jvp in grad": lambda s: s.jax.grad(lambda t: s.total(jvp_rule(s)(t)))(s.tree),
    "custom_jvp, another tree": lambda s: s.jax.jvp(
        with_jvp(s.jax, s.double, lambda p, t: (s.double(*p), s.other(*t))), (s.tree,), (s.tree,)
    ),
    "custom_jvp, another primal": lambda s: s.jax.jvp(
        with_jvp(s.jax, s.double, lambda p, t: (s.other(*p), s.double(*t))), (s.tree,), (s.tree,)
    ),
    "custom_jvp, another type": lambda s: s.jax.jvp(
        with_jvp(s.jax, s.double, lambda p, t: (s.double(*p), s.jax.tree.map(lambda a: a[:1], *t))),
        (s.tree,),
        (s.tree,),
    ),
    "custom_jvp, no pair": lambda s: s.jax.jvp(
        with_jvp(s.jax, s.double, lambda p, t: s.double(*p)), (s.tree,), (s.tree,)
    ),
    "custom_vjp": lambda s: vjp_rule(s)(s.tree),
    "custom_vjp in grad": lambda s: s.jax.grad(lambda t: s.total(vjp_rule(s)(t)))(s.tree),
    "custom_vjp, None for a cotangent": lambda s: s.jax.grad(
        lambda t: s.total(with_vjp(s.jax, s.double, lambda t: (s.double(t), None), lambda r, ct: (None,))(t))
    )(s.tree),
    "custom_vjp, None in a cotangent": lambda s: s.jax.grad(
        lambda t: s.total(with_vjp(s.jax, s.double, lambda t: (s.double(t), None), lambda r, ct: (s.make(None),))(t))
    )(s.tree),
    "custom_vjp, another cotangent": lambda s: s.jax.grad(
        lambda t: s.total(with_vjp(s.jax, s.double, lambda t: (s.double(t), t), lambda r, ct: (s.x,))(t))
    )(s.tree),
    "custom_vjp, another shape": lambda s: s.jax.grad(
        lambda t: s.total(
            with_vjp(s.jax, s.double, lambda t: (s.double(t), t), lambda r, ct: (s.jax.tree.map(lambda a: a[:1], ct),))(
                t
            )
        )
    )(s.tree),
    "custom_vjp, another result": lambda s: s.jax.grad(
        lambda t: s.total(with_vjp(s.jax, s.double, lambda t: (s.other(t), t), lambda r, ct: (ct,))(t))
    )(s.tree),
    "custom_vjp, no tuple": lambda s: s.jax.grad(
        lambda t: s.total(with_vjp(s.jax, s.double, lambda t: (s.double(t), t), lambda r, ct: ct)(t))
    )(s.tree),
    "custom_vjp, symbolic zeros": lambda s: s.jax.grad(lambda t: s.total(symbolic_rule(s)(t)))(s.tree),
    "custom_vjp in vmap": lambda s: s.jax.vmap(s.jax.grad(lambda t: s.total(vjp_rule(s)(t))))(s.tree),
    "custom_vjp, optimized": lambda s: s.jax.grad(lambda t: s.total(optimized_rule(s)(t)))(s.tree),
    "custom_gradient": lambda s: s.jax.grad(
        lambda t: s.total(s.jax.custom_gradient(lambda t: (s.double(t), lambda ct: (s.double(ct),)))(t))
    )(s.tree),
    "custom_vmap": lambda s: vmap_rule(s)(s.tree),
    "custom_vmap in vmap": lambda s: s.jax.vmap(vmap_rule(s))(s.tree),
    "custom_vmap in jvp": lambda s: s.jax.vmap(lambda t: s.jax.jvp(vmap_rule(s), (t,), (t,)))(s.tree),
    "custom_vmap, another tree": lambda s: s.jax.vmap(
        with_vmap(s.jax, s.double, lambda n, b, t: (s.double(t), [True]))
    )(s.tree),
    "sequential_vmap": lambda s: s.jax.vmap(part(s, "custom_batching").sequential_vmap(s.double))(s.tree),
    "closure_convert": lambda s: s.jax.closure_convert(lambda t: s.double(t), s.tree)[0](s.tree),
    "closure_convert, captured": lambda s: s.jax.jit(
        lambda t: (lambda f, consts: f(s.x, *consts))(*s.jax.closure_convert(lambda x: (x, s.double(t)), s.x))
    )(s.tree),
    "custom_linear_solve": lambda s: s.lax.custom_linear_solve(s.double, s.tree, lambda mv, b: b),
    "custom_root": lambda s: s.lax.custom_root(s.double, s.tree, lambda f, t: t, lambda g, y: y),
    "eval_shape": lambda s: s.jax.eval_shape(s.double, s.tree),
    "eval_shape of a description": lambda s: s.jax.eval_shape(
        s.double, s.make(s.jax.ShapeDtypeStruct((2,), s.jnp.float32))
    ),
    "make_jaxpr": lambda s: str(s.jax.make_jaxpr(s.double)(s.tree)),
    "make_jaxpr with shapes": lambda s: s.jax.make_jaxpr(s.double, return_shape=True)(s.tree)[1],
    "lower": lambda s: s.jax.jit(s.double).lower(s.tree).as_text(),
    "lower of a description": lambda s: (
        s.jax.jit(s.double).lower(s.make(s.jax.ShapeDtypeStruct((2,), s.jnp.float32))).as_text()
    ),
    "compile": lambda s: s.jax.jit(s.double).lower(s.tree).compile()(s.tree),
    "compiled, another tree": lambda s: s.jax.jit(s.double).lower(s.tree).compile()(s.x),
    "compiled, another type": lambda s: s.jax.jit(s.double).lower(s.tree).compile()(s.make(s.jnp.ones(3))),
    "compiled, two arguments": lambda s: s.jax.jit(s.double).lower(s.tree).compile()(s.tree, s.tree),
    "compiled, args_info": lambda s: s.jax.tree.leaves(s.jax.jit(s.double).lower(s.tree).args_info)[0].dtype,
    "compiled, input_shardings": lambda s: len(s.jax.jit(s.double).lower(s.tree).compile().input_shardings),
    "compiled, out_info": lambda s: s.jax.jit(s.double).lower(s.tree).out_info,
    "traced": lambda s: str(s.jax.jit(s.double).trace(s.tree).jaxpr),
    "composite": lambda s: s.lax.composite(s.double, "name")(s.tree),
    "named_call": lambda s: s.jax.named_call(s.double)(s.tree),
    "export": lambda s: part(s, "export").export(s.jax.jit(s.double))(s.tree).call(s.tree),
    "exported, another tree": lambda s: part(s, "export").export(s.jax.jit(s.double))(s.tree).call(s.x),
    "device_put": lambda s: s.jax.device_put(s.tree),
    "device_put to a device": lambda s: s.jax.device_put(s.tree, s.jax.devices()[0]),
    "device_put to a tree": lambda s: s.jax.device_put(s.tree, s.make(s.jax.devices()[0])),
    "device_put to another tree": lambda s: s.jax.device_put(s.tree, [s.jax.devices()[0]] * 2),
    "device_put of text": lambda s: s.jax.device_put(s.make("text")),
    "device_get": lambda s: s.jax.device_get(s.tree),
    "block_until_ready": lambda s: s.jax.block_until_ready(s.tree),
    "pure_callback": lambda s: s.jax.pure_callback(lambda t: s.jax.tree.map(np.asarray, t), s.tree, s.tree),
    "pure_callback in jit": lambda s: s.jax.jit(
        lambda t: s.jax.pure_callback(lambda t: s.jax.tree.map(np.asarray, t), s.jax.eval_shape(lambda: t), t)
    )(s.tree),
    "pure_callback, another tree": lambda s: s.jax.pure_callback(lambda t: np.ones(2, np.float32), s.tree, s.tree),
    "io_callback": lambda s: part(s, "experimental").io_callback(
        lambda t: s.jax.tree.map(np.asarray, t), s.tree, s.tree
    ),
    "debug.callback": lambda s: s.jax.debug.callback(lambda t: None, s.tree),
    "shard_map": lambda s: sharded(s.jax, s.double)(s.tree),
    "shard_map, a tree of specs": lambda s: sharded(s.jax, s.double, in_specs=(s.make(s.jax.P("x")),))(s.tree),
    "shard_map, result specs": lambda s: sharded(s.jax, s.double, out_specs=s.make(s.jax.P("x")))(s.tree),
    "shard_map, wrong specs": lambda s: sharded(s.jax, s.double, in_specs=([s.jax.P()] * 2,))(s.tree),
    "shard_map, wrong result specs": lambda s: sharded(s.jax, s.double, out_specs=[s.jax.P()] * 2)(s.tree),
    "shard_map, axes out of range": lambda s: sharded(s.jax, s.double, in_specs=s.jax.P(None, "x"))(s.tree),
    "shard_map, result axes out of range": lambda s: sharded(s.jax, s.double, out_specs=s.jax.P(None, "x"))(s.tree),
    "tree.map": lambda s: s.jax.tree.map(lambda a, b: a + b, s.tree, s.tree),
    "tree.map, another tree": lambda s: s.jax.tree.map(lambda a, b: a, s.make(s.tree), s.make([1])),
    "tree.map, another class": lambda s: s.jax.tree.map(lambda a, b: a, s.tree, [1]),
    "tree.map_with_path": lambda s: s.jax.tree.map_with_path(lambda p, a: a, s.tree),
    "tree.all": lambda s: s.jax.tree.all(s.make(True)),
    "tree.reduce": lambda s: s.jax.tree.reduce(lambda a, b: a + b, s.tree),
    "tree.leaves": lambda s: s.jax.tree.leaves(s.tree),
    "tree.structure": lambda s: s.jax.tree.structure(s.tree) == s.jax.tree.structure(s.make(1)),
    "tree.structure, printed": lambda s: str(s.jax.tree.structure((1, None, {"a": s.tree}))).count("*"),
    "tree.transpose": lambda s: s.jax.tree.transpose(
        s.jax.tree.structure(s.tree), s.jax.tree.structure([1]), s.make([s.x])
    ),
    "tree.transpose, inferred": lambda s: s.jax.tree.transpose(s.jax.tree.structure(s.tree), None, s.make([s.x])),
    "tree.transpose, another tree": lambda s: s.jax.tree.transpose(
        s.jax.tree.structure(s.tree), s.jax.tree.structure([1, 1]), s.make([s.x])
    ),
    "tree.flatten_with_path": lambda s: s.jax.tree_util.keystr(s.jax.tree.flatten_with_path(s.tree)[0][0][0]),
    "tree.broadcast": lambda s: s.jax.tree.broadcast(1, s.tree),
    "ravel_pytree": lambda s: (lambda flat, un: un(flat))(*part(s, "flatten_util").ravel_pytree(s.tree)),
    "Partial": lambda s: s.jax.jit(lambda f: f())(s.jax.tree_util.Partial(s.double, s.tree)),
    "jnp.add": lambda s: s.jnp.add(s.tree, 1),
    "checkify": lambda s: part(s, "experimental.checkify").checkify(s.double)(s.tree)[1],
    "optimization_barrier": lambda s: s.lax.optimization_barrier(s.tree),
    "with_sharding_constraint": lambda s: s.lax.with_sharding_constraint(
        s.tree, s.jax.sharding.SingleDeviceSharding(s.jax.devices()[0])
    ),
    "psum": lambda s: s.jax.vmap(lambda t: s.lax.psum(t, "i"), axis_name="i", out_axes=None)(s.tree),
    "disable_jit": lambda s: not_jitted(s, lambda: s.jax.jit(s.double)(s.tree)),
    "fori_loop, not jitted": lambda s: not_jitted(s, lambda: s.lax.fori_loop(0, 2, lambda i, t: s.double(t), s.tree)),
    "while_loop, not jitted": lambda s: not_jitted(
        s, lambda: s.lax.while_loop(lambda t: s.total(t) < 30, s.double, s.tree)
    ),
    "jet": lambda s: part(s, "experimental.jet").jet(lambda x: s.make(x), (s.x,), ([s.x],)),
    "run_state": lambda s: s.jax.jit(lambda t: s.jax.tree.map(lambda a: s.jax.new_ref(a)[...], t))(s.tree),
}


def part(s: Sides, name: str) -> Any:
    return importlib.import_module(f"{s.jax.__name__}.{name}")


def escaped(s: Sides, leaf: Callable) -> Any:
    kept = []
    s.jax.jit(lambda t: kept.append(leaf(t)))(s.tree)
    return kept[0] + 1


def donated_twice(s: Sides) -> Any:
    f = s.jax.jit(s.double, donate_argnums=0)
    f(s.tree)
    return f(s.tree)


def not_jitted(s: Sides, f: Callable) -> Any:
    with s.jax.disable_jit():
        return f()


def jvp_rule(s: Sides) -> Callable:
    return with_jvp(s.jax, s.double, lambda primals, tangents: (s.double(*primals), s.double(*tangents)))


def vjp_rule(s: Sides) -> Callable:
    return with_vjp(s.jax, s.double, lambda t: (s.double(t), t), lambda residual, ct: (s.double(ct),))


def symbolic_rule(s: Sides) -> Callable:
    g = s.jax.custom_vjp(s.double)
    g.defvjp(
        lambda t: (s.jax.tree.map(lambda p: p.value * 2, t), None), lambda r, ct: (s.double(ct),), symbolic_zeros=True
    )
    return g


def optimized_rule(s: Sides) -> Callable:
    g = s.jax.custom_vjp(s.double)
    g.defvjp(lambda t: (s.double(t), t), lambda r, ct: (s.double(ct),), optimize_remat=True)
    return g


def vmap_rule(s: Sides) -> Callable:
    return with_vmap(s.jax, s.double, lambda n, batched, t: (s.double(t), batched[0]))


def described(jax: Any, result: Any) -> str:
    if isinstance(result, str):
        return result.replace("minijax", "jax")
    leaves = []
    for x in jax.tree.leaves(result):
        is_array = hasattr(x, "shape") and hasattr(x, "dtype")
        is_described = is_array and not hasattr(x, "__array__")
        shown = "" if is_described else str(np.asarray(x).tolist()) if is_array else repr(x)
        leaves.append((str(getattr(x, "dtype", "")), shown.replace("minijax", "jax")))
    return str(leaves)


def ended(jax: Any, jnp: Any, lax: Any, operation: str, kind: str) -> tuple[str, set[str]]:
    """The result of an operation or the class of its error; and what the library called the constructor with."""
    log = Log(jax)
    make = CLASSES[kind](jax, log)

    def unseen(x):
        log.is_on = False
        made = make(x)
        log.is_on = True
        return made

    sides = Sides(jax, jnp, lax, unseen)
    try:
        end = described(jax, TREES[operation](sides))
    except Exception as error:
        end = type(error).__name__
    return end, log.kinds


@pytest.mark.parametrize("operation", TREES)
def test_operations_take_trees_of_users_classes(operation):
    # jax asserts there that the None of a named tuple has a tangent.
    kinds = [kind for kind in CLASSES if (operation, kind) != ("custom_vmap in jvp", "namedtuple")]
    same(lambda jax, jnp, lax: [ended(jax, jnp, lax, operation, kind)[0] for kind in kinds])


# What constructors are called with besides arrays and tracers: what the program, or a rule of its own, asks for.
GIVEN = {
    "description": {
        "scan, another carry", "scan, no pair", "while_loop, another carry", "fori_loop, another carry",
        "cond, another tree", "cond, another type", "switch, another tree", "eval_shape", "eval_shape of a description",
        "make_jaxpr with shapes", "compiled, args_info", "compiled, out_info", "pure_callback in jit",
    },
    "bool": {"custom_vmap in vmap", "custom_vmap in jvp", "custom_vmap, another tree", "sequential_vmap"},
    "int": {"exported, another tree", "tree.broadcast"},
    "of the library": {"custom_vjp, symbolic zeros", "compiled, input_shardings"},
    "object": {"custom_vjp, another shape"},
    "NoneType": {"jacrev"},
    "list": {"jet"},
}  # fmt: skip


@pytest.mark.parametrize("operation", TREES)
def test_constructors_of_users_get_values_only(operation):
    of_nested = {"Node", "Keyed", "Data", "Pair", "Mapping"} if operation in ("jacfwd", "jacrev", "hessian") else set()
    given = {"array", "tracer", "numpy"} | {k for k, those in GIVEN.items() if operation in those}
    kinds = {kind: ended(minijax, minijax.numpy, minijax.lax, operation, kind)[1] for kind in CLASSES}
    assert {kind: found - of_nested - given for kind, found in kinds.items()} == dict.fromkeys(CLASSES, set())
