"""Groups of whole processes: first starts, programs, those on libraries, and second starts with warm disk caches."""

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import group, guard, options, put, turn

FIRST = {
    "first_eager_op": "(jnp.arange(4.)+1).block_until_ready()",
    "first_jit": "jax.jit(lambda x: jnp.sin(x)*2)(1.0).block_until_ready()",
    "first_grad": "jax.grad(lambda x: jnp.sin(x)*x)(1.0).block_until_ready()",
    "first_random": "jax.random.normal(jax.random.key(0),(3,)).block_until_ready()",
    "first_mlp_step": """
def loss(p,x,y):
    for w,b in p: x=jnp.tanh(x@w+b)
    return jnp.mean((x-y)**2)
k=jax.random.key(0); p=[(jax.random.normal(k,(8,8)),jnp.zeros(8)) for _ in range(3)]
f=jax.jit(lambda p,x,y: jax.tree.map(lambda a,g:a-.1*g,p,jax.grad(loss)(p,x,y)))
f(p,jnp.ones((4,8)),jnp.ones((4,8)))[0][0].block_until_ready()""",
}
MEMORY = """
import sys
resident = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
print(resident.split()[1], len(sys.modules))"""


def now() -> float:
    """The clock for started processes: wall-clock time, or the CPU time that all of them used."""
    if options.clock == "wall":
        return time.perf_counter()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds_of(code: str, count: int, arguments: tuple = (), env: dict | None = None) -> list[float]:
    """The times of `count` processes that run `code`."""
    found = []
    for _ in range(count):
        turn()
        start = now()
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=True,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        found.append(now() - start)
    return found


@group
def startup():
    impl, count = options.impl, (3 if options.quick else 7)
    bare = min(seconds_of("pass", count))
    imports = f"import {impl} as jax, {impl}.numpy as jnp\n"
    programs = {"import": f"import {impl}", "import_numpy_ns": f"import {impl}.numpy"}
    programs |= {name: imports + code for name, code in FIRST.items()}
    for name, code in programs.items():
        row = f"startup/{name}"
        guard(row, lambda: put(row, [t - bare for t in seconds_of(code, count)], "ms"))

    def memory():
        command = [sys.executable, "-c", f"import {impl}{MEMORY}"]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        put("startup/rss_after_import", [int(found[0]) / 1024], "MiB")
        put("startup/modules_after_import", [int(found[1])], "count")

    guard("startup/rss_after_import", memory)


def _step(maker: str) -> str:
    """A program that runs one step."""
    here = str(Path(__file__).parent)
    return (
        f"import sys; sys.path.insert(0, {here!r})\n"
        f"import measure, models\nf, args = models.{maker}\nmeasure.sync(measure.jax.jit(f)(*args))"
    )


def _file(path: str, *arguments: str) -> str:
    """A program that runs a file, which imports `jax`, without drawing."""
    path = str(Path(__file__).parents[1] / path)
    install = "" if options.impl == "jax" else f"import {options.impl}; {options.impl}.install()\n"
    return (
        f"import runpy, sys; sys.modules['matplotlib'] = None; sys.argv = [{path!r}, *{arguments!r}]\n{install}"
        f"runpy.run_path({path!r}, run_name='__main__')"
    )


@group
def restart():
    with tempfile.TemporaryDirectory() as cache:
        env = dict(
            os.environ,
            JAX_COMPILATION_CACHE_DIR=cache,
            JAX_ENABLE_COMPILATION_CACHE="true",
            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
            JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
        )

        def warm(code):
            times = seconds_of(code, 3 if options.quick else 5, ("--impl", options.impl), env)
            return times[1:]  # the first one fills the cache

        programs = {
            "mlp_step": _step("mlp_step_make()"),
            "transformer12_step": _step("transformer_step_make(12)"),
            "spectral_radius": _file("notebooks/spectral_radius.py", "--steps", "1", "--devices", "1"),
        }
        for name, code in programs.items():
            row = f"restart/{name}"
            guard(row, lambda: put(row, warm(code), "ms"))


WHOLE_PROGRAMS = ("cnn", "gaussian_process", "gpt", "hmc", "implicit_layer", "pinn", "policy", "numerics")


@group
def cold():
    """Whole programs of eight kinds in new processes, with nothing cached on disk."""
    env = dict(os.environ, JAX_ENABLE_COMPILATION_CACHE="false")
    for name in WHOLE_PROGRAMS:
        here = str(Path(__file__).parent)
        code = f"import sys; sys.path.insert(0, {here!r})\nimport measure, wholes\nmeasure.sync(wholes.{name}())"
        row, count = f"cold/{name}", 2 if options.quick else 4
        guard(row, lambda: put(row, seconds_of(code, count, ("--impl", options.impl), env), "ms"))


# Programs of the tests, by the library that each needs.
LIBRARY_PROGRAMS = {
    "blackjax_nuts": "blackjax",
    "equinox_mlp": "equinox",
    "flax_cnn": "flax",
    "flax_nnx": "flax",
    "optax_lbfgs": "optax",
}


@group
def libraries():
    """Whole programs on libraries that are installed, in new processes, with nothing cached on disk."""
    env = dict(os.environ, JAX_ENABLE_COMPILATION_CACHE="false")
    for name, library in LIBRARY_PROGRAMS.items():
        if importlib.util.find_spec(library) is None:
            continue
        code = _file(f"tests/ecosystem/programs/{name}.py")
        row, count = f"libraries/{name}", 2 if options.quick else 4
        guard(row, lambda: put(row, seconds_of(code, count, (), env), "ms"))
