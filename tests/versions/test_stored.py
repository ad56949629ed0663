"""A small table of programs gives what jax 0.10.2 gave, on whatever jaxlib, NumPy and Python are installed."""

import json

import pytest
from versions import stored

import minijax

KNOWN = json.loads(stored.FILE.read_text())
TOLERANCE = 3e-6  # relative to the largest of its array: jaxlib's versions differ in last bits


@pytest.fixture(scope="module")
def names():
    return stored.side(minijax)


def agree(ours, theirs):
    """Equal types and texts, numbers within the tolerance, exceptions of jax's class or of one derived from it."""
    if isinstance(theirs, dict) and "raises" in theirs:
        return isinstance(ours, dict) and theirs["raises"][0] in ours.get("raises", ())
    if isinstance(theirs, dict) and "value" in theirs:
        return {**ours, "value": 0} == {**theirs, "value": 0} and close(ours["value"], theirs["value"])
    if isinstance(theirs, list | dict):
        keys = range(len(theirs)) if isinstance(theirs, list) else theirs
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(agree(ours[k], theirs[k]) for k in keys)
    return ours == theirs or isinstance(theirs, float) and close([ours], [theirs])


def close(ours, theirs):
    ours, theirs = ([x for y in xs for x in (y if isinstance(y, list) else [y])] for xs in (ours, theirs))
    scale = max((abs(x) for x in theirs if isinstance(x, float)), default=0.0)
    return len(ours) == len(theirs) and all(
        a == b or isinstance(a, float) and isinstance(b, float) and abs(a - b) <= TOLERANCE * max(scale, 1e-6)
        for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.quick
@pytest.mark.parametrize("name", stored.TABLE)
def test_a_program_gives_the_stored_results_of_jax(name, names):
    assert agree(stored.outcome(minijax, names, stored.TABLE[name]), KNOWN["outcomes"][name])


@pytest.mark.oracle
def test_the_stored_outcomes_are_those_of_jax():
    import jax

    names = stored.side(jax)
    assert KNOWN["jax"] == jax.__version__ and list(KNOWN["outcomes"]) == list(stored.TABLE)
    wrong = [n for n, s in stored.TABLE.items() if not agree(stored.outcome(jax, names, s), KNOWN["outcomes"][n])]
    assert not wrong
