"""Programs as drawn by graph viewers: jpviz in dot, jaxviz in HTML."""

import re

import jax
import jax.numpy as jnp
import jaxviz
import jpviz
from jax import lax

x = jnp.ones((3, 3))


@jax.jit
def inner(x):
    return jnp.sin(x) * 2


def scoped(x):
    with jax.named_scope("block"):
        return jnp.tanh(x @ x)


FUNCTIONS = [
    lambda x: inner(x) + 1,
    lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    lambda x: lax.scan(lambda c, y: (c * y, c + y), x[0], x),
    lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, x),
    jax.grad(lambda x: jax.nn.relu(x).sum()),
    jax.checkpoint(jnp.sin),
    lambda x: lax.top_k(x, 2)[0],
    scoped,
]


def plain(text):
    """The text with its identities counted."""
    seen = {}
    return re.sub(r"\d{12,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", lambda m: seen.setdefault(m[0], f"N{len(seen)}"), text)  # fmt: skip


for f in FUNCTIONS:
    for collapse in (True, False):
        print(plain(jpviz.draw(f, collapse_primitives=collapse)(x).to_string()))
    for view in ("global", "per_device"):
        print(plain(jaxviz.trace_model(f, x, view=view, return_html=True, show_constants=True))[-60000:])
