"""Ctrl-C ends a kernel that loops for ever, interpreted or simulated, on one core or on two."""

import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import signal
import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

signal.signal(signal.SIGINT, signal.default_int_handler)
params = {params}

def kernel(x, o):
    def count(n):
        o[...] = o[...] + x[...]
        return n

    jax.lax.while_loop(lambda n: n < 1, count, jnp.int32(0))

spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
options = dict(grid=(2,), in_specs=[spec], out_specs=spec, interpret=params)
options |= dict(compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)))
f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((16, 128), jnp.float32), **options)
x = jnp.ones((16, 128))
print("ready", flush=True)
try:
    jax.block_until_ready({call})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
PARAMS = {
    "interpreted": "True",
    "simulated": "pltpu.InterpretParams()",
    "simulated_on_two_cores": "pltpu.InterpretParams(num_cores_or_threads=2)",
}


@pytest.mark.parametrize("call", ["f(x)", "jax.jit(f)(x)"])
@pytest.mark.parametrize("name", PARAMS)
def test_a_kernel_that_loops_for_ever_is_interrupted(name, call):
    command = [sys.executable, "-c", PROGRAM.format(params=PARAMS[name], call=call)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.7)  # the first signal may come while the program is compiled, in a callback of C++
            process.send_signal(signal.SIGINT)
        found, errors = process.communicate(timeout=10)
        assert found == "interrupted\n", errors[-2000:]
    finally:
        process.kill()
