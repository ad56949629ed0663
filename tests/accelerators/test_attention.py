"""Attention by cuDNN, as the compiler of NVIDIA's GPUs divides it over four of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.accelerator
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Prints the lines of the optimized HLO that call cuDNN or communicate."""
    import numpy as np

    import minijax as jax
    import minijax.numpy as jnp

    mesh = jax.sharding.Mesh(np.array(jax.devices_of("cuda:h100:4")).reshape(2, 2), ("data", "model"))

    def loss(query, key, value, bias):
        encoded = jax.nn.dot_product_attention(query, key, value, bias, is_causal=True, implementation="cudnn")
        return encoded.astype(jnp.float32).sum()

    def described(shape, *spec):
        sharding = jax.NamedSharding(mesh, jax.P(*spec))
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=sharding)

    queries, keys = described((4, 128, 8, 64), "data", None, "model"), described((4, 128, 2, 64), "data", None, "model")
    for bias in described((1, 8, 128, 128), None, "model"), described((4, 1, 128, 128), "data"):
        text = jax.jit(jax.grad(loss, (0, 1, 2, 3))).lower(queries, keys, keys, bias).compile().as_text()
        print("PROGRAM", *re.findall(r".*(?:__cudnn|all-reduce-start\(|all-gather).*", text), sep="\n")


def test_each_gpu_has_its_batch_elements_and_heads():
    folder = os.environ.get("MINIJAX_CUDA_PACKAGES")
    if folder is None:
        pytest.skip("the compiler is not installed")
    environment = os.environ | dict(PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), folder])), JAX_PLATFORMS="cpu")
    command = [sys.executable, __file__]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    _, of_all, of_each = ran.stdout.split("PROGRAM")
    for program in (of_all, of_each):
        assert "all-gather" not in program
        forward, backward = re.findall(r"= \((.*?)\) custom-call\(", program)
        assert forward.startswith("bf16[2,4,128,64]{3,1,2,0}, f32[2,4,128]")
        assert backward.startswith("bf16[2,4,128,64]{3,1,2,0}, bf16[2,1,128,64]{3,1,2,0}, bf16[2,1,128,64]")
    # The cotangent of a bias is summed over the devices that share it.
    assert re.findall(r"= bf16\[1,4,128,128\].*all-reduce-start.*replica_groups=\{\{0,2\},\{1,3\}\}", of_all)
    assert re.findall(r"= bf16\[2,1,128,128\].*all-reduce-start.*replica_groups=\{\{0,1\},\{2,3\}\}", of_each)


if __name__ == "__main__":
    main()
