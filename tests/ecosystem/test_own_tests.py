"""Tests that libraries bring in their packages, some seconds of them, pass on minijax as on jax."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from ecosystem.own_tests import Side, only_on_ours

FILES = {
    "optax": "_src/base_test.py _src/combine_test.py",
    "chex": "_src/dataclass_test.py _src/asserts_internal_test.py",
}


@pytest.mark.oracle
@pytest.mark.parametrize("library", FILES)
def test_the_same_cases_pass(library, tmp_path):
    spec = importlib.util.find_spec(library)
    if spec is None:
        pytest.skip(f"{library} is not installed")
    place = Path(spec.origin).parent
    files = [str(place / name) for name in FILES[library].split()]
    sides = [Side(name, tmp_path, sys.executable) for name in ("jax", "minijax")]
    theirs, ours = (
        side.outcomes(["-c", os.devnull, f"--rootdir={place.parent}", *files], place.parent, place.parent)
        for side in sides
    )
    assert "passed" in theirs.values()
    assert only_on_ours(theirs, ours) == []
