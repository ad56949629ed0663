"""What programs of libraries ask of jax's names, found by running their documents on both sides."""

import typing

import compare
import pytest

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ["ArrayLike", "DTypeLike"])
def test_types_of_arguments_are_unions(name):
    def program(jax):
        union = getattr(jax.typing, name)
        return typing.get_origin(union) is typing.Union, [t.__name__ for t in typing.get_args(union)][1:]

    compare.same(program)
