"""jax.scipy.fft, cluster and integrate, against jax."""

import compare
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

X = np.array([[0.5, -1, 2, 0.25, 3], [1, 1.5, -0.5, 2, 0]], np.float32)


@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "ortho"}, {"n": 4}, {"n": 7, "norm": "ortho"}, {"axis": 0}, {"axis": 0, "n": 3}, {"n": 1}],
    ids=str,
)
@pytest.mark.parametrize("x", [X, X.astype(np.int32), X + 2j * X[::-1]], ids=["real", "int", "complex"])
def test_cosine_transforms_are_jax_s(name, options, x):
    compare.same(lambda jax: getattr(jax.scipy.fft, name)(jax.numpy.asarray(x), **options))


@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms_promote_nothing_implicitly(name, norm):
    def program(jax):
        with jax.numpy_dtype_promotion("strict"):
            return getattr(jax.scipy.fft, name)(jax.numpy.asarray(X), norm=norm)

    compare.same(program)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
@pytest.mark.parametrize(
    "options", [{}, {"norm": "ortho"}, {"s": (3, 4)}, {"axes": (0,)}, {"s": (4,), "axes": (1,)}], ids=str
)
def test_cosine_transforms_over_axes_are_jax_s(name, options):
    compare.same(lambda jax: getattr(jax.scipy.fft, name)(jax.numpy.asarray(X), **options))


AXES_AND_SIZES = [
    {},
    {"norm": "ortho"},
    {"s": (5,), "axes": (2, 1)},
    {"s": (2, 3, 5)},
    {"axes": (1, 2), "norm": "ortho"},
]


@pytest.mark.parametrize("name", ["dctn", "idctn"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bfloat16"])
@pytest.mark.parametrize("options", [*AXES_AND_SIZES, {"s": (5, 3, 4), "axes": (1,)}, {"axes": ()}], ids=str)
def test_cosine_transforms_over_axes_have_jax_s_jaxprs(name, dtype, options):
    x = np.ones((2, 3, 4), dtype)
    compare.same_jaxpr(lambda jax: lambda x: getattr(jax.scipy.fft, name)(x, **options), x)


@pytest.mark.parametrize("name", ["dct", "idct"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bfloat16"])
@pytest.mark.parametrize("options", [{}, {"norm": "ortho"}, {"n": 5, "axis": 1}], ids=str)
def test_cosine_transforms_have_jax_s_jaxprs(name, dtype, options):
    x = np.ones((2, 3, 4), dtype)
    compare.same_jaxpr(lambda jax: lambda x: getattr(jax.scipy.fft, name)(x, **options), x)


@pytest.mark.parametrize("options", [{"type": 3}, {"norm": "forward"}])
def test_other_cosine_transforms_are_refused(options):
    compare.same(lambda jax: jax.scipy.fft.dct(jax.numpy.asarray(X), **options), raises=True)


def test_more_sizes_than_axes():
    for name in ("dctn", "idctn"):
        compare.same_misuse(
            f"jax.scipy.fft.{name}(x, s=(2, 3, 4))", {"x": X}, r"s must have at most x.ndim (2) elements, got 3"
        )


@pytest.mark.parametrize("points", [(X, X[:1]), (X[0], X[1]), (X.astype(int), X)])
def test_nearest_codes_are_jax_s(points):
    compare.check(compare.Case("vq", lambda jax: jax.scipy.cluster.vq.vq, points), "full")


@pytest.mark.parametrize("points", [(X, X[0]), (X[None], X[None]), (X, X[:, :2])])
def test_codes_that_do_not_fit(points):
    compare.same(lambda jax: jax.scipy.cluster.vq.vq(*points), raises=True)


def test_trapezoids():
    compare.check(compare.Case("trapezoid", lambda jax: jax.scipy.integrate.trapezoid, (X,)), "full")
