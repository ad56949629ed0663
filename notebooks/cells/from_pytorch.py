# %% [markdown]
# # Coming from PyTorch
#
# This notebook says what corresponds to what, trains a classifier in the style of JAX, and lists what surprises people who come
# from PyTorch. It does not import torch.

# %%
import minijax as jax
import minijax.numpy as jnp
import numpy as np

# %% [markdown]
# ## What corresponds to what
#
# | PyTorch | here | remark |
# |---|---|---|
# | `torch.tensor`, `torch.zeros` | `jnp.array`, `jnp.zeros` | NumPy's names and rules |
# | `x[0] = 1`, `x.add_(y)` | `x = x.at[0].set(1)`, `x = x + y` | arrays do not change; jit updates in place where it can |
# | `x.view(2, 3)`, `x.permute(1, 0)` | `x.reshape(2, 3)`, `x.transpose(1, 0)` | results never share changes |
# | `x.clone()` | `x` | nobody can change it; `jnp.array(x)` copies |
# | `loss.backward()`, `p.grad` | `jax.grad(loss)(params)` | gradients are results, not attributes |
# | `torch.no_grad()` | nothing | only what `grad` is called on is differentiated |
# | `x.detach()` | `jax.lax.stop_gradient(x)` | |
# | `nn.Module`, `state_dict()` | a pytree of arrays and a function; or flax, equinox | parameters are an argument |
# | `torch.optim.Adam` | a function of gradients and a state; or optax | |
# | `torch.manual_seed(0)` | `key = jax.random.key(0)` | a key is passed to each function that draws |
# | `DataLoader` | the same, or NumPy: anything that yields arrays | there is none in JAX |
# | `x.to("cuda")`, `x.cpu()` | `jax.device_put(x, device)`, `np.asarray(x)` | new arrays are on the first accelerator |
# | `torch.compile(f)` | `jax.jit(f)` | the whole function, or an error: there are no graph breaks |
# | `torch.vmap`, `torch.func.grad` | `jax.vmap`, `jax.grad` | torch.func was modelled on these |
# | `DistributedDataParallel`, FSDP | arrays with shardings, and the same code | [sharding](sharding.ipynb) |
# | `torch.utils.checkpoint` | `jax.checkpoint` | |
# | `torch.autograd.Function` | `jax.custom_vjp` | |
# | `register_forward_hook` | an extra result, or `jax.debug.callback` | |
# | `torch.float64` by request | `jax.config.update("jax_enable_x64", True)` first | else 64-bit types become 32-bit ones |
# | `torch.from_numpy`, DLPack | `jnp.from_dlpack(tensor)` | without a copy where memory allows |
# | `torch.save` | `pickle`, `np.savez`, or orbax | pytrees of arrays can be pickled |
# | `model.train()`, `model.eval()` | an argument of the function | |

# %% [markdown]
# ## A classifier from scratch
#
# The data are two moons: two half circles that no straight line separates. NumPy makes them; it may also load and shuffle data
# while training.


# %%
def two_moons(rng, n):
    label = rng.integers(0, 2, n)
    angle = rng.uniform(0, np.pi, n)
    first = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    second = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    points = np.where(label[:, None] == 0, first, second)
    return (points + rng.normal(0, 0.15, (n, 2))).astype(np.float32), label


rng = np.random.default_rng(0)
points, labels = two_moons(rng, 1000)
held_out, held_out_labels = two_moons(rng, 500)
points.shape, labels[:5]

# %% [markdown]
# A model is a function of parameters and input. The parameters are a list of dictionaries, a *pytree*: `jax.grad` and
# `jax.tree.map` take it as it is. There is no class, no registration, and no hidden state.


# %%
def init_model(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    scale = lambda n: jnp.sqrt(2 / n)
    return [
        {"w": scale(n) * jax.random.normal(k, (n, m)), "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes[:-1], sizes[1:])
    ]


def model(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params, x, y):
    logs = jax.nn.log_softmax(model(params, x))
    return -jnp.take_along_axis(logs, y[:, None], axis=1).mean()


@jax.jit
def step(params, momentum, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    params = jax.tree.map(lambda p, m: p - 0.05 * m, params, momentum)
    return params, momentum, value


@jax.jit
def accuracy(params, x, y):
    return (model(params, x).argmax(1) == y).mean()


params = init_model(jax.random.key(0), (2, 32, 32, 2))
momentum = jax.tree.map(jnp.zeros_like, params)
for epoch in range(21):
    order = rng.permutation(len(points)).reshape(-1, 100)
    for rows in order:
        batch = points[rows], labels[rows]
        params, momentum, value = step(params, momentum, *batch)
    if epoch % 5 == 0:
        right = accuracy(params, held_out, held_out_labels)
        print(f"epoch {epoch:2d}  loss {value:.4f}  right {right:.3f}")

# %% [markdown]
# There was no `zero_grad`: each gradient is new. There was no `.item()` either: `step` returns before the computation ends, and
# only a print or a conversion waits for it.
#
# The boundary is where both classes are equally likely. The model takes a grid of 40,000 points as one batch.

# %%
from matplotlib import pyplot

xs, ys = np.meshgrid(np.linspace(-1.7, 2.7, 200), np.linspace(-1.3, 1.8, 200))
grid = np.stack([xs.ravel(), ys.ravel()], axis=1).astype(np.float32)
probability = jax.nn.softmax(jax.jit(model)(params, grid))[:, 1]
probability = probability.reshape(xs.shape)

figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
style = dict(levels=20, cmap="RdBu_r", alpha=0.6)
filled = axes.contourf(xs, ys, probability, **style)
axes.contour(xs, ys, probability, levels=[0.5], colors="black", linewidths=1.5)
colors = np.where(held_out_labels == 0, "#1f4e79", "#a61c00")
axes.scatter(*held_out.T, s=8, c=colors)
axes.set(title="Probability of the second moon, and points held out")
_ = figure.colorbar(filled, ticks=[0, 0.5, 1])
# %% [markdown]
# ## Modules, if you want them
#
# A class can hold parameters when it is registered as a pytree. Then `grad` returns an object of the same class, with gradients
# in the place of parameters. Libraries such as equinox and flax are built on this.


# %%
import dataclasses


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Linear:
    w: jax.Array
    b: jax.Array

    def __call__(self, x):
        return x @ self.w + self.b


layer = Linear(jnp.ones((2, 1)), jnp.zeros(1))
jax.grad(lambda layer, x: layer(x).sum())(layer, jnp.array([3.0, 4.0]))

# %% [markdown]
# ## What surprises
#
# **An index out of range is no error.** A compiled program cannot raise: a read takes the nearest element, and a write is
# dropped. `mode="fill"` reads NaN or the least integer; `checkify` finds such an index.

# %%
x = jnp.arange(3)
x[10], x.at[10].get(mode="fill", fill_value=-1), x.at[10].set(7)

# %% [markdown]
# **Numbers have 32 bits.** A 64-bit NumPy array becomes a 32-bit one; sums of many small numbers may need
# `jax.config.update("jax_enable_x64", True)` at the start of the program.

# %%
jnp.asarray(np.arange(3)).dtype, jnp.asarray(np.ones(3)).dtype

# %% [markdown]
# **Side effects happen once,** while the function is traced. A print, an append and a global counter belong outside, or into
# `jax.debug.print` and `jax.debug.callback`.

# %%
calls = []


@jax.jit
def doubled(x):
    calls.append("traced")
    return 2 * x


doubled(1.0), doubled(2.0), doubled(3.0)
calls

# %% [markdown]
# **A key gives the same numbers each time.** Split it before each use. Dropout takes a key as an argument.

# %%
key = jax.random.key(0)
same = jax.random.normal(key), jax.random.normal(key)
key, used = jax.random.split(key)
same, jax.random.normal(used)

# %% [markdown]
# **A new shape is a new program.** The last batch of an epoch is often smaller: drop it, or pad it and mask the loss. `why()`
# tells what changed.


# %%
@jax.jit
def mean_square(x):
    return (x**2).mean()


for n in (100, 100, 37):
    mean_square(jnp.ones(n))
print(mean_square._cache_size(), "programs")

# %% [markdown]
# **An `if` on a value needs another form.** `jnp.where` chooses by element, `jax.lax.cond` between functions; see
# [control flow](control_flow.ipynb).

# %%
leaky = lambda x: jnp.where(x > 0, x, 0.1 * x)
jax.vmap(jax.grad(leaky))(jnp.array([-1.0, 2.0]))

# %% [markdown]
# **Arrays do not change,** so an old one stays as it was. To save memory in a training loop, *donate* the arguments that are not
# needed any more; the names may not be used afterwards.

# %%
update = jax.jit(lambda p, g: p - 0.1 * g, donate_argnums=0)
old = jnp.ones(1000)
new = update(old, jnp.ones(1000))
old.is_deleted(), new[0]

# %% [markdown]
# **Time needs a wait.** A call returns at once; `jax.block_until_ready(result)` waits, as `torch.cuda.synchronize()` does. And
# the first call compiles: leave it out of the measurement.

# %% [markdown]
# ## Where to go on
#
# - [a tour](tour.ipynb), if you have not seen it;
# - [derivatives](autodiff.ipynb): what goes beyond `backward`;
# - [learning spectral radii](learning_radii.ipynb): a regression whose targets are a program;
# - [how to use random numbers](../docs/howto/random.md) and [how to save parameters](../docs/howto/saving-and-loading.md).
