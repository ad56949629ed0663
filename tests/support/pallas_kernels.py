"""Kernels that both sides trace and run: for each a program that makes the call, and its operands."""

import compare
import numpy as np

compare.SHORT_NAMES |= {
    "pl": "experimental.pallas",
    "pltpu": "experimental.pallas.tpu",
    "plt": "experimental.pallas.triton",
}
rng = np.random.default_rng(0)
X = rng.normal(size=(8, 128)).astype(np.float32)
Y = rng.normal(size=(8, 128)).astype(np.float32)
LONG = rng.normal(size=(20, 128)).astype(np.float32)
INTS = rng.integers(-9, 9, size=(8, 128)).astype(np.int32)
VECTOR = np.arange(8, dtype=np.float32)
SCALARS = np.array([1, 0, 1], np.int32)
F32, I32, BF16 = "float32", "int32", "bfloat16"
KERNELS = {}


def kernel(*operands, shape=(8, 128), dtype=F32, **options):
    """Decorator: a function (modules) -> kernel, with the shapes of results and the options of `pallas_call`.

    An option that is a function gets the modules too.
    """

    def listed(make):
        def program(jax, jnp, lax, pl, pltpu, plt):
            m = Modules(jax, jnp, lax, pl, pltpu, plt)
            shapes = shape if isinstance(shape, list) else [(shape, dtype)]
            outs = [jax.ShapeDtypeStruct(s, jnp.dtype(d)) for s, d in shapes]
            given = {key: value(m) if callable(value) else value for key, value in options.items()}
            return pl.pallas_call(make(m), outs if isinstance(shape, list) else outs[0], **{"interpret": True, **given})

        KERNELS[make.__name__] = program, operands
        return make

    return listed


class Modules:
    def __init__(self, jax, jnp, lax, pl, pltpu, plt):
        self.jax, self.jnp, self.lax, self.pl, self.pltpu, self.plt = jax, jnp, lax, pl, pltpu, plt

    def block(self, shape=None, index=None, **options):
        return self.pl.BlockSpec(shape, index, **options)


ROWS = dict(
    grid=4,
    in_specs=lambda m: [m.block((2, 128), lambda i: (i, 0))],
    out_specs=lambda m: m.block((2, 128), lambda i: (i, 0)),
)


@kernel(X, Y)
def add(m):
    def k(x, y, o):
        o[...] = x[...] + y[...]

    return k


@kernel(X, **ROWS)
def double_rows(m):
    def k(x, o):
        o[...] = 2 * x[...]

    return k


@kernel(X, **ROWS)
def softmax(m):
    def k(x, o):
        v = x[...]
        e = m.jnp.exp(v - v.max(axis=1, keepdims=True))
        o[...] = e / e.sum(axis=1, keepdims=True)

    return k


@kernel(
    LONG,
    shape=(20, 128),
    grid=3,
    in_specs=lambda m: [m.block((8, 128), lambda i: (i, 0))],
    out_specs=lambda m: m.block((8, 128), lambda i: (i, 0)),
)
def beyond_the_end(m):
    def k(x, o):
        o[...] = x[...] + m.pl.program_id(0).astype(F32)

    return k


@kernel(
    LONG,
    grid=3,
    shape=(3, 1),
    in_specs=lambda m: [m.block((8, 128), lambda i: (i, 0))],
    out_specs=lambda m: m.block((1, 1), lambda i: (i, 0)),
)
def sums_beyond_the_end(m):
    def k(x, o):
        o[0, 0] = x[...].sum()

    return k


@kernel(rng.normal(size=(16, 32)).astype(np.float32), rng.normal(size=(32, 24)).astype(np.float32), shape=(16, 24), grid=(2, 3, 4),
        in_specs=lambda m: [m.block((8, 8), lambda i, j, k: (i, k)), m.block((8, 8), lambda i, j, k: (k, j))],
        out_specs=lambda m: m.block((8, 8), lambda i, j, k: (i, j)))  # fmt: skip
def matmul(m):
    def k(a, b, o):
        @m.pl.when(m.pl.program_id(2) == 0)
        def _():
            o[...] = m.jnp.zeros_like(o)

        o[...] += a[...] @ b[...]

    return k


@kernel(rng.normal(size=(16, 32)).astype(np.float32), rng.normal(size=(32, 24)).astype(np.float32), shape=(16, 24), grid=(2, 3, 4),
        in_specs=lambda m: [m.block((8, 8), lambda i, j, k: (i, k)), m.block((8, 8), lambda i, j, k: (k, j))],
        out_specs=lambda m: m.block((8, 8), lambda i, j, k: (i, j)), scratch_shapes=lambda m: [m.pltpu.VMEM((8, 8), m.jnp.float32)])  # fmt: skip
def matmul_with_scratch(m):
    def k(a, b, o, acc):
        step = m.pl.program_id(2)

        @m.pl.when(step == 0)
        def _():
            acc[...] = m.jnp.zeros_like(acc)

        acc[...] += m.jnp.dot(a[...], b[...], preferred_element_type=F32)

        @m.pl.when(step == m.pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...].astype(o.dtype)

    return k


@kernel(X, scratch_shapes=lambda m: dict(low=m.pltpu.VMEM((8, 128), m.jnp.float32), n=m.pltpu.SMEM((1,), m.jnp.int32)))
def named_scratch(m):
    def k(x, o, *, low, n):
        low[...] = x[...]
        n[0] = 3
        o[...] = low[...] * n[0].astype(F32)

    return k


@kernel(SCALARS, X, grid_spec=lambda m: m.pltpu.PrefetchScalarGridSpec(
    1, (2,), [m.block((4, 128), lambda i, s: (s[i], 0))], m.block((4, 128), lambda i, s: (i, 0))))  # fmt: skip
def prefetch(m):
    def k(s, x, o):
        o[...] = x[...] * s[2].astype(F32)

    return k


@kernel(SCALARS, X, grid_spec=lambda m: m.pltpu.PrefetchScalarGridSpec(
    1, (2,), [m.block((None, 128), lambda i, s: (s[i], 0))], m.block((m.pl.squeezed, 128), lambda i, s: (i, 0))))  # fmt: skip
def squeezed_rows(m):
    def k(s, x, o):
        o[...] = x[...] + 1

    return k


@kernel(X, shape=(2, 128), grid=2, in_specs=lambda m: [m.block((m.pl.Element(4), 128), lambda i: (3 * i, 0))],
        out_specs=lambda m: m.block((1, 128), lambda i: (i, 0)))  # fmt: skip
def elements(m):
    def k(x, o):
        o[...] = x[...].sum(0, keepdims=True)

    return k


@kernel(X, shape=(3, 128), grid=3, in_specs=lambda m: [m.block((m.pl.Element(4, (1, 2)), 128), lambda i: (3 * i, 0))],
        out_specs=lambda m: m.block((1, 128), lambda i: (i, 0)))  # fmt: skip
def padded_elements(m):
    def k(x, o):
        o[...] = m.jnp.nan_to_num(x[...]).sum(0, keepdims=True)

    return k


@kernel(X, input_output_aliases={0: 0})
def aliased(m):
    def k(x, o):
        o[0, 0] = x[0, 0] + 1

    return k


@kernel(X, shape=[((8, 128), F32), ((128,), F32)])
def two_results(m):
    def k(x, o, p):
        o[...] = x[...] * x[...]
        p[...] = x[...].sum(0)

    return k


@kernel(X)
def dynamic_rows(m):
    def k(x, o):
        def body(i, total):
            o[i, :] = x[m.pl.ds(i, 1), :][0] + total
            return total + x[i, 0]

        m.lax.fori_loop(0, 8, body, 0.0)

    return k


@kernel(np.array([5], np.int32), X)
def while_loop(m):
    def k(n, x, o):
        o[...] = x[...]

        def body(i, _):
            o[i, :] = m.jnp.zeros(128)

        m.lax.fori_loop(0, n[0], body, None)

    return k


@kernel(X)
def views(m):
    def k(x, o):
        o[...] = m.jnp.zeros_like(o)
        inner = o.at[2:6].at[:, 64:]
        inner[1:3] = x.at[0:4][1:3, 64:]
        o.at[m.pl.ds(6, 2)][...] = x[m.pl.ds(0, 2)]

    return k


@kernel(X)
def reshaped_view(m):
    def k(x, o):
        o[...] = x.reshape(4, 2, 128)[...].reshape(8, 128)
        o.reshape(1024)[3:7] = x[0, :4]

    return k


@kernel(X, dtype=I32)
def bits_of_a_view(m):
    def k(x, o):
        o[...] = x.bitcast(m.jnp.int32)[...]

    return k


@kernel(X, shape=(128, 8))
def transposed_view(m):
    def k(x, o):
        o[...] = x.T[...]
        o[0] = x.transpose((1, 0))[3]

    return k


@kernel(X)
def strided(m):
    def k(x, o):
        o[...] = x[...]
        o[m.pl.ds(0, 4, 2), :] = x[m.pl.ds(1, 4, stride=2), :]

    return k


@kernel(X, shape=(4, 128))
def slices_with_steps(m):
    def k(x, o):
        o[...] = x[::2, :] + x[1::2, :]

    return k


@kernel(X, SCALARS, shape=(3, 128))
def rows_by_number(m):
    def k(x, i, o):
        o[...] = x[...][i[...]]

    return k


@kernel(X, grid=1)
def masked(m):
    def k(x, o):
        o[...] = m.jnp.ones_like(o)
        v = m.plt.load(x.at[m.pl.ds(m.pl.program_id(0) * 0 + 2, 4)], mask=x[0:4] > 0, other=-1.0)
        m.plt.store(o.at[m.pl.ds(4, 4)], v, mask=v < 0)

    return k


@kernel(VECTOR, shape=(8,))
def masked_beyond_the_end(m):
    def k(x, o):
        o[...] = m.jnp.zeros(8)
        i = m.jnp.int32(6) + m.lax.convert_element_type(x[0], "int32")
        m.plt.store(o.at[m.pl.ds(i, 4)], m.jnp.nan_to_num(m.plt.load(x.at[m.pl.ds(i, 4)])) + 1)

    return k


@kernel(X, Y)
def masked_on_tpu(m):
    def k(x, y, o):
        o[...] = x[...]
        m.pltpu.store(o, m.pltpu.load(y, mask=x[...] > 0), mask=x[...] > 0)

    return k


@kernel(X)
def scoped(m):
    def k(x, o):
        factor = x[0, 0]

        def body(a, b):
            a[...] = x[...] * factor
            b[0] = 2
            return a[...] + b[0].astype(F32)

        o[...] = m.pl.run_scoped(body, m.pltpu.VMEM((8, 128), m.jnp.float32), m.pltpu.SMEM((2,), m.jnp.int32))

    return k


@kernel(X, grid=2)
def scoped_in_a_branch(m):
    def k(x, o):
        @m.pl.when(m.pl.program_id(0) == 1)
        def _():
            @m.pl.with_scoped(m.pltpu.VMEM((8, 128), m.jnp.float32))
            def body(a):
                a[...] = x[...] + m.pl.program_id(0)
                o[...] = a[...]

            body()

    return k


@kernel(X, scratch_shapes=lambda m: [m.pltpu.SemaphoreType.REGULAR((2,))])
def semaphores(m):
    def k(x, o, s):
        m.pl.semaphore_signal(s.at[0], 3)
        m.pl.semaphore_wait(s.at[0], 1)
        o[...] = x[...]

    return k


@kernel(X, in_specs=lambda m: [m.block(memory_space=m.pl.ANY)],
        scratch_shapes=lambda m: [m.pltpu.VMEM((4, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA])  # fmt: skip
def copies(m):
    def k(x, o, low, s):
        copy = m.pltpu.make_async_copy(x.at[m.pl.ds(2, 4), :], low, s)
        copy.start()
        copy.wait()
        o[...] = m.jnp.zeros_like(o)
        o[4:] = low[...]
        m.pltpu.sync_copy(low.at[0:2], o.at[0:2])

    return k


@kernel(X, in_specs=lambda m: [m.block(memory_space=m.pl.ANY)],
        scratch_shapes=lambda m: [m.pltpu.VMEM((2, 2, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA((2,))])  # fmt: skip
def double_buffered(m):
    def k(x, o, low, s):
        copy = lambda i, slot: m.pltpu.make_async_copy(x.at[m.pl.ds(2 * i, 2)], low.at[slot], s.at[slot])  # noqa: E731
        copy(0, 0).start()

        def body(i, _):
            slot = m.lax.rem(i, 2)

            @m.pl.when(i < 3)
            def _():
                copy(i + 1, 1 - slot).start()

            copy(i, slot).wait()
            o[m.pl.ds(2 * i, 2), :] = 2 * low[slot]

        m.lax.fori_loop(0, 4, body, None)

    return k


@kernel(X, grid=(2, 2), in_specs=lambda m: [m.block((8, 64), lambda i, j: (0, j))],
        out_specs=lambda m: m.block((8, 64), lambda i, j: (0, j)))  # fmt: skip
def revisited(m):
    def k(x, o):
        i = m.pl.program_id(0)
        o[...] = m.jnp.where(i == 0, x[...], o[...] * 2)

    return k


@kernel(INTS, dtype=I32)
def integers(m):
    def k(x, o):
        o[...] = (x[...] * 3) // 2 + m.jnp.clip(x[...], -2, 2)

    return k


@kernel(X.astype("float16"), dtype="float16")
def halves(m):
    def k(x, o):
        o[...] = m.jnp.sqrt(m.jnp.abs(x[...]))

    return k


@kernel(X > 0, dtype="bool")
def bools(m):
    def k(x, o):
        o[...] = ~x[...]

    return k


@kernel(X)
def rolled(m):
    def k(x, o):
        o[...] = m.pltpu.roll(x[...], 3, 1) + m.pltpu.roll(x[...], 1, 0)

    return k


@kernel(X, dtype=I32, grid=1)
def hints(m):
    def k(x, o):
        i = m.pl.multiple_of(m.pl.program_id(0), 8)
        o[...] = m.pltpu.bitcast(m.pl.reciprocal(x[...]), m.jnp.int32) + i

    return k


@kernel(X)
def loops(m):
    def k(x, o):
        o[...] = x[...]

        @m.pl.loop(0, 8, step=2, unroll=2)
        def _(i):
            o[i, :] = o[i, :] + 1

        @m.pl.loop(0, 3, init_carry=0.0)
        def total(i, c):
            return c + x[i, 0]

        o[7, :] = o[7, :] * total

    return k


@kernel(X)
def switch(m):
    def k(x, o):
        i = m.lax.convert_element_type(m.jnp.abs(x[0, 0]), "int32")
        o[...] = m.lax.switch(i, [lambda: x[...], lambda: -x[...], lambda: x[...] * 2])

    return k


@kernel(X, Y)
def activation(m):
    def k(x, y, o):
        o[...] = m.jax.nn.silu(x[...]) * m.jax.nn.relu(y[...])

    return k


@kernel(X, grid=(), name="my kernel")
def named(m):
    def k(x, o):
        with m.jax.named_scope("inner"):
            o[...] = x[...]

    return k


@kernel(X, cost_estimate=lambda m: m.pl.CostEstimate(1, 2, 3), metadata={"a": "b"}, debug=False,
        compiler_params=lambda m: m.pltpu.CompilerParams(dimension_semantics=("parallel",)), grid=1)  # fmt: skip
def with_options(m):
    def k(x, o):
        o[...] = x[...]

    return k


@kernel(dict(a=X, b=[Y]), shape=[((8, 128), F32)])
def trees(m):
    def k(x, o):
        o[...] = x["a"][...] - x["b"][0][...]

    return k


@kernel(X, grid=(2, 2, 2))
def three_axes(m):
    def k(x, o):
        i, j, k = (m.pl.program_id(axis) for axis in range(3))
        o[i * 4 + j * 2 + k, :] = x[i * 4 + j * 2 + k, :] * (i + j + k).astype(F32)

    return k


@kernel(X, grid=(4,), shape=(4, 8), dtype=I32, out_specs=lambda m: m.block((1, 8), lambda i: (m.pl.program_id(0), 0)))
def program_id_in_an_index_map(m):
    def k(x, o):
        o[...] = m.jnp.full((1, 8), m.pl.program_id(0))

    return k


@kernel(X, grid=(("a", 2), ("b", 2)))
def named_axes(m):
    def k(x, o):
        o[...] = x[...] * m.lax.axis_size("a")

    return k


@kernel(shape=(8,), dtype=I32)
def no_operands(m):
    def k(o):
        o[...] = m.jnp.arange(8)

    return k


@kernel(np.float32(3), shape=())
def scalars(m):
    def k(x, o):
        o[...] = x[...] * 2

    return k


@kernel(X)
def writes_an_operand(m):
    def k(x, o):
        x[0, :] = x[1, :]
        o[...] = x[...]

    return k


@kernel(X, grid=2, **{key: ROWS[key] for key in ("in_specs", "out_specs")})
def clamped_blocks(m):
    def k(x, o):
        o[...] = x[...] + 1

    return k


@kernel(
    X,
    grid=2,
    in_specs=lambda m: [m.block((4, 128), lambda i: (i - 1, 0))],
    out_specs=lambda m: m.block((4, 128), lambda i: (i, 0)),
)
def negative_blocks(m):
    def k(x, o):
        o[...] = x[...]

    return k


@kernel(X, grid=(0,))
def no_steps(m):
    def k(x, o):
        o[...] = x[...]

    return k


@kernel(X, grid=1)
def nested_calls(m):
    def k(x, o):
        o[...] = m.jax.jit(lambda v: m.jnp.tanh(v) + m.pl.program_id(0))(x[...])

    return k


@kernel(X)
def added_in_place(m):
    def k(x, o):
        o[...] = x[...]
        m.jax.ref.addupdate(o, (0,), x[1])

    return k


@kernel(X, shape=[((8, 128), F32), ((), F32)])
def flash(m):
    def k(x, o, last):
        def body(i, carry):
            top, total = carry
            row = x[i, :]
            new = m.jnp.maximum(top, row.max())
            return new, total * m.jnp.exp(top - new) + m.jnp.exp(row - new).sum()

        top, total = m.lax.fori_loop(0, 8, body, (-m.jnp.inf, 0.0))
        o[...] = m.jnp.exp(x[...] - top) / total
        last[...] = total

    return k


@kernel(X, Y, grid=2, shape=[((8, 128), F32), ((8, 128), F32)],
        in_specs=lambda m: [m.block((4, 128), lambda i: (i, 0)), m.block((8, 64), lambda i: (0, i))],
        out_specs=lambda m: [m.block((8, 64), lambda i: (0, i)), m.block((4, 128), lambda i: (1 - i, 0))])  # fmt: skip
def several_specs(m):
    def k(x, y, o, p):
        o[...] = y[...] * 2
        p[...] = x[...] + 1

    return k


@kernel(X.astype("int8"), dtype="int8", **ROWS)
def bytes_of_rows(m):
    def k(x, o):
        o[...] = x[...] + m.jnp.int8(1)

    return k


@kernel(X, shape=(8, 128), dtype=BF16)
def narrowed(m):
    def k(x, o):
        o[...] = x[...].astype(o.dtype)

    return k


@kernel(X, dtype=I32)
def iotas(m):
    def k(x, o):
        o[...] = m.lax.broadcasted_iota("int32", (8, 128), 1) * m.jnp.int32(2)

    return k


@kernel(np.zeros((2, 3, 8, 16), np.float32) + VECTOR[:, None], shape=(2, 3, 16), grid=(2, 3),
        in_specs=lambda m: [m.block((None, None, 8, 16), lambda i, j: (i, j, 0, 0))],
        out_specs=lambda m: m.block((None, 1, 16), lambda i, j: (i, j, 0)))  # fmt: skip
def four_axes_of_data(m):
    def k(x, o):
        o[0, :] = x[...].sum(0)

    return k


@kernel(X)
def known_starts(m):
    def k(x, o):
        o[...] = x[...]
        o[m.pl.ds(m.jnp.int32(1), 7), m.pl.ds(m.jnp.int32(0), 64)] = x[
            m.pl.ds(m.jnp.int32(0), 7), m.pl.ds(m.jnp.int32(64), 64)
        ]

    return k
