"""Distributions and statistics."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    """
    bernoulli beta binom cauchy chi2 expon gamma gennorm geom gumbel_l gumbel_r laplace logistic nbinom norm pareto
    poisson t uniform vonmises wrapcauchy
""".split(),
    {},
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
