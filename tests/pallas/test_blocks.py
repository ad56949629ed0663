"""Blocks at the edges of arrays, and what of a kernel is dropped."""

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

pytestmark = pytest.mark.oracle
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("padding", [(1, 0), (0, 1), (1, 2), (2, 0)])
def test_results_lose_the_padding_in_front_of_them(padding):
    def padded(jax, jnp, pl):
        def kernel(x, o):
            o[...] = x[...] + pl.program_id(0)

        spec = pl.BlockSpec((pl.Element(2, padding), 4), lambda i: (i, 0))
        rows = 3 + sum(padding) - 1
        call = pl.pallas_call(kernel, jax.ShapeDtypeStruct(X.shape, X.dtype), grid=rows, in_specs=[spec], out_specs=spec,
                              interpret=True)  # fmt: skip
        return call(X)

    compare.same(padded)


def test_a_result_that_begins_as_a_padded_operand_is_padded_like_it():
    def aliased(jax, jnp, pl):
        def kernel(x, o):
            @pl.when(pl.program_id(0) > 0)
            def _():
                o[...] = o[...] + 1

        spec = pl.BlockSpec((2, 4), lambda i: (i, 0))
        call = pl.pallas_call(kernel, jax.ShapeDtypeStruct(X.shape, X.dtype), grid=2, in_specs=[spec], out_specs=spec,
                              input_output_aliases={0: 0}, interpret=True)  # fmt: skip
        return call(X)

    compare.same(aliased)


def in_loops(pl, lax, jnp, a, o):
    lax.fori_loop(0, 3, lambda i, c: (a[i], c + 1)[1], 0)

    @pl.loop(0, 2)
    def _(i):
        a[i]
        o[i] = 1.0


def in_branches(pl, lax, jnp, a, o):
    before = a[0]

    @pl.when(before > 1)
    def _():
        jnp.sin(a[1]) + a[2]
        o[0] = 1.0

    lax.cond(before > 2, lambda: a[1], lambda: a[2])


def in_scopes(pl, lax, jnp, a, o, pltpu):
    def scoped(t):
        t[0] = a[0] * 2
        return t[0]

    pl.run_scoped(scoped, pltpu.VMEM((1,), jnp.float32))
    value = a[1]

    def of_values(t):
        t[0] = value
        return t[0]

    pl.run_scoped(of_values, pltpu.VMEM((1,), jnp.float32))
    o[0] = 1.0


@pytest.mark.parametrize("body", [in_loops, in_branches, in_scopes])
def test_reads_whose_values_are_not_used_are_dropped(body):
    def call(jax, jnp, lax, pl, pltpu):
        more = (pltpu,) if body is in_scopes else ()
        return pl.pallas_call(
            lambda a, o: body(pl, lax, jnp, a, o, *more), jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True
        )

    compare.same_jaxpr(call, np.ones(3, np.float32))


def test_semaphores_that_outlive_an_interpreted_kernel_are_refused():
    call = pl.pallas_call(
        lambda x, o, done: pltpu.make_async_copy(x, o, done).start(),
        (jax.ShapeDtypeStruct((8, 128), np.float32), pltpu.SemaphoreType.DMA(())),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=(pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)),
        interpret=True,
    )
    with pytest.raises(NotImplementedError, match=r"outputs\[1\] are semaphores, which outlive an interpreted kernel"):
        call(np.ones((8, 128), np.float32))
