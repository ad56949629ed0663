"""A program that uses a little of many modules: type checkers report nothing."""

import dataclasses
import functools
from typing import Any

import numpy as np

import minijax as jax
import minijax.experimental.sparse as sparse
import minijax.lax as lax
import minijax.scipy.optimize
from minijax import numpy as jnp
from minijax.experimental import checkify
from minijax.extend.core import Primitive
from minijax.flatten_util import ravel_pytree
from minijax.interpreters import ad, batching
from minijax.nn import initializers
from minijax.scipy.linalg import solve_triangular
from minijax.scipy.stats import norm
from minijax.tree_util import keystr, register_dataclass, register_pytree_node_class, tree_flatten, tree_map_with_path


@register_pytree_node_class
class Pair:
    def __init__(self, a: jax.Array, b: jax.Array):
        self.a, self.b = a, b

    def tree_flatten(self) -> tuple[tuple[jax.Array, jax.Array], None]:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[jax.Array, jax.Array]) -> "Pair":
        return cls(*children)


@functools.partial(register_dataclass, data_fields=["weights"], meta_fields=["depth"])
@dataclasses.dataclass
class Model:
    weights: jax.Array
    depth: int

    @functools.partial(jax.jit, static_argnums=(2,))
    def __call__(self, x: jax.Array, n: int) -> jax.Array:
        return x * self.weights * n

    @jax.jit
    def doubled(self, x: jax.Array) -> jax.Array:
        return x * 2


def trees() -> None:
    leaves, treedef = tree_flatten(Pair(jnp.ones(2), jnp.zeros(2)))
    print(treedef.unflatten(leaves), treedef.num_leaves, treedef.children())
    flat, unravel = ravel_pytree({"a": jnp.ones(2)})
    print(unravel(flat * 2), tree_map_with_path(lambda path, x: (keystr(path), x), {"a": 1}))
    model = Model(jnp.ones(2), depth=3)
    print(model(jnp.ones(2), 2).shape, model.doubled(jnp.ones(2)).sum(), dataclasses.replace(model, depth=2).depth)
    glorot = initializers.glorot_uniform()
    print(glorot(jax.random.key(0), (3, 4), jnp.float32), initializers.normal(0.1)(jax.random.key(1), (3,)))


def checked(x: jax.Array) -> jax.Array:
    checkify.check(x.sum() > 0, "must be positive, got {x}", x=x)
    return jnp.log(x)


def libraries() -> None:
    error, logarithm = checkify.checkify(checked, errors=checkify.float_checks)(jnp.ones(3))
    error.throw()
    matrix = sparse.BCOO.fromdense(jnp.eye(3))
    print(logarithm, matrix @ jnp.ones(3), matrix.nse, norm.logpdf(0.5))
    print(solve_triangular(jnp.eye(3), jnp.ones(3), lower=True))
    found = minijax.scipy.optimize.minimize(lambda v: (v**2).sum(), jnp.ones(2), method="BFGS")
    print(found.x, found.success)


def primitives() -> None:
    triple_p = Primitive("triple")
    triple_p.def_impl(lambda x: 3 * x)
    triple_p.def_abstract_eval(lambda x: x)
    ad.defjvp(triple_p, lambda g, x: triple_p.bind(g))
    batching.defvectorized(triple_p)
    value = triple_p.bind(jnp.ones(2))
    if isinstance(value, jax.core.Tracer):
        print(value.aval, value.shape, value + 1)


def host(x: Any) -> np.ndarray:
    return np.sin(x)


def numbers() -> None:
    x = np.ones(3)
    print(jax.pure_callback(host, jax.ShapeDtypeStruct((3,), jnp.float32), jnp.ones(3)))
    with jax.disable_jit(), jax.transfer_guard("allow"):
        print(jnp.r_[1:3, 4], jnp.mgrid[0:3, 0:2], jnp.asarray(x) * x, jnp.dot(x, x) + np.float32(1))
    single, k1, k2 = jnp.float32(3.0), *jax.random.split(jax.random.key(0))
    print(jax.devices()[0].platform, jax.local_device_count(), jax.process_index(), k1, k2, jax.typeof(single).sharding)
    print(jax.vmap(lambda x, y: x * y, in_axes=(0, None), out_axes=0)(jnp.ones(3), 2.0))
    print(jnp.finfo(jnp.float32).eps, jnp.iinfo(jnp.int8).max, jnp.issubdtype(single.dtype, jnp.floating))
    print(jax.nn.one_hot(jnp.arange(3), 4), jax.nn.gelu(single, approximate=False), jnp.result_type(1, single))
    values, places = lax.top_k(jnp.ones(5), 2)
    image, kernel = jnp.ones((1, 1, 8, 8)), jnp.ones((1, 1, 3, 3))
    layout = ("NCHW", "OIHW", "NCHW")
    print(values + places, lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=layout))
    product = lax.dot_general(
        jnp.ones((2, 3)), jnp.ones((3, 2)), (((1,), (0,)), ((), ())), precision=lax.Precision.HIGH
    )
    unique, inverse = jnp.unique(jnp.ones(3), return_inverse=True)
    print(product, unique, inverse, jnp.where(jnp.ones(3) > 0)[0], functools.reduce(jnp.add, [single, single]))
    print(lax.switch(0, [lambda v: v, lambda v: v + 1], single), lax.map(lambda v: v + 1, jnp.ones(3)))
    print(lax.associative_scan(jnp.add, jnp.ones(3)), jax.tree.map(jnp.add, single, single))
    box = jax.new_ref(jnp.ones(3))
    box[0] = 5.0
    eigenvalues, vectors = jnp.linalg.eigh(jnp.eye(2))
    sign, size = jnp.linalg.slogdet(jnp.eye(2))
    print(box[...], box.shape, eigenvalues, vectors, sign, size)


if __name__ == "__main__":
    trees()
    libraries()
    primitives()
    numbers()
