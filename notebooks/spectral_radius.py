"""A network learns the spectral radius of 2x2 complex matrices.

The spectral radius is the largest absolute value of the eigenvalues. Run it with JAX, or with
`python -m minijax notebooks/spectral_radius.py`. The cells (`# %%`) open as a notebook in many editors.
With `--processes 2` two processes train one network, each on its devices and its part of the batches.
"""

# %%
import argparse
import functools
import socket
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.example_libraries import optimizers, stax
from jax.tree_util import tree_map

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10_000)
parser.add_argument("--picture", default="spectral_radius.png", help="where the loss curve is drawn")
parser.add_argument("--devices", type=int, default=2, help="virtual devices of the second training; 1: none")
parser.add_argument("--losses", help="a file for the losses of the first training, step by step, as float32")
parser.add_argument("--spread-losses", help="a file for those of the second training")
parser.add_argument("--processes", type=int, default=1, help="processes of the second training, each with its devices")
parser.add_argument("--process", type=int, help="the number of this process; without it all are started")
parser.add_argument("--coordinator", help="where the first process listens, as host:port")
options, _ = parser.parse_known_args()
if options.devices > 1:
    jax.config.update("jax_num_cpu_devices", options.devices)  # must come before the first array


# %% Several processes: each runs this program, with its number
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if options.processes > 1 and options.process is None:
    where = f"127.0.0.1:{free_port()}"
    commands = [[*sys.orig_argv, "--process", str(i), "--coordinator", where] for i in range(options.processes)]
    started = [subprocess.Popen(c, stdout=subprocess.DEVNULL if i else None) for i, c in enumerate(commands)]
    sys.exit(max(abs(process.wait()) for process in started))
if options.processes > 1:
    jax.distributed.initialize(options.coordinator, options.processes, options.process)


# %% The function to learn, and its gradient
def spectral_radius(matrix):
    return jnp.max(jnp.abs(jnp.linalg.eigvals(matrix)))


real = jnp.array([[1.0, -1.0], [1.0, 1.0]])
print("spectral radius of [[1, -1], [1, 1]]:", spectral_radius(real))
print("its gradient:", jax.grad(spectral_radius)(real).tolist())
tilted = real + 0.5j * jnp.eye(2)
print("gradient at a complex matrix:", jax.grad(spectral_radius)(tilted).tolist())

# %% The model: three hidden layers, over matrices flattened to vectors
BATCH, WIDTH = 64, 64
init_network, network = stax.serial(
    stax.Dense(WIDTH), stax.Relu, stax.Dense(WIDTH), stax.Relu, stax.Dense(WIDTH), stax.Relu, stax.Dense(1)
)
_, first_params = init_network(jax.random.PRNGKey(0), (4,))
init_optimizer, update, params_of = optimizers.adam(3e-4)


def predict(params, matrix):
    return network(params, matrix.ravel())[0]


model = jax.vmap(predict, in_axes=(None, 0))
targets = jax.vmap(spectral_radius)


def loss(params, matrices):
    return jnp.mean(jnp.abs(model(params, matrices) - targets(matrices)))


# %% One step: a fresh batch, the loss, the gradients, the update
@jax.jit
def step(i, state, key):
    key, batch_key = jax.random.split(key)
    matrices = jax.random.normal(batch_key, (BATCH, 2, 2), dtype=complex)
    value, gradients = jax.value_and_grad(loss)(params_of(state), matrices)
    gradients = tree_map(jnp.conj, gradients)
    return update(i, gradients, state), key, value


# %% Training, on one device
state, key = init_optimizer(first_params), jax.random.PRNGKey(1)
losses, start, shown = [], time.perf_counter(), 0
for i in range(options.steps if options.processes == 1 else 0):  # several processes leave this one out
    state, key, value = step(i, state, key)
    losses.append(value)
    if (i + 1) % max(1, options.steps // 10) == 0:
        now = time.perf_counter()
        recent = np.mean([float(v) for v in losses[shown:]])
        print(f"step {i + 1:6d}  loss {recent:.4f}  {(i + 1 - shown) / (now - start):8.0f} steps/s")
        start, shown = now, i + 1

# %% What it learned
params = params_of(state)
if losses:
    print("model at [[1, -1], [1, 1]]:", float(jnp.real(predict(params, real + 0j))), " true:", 2**0.5)
if options.losses:
    np.asarray(losses, np.float32).tofile(options.losses)


# %% The same on several devices: each has a part of the batch, and all take the mean of the gradients
def batches(steps):
    """This process's part of each batch, a row for each of its devices; all draw the same batches."""
    key, rows = jax.random.PRNGKey(1), BATCH // options.processes
    part = slice(jax.process_index() * rows, (jax.process_index() + 1) * rows)
    for _ in range(steps):
        key, matrices = draw(key)
        yield matrices[part].reshape(options.devices, -1, 2, 2)


@functools.partial(jax.pmap, axis_name="devices", in_axes=(None, None, 0), out_axes=(None, None))
def spread_step(i, state, matrices):
    value, gradients = jax.lax.pmean(jax.value_and_grad(loss)(params_of(state), matrices), "devices")
    return update(i, tree_map(jnp.conj, gradients), state), value


@jax.jit
def draw(key):
    key, batch_key = jax.random.split(key)
    return key, jax.random.normal(batch_key, (BATCH, 2, 2), dtype=complex)


if options.devices * options.processes > 1:
    state, spread_losses, start = init_optimizer(first_params), [], time.perf_counter()
    for i, matrices in enumerate(batches(options.steps)):  # nothing here waits for a result
        state, value = spread_step(i, state, matrices)
        spread_losses.append(value)
    value = float(value)
    rate = options.steps / (time.perf_counter() - start)
    where = f"{jax.device_count()} devices" + f" of {options.processes} processes" * (options.processes > 1)
    print(f"on {where}: loss {value:.4f} at the last step  {rate:8.0f} steps/s")
    if options.spread_losses and not options.process:
        np.asarray(spread_losses, np.float32).tofile(options.spread_losses)

# %% The loss curve
if not losses:
    sys.exit()
try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    pyplot.figure(figsize=(7, 4))
    pyplot.semilogy([float(v) for v in losses], linewidth=0.5)
    pyplot.xlabel("step")
    pyplot.ylabel("mean absolute error")
    pyplot.title("Learning the spectral radius")
    pyplot.savefig(options.picture, dpi=120, bbox_inches="tight")
    print("loss curve in", options.picture)
