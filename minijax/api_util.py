"""jax.api_util: the arguments of functions by position, name and leaf."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.interop.arguments: argnums_partial debug_info donation_vector flatten_axes flatten_fun flatten_fun_nokwargs
    rebase_donate_argnums safe_map shaped_abstractify
""",
)
