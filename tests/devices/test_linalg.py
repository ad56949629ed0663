"""Linear algebra of sharded batches: each device factors its own matrices."""

import numpy as np
import pytest
from compare import both
from mesh_language import side

CASES = {
    "cholesky": (lambda s: s.lax.linalg.cholesky, (8, 3, 3)),
    "eig": (lambda s: lambda x: s.lax.linalg.eig(x, enable_eigvec_derivs=True), (8, 3, 3)),
    "eigvals": (lambda s: lambda x: s.jnp.linalg.eigvals(x), (8, 3, 3)),
    "eigh": (lambda s: lambda x: s.lax.linalg.eigh(x), (8, 3, 3)),
    "lu": (lambda s: s.lax.linalg.lu, (8, 4, 3)),
    "qr": (lambda s: lambda x: s.lax.linalg.qr(x, full_matrices=False), (8, 4, 3)),
    "svd": (lambda s: lambda x: s.lax.linalg.svd(x, full_matrices=False), (8, 4, 3)),
    "triangular_solve": (lambda s: s.lax.linalg.triangular_solve, (8, 3, 3), (8, 2, 3)),
    "tridiagonal_solve": (lambda s: s.lax.linalg.tridiagonal_solve, (8, 3), (8, 3), (8, 3), (8, 3, 2)),
    "schur": (lambda s: s.lax.linalg.schur, (8, 3, 3)),
    "hessenberg": (lambda s: s.lax.linalg.hessenberg, (8, 3, 3)),
    "tridiagonal": (lambda s: s.lax.linalg.tridiagonal, (8, 3, 3)),
    "householder_product": (lambda s: s.lax.linalg.householder_product, (8, 3, 3), (8, 3)),
    "ormqr": (lambda s: s.lax.linalg.ormqr, (8, 3, 3), (8, 3), (8, 3, 2)),
    "two batch axes": (lambda s: s.lax.linalg.lu, (4, 2, 3, 3)),
}
WITHOUT_DERIVATIVES = ("schur", "hessenberg", "tridiagonal", "householder_product", "ormqr")


def programs(name: str, package: str):
    """For each of function, jvp and vjp: the function, and its arguments, sharded over the batch."""
    s = side(package)
    function, *shapes = CASES[name]
    f = function(s)
    r = np.random.RandomState(0)
    spec = ("x", "y") if len(shapes[0]) > 3 else ("x",)
    args = [s.shard(r.standard_normal(shape).astype(np.float32), *spec) for shape in shapes]
    yield f, args
    if name not in WITHOUT_DERIVATIVES:
        yield lambda *args: s.jax.jvp(f, args, args), args
        out, pulled = s.jax.vjp(f, *args)
        integers = lambda x: np.issubdtype(x.dtype, np.integer)  # noqa: E731
        yield pulled, [s.jax.tree.map(lambda x: np.zeros(x.shape, s.jax.dtypes.float0) if integers(x) else x, out)]


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_no_device_gathers_the_matrices_of_others(name):
    s = side("minijax")
    for f, args in programs(name, "minijax"):
        assert not s.collectives(f, *args)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["lu", "qr", "tridiagonal_solve"])
def test_values_and_shardings_are_those_of_jax(name):
    def run(jax):
        found = [jax.tree.leaves(jax.jit(f)(*args)) for f, args in programs(name, jax.__name__)]
        return [(np.asarray(x), str(getattr(x, "sharding", None))) for xs in found for x in xs]

    for (x, our_sharding), (y, their_sharding) in zip(*both(run), strict=True):
        assert x.dtype == y.dtype and our_sharding == their_sharding
        if x.dtype.kind != "V":
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["int32", "float32", "bool", "float0"])
def test_cotangents_of_integers_are_of_any_dtype(dtype):
    def run(jax):
        x = jax.numpy.asarray(np.eye(3, dtype=np.float32) + np.arange(9, dtype=np.float32).reshape(3, 3))
        zeros = np.zeros(3, jax.dtypes.float0 if dtype == "float0" else dtype)
        return np.asarray(jax.vjp(jax.lax.linalg.lu, x)[1]([x, zeros, zeros])[0])

    np.testing.assert_allclose(*both(run), rtol=1e-5)
