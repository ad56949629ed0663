"""Operations of kernels by value: atomics, semaphores, writes through views, loops; and estimates of costs."""

import compare
import numpy as np
import pallas_kernels
import pytest

import minijax as jax
import minijax.experimental.pallas as pl
import minijax.experimental.pallas.triton as plt
import minijax.numpy as jnp
from minijax.experimental.pallas import tpu as pltpu

X = pallas_kernels.X


def run(kernel, *operands, shape=(4,), dtype="float32", **options):
    return np.asarray(
        pl.pallas_call(kernel, jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)), interpret=True, **options)(*operands)
    )


OLD, NEW = np.array([5, -3, 12, 7], np.int32), np.array([6, -4, 10, 7], np.int32)
COMBINED = {
    plt.atomic_xchg: NEW, plt.atomic_add: OLD + NEW, plt.atomic_max: np.maximum(OLD, NEW), plt.atomic_min: np.minimum(OLD, NEW),
    plt.atomic_and: OLD & NEW, plt.atomic_or: OLD | NEW, plt.atomic_xor: OLD ^ NEW,
}  # fmt: skip


@pytest.mark.parametrize(("atomic", "expected"), COMBINED.items(), ids=[f.__name__ for f in COMBINED])
def test_atomics_combine_and_return_the_old_values(atomic, expected):
    def kernel(old, new, o, before):
        o[...] = old[...]
        before[...] = atomic(o, (slice(None),), new[...])

    both = pl.pallas_call(kernel, [jax.ShapeDtypeStruct((4,), jnp.int32)] * 2, interpret=True)(OLD, NEW)
    assert np.asarray(both[0]).tolist() == expected.tolist() and np.asarray(both[1]).tolist() == OLD.tolist()

    def masked(old, new, o):
        o[...] = old[...]
        atomic(o, (slice(None),), new[...], mask=new[...] > 0)

    assert run(masked, OLD, NEW, dtype="int32").tolist() == np.where(NEW > 0, expected, OLD).tolist()


def test_compare_and_swap():
    def kernel(x, o, before):
        o[...] = x[...]
        before[0] = plt.atomic_cas(o.at[0], 5, 9)
        before[1] = plt.atomic_cas(o.at[1], 5, 9)

    o, before = pl.pallas_call(kernel, [jax.ShapeDtypeStruct((2,), jnp.int32)] * 2, interpret=True)(jnp.array([5, 6]))
    assert np.asarray(o).tolist() == [9, 6] and np.asarray(before).tolist() == [5, 6]


def test_semaphores_count():
    def kernel(o, s):
        pl.semaphore_signal(s.at[0], 3)
        pl.semaphore_signal(s.at[0], 2)
        pl.semaphore_wait(s.at[0], 4)
        pl.semaphore_signal(s.at[1])
        pl.semaphore_wait(s.at[1], 1, decrement=False)
        o[0], o[1] = pl.semaphore_read(s.at[0]), pl.semaphore_read(s.at[1])

    counts = run(kernel, shape=(2,), dtype="int32", grid=2, scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))])
    assert counts[0] == counts[1] == 2  # the second step goes on with the counts of the first


def test_copies_signal_their_semaphore():
    def kernel(x, o, count, s):
        copy = pltpu.async_copy(x, o, s)
        count[0] = pl.semaphore_read(s)
        copy.wait()
        count[1] = pl.semaphore_read(s)
        pltpu.async_copy(x, o, s, add=True).wait()

    shapes = [jax.ShapeDtypeStruct((4,), jnp.float32), jax.ShapeDtypeStruct((2,), jnp.int32)]
    call = pl.pallas_call(kernel, shapes, scratch_shapes=[pltpu.SemaphoreType.DMA], interpret=True)
    o, count = call(jnp.arange(4.0))
    assert np.asarray(o).tolist() == [0, 2, 4, 6] and np.asarray(count).tolist() == [4, 0]


def test_writes_through_views():
    def kernel(x, o):
        o[...] = jnp.zeros((2, 3))
        o.T[0] = x[0:2]
        o.T.at[1:].T[...] = x[2:].reshape(2, 2)

    assert run(kernel, jnp.arange(6.0), shape=(2, 3)).tolist() == [[0, 2, 3], [1, 4, 5]]

    def of_three_axes(x, o):
        o.transpose((1, 2, 0))[...] = x[...]

    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    assert (run(of_three_axes, x, shape=(4, 2, 3)) == x.transpose(2, 0, 1)).all()


@pytest.mark.parametrize(("narrow", "parts"), [("int16", 2), ("int8", 4)])
def test_bits_of_wider_elements_are_neighbouring_rows(narrow, parts):
    def kernel(x, o):
        o[...] = x.bitcast(narrow)[...]

    x = np.arange(16, dtype=np.int32).reshape(4, 4) * 0x01020304
    expected = x.view(narrow).reshape(4, 4, parts).transpose(0, 2, 1).reshape(4 * parts, 4)
    assert (run(kernel, x, shape=(4 * parts, 4), dtype=narrow) == expected).all()

    def back(x, o):
        o.bitcast(narrow)[...] = x[...]

    assert (run(back, expected, shape=(4, 4), dtype="int32") == x).all()


def test_rotation_with_a_stride():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    rolled = run(lambda x, o: o.__setitem__(..., pltpu.roll(x[...], 1, 1, stride=2, stride_axis=0)), x, shape=(3, 4))
    assert (rolled == np.stack([np.roll(row, 1 + 2 * i) for i, row in enumerate(x)])).all()


def test_debug_prints(capfd):
    def kernel(x, o):
        pl.debug_print("row {}", x[0])
        o[...] = x[...]

    run(kernel, jnp.arange(4.0), grid=2)
    jax.effects_barrier()
    assert capfd.readouterr().out.count("row 0.0") == 2


def test_numbers_of_the_step_in_all_control_flow():
    def kernel(o):
        j = pl.program_id(1)
        total = jax.lax.fori_loop(0, 2, lambda _, c: c + pl.program_id(0) + pl.num_programs(1), 0)
        total = jax.lax.while_loop(lambda c: c < 10 + pl.program_id(1), lambda c: c + 1, total)
        total = jax.lax.cond(j == 1, lambda: total + pl.program_id(0), lambda: total)
        o[0, 0] = jax.jit(lambda t: t * pl.num_programs(0))(total)

    spec = pl.BlockSpec((1, 1), lambda i, j: (i, j))
    found = run(kernel, shape=(2, 3), dtype="int32", grid=(2, 3), out_specs=spec)
    expected = [[2 * (max(2 * (i + 3), 10 + j) + (i if j == 1 else 0)) for j in range(3)] for i in range(2)]
    assert found.tolist() == expected


@pytest.mark.parametrize("power", [0, 1, 2, 3, 5, 7, 8, 9])
@pytest.mark.oracle
def test_costs_of_powers(power):
    compare.same(
        lambda jax, jnp, lax, pl: _cost(pl.estimate_cost(lambda x: lax.integer_pow(x, power), jnp.ones((8, 16))))
    )


COSTS = {
    "an exponential": lambda jax, jnp, lax: lambda x: x * jnp.exp(x),
    "a product": lambda jax, jnp, lax: lambda x: jnp.tanh(x @ x.T),
    "a softmax": lambda jax, jnp, lax: jax.nn.softmax,
    "a batched product": lambda jax, jnp, lax: lambda x: jnp.einsum("ab,ac->bc", x, x),
    "a loop": lambda jax, jnp, lax: lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x),
    "a bool": lambda jax, jnp, lax: lambda x: x > 0,
    "a narrower result": lambda jax, jnp, lax: lambda x: (x + x).astype("bfloat16"),
}  # fmt: skip


def _cost(estimate):
    return [estimate.flops, estimate.transcendentals, estimate.bytes_accessed, estimate.remote_bytes_transferred]


@pytest.mark.oracle
@pytest.mark.parametrize("make", COSTS.values(), ids=COSTS)
def test_costs(make):
    compare.same(lambda jax, jnp, lax, pl: _cost(pl.estimate_cost(make(jax, jnp, lax), jnp.ones((8, 16)))))


def test_short_functions():
    assert [pl.cdiv(a, b) for a, b in ((0, 3), (1, 3), (3, 3), (4, 3))] == [0, 1, 1, 2]
    assert [pl.align_to(a, 8) for a in (0, 1, 8, 9)] == [0, 8, 8, 16]
    assert [pl.next_power_of_2(n) for n in (0, 1, 2, 3, 5, 8, 9)] == [1, 1, 2, 4, 8, 8, 16]
    assert pl.strides_from_shape((2, 3, 4)) == (12, 4, 1) and pl.strides_from_shape(()) == ()
    assert pl.ds(3) == pl.Slice(0, 3) and pl.ds(None) == slice(None) and pl.dslice(1, 2, 3) == pl.Slice(1, 2, 3)
    with pytest.raises(ValueError, match="requires a non-negative integer"):
        pl.next_power_of_2(-1)
    assert int(jax.jit(lambda n: pl.cdiv(n, 2))(5)) == 3


def test_tangents_of_an_aliased_operand_that_is_not_moved():
    def kernel(x, y, o):
        o[0] = x[0] * y[0]

    f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), input_output_aliases={0: 0}, interpret=True)
    out, tangent = jax.jvp(lambda y: f(jnp.array([2.0, 3.0]), y), (jnp.ones(2),), (jnp.ones(2),))
    assert np.asarray(out).tolist() == [2, 3] and np.asarray(tangent).tolist() == [2, 0]
