"""Special functions."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.scipy.special.logarithms: boxcox boxcox1p entr expit kl_div log_softmax logit rel_entr softmax xlog1py xlogy
minijax.numpy.custom_rules: logsumexp
minijax.scipy.special.gammas: bernoulli bessel_jn beta betainc betaln comb digamma factorial gamma gammainc gammaincc
    gammaln gammasgn hyp1f1 hyp2f1 i0 i0e i1 i1e loggamma multigammaln poch polygamma zeta
minijax.scipy.special.errors: dawsn erf erfc erfcx erfinv fresnel log_ndtr ndtr ndtri owens_t wofz
minijax.scipy.special.harmonics: sph_harm_y
minijax.scipy.special.integrals: exp1 expi expn sici spence
""",
    deprecated={
        "jax.scipy.special.{0} is deprecated; no replacement is planned.": {
            "minijax.scipy.special.harmonics": "lpmn lpmn_values"
        }
    },
    removed={
        "jax.scipy.special.{0} was deprecated in v0.7.0 and removed in v0.10.0. "
        "Use jax.scipy.special.sph_harm_y instead.": "sph_harm"
    },
)
