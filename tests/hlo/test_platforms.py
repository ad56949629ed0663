"""Modules for accelerators, which need not be present, compared with jax: operations with a lowering per platform, and more."""

import numpy as np
import pytest
from compare import Case
from linalg_cases import matrix, same_on_platforms
from mesh_language import numbers

pytestmark = pytest.mark.oracle

ACCELERATORS = ("cuda", "rocm", "tpu")
F, I, C, H = numbers(4, 6), numbers(4, 6, dtype=np.int32), numbers(4, 6).astype(np.complex64), numbers(8, 4)  # noqa: E741
IMAGE, KERNEL = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)
POSITIVE = matrix(3, 3) @ matrix(3, 3).T + 3 * np.eye(3, dtype=np.float32)

PROGRAMS = {
    "sort": (lambda jnp: lambda x: jnp.sort(x), F),
    "sort of pairs": (lambda lax: lambda x, y: lax.sort((x, y), num_keys=2), F, I),
    "argsort": (lambda jnp: lambda x: jnp.argsort(x, axis=0, descending=True), F),
    "top_k": (lambda lax: lambda x: lax.top_k(x, 2), F),
    "cumsum": (lambda jnp: lambda x: jnp.cumsum(x, 1), F),
    "cumprod, reversed": (lambda lax: lambda x: lax.cumprod(x, 1, reverse=True), F),
    "cummax": (lambda lax: lambda x: lax.cummax(x, 0), F),
    "cumlogsumexp": (lambda lax: lambda x: lax.cumlogsumexp(x, 0), F),
    "argmax": (lambda jnp: lambda x: jnp.argmax(x, 1), F),
    "reduce_precision": (lambda lax: lambda x: lax.reduce_precision(x, 5, 10), F),
    "dot": (lambda: lambda x, y: x @ y, F, numbers(6, 4)),
    "dot, bfloat16": (lambda jnp: lambda x, y: jnp.dot(x.astype('bfloat16'), y.astype('bfloat16')), F, numbers(6, 4)),
    "dot, float8": (lambda jnp: lambda x, y: jnp.dot(x.astype('float8_e4m3fn'), y.astype('float8_e4m3fn')), F, numbers(6, 4)),
    "dot, int8": (lambda lax: lambda x, y: lax.dot(x.astype('int8'), y.astype('int8'), preferred_element_type='int32'), F,
                  numbers(6, 4)),
    "dot, highest": (lambda jnp: lambda x, y: jnp.dot(x, y, precision='highest'), F, numbers(6, 4)),
    "dot, algorithm": (lambda lax: lambda x, y: lax.dot(x, y, precision='TF32_TF32_F32'), F, numbers(6, 4)),
    "dot, bf16 algorithm": (lambda lax: lambda x, y: lax.dot(x, y, precision='BF16_BF16_F32_X3'), F, numbers(6, 4)),
    "ragged_dot": (lambda lax: lambda x, y, n: lax.ragged_dot(x, y, n), H, numbers(2, 4, 5), np.array([3, 5], np.int32)),
    "einsum": (lambda jnp: lambda x, y: jnp.einsum('bij,bjk->bik', x, y), numbers(2, 3, 4), numbers(2, 4, 5)),
    "conv": (lambda lax: lambda x, k: lax.conv(x, k, (1, 1), 'SAME'), IMAGE, KERNEL),
    "conv, complex": (lambda lax: lambda x, k: lax.conv(x + 0j, k + 0j, (2, 2), 'VALID'), IMAGE, KERNEL),
    "conv, groups": (lambda lax: lambda x, k: lax.conv_general_dilated(x, k, (1, 1), 'SAME', feature_group_count=3), IMAGE,
                     numbers(6, 1, 3, 3)),
    "conv, bfloat16": (lambda lax: lambda x, k: lax.conv(x.astype('bfloat16'), k.astype('bfloat16'), (1, 1), 'SAME'), IMAGE,
                       KERNEL),
    "gradient of conv": (lambda jax, lax: jax.grad(lambda x, k: lax.conv(x, k, (1, 1), 'SAME').sum(), 1), IMAGE, KERNEL),
    "conv_transpose": (lambda lax: lambda x, k: lax.conv_transpose(x, k, (2, 2), 'SAME', dimension_numbers=('NCHW', 'OIHW', 'NCHW')),
                       IMAGE, numbers(4, 3, 3, 3)),
    "max pool": (lambda jnp, lax: lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID'), IMAGE),
    "sum pool": (lambda lax: lambda x: lax.reduce_window(x, 0., lax.add, (1, 1, 2, 2), (1, 1, 1, 1), 'SAME'), IMAGE),
    "gradient of max pool": (
        lambda jax, jnp, lax: jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID').sum()), IMAGE),
    "scatter-add": (lambda: lambda x, i: x.at[i].add(1.), F, np.array([1, 1, 3])),
    "scatter-mul": (lambda: lambda x, i: x.at[i].multiply(2.), F, np.array([1, 1, 3])),
    "scatter-min": (lambda: lambda x, i: x.at[i].min(2.), F, np.array([1, 1, 3])),
    "scatter-add, complex": (lambda: lambda x, i: x.at[i].add(1.), C, np.array([1, 1, 3])),
    "gather": (lambda: lambda x, i: x[i], F, np.array([1, 1, 3])),
    "gather, clipped": (lambda: lambda x, i: x.at[i].get(mode='clip'), F, np.array([1, 1, 3])),
    "dynamic slice": (lambda lax: lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), F, np.int32(1)),
    "dynamic update": (lambda lax: lambda x, i: lax.dynamic_update_slice(x, x[:2], (i, 0)), F, np.int32(1)),
    "threefry": (lambda random: lambda s: random.normal(random.key(s), (5,)), np.uint32(3)),
    "threefry, split": (lambda random: lambda s: random.key_data(random.split(random.key(s), 3)), np.uint32(3)),
    "rbg": (lambda random: lambda s: random.bits(random.key(s, impl='rbg'), (5,)), np.uint32(3)),
    "unsafe_rbg": (lambda random: lambda s: random.key_data(random.split(random.key(s, impl='unsafe_rbg'), 3)), np.uint32(3)),
    "poisson": (lambda random: lambda s: random.poisson(random.key(s), 2., (3,)), np.uint32(3)),
    "erf_inv": (lambda lax: lambda x: lax.erf_inv(x), F),
    "special functions": (lambda lax: lambda x: (lax.lgamma(x), lax.digamma(x), lax.erf(x), lax.erfc(x), lax.bessel_i1e(x)), F),
    "powers": (lambda lax: lambda x: (x ** 3, x ** -2, x ** 0.5, x ** x, lax.cbrt(x), lax.rsqrt(x)), F),
    "trigonometry": (lambda jnp: lambda x: (jnp.tan(x), jnp.sinh(x), jnp.acosh(x), jnp.atanh(x), jnp.arctan2(x, x)), F),
    "complex functions": (lambda jnp, lax: lambda x: (jnp.log(x), jnp.sqrt(x), jnp.tanh(x), jnp.abs(x), jnp.angle(x), lax.asin(x)), C),
    "integers": (lambda jnp, lax: lambda x: (x // 3, x % 3, x >> 1, lax.population_count(x), lax.clz(x), jnp.sign(x)), I),
    "rounding": (lambda jnp, lax: lambda x: (jnp.round(x), lax.round(x, 0), jnp.floor(x), jnp.trunc(x), lax.nextafter(x, x)), F),
    "fft": (lambda jnp: lambda x: jnp.fft.fft(x), F),
    "rfft and back": (lambda jnp: lambda x: jnp.fft.irfft(jnp.fft.rfft2(x)), F),
    "irfft2": (lambda jnp: lambda x: jnp.fft.irfft2(x + 0j), F),
    "gradient of rfftn": (lambda jax, jnp: jax.grad(lambda x: jnp.abs(jnp.fft.rfftn(x)).sum()), numbers(2, 3, 4, 6)),
    "pbroadcast": (
        lambda jax, lax: jax.shard_map(lambda x: lax.pbroadcast(x, 'x', 2), mesh=jax.make_mesh((4,), 'x', axis_types=(jax.sharding.AxisType.Auto,)), in_specs=jax.P('x'), out_specs=jax.P('x')),
        numbers(8, 4),
    ),
    "cholesky": (lambda lax: lambda x: lax.linalg.cholesky(x), POSITIVE),
    "gradient of cholesky": (lambda jax, lax: jax.grad(lambda x: lax.linalg.cholesky(x).sum()), POSITIVE),
    "solve": (lambda jnp: lambda x, y: jnp.linalg.solve(x, y), POSITIVE, numbers(3)),
    "triangular_solve": (lambda lax: lambda x, y: lax.linalg.triangular_solve(x, y, left_side=True, lower=True), POSITIVE,
                         numbers(3, 2)),
    "lu": (lambda lax: lambda x: lax.linalg.lu(x), POSITIVE),
    "batch of lu": (lambda jax, lax: lambda x: jax.vmap(lax.linalg.lu)(x), matrix(2, 3, 3)),
    "qr": (lambda jnp: lambda x: jnp.linalg.qr(x), matrix(4, 3)),
    "qr, complete": (lambda lax: lambda x: lax.linalg.qr(x, full_matrices=True), matrix(4, 3)),
    "svd": (lambda jnp: lambda x: jnp.linalg.svd(x), matrix(4, 3)),
    "singular values": (lambda jnp: lambda x: jnp.linalg.svd(x, compute_uv=False), matrix(2, 4, 3)),
    "eigh": (lambda jnp: lambda x: jnp.linalg.eigh(x), POSITIVE),
    "eigh, Jacobi": (lambda lax: lambda x: lax.linalg.eigh(x, implementation=lax.linalg.EighImplementation.JACOBI), POSITIVE),
    "det, inv": (lambda jnp: lambda x: (jnp.linalg.det(x), jnp.linalg.inv(x)), POSITIVE),
    "householder": (lambda lax: lambda x, t: lax.linalg.householder_product(x, t), matrix(4, 3), numbers(3)),
    "hessenberg": (lambda lax: lambda x: lax.linalg.hessenberg(x), POSITIVE),
    "tridiagonal": (lambda lax: lambda x: lax.linalg.tridiagonal(x), POSITIVE),
    "schur": (lambda lax: lambda x: lax.linalg.schur(x), POSITIVE),
    "matrix functions": (lambda jax, jnp: lambda x: (jax.scipy.linalg.expm(x), jnp.linalg.matrix_power(x, 5)), POSITIVE),
    "attention": (lambda jax: lambda q: jax.nn.dot_product_attention(q, q, q), numbers(2, 4, 2, 8)),
    "attention, causal": (lambda jax: lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True), numbers(2, 4, 2, 8)),
    "softmax": (lambda jax: jax.grad(lambda x: jax.nn.softmax(x)[0, 0]), F),
    "gelu": (lambda jax: lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.logsumexp(x)), F),
    "scan": (lambda lax: lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x), F),
    "while": (lambda lax: lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), F),
    "cond": (lambda jnp, lax: lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), F),
    "platform_dependent": (lambda jnp, lax: lambda x: lax.platform_dependent(x, tpu=jnp.sin, cuda=jnp.cos, default=jnp.tan), F),
    "donated": (lambda jax: jax.jit(lambda x: x + 1, donate_argnums=0), F),
    "remat": (lambda jax, jnp: jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()), F),
    "narrow integers": (lambda jnp: lambda x: x.astype('int4').astype('uint4') + jnp.ones((), 'uint4'), I),
    "narrow floats": (lambda: lambda x: x.astype('float8_e5m2').astype('float4_e2m1fn').astype('float16'), F),
    "optimization_barrier": (lambda lax: lambda x: lax.optimization_barrier((x, x + 1)), F),
    "device_put in a program": (lambda jax: lambda x: jax.device_put(x * 2, jax.memory.Space.Host), F),
    "select, then narrow": (lambda jnp: lambda x: jnp.where(x > 0, x, 0).astype('bfloat16'), F),
    "clamp, pad, reverse": (lambda lax: lambda x: lax.pad(lax.rev(lax.clamp(-1., x, 1.), (0,)), 0., ((1, 2, 0), (-1, 0, 1))), F),
    "image resize": (lambda jax: lambda x: jax.image.resize(x, (2, 3, 4, 4), 'bilinear'), IMAGE),
}  # fmt: skip

# The algorithm there is written otherwise (tests/composed/linalg/test_polar_svd.py), or the operation is not there.
NOT_ON_TPU = ("svd", "singular values", "pbroadcast")


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_for_accelerators_equal_jax_s(name):
    program, *args = PROGRAMS[name]
    platforms = ACCELERATORS[:2] if name in NOT_ON_TPU else ACCELERATORS
    same_on_platforms([Case(name, program, tuple(args))], platforms)
