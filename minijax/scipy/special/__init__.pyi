# The names of this module's table, written by tests/write_stubs.py.

from minijax.numpy.custom_rules import logsumexp as logsumexp
from minijax.run.arrays.array import Array
from minijax.run.arrays.array import ArrayLike
from minijax.scipy.special.errors import dawsn as dawsn
from minijax.scipy.special.errors import erf as erf
from minijax.scipy.special.errors import erfc as erfc
from minijax.scipy.special.errors import erfcx as erfcx
from minijax.scipy.special.errors import erfinv as erfinv
from minijax.scipy.special.errors import ndtr as ndtr
from minijax.scipy.special.errors import ndtri as ndtri
from minijax.scipy.special.errors import owens_t as owens_t
from minijax.scipy.special.errors import wofz as wofz
from minijax.scipy.special.gammas import bernoulli as bernoulli
from minijax.scipy.special.gammas import bessel_jn as bessel_jn
from minijax.scipy.special.gammas import beta as beta
from minijax.scipy.special.gammas import betainc as betainc
from minijax.scipy.special.gammas import betaln as betaln
from minijax.scipy.special.gammas import comb as comb
from minijax.scipy.special.gammas import digamma as digamma
from minijax.scipy.special.gammas import factorial as factorial
from minijax.scipy.special.gammas import gamma as gamma
from minijax.scipy.special.gammas import gammainc as gammainc
from minijax.scipy.special.gammas import gammaincc as gammaincc
from minijax.scipy.special.gammas import gammaln as gammaln
from minijax.scipy.special.gammas import gammasgn as gammasgn
from minijax.scipy.special.gammas import i0 as i0
from minijax.scipy.special.gammas import i0e as i0e
from minijax.scipy.special.gammas import i1 as i1
from minijax.scipy.special.gammas import i1e as i1e
from minijax.scipy.special.gammas import loggamma as loggamma
from minijax.scipy.special.gammas import multigammaln as multigammaln
from minijax.scipy.special.gammas import polygamma as polygamma
from minijax.scipy.special.harmonics import sph_harm_y as sph_harm_y
from minijax.scipy.special.integrals import exp1 as exp1
from minijax.scipy.special.integrals import spence as spence
from minijax.scipy.special.logarithms import boxcox as boxcox
from minijax.scipy.special.logarithms import boxcox1p as boxcox1p
from minijax.scipy.special.logarithms import entr as entr
from minijax.scipy.special.logarithms import expit as expit
from minijax.scipy.special.logarithms import kl_div as kl_div
from minijax.scipy.special.logarithms import log_softmax as log_softmax
from minijax.scipy.special.logarithms import rel_entr as rel_entr
from minijax.scipy.special.logarithms import softmax as softmax
from typing import Any
from typing_extensions import deprecated

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn", "digamma", "entr",
    "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "expn", "factorial", "fresnel", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr",
    "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma",
    "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy", "zeta"
]

def logit(x: ArrayLike) -> Array: ...
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array: ...
def xlogy(x: ArrayLike, y: ArrayLike) -> Array: ...
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array: ...
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array: ...
def poch(z: ArrayLike, m: ArrayLike) -> Array: ...
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array: ...
def fresnel(x: ArrayLike) -> tuple[Any, Any]: ...
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array: ...
def expi(x: ArrayLike) -> Array: ...
def expn(n: ArrayLike, x: ArrayLike) -> Array: ...
def sici(x: ArrayLike) -> tuple[Any, Any]: ...
@deprecated("jax.scipy.special.lpmn is deprecated; no replacement is planned.")
def lpmn(m: int, n: int, z: Array) -> tuple[Any, Any]: ...
@deprecated("jax.scipy.special.lpmn_values is deprecated; no replacement is planned.")
def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Any: ...
