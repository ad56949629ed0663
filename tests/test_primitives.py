"""Which of jax's primitives there are and which of jax's rules they have: a table to be kept up to date.

`primitives.txt` has a line a primitive of jax 0.10.2: its name in `jax.extend.core.primitives` (`-`: none), its
own name, whether it has one result or several, and its rules.
"""

import gc
import importlib
import pkgutil
from pathlib import Path

import pytest

from minijax.interpreters import ad, batching

LINES = [line.split() for line in (Path(__file__).parent / "support" / "primitives.txt").read_text().splitlines()]
PUBLIC = {public: (name, several == "several", set(rules)) for public, name, several, *rules in LINES if public != "-"}
PRIVATE = {name: (several == "several", set(rules)) for public, name, several, *rules in LINES if public == "-"}
RULES = ("batch", "jvp", "lower", "transpose")

ABSENT: list[str] = []

ABSENT_PRIVATE = """
    accum_grad_in_ref all_gather_done all_gather_reduced_start
    all_gather_start all_to_all_done all_to_all_start
    create_linear cudnn_fusion custom_jvp_call_jaxpr
    dimension_size dot_product_attention_bwd
    dot_product_attention_fp8_bwd dot_product_attention_fp8_bwd_wrapper dot_product_attention_fp8_fwd
    dot_product_attention_fp8_fwd_wrapper dot_product_attention_fwd
    eval_jaxpr iota_2x32_shape pbroadcast_done
    pbroadcast_start pin ppermute_done ppermute_start psum_done
    psum_invariant_start psum_start reduce_scatter_done reduce_scatter_start
    run_state scaled_matmul shape_assertion
    tie unpin unreachable unreduced_psum_start
    unreduced_reduce_scatter_start
    zeros_like
""".split()

# A call's operations take its place; custom_jvp_call is no longer there when its function is transposed, nor
# are reads and writes of references, which are evaluated eagerly on their values.
WITHOUT = {
    "call_p": "transpose",
    "closed_call_p": "lower transpose",
    "custom_jvp_call_p": "transpose",
    "get_p": "transpose",
    "swap_p": "transpose",
}

# Results that do not depend on the operands, or not differentiably, have a tangent of zero.
BEYOND = {
    "axis_index_p": "jvp",
    "call_p": "batch jvp",
    "eig_p": "lower",
    "eigh_p": "lower",
    "hessenberg_p": "lower",
    "name_p": "transpose",
    "reduce_and_p": "jvp",
    "reduce_or_p": "jvp",
    "reduce_xor_p": "jvp",
    "rng_bit_generator_p": "jvp",
    "scatter_max_p": "transpose",
    "scatter_min_p": "transpose",
    "schur_p": "lower",
    "stop_gradient_p": "transpose",
    "threefry2x32_p": "jvp",
    "tridiagonal_p": "lower",
}


def primitives():
    return importlib.import_module("minijax.extend.core.primitives")


def rules_of(primitive):
    return {rule for rule in RULES if getattr(primitive, rule) is not None}


def test_the_primitives_that_are_absent_are_named():
    assert sorted(n for n in PUBLIC if not hasattr(primitives(), n)) == sorted(ABSENT)
    assert sorted(n for n in dir(primitives()) if not n.startswith("_")) == sorted(set(PUBLIC) - set(ABSENT))


@pytest.mark.usefixtures("every_object")
def test_the_primitives_without_a_public_name_that_are_absent_are_named():
    composed = "composed", "composed.arrays", "composed.callbacks", "composed.linalg"
    rooms = (
        "primitives",
        "calls",
        "higher",
        "dispatch",
        *composed,
        "api",
        "numpy",
        "random",
        "kernels",
        "kernels.operations",
    )
    for room in rooms:
        package = importlib.import_module(f"minijax.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"minijax.{room}.{module.name}")
    base = importlib.import_module("minijax.ir.primitive").Primitive
    made = {x.name for x in gc.get_objects() if issubclass(type(x), base) and type(x).__module__.startswith("minijax")}
    assert sorted(n for n in PRIVATE if n not in made) == sorted(ABSENT_PRIVATE)


def test_primitives_have_jaxs_names_and_numbers_of_results():
    found = {n: getattr(primitives(), n) for n in PUBLIC if hasattr(primitives(), n)}
    ours = {n: (p.name, p.multiple_results) for n, p in found.items()}
    assert ours == {n: PUBLIC[n][:2] for n in found}


def test_primitives_have_jaxs_rules_but_for_those_named():
    missing, beyond = {}, {}
    for name, (_, _, theirs) in PUBLIC.items():
        if hasattr(primitives(), name):
            ours = rules_of(getattr(primitives(), name))
            if theirs - ours:
                missing[name] = " ".join(sorted(theirs - ours))
            if ours - theirs:
                beyond[name] = " ".join(sorted(ours - theirs))
    assert (missing, beyond) == (WITHOUT, BEYOND)


def test_the_tables_of_rules_agree():
    for name in PUBLIC:
        if hasattr(primitives(), name):
            p = getattr(primitives(), name)
            held = [p in t for t in (batching.primitive_batchers, ad.primitive_jvps, ad.primitive_transposes)]
            assert held == [getattr(p, rule) is not None for rule in ("batch", "jvp", "transpose")]
