"""Arrays, shardings, programs, functions, trees and tracers as shown by treescope."""

import base64
import functools
import re
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import treescope
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((1, 1), ("x", "y"))
x = jnp.arange(6.0).reshape(2, 3)
cut = jax.device_put(x, NamedSharding(mesh, P("x", "y")))


def plain(text):
    """The text without addresses, and with what is compressed in it."""
    for _ in range(2):
        text = re.sub(r"eN[a-z][A-Za-z0-9+/=]{60,}", lambda m: zlib.decompress(base64.b64decode(m[0])).decode(), text)
    return re.sub(r"Defined at.*|\b0x[0-9a-f]+|[0-9a-f]{32}|(?<=id=)\d+", "", text)


def show(value):
    for roundtrip in (False, True):
        print(plain(treescope.render_to_text(value, roundtrip_mode=roundtrip)))
    return x


VALUES = [
    x, jnp.arange(3), jnp.float32(3), jnp.asarray(2.0), jnp.ones(3, jnp.bfloat16), jnp.zeros((0, 3)),
    jnp.arange(10000.0).reshape(100, 100), jax.random.key(0), jax.random.split(jax.random.key(1), 3), cut,
    P("x", None, ("y",)), P(P.UNCONSTRAINED), NamedSharding(mesh, P("x")), mesh, mesh.abstract_mesh, AxisType.Auto,
    jax.ShapeDtypeStruct((2,), jnp.float32), jax.typeof(x), jnp.float32, jnp.dtype("bfloat16"), jax.random.key(0).dtype,
    {"a": x, "b": [1, (2, None)]}, jax.tree_util.Partial(np.add, x), functools.partial(np.add, x),
    jax.tree.structure({"a": 1, "b": [1, 2]}), jax.tree_util.tree_flatten_with_path({"a": [1]})[0][0][0],
    jax.jit(np.add), jax.custom_jvp(np.add), jax.custom_vjp(np.add), jnp.sin, jnp.add, jax.lax.add, jax.nn.relu,
    jax.lax.scan, jax.random.normal, jnp.linalg.norm, jax.jit, jax.core.Tracer, NamedSharding, jnp, jax.lax, jax,
    jax.lax.Precision.HIGH, jax.lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)), jax.new_ref(x), cut.format,
    jnp.linalg.qr(jnp.eye(2)), jax.jit(jnp.sin).lower(x), jax.jit(jnp.sin).lower(x).args_info,
]  # fmt: skip
for value in VALUES:
    show(value)

program = jax.make_jaxpr(lambda a: jax.lax.scan(lambda c, _: (c * a, c), a, None, 3))(1.0)
eqn = jax.make_jaxpr(lambda a: a + 1.0)(1.0).eqns[0]
for value in (program, program.jaxpr, program.eqns[0].params, eqn, *eqn.invars):
    show(value)

for transform in (jax.jit, jax.vmap, jax.make_jaxpr, lambda f: jax.grad(lambda y: f(y).sum())):
    transform(lambda value: show(value))(x)

for picture in (
    treescope.render_array(x), treescope.render_array(jnp.array([[jnp.nan, jnp.inf]])), treescope.render_array(x > 2),
    treescope.render_array_sharding(cut),
):  # fmt: skip
    print(plain(treescope.render_to_html(picture)))
