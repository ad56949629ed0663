"""Numbers that an integer dtype cannot hold, and what speaks of axes that operands do not have."""

import warnings

import numpy as np
import pytest
from compare import ended, same

NUMBERS = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "1e30": 1e30,
    "-1e30": -1e30,
    "3.7": 3.7,
    "300.0": 300.0,
    "-1.5": -1.5,
    "complex(float('nan'), 0)": complex(float("nan"), 0),
    "complex(float('inf'), 1)": complex(float("inf"), 1),
    "2 + 0j": 2 + 0j,
    "np.float64('nan')": np.float64("nan"),
    "np.float32('nan')": np.float32("nan"),
}
FORMS = {
    "convert": lambda jax, jnp, x, dtype: jax.lax.convert_element_type(x, dtype),
    "full": lambda jax, jnp, x, dtype: jax.lax.full((), x, dtype),
    "full_like": lambda jax, jnp, x, dtype: jnp.full_like(jnp.zeros(2, dtype), x),
    "full of numpy": lambda jax, jnp, x, dtype: jnp.full((2,), x, dtype),
}


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "int4"])
@pytest.mark.parametrize("number", NUMBERS)
def test_the_nearest_integer_is_taken_as_by_xla(number, dtype):
    def program(jax, jnp):
        x = NUMBERS[number]

        def outcome(form):
            try:
                return form(jax, jnp, x, dtype)
            except TypeError:
                return "TypeError"

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [outcome(form) for form in FORMS.values()]

    same(program)


CONVOLUTIONS = {
    "an axis more": ((1, 1, 1, 28), (1, 1, 2), (1,), (0, 1, 2)),
    "an axis more of the kernel": ((1, 1, 28), (1, 1, 2, 2), (1,), (0, 1, 2)),
    "numbers of more axes": ((1, 1, 28), (1, 1, 2), (1,), (0, 1, 2, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_of_other_ranks_are_refused(name):
    lhs, rhs, strides, spec = CONVOLUTIONS[name]

    def program(jax, jnp):
        numbers = jax.lax.ConvDimensionNumbers(spec, spec, spec)

        def call():
            return jax.lax.conv_general_dilated(jnp.ones(lhs), jnp.ones(rhs), strides, ((0, 0),), (1,), (1,), numbers)

        return ended(call).split("[")[0]

    same(program)


def test_a_symbolic_shape_as_a_value():
    def program(jax, jnp, export):
        f = jax.jit(lambda x: jax.lax.shape_as_value(x.shape))
        exported = export.export(f)(jax.ShapeDtypeStruct(export.symbolic_shape("a, 3"), jnp.float32))
        return str(exported.out_avals), exported.call(jnp.ones((2, 3)))

    same(program)


def test_equal_numbers_of_two_types_are_converted_apart():
    numbers = (-1, -1.0, -3.0, -3, 2, 2.0, 2.5, True, -0.0, 0, 0.0)

    def program(lax):
        return [lax.convert_element_type(x, d) for x in numbers for d in ("uint8", "int8", "float32", "bool")]

    for _ in range(2):
        same(program)
