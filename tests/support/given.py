"""Calls of functions whose parameters name the values that they are given."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def given(function: Callable, values: Mapping[str, Any]) -> Any:
    """Calls a function with the values of its parameters' names."""
    return function(*[values[name] for name in inspect.signature(function).parameters])
