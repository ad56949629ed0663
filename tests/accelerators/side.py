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
from table import PROGRAMS, TPUS, Program

FOLDER = Path(__file__).parent
_IGNORED = re.compile(
    r", (?:frontend_attributes|sharding)=\{(?:[^{}]|\{[^{}]*\})*\}|, allow_spmd_sharding_propagation_to_\w+=\{[^}]*\}"
    r"|\btmp_\d+\b|parameter\(\d+\)"
)


def devices_of(jax, machine: str, count: int) -> list:
    """Devices of a machine that is large enough."""
    topologies = importlib.import_module(f"{jax.__name__}.experimental.topologies")
    if machine in TPUS:
        return topologies.get_topology_desc(TPUS[machine][count > 4], "tpu").devices[:count]
    options = dict(target_config=(FOLDER / f"{machine}.txtpb").read_text(), topology=f"1x{-(-count // 8)}x8")
    return topologies.get_topology_desc("", "cuda", **options).devices[:count]


def fingerprint(executable) -> list[str]:
    """The lines of the optimized HLO that do not depend on names, sorted."""
    options = _hlo.HloPrintOptions.fingerprint()
    options.print_backend_config = options.print_large_constants = True
    text = "\n".join(module.to_string(options) for module in executable.hlo_modules())
    return sorted(_IGNORED.sub("", line).strip() for line in text.splitlines()[1:])


def compiled(jax, program: Program, machine: str):
    """The compiled program, and the seconds of tracing and lowering, and of compiling."""
    jnp, lax = importlib.import_module(f"{jax.__name__}.numpy"), jax.lax
    sizes = program.mesh or {"x": 1}
    devices = devices_of(jax, machine, int(np.prod(list(sizes.values()))))
    context = contextlib.nullcontext()
    sharding = lambda spec: jax.sharding.SingleDeviceSharding(devices[0])  # noqa: E731
    if program.mesh is not None:
        kind = jax.sharding.AxisType.Explicit if program.explicit else jax.sharding.AxisType.Auto
        grid = np.array(devices).reshape(list(sizes.values()))
        mesh = jax.sharding.Mesh(grid, tuple(sizes), axis_types=(kind,) * len(sizes))
        sharding = lambda spec: jax.sharding.NamedSharding(mesh, jax.P(*spec))  # noqa: E731
        context = jax.set_mesh(mesh)
    with context:
        function, *types = program.make(jax, jnp, lax)
        args = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding(*spec or [()])) for shape, dtype, *spec in types]
        start = time.perf_counter()
        lowered = jax.jit(function, **program.options).lower(*args)
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
    for module in ("numpy", "scipy.linalg", "experimental.topologies", "ad_checkpoint", "memory"):
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
