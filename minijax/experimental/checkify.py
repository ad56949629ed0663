"""jax.experimental.checkify: runtime checks, returned as error values."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.checkify: ErrorCategory all_checks automatic_checks checkify div_checks float_checks index_checks
    nan_checks user_checks
minijax.api.checkify_errors: Error JaxRuntimeError check check_error debug_check init_error
""",
)
