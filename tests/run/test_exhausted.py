"""Programs that need more memory than there is: the error tells what needed it, and nothing ends the process."""

import re

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.base.html import amount

SIZE = 1 << 21


def raised(call):
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"^RESOURCE_EXHAUSTED: Out of memory allocating \d+ bytes\.\n"
    ) as found:
        call()
    return str(found.value)


def test_the_largest_buffers_are_named_with_their_operation_and_line():
    x = jnp.ones(SIZE)
    text = raised(lambda: jax.jit(lambda x: (x[:, None] * x[None]).cumsum(0) * 2)(x))
    assert "The program jit__lambda needs 8 MiB for its arguments, 16 TiB for its results and" in text
    assert re.search(r"  16 TiB: f32\[2097152,2097152\] by jit\(<lambda>\)/\w+ at \S+test_exhausted.py:\d+\n", text)
    assert re.search(r"The largest arrays alive are .*float32\[2097152\] \(8 MiB\)", text)


@pytest.mark.parametrize("call", [lambda: jnp.ones((SIZE, SIZE)), lambda: jnp.ones(SIZE)[:, None] + jnp.ones(SIZE)])
def test_so_they_are_for_eager_operations(call):
    assert re.search(r"16 TiB: f32\[2097152,2097152\] by jit\(\w+\)/\w+ at \S+test_exhausted.py:\d+", raised(call))


READ = {
    "asarray": np.asarray, "float": float, "repr": repr, "tolist": lambda y: y.tolist(), "device_get": jax.device_get,
    "wait": lambda y: y.block_until_ready(),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_result_that_could_not_be_computed_raises_where_it_is_read(name):
    y = jax.jit(lambda x: ((x[:, None] * x[None]).cumsum(0) * 2).sort(1).max())(jnp.ones(SIZE))
    text = raised(lambda: READ[name](y))
    assert re.search(
        r"The program jit__lambda needs 8 MiB for its arguments, 4 bytes for its results and .* TiB for", text
    )
    assert re.search(r"\n  16 TiB: f32\[2097152,2097152\] by jit\(<lambda>\)/\w+ at \S+test_exhausted.py:\d+\n", text)


def test_a_program_can_be_called_with_less_after_it_failed():
    f = jax.jit(lambda x: (x[:, None] * x[None]) + 1)
    raised(lambda: f(jnp.ones(SIZE)))
    assert f(jnp.ones(3)).shape == (3, 3)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 3 << 29, 5 << 60])
def test_amounts_have_units(count):
    shown = amount(count)
    number, unit = shown.split()
    assert float(number) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit) == pytest.approx(
        count, rel=1e-3
    )
