# The names of this module's table, written by tests/write_stubs.py.

from minijax.scipy.optimize.minimization import OptimizeResults as OptimizeResults
from minijax.scipy.optimize.minimization import minimize as minimize

__all__ = [
    "OptimizeResults", "minimize"
]
