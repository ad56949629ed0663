# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.roofline import (RooflineResult as RooflineResult, RooflineRuleContext as
    RooflineRuleContext, RooflineShape as RooflineShape, register_roofline as register_roofline,
    register_standard_roofline as register_standard_roofline, roofline as roofline, roofline_and_grad as
    roofline_and_grad)
