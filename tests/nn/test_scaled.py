"""Products of quantized operands: jaxprs, texts for CUDA, derivatives and errors, against jax.

The numbers of NVFP4 and MXFP8 are multiplied on GPUs alone, by both sides.
"""

import dataclasses
import re

import ml_dtypes
import numpy as np
import pytest
from compare import canonical, run_on, same, same_jaxpr, same_misuse, same_printed

import minijax as jax
import minijax.numpy as jnp

ROWS = (((1,), (1,)), ((), ()))
BATCHES = (((2,), (2,)), ((0,), (0,)))
MANY = (((0, 2), (3, 1)), ((1,), (2,)))
NARROW, SCALE = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
A, B = np.ones((2, 16, 64), NARROW), np.ones((2, 32, 64), NARROW)
SA, SB = np.ones((2, 16, 2), SCALE), np.ones((2, 32, 2), SCALE)


def product(mode, numbers, preferred=np.float32, gradient=False, **options):
    def program(jax, nn):
        config = dataclasses.replace(nn.get_scaled_dot_general_config(mode), **options)

        def dot(x, y):
            return nn.scaled_dot_general(x, y, numbers, preferred, [config] * 3)

        return jax.grad(lambda x, y: dot(x, y).sum(), (0, 1)) if gradient else dot

    return program


@pytest.mark.oracle
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_products_of_quantized_operands_have_the_same_jaxprs(mode, gradient):
    one = np.float32
    same_jaxpr(product(mode, ROWS, gradient=gradient), np.ones((32, 64), one), np.ones((96, 64), one))
    same_jaxpr(product(mode, BATCHES, gradient=gradient), np.ones((2, 32, 64), one), np.ones((2, 96, 64), one))
    if gradient:
        return
    for dtype in (np.float16, ml_dtypes.bfloat16):
        operands = np.ones((32, 64), dtype), np.ones((96, 64), dtype)
        same_jaxpr(product(mode, ROWS, dtype), *operands)
        same_jaxpr(product(mode, ROWS), *operands)


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_contracted_axes_go_together_in_any_order(mode):
    lhs, rhs = np.ones((4, 2, 8, 3, 32), ml_dtypes.bfloat16), np.ones((5, 8, 2, 4), ml_dtypes.bfloat16)
    dot = product(mode, MANY)(jax, jax.nn)
    assert jax.eval_shape(dot, lhs, rhs).shape == (2, 3, 32, 5)
    order = str(jax.make_jaxpr(dot)(lhs, rhs))
    assert "permutation=(1, 3, 4, 0, 2)" in order and "permutation=(2, 0, 3, 1)" in order
    gradient = product(mode, MANY, gradient=True)(jax, jax.nn)
    rhs = np.ones((32, 8, 2, 4), ml_dtypes.bfloat16)
    cts = jax.eval_shape(gradient, lhs, rhs)
    assert [(x.shape, x.dtype) for x in cts] == [(x.shape, x.dtype) for x in (lhs, rhs)]


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_vectors_have_products_too(mode):
    dot = product(mode, (((0,), (0,)), ((), ())))(jax, jax.nn)
    assert jax.eval_shape(dot, np.ones(64, np.float32), np.ones(64, np.float32)).shape == ()


@pytest.mark.oracle
def test_scaled_matmul_has_the_same_jaxpr_and_the_same_text_for_cuda():
    def text(jax, nn):
        traced = jax.jit(nn.scaled_matmul, static_argnums=4).trace(A, B, SA, SB, jax.numpy.bfloat16)
        return canonical(traced.lower(lowering_platforms=("cuda",)).as_text())

    same_jaxpr(lambda nn: nn.scaled_matmul, A, B, SA, SB)
    same_jaxpr(lambda jax, nn: jax.vmap(nn.scaled_matmul), *(x[None] for x in (A, B, SA, SB)))
    same_printed("StableHLO", lambda side: run_on(side, text), text)


@pytest.mark.oracle
def test_scaled_matmul_over_several_devices_has_the_same_text_for_cuda():
    def text(jax, nn):
        mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
        specs = [jax.P("data"), jax.P("data", "model")] * 2
        pairs = zip((A, B, SA, SB), specs, strict=True)
        xs = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=jax.NamedSharding(mesh, spec)) for x, spec in pairs]
        lowered = jax.jit(lambda *xs: nn.scaled_matmul(*xs)).trace(*xs).lower(lowering_platforms=("cuda",))
        return re.sub(r'backend_config = "\d+"|@\w+SPMDPartitioning', "partitioned", canonical(lowered.as_text()))

    same_printed("StableHLO", lambda side: run_on(side, text), text)


def test_vmap_of_scaled_matmul_repeats_unbatched_operands():
    batched = jax.vmap(jax.nn.scaled_matmul, (1, None, 2, None), 2)
    stacked = np.stack([A, A, A], 1), B, np.stack([SA, SA, SA], 2), SB
    assert jax.eval_shape(batched, *stacked).shape == (2, 16, 3, 32)


@pytest.mark.oracle
def test_without_configs_it_is_dot_general():
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((4, 3), np.float32)
    same(lambda nn: nn.scaled_dot_general(x, y, ROWS))
    same_jaxpr(lambda jax, nn: lambda x, y: nn.scaled_dot_general(x, y, ROWS, jax.numpy.int32), x, y)


@pytest.mark.oracle
def test_configs():
    for mode in ("mxfp8", "nvfp4"):
        same(lambda nn, mode=mode: repr(nn.get_scaled_dot_general_config(mode)))
    same_misuse("jax.nn.get_scaled_dot_general_config('fp8')", {}, "Unsupported mode: fp8")
    assert jax.nn.get_scaled_dot_general_config("nvfp4", jnp.array([0.5])).global_scale[0] == 0.5


@pytest.mark.oracle
@pytest.mark.parametrize(
    "text, phrase",
    [
        ("jax.nn.scaled_matmul(a[0], b, sa, sb)", "requires all inputs to be 3-dimensional arrays"),
        ("jax.nn.scaled_matmul(a[:1], b, sa, sb)", "requires inputs a and b to have matching batch"),
        ("jax.nn.scaled_matmul(a, b, sa[:1], sb)", "requires scales to have matching batch"),
        ("jax.nn.scaled_matmul(a, b, sa[:, :3], sb)", "requires scales to match non-contract dimensions"),
        ("jax.nn.scaled_matmul(a, b, sa, sb)", "not found for platform cpu"),
        ("jax.grad(lambda x: jax.nn.scaled_matmul(x, x, x, x).sum())(x)", "Differentiation rule"),
        (f"jax.nn.scaled_dot_general(x, x, {BATCHES}, np.int32, [None])", "Only support preferred_element_type in"),
        (
            f"jax.nn.scaled_dot_general(x, x, {BATCHES}, configs=[jax.nn.get_scaled_dot_general_config('mxfp8')] * 3)",
            "",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(text, phrase):
    same_misuse(text, {"a": A, "b": B, "sa": SA, "sb": SB, "x": np.ones((1, 2, 3), np.float32)}, phrase)
