"""`minijax.devices_of`: the devices of machines that need not be attached."""

import importlib.util

import pytest

import minijax
from minijax.run.clients.machines import GPUS


@pytest.mark.parametrize("machine", ["", "tpu", "tpu:", "cuda:", "rocm:mi300:1", None, 8])
def test_texts_that_name_no_machine_are_refused(machine):
    with pytest.raises(ValueError, match=r'machine must be of the form "tpu:v5e:4x4".*got'):
        minijax.devices_of(machine)


@pytest.mark.parametrize("count", ["x", "0", "-1", "1x", "1x1x1x8", "2.0", " "])
def test_counts_of_gpus_are_checked(count):
    with pytest.raises(ValueError, match="hosts × GPUs of a host"):
        minijax.devices_of(f"cuda:h100:{count}")


def test_gpus_are_checked():
    with pytest.raises(ValueError, match="must name one of the GPUs a100, .*t4; got 'cuda:i860:2'"):
        minijax.devices_of("cuda:i860:2")
    with pytest.raises(ValueError, match="more than 8 GPUs must be hosts of 8; got 'cuda:h100:12'"):
        minijax.devices_of("cuda:h100:12")


@pytest.mark.parametrize(("machine", "module"), [("tpu:v5e:4x4", "libtpu"), ("cuda:h100:8", "jax_plugins")])
def test_without_a_plugin_it_says_so(machine, module):
    if importlib.util.find_spec(module):
        pytest.skip("the plugin is installed")
    with pytest.raises(
        RuntimeError, match=machine.split(":")[0].upper() if module == "libtpu" else "jax-cuda13-plugin"
    ):
        minijax.devices_of(machine)


def test_descriptions_of_gpus_hold_their_figures():
    text = GPUS["a100"].target_config()
    for line in (
        "shared_memory_per_core: 167936", "shared_memory_per_block_optin: 166912", "core_count: 108",
        "memory_bandwidth: 2039040000000", "l2_cache_size: 41943040", "cuda_compute_capability { major: 8 minor: 0 }",
    ):  # fmt: skip
        assert f"  {line}\n" in text
    assert "shared_memory_per_block_optin: 65536" in GPUS["t4"].target_config()
