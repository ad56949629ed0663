# %% [markdown]
# # Learning spectral radii
#
# The *spectral radius* of a matrix is the largest absolute value of its eigenvalues. This notebook differentiates it, and
# trains a small network to predict it for random complex matrices of two rows. The network sees numbers only; the targets are
# computed by a program, in the training step itself.

# %%
import minijax as jax
import minijax.numpy as jnp
import numpy as np


@jax.jit
def spectral_radius(matrix):
    return jnp.max(jnp.abs(jnp.linalg.eigvals(matrix)))


rotation = jnp.array([[1.0, -1.0], [1.0, 1.0]])
jnp.linalg.eigvals(rotation), spectral_radius(rotation)

# %% [markdown]
# ## The derivative of an eigenvalue
#
# An eigenvalue moves with the matrix, and `jax.grad` knows how. The eigenvalues of this matrix are complex, the radius is a
# real number, and so is the gradient of a real matrix.

# %%
slope_at = jax.jit(jax.grad(spectral_radius))
slope = slope_at(rotation)
slope

# %% [markdown]
# Finite differences agree. The change of the radius in some direction is the gradient times the direction.

# %%
direction, small = jnp.array([[0.3, 0.1], [-0.2, 0.5]]), 1e-2
ahead = spectral_radius(rotation + small * direction)
behind = spectral_radius(rotation - small * direction)
print(f"{(ahead - behind) / (2 * small):.3f} {jnp.sum(slope * direction):.3f}")

# %% [markdown]
# For a complex matrix the gradient is complex. JAX's convention is that a step *down* goes along the conjugate of the gradient.

# %%
matrix = rotation + 0.5j * jnp.eye(2)
slope = slope_at(matrix)
down = matrix - 0.1 * slope.conj()
print(f"{spectral_radius(matrix):.3f} -> {spectral_radius(down):.3f}")

# %% [markdown]
# A derivative need not exist. Where two eigenvalues meet and the matrix cannot be diagonalized, a small entry `e` below the
# diagonal moves the radius by the root of `e`: the slope is infinite. `grad` returns numbers there that mean nothing. Random
# matrices do not meet this case.

# %%
defective = jnp.array([[1.0, 1.0], [0.0, 1.0]])
disturbed = defective.at[1, 0].set(1e-4)
slope = slope_at(defective)
print(f"{spectral_radius(disturbed):.4f}", slope.tolist())

# %% [markdown]
# ## Batches
#
# `spectral_radius` takes one matrix. `vmap` makes it a function of a batch; XLA's routine for eigenvalues takes the whole batch
# at once.

# %%
targets = jax.jit(jax.vmap(spectral_radius))


@jax.jit
def batch(i):
    key = jax.random.fold_in(jax.random.key(1), i)
    return jax.random.normal(key, (64, 2, 2), dtype=complex)


targets(batch(0))[:5]

# %% [markdown]
# `fold_in` makes a key of a key and a number: each step has its batch, and needs no state.
#
# ## The network
#
# Three hidden layers see the real and the imaginary parts, eight numbers. Again the function is written for one matrix.

# %%
SIZES = (8, 64, 64, 64, 1)


@jax.jit
def init_network(key):
    keys = jax.random.split(key, len(SIZES) - 1)
    return [
        (jax.random.normal(k, (n, m)) * jnp.sqrt(2 / n), jnp.zeros(m))
        for k, n, m in zip(keys, SIZES[:-1], SIZES[1:])
    ]


def predict(params, matrix):
    x = jnp.stack([matrix.real, matrix.imag]).ravel()
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[0]


network = jax.jit(jax.vmap(predict, in_axes=(None, 0)))


def loss(params, matrices):
    return jnp.mean(jnp.abs(network(params, matrices) - targets(matrices)))


params = init_network(jax.random.key(0))
jax.tree.map(jnp.shape, params)

# %% [markdown]
# ## Adam in ten lines
#
# The state of Adam is two trees like the parameters: running means of the gradients and of their squares. A step is a function
# from one state to the next.


# %%
def adam(params, means, squares, gradients, i, rate):
    mean = lambda decay: lambda old, new: decay * old + (1 - decay) * new
    means = jax.tree.map(mean(0.9), means, gradients)
    of_square = lambda s, g: mean(0.999)(s, g * g)
    squares = jax.tree.map(of_square, squares, gradients)

    def updated(p, m, s):
        m, s = m / (1 - 0.9 ** (i + 1)), s / (1 - 0.999 ** (i + 1))
        return p - rate * m / (jnp.sqrt(s) + 1e-8)

    return jax.tree.map(updated, params, means, squares), means, squares


# %% [markdown]
# ## Training
#
# One jitted step draws a batch, computes targets, loss and gradients, and updates. `scan` runs 100 steps as one program, and
# collects their losses: Python is called once for a hundred steps.

# %%
STEPS, CHUNK = 2500, 100


def learning_rate(i):
    """Rises for a twentieth of the run, then falls to zero along a cosine."""
    done = (i + 1) / STEPS
    return 0.01 * jnp.minimum(20 * done, (1 + jnp.cos(jnp.pi * done)) / 2)


def step(state, i):
    value, gradients = jax.value_and_grad(loss)(state[0], batch(i))
    return adam(*state, gradients, i, learning_rate(i)), value


@jax.jit
def steps(state, first):
    return jax.lax.scan(step, state, first + jnp.arange(CHUNK))


zeros = jax.tree.map(np.zeros_like, params)
state, losses = (params, zeros, zeros), []
for first in range(0, STEPS, CHUNK):
    state, values = steps(state, first)
    losses.append(values)
    if first % 500 == 0:
        print(f"steps from {first:4d}: loss {values.mean():.2f}")
params, losses = state[0], np.concatenate(losses)

# %% [markdown]
# ## What it learned
#
# The comparison is the best constant: the median, which has the least mean absolute error of all constants.

# %%
matrices = np.concatenate([batch(STEPS + i) for i in range(16)])
predicted = np.asarray(network(params, matrices))
radii = np.asarray(targets(matrices))
error = np.mean(np.abs(predicted - radii))
constant = np.mean(np.abs(radii - np.median(radii)))
print(f"best constant: {constant:.2f}, network: {error / constant:.0%} of it")

# %%
from matplotlib import pyplot

figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
smooth = np.convolve(losses, np.ones(50) / 50, "valid")
left.semilogy(losses, color="C0", alpha=0.2, linewidth=0.5)
left.semilogy(np.arange(len(smooth)) + 25, smooth, color="C0", label="network")
dashed = dict(color="black", linestyle="--", linewidth=1)
left.axhline(constant, label="best constant", **dashed)
left.set(xlabel="step", ylabel="mean absolute error", title="Loss")
left.legend()
right.scatter(radii, predicted, s=6, alpha=0.5)
right.axline((0, 0), slope=1, **dashed)
style = dict(xlabel="true radius", ylabel="predicted", aspect="equal")
_ = right.set(title="1,024 new matrices", **style)
# %% [markdown]
# ## Has it learned the shape of the function?
#
# The spectral radius is *homogeneous*: twice the matrix has twice the radius. Nobody told the network. But it is piecewise
# linear: beyond the matrices that it has seen it continues along straight lines, which suits such a function.

# %%
scales = jnp.array([0.5, 1.0, 2.0])
ratio = lambda s: jnp.mean(network(params, s * matrices)) / jnp.mean(s * radii)
for s, r in zip(scales, jax.jit(jax.vmap(ratio))(scales)):
    print(f"matrices times {s:.1f}: predicted / true = {r:.1f}")

# %% [markdown]
# And its gradient at the rotation resembles the true one, which was no target either:

# %%
slope_of_network = jax.jit(jax.grad(predict, argnums=1))
ours = slope_of_network(params, rotation.astype(complex)).real
true = slope_at(rotation)
cosine = jnp.sum(ours * true) / jnp.linalg.norm(ours) / jnp.linalg.norm(true)
print(f"cosine of the angle between them: {cosine:.1f}")

# %% [markdown]
# The program `notebooks/spectral_radius.py` trains a network of this kind for longer, on several devices, and on several
# processes.
#
# Next: [derivatives](autodiff.ipynb), and [several devices](sharding.ipynb).
