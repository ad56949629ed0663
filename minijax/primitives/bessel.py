"""Special functions without loops: modified Bessel functions of orders 0 and 1, and the zeta function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops
from minijax.primitives.convert import convert
from minijax.primitives.families import FLOAT, Defined, Elementwise, const_like, full_of, unary
from minijax.run.arrays.array import Array, ArrayLike

# Coefficients of the Chebyshev series of exp(-|x|) I0(x), on [0, 8] and beyond: S. L. Moshier, Cephes, 1984.
_NEAR = [
    float(c)
    for c in """
    -4.41534164647933937950e-18 3.33079451882223809783e-17 -2.43127984654795469359e-16
    1.71539128555513303061e-15 -1.16853328779934516808e-14 7.67618549860493561688e-14
    -4.85644678311192946090e-13 2.95505266312963983461e-12 -1.72682629144155570723e-11
    9.67580903537323691224e-11 -5.18979560163526290666e-10 2.65982372468238665035e-9
    -1.30002500998624804212e-8 6.04699502254191894932e-8 -2.67079385394061173391e-7
    1.11738753912010371815e-6 -4.41673835845875056359e-6 1.64484480707288970893e-5
    -5.75419501008210370398e-5 1.88502885095841655729e-4 -5.76375574538582365885e-4
    1.63947561694133579842e-3 -4.32430999505057594430e-3 1.05464603945949983183e-2
    -2.37374148058994688156e-2 4.93052842396707084878e-2 -9.49010970480476444210e-2
    1.71620901522208775349e-1 -3.04682672343198398683e-1 6.76795274409476084995e-1
""".split()
]
_FAR = [
    float(c)
    for c in """
    -7.23318048787475395456e-18 -4.83050448594418207126e-18 4.46562142029675999901e-17
    3.46122286769746109310e-17 -2.82762398051658348494e-16 -3.42548561967721913462e-16
    1.77256013305652638360e-15 3.81168066935262242075e-15 -9.55484669882830764870e-15
    -4.15056934728722208663e-14 1.54008621752140982691e-14 3.85277838274214270114e-13
    7.18012445138366623367e-13 -1.79417853150680611778e-12 -1.32158118404477131188e-11
    -3.14991652796324136454e-11 1.18891471078464383424e-11 4.94060238822496958910e-10
    3.39623202570838634515e-9 2.26666899049817806459e-8 2.04891858946906374183e-7
    2.89137052083475648297e-6 6.88975834691682398426e-5 3.36911647825569408990e-3
    8.04490411014108831608e-1
""".split()
]


def _chebyshev(x: Any, coefficients: Sequence[float]) -> Any:
    """Sums a Chebyshev series at x / 2 by Clenshaw's recurrence; coefficients start with the highest order."""
    # Order of operations as in jax (Apache-2.0).
    now = before = earlier = full_of(x, 0)
    for c in coefficients:
        now, before, earlier = ops.add(ops.sub(ops.mul(x, now), before), full_of(x, c)), now, before
    return ops.mul(full_of(x, 0.5), ops.sub(now, earlier))


def _bessel_i0e(x: Any) -> Any:
    dtype = typeof(x).dtype
    # Single precision needs only the last coefficients.
    near, far = (_NEAR, _FAR) if dtype == np.float64 else (_NEAR[-18:], _FAR[-7:])
    x = ops.abs(x if dtype.itemsize >= 4 else convert(x, np.dtype(np.float32)))
    half, two, most = full_of(x, 0.5), full_of(x, 2), full_of(x, 32)
    small = _chebyshev(ops.sub(ops.mul(half, x), two), near)
    large = ops.div(_chebyshev(ops.sub(ops.div(most, x), two), far), ops.sqrt(x))
    return convert(ops.select(ops.le(x, full_of(x, 8)), small, large), dtype)


def _i1e_jvp(t, ans, x):
    eps = dtypes.finfo(typeof(x).dtype).eps
    is_safe = ops.gt(ops.abs(x), const_like(x, eps))
    safe = ops.select(is_safe, x, full_of(x, eps))
    slope = ops.sub(bessel_i0e(safe), ops.mul(ans, ops.add(ops.sign(safe), ops.reciprocal(safe))))
    return ops.mul(t, ops.select(is_safe, slope, full_of(x, 0.5)))


bessel_i0e_p = Defined(
    "bessel_i0e", _bessel_i0e, lambda t, ans, x: ops.mul(t, ops.sub(bessel_i1e(x), ops.mul(ops.sign(x), ans)))
)
bessel_i1e_p = Elementwise("bessel_i1e", "chlo.bessel_i1e", FLOAT, _i1e_jvp)
zeta_p = Elementwise("zeta", "chlo.zeta", FLOAT, None, None)

bessel_i0e, bessel_i1e = map(unary, (bessel_i0e_p, bessel_i1e_p))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Computes the Hurwitz zeta function: the sum of (n + q) ** -x over n >= 0. It is not differentiable.

    Raises TypeError for other dtypes than floats, or if they differ.

    Example:
        >>> jax.lax.zeta(2.0, 1.0), jnp.pi**2 / 6
        (Array(1.644..., dtype=float32, weak_type=True), 1.644...)
    """
    return zeta_p.bind(x, q)
