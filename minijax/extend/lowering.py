"""jax.extend.lowering: what lowering rules are told."""

from minijax.api.lowering import LoweringRuleContext as LoweringRuleContext
