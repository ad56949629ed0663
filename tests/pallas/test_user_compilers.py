"""`jax.extend.pallas`: kernels that a compiler of the user lowers."""

import importlib

import pytest
from compare import canonical, run_on, same_printed


def module(jax, name):
    return importlib.import_module(f"{jax.__name__}.{name}")


def lowered(traced, platform):
    """The module for a platform, or the exception's class and words."""
    try:
        return canonical(traced.lower(lowering_platforms=(platform,)).as_text())
    except ValueError as error:
        return str(error).removeprefix("pallas_call: ")


@pytest.mark.oracle
@pytest.mark.parametrize("platform", ["tpu", "gpu", "another"])
def test_its_rule_lowers_a_kernel_with_its_parameters(platform):
    def texts(jax):
        from jaxlib.mlir.dialects import stablehlo

        pl, seen = module(jax, "experimental.pallas"), []

        class Doubled(pl.CompilerParams):
            BACKEND = "doubled"

        def rule(context, *operands, **params):
            known = (
                params["compiler_params"] is how,
                params["grid_mapping"].grid,
                params["name"],
                len(params["jaxpr"].eqns),
            )
            seen.append(str((*known, context.avals_out, sorted(params))))
            return [stablehlo.add(operands[0], operands[1])]

        module(jax, "extend.pallas").register_lowering_rule(Doubled, rule, platform)

        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = x_ref[...] + y_ref[...]

        x, how = jax.ShapeDtypeStruct((4, 8), "float32"), Doubled()
        traced = jax.jit(pl.pallas_call(kernel, x, grid=(2,), name="twice", compiler_params=how)).trace(x, x)
        return "\n".join([*[lowered(traced, target) for target in ("tpu", "cuda", "rocm")], *seen])

    same_printed("kernels lowered by users", lambda side: run_on(side, texts), texts, platform)
