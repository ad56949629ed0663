"""Typical mistakes are shown as jax shows them: the class, the user's line, at most two frames of the library.

And the message says what to do.
"""

import logging
import re
import warnings

import compare
import mistakes
import pytest

pytestmark = pytest.mark.oracle

PROGRAMS = mistakes.table()


@pytest.mark.parametrize("name", [name for name in PROGRAMS if compare.sampled(name, one_in=3)])
def test_a_mistake_is_shown_as_by_jax(name, monkeypatch):
    # Errors of callbacks, and warnings of donation and truncation, are also logged and printed to stderr.
    monkeypatch.setattr(logging.root, "disabled", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "donated" in name:  # jax's class for a donated array depends on whether the call was made before
            compare.ours().clear_caches()
            compare.theirs().clear_caches()
        theirs, ours = (mistakes.raised(package, name, PROGRAMS[name]) for package in ("jax", "minijax"))
    found = mistakes.differences(mistakes.shown(theirs, compare.theirs()), mistakes.shown(ours, compare.ours()))
    assert not list(found), str(ours)
    _check_advice(str(theirs), str(ours), PROGRAMS[name])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not compare.sampled(name, one_in=3)])
def test_the_message_of_a_mistake_says_what_to_do(name, monkeypatch):
    monkeypatch.setattr(logging.root, "disabled", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = mistakes.raised("minijax", name, PROGRAMS[name])
    _check_advice(None, str(ours), PROGRAMS[name])


def test_few_messages_are_written_elsewhere():
    elsewhere = [source for source in PROGRAMS.values() if mistakes.advice(source) is None]
    assert len(elsewhere) <= len(PROGRAMS) // 10


def _check_advice(theirs: str | None, ours: str, source: str) -> None:
    advice = mistakes.advice(source)
    if advice is not None:
        assert advice in ours
    elif theirs is not None and "program's own" not in source:
        # jax says no more; jaxlib's classes have other names.
        assert ours == re.sub(r"jaxlib\._jax\.", "", theirs)


@pytest.mark.full
@pytest.mark.slow
def test_mistakes_are_printed_under_the_alias_as_by_jax():
    shown = mistakes.shown_apart(PROGRAMS)
    found = {name: list(mistakes.differences(theirs, ours)) for name, theirs, ours, _ in shown}
    assert {name: rows for name, rows in found.items() if rows} == {}


def test_the_table_has_all_errors_of_jaxs_documentation():
    errors = compare.ours().errors
    kinds = {type(mistakes.raised("minijax", name, PROGRAMS[name])) for name in DOCUMENTED}
    assert kinds == {getattr(errors, name) for name in DOCUMENTED.values()}


DOCUMENTED = {
    "int of a traced value": "ConcretizationTypeError",
    "a key that is used twice": "KeyReuseError",
    "an error in a callback": "JaxRuntimeError",
    "a mask under jit": "NonConcreteBooleanIndexError",
    "np.array of a traced value": "TracerArrayConversionError",
    "if on a traced value": "TracerBoolConversionError",
    "list index of a traced value": "TracerIntegerConversionError",
    "a tracer that left scan": "UnexpectedTracerError",
}
