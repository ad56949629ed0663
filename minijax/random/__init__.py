"""`jax.random`: keys, and draws from distributions."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.random.discrete: binomial categorical choice geometric multinomial permutation poisson
minijax.random.samplers: ball bernoulli beta bits cauchy chisquare dirichlet double_sided_maxwell exponential f gamma
    generalized_normal gumbel laplace loggamma logistic lognormal maxwell multivariate_normal normal orthogonal pareto
    rademacher randint random_gamma_p rayleigh t triangular truncated_normal uniform wald weibull_min
minijax.random.keys: PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data
""",
)
