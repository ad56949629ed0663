"""The report that a process prints about its environment."""

import gc

import numpy as np
import pytest
from compare import both, ours, same_error, theirs

import minijax


@pytest.mark.oracle
@pytest.mark.parametrize(
    "tool", ['#!/bin/sh\necho "No tool\xe9 $*"\necho\n', "#!/bin/sh\nexit 3\n", "no program", None]
)
def test_a_report_names_versions_devices_options_and_the_nvidia_tool(tool, tmp_path, monkeypatch, capsys):
    if tool:
        (tmp_path / "nvidia-smi").write_text(tool)
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("JAX_SOMETHING", "told")
    monkeypatch.setenv("OTHER", "not told")
    first, second = both(lambda jax: jax.print_environment_info(return_string=True))
    assert first == second.replace('local devices"', "local devices")
    assert "JAX_SOMETHING=told" in first and ("No tool" in first) == bool(tool and "No tool" in tool)
    assert minijax.print_environment_info() is None
    assert capsys.readouterr().out == first + "\n"


@pytest.mark.oracle
@pytest.mark.parametrize("platform", ["no such", 3])
def test_live_arrays_of_an_unknown_backend_raise_as_in_jax(platform):
    same_error(lambda: ours().live_arrays(platform), lambda: theirs().live_arrays(platform))


@pytest.mark.oracle
def test_live_arrays_are_those_of_the_user():
    def program(jax, jnp):
        def count():
            gc.collect()
            return len(jax.live_arrays())

        x = jnp.arange(3.0)
        before, seen = count(), []
        held = np.arange(100.0, dtype=np.float32)
        f = jax.jit(lambda x: x + held)
        works = [
            lambda: x * 2.75,
            lambda: x[1],
            lambda: x.at[1].set(3.75),
            lambda: jax.grad(lambda x: (x**2).sum())(x),
            lambda: f(1.0),
            lambda: jax.lax.scan(lambda c, a: (c + a, c), 0.0, x),
            lambda: jax.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0),
            lambda: jax.device_put(3.75),
            lambda: jnp.linspace(0, 1, 5),
            lambda: jnp.where(x > 0, x, 0.0),
        ]
        for work in works:
            work()
            seen.append(count() - before)
        y = x + 1
        seen.append(count() - before)
        return seen, any(np.array_equal(y, z) for z in jax.live_arrays() if z.shape == (3,))

    assert both(program) == (([0] * 10 + [1], True),) * 2
