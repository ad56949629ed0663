"""Edges of functions: weak types of values and derivatives, and arguments that are no matrices or integers.

A weak array stays weak through a formula unless a constant of its dtype meets it, as in jax.
"""

import pytest
from compare import same, same_refusal

STATS = """cauchy.cdf cauchy.isf cauchy.logpdf cauchy.ppf chi2.logpdf gamma.logpdf gennorm.cdf gennorm.logpdf gumbel_r.sf
laplace.cdf laplace.logpdf logistic.isf logistic.logpdf logistic.ppf norm.logcdf norm.logpdf norm.logsf pareto.cdf
pareto.logpdf pareto.ppf t.logpdf vonmises.logpdf wrapcauchy.logpdf"""


def _types(jax, program, *args):
    """The types of a value, its forward and its reverse derivative with respect to the last argument."""
    jnp, (*fixed, x) = jax.numpy, args

    def fun(x):
        return program(*fixed, x)

    def results():
        return fun(x), jax.jvp(fun, (x,), (1.0,)), jax.grad(lambda x: jnp.sum(fun(x)))(x)

    return [(str(y.dtype), y.weak_type, y.shape) for y in jax.tree.leaves(jax.eval_shape(results))]


@pytest.mark.parametrize("name", STATS.split())
def test_a_distribution_of_integers_with_a_python_parameter(name):
    distribution, function = name.split(".")
    same(
        lambda jax, jnp, scipy: _types(
            jax, getattr(getattr(scipy.stats, distribution), function), jnp.arange(1, 4), 0.5
        )
    )


@pytest.mark.parametrize("name", ["zeta", "polygamma"])
def test_a_special_function_of_integers_and_a_python_scalar(name):
    same(lambda jax, jnp, scipy: _types(jax, getattr(scipy.special, name), jnp.arange(1, 4), 2.0))


@pytest.mark.parametrize("name", ["log_ndtr", "ndtr", "ndtri", "gammaln", "factorial"])
def test_a_special_function_of_a_python_scalar(name):
    same(lambda jax, scipy: _types(jax, getattr(scipy.special, name), 0.5))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_factorial_of_a_weak_array_is_weak(dtype):
    def weak_type(jax, jnp, scipy):
        weak = jnp.broadcast_to(jnp.asarray(2.0 if dtype == "float32" else 2), (3,))
        return scipy.special.factorial(weak)

    assert same(weak_type).weak_type


@pytest.mark.parametrize("name", ["power", "float_power", "pow"])
def test_the_derivative_by_a_weak_exponent_is_strong(name):
    same(lambda jax, jnp: _types(jax, getattr(jnp, name), jnp.arange(3), 2.0))
    same(lambda jax, jnp: _types(jax, getattr(jnp, name), 0.0, 2.0))


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_the_gradient_by_gathered_elements_of_a_weak_scalar_is_strong(name):
    same(lambda jax, jnp: jax.grad(getattr(jnp, name))(2.0))
    same(lambda jax, jnp: jax.grad(lambda x: jnp.quantile(x, 0.5))(2.0))


@pytest.mark.parametrize("name", ["log_ndtr", "owens_t"])
def test_a_rule_on_python_scalars_computes_in_jaxprs(name):
    args = (0.5,) if name == "log_ndtr" else (0.5, 2.0)

    def gradient(jax, scipy):
        return str(jax.make_jaxpr(lambda: jax.grad(getattr(scipy.special, name))(*args))())

    same(gradient)


REFUSED = {
    "cholesky of a vector": lambda jnp, scipy: lambda: scipy.linalg.cholesky(jnp.ones(3)),
    "cholesky of a scalar": lambda scipy: lambda: scipy.linalg.cholesky(2.0),
    "cho_factor of a vector": lambda jnp, scipy: lambda: scipy.linalg.cho_factor(jnp.ones(3)),
    "hessenberg of a vector": lambda jnp, scipy: lambda: scipy.linalg.hessenberg(jnp.ones(3)),
    "hadamard of no integer": lambda scipy: lambda: scipy.linalg.hadamard(3.5),
    "round to a float": lambda jnp: lambda: jnp.round(0.5, 2.0),
    "round of integers to a float": lambda jnp: lambda: jnp.arange(3).round(1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_refuses(name):
    same_refusal(REFUSED[name])


def test_matrices_of_numbers():
    same(lambda scipy: (scipy.linalg.hadamard(4.0), scipy.linalg.hadamard(1.0)))
    same(lambda jnp, scipy: [scipy.linalg.fiedler_companion(x) for x in (2.0, 3, jnp.ones(1))])
