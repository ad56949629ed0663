"""Special functions, against jax: jaxprs, texts and values under every transform, dtypes and broadcasting."""

import numpy as np
import pytest
from compare import LISTED, Case, same, sweep
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

FUNCTIONS = {"bessel_i0e": 1, "bessel_i1e": 1, "zeta": 2, "igamma": 2, "igammac": 2, "igamma_grad_a": 2,
             "random_gamma_grad": 2, "betainc": 3, "polygamma": 2}  # fmt: skip
TRANSFORMS = ("plain", "jvp", "vmap", "vmap_of_grad", "jvp_of_grad")


def array(*sizes, dtype=np.float32, low=0.1, high=0.9):
    return np.random.RandomState(len(sizes)).uniform(low, high, sizes).astype(dtype)


def op(name):
    return lambda lax: getattr(lax, name)


def operands(name, *sizes, dtype=np.float32):
    """Arguments within the function's domain."""
    low = {"zeta": 1.5, "polygamma": 1}.get(name, 0.1)
    high = {"zeta": 5, "polygamma": 4, "betainc": 0.9}.get(name, 3)
    values = [array(*sizes, dtype=dtype, low=low, high=high) for _ in range(FUNCTIONS[name])]
    return tuple([values[0].round() if name == "polygamma" else values[0], *values[1:]])


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_functions_under_every_transform_equal_jax_s(transform, tier):
    cases = [Case(name, op(name), operands(name, 3), raises=LISTED) for name in FUNCTIONS]
    sweep([transformed(case, transform) for case in cases], tier)


def test_dtypes_and_ranks_equal_jax_s(tier):
    kinds = [(d, (2,)) for d in (np.float16, np.int32, np.complex64, bool)]
    kinds += [(np.float32, ())]
    sweep(
        [
            Case(f"{name}-{np.dtype(d)}-{len(sizes)}", op(name), operands(name, *sizes, dtype=d), raises=LISTED)
            for name in FUNCTIONS
            for d, sizes in kinds
        ],
        tier,
    )


def test_operands_are_broadcast_as_by_jax(tier):
    shapes = ((), (2, 3)), ((2, 1), (2, 3))
    sweep(
        [
            Case(f"{name}-{a}-{b}", op(name), (*operands(name, *a)[:1], *operands(name, *b)[1:]), raises=LISTED)
            for name, count in FUNCTIONS.items()
            if count > 1
            for a, b in shapes
        ],
        tier,
    )


def test_python_scalars_equal_jax_s(tier):
    sweep([Case(name, op(name), (1.0, 2.5, 0.5)[:count], raises=LISTED) for name, count in FUNCTIONS.items()], tier)


ODD = np.array([-np.inf, -1, -0.0, 0, 0.5, 1, 7.9, 8.1, np.inf, np.nan], np.float32)


def test_values_at_the_edges_are_jax_s():
    x = np.array([-1, 0, 0.1, 1, 2, np.nan], np.float32)
    grids = [np.meshgrid(*([ODD, ODD, x] if count == 3 else [ODD] * count)) for count in FUNCTIONS.values()]
    sweep(
        [Case(name, op(name), tuple(v.reshape(-1) for v in grid)) for name, grid in zip(FUNCTIONS, grids, strict=True)],
        "full",
        jaxpr=False,
    )


def wide(name):
    """The values and the jaxpr under x64, where float32 too counts iterations in 64 bits."""

    def program(jax, jnp, lax):
        with jax.enable_x64(True):
            args = [jnp.asarray(x) for x in operands(name, 3, dtype=np.float64)]
            narrow = [x.astype("float32") for x in args]
            function = jax.jit(getattr(lax, name))
            return function(*args), str(jax.make_jaxpr(getattr(lax, name))(*args)), function(*narrow)

    return program


@pytest.mark.parametrize("name", ("bessel_i0e", "igamma", "betainc", "random_gamma_grad"))
def test_wide_floats_equal_jax_s(name):
    same(wide(name))
