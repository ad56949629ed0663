"""Fourier transforms, against jax."""

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, same, sweep
from transform_matrix import transformed

pytestmark = pytest.mark.oracle


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).uniform(-1, 1, (2, *sizes))
    is_complex = np.issubdtype(dtype, np.complexfloating)
    return (values[0] + 1j * values[1] if is_complex else values[0] * 4).astype(dtype)


def fft(kind, *lengths):
    return lambda lax: lambda x: lax.fft(x, lax.FftType[kind], lengths)


C64 = np.complex64
CASES = [
    ("FFT", (2, 3, 8), C64, (8,)), ("FFT", (2, 3, 8), C64, (3, 8)), ("IFFT", (2, 3, 8), C64, (2, 3, 8)),
    ("FFT", (7,), C64, (7,)), ("IFFT", (2, 1), C64, (1,)), ("FFT", (5,), np.float32, (5,)),
    ("RFFT", (2, 3, 8), np.float32, (8,)), ("RFFT", (2, 3, 7), np.float32, (3, 7)), ("RFFT", (1,), np.float32, (1,)),
    ("RFFT", (2,), np.float32, (2,)), ("RFFT", (2, 3, 4), np.float32, (2, 3, 4)),
    ("IRFFT", (2, 3, 8), C64, (14,)), ("IRFFT", (2, 3, 8), C64, (3, 15)), ("IRFFT", (1,), C64, (1,)),
    ("IRFFT", (5,), np.float32, (8,)),
]  # fmt: skip


@pytest.mark.parametrize("transform", ["plain", "jvp", "vjp", "vmap", "vmap_of_grad", "grad_of_vmap"])
def test_transforms_equal_jax_s(transform, tier):
    cases = [
        Case(f"{kind}-{sizes}-{lengths}", fft(kind, *lengths), (array(*sizes, dtype=dtype),))
        for kind, sizes, dtype, lengths in CASES
    ]
    sweep([transformed(case, transform) for case in cases], tier)


def test_batches_along_every_axis_equal_jax_s(tier):
    def mapped(axis, out):
        return lambda jax, lax: jax.vmap(lambda x: lax.fft(x, "fft", (3, 4)), axis, out)

    x = array(2, 3, 4, 4, dtype=C64)
    shapes = {0: x, 1: x.transpose(1, 0, 2, 3), 2: x.transpose(1, 2, 0, 3), 3: x.transpose(1, 2, 3, 0)}
    cases = [
        Case(f"{axis}-{out}", mapped(axis, out), (np.moveaxis(array(2, 5, 3, 4, dtype=C64), 0, axis),))
        for axis in shapes
        for out in (0, 1, 3)
    ]
    sweep(cases, tier)


def test_dtypes_equal_jax_s(tier):
    kinds = [bool, np.int8, np.int32, np.float16, ml_dtypes.bfloat16, np.float32, C64]
    sweep([Case(f"{kind}-{lengths}-{np.dtype(d)}", fft(kind, *lengths), (array(3, dtype=d),), raises=LISTED)
           for kind, lengths in (("FFT", (3,)), ("IFFT", (3,)), ("RFFT", (3,)), ("IRFFT", (4,)), ("RFFT", ()),
                                 ("FFT", ())) for d in kinds], tier)  # fmt: skip


def test_empty_arrays_equal_jax_s(tier):
    sweep(
        [
            Case("batch", fft("FFT", 3), (array(0, 3, dtype=C64),)),
            Case("axis", fft("FFT", 0), (array(2, 0, dtype=C64),)),
            Case("real", fft("RFFT", 3), (array(0, 3),)),
            Case("inverse", fft("IRFFT", 4), (array(0, 3, dtype=C64),)),
        ],
        tier,
    )


WRONG = {
    "length": ("FFT", (7,)),
    "lengths": ("FFT", (3, 7)),
    "rank": ("FFT", (2, 2, 3, 8)),
    "real": ("RFFT", (8,)),
    "outer": ("IRFFT", (2, 14)),
    "negative": ("FFT", (-8,)),
    "list": ("FFT", [8]),
    "int": ("FFT", 8),
    "unknown": ("fft2", (8,)),
    "number": (0, (8,)),
    "none": (None, (8,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_misuse_raises_as_in_jax(name):
    kind, lengths = WRONG[name]
    same(
        lambda jnp, lax: lax.fft(
            jnp.asarray(array(2, 3, 8, dtype=C64)), getattr(lax.FftType, str(kind), kind), lengths
        ),
        raises=True,
    )


def test_double_precision_equals_jax_s():
    def program(jax, jnp, lax):
        with jax.enable_x64(True):
            x = jnp.asarray(array(4, dtype=np.float64))
            return [
                jax.vjp(lambda x: lax.fft(x, "rfft", (4,)), x)[1](lax.fft(x, "rfft", (4,))),
                lax.fft(x, "fft", (4,)),
                lax.fft(x, "irfft", (6,)),
                lax.fft(jnp.arange(4), "rfft", (4,)),
                *(
                    lax.fft(jnp.arange(4).astype(d), kind, (4,))
                    for kind in ("fft", "rfft")
                    for d in (bool, "int8", "int32")
                ),
            ]

    same(program)


def test_kinds_are_named_as_in_jax():
    same(lambda lax: [str([(k, str(k), k.value) for k in lax.FftType])])
    same(lambda jnp, lax: lax.fft(jnp.ones(4), "RFFT", (4,)))
