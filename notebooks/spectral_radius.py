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

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10_000)
parser.add_argument("--picture", default="spectral_radius.png", help="where the losses and the predictions are drawn")
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

# %% The model: three hidden layers, over the real and imaginary parts of a matrix
BATCH, WIDTH = 64, 64
init_network, network = stax.serial(
    stax.Dense(WIDTH), stax.Relu, stax.Dense(WIDTH), stax.Relu, stax.Dense(WIDTH), stax.Relu, stax.Dense(1)
)
_, first_params = init_network(jax.random.PRNGKey(0), (8,))


def predict(params, matrix):
    return network(params, jnp.stack([matrix.real, matrix.imag]).ravel())[0]


model = jax.vmap(predict, in_axes=(None, 0))
targets = jax.vmap(spectral_radius)


def loss(params, matrices):
    return jnp.mean(jnp.abs(model(params, matrices) - targets(matrices)))


# %% One step: a fresh batch, the loss, the gradients, the update
def learning_rate(i):
    """Rises for a twentieth of the run, then falls to zero along a cosine."""
    done = (i + 1) / options.steps
    return 0.01 * jnp.minimum(20 * done, (1 + jnp.cos(jnp.pi * done)) / 2)


init_optimizer, update, params_of = optimizers.adam(learning_rate)


def batch(i):
    return jax.random.normal(jax.random.fold_in(jax.random.PRNGKey(1), i), (BATCH, 2, 2), dtype=complex)


@jax.jit
def step(i, state):
    value, gradients = jax.value_and_grad(loss)(params_of(state), batch(i))
    return update(i, gradients, state), value


# %% Training
def train(where, step):
    """Takes all steps with `step`, prints the progress, and returns the parameters and the losses."""
    print(f"training on {where}: compiling", end=" ... ", flush=True)
    state, losses, start = init_optimizer(first_params), [], time.perf_counter()
    for i in range(options.steps):
        state, value = step(i, state)
        losses.append(value)
        if i == 0:
            value.block_until_ready()
            print(f"{time.perf_counter() - start:.1f} s", flush=True)
            shown, start = 1, time.perf_counter()
        elif (i + 1) % max(1, options.steps // 10) == 0 or time.perf_counter() - start > 3:
            recent = np.mean([float(v) for v in losses[shown:]])
            rate = (i + 1 - shown) / (time.perf_counter() - start)
            print(f"step {i + 1:6d}  loss {recent:.4f}  {rate:8.0f} steps/s", flush=True)
            shown, start = i + 1, time.perf_counter()
    return params_of(state), np.asarray(losses, np.float32)


curves = {}
if options.processes == 1:  # skipped by several processes
    params, curves["one device"] = train("one device", step)
    if options.losses:
        curves["one device"].tofile(options.losses)


# %% The same on several devices: each has its rows of the batch, and all take the mean of the gradients
@functools.partial(jax.pmap, axis_name="devices", in_axes=(None, None, 0), out_axes=None)
def spread_step(i, state, rows):
    value_and_gradients = jax.value_and_grad(loss)(params_of(state), batch(i)[rows])
    value, gradients = jax.lax.pmean(value_and_gradients, "devices")
    return update(i, gradients, state), value


def step_on_all(i, state):
    """Runs one step and waits for it: concurrent steps can starve each other of threads."""
    return jax.block_until_ready(spread_step(i, state, rows))


if options.devices * options.processes > 1:
    rows = np.arange(BATCH).reshape(options.processes, options.devices, -1)[jax.process_index()]
    where = f"{jax.device_count()} devices" + f" of {options.processes} processes" * (options.processes > 1)
    _, curves[where] = train(where, step_on_all)
    if options.spread_losses and not options.process:
        curves[where].tofile(options.spread_losses)

# %% What it learned, compared with one constant for all matrices
if options.processes > 1:
    sys.exit()
matrices = jax.random.normal(jax.random.PRNGKey(2), (1000, 2, 2), dtype=complex)
predicted, radii = np.asarray(jax.jit(model)(params, matrices)), np.asarray(jax.jit(targets)(matrices))
error, constant = np.mean(np.abs(predicted - radii)), np.mean(np.abs(radii - np.median(radii)))
print(f"model at [[1, -1], [1, 1]]: {jax.jit(predict)(params, real):.4f}, true: {2**0.5:.4f}")
print(f"error on new matrices: {error:.4f}, of the best constant: {constant:.4f}")

# %% The picture
print("drawing", options.picture, flush=True)
try:
    from matplotlib.figure import Figure
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    window = max(1, options.steps // 100)
    for n, (where, losses) in enumerate(curves.items()):
        smooth = np.convolve(losses, np.ones(window) / window, "valid")
        left.semilogy(losses, color=f"C{n}", alpha=0.15, linewidth=0.5)
        left.semilogy(np.arange(len(smooth)) + window // 2, smooth, color=f"C{n}", label=f"on {where}", zorder=3)
    left.axhline(constant, color="black", linestyle="--", linewidth=1, label="constant prediction")
    left.set(xlabel="step", ylabel="mean absolute error", title="Learning the spectral radius")
    left.legend()
    right.scatter(radii, predicted, s=6, alpha=0.5)
    right.axline((0, 0), slope=1, color="black", linestyle="--", linewidth=1)
    right.set(xlabel="true radius", ylabel="predicted radius", title="1,000 new matrices", aspect="equal")
    figure.savefig(options.picture, dpi=120)
