"""Kernels for TPUs, each a function of (jax, jnp, lax, pl, pltpu) that gives a function and the types of its arguments."""

from collections.abc import Callable
from typing import Any, NamedTuple

F, B, I, U, B1 = "float32", "bfloat16", "int32", "uint32", "bool"  # noqa: E741
KERNELS: dict[str, Callable] = {}


class Modules(NamedTuple):
    """The modules that kernels are written with, of jax or of minijax."""

    jax: Any
    jnp: Any
    lax: Any
    pl: Any
    pltpu: Any


def kernel(make: Callable) -> Callable:
    """Adds a kernel under the name of its function."""
    KERNELS[make.__name__.strip("_")] = make
    return make


def out(shape=(8, 128), dtype=F):
    return lambda m: m.jax.ShapeDtypeStruct(shape, m.jnp.dtype(dtype))


def call(m, body, *types, out=None, **options):
    """A call whose kernel is `body`, and the types of its arguments; the result has the first one's type."""
    result = m.jax.ShapeDtypeStruct(*(out or types[0]))
    return (m.pl.pallas_call(body, out_shape=result, **options), *types)


def values(name: str, f: Callable, *types, out=None):
    """Adds a kernel that computes `f(modules, *values)` of whole blocks."""

    def make(m):
        def body(*refs):
            refs[-1][...] = f(m, *[r[...] for r in refs[:-1]])

        return call(m, body, *types, out=out)

    KERNELS[name] = make


X, XB, XI, XU = ((8, 128), F), ((8, 128), B), ((8, 128), I), ((8, 128), U)
XM = ((8, 128), B1)

# A kernel in a line.
# fmt: off

# ---- elementwise ----------------------------------------------------------------------------------------

for _name in "exp exp2 log log1p sin cos tan tanh sqrt rsqrt floor ceil abs neg sign square".split():
    values(_name, lambda m, x, _n=_name: getattr(m.lax, _n)(x), X)
for _name in "erf erf_inv logistic".split():
    values(_name, lambda m, x, _n=_name: getattr(m.lax, _n)(x), X)
for _name in "exp exp2 logistic tanh neg abs".split():
    values(f"{_name}_bf16", lambda m, x, _n=_name: getattr(m.lax, _n)(x), XB)
values("round_away", lambda m, x: m.lax.round(x), X)
values("round_even", lambda m, x: m.lax.round(x, m.lax.RoundingMethod.TO_NEAREST_EVEN), X)
for _name in "add sub mul div rem max min pow atan2 nextafter".split():
    values(_name, lambda m, x, y, _n=_name: getattr(m.lax, _n)(x, y), X, X)
for _name in "add sub mul div rem max min shift_left shift_right_arithmetic shift_right_logical".split():
    values(f"{_name}_int", lambda m, x, y, _n=_name: getattr(m.lax, _n)(x, y), XI, XI)
for _name in "div rem max min shift_right_arithmetic".split():
    values(f"{_name}_uint", lambda m, x, y, _n=_name: getattr(m.lax, _n)(x, y), XU, XU)
for _name in "bitwise_and bitwise_or bitwise_xor".split():
    values(_name, lambda m, x, y, _n=_name: getattr(m.lax, _n)(x, y), XI, XI)
for _name in "bitwise_not clz population_count abs neg sign".split():
    values(f"{_name}_int", lambda m, x, _n=_name: getattr(m.lax, _n)(x), XI)
for _name in "eq ne lt le gt ge".split():
    values(f"{_name}_select", lambda m, x, y, _n=_name: m.jnp.where(getattr(m.lax, _n)(x, y), x, y), X, X)
    values(f"{_name}_int_select", lambda m, x, y, _n=_name: m.jnp.where(getattr(m.lax, _n)(x, y), x, y), XI, XI)
    values(f"{_name}_uint_select", lambda m, x, y, _n=_name: m.jnp.where(getattr(m.lax, _n)(x, y), x, y), XU, XU)
values("mask_logic", lambda m, x, y: m.jnp.where((x > 0) & ~(y > 1) | (x != y), x, y), X, X)
values("is_finite", lambda m, x: m.jnp.where(m.lax.is_finite(x), x, 0.0), X)
values("integer_pow_3", lambda m, x: x**3, X)
values("integer_pow_minus_2", lambda m, x: m.lax.integer_pow(x, -2), X)
values("integer_pow_7", lambda m, x: m.lax.integer_pow(x, 7), X)
values("pow_of_int", lambda m, x, y: m.lax.pow(x, y), X, XI)
values("clamp", lambda m, x: m.lax.clamp(0.0, x, 6.0), X)
values("clip_int", lambda m, x: m.jnp.clip(x, 1, 7), XI)
values("logaddexp", lambda m, x, y: m.jnp.logaddexp(x, y), X, X)
values("gelu", lambda m, x: m.jax.nn.gelu(x), X)
values("silu", lambda m, x: m.jax.nn.silu(x), X)
values("relu", lambda m, x: m.jax.nn.relu(x), X)
values("softplus", lambda m, x: m.jax.nn.softplus(x), X)
values("stop_gradient", lambda m, x: m.lax.stop_gradient(x) + 1, X)
values("scalar_constants", lambda m, x: x * 2.5 + 1, X)
values("weak_bf16", lambda m, x: x * 2 + 0.5, XB)
values("reciprocal", lambda m, x: m.pl.reciprocal(x), X)
values("reciprocal_approx", lambda m, x: m.pl.reciprocal(x, approx=True), X)

# ---- conversions ---------------------------------------------------------------------------------------

for _from, _to in (
    (F, B), (B, F), (F, I), (I, F), (I, B), (B, I), (F, "int8"), ("int8", F), ("int8", I), (I, "int8"), (I, "int16"),
    ("int16", I), (F, U), (U, F), (U, I), (I, U), ("uint8", F), ("uint8", I), ("int8", B), (F, "float8_e4m3fn"),
    ("float8_e5m2", F),
):  # fmt: skip
    values(f"convert_{_from}_{_to}", lambda m, x, _to=_to: x.astype(_to), ((32, 128), _from), out=((32, 128), _to))
values("convert_to_bool", lambda m, x: m.jnp.where(x.astype(bool), 1.0, 2.0), X)
values("convert_int_to_bool", lambda m, x: m.jnp.where(x.astype(bool), 1.0, 2.0), XI, out=X)
values("convert_bool_to_float", lambda m, x: (x > 0).astype(F), X)
values("convert_bool_to_int", lambda m, x: (x > 0).astype(I), X, out=XI)
values("convert_bool_to_bf16", lambda m, x: (x > 0).astype(B), X, out=XB)
values("bool_block", lambda m, x: m.jnp.where(x, 1.0, 0.0), XM, out=X)
values("bool_result", lambda m, x: x > 0, X, out=XM)
values("bitcast_convert", lambda m, x: m.lax.bitcast_convert_type(x, m.jnp.int32), X, out=XI)
values("bitcast_rows", lambda m, x: m.pltpu.bitcast(x, m.jnp.int32), ((16, 128), B), out=XI)

# ---- shapes --------------------------------------------------------------------------------------------

values("iota", lambda m, x: x + m.lax.broadcasted_iota(m.jnp.int32, (8, 128), 1), XI)
values("iota_2d", lambda m, x: x + m.lax.broadcasted_iota(m.jnp.int32, (8, 128), 0).astype(F), X)
values("broadcast_row", lambda m, x, y: x + y, X, ((1, 128), F))
values("broadcast_column", lambda m, x, y: x * y, X, ((8, 1), F))
values("broadcast_vector", lambda m, x: m.lax.broadcast_in_dim(x[0], (8, 128), (1,)), X)
values("full", lambda m, x: m.jnp.full((8, 128), 3.0), X)
values("zeros_like", lambda m, x: m.jnp.zeros_like(x), X)
values("reshape", lambda m, x: x.reshape(16, 128), ((2, 8, 128), F), out=((16, 128), F))
values("expand", lambda m, x: x[:, None, :] + m.jnp.zeros((8, 1, 128)), X, out=((8, 1, 128), F))
values("squeeze", lambda m, x: m.lax.squeeze(x, (1,)), ((8, 1, 128), F), out=X)
values("transpose", lambda m, x: x.T, ((128, 256), F), out=((256, 128), F))
values("transpose_3d", lambda m, x: m.jnp.transpose(x, (0, 2, 1)), ((2, 8, 128), F), out=((2, 128, 8), F))
values("swap_major", lambda m, x: m.jnp.swapaxes(x, 0, 1), ((8, 8, 128), F))
values("concatenate", lambda m, x, y: m.jnp.concatenate([x, y], 0), X, X, out=((16, 128), F))
values("concatenate_lanes", lambda m, x, y: m.jnp.concatenate([x, y, x], 1), X, X, out=((8, 384), F))
values("slice", lambda m, x: m.lax.slice(x, (0, 128), (8, 256)), ((8, 256), F), out=X)
values("slice_rows", lambda m, x: x[8:16, :], ((32, 128), F), out=X)
values("split", lambda m, x: sum(m.jnp.split(x, 2, axis=1)), ((8, 256), F), out=X)
values("stack", lambda m, x, y: m.jnp.stack([x, y]), X, X, out=((2, 8, 128), F))
values("repeat", lambda m, x: m.jnp.tile(x, (1, 2)), X, out=((8, 256), F))
values("roll", lambda m, x: m.pltpu.roll(x, 3, 1), X)
values("roll_strided", lambda m, x: m.pltpu.roll(x, 3, 1, stride=1, stride_axis=0), X)
values("pad", lambda m, x: m.lax.pad(x, 0.0, ((0, 8, 0), (0, 0, 0))), X, out=((16, 128), F))
values("take_along_axis", lambda m, x, i: m.jnp.take_along_axis(x, i, 1, mode="promise_in_bounds"), X, XI)
values("take_along_axis_0", lambda m, x, i: m.jnp.take_along_axis(x, i, 0, mode="promise_in_bounds"), X, XI)

# ---- reductions and products ------------------------------------------------------------------------------

for _name in "sum max min".split():
    values(f"reduce_{_name}", lambda m, x, _n=_name: getattr(m.jnp, _n)(x, 1, keepdims=True), X, out=((8, 1), F))
    values(f"reduce_{_name}_rows", lambda m, x, _n=_name: getattr(m.jnp, _n)(x, 0, keepdims=True), X, out=((1, 128), F))
    values(f"reduce_{_name}_int", lambda m, x, _n=_name: getattr(m.jnp, _n)(x, 1, keepdims=True), XI, out=((8, 1), I))
values("reduce_max_bf16", lambda m, x: m.jnp.max(x, 1, keepdims=True), XB, out=((8, 1), B))
values("reduce_sum_bf16", lambda m, x: m.jnp.sum(x, 1, keepdims=True), XB, out=((8, 1), B))
values("reduce_sum_3d", lambda m, x: m.jnp.sum(x, 0), ((4, 8, 128), F), out=X)
values("reduce_all", lambda m, x: m.jnp.full((8, 128), m.jnp.sum(x)), X)
values("reduce_max_all", lambda m, x: m.jnp.full((8, 128), m.jnp.max(x)), X)
values("reduce_and", lambda m, x: m.jnp.where(m.jnp.all(x > 0), x, 0.0), X)
values("reduce_or_axis", lambda m, x: m.jnp.where(m.jnp.any(x > 0, axis=1, keepdims=True), x, 0.0), X)
values("argmax", lambda m, x: m.jnp.argmax(x, 1)[:, None], X, out=((8, 1), I))
values("argmin", lambda m, x: m.jnp.argmin(x, 0)[None], X, out=((1, 128), I))
values("softmax", lambda m, x: m.jax.nn.softmax(x, axis=-1), X)
values("layer_norm", lambda m, x: (x - x.mean(-1, keepdims=True)) * m.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6), X)
_SQUARE = ((128, 128), F)
values("dot", lambda m, x, y: m.jnp.dot(x, y, preferred_element_type=F), _SQUARE, _SQUARE)
values("dot_bf16", lambda m, x, y: m.jnp.dot(x, y, preferred_element_type=F), ((128, 128), B), ((128, 128), B), out=_SQUARE)
values("dot_highest", lambda m, x, y: m.jnp.dot(x, y, precision="highest"), _SQUARE, _SQUARE)
values("dot_default", lambda m, x, y: m.jnp.dot(x, y, precision="default"), _SQUARE, _SQUARE)
values("dot_transposed_rhs", lambda m, x, y: m.lax.dot_general(x, y, (((1,), (1,)), ((), ()))), _SQUARE, _SQUARE)
values("dot_transposed_lhs", lambda m, x, y: m.lax.dot_general(x, y, (((0,), (0,)), ((), ()))), _SQUARE, _SQUARE)
values(
    "dot_batched", lambda m, x, y: m.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
    ((2, 128, 128), F), ((2, 128, 128), F),
)  # fmt: skip
values("dot_int8", lambda m, x, y: m.jnp.dot(x, y, preferred_element_type=I), ((128, 128), "int8"), ((128, 128), "int8"), out=((128, 128), I))
values("dot_of_vector", lambda m, x, y: m.jnp.dot(x, y), X, ((128, 128), F), out=X)


# fmt: on
# ---- references -----------------------------------------------------------------------------------------


@kernel
def add_grid(m):
    def body(x, y, o):
        o[...] = x[...] + y[...]

    spec = m.pl.BlockSpec((8, 128), lambda i: (i, 0))
    return call(m, body, ((24, 128), F), ((24, 128), F), grid=(3,), in_specs=[spec, spec], out_specs=spec)


@kernel
def two_axes(m):
    def body(x, o):
        o[...] = x[...] + m.pl.program_id(0) * 2 + m.pl.program_id(1) + m.pl.num_programs(0)

    spec = m.pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return call(m, body, ((16, 256), I), grid=(2, 2), in_specs=[spec], out_specs=spec)


def _matmul(m, size, block, dtype=F):
    def body(x, y, o, acc):
        k = m.pl.program_id(2)

        @m.pl.when(k == 0)
        def _():
            acc[...] = m.jnp.zeros_like(acc)

        acc[...] += m.jnp.dot(x[...], y[...], preferred_element_type=F)

        @m.pl.when(k == m.pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...].astype(o.dtype)

    spec = lambda f: m.pl.BlockSpec((block, block), f)  # noqa: E731
    return call(
        m,
        body,
        ((size, size), dtype),
        ((size, size), dtype),
        grid=(size // block,) * 3,
        in_specs=[spec(lambda i, j, k: (i, k)), spec(lambda i, j, k: (k, j))],
        out_specs=spec(lambda i, j, k: (i, j)),
        scratch_shapes=[m.pltpu.VMEM((block, block), m.jnp.float32)],
        compiler_params=m.pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )


KERNELS["matmul"] = lambda m: _matmul(m, 256, 128)
KERNELS["matmul_bf16"] = lambda m: _matmul(m, 512, 256, B)


@kernel
def squeezed_blocks(m):
    def body(x, o):
        o[...] = x[...] * 2

    spec = m.pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))
    return call(m, body, ((4, 8, 128), F), grid=(4,), in_specs=[spec], out_specs=spec)


@kernel
def element_blocks(m):
    def body(x, o):
        o[...] = x[...] * 2

    window = m.pl.BlockSpec((m.pl.Element(8, (0, 8)), m.pl.Element(128)), lambda i: (i * 8, 0))
    return call(
        m, body, ((24, 128), F), grid=(3,), in_specs=[window], out_specs=m.pl.BlockSpec((8, 128), lambda i: (i, 0))
    )


@kernel
def pipeline_modes(m):
    def body(x, y, o):
        o[...] = x[...] + y[...]

    spec = lambda n: m.pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=m.pl.Buffered(n))  # noqa: E731
    return call(
        m,
        body,
        ((24, 128), F),
        ((24, 128), F),
        grid=(3,),
        in_specs=[spec(1), spec(2)],
        out_specs=m.pl.BlockSpec((8, 128), lambda i: (i, 0)),
    )


@kernel
def whole_and_blocks(m):
    def body(x, y, o):
        o[...] = x[...] + y[...]

    return call(
        m, body, ((8, 128), F), ((24, 128), F), out=((24, 128), F), grid=(3,),
        in_specs=[m.pl.BlockSpec((8, 128), lambda i: (0, 0)), m.pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=m.pl.BlockSpec((8, 128), lambda i: (i, 0)),
    )  # fmt: skip


@kernel
def index_map_arithmetic(m):
    def body(x, o):
        o[...] = x[...] * 2

    spec = m.pl.BlockSpec((8, 128), lambda i, j: (2 - i, m.lax.rem(i + j, 2)))
    return call(
        m,
        body,
        ((24, 256), F),
        grid=(3, 2),
        in_specs=[spec],
        out_specs=m.pl.BlockSpec((8, 128), lambda i, j: (i, j // 1)),
    )


@kernel
def scalar_prefetch(m):
    def body(s, x, o):
        o[...] = x[...] * s[m.pl.program_id(0)].astype(F)

    grid_spec = m.pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(2,), in_specs=[m.pl.BlockSpec((8, 128), lambda i, s: (s[i], 0))],
        out_specs=m.pl.BlockSpec((8, 128), lambda i, s: (i, 0)),
    )  # fmt: skip
    return call(m, body, ((2,), I), ((16, 128), F), out=((16, 128), F), grid_spec=grid_spec)


@kernel
def smem_scalars(m):
    def body(s, x, o):
        o[...] = x[...] * s[0, 1] + s[1, 0]

    spec = m.pl.BlockSpec(memory_space=m.pltpu.SMEM)
    return call(
        m,
        body,
        ((2, 2), F),
        X,
        out=X,
        in_specs=[spec, m.pl.BlockSpec(memory_space=m.pltpu.VMEM)],
        out_specs=m.pl.BlockSpec(memory_space=m.pltpu.VMEM),
    )


@kernel
def smem_result(m):
    def body(x, o):
        o[0] = m.jnp.sum(x[...]).astype(I)
        o[1] = o[0] + 1

    return call(m, body, X, out=((2,), I), out_specs=m.pl.BlockSpec(memory_space=m.pltpu.SMEM))


@kernel
def static_slices(m):
    def body(x, o):
        o[0:8, :] = x[8:16, 128:256]
        o[8:16, :] = x[m.pl.ds(0, 8), m.pl.ds(0, 128)]

    return call(m, body, ((16, 256), F), out=((16, 128), F))


@kernel
def dynamic_slices(m):
    def body(x, o):
        i = m.pl.program_id(0)
        o[m.pl.ds(i * 8, 8), :] = x[m.pl.ds(m.pl.multiple_of(i * 8, 8), 8)] + 1

    return call(m, body, ((16, 128), F), grid=(2,))


@kernel
def row_reads(m):
    def body(x, o):
        i = m.pl.program_id(0)
        o[i] = x[i] + x[0] + x[-1]

    return call(m, body, ((8, 8, 128), F), grid=(8,))


@kernel
def strided_access(m):
    def body(x, o):
        o[...] = x[m.pl.ds(0, 8, 2), :] + x[m.pl.ds(1, 8, 2), :]

    return call(m, body, ((16, 128), F), out=X)


@kernel
def strided_store(m):
    def body(x, o):
        o[m.pl.ds(0, 8, 2), :] = x[...]
        o[m.pl.ds(1, 8, 2), :] = x[...] * 2

    return call(m, body, X, out=((16, 128), F))


@kernel
def squeezing_store(m):
    def body(x, o):
        o[0, :, 0:128] = x[0]
        o[1, 2] = x[1, 3]

    return call(m, body, ((2, 8, 128), F))


@kernel
def view_of_view(m):
    def body(x, o):
        o[...] = x.at[1].at[0:8][0:8, 0:128]

    return call(m, body, ((2, 16, 128), F), out=X)


@kernel
def bitcast_view(m):
    def body(x, o):
        o[...] = x.bitcast(m.jnp.int32)[...]

    return call(m, body, ((16, 128), F), out=((16, 128), I))


@kernel
def reshape_view(m):
    def body(x, o):
        o[...] = x.reshape(16, 128)[...]

    return call(m, body, ((2, 8, 128), F), out=((16, 128), F))


@kernel
def masked_load(m):
    def body(x, o):
        mask = m.lax.broadcasted_iota(m.jnp.int32, (8, 128), 1) < 64
        m.pltpu.store(o.at[...], m.pltpu.load(x.at[...]) + 1, mask=mask)

    return call(m, body, X)


@kernel
def aliases(m):
    def body(x, o):
        o[...] = x[...] + 1

    return call(m, body, X, input_output_aliases={0: 0})


@kernel
def several_results(m):
    def body(x, o, p):
        o[...] = x[...] + 1
        p[...] = x[...].astype(m.jnp.int32)

    s = m.jax.ShapeDtypeStruct
    return m.pl.pallas_call(body, out_shape=(s((8, 128), F), s((8, 128), I))), X


@kernel
def run_scoped(m):
    def body(x, o):
        def inner(scratch, total):
            scratch[...] = x[...] * 2
            total[0] = 3.0
            o[...] = scratch[...] + total[0]

        m.pl.run_scoped(inner, m.pltpu.VMEM((8, 128), m.jnp.float32), m.pltpu.SMEM((1,), m.jnp.float32))

    return call(m, body, X)


@kernel
def addupdate_ref(m):
    def body(x, o):
        o[...] = m.jnp.zeros_like(o)
        o[...] += x[...]

    return call(m, body, X)


@kernel
def one_dimensional(m):
    def body(x, o):
        o[...] = x[...] + 1

    return call(m, body, ((1024,), F))


# ---- control flow ---------------------------------------------------------------------------------------


@kernel
def fori_loop(m):
    def body(x, o):
        o[...] = m.lax.fori_loop(0, 4, lambda i, c: c * 2 + x[...], m.jnp.zeros_like(x))

    return call(m, body, X)


@kernel
def fori_loop_rows(m):
    def body(x, o):
        def step(i, _):
            o[m.pl.ds(i * 8, 8), :] = x[m.pl.ds(i * 8, 8), :] * i.astype(F)

        m.lax.fori_loop(0, 4, lambda i, c: (step(i, c), c)[1], None)

    return call(m, body, ((32, 128), F))


@kernel
def fori_loop_unrolled(m):
    def body(x, o):
        o[...] = m.lax.fori_loop(0, 4, lambda i, c: c + x[...] * i.astype(F), m.jnp.zeros_like(x), unroll=True)

    return call(m, body, X)


@kernel
def fori_loop_unrolled_by_2(m):
    def body(x, o):
        o[...] = m.lax.fori_loop(0, 4, lambda i, c: c + x[...] * i.astype(F), m.jnp.zeros_like(x), unroll=2)

    return call(m, body, X)


@kernel
def fori_loop_dynamic(m):
    def body(n, x, o):
        o[...] = m.lax.fori_loop(0, n[0], lambda i, c: c * 2 + x[...], m.jnp.zeros_like(x))

    smem = m.pl.BlockSpec(memory_space=m.pltpu.SMEM)
    return call(m, body, ((1,), I), X, out=X, in_specs=[smem, m.pl.BlockSpec((8, 128), lambda: (0, 0))])


@kernel
def while_loop(m):
    def body(n, x, o):
        o[...] = x[...]

        def step(c):
            o[...] = o[...] + 1.0
            return c * 2

        m.lax.while_loop(lambda c: c < n[0], step, 1)

    smem = m.pl.BlockSpec(memory_space=m.pltpu.SMEM)
    return call(m, body, ((1,), I), X, out=X, in_specs=[smem, m.pl.BlockSpec((8, 128), lambda: (0, 0))])


@kernel
def cond_values(m):
    def body(x, o):
        i = m.pl.program_id(0)
        o[...] = m.lax.cond(i == 0, lambda v: v * 2, lambda v: v + 1, x[...])

    return call(m, body, X, grid=(2,))


@kernel
def switch(m):
    def body(x, o):
        i = m.pl.program_id(0)
        o[...] = m.lax.switch(i, [lambda v: v * 2, lambda v: v + 1, lambda v: m.jnp.exp(v)], x[...])

    return call(m, body, X, grid=(3,))


@kernel
def when_else(m):
    def body(x, o):
        i = m.pl.program_id(0)

        @m.pl.when(i == 0)
        def _():
            o[...] = x[...]

        @m.pl.when(i > 0)
        def _():
            o[...] = o[...] + x[...]

    return call(m, body, X, grid=(2,))


@kernel
def scan_values(m):
    def body(x, o):
        def step(c, _):
            return c * 2.0, None

        o[...] = m.lax.scan(step, x[...], None, length=3)[0]

    return call(m, body, X)


@kernel
def jitted_helper(m):
    helper = m.jax.jit(lambda v: m.jnp.sin(v) * 2)

    def body(x, o):
        o[...] = helper(x[...]) + helper(x[...])

    return call(m, body, X)


@kernel
def named_scope(m):
    def body(x, o):
        with m.jax.named_scope("part"):
            y = x[...] * 2
        o[...] = y

    return call(m, body, X)


@kernel
def custom_functions(m):
    @m.jax.custom_jvp
    def f(v):
        return v * 3

    f.defjvp(lambda p, t: (f(*p), t[0] * 3))

    @m.jax.custom_vjp
    def g(v):
        return v + 4

    g.defvjp(lambda v: (g(v), None), lambda r, ct: (ct,))

    def body(x, o):
        o[...] = g(f(x[...]))

    return call(m, body, X)


@kernel
def debug_print(m):
    def body(x, o):
        m.pl.debug_print("step {}", m.pl.program_id(0))
        o[...] = x[...]

    return call(m, body, X, grid=(2,))


# ---- DMAs and semaphores --------------------------------------------------------------------------------


@kernel
def dma(m):
    def body(x, o, scratch, sem):
        copy = m.pltpu.make_async_copy(x, scratch, sem)
        copy.start()
        copy.wait()
        o[...] = scratch[...]

    scratch = [m.pltpu.VMEM((8, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA]
    return call(m, body, X, in_specs=[m.pl.BlockSpec(memory_space=m.pl.ANY)], scratch_shapes=scratch)


@kernel
def dma_rows(m):
    def body(x, o, scratch, sems):
        i = m.pl.program_id(0)
        copy = m.pltpu.make_async_copy(x.at[m.pl.ds(i * 8, 8), :], scratch.at[0], sems.at[0])
        copy.start()
        copy.wait()
        o[...] = scratch[0]

    scratch = [m.pltpu.VMEM((2, 8, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA((2,))]
    return call(
        m, body, ((32, 128), F), grid=(4,), in_specs=[m.pl.BlockSpec(memory_space=m.pl.ANY)],
        out_specs=m.pl.BlockSpec((8, 128), lambda i: (i, 0)), scratch_shapes=scratch,
    )  # fmt: skip


@kernel
def dma_hbm(m):
    def body(x, o):
        m.pltpu.sync_copy(x, o)

    hbm = m.pl.BlockSpec(memory_space=m.pltpu.HBM)
    return call(m, body, ((16, 128), F), in_specs=[hbm], out_specs=hbm)


@kernel
def double_buffered(m):
    rows, steps = 8, 4

    def body(x, o, buffer, sems, out_sem):
        copy = lambda i, slot: m.pltpu.make_async_copy(x.at[m.pl.ds(i * rows, rows)], buffer.at[slot], sems.at[slot])  # noqa: E731
        copy(0, 0).start()

        def step(i, c):
            slot = m.lax.rem(i, 2)

            @m.pl.when(i + 1 < steps)
            def _():
                copy(i + 1, 1 - slot).start()

            copy(i, slot).wait()
            buffer[slot] = buffer[slot] * 2
            write = m.pltpu.make_async_copy(buffer.at[slot], o.at[m.pl.ds(i * rows, rows)], out_sem)
            write.start()
            write.wait()
            return c

        m.lax.fori_loop(0, steps, step, 0)

    anywhere = m.pl.BlockSpec(memory_space=m.pl.ANY)
    scratch = [m.pltpu.VMEM((2, rows, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA((2,)), m.pltpu.SemaphoreType.DMA]
    return call(m, body, ((32, 128), F), in_specs=[anywhere], out_specs=anywhere, scratch_shapes=scratch)


@kernel
def semaphores(m):
    def body(x, o, sem, many):
        m.pl.semaphore_signal(sem, 2)
        m.pl.semaphore_signal(many.at[1], 1)
        m.pl.semaphore_wait(sem, 2)
        m.pl.semaphore_wait(many.at[1], 1)
        o[...] = x[...] + m.pl.semaphore_read(sem)

    scratch = [m.pltpu.SemaphoreType.REGULAR, m.pltpu.SemaphoreType.REGULAR((3,))]
    return call(m, body, XI, scratch_shapes=scratch)


# ---- random numbers, and the rest ------------------------------------------------------------------------


@kernel
def prng(m):
    def body(s, o):
        m.pltpu.prng_seed(s[0])
        o[...] = m.pltpu.prng_random_bits((8, 128))

    return call(m, body, ((1,), I), out=XI, in_specs=[m.pl.BlockSpec(memory_space=m.pltpu.SMEM)])


@kernel
def dynamic_roll(m):
    def body(s, x, o):
        o[...] = m.pltpu.roll(x[...], s[0], 0)

    return call(
        m,
        body,
        ((1,), I),
        X,
        out=X,
        in_specs=[m.pl.BlockSpec(memory_space=m.pltpu.SMEM), m.pl.BlockSpec((8, 128), lambda: (0, 0))],
    )


@kernel
def delayed(m):
    def body(x, o):
        m.pl.delay(100)
        o[...] = x[...]

    return call(m, body, X)


@kernel
def packed(m):
    def body(x, y, o):
        o[...] = m.pltpu.pack_elementwise([x[...], y[...]], packed_dtype=m.jnp.bfloat16)

    return call(m, body, X, X, out=XI)


@kernel
def unpacked(m):
    def body(x, o):
        o[...] = m.pltpu.unpack_elementwise(x[...], index=1, packed_dtype=m.jnp.bfloat16, unpacked_dtype=m.jnp.float32)

    return call(m, body, XI, out=X)


@kernel
def stochastic_round(m):
    def body(x, bits, o):
        o[...] = m.pltpu.stochastic_round(x[...], bits[...], target_dtype=m.jnp.bfloat16)

    return call(m, body, X, XU, out=XB)


@kernel
def trace_value(m):
    def body(x, o):
        m.pltpu.trace_value("steps", m.pl.program_id(0))
        o[...] = x[...]

    return call(m, body, X, grid=(2,))


@kernel
def dynamic_grid(m):
    def body(x, o):
        o[...] = x[...] + 1

    spec = m.pl.BlockSpec((8, 128), lambda i: (i, 0))

    def f(n, x):
        return m.pl.pallas_call(body, grid=(n,), in_specs=[spec], out_specs=spec, out_shape=x)(x)

    return f, ((), I), ((16, 128), F)


@kernel
def vmapped(m):
    f, *types = add_grid(m)
    return (m.jax.vmap(f), *[((5, *shape), dtype) for shape, dtype in types])


@kernel
def call_options(m):
    def body(x, o):
        o[...] = x[...] + 1

    params = m.pltpu.CompilerParams(
        dimension_semantics=("parallel",), vmem_limit_bytes=2**24, has_side_effects=True,
        internal_scratch_in_bytes=2**16, disable_bounds_checks=True, allow_input_fusion=[True],
        disable_semaphore_checks=True, skip_device_barrier=True,
    )  # fmt: skip
    cost = m.pl.CostEstimate(flops=1, transcendentals=2, bytes_accessed=3)
    spec = m.pl.BlockSpec((8, 128), lambda i: (i, 0))
    return call(
        m,
        body,
        ((16, 128), F),
        grid=(2,),
        in_specs=[spec],
        out_specs=spec,
        compiler_params=params,
        cost_estimate=cost,
        name="my call",
        metadata={"k": "v"},
    )


# ---- whole kernels ----------------------------------------------------------------------------------------


@kernel
def flash_attention(m):
    rows, block = 128, 128

    def body(q, k, v, o, top, total, acc):
        j = m.pl.program_id(2)

        @m.pl.when(j == 0)
        def _():
            top[...] = m.jnp.full_like(top, -1e30)
            total[...] = m.jnp.zeros_like(total)
            acc[...] = m.jnp.zeros_like(acc)

        s = m.lax.dot_general(q[...], k[...], (((1,), (1,)), ((), ())), preferred_element_type=F) * 0.125
        largest = m.jnp.maximum(top[...], m.jnp.max(s, axis=1, keepdims=True))
        scale = m.jnp.exp(top[...] - largest)
        p = m.jnp.exp(s - largest[:, :1])
        total[...] = total[...] * scale + m.jnp.sum(p, axis=1, keepdims=True)
        acc[...] = acc[...] * scale + m.jnp.dot(p, v[...], preferred_element_type=F)
        top[...] = largest

        @m.pl.when(j == m.pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...] / total[...]

    queries = m.pl.BlockSpec((None, rows, 128), lambda b, i, j: (b, i, 0))
    keys = m.pl.BlockSpec((None, block, 128), lambda b, i, j: (b, j, 0))
    types = [((2, 512, 128), F)] * 3
    scratch = [m.pltpu.VMEM((rows, 128), m.jnp.float32)] * 3
    params = m.pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary"))
    return call(
        m, body, *types, grid=(2, 4, 4), in_specs=[queries, keys, keys], out_specs=queries, scratch_shapes=scratch,
        compiler_params=params,
    )  # fmt: skip


# ---- more of references ----------------------------------------------------------------------------------


def body(name: str, f: Callable, *types, out=None, **options):
    """Adds a kernel whose body is `f(modules, *references)`."""

    def make(m):
        def kernel(*refs):
            f(m, *refs)

        made = {k: v(m) if callable(v) else v for k, v in options.items()}
        return call(m, kernel, *types, out=out, **made)

    KERNELS[name] = make


def _set(o, index, value):
    o[index] = value


SMEM = lambda m: [m.pl.BlockSpec(memory_space=m.pltpu.SMEM), m.pl.BlockSpec((8, 128), lambda: (0, 0))]  # noqa: E731
ANYS = lambda m: [m.pl.BlockSpec(memory_space=m.pl.ANY)]  # noqa: E731

# fmt: off
body("vmem_scalar", lambda m, x, o: _set(o, ..., m.jnp.full((8, 128), x[3, 5])), X)
body("vmem_scalar_dynamic", lambda m, s, x, o: _set(o, ..., m.jnp.full((8, 128), x[s[0], 1])), ((1,), I), X, out=X, in_specs=SMEM)
body("smem_bool", lambda m, s, x, o: _set(o, ..., m.jnp.where(s[0], x[...], 0.0)), ((1,), B1), X, out=X, in_specs=SMEM)
body("smem_bool_store", lambda m, s, o: _set(o, 0, s[0] > 3), ((1,), I), out=((1,), B1), in_specs=lambda m: SMEM(m)[:1], out_specs=lambda m: SMEM(m)[0])
body("smem_bf16", lambda m, s, x, o: _set(o, ..., x[...] * s[1]), ((2,), B), XB, out=XB, in_specs=SMEM)
body("smem_float_arithmetic", lambda m, s, x, o: _set(o, ..., x[...] * m.jnp.exp(s[0] * 2.0)), ((2,), F), X, out=X, in_specs=SMEM)
body("load_column", lambda m, x, o: _set(o, ..., x[:, 3:4] + x[...]), X)
body("load_row_int", lambda m, x, o: _set(o, ..., x[2] + x[...]), X)
body("load_lane_int", lambda m, x, o: _set(o, ..., x[:, 2][:, None] + x[...]), X)
body("traced_index_constant", lambda m, x, o: _set(o, m.jnp.int32(2), x[m.jnp.int32(3)]), X)
body("int8_block", lambda m, x, o: _set(o, ..., x[...]), ((32, 128), "int8"))
body("bool_slice", lambda m, x, o: _set(o, ..., m.jnp.where(x[0:8], 1.0, 0.0)), ((16, 128), B1), out=X)
body("bitcast_narrow", lambda m, x, o: _set(o, ..., x.bitcast(m.jnp.bfloat16)[...]), X, out=((16, 128), B))
body("bitcast_then_slice", lambda m, x, o: _set(o, ..., x.bitcast(m.jnp.int32).at[8:16][...]), ((16, 128), F), out=XI)
body("reshape_then_rows", lambda m, x, o: _set(o, ..., x.reshape(16, 128)[8:16]), ((2, 8, 128), F), out=X)
body("strided_dynamic", lambda m, s, x, o: _set(o, ..., x[m.pl.ds(s[0], 4, 2)]), ((1,), I), X, out=((4, 128), F), in_specs=SMEM)
body("masked_store_rows", lambda m, x, o: m.pltpu.store(o.at[0:8], x[...], mask=x[...] > 0), X, out=((16, 128), F))

# ---- more of control flow --------------------------------------------------------------------------------

body("fori_bounds", lambda m, x, o: _set(o, ..., m.lax.fori_loop(2, 6, lambda i, c: c + i.astype(F) * x[...], m.jnp.zeros((8, 128)))), X)
body("fori_scalar_carry", lambda m, x, o: _set(o, ..., m.jnp.full((8, 128), m.lax.fori_loop(0, 8, lambda i, c: c + i, 3))), XI)
body("fori_two_carries", lambda m, x, o: _set(o, ..., m.lax.fori_loop(0, 3, lambda i, c: (c[0] + c[1], c[1] * 2), (x[...], x[...] + 1))[0]), X)
body("fori_dynamic_start", lambda m, s, x, o: _set(o, ..., m.lax.fori_loop(s[0], 5, lambda i, c: c + x[...], m.jnp.zeros((8, 128)))), ((1,), I), X, out=X, in_specs=SMEM)
body("while_vectors", lambda m, x, o: _set(o, ..., m.lax.while_loop(lambda c: m.jnp.max(c) < 10.0, lambda c: c * 2, x[...])), X)
body("while_two", lambda m, x, o: _set(o, ..., m.lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 3, c[1] * 2), (0, x[...]))[1]), X)
body("cond_no_result", lambda m, s, x, o: m.lax.cond(s[0] > 2, lambda: _set(o, ..., x[...]), lambda: _set(o, ..., x[...] * 2)), ((1,), I), X, out=X, in_specs=SMEM)
body("cond_mask", lambda m, s, x, o: _set(o, ..., m.jnp.where(m.lax.cond(s[0] > 2, lambda: x[...] > 0, lambda: x[...] < 0), x[...], 0.0)), ((1,), I), X, out=X, in_specs=SMEM)
body("scan_reversed", lambda m, x, o: _set(o, ..., m.lax.fori_loop(0, 4, lambda i, c: c + (3 - i).astype(F), x[...])), X)
body("nested_loops", lambda m, x, o: _set(o, ..., m.lax.fori_loop(0, 4, lambda i, c: m.lax.fori_loop(0, 2, lambda j, d: d + (i * j).astype(F), c), x[...])), X)
body("nested_when", lambda m, s, x, o: m.pl.when(s[0] > 0)(lambda: m.pl.when(s[0] < 5)(lambda: _set(o, ..., x[...]))), ((1,), I), X, out=X, in_specs=SMEM)
body("pl_loop", lambda m, x, o: m.pl.loop(0, 4)(lambda i: _set(o, i, x[i] * 2)), X)
body("scalar_select", lambda m, s, x, o: _set(o, ..., x[...] * m.jnp.where(s[0] > 2, 1.0, 3.0)), ((1,), I), X, out=X, in_specs=SMEM)
body("scalar_arithmetic", lambda m, s, x, o: _set(o, ..., x[...] + (m.jnp.maximum(s[0], 2) * 3 - s[0] // 2 % 5).astype(F)), ((1,), I), X, out=X, in_specs=SMEM)
body("scalar_minmax_float", lambda m, s, x, o: _set(o, ..., x[...] + m.jnp.clip(s[0], 0.0, 1.0)), ((1,), F), X, out=X, in_specs=SMEM)
body("scalar_bool_logic", lambda m, s, x, o: m.pl.when((s[0] > 2) & ~(s[0] == 5) | (s[0] < 0))(lambda: _set(o, ..., x[...])), ((1,), I), X, out=X, in_specs=SMEM)
body("debug_print_plain", lambda m, x, o: (m.pl.debug_print("here"), _set(o, ..., x[...]))[1], X)
body("debug_print_two", lambda m, s, x, o: (m.pl.debug_print("a {} b {}", s[0], s[0] + 1), _set(o, ..., x[...]))[1], ((1,), I), X, out=X, in_specs=SMEM)
body("debug_print_vector", lambda m, x, o: (m.pl.debug_print("x {}", x[...]), _set(o, ..., x[...]))[1], X)
body("nested_scopes", lambda m, x, o: _set(o, ..., m.jax.named_call(m.jax.named_call(m.jnp.sin, name="inner"), name="outer")(x[...])), X)

# ---- more of values ---------------------------------------------------------------------------------------

values("convert_bool_to_i8", lambda m, x: (x > 0).astype("int8"), ((32, 128), F), out=((32, 128), "int8"))
values("convert_i8_to_bool", lambda m, x: m.jnp.where(x.astype(bool), 1.0, 0.0), ((32, 128), "int8"), out=((32, 128), F))
values("convert_bf16_i8", lambda m, x: x.astype("int8"), ((32, 128), B), out=((32, 128), "int8"))
values("convert_f8_bf16", lambda m, x: x.astype(B), ((32, 128), "float8_e4m3fn"), out=((32, 128), B))
values("convert_i4", lambda m, x: x.astype(I), ((64, 128), "int4"), out=((64, 128), I))
values("convert_bf16_uint32", lambda m, x: x.astype(U), ((32, 128), B), out=((32, 128), U))
values("convert_uint32_bf16", lambda m, x: x.astype(B), ((32, 128), U), out=((32, 128), B))
values("convert_uint32_uint8", lambda m, x: x.astype("uint8"), ((32, 128), U), out=((32, 128), "uint8"))
values("mask_eq", lambda m, x, y: m.jnp.where((x > 0) == (y > 0), x, y), X, X)
values("mask_ne", lambda m, x, y: m.jnp.where((x > 0) != (y > 0), x, y), X, X)
values("mask_xor", lambda m, x, y: m.jnp.where((x > 0) ^ (y > 0), x, y), X, X)
values("mask_select", lambda m, x, y: m.jnp.where(m.jnp.where(x > 0, y > 0, x > y), x, y), X, X)
values("mask_broadcast", lambda m, x: m.jnp.where(m.jnp.broadcast_to((x > 0)[0:1], (8, 128)), x, 0.0), X)
values("mask_iota", lambda m, x: m.jnp.where(m.lax.broadcasted_iota(I, (8, 128), 0) >= m.lax.broadcasted_iota(I, (8, 128), 1), x, -1e30), X)
values("scalar_condition", lambda m, x: m.jnp.where(x[0, 0] > 0, x, x * 2), X)
values("select_scalars", lambda m, x: m.jnp.where(x[0, 0] > 0, 1.0, 2.0) * x, X)
values("reduce_two_axes", lambda m, x: m.jnp.sum(x, (0, 1))[None, None] * m.jnp.ones((8, 128)), X)
values("reduce_max_3d_last", lambda m, x: m.jnp.max(x, 2), ((4, 8, 128), F), out=((4, 8), F))
values("reduce_sum_3d_two", lambda m, x: m.jnp.sum(x, (0, 1), keepdims=True)[0], ((4, 8, 128), F), out=((1, 128), F))
values("reduce_min_int_rows", lambda m, x: m.jnp.min(x, 0, keepdims=True), XI, out=((1, 128), I))
values("reduce_sum_all_int", lambda m, x: m.jnp.full((8, 128), m.jnp.sum(x)), XI)
values("any_all_rows", lambda m, x: m.jnp.where(m.jnp.all(x > 0, axis=0, keepdims=True), x, 0.0), X)
values("argmax_int", lambda m, x: m.jnp.argmax(x, 1, keepdims=True).astype(I), X, out=((8, 1), I))
values("mean", lambda m, x: m.jnp.mean(x, 0, keepdims=True), X, out=((1, 128), F))
values("logsumexp", lambda m, x: m.jax.nn.logsumexp(x, axis=1, keepdims=True), X, out=((8, 1), F))
values("einsum", lambda m, x, y: m.jnp.einsum("ij,kj->ik", x, y, preferred_element_type=F), ((128, 256), F), ((64, 256), F), out=((128, 64), F))
values("dot_precisions", lambda m, x, y: m.lax.dot_general(x, y, (((1,), (0,)), ((), ())), precision=(m.lax.Precision.HIGHEST, m.lax.Precision.HIGHEST)), _SQUARE, _SQUARE)
values("dot_mixed", lambda m, x, y: m.lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=F), ((128, 128), B), ((128, 128), F), out=_SQUARE)
values("dot_f8", lambda m, x, y: m.jnp.dot(x, y, preferred_element_type=F), ((128, 128), "float8_e5m2"), ((128, 128), "float8_e5m2"), out=_SQUARE)
values("dot_vector_left", lambda m, x, y: m.lax.dot_general(x[0], y, (((0,), (0,)), ((), ())))[None], X, ((128, 128), F), out=((1, 128), F))
values("dot_vector_right", lambda m, x, y: m.lax.dot_general(x, y[0], (((1,), (0,)), ((), ())))[:, None], X, X, out=((8, 1), F))
values("tile_rows", lambda m, x: m.jnp.tile(x, (2, 1)), X, out=((16, 128), F))
values("repeat_rows", lambda m, x: m.jnp.repeat(x, 2, axis=0), X, out=((16, 128), F))
values("pad_both", lambda m, x: m.lax.pad(x, 1.0, ((8, 8, 0), (0, 128, 0))), X, out=((24, 256), F))
values("expand_lanes", lambda m, x: x[:, :, None], X, out=((8, 128, 1), F))
values("expand_first", lambda m, x: x[None], X, out=((1, 8, 128), F))
values("reshape_lanes", lambda m, x: x.reshape(4, 256), X, out=((4, 256), F))
values("unstack", lambda m, x: sum(m.jnp.unstack(x)), ((2, 8, 128), F), out=X)
values("split_rows", lambda m, x: m.jnp.split(x, 2, axis=0)[1], ((16, 128), F), out=X)
values("broadcast_scalar_value", lambda m, x: m.jnp.broadcast_to(x[0, 0] * 2, (8, 128)), X)
values("broadcast_3d", lambda m, x: m.jnp.broadcast_to(x[:, None], (8, 4, 128)), X, out=((8, 4, 128), F))
values("broadcast_column_vector", lambda m, x: m.lax.broadcast_in_dim(x[:, 0], (8, 128), (0,)), X)
values("swapaxes_rows", lambda m, x: m.jnp.transpose(x, (2, 0, 1)), ((8, 8, 128), F), out=((128, 8, 8), F))
values("erfc_like", lambda m, x: 1 - m.lax.erf(x), X)
values("iota_1d", lambda m, x: x + m.lax.iota(I, 128), XI)
values("arange", lambda m, x: x + m.jnp.arange(8)[:, None], XI)
values("power_scalar", lambda m, x: x**2.5, X)
values("sqrt_div", lambda m, x, y: x / m.jnp.sqrt(y * y + 1e-5), X, X)
values("floor_divide", lambda m, x, y: x // y, XI, XI)
values("mod", lambda m, x, y: x % y, XI, XI)
values("mod_float", lambda m, x, y: m.jnp.mod(x, y), X, X)
values("maximum_bf16", lambda m, x, y: m.jnp.maximum(x, y) + m.jnp.minimum(x, 1.0), XB, XB)
values("sign_bf16", lambda m, x: m.jnp.sign(x), XB)
values("sign_uint", lambda m, x: m.jnp.sign(x), XU)
values("round_half", lambda m, x: m.jnp.round(x), X)
values("cube_bf16", lambda m, x: x**3, XB)
values("not_uint", lambda m, x: ~x, XU)
values("reciprocal_full", lambda m, x: m.pl.reciprocal(x, approx=False, full_range=False), X)
values("mul_uint", lambda m, x, y: x * y + (x >> 3) - (y << 2), XU, XU)
values("expm1_by_hand", lambda m, x: m.jnp.exp(x) - 1, X)
values("bf16_sum_rows", lambda m, x: m.jnp.sum(x.astype(F), 0, keepdims=True), XB, out=((1, 128), F))
values("bf16_mul_add", lambda m, x, y: x * y + x, XB, XB)
values("pltpu_repeat", lambda m, x: m.jnp.concatenate([x] * 3, axis=0), X, out=((24, 128), F))
values("threefry", lambda m, x: m.jax.random.bits(m.jax.random.key(0), (8, 128)) + x, XU)
values("uniform_of_key", lambda m, x: m.jax.random.uniform(m.jax.random.key(3), (8, 128)) + x, X)
# fmt: on

# ---- more of operands, copies, semaphores and the grid ---------------------------------------------------------

VMEM_AND_DMA = lambda m: [m.pltpu.VMEM((8, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA]  # noqa: E731
BLOCKS = lambda m: m.pl.BlockSpec((8, 128), lambda i: (i, 0))  # noqa: E731


TALL = ((32, 128), F)


def _all(*_):
    """Does nothing with the results of what was called."""


def _use(x, f):
    return f(x)


# fmt: off
body("scratch_kinds", lambda m, x, o, a, b: _set(o, ..., x[...]), X, scratch_shapes=lambda m: [m.pltpu.VMEM((16, 256), m.jnp.bfloat16), m.pltpu.SMEM((4,), m.jnp.int32)])
body("rank0_scratch", lambda m, x, o, s: _all(_set(s, ..., 3.0), _set(o, ..., x[...] + s[...])), X, scratch_shapes=lambda m: [m.pltpu.SMEM((), m.jnp.float32)])
body("rank0_smem_in", lambda m, s, x, o: _set(o, ..., x[...] * s[...]), ((), F), X, out=X, in_specs=SMEM)
body("dma_priority", lambda m, x, o, s, sem: _all(m.pltpu.make_async_copy(x, s, sem).start(priority=1), m.pltpu.make_async_copy(x, s, sem).wait(), _set(o, ..., s[...])), X, in_specs=ANYS, scratch_shapes=VMEM_AND_DMA)
body("dma_async_copy", lambda m, x, o, s, sem: _all(m.pltpu.async_copy(x.at[m.pl.ds(0, 8)], s.at[m.pl.ds(0, 8), m.pl.ds(0, 128)], sem).wait(), _set(o, ..., s[...])), ((32, 128), F), out=X, in_specs=ANYS, scratch_shapes=VMEM_AND_DMA)
body("dma_reshape", lambda m, x, o, s, sem: _all(m.pltpu.async_copy(x.reshape(16, 128).at[8:16], s, sem).wait(), _set(o, ..., s[...])), ((2, 8, 128), F), out=X, in_specs=ANYS, scratch_shapes=VMEM_AND_DMA)
body("sem_dynamic", lambda m, x, o, s: _all(m.pl.semaphore_signal(s.at[x[0, 0]], x[1, 1]), m.pl.semaphore_wait(s.at[x[0, 0]], x[1, 1]), _set(o, ..., x[...])), XI, scratch_shapes=lambda m: [m.pltpu.SemaphoreType.REGULAR((4,))])
body("sem_core", lambda m, x, o, s: _all(m.pl.semaphore_signal(s, 1, core_index=0), m.pl.semaphore_wait(s, 1), _set(o, ..., x[...])), XI, scratch_shapes=lambda m: [m.pltpu.SemaphoreType.REGULAR])
body("run_scoped_result", lambda m, x, o: _set(o, ..., m.pl.run_scoped(lambda s: [_set(s, ..., x[...]), s[...] * 2][1], m.pltpu.VMEM((8, 128), m.jnp.float32))), X)
body("run_scoped_sems", lambda m, x, o: m.pl.run_scoped(lambda s, t: _all(m.pl.semaphore_signal(s, 1), m.pl.semaphore_wait(s, 1), _set(o, ..., x[...])), m.pltpu.SemaphoreType.REGULAR, m.pltpu.SemaphoreType.DMA((2,))), X)
body("prng_two_seeds", lambda m, s, o: _all(m.pltpu.prng_seed(s[0], 3), _set(o, ..., m.pltpu.prng_random_bits((8, 128)))), ((1,), I), out=XI, in_specs=lambda m: SMEM(m)[:1])
body("aligned", lambda m, s, x, o: _set(o, ..., x[m.pl.ds(m.pl.multiple_of(s[0], 4), 4)]), ((1,), I), X, out=((4, 128), F), in_specs=SMEM)
body("bool_at_least", lambda m, x, o: _set(o, ..., m.jnp.where((x[...] > 0) >= (x[...] > 1), 1.0, 0.0)), X)
body("bool_at_most", lambda m, x, o: _set(o, ..., m.jnp.where((x[...] > 0) <= (x[...] > 1), 1.0, 0.0)), X)
body("bool_less", lambda m, x, o: _set(o, ..., m.jnp.where((x[...] > 0) < (x[...] > 1), 1.0, 0.0)), X)
body("scalar_bitcast", lambda m, s, o: _set(o, 0, m.lax.bitcast_convert_type(s[0], m.jnp.float32)), ((1,), I), out=((1,), F), in_specs=lambda m: SMEM(m)[:1], out_specs=lambda m: SMEM(m)[0])
body("stack_of_one", lambda m, x, o: _set(o, ..., m.jnp.stack([x[...]])), X, out=((1, 8, 128), F))
body("squeezed_bools", lambda m, x, o: _set(o, ..., x[...]), ((4, 8, 128), B1), grid=(4,), in_specs=lambda m: [m.pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))], out_specs=lambda m: m.pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)))
body("revisited", lambda m, x, o: _set(o, ..., x[...]), TALL, out=X, grid=(4,), in_specs=lambda m: [BLOCKS(m)], out_specs=lambda m: m.pl.BlockSpec((8, 128), lambda i: (0, 0), pipeline_mode=m.pl.Buffered(1, revisit=m.pl.RevisitMode.ANY)))
body("revisited_blocks", lambda m, x, o: _set(o, ..., x[...]), TALL, out=((16, 128), F), grid=(4,), in_specs=lambda m: [BLOCKS(m)], out_specs=lambda m: m.pl.BlockSpec((8, 128), lambda i: (m.lax.rem(i, 2), 0), pipeline_mode=m.pl.Buffered(1, revisit=m.pl.RevisitMode.ANY)))
values("power_of_two", lambda m, x: m.jnp.power(2.0, x), X)
values("select_by_int", lambda m, i, x, y: m.lax.select_n(i, x, y), XI, X, X, out=X)
values("diagonal", lambda m, x: m.jnp.diagonal(x)[None], ((128, 128), F), out=((1, 128), F))
values("platform_dependent", lambda m, x: m.lax.platform_dependent(x, tpu=lambda v: v * 2, default=lambda v: v + 3), X)
for _name, (_equation, _shape, _out, _sizes) in {
    "split_merge": ("a(bc)->(ab)c", (8, 256), (16, 128), dict(b=2)), "tiles_to_front": ("a(bc)->bac", (8, 512), (4, 8, 128), dict(b=4)),
    "rows": ("a(bc)->b(ac)", (8, 256), (2, 1024), dict(c=128)), "to_lanes": ("(ab)c->b(ac)", (16, 128), (8, 256), dict(b=8)),
    "tiles": ("ab(cd)->cabd", (2, 8, 512), (4, 2, 8, 128), dict(c=4)), "transposed": ("ab->ba", (128, 256), (256, 128), {}),
    "merged": ("abcd->ab(cd)", (2, 3, 4, 128), (2, 3, 512), {}), "both": ("xybd->(xb)(yd)", (2, 2, 8, 128), (16, 256), {}),
    "led": ("ab(cd)->(ca)bd", (2, 8, 256), (4, 8, 128), dict(c=2)), "three": ("xyz(wb)->wz(xy)b", (2, 2, 8, 256), (2, 8, 4, 128), dict(w=2)),
}.items():
    values(f"einshape_{_name}", lambda m, x, _e=_equation, _s=_sizes: m.pltpu.einshape(_e, x, **_s), (_shape, F), out=(_out, F))
body("jvp_in_kernel", lambda m, x, o: _set(o, ..., m.jax.jvp(m.jnp.sin, (x[...],), (x[...],))[1]), X)
body("vmap_in_kernel", lambda m, x, o: _set(o, ..., m.jax.vmap(lambda v: v * 2 + 1)(x[...])), X)
body("allocated", lambda m, x, o: _use(m.jax.empty_ref(m.jax.ShapeDtypeStruct((8, 128), m.jnp.float32), memory_space=m.pltpu.VMEM), lambda r: _all(_set(r, ..., x[...] * 2), _set(o, ..., r[...]))), X)
body("numpy_scalars", lambda m, x, o: _set(o, ..., x[...] + m.jnp.float32(2.5) + m.jnp.float32(1.5)), X)
body("int16_block", lambda m, x, o: _set(o, ..., x[...] + 1), ((16, 128), "int16"))
body("uint8_block", lambda m, x, o: _set(o, ..., m.jnp.maximum(x[...], 3)), ((32, 128), "uint8"))
body("float16_block", lambda m, x, o: _set(o, ..., x[...] + 1), ((16, 128), "float16"))
body("fori_remainder", lambda m, x, o: _set(o, ..., m.lax.fori_loop(0, 7, lambda i, c: c + i.astype(F), x[...], unroll=2)), X)
body("fori_one_step", lambda m, x, o: _set(o, ..., m.lax.fori_loop(1, 2, lambda i, c: c + i.astype(F), x[...])), X)
body("fori_no_step", lambda m, x, o: _set(o, ..., m.lax.fori_loop(1, 1, lambda i, c: c + i.astype(F), x[...])), X)
body("negative_scalar", lambda m, s, x, o: _set(o, ..., -s[0] * x[...]), ((1,), F), X, out=X, in_specs=SMEM)
body("constant_carry", lambda m, x, o: _set(o, ..., m.lax.fori_loop(0, 4, lambda i, c: (c[0] + 1.0, c[1]), (x[...], 2.0))[0]), X)
body("switch_of_four", lambda m, s, x, o: _set(o, ..., m.lax.switch(s[0], [lambda v: v, lambda v: v * 2, lambda v: v * 3, lambda v: v * 4], x[...])), ((1,), I), X, out=X, in_specs=SMEM)
body("cond_of_literal", lambda m, s, x, o: _set(o, ..., m.lax.cond(s[0] > 0, lambda a, v: v * a, lambda a, v: v, 3.0, x[...])), ((1,), I), X, out=X, in_specs=SMEM)
body("jit_of_literal", lambda m, x, o: _set(o, ..., m.jax.jit(lambda v, a: v * a + a)(x[...], 3.0)), X)
body("jax_debug_print", lambda m, s, x, o: _all(m.jax.debug.print("f {}!", s[0]), _set(o, ..., x[...])), ((1,), I), X, out=X, in_specs=SMEM)
body("bool_order", lambda m, x, o: _set(o, ..., m.jnp.where((x[...] > 0) > (x[...] > 1), 1.0, 0.0)), X)
body("relu6", lambda m, x, o: _set(o, ..., m.jax.nn.relu6(x[...])), X)
body("sum_of_row", lambda m, x, o: _set(o, ..., m.jnp.full((8, 128), m.jnp.sum(x[0]))), X)
body("dot_bf16_highest", lambda m, x, y, o: _set(o, ..., m.jnp.dot(x[...], y[...], precision="highest", preferred_element_type=F)), ((128, 128), B), ((128, 128), B), out=_SQUARE)
body("int8_iota", lambda m, x, o: _set(o, ..., m.lax.broadcasted_iota("int8", (32, 128), 1)), ((32, 128), "int8"))
body("normal_of_folded_key", lambda m, s, o: _set(o, ..., m.jax.random.normal(m.jax.random.fold_in(m.jax.random.key(3), s[0]), (8, 128))), ((1,), I), out=X, in_specs=lambda m: SMEM(m)[:1])
body("vector_blocks", lambda m, x, o: _set(o, ..., x[...] + 1), ((2048,), F), grid=(2,), in_specs=lambda m: [m.pl.BlockSpec((1024,), lambda i: i)], out_specs=lambda m: m.pl.BlockSpec((1024,), lambda i: i))
body("partial_blocks", lambda m, x, o: _set(o, ..., x[...] + 1), ((20, 128), F), grid=(3,), in_specs=lambda m: [BLOCKS(m)], out_specs=BLOCKS)
body("blocks_of_one", lambda m, x, o: _set(o, ..., x[...] + 1), ((4, 8, 128), F), grid=(4,), in_specs=lambda m: [m.pl.BlockSpec((1, 8, 128), lambda i: (i, 0, 0))], out_specs=lambda m: m.pl.BlockSpec((1, 8, 128), lambda i: (i, 0, 0)))
body("vmem_blocks", lambda m, x, o: _set(o, ..., x[...] + 1), ((24, 128), F), grid=(3,), in_specs=lambda m: [m.pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=m.pltpu.VMEM)], out_specs=lambda m: m.pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=m.pltpu.VMEM))
body("hbm_over_grid", lambda m, x, o, sem: m.pltpu.async_copy(x, o, sem).wait(), X, grid=(2,), in_specs=lambda m: [m.pl.BlockSpec(memory_space=m.pltpu.HBM)], out_specs=lambda m: m.pl.BlockSpec(memory_space=m.pltpu.HBM), scratch_shapes=lambda m: [m.pltpu.SemaphoreType.DMA])
# fmt: on


@kernel
def operands_in_memory_spaces(m):
    def body(x, y, o):
        o[...] = x[...] + y[...]

    def f(x, y):
        x, y = (
            m.pltpu.with_memory_space_constraint(x, m.pltpu.HBM),
            m.pltpu.with_memory_space_constraint(y * 2, m.pltpu.VMEM),
        )
        return m.pl.pallas_call(body, out_shape=m.jax.ShapeDtypeStruct((8, 128), m.jnp.float32))(x, y)

    return f, X, X


@kernel
def result_in_hbm(m):
    def body(x, o, sem):
        m.pltpu.async_copy(x, o, sem).wait()

    result = m.pltpu.HBM((8, 128), m.jnp.float32)
    return m.pl.pallas_call(body, out_shape=result, scratch_shapes=[m.pltpu.SemaphoreType.DMA]), X


@kernel
def result_in_vmem(m):
    def body(x, o, p):
        o[...] = x[...]
        p[...] = x[...]

    results = m.pltpu.VMEM((8, 128), m.jnp.float32), m.jax.ShapeDtypeStruct((8, 128), m.jnp.float32)
    return m.pl.pallas_call(body, out_shape=results), X


@kernel
def semaphore_result(m):
    """The copy is started here; another kernel gets the semaphore and waits."""

    def start(x, o, sem):
        m.pltpu.make_async_copy(x, o, sem).start()

    def wait(x, o, sem, p):
        m.pltpu.make_async_copy(o, p, sem).wait()

    anywhere, of_sem = m.pl.BlockSpec(memory_space=m.pl.ANY), m.pl.BlockSpec(memory_space=m.pltpu.SEMAPHORE)
    types = m.jax.ShapeDtypeStruct((8, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA(())
    options = dict(compiler_params=m.pltpu.CompilerParams(has_side_effects=True))
    first = m.pl.pallas_call(start, out_shape=types, out_specs=(anywhere, of_sem), in_specs=[anywhere], **options)
    second = m.pl.pallas_call(
        wait, out_shape=types[0], out_specs=anywhere, in_specs=[anywhere, anywhere, of_sem],
        input_output_aliases={1: 0}, **options,
    )  # fmt: skip
    return lambda x: second(x, *first(x)), X


@kernel
def prefetched_scalar(m):
    def body(s, x, o):
        o[...] = x[...] * s[...].astype(F)

    spec = m.pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(2,), in_specs=[m.pl.BlockSpec((8, 128), lambda i, s: (s[...], 0))],
        out_specs=m.pl.BlockSpec((8, 128), lambda i, s: (i, 0)),
    )  # fmt: skip
    return call(m, body, ((), I), ((16, 128), F), out=((16, 128), F), grid_spec=spec)


@kernel
def squeezed_views(m):
    def body(x, o):
        o[0:8] = x.at[1].at[0:8][...]
        o[2] = x[0, 2]

    return call(
        m, body, ((4, 2, 8, 128), F), out=((4, 8, 128), F), grid=(4,),
        in_specs=[m.pl.BlockSpec((None, 2, 8, 128), lambda i: (i, 0, 0, 0))],
        out_specs=m.pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0)),
    )  # fmt: skip


@kernel
def bool_arguments(m):
    def body(x, o, p):
        o[...] = x[...]
        p[...] = m.jnp.where(x[...], 1.0, 0.0)

    s = m.jax.ShapeDtypeStruct
    return m.pl.pallas_call(body, out_shape=(s((8, 128), m.jnp.bool_), s((8, 128), m.jnp.float32))), XM


@kernel
def dynamic_grid_aliased(m):
    def body(x, o):
        o[...] = x[...] + m.pl.num_programs(0).astype(F) + m.pl.num_programs(1)

    spec = m.pl.BlockSpec((8, 128), lambda i, j: (i, 0))

    def f(n, x):
        call = m.pl.pallas_call(
            body, grid=(n, 2), in_specs=[spec], out_specs=spec, out_shape=x, input_output_aliases={0: 0}
        )
        return call(x)

    return f, ((), I), ((16, 128), F)


@kernel
def vmapped_twice(m):
    f, *types = two_axes(m)
    return (m.jax.vmap(m.jax.vmap(f)), *[((5, 3, *shape), dtype) for shape, dtype in types])


# ---- several devices ----------------------------------------------------------------------------------------

SHARDED: dict[str, Callable] = {}  # of (modules, mesh)


def sharded(make: Callable) -> Callable:
    """Adds a kernel that runs on each device of a mesh with the axes x and y of 2 and 4 devices, or less."""
    SHARDED[make.__name__] = make
    return make


def _remote(m, mesh, body, scratch, **options):
    anywhere = m.pl.BlockSpec(memory_space=m.pl.ANY)
    shape = m.jax.ShapeDtypeStruct((8, 128), m.jnp.float32)
    f = m.pl.pallas_call(
        body, out_shape=shape, in_specs=[anywhere], out_specs=anywhere, scratch_shapes=scratch, **options
    )
    spec = m.jax.P(mesh.axis_names)
    return m.jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False), ((8 * mesh.size, 128), F)


def _copy_to(device, kind, barrier=True):
    def make(m, mesh):
        target, name = device(m), getattr(m.pl.DeviceIdType, kind)

        def body(x, o, sent, received):
            if barrier:
                all_ready = m.pltpu.get_barrier_semaphore()
                m.pl.semaphore_signal(all_ready, 1, device_id=target(), device_id_type=name)
                m.pl.semaphore_wait(all_ready, 1)
            copy = m.pltpu.make_async_remote_copy(x, o, sent, received, device_id=target(), device_id_type=name)
            copy.start()
            copy.wait()

        params = m.pltpu.CompilerParams(collective_id=3) if barrier else None
        return _remote(m, mesh, body, [m.pltpu.SemaphoreType.DMA] * 2, compiler_params=params)

    return make


def _next(m, axis):
    return m.lax.rem(m.lax.axis_index(axis) + 1, m.lax.axis_size(axis))


SHARDED["remote_copy"] = _copy_to(lambda m: lambda: (m.lax.axis_index("x"), _next(m, "y")), "MESH", barrier=False)
SHARDED["remote_coordinates"] = _copy_to(lambda m: lambda: (m.lax.axis_index("x"), _next(m, "y")), "MESH")
SHARDED["remote_axis"] = _copy_to(lambda m: lambda: {"y": _next(m, "y")}, "MESH")
SHARDED["remote_number"] = _copy_to(lambda m: lambda: _next(m, "y"), "LOGICAL")
SHARDED["remote_constant"] = _copy_to(lambda m: lambda: (0, 1), "MESH")


@sharded
def ring(m, mesh):
    """Sums the shards over the axis y: each step adds what came from the left and passes it on."""

    def body(x, o, buffer, sent, received, here):
        steps, right = m.lax.axis_size("y"), (m.lax.axis_index("x"), _next(m, "y"))
        ready = m.pltpu.get_barrier_semaphore()
        m.pl.semaphore_signal(ready, 1, device_id=right)
        m.pl.semaphore_wait(ready, 1)
        m.pltpu.async_copy(x, buffer.at[0], here).wait()
        m.pltpu.async_copy(x, o, here).wait()

        def step(i, c):
            now, then = m.lax.rem(i, 2), m.lax.rem(i + 1, 2)
            copy = m.pltpu.make_async_remote_copy(
                buffer.at[now], buffer.at[then], sent.at[now], received.at[then], device_id=right
            )
            copy.start()
            copy.wait()
            o[...] = o[...] + buffer[then]
            return c

        m.lax.fori_loop(0, steps - 1, step, 0)

    scratch = [
        m.pltpu.VMEM((2, 8, 128), m.jnp.float32),
        *[m.pltpu.SemaphoreType.DMA((2,))] * 2,
        m.pltpu.SemaphoreType.DMA,
    ]
    vmem, anywhere = m.pl.BlockSpec(memory_space=m.pltpu.VMEM), m.pl.BlockSpec(memory_space=m.pl.ANY)
    f = m.pl.pallas_call(
        body, out_shape=m.jax.ShapeDtypeStruct((8, 128), m.jnp.float32), in_specs=[anywhere], out_specs=vmem,
        scratch_shapes=scratch, compiler_params=m.pltpu.CompilerParams(collective_id=0),
    )  # fmt: skip
    spec = m.jax.P(mesh.axis_names)
    return m.jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False), ((8 * mesh.size, 128), F)


@sharded
def signals_of_views(m, mesh):
    def body(x, o, many, sent, received):
        right = {"y": _next(m, "y")}
        m.pl.semaphore_signal(many.at[1], 2, device_id=right)
        m.pl.semaphore_wait(many.at[1], 2)
        copy = m.pltpu.make_async_remote_copy(x.at[0:8], o.at[0:8], sent.at[0], received.at[1], device_id=right)
        copy.start()
        copy.wait_recv()
        copy.wait_send()

    scratch = [m.pltpu.SemaphoreType.REGULAR((2,)), *[m.pltpu.SemaphoreType.DMA((2,))] * 2]
    return _remote(m, mesh, body, scratch)


# ---- groups -------------------------------------------------------------------------------------------------


@kernel
def grouped_matmul(m):
    """Rows in tiles, each of which is multiplied by the matrix of its group."""
    rows, depth, columns = 128, 256, 256

    def body(groups, x, w, o, acc):
        k = m.pl.program_id(2)

        @m.pl.when(k == 0)
        def _():
            acc[...] = m.jnp.zeros_like(acc)

        acc[...] += m.jnp.dot(x[...], w[...], preferred_element_type=F)

        @m.pl.when((k == m.pl.num_programs(2) - 1) & (groups[m.pl.program_id(0)] >= 0))
        def _():
            o[...] = acc[...].astype(o.dtype)

    spec = m.pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4, columns // 128, depth // 128),
        in_specs=[
            m.pl.BlockSpec((rows, 128), lambda i, j, k, groups: (i, k)),
            m.pl.BlockSpec((None, 128, 128), lambda i, j, k, groups: (groups[i], k, j)),
        ],
        out_specs=m.pl.BlockSpec((rows, 128), lambda i, j, k, groups: (i, j)),
        scratch_shapes=[m.pltpu.VMEM((rows, 128), m.jnp.float32)],
    )
    types = ((4,), I), ((4 * rows, depth), B), ((3, depth, columns), B)
    params = m.pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary"))
    return call(m, body, *types, out=((4 * rows, columns), B), grid_spec=spec, compiler_params=params)


# ---- references that are chosen by a number -------------------------------------------------------------------


def choosing(name: str, choose: Callable, *types, sems=1, out=None) -> None:
    """Adds a kernel that copies from `choose(modules, number, references, semaphores)`, a pair of reference and semaphore."""

    def make(m):
        def body(number, *refs):
            *sources, o, scratch, sem = refs
            source, end = choose(m, number[0], sources, sem)
            m.pltpu.async_copy(source, scratch, end).wait()
            o[...] = scratch[...]

        result = out or types[0]
        smem, anywhere = m.pl.BlockSpec(memory_space=m.pltpu.SMEM), m.pl.BlockSpec(memory_space=m.pl.ANY)
        scratch = [m.pltpu.VMEM(result[0], m.jnp.dtype(result[1])), m.pltpu.SemaphoreType.DMA((sems,))]
        specs = [smem, *[anywhere] * len(types)]
        return call(m, body, ((1,), I), *types, out=result, in_specs=specs, scratch_shapes=scratch)

    KERNELS[f"choose_{name}"] = make


choosing("two", lambda m, i, refs, sem: (m.pl.select_ref(i, *refs), sem.at[0]), X, X)
choosing("four", lambda m, i, refs, sem: (m.pl.select_ref(i, *refs), sem.at[0]), X, X, X, X)
choosing(
    "semaphore",
    lambda m, i, refs, sem: (m.pl.select_ref(i, *refs), m.pl.select_ref(i, sem.at[0], sem.at[1])),
    *(X, X, X),
    sems=2,
)
choosing(
    "views",
    lambda m, i, refs, sem: (m.pl.select_ref(i, refs[0].at[1], refs[0].at[i]), sem.at[0]),
    ((3, 8, 128), F),
    out=X,
)
choosing(
    "nested",
    lambda m, i, refs, sem: (
        m.pl.select_ref(i, *[m.pl.select_ref(0, r.at[:, :128], r.at[:, 128:]) for r in refs]).reshape(8, 128),
        sem.at[0],
    ),
    *(((8, 256), F), ((8, 256), F)),
    out=X,
)


# ---- kernels whose results nothing uses ------------------------------------------------------------------------


@kernel
def without_results(m):
    return m.pl.pallas_call(lambda x: m.pl.debug_print("at {}", m.pl.program_id(0)), (), grid=2), X


@kernel
def unused(m):
    f = m.pl.pallas_call(lambda x, o: o.__setitem__(..., x[...]), m.jax.ShapeDtypeStruct(*X))
    return lambda x: (f(x), x + 1)[1], X


@kernel
def unused_in_a_branch(m):
    params = m.pltpu.CompilerParams(has_side_effects=True)
    body = lambda x, o: o.__setitem__(..., x[...])  # noqa: E731
    f = m.pl.pallas_call(body, m.jax.ShapeDtypeStruct(*X), compiler_params=params)
    return lambda x: m.lax.cond(x[0, 0] > 0, lambda x: (f(x), x + 1)[1], lambda x: x, x), X


@kernel
def memory_by_name(m):
    def body(x, o):
        @m.pl.with_scoped(m.pltpu.VMEM((8, 128), m.jnp.float32), twice=m.pltpu.VMEM((8, 128), m.jnp.float32))
        def run(x, once, twice):
            once[...] = x[...]
            twice[...] = once[...] * 2
            o[...] = once[...] + twice[...]

        run(x)

    return call(m, body, X)
