"""Compiles the programs for a machine on one side, and writes what came of each as JSON lines.

    python tests/accelerators/side.py jax v5e tests/accelerators/v5e.jsonl        # what the tests compare with
    python tests/accelerators/side.py minijax v5e out.jsonl ["name" ...]

The machine's plugin must be installed, alone: `libtpu`, or CUDA's with its compiler. A run that was cut off goes on where
it was. With KEEP_HLO=FILE the compared lines of the last program are written.
"""

import contextlib
import hashlib
import importlib
import json
import os
import re
import sys
import time
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-1")
os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")

import numpy as np
from jaxlib import _hlo

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))
from accelerators.registry import MODULES, SIZES, Program  # noqa: E402
from accelerators.table import PROGRAMS, TPUS  # noqa: E402

_IGNORED = re.compile(
    r", (?:frontend_attributes|sharding)=\{(?:[^{}]|\{[^{}]*\})*\}|, allow_spmd_sharding_propagation_to_\w+=\{[^}]*\}"
    r'|"original_(?:instruction|to_apply)":"[^"]*"'
    r"|\btmp_\d+\b|parameter\(\d+\)"
)


def devices_of(jax, machine: str, count: int, slices: int = 1) -> list:
    """Devices of a machine that is large enough, or of so many slices of it."""
    topologies = importlib.import_module(f"{jax.__name__}.experimental.topologies")
    each = count // slices
    if machine in TPUS:
        name = TPUS[machine][sum(each > size for size in SIZES)]
        return topologies.get_topology_desc(name, "tpu", **(dict(num_slices=slices) if slices > 1 else {})).devices[
            :count
        ]
    grid = f"{slices}x1x{each}" if slices > 1 else f"1x{-(-count // 8)}x8"
    options = dict(target_config=(FOLDER / f"{machine}.txtpb").read_text(), topology=grid)
    return topologies.get_topology_desc("", "cuda", **options).devices[:count]


def mesh_of(jax, program: Program, machine: str):
    """The program's mesh; a large one and one over slices are arranged along the wires."""
    names, shape = tuple(program.mesh), tuple(program.mesh.values())
    devices = devices_of(jax, machine, int(np.prod(shape)), program.slices)
    utils = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils")
    if program.slices > 1:
        inner, outer = (shape[0] // program.slices, *shape[1:]), (program.slices,) + (1,) * (len(shape) - 1)
        grid = utils.create_hybrid_device_mesh(
            inner, outer, devices, process_is_granule=machine not in TPUS, allow_split_physical_axes=True
        )
    elif len(devices) > 16:
        grid = utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    else:
        grid = np.array(devices).reshape(shape)
    kind = jax.sharding.AxisType.Explicit if program.explicit else jax.sharding.AxisType.Auto
    return jax.sharding.Mesh(grid, names, axis_types=(kind,) * len(names))


def fingerprint(executable) -> list[str]:
    """The lines of the optimized HLO that do not depend on names, sorted."""
    options = _hlo.HloPrintOptions.fingerprint()
    options.print_backend_config = options.print_large_constants = True
    text = "\n".join(module.to_string(options) for module in executable.hlo_modules())
    return sorted(_IGNORED.sub("", line).strip() for line in text.splitlines()[1:])


def compiled(jax, program: Program, machine: str):
    """The compiled program, and the seconds of tracing and lowering, and of compiling."""
    jnp, lax = importlib.import_module(f"{jax.__name__}.numpy"), jax.lax
    with contextlib.ExitStack() as contexts:
        if program.x64:
            contexts.enter_context(jax.enable_x64(True))
        if program.mesh is None:
            device = devices_of(jax, machine, 1)[0]
            sharding = lambda spec: jax.sharding.SingleDeviceSharding(device)  # noqa: E731
        else:
            mesh = mesh_of(jax, program, machine)
            contexts.enter_context(jax.set_mesh(mesh))
            sharding = lambda spec: jax.sharding.NamedSharding(mesh, jax.P(*spec))  # noqa: E731
        function, *types = program.make(jax, jnp, lax)
        args = [
            jax.ShapeDtypeStruct(shape, dtype, sharding=sharding(*spec or [()]) if spec != [None] else None)
            for shape, dtype, *spec in types
        ]
        jitted = function if hasattr(function, "lower") else jax.jit(function, **program.options)
        start = time.perf_counter()
        lowered = jitted.lower(*args)
        middle = time.perf_counter()
        result = lowered.compile()
    return result, middle - start, time.perf_counter() - middle


def outcome(jax, program: Program, machine: str) -> dict:
    """What came of a program: an error's class, or digests of the HLO and of the formats, costs and memory."""
    try:
        result, lowering, compiling = compiled(jax, program, machine)
    except Exception as error:
        return dict(error=type(error).__name__, text=str(error)[:300])
    executable = result.runtime_executable()
    lines, memory = fingerprint(executable), executable.get_compiled_memory_stats()
    cost = result.cost_analysis() or {}
    sizes = [memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes,
             memory.temp_size_in_bytes]  # fmt: skip
    try:
        formats = re.sub(r"sharding=.*?\)\)?(?=[,)])", "", f"{result.input_formats} {result.output_formats}")
        layouts = [str(layout) for layout in (*executable.get_parameter_layouts(), *executable.get_output_layouts())]
    except (AssertionError, RuntimeError):  # of programs with tokens
        formats, layouts = "", []
    if os.environ.get("KEEP_HLO"):
        Path(os.environ["KEEP_HLO"]).write_text("\n".join(lines))
    text = "\n".join(lines)
    return dict(
        hlo=_digest(text, 16),
        lines=len(lines),
        memory=sizes,
        cost=[round(cost.get(name, 0)) for name in ("flops", "bytes accessed", "transcendentals")],
        cycles=sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', text))),
        layouts=_digest(" ".join(layouts), 8),
        formats=_digest(re.sub(r"Device\([^)]*\)", "", formats), 8),
        seconds=[round(lowering, 3), round(compiling, 2)],
    )


def _digest(text: str, letters: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:letters]


def main(side: str, machine: str, path: str, *names: str) -> None:
    jax = importlib.import_module(side)
    for module in MODULES:
        try:
            importlib.import_module(f"{side}.{module}")
        except ImportError:
            pass
    done = {json.loads(line)["name"] for line in Path(path).read_text().splitlines()} if Path(path).exists() else set()
    with open(path, "a") as out:
        for name in names or PROGRAMS:
            if name not in done:
                out.write(json.dumps(dict(name=name, **outcome(jax, PROGRAMS[name], machine))) + "\n")
                out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
