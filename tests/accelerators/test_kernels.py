"""The real compiler of NVIDIA's GPUs takes the modules of kernels.

No device is needed, but the compiler's packages: `.ci/accelerators` installs them and runs these tests.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.accelerator
FOLDER = Path(__file__).parent
# A process of its own: the plugin must not be seen by other tests, and a module that the compiler cannot handle ends it.
COMPILES = """
import sys
import minijax as jax
from minijax.experimental import topologies
import triton_kernels

target = open(sys.argv[1]).read()
device = topologies.get_topology_desc("", "cuda", target_config=target, topology="1x1x8").devices[0]
sharding = jax.sharding.SingleDeviceSharding(device)
names = triton_kernels.names_of("minijax")
for name, kernel in getattr(triton_kernels, sys.argv[2]).items():
    if kernel.platform == "cuda":
        types = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in kernel.ins]
        options = {} if types else {"out_shardings": sharding}
        try:
            jax.jit(kernel.call(names), **options).lower(*types).compile()
        except Exception as error:
            print(name, type(error).__name__, str(error)[:300])
"""
TABLES = "ELEMENTWISE CONVERSIONS SHAPES REDUCTIONS PRODUCTS REFERENCES GRIDS CONTROL TRITON KERNELS OWN".split()


@pytest.mark.parametrize("table", TABLES)
def test_kernels_compile(table):
    packages = os.environ.get("MINIJAX_CUDA_PACKAGES")
    if packages is None:
        pytest.skip("the compiler is not installed")
    support = FOLDER.parent / "support"
    paths = os.pathsep.join([str(FOLDER.parents[1]), str(support), packages])
    command = [sys.executable, "-c", COMPILES, str(FOLDER / "h100.txtpb"), table]
    environment = os.environ | {"PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr[-2000:]
