"""jax.image, against jax."""

import compare
import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

X = np.cos(np.arange(12, dtype=np.float32)).reshape(3, 4)
BATCH = np.sin(np.arange(180, dtype=np.float32)).reshape(2, 5, 6, 3)
CLOSE = {"rtol": 2e-5, "atol": 1e-6, "why": "XLA fuses the programs of a group in another way"}
METHODS = ["nearest", "bilinear", "lanczos3", "lanczos5", "cubic", "bicubic-pytorch", "area"]


def resized(name, x, *arguments, **options):
    def program(jax):
        return lambda x: jax.image.resize(x, *arguments, **options)

    return compare.Case(name, program, (x,), tolerance=CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_resized(method, tier):
    cases = [resized(f"{method} to {shape}", X, shape, method) for shape in ((3, 2), (7, 4), (2, 5), (3, 4))]
    cases += [
        resized(f"{method} of a batch", BATCH, (2, 3, 9, 3), method),
        resized(f"{method} of ints", X.astype(int), (2, 6), method),
        resized(f"{method} of bfloat16", X.astype(ml_dtypes.bfloat16), (5, 2), method),
        resized(f"{method} of complex", X * 1j, (5, 2), method),
        resized(f"{method} without antialiasing", X, (5, 2), method, antialias=False, precision=None),
    ]
    compare.sweep(cases, tier)


@pytest.mark.parametrize("method", METHODS[1:])
def test_scaled_and_translated(method, tier):
    def program(jax):
        return lambda x, s, t: jax.image.scale_and_translate(x, (5, 2), (0, 1), s, t, method)

    def last(jax):
        return lambda x, s, t: jax.image.scale_and_translate(x, (3, 5), (-1,), s[:1], t[:1], method, antialias=False)

    operands = (X, np.array([1.5, 0.4], np.float32), np.array([-0.2, 0.6], np.float32))
    cases = [compare.Case(p.__name__, p, operands, tolerance=CLOSE) for p in (program, last)]
    compare.sweep(cases, tier)


def test_derivatives():
    def program(jax):
        def total(x, s, t):
            return (jax.image.scale_and_translate(x, (5, 2), (0, 1), s, t, "linear") ** 2).sum()

        scale, translation = np.array([1.5, 0.4], np.float32), np.array([-0.2, 0.6], np.float32)
        small = jax.vmap(lambda x: jax.image.resize(x, (2, 3, 3), "cubic"))(BATCH)
        return jax.grad(total, (0, 1, 2))(X, scale, translation), small

    compare.same(program, **CLOSE)


def test_methods():
    compare.same(lambda jax: {m.name: m.value for m in jax.image.ResizeMethod})
    for name in ("linear", "triangle", "trilinear", "tricubic", "cubic-pytorch", "area"):
        compare.same(lambda jax, name=name: jax.image.ResizeMethod.from_string(name).name)
    compare.same(lambda jax: jax.image.resize(X, (3, 2), jax.image.ResizeMethod.AREA), **CLOSE)


@pytest.mark.parametrize(
    "arguments", [((3, 2), "no method"), ((3,), "linear"), (5, "linear"), ((3, 2), 1), ((3, 2), None)], ids=str
)
def test_refused(arguments):
    compare.same(lambda jax: jax.image.resize(X, *arguments), raises=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ((3, 2), (0,), [1.0, 1.0], [1.0, 1.0], "linear"),
        ((3,), (0, 1), [1.0, 1.0], [1.0, 1.0], "linear"),
        ((3, 2), (0, 5), [1.0, 1.0], [1.0, 1.0], "linear"),
        ((3, 2), (0, 1), [1.0, 1.0], [1.0, 1.0], "nearest"),
    ],
    ids=str,
)
def test_scaling_that_is_refused(arguments):
    def program(jax):
        shape, axes, scale, translation, method = arguments
        scale, translation = jax.numpy.array(scale), jax.numpy.array(translation)
        return jax.image.scale_and_translate(jax.numpy.asarray(X), shape, axes, scale, translation, method)

    compare.same(program, raises=True)
