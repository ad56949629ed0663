"""`custom_fusion`: functions with rules of their own for the fuser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import tree
from minijax.ir.body import Body, Flat, as_consts, source_of, trace_flat, wrapping
from minijax.ir.jaxpr import DebugInfo, Jaxpr
from minijax.ir.primitive import Primitive
from minijax.ir.trace import constants_to_inputs, eval_jaxpr
from minijax.ir.types import typeof
from minijax.kernels.expanded import Step, evaluate


class CustomFusion(Primitive):
    """Calls a function with rules for the fuser: (captured values, those of its form in kernels, arguments)."""

    name = "custom_fusion"
    multiple_results = True
    caches_types = False

    def infer(self, *avals, jaxpr, **params):
        return list(jaxpr.out_avals)

    def at_once(self, *operands, jaxpr, num_consts, pallas_num_consts, **params):
        return eval_jaxpr(jaxpr, operands[:num_consts], *operands[num_consts + pallas_num_consts :])

    def lower(self, e, ins, outs, *operands, jaxpr, num_consts, pallas_num_consts, **params):
        taken = [*operands[:num_consts], *operands[num_consts + pallas_num_consts :]]
        return e.inlined(constants_to_inputs(jaxpr), [], taken)

    def evaluate_in_kernel(self, operands: Sequence, params: dict, step: Step) -> list:
        """Evaluates the form that the function has in kernels."""
        jaxpr, args = in_kernel(params, operands)
        return evaluate(jaxpr, (), args, step)


custom_fusion_p = CustomFusion()


def in_kernel(params: dict, operands: Sequence) -> tuple[Jaxpr, Sequence]:
    """The jaxpr that a call is in a kernel, with constants as leading inputs, and its operands."""
    return constants_to_inputs(params["pallas_jaxpr"]), operands[params["num_consts"] :]


class custom_fusion:  # noqa: N801
    """Gives a function rules of its own for the fuser, which then need not look into it.

    The rules are set by `def_pull_block_spec`, `def_push_block_spec` and `def_eval_rule`; `def_pallas_impl` sets the
    form of the function in kernels, which is the function itself if none is set.

    Args:
      fun: function of arrays.

    Raises AssertionError if it is called before the rules are set.

    See also: `fuser.fuse`, `fuser.pull_block_spec`.

    Example:
        >>> @pl.fuser.custom_fusion
        ... def double(x):
        ...     return 2 * x
        >>> double.def_pull_block_spec(lambda blocks: blocks)
        >>> double.def_push_block_spec(lambda specs: specs)
        >>> double.def_eval_rule(lambda context, x: (2 * x,))
        >>> double(jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """

    eval_rule: Callable[..., Sequence] | None = None
    pull_block_spec_rule: Callable[[tuple], Sequence] | None = None
    push_block_spec_rule: Callable[[tuple], Sequence] | None = None
    pallas_impl: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[..., Any]):
        wrapping(fun)(self)
        self.fun = fun

    def def_pallas_impl(self, pallas_impl: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the form of the function in kernels."""
        self.pallas_impl = pallas_impl
        return pallas_impl

    def def_pull_block_spec(self, pull_block_spec_rule: Callable[[tuple], Sequence]) -> None:
        """Sets the rule (blocks of the results) -> blocks of the arguments, `fuser.BlockIndexTransform`s."""
        self.pull_block_spec_rule = pull_block_spec_rule

    def def_push_block_spec(self, push_block_spec_rule: Callable[[tuple], Sequence]) -> None:
        """Sets the rule (specs of the arguments) -> specs of the results, `pl.BlockSpec`s."""
        self.push_block_spec_rule = push_block_spec_rule

    def def_eval_rule(self, eval_rule: Callable[..., Sequence]) -> None:
        """Sets the rule (context, *blocks of the arguments) -> blocks of the results."""
        self.eval_rule = eval_rule

    def __call__(self, *args, **kwargs):
        for name in ("eval_rule", "pull_block_spec_rule", "push_block_spec_rule"):
            if getattr(self, name) is None:
                raise AssertionError(f"custom_fusion: {self.fun} has no {name}; set it before the first call")
        leaves, in_tree = tree.flatten((args, kwargs))
        body = self._traced(self.fun, in_tree, leaves)
        kernel = body if self.pallas_impl is None else self._traced(self.pallas_impl, in_tree, leaves)
        results = custom_fusion_p.bind(
            *body.closed.consts,
            *kernel.closed.consts,
            *leaves,
            eval_rule=self.eval_rule,
            in_tree=tree.tree_structure(args) if not kwargs else in_tree,
            jaxpr=body.jaxpr,
            kernel_out_tree=kernel.out_tree,
            num_consts=len(body.closed.consts),
            out_tree=body.out_tree,
            pallas_jaxpr=kernel.jaxpr,
            pallas_num_consts=len(kernel.closed.consts),
            pull_block_spec_rule=self.pull_block_spec_rule,
            push_block_spec_rule=self.push_block_spec_rule,
        )
        return body.out_tree.unflatten(results)

    @staticmethod
    def _traced(fun: Callable[..., Any], in_tree: Any, leaves: Sequence) -> Body:
        flat = Flat(fun, in_tree, lambda values: values)
        return trace_flat(flat, list(map(typeof, leaves)), DebugInfo("custom_fusion", source_of(fun)), as_consts)
