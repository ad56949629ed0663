"""Runs the examples of a docstring."""

import doctest

import numpy as np

import minijax as jax
import minijax.experimental.pallas as pl
import minijax.kernels
import minijax.numpy as jnp

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def check_examples(name: str, text: str) -> None:
    """Raises AssertionError with what an example prints, if it is not what the docstring shows."""
    names = {"jax": jax, "jnp": jnp, "np": np, "lax": jax.lax, "minijax": jax, "pl": pl, "pltpu": pl.tpu}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
    assert not report, "".join(report)
