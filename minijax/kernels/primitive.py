"""The operation `pallas_call`: a kernel over a grid, with its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.base.errors import warn
from minijax.interop.lowering import by_rules
from minijax.kernels import batching, derivatives, interpret, reverse
from minijax.kernels.captured import as_operands
from minijax.kernels.mosaic import call as mosaic
from minijax.kernels.operations.tpu import KERNEL_EFFECT
from minijax.kernels.simulator import call as simulator
from minijax.kernels.simulator.options import InterpretParams
from minijax.kernels.triton import module as triton
from minijax.transforms.discharge import DischargeableCall


class PallasCall(DischargeableCall):
    """Runs a kernel over a grid: (captured references, sizes of dynamic axes, scalars, inputs) -> results."""

    name = "pallas_call"
    multiple_results = True
    same_memory_space = False
    never_dead = True
    called: Callable  # `pallas_call`, which makes the call of a kernel

    def infer(self, *avals, out_avals, **params):
        return list(out_avals)

    def effects(self, *avals, out_avals, **params):
        return frozenset() if out_avals else KERNEL_EFFECT

    def discharge(self, operands, refs, **params):
        return as_operands(operands, refs, params)

    def lower(self, e, ins, outs, *operands, **params):
        return _lowering(e.platform, params)(e, ins, outs, operands, params)

    def jvp(self, primals, tangents, **params):
        return derivatives.jvp(self, primals, tangents, params)

    def linearize(self, nonzeros, primals, **params):
        return derivatives.linearize(self, nonzeros, primals, params)

    def transpose(self, cts, *operands, **params):
        if not params["interpret"] and reverse.writes_own_blocks(params):
            return reverse.transposed(self.called, cts, operands, params)
        return derivatives.transpose(cts, operands, params)

    def partial_eval_custom(self, eqn, unknown_in, policy):
        return derivatives.partial_eval_custom(eqn, unknown_in, policy)

    def batch(self, axis, operands, dims, **params):
        return batching.batch(self, axis, operands, dims, params)


_of_users: dict[type, dict[str, Callable]] = {}  # class of compiler_params -> platform -> lowering rule


def register_lowering_rule(params_cls: type, rule: Callable, platform: str) -> None:
    """Sets the rule that lowers calls of kernels whose `compiler_params` are of a class of the user.

    Args:
      params_cls: class of the parameters.
      rule: function `(context, *operands, **params) -> results` of MLIR values, as
        `jax.interpreters.mlir.register_lowering` takes it; `params` has the kernel's jaxpr, the grid mapping and the
        arguments of the call.
      platform: "tpu" or "gpu". On CPUs kernels are interpreted.

    Example:
        >>> from jaxlib.mlir.dialects import stablehlo
        >>> class Doubled(pl.CompilerParams):
        ...     BACKEND = "doubled"
        >>> rule = lambda context, x, **params: [stablehlo.add(x, x)]
        >>> jax.extend.pallas.register_lowering_rule(Doubled, rule, "tpu")
        >>> x = jax.ShapeDtypeStruct((4,), jnp.float32)
        >>> f = pl.pallas_call(lambda x_ref, y_ref: None, x, compiler_params=Doubled())
        >>> "stablehlo.add" in pl.lower_as_mlir(f, x)
        True
    """
    _of_users.setdefault(params_cls, {})[platform] = rule


def _lowered_by_user(rules: dict[str, Callable], platform: str) -> Callable:
    device = "gpu" if platform in ("cuda", "rocm") else platform
    if device not in rules:
        raise ValueError(
            f"pallas_call: Compiler params for platform {', '.join(rules)} cannot be used for {device} lowering."
        )
    own = {None: (rules[device], True)}
    return lambda e, ins, outs, operands, params: by_rules(pallas_call_p, own, e, ins, outs, *operands, **params)


def _lowering(platform: str, params: dict) -> Any:
    """The function that lowers a call for a platform."""
    if isinstance(params["interpret"], InterpretParams):
        return simulator.lower
    if params["interpret"]:
        return _interpreted
    if platform == "cpu":
        warn(
            "pallas_call: there is no compiler of kernels for CPUs, so the kernel is interpreted. Pass interpret=True "
            "to say that this is wanted.",
            UserWarning,
        )
        return _interpreted
    rules = _of_users.get(type(params["compiler_params"]))
    if rules is not None:
        return _lowered_by_user(rules, platform)
    if platform in ("cuda", "rocm"):
        return triton.lower
    if platform == "tpu":
        return mosaic.lower
    raise NotImplementedError(f"pallas_call: kernels cannot be lowered for {platform}. Pass interpret=True.")


def _interpreted(e: Any, ins: Sequence, outs: Sequence, operands: Sequence, params: dict) -> list:
    closed = interpret.program(tuple(ins), params)
    return e.inlined(closed.jaxpr, e.constants(closed), operands)


pallas_call_p = PallasCall()
