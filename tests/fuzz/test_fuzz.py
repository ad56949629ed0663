"""Random programs on jax and minijax: the same types, values and errors in all, the same jaxprs in nearly all."""

import re
import secrets
from pathlib import Path

import compare
import jax
import pytest
from fuzz import generator, shrink

import minijax

pytestmark = pytest.mark.oracle

BLOCK, SMALL_RUN, FULL_RUN = 50, 4, 40
# A dead equation more or less, the order of what is captured or kept for the backward pass.
OTHER_JAXPRS = 0.1
# What jax cannot do: batch a clamp by bounds of other ranks; or, though there is nothing to do, differentiate what has no derivative, or a custom rule with
# results of integers, where a tangent of integers reaches it, or a tangent that a rule of its own has stopped;
# or reduce over a named axis in a backward pass that has left it.
LEFT_BY_JAX = re.compile(
    r"(?s)ours returned .* theirs raised .*("
    r"Transpose rule .* for 'stop_gradient' not|Differentiation rule for '(population_count|clz|custom_lin)' not"
    r"|Found an unbound axis name|clamp requires max.shape|can't apply forward-mode autodiff \(jvp\) to a custom_vjp|Custom JVP rule must produce .* but got float0)"
)
KEPT = [int(seed) for seed in Path(__file__).with_name("seeds.txt").read_text().split()]


def check(program: generator.Program) -> str:
    """Requires equal types, and equal texts or values, or equal errors; says where the jaxprs differ."""
    with minijax.enable_x64(program.x64), jax.enable_x64(program.x64):
        case = program.case()
        difference = "" if program.leaves_calls else jaxpr_difference(case)
        compare.check(case, jaxpr=False)
        return difference


def jaxpr_difference(case: compare.Case) -> str:
    """Where the jaxprs differ, up to names of variables and to which inner jaxprs are shown once."""
    sides = compare.ours(), compare.theirs()
    found = [
        compare.outcome(lambda side=side: compare.jaxpr_text(side, compare.run_on(side, case.program), case.args))
        for side in sides
    ]
    for result in found:
        if result.error and "JaxprTypeError" in type(result.error).__name__:
            raise compare.Mismatch(f"raising: {result.error}")
    if any(result.error for result in found):
        return ""
    texts = [result.value for result in found]
    return "" if structure(texts[0]) == structure(texts[1]) else "\n--- not \n".join(texts)


def structure(text: str) -> str:
    """A jaxpr in full on one line, its variables numbered in the order in which they are bound."""
    text = re.sub(r"(?<=[\[({])\s+|\s+(?=[\])}])", "", re.sub(r"\s+", " ", expanded(text)))
    numbers: dict[str, int] = {}
    count = iter(range(text.count(":") + 1))

    def number(found: re.Match) -> str:
        name, binds = found.groups()
        if binds:
            numbers[name] = next(count)
        return f"{numbers[name]}{binds}" if name in numbers else found[0]

    return re.sub(r"(?<![\w.=-])([a-z]+|_)\b(:(?=[a-z]\w*[\[<])|)", number, text)


def expanded(text: str) -> str:
    """A jaxpr with those that it shows once, under a name, in their places."""
    *shared, main = re.split(r"\n(?=let |\{)", text)
    main = re.sub(r"\((\w+(?: \w+)*)\)", lambda m: "(=" + m[1].replace(" ", " =") + ")", main)
    for block in reversed(shared):
        name, body = re.fullmatch(r"let (\w+) = (.*) in", block, re.S).groups()
        main = re.sub(rf"(?<!\bname)={name}\b", lambda _, body=body: f"={body}", main)
    return main


def mismatch(program: generator.Program) -> str:
    """How the two differ, empty if they do not."""
    try:
        check(program)
    except compare.Mismatch as difference:
        return "" if LEFT_BY_JAX.search(str(difference)) else str(difference)
    return ""


def run(seeds: list[int]) -> None:
    """Requires that the programs agree; shows the smallest form of each that does not, with its seed."""
    failures, differing = [], []
    for seed in seeds:
        program = generator.generate(seed)
        try:
            differing += [seed] if check(program) else []
        except compare.Mismatch:
            if mismatch(program):
                small = shrink.shrunk(program, mismatch)
                failures.append(f"{small}\n{mismatch(small)}")
    assert not failures, "\n\n".join([f"{len(failures)} of {len(seeds)} programs differ", *failures])
    assert len(differing) <= OTHER_JAXPRS * len(seeds) + 1, f"other jaxprs for the seeds {differing}"


def blocks() -> list:
    full = pytest.mark.full
    return [pytest.param(i, marks=() if i < SMALL_RUN else full) for i in range(FULL_RUN)]


@pytest.mark.parametrize("block", blocks())
def test_programs_of_fixed_seeds_are_those_of_jax(block):
    run(list(range(BLOCK * block, BLOCK * (block + 1))))


@pytest.mark.parametrize("block", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(1, FULL_RUN))])
def test_new_programs_are_those_of_jax(block):
    run([secrets.randbelow(10**9) for _ in range(BLOCK)])


def test_programs_that_once_differed_are_those_of_jax():
    run(KEPT)


def test_a_program_is_the_same_again():
    assert [str(generator.generate(seed)) for seed in range(5)] == [str(generator.generate(seed)) for seed in range(5)]


def test_a_planted_difference_is_found_and_shrunk(monkeypatch):
    program = next(p for p in map(generator.generate, range(1000)) if "jnp.flip(" in p.source and not p.transforms)
    assert not mismatch(program)
    monkeypatch.setattr(minijax.numpy, "flip", lambda x, axis=None: x * 1, raising=False)
    small = shrink.shrunk(program, mismatch)
    assert "jnp.flip(" in small.source and mismatch(small)
    assert len(small.source.splitlines()) <= 4
