"""The language of the cases over meshes (tests/support/mesh_language.py): what it finds, and how it names a case."""

import itertools
from functools import partial

import mesh_language
import pytest
import recorded
from compare import Mismatch
from mesh_language import same, same_errors


@pytest.fixture(autouse=True)
def ours_on_both_sides(monkeypatch):
    """Planted differences need no jax."""
    monkeypatch.setattr(mesh_language, "theirs", mesh_language.ours)
    monkeypatch.setattr(mesh_language, "entry_of", lambda *question, says: recorded.Entry())


def unequal():
    """A value that is another on each side."""
    values = itertools.count()
    return lambda s: next(values)


def test_a_failing_case_is_named_by_its_file_line_and_text():
    with pytest.raises(Mismatch, match=r"1 differ\ntest_mesh_language.py:\d+: s.jnp.ones\(2\) \* s.number"):
        same([lambda s: s.jnp.ones(2), lambda s: s.jnp.ones(2) * s.number], number=unequal())


def test_a_failing_case_of_a_function_is_named_by_its_arguments():
    def scaled(program, number, s):
        return program(s, getattr(s, number))

    with pytest.raises(Mismatch, match=r"test_mesh_language.py:\d+: s.jnp.ones\(2\) \* a with scaled, \['number'\]"):
        same([partial(scaled, lambda s, a: s.jnp.ones(2) * a, "number")], number=unequal())


def test_a_case_that_raises_on_our_side_alone_differs():
    with pytest.raises(Mismatch, match="ZeroDivisionError"):
        same([lambda s: 1 // s.number], number=unequal())


def test_values_that_a_table_gives_are_made_before_the_case_is_traced():
    same([lambda s: (s.jaxpr(lambda x: x + s.number, 1.0), is_concrete(s))], number=lambda s: s.jnp.arange(2) * 3)
    s = mesh_language.side("minijax")
    traced = mesh_language._worth(
        s, lambda s: s.jaxpr(lambda x: x + s.number, 1.0), {"number": lambda s: s.jnp.ones(2) * 3}
    )
    assert "mul" not in traced


def is_concrete(s):
    """Reads a value that only this function names."""
    return s.number.tolist()


def test_errors_must_have_the_phrase_and_misspelt_cases_are_no_errors():
    same_errors([(lambda s: s.jnp.ones(2) + s.jnp.ones(3), "add got incompatible shapes")])
    with pytest.raises(Mismatch, match="test_mesh_language.py"):
        same_errors([(lambda s: s.jnp.ones(2) + s.jnp.ones(3), "another phrase")])
    with pytest.raises(Mismatch, match="no side has"):
        same_errors([(lambda s: s.matrxi + 1, "")])
    with pytest.raises(Mismatch, match="1 differ"):
        same_errors([(lambda s: s.jnp.ones(2), "")])


def test_lines_of_text_are_cases_too():
    same("jnp.ones(2) + 1\ntypes(jnp.sin, v)")
    with pytest.raises(Mismatch, match=r"1 differ\nnumber \+ 1"):
        same("jnp.ones(2)\nnumber + 1", number=unequal())
