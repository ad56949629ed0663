"""Operations on views print the trees of their arguments as in jax."""

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

pytestmark = pytest.mark.oracle

ATOMICS = {
    "window": lambda m, x, o: m.plt.atomic_add(o, (0, m.pl.ds(0, 4)), x[0, :4]),
    "strided": lambda m, x, o: m.plt.atomic_add(o, (1, m.pl.ds(0, 4, 2)), x[0, :4]),
    "slice": lambda m, x, o: m.plt.atomic_xchg(o, (1, slice(2, 6)), x[0, :4]),
    "whole": lambda m, x, o: m.plt.atomic_add(o, (), x[...]),
    "all": lambda m, x, o: m.plt.atomic_add(o, (...,), x[...]),
    "element": lambda m, x, o: m.plt.atomic_max(o, (0, 1), x[0, 0]),
    "row": lambda m, x, o: m.plt.atomic_min(o, 1, x[0]),
    "masked": lambda m, x, o: m.plt.atomic_add(o, (x[0, 0], m.pl.ds(x[0, 1], 4)), x[0, :4], mask=x[1, :4] > 0),
    "gathered": lambda m, x, o: m.plt.atomic_add(o, (x[0], x[1]), x[0]),
    "view": lambda m, x, o: m.plt.atomic_add(o.at[1], (m.pl.ds(0, 4),), x[0, :4]),
}
SEMAPHORES = {
    "one": ((), lambda x, s: s),
    "of_an_array": ((3,), lambda x, s: s.at[1]),
    "at_a_place": ((3,), lambda x, s: s.at[x[0]]),
    "twice": ((2, 3), lambda x, s: s.at[0].at[x[0]]),
}


class Modules:
    """Pallas' modules of one side."""

    def __init__(self, **modules):
        self.__dict__.update(modules)


@pytest.mark.parametrize("name", ATOMICS)
def test_atomic_operations(name):
    def program(jax, jnp, pl, plt):
        def kernel(x, o):
            ATOMICS[name](Modules(pl=pl, plt=plt), x, o)

        return pl.pallas_call(kernel, jax.ShapeDtypeStruct((2, 8), jnp.int32))

    compare.same_jaxpr(program, np.zeros((2, 8), np.int32))


@pytest.mark.parametrize("name", SEMAPHORES)
def test_reads_of_semaphores(name):
    shape, view = SEMAPHORES[name]

    def program(jax, jnp, pl, pltpu):
        def kernel(x, o, s):
            o[0] = pl.semaphore_read(view(x, s))

        scratch = [pltpu.SemaphoreType.REGULAR(shape) if shape else pltpu.SemaphoreType.REGULAR]
        return pl.pallas_call(kernel, jax.ShapeDtypeStruct((8,), jnp.int32), scratch_shapes=scratch)

    compare.same_jaxpr(program, np.zeros(8, np.int32))


GLOBALS = {
    "semaphore": lambda m: m.SemaphoreType.REGULAR,
    "semaphores": lambda m: m.SemaphoreType.REGULAR((2,)),
    "vector": lambda m: m.VMEM((8,), np.float32),
}


@pytest.mark.parametrize("name", GLOBALS)
def test_memory_that_outlives_the_kernel(name):
    def program(jax, jnp, pl, pltpu):
        def kernel(x, o):
            ref = pl.get_global(GLOBALS[name](pltpu))
            if name == "vector":
                ref[...] = x[...]
            else:
                pl.semaphore_signal(ref if name == "semaphore" else ref.at[0], 1)

        return pl.pallas_call(kernel, jax.ShapeDtypeStruct((8,), jnp.float32))

    compare.same_jaxpr(program, np.zeros(8, np.float32))


def test_memory_that_outlives_the_kernel_is_not_interpreted():
    def kernel(x, o):
        pl.get_global(pltpu.VMEM((8,), jnp.float32))[...] = x[...]

    call = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8,), jnp.float32), interpret=True)
    for f in (lambda: call(jnp.zeros(8)), lambda: pl.get_global(pltpu.VMEM((8,), jnp.float32))):
        with pytest.raises(NotImplementedError, match="only where Mosaic compiles a kernel for GPUs"):
            f()


def test_exchanges_with_a_condition():
    def program(jax, jnp, pl, plt):
        def kernel(x, o):
            plt.atomic_cas(o, x[...], x[...] + 1)

        return pl.pallas_call(kernel, jax.ShapeDtypeStruct((), jnp.int32))

    compare.same_jaxpr(program, np.int32(1))
