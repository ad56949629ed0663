"""Exceptions: jax's names, bases and phrases; warnings at the user's line."""

import copy
import inspect
import pickle

import pytest

import minijax.errors as ours
from minijax.base import errors


class FakeTracer:
    def _error_repr(self):
        return "traced array with shape bool[3]"

    def _origin_msg(self):
        return "\nThe error occurred while tracing the function f at file.py:1 for jit."

    def __repr__(self):
        return "bool[3]"


RAISED = [
    (ours.ConcretizationTypeError, "Abstract tracer value encountered where concrete value is expected"),
    (ours.TracerBoolConversionError, "Attempted boolean conversion of traced array with shape bool[3]."),
    (ours.TracerArrayConversionError, "The numpy.ndarray conversion method __array__() was called on traced array"),
    (ours.TracerIntegerConversionError, "The __index__() method was called on traced array with shape bool[3]"),
    (ours.NonConcreteBooleanIndexError, "Array boolean indices must be concrete; got bool[3]"),
]


@pytest.mark.oracle
def test_public_exceptions_have_jaxs_names_bases_and_parameters():
    theirs = pytest.importorskip("jax").errors

    def public(module):
        return {n: c for n, c in vars(module).items() if inspect.isclass(c) and n in ours.__dict__}

    def bases(cls):
        return [c.__name__ for c in cls.__mro__ if not c.__name__.startswith("_")]

    assert public(ours).keys() == public(theirs).keys()
    for name, cls in public(ours).items():
        their = public(theirs)[name]
        assert bases(cls) == bases(their)
        if issubclass(cls, (ours.JAXTypeError, ours.JAXIndexError)):
            assert list(inspect.signature(cls).parameters) == list(inspect.signature(their).parameters)
    assert ours.JaxRuntimeError is theirs.JaxRuntimeError


@pytest.mark.parametrize("cls, phrase", RAISED, ids=[cls.__name__ for cls, _ in RAISED])
def test_tracer_errors_hold_the_phrases_and_survive_copies(cls, phrase):
    error = cls(FakeTracer())
    assert phrase in str(error) and f"jax.errors.{cls.__name__}" in str(error)
    assert "tracing the function f" in str(error) or cls is ours.NonConcreteBooleanIndexError
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is cls and str(twin) == str(error)


def test_a_context_stands_between_the_tracer_and_its_origin():
    text = str(ours.ConcretizationTypeError(FakeTracer(), "It arose in jnp.arange."))
    assert text.index("bool[3]") < text.index("It arose in jnp.arange.") < text.index("tracing the function f")


def test_warnings_point_at_the_line_of_the_user():
    with pytest.warns(DeprecationWarning, match="old") as caught:
        errors.warn("old", DeprecationWarning)
    assert caught[0].filename == __file__
