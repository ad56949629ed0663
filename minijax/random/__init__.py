"""`jax.random`: keys, and draws from distributions."""

from minijax.random.choices import categorical as categorical, choice as choice, permutation as permutation
from minijax.random.keys import (
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from minijax.random.samplers import (
    bernoulli as bernoulli,
    bits as bits,
    cauchy as cauchy,
    exponential as exponential,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    normal as normal,
    rademacher as rademacher,
    randint as randint,
    truncated_normal as truncated_normal,
    uniform as uniform,
)
