# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.optimize.bfgs import OptimizeResults as OptimizeResults
from minijax.scipy.optimize.bfgs import minimize as minimize

__all__ = [
    "OptimizeResults", "minimize"
]
