"""The public names of Pallas: jax's, with its parameters; those that are absent say so."""

import importlib
import inspect

import pytest

MODULES = ("pallas", "pallas.triton", "pallas.tpu", "pallas.tpu_sc", "pallas.fuser")
OPS = """
gpu.attention gpu.decode_attention gpu.layer_norm gpu.paged_attention gpu.rms_norm gpu.softmax tpu.all_gather
tpu.example_kernel tpu.flash_attention tpu.matmul tpu.megablox.common tpu.megablox.gmm tpu.megablox.ops tpu.paged_attention.paged_attention_kernel
tpu.paged_attention.quantization_utils tpu.paged_attention.util tpu.ragged_paged_attention
tpu.ragged_paged_attention.kernel tpu.random.philox tpu.random.prng_utils tpu.random.threefry tpu.splash_attention
tpu.splash_attention.splash_attention_kernel tpu.splash_attention.splash_attention_mask
tpu.splash_attention.splash_attention_mask_info
""".split()
# Classes whose constructors users do not call, a protocol, options, and a default that is a function.
OWN = {
    "pallas.CompilerParams",
    "pallas.enable_debug_checks",
    "pallas.enable_poison_buffers",
    "pallas.kernel",  # its `body` is None by default
    "pallas.MemorySpace",
    "pallas.fuser.BlockIndexTransform",
    "pallas.tpu.MemorySpace",
}


def both(path):
    return importlib.import_module(f"minijax.experimental.{path}"), importlib.import_module(f"jax.experimental.{path}")


def absent(module):
    return set(module._FACE._missing)


def parameters(value):
    """The names, kinds and defaults of parameters; values of classes of each side as texts."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return [
        (
            p.name,
            p.kind,
            p.default
            if isinstance(p.default, (int, str, tuple, type(None)))
            else repr(p.default).replace("minijax", "jax"),
        )
        for p in signature.parameters.values()
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("path", MODULES)
def test_names_are_those_of_jax(path):
    ours, theirs = both(path)
    public = {name for name in dir(theirs) if not name.startswith("_") and not inspect.ismodule(getattr(theirs, name))}
    assert public - set(dir(ours)) == set()
    modules = {name for name in dir(ours) if inspect.ismodule(getattr(ours, name, None))}
    extra = {name for name in dir(ours) if not name.startswith("_")} - public - modules
    assert all(hasattr(theirs, name) for name in extra), extra  # deprecated names, which jax does not list


@pytest.mark.oracle
@pytest.mark.parametrize("path", MODULES)
def test_parameters_are_those_of_jax(path):
    ours, theirs = both(path)
    differ = {}
    for name in sorted(set(dir(ours)) - absent(ours)):
        if name.startswith("_") or name.endswith("_p") or f"{path}.{name}" in OWN or not hasattr(theirs, name):
            continue
        mine, other = getattr(ours, name), getattr(theirs, name)
        if inspect.ismodule(other) or not callable(other):
            continue
        if parameters(mine) != parameters(other):
            differ[name] = parameters(mine), parameters(other)
    assert differ == {}


@pytest.mark.oracle
@pytest.mark.parametrize("path", OPS)
def test_kernels_for_users_have_jaxs_names_and_parameters(path):
    ours, theirs = both(f"pallas.ops.{path}")
    names = [name for name in dir(ours) if not name.startswith("_") and not inspect.ismodule(getattr(ours, name))]
    assert [name for name in names if not hasattr(theirs, name)] == []
    pairs = {name: (getattr(ours, name), getattr(theirs, name)) for name in sorted(set(names) - absent(ours))}
    differ = {}
    for name, (mine, other) in pairs.items():
        if parameters(mine) != parameters(other):
            differ[name] = parameters(mine), parameters(other)
    assert differ == {}


@pytest.mark.parametrize("path", [*MODULES, "pallas.mosaic_gpu", "pallas.tpu_sc"])
def test_absent_names_say_so(path):
    module = importlib.import_module(f"minijax.experimental.{path}")
    for name in absent(module):
        with pytest.raises(NotImplementedError, match=f"jax.experimental.{path}.{name} is not there"):
            getattr(module, name)()
