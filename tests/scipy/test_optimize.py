"""jax.scipy.optimize: minimization by BFGS, against jax and scipy."""

import importlib

import compare
import numpy as np
import pytest
from compare import Case

pytestmark = pytest.mark.oracle

METHODS = "BFGS", "l-bfgs-experimental-do-not-rely-on-this"
# Jaxprs are equal, and texts but for idle operations; yet the last bits of a few loops differ, which further steps amplify.
CLOSE = {"rtol": 2e-4, "atol": 2e-5, "why": "steps amplify last bits"}


def rosenbrock(jnp):
    return lambda x: jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(jnp):
    return lambda x: (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


def matyas(jnp):
    return lambda x: 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


def eggholder(jnp):
    return lambda x: (
        -(x[1] + 47) * jnp.sin(jnp.sqrt(jnp.abs(x[0] / 2.0 + x[1] + 47.0)))
        - x[0] * jnp.sin(jnp.sqrt(jnp.abs(x[0] - (x[1] + 47.0))))
    )


def valley(jnp):
    return lambda x: jnp.sum(100.0 * jnp.diff(x) ** 2 + (1 - x[:-1]) ** 2)


def downhill(jnp):
    return lambda x: -jnp.sum(x)  # without end


def kinked(jnp):
    return lambda x: jnp.sum(jnp.abs(x)) + jnp.sum(x > 0.5)  # where a line search fails


FUNCTIONS = {METHODS[0]: [rosenbrock, eggholder, kinked], METHODS[1]: [himmelblau, downhill]}


def minimized(function, method, x0, **options):
    def program(jnp, optimize):
        return lambda x: tuple(optimize.minimize(function(jnp), x, method=method, options=options))

    return Case(f"{function.__name__} {method[:6]} {options}", program, (np.asarray(x0),), tolerance=CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_minima_are_those_of_jax(method):
    cases = [minimized(f, method, np.array([0.3, 1.0], np.float32)) for f in FUNCTIONS[method]]
    compare.sweep(cases)


def test_lbfgs_reads_as_jax_s():
    compare.check(minimized(matyas, METHODS[1], np.ones(2, np.float32), maxcor=3, ftol=0, maxfun=20, maxgrad=9))


def test_options_of_bfgs_are_jax_s():
    start = np.ones(2, np.float32)
    options = [{"norm": 2, "maxiter": 3}, {"line_search_maxiter": 2, "gtol": 1e-2}]
    compare.sweep([minimized(himmelblau, "bfgs", start, **row) for row in options])


def test_in_double_precision_and_mapped():
    def program(jax, jnp, optimize):
        with jax.enable_x64(True):
            starts = np.array([[0.1, 0.2], [-1.0, 2.0], [3.0, -1.0]])
            find = lambda x, a: optimize.minimize(lambda x, a: rosenbrock(jnp)(x) + a, x, (a,), method="BFGS")  # noqa: E731
            several = jax.jit(jax.vmap(find, (0, None)))(starts, 2.0)
            single = find(starts[0], 1.0)
            return type(single).__name__, single._fields, tuple(single), tuple(several)

    compare.same(program, rtol=1e-6, atol=1e-6, why="iterations amplify the order of sums")


def test_mapped_programs_are_those_of_jax():
    def program(jax, jnp, optimize):
        return jax.vmap(lambda x: tuple(optimize.minimize(matyas(jnp), x, method="BFGS")))

    compare.same_jaxpr(program, np.ones((3, 2), np.float32))


def test_complex_variables():
    def program(jnp, optimize):
        loss = lambda z: jnp.sum(jnp.abs(z * z - 1j) ** 2)  # noqa: E731
        return lambda z: tuple(optimize.minimize(loss, z, method=METHODS[1]))

    compare.check(Case("complex", program, (np.array([1 + 0.5j, -1], np.complex64),), tolerance=CLOSE))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_strict_promotion_is_enough(dtype):
    def program(jax, jnp, optimize):
        def loss(z):
            return jnp.real(jnp.dot(jnp.conj(z), z))

        with jax.numpy_dtype_promotion("strict"):
            return tuple(optimize.minimize(loss, jnp.ones(2, dtype), method=METHODS[1]))

    compare.same(program, **CLOSE)


def test_minima_are_those_of_scipy():
    scipy = pytest.importorskip("scipy.optimize")
    optimize, jnp = (importlib.import_module(f"minijax.{name}") for name in ("scipy.optimize", "numpy"))
    # jax's line search fails at many a start.
    for function, start in ((himmelblau, np.ones(2)), (matyas, np.array([0.6, 1.3])), (valley, np.zeros(2))):
        with importlib.import_module("minijax").enable_x64(True):
            ours = optimize.minimize(function(jnp), start, method="BFGS")
        theirs = scipy.minimize(function(np), start, method="BFGS")
        np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-4, atol=1e-4, err_msg=function.__name__)
        assert ours.success, function.__name__


MISUSES = [
    (lambda jax, optimize, f, x: optimize.minimize(f, x, [1.0], method="BFGS"), "must be a tuple"),
    (lambda jax, optimize, f, x: optimize.minimize(f, x, method="newton"), "not recognized"),
    (lambda jax, optimize, f, x: optimize.minimize(f, x), ""),
    (lambda jax, optimize, f, x: optimize.minimize(lambda x: x, x, method="BFGS"), "scalar"),
    (lambda jax, optimize, f, x: optimize.minimize(f, x, method="BFGS", options={"gamma": 1}), ""),
    (
        lambda jax, optimize, f, x: jax.grad(lambda x: optimize.minimize(f, x, method="BFGS").fun)(x),
        "Reverse-mode differentiation",
    ),
]


@pytest.mark.parametrize("call, phrase", MISUSES)
def test_misuse_is_named(call, phrase):
    def program(jax, jnp, optimize):
        return lambda: call(jax, optimize, matyas(jnp), jnp.ones(2))

    compare.same_refusal(program, phrases=[phrase])
