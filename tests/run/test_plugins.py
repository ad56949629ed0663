"""Accelerator plugins are found by their files, never imported, and a platform that fails leaves the CPU."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minijax.run.clients import plugins

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the import path, in which a plugin's modules raise when they are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(version):
        folder = tmp_path / "jax_plugins" / f"xla_cuda{version}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise RuntimeError('plugins are not to be imported')")
        (folder / "xla_cuda_plugin.so").touch()
        return folder

    return install


def test_no_plugin_is_installed_here():
    assert plugins.find_cuda() is None
    assert "cuda" not in plugins.discover()


def test_the_cuda_plugin_is_found_and_not_imported(site):
    folder = site(12)
    assert plugins.find_cuda() == (12, str(folder / "xla_cuda_plugin.so"))
    assert not [name for name in sys.modules if name.startswith("jax_plugins.")]


def test_the_newest_cuda_plugin_is_taken(site):
    site(12)
    newest = site(13)
    assert plugins.find_cuda() == (13, str(newest / "xla_cuda_plugin.so"))


def test_the_tpu_library_is_loaded_from_the_requested_path(monkeypatch):
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/nowhere/libtpu.so")
    assert plugins.find_tpu() == "/nowhere/libtpu.so"


def test_without_a_tpu_the_library_says_so_at_once(tmp_path):
    code = "import minijax as jax; print(jax.devices(), flush=True); jax.devices('tpu')"
    ran = _run(code, tmp_path, TPU_LIBRARY_PATH="/nowhere/libtpu.so", XLA_FLAGS="")
    assert ran.stdout == "[CpuDevice(id=0)]\n"
    assert "Backend 'tpu' failed to initialize: NOT_FOUND: TPU initialization failed: No jellyfish device" in ran.stderr


def test_a_gpu_without_a_plugin_is_reported(monkeypatch, caplog):
    exists = os.path.exists
    monkeypatch.setattr(plugins.os.path, "exists", lambda p: p == "/dev/nvidiactl" or exists(p))
    monkeypatch.setattr(plugins.config.platforms, "default", None)
    with caplog.at_level(logging.WARNING):
        plugins.discover()
    assert "An NVIDIA GPU may be present on this machine" in caplog.text


def _run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if k != "JAX_PLATFORMS"} | environment
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(folder)])
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)


def test_a_plugin_that_does_not_start_leaves_the_cpu(site):
    folder = site(13).parents[1]
    ran = _run("import minijax as jax; print(jax.default_backend(), jax.numpy.ones(2))", folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "cpu [1. 1.]\n"


def test_a_requested_platform_that_does_not_start_raises(site):
    folder = site(13).parents[1]
    ran = _run("import minijax as jax; jax.devices()", folder, JAX_PLATFORMS="cuda")
    assert ran.returncode == 1
    assert "Unable to initialize backend 'cuda'" in ran.stderr


def test_the_count_of_cpu_devices_is_an_option_and_a_flag(tmp_path):
    code = "import minijax as jax; {}print(jax.device_count())"
    update = "jax.config.update('jax_num_cpu_devices', 3); "
    assert _run(code.format(update), tmp_path, XLA_FLAGS="").stdout == "3\n"
    flags = "--xla_force_host_platform_device_count=5"
    assert _run(code.format(""), tmp_path, XLA_FLAGS=flags).stdout == "5\n"
    assert _run(code.format(update), tmp_path, XLA_FLAGS=flags).stdout == "3\n"
    late = _run("import minijax as jax; jax.devices(); " + update, tmp_path, XLA_FLAGS="")
    assert "should be updated before backends are initialized" in late.stderr
