"""jax.experimental.jet: Taylor-mode automatic differentiation."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.experimental.jet.transform: fact jet jet2 jet_fun jet_subtrace traceable
minijax.experimental.jet.tracing: JetTrace JetTracer ZeroSeries ZeroTerm call_param_updaters zero_series zero_term
minijax.experimental.jet.rules: def_comp def_deriv deflinear defzero deriv_prop jet_rules linear_prop zero_prop
""",
)
