"""Random programs on jax and minijax: the same types, values, errors and jaxprs, but for differences that are listed."""

import itertools
import os
import random
import re
from collections import Counter
from pathlib import Path

import compare
import pytest
from fuzz import generator, shrink
from fuzz.comparison import Comparison

import minijax

jax = compare.theirs()

pytestmark = pytest.mark.oracle

BLOCK, SMALL_RUN, FULL_RUN = 50, 4, 40
# Reasons for errors of jax where minijax returns: jax refuses an operation that has no effect.
LEFT_BY_JAX = {
    "a clamp by bounds of other ranks is not batched": "clamp requires max.shape",
    "a tangent of integers reaches what has no derivative": (
        "Differentiation rule for '(population_count|clz|custom_lin)' not"
    ),
    "a tangent of integers reaches a rule that returns integers": (
        "can't apply forward-mode autodiff .jvp. to a custom_vjp|Custom JVP rule must produce .* but got float0"
    ),
    "a tangent that a rule has stopped is transposed": "Transpose rule .* for 'stop_gradient' not",
    "residuals of checkpoint are rounded, complex ones too": "reduce_precision does not accept dtype complex",
    "a backward pass reduces over a named axis that it has left": "Found an unbound axis name",
}
# The programs of the small run that differ: their seeds, and how (see `how_jaxprs_differ`). Of other programs one in
# 70 does; more than SELDOM in a block would be news.
SELDOM = 5
KNOWN = {196: "dead"}
KEPT = [int(seed) for seed in Path(__file__).with_name("seeds.txt").read_text().split()]


def check(program: generator.Program) -> str:
    """Requires equal types, and equal texts or values, or equal errors; returns how the jaxprs differ."""
    with compare.wide_numbers(program.x64):
        case = program.case()
        difference = "" if program.leaves_calls else jaxpr_difference(case)
        compare.check(case, jaxpr=False)
        return difference


def jaxpr_difference(case: compare.Case) -> str:
    """How the jaxprs differ, up to names of variables and to which inner jaxprs are shown once."""
    sides = compare.ours(), compare.theirs()
    found = [
        compare.outcome(lambda side=side: compare.jaxpr_text(side, compare.run_on(side, case.program), case.args))
        for side in sides
    ]
    for result in found:
        if result.error and "JaxprTypeError" in type(result.error).__name__:
            raise compare.Mismatch(f"raising: {result.error}")
    return "" if any(result.error for result in found) else how_jaxprs_differ(*(result.value for result in found))


def how_jaxprs_differ(ours: str, theirs: str) -> str:
    """The known way in which two jaxprs, or their structures, differ.

    "captured": an inner jaxpr has an additional operand, or one twice. "order": equations are in another order, or
    outside a loop. "dead": the numbers of equations with unread results differ.
    """
    texts = structure(ours), structure(theirs)
    if texts[0] == texts[1]:
        return ""
    equations = [operations(text) for text in texts]
    if equations[0] == equations[1]:
        return "captured"
    if sorted(equations[0]) == sorted(equations[1]):
        return "order"
    if sorted(operations(without_dead(texts[0]))) == sorted(operations(without_dead(texts[1]))):
        return "dead"
    raise compare.Mismatch(f"other jaxprs:\n{ours}\n--- not \n{theirs}")


EQUATION = re.compile(r"((?:(?:v\d+|_):\S+ )+)(= [\w-]+)")


def operations(text: str) -> list[str]:
    """The types of the results and the name of each equation in a jaxpr's structure."""
    return [re.sub(r"v\d+:|_:", "", types) + name for types, name in EQUATION.findall(text)]


def without_dead(text: str) -> str:
    """A jaxpr's structure without the equations whose results are not read."""
    ends = [found.start() for found in EQUATION.finditer(text)]
    parts = [text[: ends[0]], *(text[i:j] for i, j in itertools.pairwise([*ends, len(text)]))] if ends else [text]
    reads = Counter(re.findall(r"\bv\d+\b(?!:)", text))
    live = [
        p if not (m := EQUATION.match(p)) or any(reads[v] for v in re.findall(r"v\d+", m[1])) else after_equation(p)
        for p in parts
    ]
    return text if live == parts else without_dead("".join(live))


def after_equation(text: str) -> str:
    """The end of a jaxpr that follows its last equation, with which the text begins; empty if there is none."""
    depth = 0
    for i, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if depth < 0 or not depth and text.startswith(" in (", i):
            return text[i:]
    return ""


def structure(text: str) -> str:
    """A jaxpr in full on one line, its variables numbered in the order in which they are bound."""
    text = re.sub(r"(?<=[\[({])\s+|\s+(?=[\])}])", "", re.sub(r"\s+", " ", expanded(text)))
    numbers = (f"v{i}" for i in itertools.count())
    scopes: list[dict[str, str]] = [{}]

    def number(found: re.Match) -> str:
        name, binds = found["name"], found["binds"]
        if found[0][0] == "{":
            scopes.append(dict(scopes[-1]) if "lambda" in found[0] else scopes[-1])
        elif found[0] == "}":
            scopes.pop()
        elif binds:
            scopes[-1][name] = next(numbers)
        return f"{scopes[-1][name]}{binds}" if name in scopes[-1] else found[0]

    return re.sub(
        r"\{lambda|[{}]|(?<![\w.=-])(?<!= )(?P<name>(?!(?:nan|inf):)[a-z]+|_)\b(?P<binds>:(?=[a-z]\w*[\[<])|)",
        number,
        text,
    )


def expanded(text: str) -> str:
    """A jaxpr with inner jaxprs in the place of the names under which they are shown once."""
    *shared, main = re.split(r"(?<= in)\n(?=let |\{)", text)
    bodies = dict(re.fullmatch(r"let (\w+) = (.*) in", block, re.S).groups() for block in shared)
    # After `jaxpr=` or in a list of branches; after `= ` follows a primitive, and after `name=` a name. A body may have
    # the name `lambda`.
    name = re.compile(rf"(?<=[(\s=])(?<!\bname=)(?<!= )(?<!\{{ )({'|'.join(bodies)})(?=[\s)\]])")

    def full(part: str) -> str:
        return name.sub(lambda found: full(bodies[found[1]]), part) if bodies else part

    return full(main)


LEFT = {reason: f"ours returned .* theirs raised .*({words})" for reason, words in LEFT_BY_JAX.items()}
# jax keeps the tangent of a boolean result that `linearize` returns as a result of the backward rule.
LEFT["a tangent of float0 is computed"] = r"other jaxprs.*--- not .*:float0\[[\d,]*\] (\w+:\S+ )*= custom_lin"
COMPARISON = Comparison(generator.generate, check, LEFT)


def blocks() -> list:
    full = pytest.mark.full
    return [pytest.param(i, marks=() if i < SMALL_RUN else full) for i in range(FULL_RUN)]


@pytest.mark.parametrize("block", blocks())
def test_programs_of_fixed_seeds_are_those_of_jax(block):
    seeds = range(BLOCK * block, BLOCK * (block + 1))
    known = COMPARISON.run(seeds)
    if block < SMALL_RUN:
        assert known == {seed: how for seed, how in KNOWN.items() if seed in seeds}
    else:
        assert len(known) <= SELDOM, known


@pytest.mark.parametrize("block", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(1, FULL_RUN))])
def test_new_programs_are_those_of_jax(block):
    day = random.Random(f"{os.environ['MINIJAX_TEST_SEED']}:{block}")
    known = COMPARISON.run([day.randrange(10**9) for _ in range(BLOCK)])
    assert len(known) <= SELDOM, known


def test_programs_that_once_differed_are_those_of_jax():
    assert not COMPARISON.run(KEPT)


def test_a_program_is_the_same_again():
    assert [str(generator.generate(seed)) for seed in range(5)] == [str(generator.generate(seed)) for seed in range(5)]


def test_a_planted_difference_is_found_and_shrunk(monkeypatch):
    program = next(p for p in map(generator.generate, range(1000)) if "jnp.flip(" in p.source and not p.transforms)
    assert not COMPARISON.mismatch(program)
    monkeypatch.setattr(minijax.numpy, "flip", lambda x, axis=None: x * 1, raising=False)
    small = shrink.shrunk(program, COMPARISON.mismatch)
    assert "jnp.flip(" in small.source and COMPARISON.mismatch(small)
    assert len(small.source.splitlines()) <= 4
