"""Compiles the kernels of tests/pallas for TPU v5e, those of SparseCores for TPU v6e, on one side, and writes what came of each as JSON lines.

    python tests/accelerators/kernels.py jax tests/accelerators/kernels.jsonl        # what the tests compare with
    python tests/accelerators/kernels.py minijax out.jsonl ["name" ...]

libtpu must be installed, and no other plugin. A run that was cut off goes on where it was.
"""

import json
import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-1")
os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")

import importlib

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from pallas import subcore_kernels  # noqa: E402
from pallas.mosaic_calls import on_v5e, program_of  # noqa: E402
from pallas.mosaic_kernels import SHARDED  # noqa: E402
from pallas.mosaic_pipelines import KERNELS  # noqa: E402

MACHINE, WITH_SPARSE_CORES = "v5e:2x2", "v6e:2x2"
ALL = (*KERNELS, *SHARDED, *[f"subcores {name}" for name in subcore_kernels.COMPILED])


def devices_of(jax, machine: str):
    topologies = importlib.import_module(f"{jax.__name__}.experimental.topologies")
    return topologies.get_topology_desc(machine, "tpu").devices


def compiled_for_subcores(jax, name: str):
    """The compiled program of a kernel of SparseCores."""
    sharding = jax.sharding.SingleDeviceSharding(devices_of(jax, WITH_SPARSE_CORES)[0])
    with subcore_kernels.on_v6e(jax):
        function, *types = subcore_kernels.KERNELS[name](subcore_kernels.modules_of(jax))
        return jax.jit(function).lower(*[jax.ShapeDtypeStruct(*t, sharding=sharding) for t in types]).compile()


def compiled(jax, name: str):
    """The compiled program of a kernel: on one chip, or on each of four."""
    if name.startswith("subcores "):
        return compiled_for_subcores(jax, name.removeprefix("subcores "))
    devices = devices_of(jax, MACHINE)
    mesh = jax.sharding.Mesh(np.array(devices).reshape(1, 4), ("x", "y"))
    function, types = program_of(jax, name, mesh)
    if name in SHARDED:
        sharding = jax.sharding.NamedSharding(mesh, jax.P(("x", "y")))
    else:
        sharding = jax.sharding.SingleDeviceSharding(devices[0])
    avals = [jax.ShapeDtypeStruct(*t, sharding=sharding) for t in types]
    try:
        return jax.jit(function).lower(*avals).compile()
    except ValueError as error:
        if "device kind" not in str(error):
            raise
    with on_v5e(jax):
        return jax.jit(program_of(jax, name, mesh)[0]).lower(*avals).compile()


def outcome(jax, name: str) -> dict:
    """What came of a kernel: an error, or the sizes of the code and of memory."""
    try:
        executable = compiled(jax, name).runtime_executable()
    except Exception as error:
        return dict(error=str(error)[:160])
    memory = executable.get_compiled_memory_stats()
    sizes = [memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes]
    return dict(code=memory.generated_code_size_in_bytes, memory=sizes)


def main(side: str, path: str, *names: str) -> None:
    jax = importlib.import_module(side)
    done = {json.loads(line)["name"] for line in Path(path).read_text().splitlines()} if Path(path).exists() else set()
    with open(path, "a") as out:
        for name in names or ALL:
            if name not in done:
                out.write(json.dumps(dict(name=name, **outcome(jax, name))) + "\n")
                out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
