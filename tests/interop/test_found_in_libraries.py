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


class Apart:
    """An object that no trace takes."""


def test_traces_of_users_get_the_parameters_of_jax_s_operations():
    """Rules of users have them as keywords: `def rule(x, *, accuracy)`."""

    def program(jax, jnp, extend):
        seen = []
        accurate = "exp log sin cos tan tanh logistic exp2 log1p expm1 sqrt rsqrt cbrt".split()

        class Shown(jax.core.Trace):
            def process_primitive(self, primitive, values, params):
                seen.append((primitive.name, {name: str(value) for name, value in params.items()}))
                return values[0]

        def run(call):
            with extend.core.set_current_trace(Shown()):
                try:
                    call()
                except Exception as error:
                    seen.append(type(error).__name__)

        for name in accurate:
            run(lambda name=name: getattr(jax.lax, name + "_p").bind(1.0, accuracy=None))
        run(lambda: jax.lax.mul(2.0, 3.0))
        run(lambda: jax.lax.add(2.0, 3.0))
        run(lambda: jax.lax.mul_p.bind(Apart(), 3.0))
        return seen

    compare.same(program)
