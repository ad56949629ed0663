"""`minijax doctor`, in processes with settings that are in order and others that are not."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from minijax.explaining import doctor

ROOT = Path(__file__).resolve().parents[2]


def run(tmp_path, **settings):
    """The status and the output of the command."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX", "XLA", "MINIJAX"))}
    environment = {**kept, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache"), **settings}
    command = [sys.executable, "-m", "minijax", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment, cwd=tmp_path)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout


def test_nothing_is_wrong(tmp_path):
    status, text = run(tmp_path, JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="2")
    assert status == 0, text
    assert text.endswith("Nothing is wrong.\n")
    assert "cpu (default): 2 x cpu" in text and "option       jax_num_cpu_devices = 2" in text
    assert "variable     JAX_NUM_CPU_DEVICES=2" in text and "cache/minijax: not made yet" in text
    assert "import jax   " in text


def test_a_platform_without_a_plugin(tmp_path):
    status, text = run(tmp_path, JAX_PLATFORMS="cuda")
    if "cuda: none is installed" not in text:
        pytest.skip("a plugin is installed")
    assert status == 1 and "Unable to initialize backend 'cuda'" in text and "jax-cuda13-plugin" in text


def test_options_that_do_not_exist_or_have_bad_values(tmp_path):
    status, text = run(tmp_path, JAX_PLATFORMS="cpu", JAX_ENABLE_X46="1", JAX_ENABLE_X64="maybe", JAX_LOGGING_LEVEL="x")
    assert status == 1 and "3 problems:" in text
    assert "unset JAX_ENABLE_X46; export JAX_ENABLE_X64=1" in text
    assert "JAX_ENABLE_X64=maybe: invalid truth value" in text and "unset JAX_ENABLE_X64\n" in text
    assert "unset JAX_LOGGING_LEVEL" in text
    assert "cpu (default)" in text


def test_a_cache_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    status, text = run(tmp_path, JAX_PLATFORMS="cpu", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "file" / "inner"))
    assert status == 1 and "cannot be made in" in text
    status, text = run(tmp_path, JAX_PLATFORMS="cpu", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "file"))
    assert status == 1 and "is a file" in text and "export JAX_COMPILATION_CACHE_DIR=FOLDER" in text


def test_files_of_the_cache_that_others_may_write(tmp_path):
    folder = tmp_path / "cache" / "minijax"
    folder.mkdir(parents=True)
    for name, mode in (("a-minijax", 0o600), ("b-minijax", 0o666)):
        (folder / name).write_bytes(b"1234")
        (folder / name).chmod(mode)
    status, text = run(tmp_path, JAX_PLATFORMS="cpu")
    assert status == 1 and "2 programs, 0.0 MB" in text and "1 programs in" in text


def test_the_hit_rate_of_the_cache(tmp_path):
    program = "import minijax; minijax.jit(lambda x: minijax.numpy.sin(x) * 2)(1.0)"
    settings = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    settings |= {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "true"}
    for _ in range(3):
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, **settings})
    text = run(tmp_path, JAX_PLATFORMS="cpu")[1]
    assert "1 programs," in text and "hit rate 67% (2 loaded, 1 stored, by 3 processes)" in text


def test_no_cache(tmp_path):
    status, text = run(tmp_path, JAX_PLATFORMS="cpu", JAX_ENABLE_COMPILATION_CACHE="0")
    assert status == 0 and "cache        none" in text


def test_a_broken_plugin_is_a_finding(tmp_path):
    plugin = tmp_path / "site" / "jax_plugins" / "xla_cuda13"
    plugin.mkdir(parents=True)
    (plugin / "xla_cuda_plugin.so").write_text("no library")
    status, text = run(tmp_path, PYTHONPATH=os.pathsep.join([str(tmp_path / "site"), str(ROOT)]))
    assert status == 1 and "xla_cuda_plugin.so" in text


def test_versions(monkeypatch):
    def problems(**versions):
        monkeypatch.setattr(doctor, "_version", versions.get)
        report = doctor.Report()
        doctor._versions(report)
        return str(report)

    fine = dict(jaxlib="0.10.2", numpy="2.0.0", ml_dtypes="0.5.1")
    assert "Nothing is wrong." in problems(**fine)
    assert "0.9.9 (not tested" in problems(**fine | {"jaxlib": "0.9.9"})
    assert "jaxlib is missing" in problems(numpy="2.0.0", ml_dtypes="0.5.1")
    assert "pip install 'numpy>=2.0'" in problems(**fine | {"numpy": "1.26.4"})
    text = problems(**fine, **{"jax-cuda13-plugin": "0.11.0"})
    assert "does not load beside jaxlib 0.10.2" in text and "'jax-cuda13-plugin==0.10.2'" in text


def test_the_versions_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest, newest = doctor.JAXLIB
    least = [f"{name}>={version}" for name, version in doctor._LEAST.items()]
    assert project["dependencies"] == [f"jaxlib>={oldest},<={newest}", *least]
    assert project["requires-python"] == f">={'.'.join(map(str, doctor.OLDEST_PYTHON))}"


def test_a_program_named_doctor_runs_as_a_file(tmp_path):
    (tmp_path / "doctor").write_text("print('a program')")
    command = [sys.executable, "-m", "minijax", "./doctor"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd=tmp_path)
    assert done.stdout == "a program\n"
