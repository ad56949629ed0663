"""The program at the head of each transformation's module."""

import doctest
import importlib

import package
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import hijax

MODULES = [name for name in package.files() if name.startswith("minijax.transforms.")] + ["minijax.calls.bodied"]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_begins_with_the_smallest_program_that_needs_it(name):
    module = importlib.import_module(name)
    assert ">>> " in module.__doc__
    names = {**vars(module), "jax": jax, "jnp": jnp, "hijax": hijax}
    test = doctest.DocTestParser().get_doctest(module.__doc__, names, name, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert not report, "".join(report)
