"""Views that are made outside of a branch or loop: their numbers are captured as jax's are, in jaxprs and modules for TPUs."""

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest
from pallas import mosaic_calls

Y = ((8, 128), "float32")
X = np.ones(*Y)
FOUR = np.arange(4, dtype=np.float32)


def in_a_branch(jax, pl, pltpu, x, v, sems, counts, numbers):
    source, target, sem = x.at[3], v.at[2], sems.at[1]
    pl.when(pl.program_id(0) == 1)(lambda: pltpu.async_copy(source, target, sem).wait())


def of_a_copy(jax, pl, pltpu, x, v, sems, counts, numbers):
    copy = pltpu.make_async_copy(x.at[3], v.at[2], sems.at[1])
    pl.when(pl.program_id(0) == 1)(copy.start)
    pl.when(pl.program_id(0) == 2)(copy.wait)


def in_a_scope(jax, pl, pltpu, x, v, sems, counts, numbers):
    source, target = x.at[3, pl.ds(0, 64)], v.at[2, 64:]
    pl.when(pl.program_id(0) == 1)(lambda: pltpu.sync_copy(source, target))
    pl.run_scoped(lambda sem: pltpu.async_copy(source, target, sem).wait(), pltpu.SemaphoreType.DMA)


def of_semaphores(jax, pl, pltpu, x, v, sems, counts, numbers):
    count = counts.at[1]
    pl.when(pl.program_id(0) == 1)(lambda: pl.semaphore_signal(count, 2))
    jax.lax.fori_loop(0, 2, lambda i, total: total + pl.semaphore_read(count), 0)
    pl.when(pl.program_id(0) == 2)(lambda: pl.semaphore_wait(count, 2))


def that_is_read_and_written(jax, pl, pltpu, x, v, sems, counts, numbers):
    row, number = v.at[2], numbers.at[3]

    def add_one():
        row[...] = row[...] + 1
        number[...] = number[...] + 1
        pltpu.store(row, pltpu.load(row) * 2)

    pl.when(pl.program_id(0) == 1)(add_one)
    jax.lax.switch(pl.program_id(0), [add_one, lambda: None, lambda: v.at[3].set(row[...])])


def in_a_loop(jax, pl, pltpu, x, v, sems, counts, numbers):
    row, part, sem = x.at[3], v.at[pl.ds(2, 4)], sems.at[1]

    @pl.loop(0, 3)
    def _(i):
        pltpu.async_copy(row, part.at[i], sem).wait()
        pl.when(i == 1)(lambda: pltpu.async_copy(row, part.at[3], sem).wait())


def in_a_loop_of_unknown_length(jax, pl, pltpu, x, v, sems, counts, numbers):
    source, target, sem = x.at[-1], v.at[2], sems.at[0]

    def step(i):
        pltpu.async_copy(source, target, sem).wait()
        return i + 1

    jax.lax.while_loop(lambda i: i < 3, step, 0)


def of_another_device(jax, pl, pltpu, x, v, sems, counts, numbers):
    logical = pl.DeviceIdType.LOGICAL
    copy = pltpu.make_async_remote_copy(x.at[3], v.at[2], sems.at[0], sems.at[1], 1, logical)
    pl.when(pl.program_id(0) == 0)(copy.start)
    pl.when(pl.program_id(0) == 3)(copy.wait)


KERNELS = [
    in_a_branch, of_a_copy, in_a_scope, of_semaphores, that_is_read_and_written, in_a_loop,
    in_a_loop_of_unknown_length, of_another_device,
]  # fmt: skip


def call(jax, pl, pltpu, body):
    """A call whose operand is in HBM, with memory and semaphores for the kernel."""

    def kernel(x, o, *scratch):
        body(jax, pl, pltpu, x, *scratch)

    memory, kinds = pl.BlockSpec(memory_space=pl.ANY), pltpu.SemaphoreType
    scratch = [pltpu.VMEM(*Y), kinds.DMA((2,)), kinds.REGULAR((3,)), pltpu.SMEM((4,), "int32")]
    out = jax.ShapeDtypeStruct(*Y)
    return pl.pallas_call(kernel, out, in_specs=[memory], out_specs=memory, scratch_shapes=scratch, grid=(4,))


@pytest.mark.oracle
@pytest.mark.parametrize("body", KERNELS)
def test_jaxprs(body):
    compare.same_jaxpr(lambda jax, pl, pltpu: call(jax, pl, pltpu, body), X)


@pytest.mark.oracle
@pytest.mark.parametrize("body", KERNELS)
def test_modules(body):
    def described(side):
        m = mosaic_calls.modules_of(side)
        return mosaic_calls.described(mosaic_calls.lowered(side, call(side, m.pl, m.pltpu, body), [Y]))

    compare.same_printed("views in bodies", described, body.__name__)


def of_coordinates(jax, pl, pltpu, x, v, sems, counts, numbers):
    pltpu.async_remote_copy(x.at[pl.ds(0, 4)], v.at[:4], sems.at[0], sems.at[1], device_id={"x": 1}).wait()
    place = 1, pl.program_id(0)
    pltpu.async_remote_copy(x, v, sems.at[0], sems.at[pl.program_id(0)], device_id=place).wait()


@pytest.mark.oracle
def test_jaxprs_of_copies_to_devices_by_coordinates():
    compare.same_jaxpr(lambda jax, pl, pltpu: call(jax, pl, pltpu, of_coordinates), X)


def branch(jax, jnp, x, flag):
    ref = jax.new_ref(x)
    one, same, part = ref.at[3], ref.at[3], ref.at[1:3]
    jax.lax.cond(flag, lambda: one.set(same[...] * 2 + part[0]), lambda: None)
    return ref[...]


def nested(jax, jnp, x, flag):
    ref = jax.new_ref(x.reshape(2, 2))
    row = ref.at[1].at[0]

    def inner():
        other = ref.at[0].at[1]
        other[...] = row[...]
        jax.lax.cond(flag, lambda: other.set(row[...]), lambda: None)

    jax.lax.cond(flag, inner, lambda: None)
    return ref[...]


def reshaped(jax, jnp, x, flag):
    ref = jax.new_ref(x.reshape(2, 2))
    view = ref.at[1].reshape(2, 1).at[0]
    return jax.lax.cond(flag, lambda: view[...], lambda: view[...] * 2)


def loop(jax, jnp, x, flag):
    ref = jax.new_ref(x)
    one, other = ref.at[-1], ref.at[0]
    jax.lax.fori_loop(0, 3, lambda i, c: (one.set(other[...] + c), c + 1)[1], 0.0)
    return jax.lax.while_loop(lambda c: c < one[...], lambda c: c + other[...] + 1, 0.0)


def jitted(jax, jnp, x, flag):
    ref = jax.new_ref(x)
    view = ref.at[3]
    f = jax.jit(lambda y: view[...] + y)
    return f(1.0) + f(2.0) + jax.vmap(lambda y: view[...] * y)(x).sum() + jax.grad(lambda y: view[...] * y)(2.0)


def passed(jax, jnp, x, flag):
    ref, other = jax.new_ref(x.reshape(2, 2)), jax.new_ref(x.reshape(2, 2))
    view = ref.at[1].at[0]
    found = jax.lax.cond(flag, lambda w: w[...], lambda w: w[...] * 2, view)
    return found + jax.jit(lambda d: d["w"][...] * 2 + d["v"][0])({"w": view, "v": other.at[0]})


@pytest.mark.oracle
@pytest.mark.parametrize("function", [branch, nested, reshaped, loop, jitted, passed])
def test_views_outside_of_kernels(function):
    program = lambda jax, jnp: jax.jit(lambda x, flag: function(jax, jnp, x, flag))  # noqa: E731
    compare.same_jaxpr(program, FOUR, True)
    compare.same(lambda jax, jnp: program(jax, jnp)(jnp.arange(4.0), True))
