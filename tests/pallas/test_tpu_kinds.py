"""`megablox.common`: the kind of the device, and the dtypes of products."""

import importlib

import pytest
from compare import both

KINDS = ("TPU v2", "TPU v3", "TPU v4", "TPU v5 lite", "TPU v5", "TPU v6 lite", "TPU7x", "cpu", "NVIDIA H100", "a TPU")


def common(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.pallas.ops.tpu.megablox.common")


def outcome(function, *args):
    try:
        return str(getattr(found := function(*args), "__name__", found))
    except Exception as error:
        return type(error).__name__


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_devices(kind, monkeypatch):
    class Device:
        device_kind, platform = kind, "tpu" if "TPU" in kind else "other"

    def asked(jax):
        module = common(jax)
        if jax.__name__ == "jax":
            monkeypatch.setattr(module.jax, "devices", lambda *_: [Device])
        else:
            monkeypatch.setattr("minijax.kernels.ops.tpu_kinds.devices", lambda *_: [Device])
        half = jax.numpy.ones(2, "bfloat16")
        functions = (module.is_tpu, module.tpu_kind, module.tpu_generation, module.supports_bfloat16_matmul)
        return [*map(outcome, functions), outcome(module.select_input_dtype, half, half)]

    ours, theirs = both(asked)
    assert ours == theirs


@pytest.mark.oracle
def test_dtypes_of_products():
    def asked(jax):
        jnp, module = jax.numpy, common(jax)
        given = (None, "float32", "x", 3, float, jnp.float16, jnp.float32, jnp.bfloat16, jnp.int8, jnp.dtype("float32"))
        pairs = [
            (jnp.ones(2, x), jnp.ones(2, y)) for x in ("bfloat16", "float32", "int8") for y in ("bfloat16", "int8")
        ]
        checks = [outcome(module.assert_is_supported_dtype, dtype) for dtype in given]
        return checks + [outcome(module.select_input_dtype, *pair) for pair in pairs]

    ours, theirs = both(asked)
    assert ours == theirs and "ValueError" in ours and "bfloat16" in ours
