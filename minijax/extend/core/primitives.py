"""jax.extend.core.primitives: most primitives of `jax.lax`, and some of other modules."""

from minijax import lax
from minijax.base.faces import Face

_UNLISTED = """
    dce_sink_p mulhi_p optimization_barrier_p scatter_sub_p split_p stack_p stage_p tile_p
    unstack_p
""".split()

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {
        "minijax.lax": " ".join(name for name in dir(lax) if name.endswith("_p") and name not in _UNLISTED),
        "minijax.lax.linalg": """
        cholesky_p eig_p eigh_p hessenberg_p householder_product_p lu_p qr_p schur_p svd_p triangular_solve_p
        tridiagonal_p tridiagonal_solve_p
    """,
        "minijax.composed.random": "random_bits_p random_fold_in_p random_seed_p random_split_p",
        "minijax.random.samplers": "random_gamma_p",
        "minijax.dispatch.jit": "jit_p",
        "minijax.interop.calls": "call_p closed_call_p",
        "minijax.calls.remat": "name_p remat_p",
        "minijax.calls.custom_derivatives": "custom_jvp_call_p custom_lin_p custom_vjp_call_p",
        "minijax.primitives.random_bits": "threefry2x32_p",
        "minijax.composed.refs": "get_p swap_p",
        "minijax.primitives.counting": "empty2_p",
        "minijax.primitives.zeros": "add_jaxvals_p=add_any_p",
    },
    partial=True,
)
