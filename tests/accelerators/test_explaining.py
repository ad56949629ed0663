"""`explain` with the compilers of accelerators: the four columns, memory, and whether the program fits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.accelerator

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {"v5e": "tpu:v5e:2x2", "h100": "cuda:h100"}


def main(target: str, file: str) -> None:
    """Explains a training step for a target, and writes its page."""
    import minijax as jax
    import minijax.numpy as jnp

    def loss(w, x):
        h = jnp.tanh(x @ w)
        return jnp.sum(jax.nn.softmax(h) * x)

    x = jnp.ones((64, 256))
    program = jax.explain(jax.grad(loss), jnp.ones((256, 256)), x, target=target)
    program.save(file)
    assert program.fits, program.error
    assert (
        program.fusions and program.hlo[0].text.startswith("HloModule jit_loss") and program.memory.peak > 256 * 256 * 4
    )
    print(program.device)

    def huge(x):
        return jnp.sin(x) @ jnp.cos(x)

    large = jax.ShapeDtypeStruct((1 << 18, 1 << 18), jnp.float32)
    assert not jax.explain(huge, large, target=target).fits


@pytest.mark.parametrize("machine", TARGETS)
def test_a_page_for_a_device_that_is_not_attached(machine, tmp_path):
    variable = {"v5e": "MINIJAX_TPU_PACKAGES", "h100": "MINIJAX_CUDA_PACKAGES"}[machine]
    folder = os.environ.get(variable)
    if folder is None:
        pytest.skip("the compiler is not installed")
    paths = filter(None, [str(ROOT), folder])
    environment = os.environ | dict(PYTHONPATH=os.pathsep.join(paths), JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1")
    command = [sys.executable, __file__, TARGETS[machine], str(tmp_path / "page.html")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert {"v5e": "TPU", "h100": "H100"}[machine] in ran.stdout
    page = (tmp_path / "page.html").read_text()
    assert "h = jnp.tanh(x @ w)" in page and "stablehlo.tanh" in page and "Memory over time" in page


if __name__ == "__main__":
    main(*sys.argv[1:])
