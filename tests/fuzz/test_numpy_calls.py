"""Random programs of jax.numpy's calls: each result, resized, is an operand of the calls that come after it."""

import ast
import random

import compare
import numpy as np
import pytest
import transform_matrix

import tests.numpy.test_calls as table

pytestmark = pytest.mark.oracle

SEEDS, SMALL_RUN, BLOCK, LENGTH = 1000, 20, 50, 6
KINDS = ("any", "number", "real", "inexact", "float")


def usable():
    """The calls that take arrays of float32, may be traced, and have a derivative or none at all."""
    for path in table.TABLES:
        for call in table.calls(path):
            fit = call.kind in KINDS and table.varies(call) and not call.refused
            if fit and not call.words & {"eager", "forward"} and "random" not in call.text:
                yield call


CALLS = list(usable())


def program(seed):
    """A function of the operands of the tables, which gives the sum of the results of some calls."""
    rng = random.Random(seed)
    chosen = [rng.choice(CALLS) for _ in range(LENGTH)]
    replaced = [rng.choice([n for n in table.SHAPES if n != "e"]) for _ in chosen]

    def build(jax, jnp):
        parts = [(table.function(jnp, c.text, {"jax": jax}), operands(c.text)) for c in chosen]

        def run(given):
            values, total = dict(table.FIXED) | given, 0.0
            for (part, names), name in zip(parts, replaced, strict=True):
                found = [
                    r for r in jax.tree.leaves(part(*(values[n] for n in names))) if np.ndim(r) or hasattr(r, "dtype")
                ]
                for r in found:
                    r = jnp.real(r).astype("float32") if jnp.iscomplexobj(r) else jnp.asarray(r).astype("float32")
                    r = jnp.tanh(jnp.nan_to_num(r, posinf=1.0, neginf=-1.0))
                    total = total + jnp.sum(r)
                    if r.size:
                        values[name] = values[name] * 0.5 + jnp.resize(r, table.SHAPES[name])
            return total

        return run

    return build, {name: table.operand(name, "float32") for name in table.SHAPES}


def operands(text):
    names = dict.fromkeys(table.names_of(text))
    return [n for n in names if n in table.SHAPES or n in table.FIXED]


def cases(block):
    for seed in block:
        build, given = program(seed)
        yield compare.Case(f"{seed}", build, (given,))


def blocks():
    full = pytest.mark.full
    yield range(SMALL_RUN)
    for start in range(0, SEEDS, BLOCK):
        yield pytest.param(range(start, start + BLOCK), marks=full)


@pytest.mark.parametrize("block", list(blocks()), ids=lambda b: f"{b.start}-{b.stop}")
@pytest.mark.parametrize("transform", ["plain", "grad"])
def test_programs_equal_those_of_jax(block, transform):
    tier = "full" if block.stop - block.start == BLOCK else "text"
    compare.sweep([transform_matrix.transformed(c, transform) for c in cases(block)], tier, jaxpr=False)


def test_the_tables_hold_expressions_of_many_functions():
    names = {
        ast.unparse(n.func) for c in CALLS for n in ast.walk(ast.parse(c.text, mode="eval")) if isinstance(n, ast.Call)
    }
    assert len(names) > 250
