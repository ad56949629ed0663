"""Distributions and statistics."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {"minijax.scipy.stats.kde": "gaussian_kde", "minijax.scipy.stats.statistics": "mode rankdata sem"},
    """
    bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic
    multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
""".split(),
)
