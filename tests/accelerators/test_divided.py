"""Attention by cuDNN and products of narrow floats, as the compiler of NVIDIA's GPUs divides them over four."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.accelerator
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Prints the lines of the optimized HLO with the types of parameters, and those that call cuDNN or communicate."""
    import numpy as np

    import minijax as jax
    import minijax.numpy as jnp

    mesh = jax.sharding.Mesh(np.array(jax.devices_of("cuda:h100:4")).reshape(2, 2), ("data", "model"))

    def loss(query, key, value, bias):
        encoded = jax.nn.dot_product_attention(query, key, value, bias, is_causal=True, implementation="cudnn")
        return encoded.astype(jnp.float32).sum()

    def described(shape, *spec, dtype="bfloat16"):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=jax.NamedSharding(mesh, jax.P(*spec)))

    def show(f, *operands):
        text = jax.jit(f).lower(*operands).compile().as_text()
        print("PROGRAM", *re.findall(r".*(?:ENTRY|__cudnn|all-reduce-start\(|all-gather).*", text), sep="\n")

    queries, keys = described((4, 128, 8, 64), "data", None, "model"), described((4, 128, 2, 64), "data", None, "model")
    for bias in described((1, 8, 128, 128), None, "model"), described((4, 1, 128, 128), "data"):
        show(jax.grad(loss, (0, 1, 2, 3)), queries, keys, keys, bias)
    for left, right in (("data",), ("data", "model")), ((None, "data", "model"), (None, None, "model")):
        lhs, rhs = ((64, 256), left), ((128, 256), right)
        values = [described((2, *size), *spec, dtype="float8_e4m3fn") for size, spec in (lhs, rhs)]
        scales = [described((2, size[0], 8), *spec, dtype="float8_e8m0fnu") for size, spec in (lhs, rhs)]
        show(jax.nn.scaled_matmul, *values, *scales)


@pytest.fixture(scope="module")
def programs():
    folder = os.environ.get("MINIJAX_CUDA_PACKAGES")
    if folder is None:
        pytest.skip("the compiler is not installed")
    environment = os.environ | dict(PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), folder])), JAX_PLATFORMS="cpu")
    command = [sys.executable, __file__]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.split("PROGRAM")[1:]


def test_each_gpu_has_its_batch_elements_and_heads(programs):
    for program in programs[:2]:
        assert "all-gather" not in program
        forward, backward = re.findall(r"= \((.*?)\) custom-call\(", program)
        assert forward.startswith("bf16[2,4,128,64]{3,1,2,0}, f32[2,4,128]")
        assert backward.startswith("bf16[2,4,128,64]{3,1,2,0}, bf16[2,1,128,64]{3,1,2,0}, bf16[2,1,128,64]")
    # The cotangent of a bias is summed over the devices that share it.
    of_all, of_each = programs[:2]
    assert re.findall(r"= bf16\[1,4,128,128\].*all-reduce-start.*replica_groups=\{\{0,2\},\{1,3\}\}", of_all)
    assert re.findall(r"= bf16\[2,1,128,128\].*all-reduce-start.*replica_groups=\{\{0,1\},\{2,3\}\}", of_each)


def test_each_gpu_has_its_rows_and_columns_or_its_part_of_the_sum(programs):
    by_columns, by_parts = programs[2:]
    assert "all-" not in by_columns and "f8e8m0fnu[1,64,8]) -> f32[1,64,64]" in by_columns
    assert "f8e8m0fnu[2,128,4]) -> f32[2,32,128]" in by_parts and "all-gather" not in by_parts
    assert re.findall(r"= f32\[2,32,128\].*all-reduce-start.*replica_groups=\{\{0,1\},\{2,3\}\}", by_parts)


if __name__ == "__main__":
    main()
