"""Kernels for TPUs that draw random numbers by the core's generator, added to the table of `mosaic_kernels.py`."""

from collections.abc import Callable

from pallas.mosaic_kernels import KERNELS, XU, F, I, U, X, call, kernel

# A kernel in a line.
# fmt: off

KEY = ((2,), U)


def keyed(name: str, draw: Callable, result=None, **options) -> None:
    """Adds a kernel that gets a key in SMEM and stores what `draw(modules, key)` returns."""

    def make(m):
        def body(key, o):
            o[...] = draw(m, key[...]).astype(o.dtype)

        spec = m.pl.BlockSpec(memory_space=m.pltpu.SMEM)
        inner = m.pl.pallas_call(body, out_shape=m.jax.ShapeDtypeStruct(*(result or X)), in_specs=[spec], **options)
        return (lambda words: inner(m.pltpu.to_pallas_key(m.jax.random.wrap_key_data(words)))), KEY

    KERNELS[f"key_{name}"] = make


keyed("bits", lambda m, key: m.jax.random.bits(key, (8, 128)), XU)
keyed("uniform", lambda m, key: m.jax.random.uniform(key, (8, 128)))
keyed("normal", lambda m, key: m.jax.random.normal(key, (8, 128)))
keyed("bernoulli", lambda m, key: m.jax.random.bernoulli(key, 0.3, (8, 128)))
keyed("fold_in", lambda m, key: m.jax.random.uniform(m.jax.random.fold_in(key, 3), (8, 128)))
keyed("fold_in_step", lambda m, key: m.jax.random.bits(m.jax.random.fold_in(key, m.pl.program_id(0)), (8, 128)), XU, grid=(2,))
keyed("tiles", lambda m, key: m.pltpu.sample_block(m.jax.random.uniform, key, block_size=(16, 256), tile_size=(8, 128), total_size=(32, 512), block_index=(1, 1)), ((16, 256), F))
keyed("steps", lambda m, key: m.pltpu.sample_block(m.jax.random.normal, key, block_size=(8, 128), tile_size=(8, 128), total_size=(16, 256), block_index=(m.pl.program_id(0), m.pl.program_id(1))), grid=(2, 2))
keyed("in_loop", lambda m, key: m.lax.fori_loop(0, 3, lambda i, a: a + m.jax.random.uniform(m.jax.random.fold_in(key, i), (8, 128)), m.jnp.zeros((8, 128))))
keyed("cond", lambda m, key: m.lax.cond(m.pl.program_id(0)==0, lambda k: m.jax.random.uniform(k, (8,128)), lambda k: m.jnp.zeros((8,128)), key), grid=(2,))


def drawn(name: str, draw: Callable, result=None) -> None:
    """Adds a kernel that stores what `draw(modules)` returns, by a generator that it seeds by its operand."""

    def make(m):
        def body(seed, o):
            m.pltpu.prng_seed(seed[0])
            o[...] = draw(m).astype(o.dtype)

        spec = m.pl.BlockSpec(memory_space=m.pltpu.SMEM)
        return call(m, body, ((1,), I), out=result or X, in_specs=[spec])

    KERNELS[f"stateful_{name}"] = make


drawn("bits", lambda m: m.pltpu.stateful_bits((8, 128)), XU)
drawn("uniform", lambda m: m.pltpu.stateful_uniform((8, 128), minval=1.0, maxval=3.0))
drawn("normal", lambda m: m.pltpu.stateful_normal((8, 128)))
drawn("bernoulli", lambda m: m.pltpu.stateful_bernoulli(0.3, (8, 128)))
# fmt: on


@kernel
def key_prefetched(m):
    def body(key, x, o):
        o[...] = m.jax.random.bits(key[...], (8, 128)) + x[...]

    block = m.pl.BlockSpec((8, 128), lambda i, key: (0, i))
    spec = m.pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[block], out_specs=block)
    inner = m.pl.pallas_call(body, m.jax.ShapeDtypeStruct((8, 256), m.jnp.uint32), grid_spec=spec)
    return lambda words, x: inner(m.pltpu.to_pallas_key(m.jax.random.wrap_key_data(words)), x), KEY, ((8, 256), U)


@kernel
def key_mapped(m):
    def body(key, o):
        o[...] = m.jax.random.bits(key[...], (8, 128))

    smem = m.pl.BlockSpec(memory_space=m.pltpu.SMEM)
    f = m.pl.pallas_call(body, m.jax.ShapeDtypeStruct((8, 128), m.jnp.uint32), in_specs=[smem])
    return lambda words: m.jax.vmap(f)(m.jax.random.wrap_key_data(words, impl="pallas_tpu")), ((4, 1, 2), U)
