"""jax.experimental.roofline: FLOPs, memory traffic and communication of a program, counted on its jaxpr."""

from minijax.base.faces import listing
from minijax.experimental.roofline import rooflines as _rooflines  # noqa: F401 (registers the rules)
from minijax.experimental.roofline.roofline import (
    RooflineResult as RooflineResult,
    RooflineRuleContext as RooflineRuleContext,
    RooflineShape as RooflineShape,
    register_roofline as register_roofline,
    register_standard_roofline as register_standard_roofline,
    roofline as roofline,
    roofline_and_grad as roofline_and_grad,
)

__all__, __dir__ = listing(
    __name__,
    """
    RooflineResult RooflineRuleContext RooflineShape register_roofline register_standard_roofline roofline
    roofline_and_grad
""",
)
