"""Special functions."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.scipy.special.gammas: beta betainc betaln comb digamma factorial gamma gammainc gammaincc gammaln gammasgn
    loggamma multigammaln poch polygamma
minijax.scipy.special.logarithms: boxcox boxcox1p entr expit kl_div logit rel_entr xlog1py xlogy
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
