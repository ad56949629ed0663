"""The group of Pallas' kernels where they are interpreted: tracing, lowering, running, beside XLA's own."""

import gc
import importlib

from measure import clock, group, guard, jax, jnp, options, put, timed, turn

pl = None  # imported by the group, so that the others are measured without it


def block(*args):
    return pl.BlockSpec(*args)


def doubled(rows):
    """Twice an array, in blocks of 8 rows."""
    x, spec = jnp.ones((rows, 1024)), block((8, 1024), lambda i: (i, 0))

    def kernel(x, o):
        o[...] = x[...] * 2

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = pl.pallas_call(kernel, shape, grid=(rows // 8,), in_specs=[spec], out_specs=spec, interpret=True)
    return call, (x,), lambda x: x * 2


def product(side, n=1024):
    """A product of matrices in square blocks, accumulated in the result."""

    def kernel(a, b, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += jnp.dot(a[...], b[...])

    specs = [block((side, side), lambda i, j, k: (i, k)), block((side, side), lambda i, j, k: (k, j))]
    out = block((side, side), lambda i, j, k: (i, j))
    shape, grid = jax.ShapeDtypeStruct((n, n), jnp.float32), (n // side,) * 3
    call = pl.pallas_call(kernel, shape, grid=grid, in_specs=specs, out_specs=out, interpret=True)
    return call, (jnp.ones((n, n)), jnp.ones((n, n))), jnp.dot


def attention(heads=4, length=1024, depth=64, rows=128):
    """Attention without the matrix of all scores, in blocks of queries."""

    def kernel(q, k, v, o):
        queries = q[...]

        def body(j, carry):
            acc, top, total = carry
            scores = queries @ k[pl.ds(j * rows, rows), :].T
            new = jnp.maximum(top, scores.max(-1))
            weights, keep = jnp.exp(scores - new[:, None]), jnp.exp(top - new)
            acc = acc * keep[:, None] + weights @ v[pl.ds(j * rows, rows), :]
            return acc, new, total * keep + weights.sum(-1)

        first = jnp.zeros((rows, depth)), jnp.full((rows,), -jnp.inf), jnp.zeros((rows,))
        acc, _, total = jax.lax.fori_loop(0, length // rows, body, first)
        o[...] = acc / total[:, None]

    of_rows, whole = (
        block((None, rows, depth), lambda h, i: (h, i, 0)),
        block((None, length, depth), lambda h, i: (h, 0, 0)),
    )
    shape = jax.ShapeDtypeStruct((heads, length, depth), jnp.float32)
    call = pl.pallas_call(
        kernel, shape, grid=(heads, length // rows), in_specs=[of_rows, whole, whole], out_specs=of_rows, interpret=True
    )
    args = tuple(jax.random.normal(k, shape.shape) for k in jax.random.split(jax.random.key(0), 3))
    own = lambda q, k, v: jax.nn.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v
    return call, args, own


def kernel_rows(name, make):
    """Rows of a kernel: tracing, lowering, running, and the time of XLA's own program."""

    def measure():
        traces, lowerings = [], []
        for _ in range(3 if options.quick else 6):
            call, args, own = make()
            gc.collect()
            turn()
            start = clock()
            traced = jax.jit(lambda *xs, call=call: call(*xs)).trace(*args)
            then = clock()
            lowered = traced.lower()
            traces.append(then - start)
            lowerings.append(clock() - then)
        put(f"{name}/trace", traces[1:], "ms")
        put(f"{name}/lower", lowerings[1:], "ms")
        kernel, plain = lowered.compile(), jax.jit(own).lower(*args).compile()
        timed(f"{name}/run", lambda: kernel(*args), each=True, unit="ms")
        timed(f"{name}/ref_of_xla", lambda: plain(*args), each=True, unit="ms")

    guard(name, measure)


@group
def pallas():
    global pl
    pl = importlib.import_module(f"{options.impl}.experimental.pallas")
    kernel_rows("pallas/double_2048", lambda: doubled(2048))
    kernel_rows("pallas/matmul_128", lambda: product(128))
    kernel_rows("pallas/matmul_256", lambda: product(256))
    kernel_rows("pallas/attention", attention)
