"""What a process says of itself."""

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
def test_live_arrays_of_no_backend_raise_what_they_raise_in_jax(platform):
    same_error(lambda: ours().live_arrays(platform), lambda: theirs().live_arrays(platform))
