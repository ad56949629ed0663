# %% [markdown]
# # Kernels
#
# A kernel is a Python function that says what one core does with one block of the data. `jax.experimental.pallas` runs it over a
# grid. On a CPU the kernel runs as operations of XLA, so that it can be written and tested on a laptop; the same function is
# lowered to Triton for GPUs and to Mosaic for TPUs.

# %%
import minijax as jax
import minijax.numpy as jnp
import numpy as np
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu, triton as plt

# %% [markdown]
# ## A kernel of references
#
# The kernel gets references to memory: those of its operands, then those of its results. It reads and writes them, and returns
# nothing. `interpret=True` says that it is to run as operations of XLA.


# %%
def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


x = jnp.arange(8.0)
add = pl.pallas_call(add_kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)
add(x, 10 * x)

# %% [markdown]
# A call is one operation, whose parameter is the kernel as a jaxpr of references.

# %%
jax.make_jaxpr(add)(x, x)

# %% [markdown]
# ## Grids and blocks
#
# `grid=4` runs the kernel four times. A `BlockSpec` says which block of an array a step gets: here two elements, of which the
# index map returns the number. `pl.program_id(0)` is the number of the step.


# %%
def scale_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id(0)


pairs = pl.BlockSpec((2,), lambda i: (i,))
scale = pl.pallas_call(
    scale_kernel,
    jax.ShapeDtypeStruct((8,), jnp.float32),
    grid=4,
    in_specs=[pairs],
    out_specs=pairs,
    interpret=True,
)
scale(jnp.ones(8))

# %% [markdown]
# ## A product of matrices
#
# The last axis of the grid is the fastest. For each block of the result its steps `k` follow each other, so the block stays in
# fast memory, and the kernel adds to it. `pl.when` runs a function under a condition.


# %%
def matmul_kernel(a_ref, b_ref, o_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += a_ref[...] @ b_ref[...]


def matmul(a, b, block=128):
    (m, k), n = a.shape, b.shape[1]
    cut = lambda index: pl.BlockSpec((block, block), index)
    return pl.pallas_call(
        matmul_kernel,
        jax.ShapeDtypeStruct((m, n), jnp.float32),
        grid=(pl.cdiv(m, block), pl.cdiv(n, block), pl.cdiv(k, block)),
        in_specs=[cut(lambda i, j, k: (i, k)), cut(lambda i, j, k: (k, j))],
        out_specs=cut(lambda i, j, k: (i, j)),
        interpret=True,
    )(a, b)


a, b = (
    jax.random.normal(jax.random.key(0), (500, 256)),
    jax.random.normal(jax.random.key(1), (256, 384)),
)
bool(jnp.allclose(matmul(a, b), a @ b, atol=1e-3))

# %% [markdown]
# `minijax.kernels.visualize` walks through the grid: which block is read and written in each step, what is kept from step to
# step, what reaches beyond the end of an array (500 is no multiple of 128), and how many bytes are moved.

# %%
import minijax.kernels

picture = minijax.kernels.visualize(matmul, a, b)
print(picture)

# %%
picture

# %% [markdown]
# ## Attention without the matrix of all scores
#
# Attention is `softmax(q kᵀ) v`. The kernel below goes over blocks of keys, and keeps for each query the largest score so far, the
# sum of the weights, and the weighted sum of the values. When a larger score is found, the sums are scaled. This is the algorithm
# of Dao et al., *FlashAttention* (2022).


# %%
def attention_kernel(q_ref, k_ref, v_ref, o_ref, *, keys):
    q = q_ref[...]
    rows, depth = q.shape

    def body(j, carry):
        acc, top, total = carry
        at = pl.ds(j * keys, keys)
        scores = q @ k_ref[at, :].T / np.sqrt(depth)
        new = jnp.maximum(top, scores.max(axis=1))
        weights, keep = jnp.exp(scores - new[:, None]), jnp.exp(top - new)
        return (
            acc * keep[:, None] + weights @ v_ref[at, :],
            new,
            total * keep + weights.sum(axis=1),
        )

    first = jnp.zeros((rows, depth)), jnp.full(rows, -jnp.inf), jnp.zeros(rows)
    acc, _, total = jax.lax.fori_loop(0, k_ref.shape[0] // keys, body, first)
    o_ref[...] = acc / total[:, None]


def attention(q, k, v, rows=64, keys=64, **options):
    length, depth = q.shape
    some, whole = (
        pl.BlockSpec((rows, depth), lambda i: (i, 0)),
        pl.BlockSpec((length, depth), lambda i: (0, 0)),
    )
    kernel = lambda *refs: attention_kernel(*refs, keys=keys)
    shape = jax.ShapeDtypeStruct((length, depth), jnp.float32)
    call = pl.pallas_call(
        kernel,
        shape,
        grid=length // rows,
        in_specs=[some, whole, whole],
        out_specs=some,
        **options,
    )
    return call(q, k, v)


interpreted = lambda q, k, v: attention(q, k, v, interpret=True)
plain = lambda q, k, v: jax.nn.softmax(q @ k.T / np.sqrt(q.shape[1])) @ v
q, k, v = jax.random.normal(jax.random.key(2), (3, 256, 64))
bool(jnp.allclose(interpreted(q, k, v), plain(q, k, v), atol=1e-5))

# %% [markdown]
# ## Transformations
#
# `vmap` makes the batch an axis of the grid; here one for the heads. `grad` differentiates the kernel.

# %%
heads = jnp.stack([q, k, v, q + k])
batched = jax.vmap(interpreted)
bool(
    jnp.allclose(
        batched(heads, heads, heads), jax.vmap(plain)(heads, heads, heads), atol=1e-5
    )
)

# %%
slopes = jax.grad(lambda q: interpreted(q, k, v).sum())(q)
bool(jnp.allclose(slopes, jax.grad(lambda q: plain(q, k, v).sum())(q), atol=1e-4))

# %% [markdown]
# ## The same kernel for GPUs and TPUs
#
# Lowering needs no such device. For `cuda` the module holds a call of Triton, for `tpu` one of Mosaic; on a machine that has the
# device, the same function runs there.


# %%
def lowered_for(platform, params):
    run = jax.jit(lambda q, k, v: attention(q, k, v, compiler_params=params))
    return run.trace(q, k, v).lower(lowering_platforms=(platform,)).as_text()


for platform, params in (
    ("cuda", plt.CompilerParams(num_warps=8)),
    ("tpu", pltpu.CompilerParams()),
):
    target = [
        line.split("custom_call @")[1].split("(")[0]
        for line in lowered_for(platform, params).splitlines()
        if "custom_call @" in line
    ]
    print(platform, target)
