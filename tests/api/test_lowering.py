"""What `jit(f).lower` takes for the function's own arguments, and what needs known sizes."""

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


@pytest.mark.parametrize("call", [list, iter, max, lambda x: [*x], lambda x: next(zip(x, x, strict=True))])
def test_an_array_of_a_symbolic_size_is_not_iterated(call):
    def program(jax, export):
        described = jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32)
        # Compared by name: the class in jax has a base of its own name.
        return compare.ended(
            lambda: jax.eval_shape(call, described), ["'b' used in a context that requires a constant"]
        )

    compare.same(program)


def test_a_mean_of_exponentials_is_taken_over_a_symbolic_size():
    def program(jax, nn, export):
        return str(jax.make_jaxpr(nn.logmeanexp)(jax.ShapeDtypeStruct(export.symbolic_shape("b, 2"), np.float32)))

    compare.same(program)
