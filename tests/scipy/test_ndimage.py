"""jax.scipy.ndimage, against jax."""

import compare
import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.oracle

X = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2
PLACES = np.array([[0.5, 1.25, -3, 7, -0.75], [1, 2.5, 5, -4, 3.5]], np.float32)
MODES = ["constant", "nearest", "wrap", "mirror", "reflect"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_elements_at_coordinates(order, mode, tier):
    dtypes = [(X, PLACES), (X.astype(int), PLACES), (X[:, :1] + 1j, PLACES.astype(int))]
    dtypes += [(X.astype(ml_dtypes.bfloat16), PLACES.astype(ml_dtypes.bfloat16)), (X > 4, [PLACES[0], PLACES[1, :1]])]
    cases = [
        compare.Case(
            f"map_coordinates of {i}",
            lambda jax: lambda array, *c: jax.scipy.ndimage.map_coordinates(array, c, order, mode, cval=1.5),
            (x, *places),
        )
        for i, (x, places) in enumerate(dtypes)
    ]
    compare.sweep(cases, tier)


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_of_elements(mode):
    def program(jax):
        def total(x, places):
            return jax.scipy.ndimage.map_coordinates(x, places, 1, mode, 2.0).sum()

        return jax.grad(total, (0, 1))(X, PLACES), jax.jit(jax.vmap(total, (None, 0)))(
            X, np.stack([PLACES, 2 * PLACES])
        )

    compare.same(program, rtol=1e-6, why="sums are made in another order")


def test_coordinates_and_arrays_of_any_sort():
    compare.same(lambda jax: jax.scipy.ndimage.map_coordinates([1, 2], ([0.5],), 1))
    compare.same(lambda jax: jax.scipy.ndimage.map_coordinates(X, (0.5, 1), 1))
    compare.same(lambda jax: jax.scipy.ndimage.map_coordinates(X, jax.numpy.asarray(PLACES), 1, "wrap"))
    compare.same(lambda jax: jax.scipy.ndimage.map_coordinates(X, [PLACES[0][:0]] * 2, 1, "wrap"))


@pytest.mark.parametrize(
    "arguments", [(PLACES, 2), (PLACES, 1, "no mode"), (PLACES[:1], 1), (PLACES, 1, "wrap", np.ones(2))], ids=str
)
def test_refused(arguments):
    compare.same(lambda jax: jax.scipy.ndimage.map_coordinates(X, *arguments), raises=True)
