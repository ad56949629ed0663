# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.ad import (flatten_fun_for_sparse_ad as flatten_fun_for_sparse_ad, grad as grad,
    is_sparse as is_sparse, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, value_and_grad as
    value_and_grad)
