"""`jax.random`: keys, and draws from distributions."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.random.choices: categorical choice permutation
minijax.random.continuous: double_sided_maxwell lognormal maxwell pareto rayleigh triangular wald weibull_min
minijax.random.counts: binomial multinomial poisson
minijax.random.discrete: geometric
minijax.random.matrices: multivariate_normal orthogonal
minijax.random.gammas: ball beta chisquare dirichlet f gamma generalized_normal loggamma random_gamma_p t
minijax.random.keys: PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data
minijax.random.samplers: bernoulli bits cauchy exponential gumbel laplace logistic normal rademacher randint
    truncated_normal uniform
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
