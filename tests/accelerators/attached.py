"""Runs programs on the attached machine and on CPUs, and writes how far apart the results are, as JSON lines.

    PYTHONPATH=.:tests JAX_PLATFORMS=cuda,cpu XLA_FLAGS=--xla_force_host_platform_device_count=16 \\
        python tests/accelerators/attached.py gpu out.jsonl ["name" ...]

They are the programs of table.py and functions of `jax.numpy`, on random arguments. Products of float32 have the highest
precision on both. A program over a mesh runs where there are as many devices.
"""

import contextlib
import functools
import importlib
import json
import math
import sys
import time
import zlib

import numpy as np
from accelerators import table
from accelerators.registry import MODULES, Program

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

# How far results may be apart, as a share of the largest number of the CPU's result and 1.
TOLERANCES = {
    "float64": 1e-9,
    "float32": 1e-4,  # TPUs compute transcendental functions to about 1e-5
    "float16": 5e-3,
    "bfloat16": 4e-2,
    "float8": 0.15,
}
# Columns of decompositions are unique but for their sign, or their phase.
UP_TO_SIGN = "svd", "eigh", "eig", "qr", "schur", "lstsq", "hessenberg"
# Machines have generators of their own, and approximate what they are asked to approximate.
BY_MACHINE = "rbg", "rng_", "approx"

UNARY = """
abs absolute acos acosh angle arctan array around asin asinh atan atanh cbrt ceil conj copy cos cosh deg2rad degrees
exp exp2 expm1 fabs flip floor i0 imag isfinite isinf isnan isneginf log log10 log1p log2 nan_to_num negative positive
rad2deg radians ravel real reciprocal rint sign signbit sin sinc sinh spacing sqrt square tan tanh transpose trunc
""".split()
BINARY = """
add arctan2 copysign divide equal floor_divide fmax fmin fmod greater greater_equal heaviside hypot less less_equal logaddexp
logaddexp2 maximum minimum mod multiply nextafter not_equal power remainder subtract
""".split()
REDUCTIONS = """
all any argmax argmin argsort average cumprod cumsum diff max mean median min nanargmax nancumsum nanmax nanmean nansum
nanvar prod ptp sort std sum var
""".split()


def _called(name, types, jax, jnp, lax):
    return getattr(jnp, name), *types


PROGRAMS = table.PROGRAMS | {
    f"jnp.{name}": Program(functools.partial(_called, name, (((9, 33), "float32"), ((33,), "float32"))[:count]))
    for count, names in enumerate((UNARY + REDUCTIONS, BINARY), 1)
    for name in names
}


for module in MODULES:
    importlib.import_module(f"minijax.{module}")


def argument(name: str, i: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random numbers that depend on the program's name alone."""
    random = np.random.default_rng(zlib.crc32(f"{name} {i}".encode()))
    dtype = jnp.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if jnp.issubdtype(dtype, jnp.integer):
        return random.integers(0, 8, shape).astype(dtype)
    numbers = random.standard_normal(shape)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        numbers = numbers + 1j * random.standard_normal(shape)
    return np.asarray(numbers).astype(dtype)


def results(name: str, program: Program, devices: list) -> list[np.ndarray]:
    """The arrays that a program gives on these devices."""
    with contextlib.ExitStack() as contexts:
        contexts.enter_context(jax.default_matmul_precision("highest"))
        if program.x64:
            contexts.enter_context(jax.enable_x64(True))
        where = lambda spec: jax.sharding.SingleDeviceSharding(devices[0])  # noqa: E731
        if program.mesh is not None:
            sizes = program.mesh
            kind = jax.sharding.AxisType.Explicit if program.explicit else jax.sharding.AxisType.Auto
            grid = np.array(devices[: math.prod(sizes.values())]).reshape(list(sizes.values()))
            mesh = jax.sharding.Mesh(grid, tuple(sizes), axis_types=(kind,) * len(sizes))
            contexts.enter_context(jax.set_mesh(mesh))
            where = lambda spec: jax.sharding.NamedSharding(mesh, jax.P(*spec))  # noqa: E731
        function, *types = program.make(jax, jnp, lax)
        arguments = [
            jax.device_put(argument(name, i, shape, dtype), None if spec == [None] else where(*spec or [()]))
            for i, (shape, dtype, *spec) in enumerate(types)
        ]
        jitted = function if hasattr(function, "lower") else jax.jit(function, **program.options)
        is_key = lambda x: jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)  # noqa: E731
        return [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in jax.tree.leaves(jitted(*arguments))]


def apart(name: str, ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference of results as a share of what is allowed: above 1 they differ. Other types are infinitely apart."""
    if [(x.shape, x.dtype) for x in ours] != [(x.shape, x.dtype) for x in theirs]:
        return math.inf
    worst = 0.0
    for x, y in zip(ours, theirs, strict=True):
        if not x.size or any(word in name for word in BY_MACHINE):
            continue
        kind = jnp.finfo(x.dtype).dtype.name if jnp.issubdtype(x.dtype, jnp.inexact) else ""
        if not kind:
            worst = max(worst, 0.0 if np.array_equal(x, y) else math.inf)
            continue
        wide = np.complex128 if jnp.issubdtype(x.dtype, jnp.complexfloating) else np.float64
        x, y = x.astype(wide), y.astype(wide)
        if any(word in name for word in UP_TO_SIGN):
            x, y = abs(x), abs(y)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return math.inf
        finite = np.isfinite(y)
        if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
            return math.inf
        allowed = next(value for prefix, value in TOLERANCES.items() if kind.startswith(prefix))
        scale = max(1.0, abs(y[finite]).max(initial=0))
        worst = max(worst, float(abs(x[finite] - y[finite]).max(initial=0) / (allowed * scale)))
    return worst


def outcome(name: str, program: Program, machine: str) -> dict:
    """What came of a program: how far apart, or why it did not run."""
    devices, needed = jax.devices(machine), math.prod((program.mesh or {}).values())
    if len(devices) < needed:
        return dict(skipped=f"needs {needed} devices")
    try:
        theirs = results(name, program, jax.devices("cpu"))
    except Exception as error:
        return dict(skipped=f"does not run on CPUs: {type(error).__name__}: {str(error)[:200]}")
    start = time.perf_counter()
    try:
        ours = results(name, program, devices)
    except Exception as error:
        return dict(error=f"{type(error).__name__}: {str(error)[:300]}")
    return dict(apart=apart(name, ours, theirs), seconds=round(time.perf_counter() - start, 2))


def main(machine: str, path: str, *names: str) -> None:
    with open(path, "a") as out:
        for name in names or PROGRAMS:
            out.write(json.dumps(dict(name=name, **outcome(name, PROGRAMS[name], machine))) + "\n")
            out.flush()
    jax.effects_barrier()


if __name__ == "__main__":
    main(*sys.argv[1:])
