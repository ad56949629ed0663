"""Functions of matrices: the exponential, the square root, any other, and Sylvester's equation."""

from collections.abc import Callable
from typing import Any

import minijax.numpy as jnp
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.ir.types import typeof
from minijax.scipy.linalg.factors import rsf2csf, schur

# ---- the square root --------------------------------------------------------------------------------


@jitted("_sqrtm_triu")
def _sqrtm_triu(t: Any) -> Any:
    """The square root of a triangular matrix, column by column from the diagonal up (Björck & Hammarling 1983)."""
    n = typeof(t).shape[0]
    roots = jnp.sqrt(jnp.diag(t))

    def column(j, root):
        def element(k, root):
            i = j - 1 - k
            total = fori_loop(
                i + 1, j, lambda m, total: total + root[i, m] * root[m, j], jnp.zeros((), typeof(t).dtype)
            )
            value = jnp.where(t[i, j] == total, 0.0, (t[i, j] - total) / (roots[i] + roots[j]))
            return root.at[i, j].set(value)

        return fori_loop(0, j, element, root)

    return fori_loop(0, n, column, jnp.diag(roots))


@jitted("_sqrtm")
def _sqrtm(a: Any) -> Any:
    t, z = schur(a, output="complex")
    product = lambda x, y: jnp.matmul(x, y, precision="highest")  # noqa: E731
    return product(product(z, _sqrtm_triu(t)), jnp.conj(z.T))


def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """As `scipy.linalg.sqrtm`, always complex; `blocksize` is 1."""
    if blocksize > 1:
        raise NotImplementedError("sqrtm: Blocked version is not implemented yet; pass blocksize=1.")
    return _sqrtm(A)
