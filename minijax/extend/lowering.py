"""jax.extend.lowering: what lowering rules are told."""

from minijax.interop.lowering import LoweringRuleContext as LoweringRuleContext
