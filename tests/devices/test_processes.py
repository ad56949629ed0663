"""Programs of several processes on the loopback interface, beside jax's, and what goes wrong among them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = str(Path(__file__).with_name("processes.py"))
NOTEBOOK = str(ROOT / "notebooks" / "spectral_radius.py")
SECONDS = 120  # for what takes ten on an idle machine


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def started(commands: Sequence[Sequence[str]]) -> Iterator[list[subprocess.Popen]]:
    """The processes of these commands of Python, which are ended whatever happens."""
    environment = {**os.environ, "XLA_FLAGS": "", "PYTHONPATH": str(ROOT)}
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # A session of their own: what they start is ended with them.
    processes = [
        subprocess.Popen([sys.executable, *c], cwd=ROOT, env=environment, start_new_session=True, **pipes)
        for c in commands
    ]
    try:
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def outputs(commands: Sequence[Sequence[str]]) -> list[list[str]]:
    """The lines that each of the programs prints; all of them must end well."""
    end = time.monotonic() + SECONDS
    with started(commands) as processes:
        ended = [(p, *p.communicate(timeout=max(1, end - time.monotonic()))) for p in processes]
    for process, _, errors in ended:
        assert process.returncode == 0, errors
    return [[line for line in printed.splitlines() if line.strip()] for _, printed, _ in ended]


def program(library: str, count: int, *cases: str) -> list[list[str]]:
    address = free_address()
    return [[PROGRAM, library, str(i), str(count), address, *cases] for i in range(count)]


@pytest.mark.oracle
def test_two_processes_see_what_they_see_in_jax():
    ours, theirs = np.split(np.array(outputs(program("minijax", 2) + program("jax", 2)), dtype=object), 2)
    assert len(ours[0]) == 73
    for mine, expected in zip(ours, theirs, strict=True):
        for line, of_jax in zip(mine, expected, strict=True):
            assert line == of_jax


def test_four_processes_tell_each_other_what_they_have():
    printed = outputs(program("minijax", 4, "telling", "pmapping"))
    assert "telling 2: (numpy int32 (4,) [0, 1, 2, 3]" not in printed[0]
    for i, lines in enumerate(printed):
        assert lines[0].endswith("numpy int32 (4,) [0, 1, 2, 3])")
        assert f"[{2 * i}, {2 * i + 1}]" in next(line for line in lines if line.startswith("pmapping 0"))


# ---- faults -----------------------------------------------------------------------------------------

ALONE = """
import time
import minijax as jax

def error(*args, **kwargs):
    start = time.monotonic()
    try:
        jax.distributed.initialize(*args, **kwargs)
    except Exception as failure:
        print(type(failure).__name__, round(time.monotonic() - start), failure)

error()
error("127.0.0.1:1")
error("127.0.0.1:1", 2)
error("127.0.0.1:1", 2, 2)
error("127.0.0.1:1", 2, -1)
error("127.0.0.1", 2, 1)
error("127.0.0.1:1", 2, 1, initialization_timeout=1)
error("no.such.host.invalid:1", 2, 1, initialization_timeout=1)
error("127.0.0.1:1", 1, 0, coordinator_bind_address="192.0.2.1:1")
assert not jax.distributed.is_initialized() and jax.distributed.shutdown() is None
jax.distributed.initialize("ADDRESS", 1, 0)
error("ADDRESS", 1, 0)
jax.distributed.shutdown()
jax.distributed.initialize("ADDRESS", 1, 0)
assert jax.distributed.is_initialized() and jax.process_count() == 1
jax.distributed.shutdown()
error("ADDRESS", 1, 0)
"""


def test_a_process_that_cannot_be_one_of_several_is_told_why():
    (lines,) = outputs([["-c", ALONE.replace("ADDRESS", free_address())]])
    expected = """
        ValueError 0 | coordinator_address should be defined
        ValueError 0 | Number of processes must be defined
        ValueError 0 | The process id of the current process must be defined
        ValueError 0 | process_id < num_processes. Got process_id=2, num_processes=2
        ValueError 0 | Got process_id=-1
        ValueError 0 | '127.0.0.1' is not of the form host:port
        JaxRuntimeError 1 | process 1 found no coordinator at 127.0.0.1:1 within 1 seconds
        JaxRuntimeError 1 | found no coordinator at no.such.host.invalid:1
        JaxRuntimeError 0 | nobody can listen at coordinator_bind_address '192.0.2.1:1'
        RuntimeError 0 | should only be called once
        RuntimeError 0 | must be called before any JAX calls
    """.strip().splitlines()
    assert len(lines) == len(expected)
    for line, (kind, _, phrase) in zip(lines, (e.strip().partition(" | ") for e in expected), strict=True):
        assert line.startswith(kind.split()[0]) and phrase in line
        assert int(line.split()[1]) <= int(kind.split()[1]) + 4


FELLOW = """
import os, signal, sys, time
import numpy as np
import minijax as jax

# Gloo's threads write to descriptor 1 in pieces, between the pieces of other lines.
sys.stdout = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
P = jax.sharding.PartitionSpec
index = int(sys.argv[1])
jax.distributed.initialize("ADDRESS", 2, index, initialization_timeout=60, heartbeat_timeout_seconds=HEARTBEAT,
                           shutdown_timeout_seconds=5)
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
x = jax.make_array_from_callback((1 << 12,), jax.sharding.NamedSharding(mesh, P("x")), lambda i: np.ones(1 << 12)[i])
total = jax.jit(jax.shard_map(lambda a: jax.lax.psum(a.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
assert float(total(x)) == 1 << 12
print("together", flush=True)
"""

KILLED = """
if index:
    for _ in range(3):
        total(x)
    os.kill(os.getpid(), signal.SIGKILL)
start = time.monotonic()
try:
    while True:
        float(total(x))
except Exception as failure:
    print(type(failure).__name__, round(time.monotonic() - start), failure, flush=True)
"""


def fellows(body: str, heartbeat: int = 100) -> list[list[str]]:
    text = FELLOW.replace("ADDRESS", free_address()).replace("HEARTBEAT", str(heartbeat)) + body
    return [["-c", text, str(i)] for i in range(2)]


def test_a_process_killed_in_a_collective_is_an_error_in_the_others():
    with started(fellows(KILLED, heartbeat=5)) as (survivor, killed):
        killed.communicate(timeout=SECONDS)
        assert killed.returncode == -signal.SIGKILL
        start = time.monotonic()
        printed, errors = survivor.communicate(timeout=SECONDS)
    assert time.monotonic() - start < 30
    lines = printed.splitlines()
    assert lines[0] == "together" and lines[1].startswith("JaxRuntimeError"), (printed, errors)
    assert "Gloo" in errors
    # It leaves in vain: jaxlib ends who waits for a process that is dead.
    assert survivor.returncode == -signal.SIGABRT or survivor.returncode == 0, errors


NOTICED = """
from minijax.experimental import multihost_utils
for step in range(1000):
    if index and step == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    if multihost_utils.reached_preemption_sync_point(step):
        print("saved at", step, flush=True)
        break
    time.sleep(0.02)
"""


def test_a_process_that_is_to_be_stopped_has_all_save_at_one_step():
    first, second = outputs(fellows(NOTICED))
    assert first == second and first[1].startswith("saved at")


def test_a_process_that_never_comes_ends_the_others_in_time():
    text = 'import minijax as jax; jax.distributed.initialize("ADDRESS", 2, 0, initialization_timeout=2)'
    start = time.monotonic()
    with started([["-c", text.replace("ADDRESS", free_address())]]) as (waiting,):
        _, errors = waiting.communicate(timeout=SECONDS)
    assert waiting.returncode == -signal.SIGABRT and time.monotonic() - start < 40
    assert "DEADLINE_EXCEEDED" in errors


# ---- a program that trains --------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_of_two_devices_train_as_one_of_four(tmp_path):
    losses = []
    for processes, devices in ((2, 2), (1, 4)):
        file = tmp_path / f"losses{processes}"
        arguments = f"--steps 6 --processes {processes} --devices {devices} --picture {tmp_path}/curve.png".split()
        (printed,) = outputs([["-m", "minijax", NOTEBOOK, *arguments, "--spread-losses", str(file)]])
        assert any(line.startswith("training on 4 devices") for line in printed)
        losses.append(np.fromfile(file, np.float32))
    assert len(losses[0]) == 6
    # Gloo adds the parts of a mean in another order than XLA does within a process.
    np.testing.assert_allclose(*losses, rtol=1e-5)
