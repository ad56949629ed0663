# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.checkify import ErrorCategory as ErrorCategory
from minijax.api.checkify import all_checks as all_checks
from minijax.api.checkify import automatic_checks as automatic_checks
from minijax.api.checkify import checkify as checkify
from minijax.api.checkify import float_checks as float_checks
from minijax.api.checkify_errors import Error as Error
from minijax.api.checkify_errors import JaxRuntimeError as JaxRuntimeError
from minijax.api.checkify_errors import check as check
from minijax.api.checkify_errors import check_error as check_error
from minijax.api.checkify_errors import debug_check as debug_check
from minijax.api.checkify_errors import init_error as init_error

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check", "check_error", "checkify",
    "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks"
]

div_checks: frozenset
index_checks: frozenset
nan_checks: frozenset
user_checks: frozenset
