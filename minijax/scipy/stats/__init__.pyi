# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.stats import bernoulli as bernoulli
from minijax.scipy.stats import beta as beta
from minijax.scipy.stats import betabinom as betabinom
from minijax.scipy.stats import binom as binom
from minijax.scipy.stats import cauchy as cauchy
from minijax.scipy.stats import chi2 as chi2
from minijax.scipy.stats import dirichlet as dirichlet
from minijax.scipy.stats import expon as expon
from minijax.scipy.stats import gamma as gamma
from minijax.scipy.stats import gennorm as gennorm
from minijax.scipy.stats import geom as geom
from minijax.scipy.stats import gumbel_l as gumbel_l
from minijax.scipy.stats import gumbel_r as gumbel_r
from minijax.scipy.stats import laplace as laplace
from minijax.scipy.stats import logistic as logistic
from minijax.scipy.stats import multinomial as multinomial
from minijax.scipy.stats import multivariate_normal as multivariate_normal
from minijax.scipy.stats import nbinom as nbinom
from minijax.scipy.stats import norm as norm
from minijax.scipy.stats import pareto as pareto
from minijax.scipy.stats import poisson as poisson
from minijax.scipy.stats import t as t
from minijax.scipy.stats import truncnorm as truncnorm
from minijax.scipy.stats import uniform as uniform
from minijax.scipy.stats import vonmises as vonmises
from minijax.scipy.stats import wrapcauchy as wrapcauchy
from minijax.scipy.stats.kde import gaussian_kde as gaussian_kde
from minijax.scipy.stats.statistics import mode as mode
from minijax.scipy.stats.statistics import rankdata as rankdata
from minijax.scipy.stats.statistics import sem as sem

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gaussian_kde",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy"
]
