"""Programs of the fuzzer, each under the same five transforms: jaxprs that print the same, and equal modules or bits."""

import dataclasses

import compare
import pytest
from fuzz import generator, shrink

import minijax
from minijax.extend.core import jaxprs_in_params
from tests.fuzz.test_fuzz import COMPARISON

jax = compare.theirs()

pytestmark = pytest.mark.oracle

TRANSFORMS = {"plain": (), "grad": ("grad",), "jvp": ("jvp",), "vmap": ("vmap",), "vmap_of_grad": ("grad", "vmap")}
HIGHER = {"scan", "while", "cond", "custom_jvp_call", "custom_vjp_call", "remat2", "custom_linear_solve"}
SEEDS, SMALL_RUN, BLOCK = 400, 1, 25


def size(jaxpr) -> tuple[int, bool]:
    """The equations of a jaxpr, inner ones included, and whether one of them is of higher order."""
    count, higher = len(jaxpr.eqns), False
    for eqn in jaxpr.eqns:
        higher |= eqn.primitive.name in HIGHER
        for inner in jaxprs_in_params(eqn.params):
            n, found = size(inner)
            count, higher = count + n, higher or found
    return count, higher


def programs(seeds: range) -> list[tuple[generator.Program, int, bool]]:
    """The programs of these seeds that have four equations or more, without transforms of their own."""
    found = []
    for seed in seeds:
        program = generator.generate(seed, differentiable=True)
        with minijax.enable_x64(program.x64):
            case = program.case()
            made = compare.outcome(
                lambda case=case: minijax.make_jaxpr(compare.run_on(minijax, case.program))(*case.args)
            )
        if made.error:
            with jax.enable_x64(program.x64):
                theirs = compare.outcome(
                    lambda case=case: jax.make_jaxpr(compare.run_on(jax, case.program))(*case.args)
                )
            compare.require(theirs.error is not None, f"seed {seed}", made.error, theirs.value)
        if made.error is None and (parts := size(made.value.jaxpr))[0] >= 4:
            found.append((program, *parts))
    return found


def blocks() -> list:
    full = pytest.mark.full
    return [pytest.param(i, marks=() if i < SMALL_RUN else full) for i in range(SEEDS // BLOCK)]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("block", blocks())
def test_programs_under_each_transform_are_those_of_jax(transform, block):
    failures, known = [], {}
    for program, *_ in programs(range(BLOCK * block, BLOCK * (block + 1))):
        under = dataclasses.replace(program, transforms=TRANSFORMS[transform])
        try:
            if how := COMPARISON.known_difference(under):
                known[program.seed] = how
        except compare.Mismatch as difference:
            failures.append(f"{shrink.shrunk(under, COMPARISON.mismatch)}\n{difference}")
    assert not failures, "\n\n".join(failures)
    assert len(known) <= (0 if block < SMALL_RUN else 3), known


@pytest.mark.full
def test_there_are_enough_programs_and_they_are_large_enough():
    found = programs(range(SEEDS))
    assert len(found) >= 300
    assert sum(n for _, n, _ in found) >= 8 * len(found)
    assert sum(higher for *_, higher in found) * 3 >= len(found)
