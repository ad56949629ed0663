"""What `jit(f).lower` takes for the function's own arguments, and what cannot be lowered."""

import compare
import numpy as np
import pytest


def test_every_keyword_of_lower_is_an_argument_of_the_function():
    def program(jax):
        f = jax.jit(lambda x, **others: x * sum(others.values()))
        return str(f.lower(np.ones(3, np.float32), lowering_platforms=2.0, platforms=1.0).out_info)

    compare.same(program)


def test_the_platforms_of_a_trace_are_no_arguments_of_lower():
    compare.same_refusal(lambda jax: lambda: jax.jit(abs).lower(1.0, lowering_platforms=("tpu",)))


@pytest.mark.parametrize("transform", ["fft", "ifft", "rfft", "fft2"])
def test_a_fourier_transform_of_a_symbolic_size_cannot_be_lowered(transform):
    def program(jax, jnp, export):
        size = export.symbolic_shape("b, b")
        f = jax.jit(getattr(jnp.fft, transform))
        return lambda: export.export(f)(jax.ShapeDtypeStruct(size, np.float32))

    compare.same_refusal(program, ["Shape polymorphism for FFT"])
