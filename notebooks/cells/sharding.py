# %% [markdown]
# # Arrays and programs on several devices
#
# This notebook runs on eight virtual devices of the CPU. On eight GPUs or TPUs the same code runs unchanged, without the option
# in the first cell.

# %%
import minijax as jax
import minijax.numpy as jnp

jax.config.update("jax_num_cpu_devices", 8)  # before the first array
from minijax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.devices()

# %% [markdown]
# ## Meshes and shardings
#
# A *mesh* is an array of devices whose axes have names. A *sharding* says over which axes of the mesh each axis of an array is
# split. An axis that is not named is on all devices of that part of the mesh: the array is *replicated* over them.

# %%
mesh = jax.make_mesh(
    (4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto)
)
x = jax.device_put(
    jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, P("data", "model"))
)
x.sharding, x.addressable_shards[0].data.shape

# %%
jax.debug.visualize_array_sharding(x)

# %% [markdown]
# The same as a picture, for four shardings of one array: each colour is a set of devices.

# %%
import numpy as np
from matplotlib import pyplot


def draw(axes, array):
    owners = np.zeros(array.shape)
    for i, (devices, index) in enumerate(_parts(array).items()):
        owners[index] = i
        centre = [
            (s.indices(n)[0] + s.indices(n)[1]) / 2 - 0.5
            for s, n in zip(index, array.shape)
        ]
        axes.text(
            centre[1],
            centre[0],
            ",".join(map(str, devices)),
            ha="center",
            va="center",
            fontsize=8,
        )
    axes.imshow(owners, cmap="Pastel1", vmin=0, vmax=8)
    axes.set(title=str(array.sharding.spec), xticks=[], yticks=[])


def _parts(array):
    """The index of each part of an array, by the devices that hold it."""
    parts = {}
    for shard in array.addressable_shards:
        parts.setdefault(str(shard.index), ([], shard.index))[0].append(shard.device.id)
    return {tuple(devices): index for devices, index in parts.values()}


figure, all_axes = pyplot.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
for axes, spec in zip(
    all_axes, (P("data", "model"), P("data"), P(None, "model"), P(("data", "model")))
):
    draw(axes, jax.device_put(x, NamedSharding(mesh, spec)))

# %% [markdown]
# ## Programs follow their arguments
#
# A jitted function is compiled for the shardings of its arguments. The compiler splits the work, and adds the communication
# that is needed: here the axis that a product contracts is split, and so the partial products are summed over devices.

# %%
w = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("model", None)))
product = jax.jit(lambda x, w: x @ w)
y = product(x, w)
compiled = product.lower(x, w).compile().as_text()
(
    y.sharding.spec,
    [
        name
        for name in ("all-reduce", "all-gather", "all-to-all")
        if f" {name}(" in compiled
    ],
)

# %% [markdown]
# `with_sharding_constraint` decides for a value inside the program; `out_shardings=` of `jit` for results.

# %%
spread = jax.jit(
    lambda x: jax.lax.with_sharding_constraint(
        x * 2, NamedSharding(mesh, P("data", None))
    )
)
spread(x).sharding.spec

# %% [markdown]
# ## Devices that are not here
#
# A program can be compiled for a TPU or GPU machine that is not attached, to see whether it fits and what it communicates: see
# `minijax.devices_of` and the page on accelerators. An `AbstractMesh` suffices to trace and lower it.

# %%
large = jax.sharding.AbstractMesh((64, 4), ("data", "model"))
shape = jax.ShapeDtypeStruct(
    (4096, 1024), jnp.bfloat16, sharding=NamedSharding(large, P("data", "model"))
)
lowered = jax.jit(jnp.tanh).trace(shape).lower(lowering_platforms=("tpu",))
print(*lowered.as_text().splitlines()[:3], sep="\n")

# %% [markdown]
# ## Shardings in types
#
# Axes of a mesh are *Explicit* by default: then the sharding is part of the type of each value, known while tracing. Where it is
# ambiguous, it is an error rather than a guess.

# %%
explicit = jax.make_mesh((4, 2), ("data", "model"))
jax.set_mesh(explicit)
a = jax.device_put(jnp.ones((8, 16)), P("data", None))
b = jax.device_put(jnp.ones((16, 4)), P(None, "model"))
c = jax.device_put(jnp.ones((16, 4)), P("data", None))
jax.typeof(a), jax.typeof(a @ b), jax.typeof((a @ b).sum(0))

# %% tags=["raises-exception"]
jax.device_put(jnp.ones((8, 16)), P(None, "data")) @ c

# %% [markdown]
# The contracted axis is split in both: is the result to be summed to all devices, or split? `out_sharding` says.

# %%
summed = jnp.matmul(
    jax.device_put(jnp.ones((8, 16)), P(None, "data")), c, out_sharding=P("data", None)
)
jax.typeof(summed)

# %% [markdown]
# ## shard_map: the program of one device
#
# In `jax.shard_map` a function is written for the part of one device, and communicates by *collectives*: `psum`, `all_gather`,
# `ppermute`, …


# %%
@jax.shard_map(mesh=explicit, in_specs=P("data", "model"), out_specs=P("data", None))
def row_sums(part):
    return jax.lax.psum(part.sum(1, keepdims=True), "model")


row_sums(jax.device_put(jnp.arange(64.0).reshape(8, 8), P("data", "model"))).ravel()

# %% [markdown]
# ## A training step over data and model
#
# The batch is split over `data`, the weights over `model`. The code is that of one device.


# %%
def loss(ws, x, y):
    hidden = jnp.tanh(x @ ws["up"])
    return jnp.mean(
        (jnp.matmul(hidden, ws["down"], out_sharding=P("data", None)) - y) ** 2
    )


@jax.jit(donate_argnums=0)
def step(ws, x, y):
    value, slopes = jax.value_and_grad(loss)(ws, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, ws, slopes), value


keys = jax.random.split(jax.random.key(0), 4)
ws = {
    "up": jax.device_put(jax.random.normal(keys[0], (16, 64)) / 4, P(None, "model")),
    "down": jax.device_put(jax.random.normal(keys[1], (64, 4)) / 8, P("model", None)),
}
x = jax.device_put(jax.random.normal(keys[2], (32, 16)), P("data", None))
y = jax.device_put(jnp.sin(x[:, :4]), P("data", None))
for i in range(101):
    ws, value = step(ws, x, y)
    if i % 25 == 0:
        print(i, f"{value:.4f}")
jax.tree.map(jax.typeof, ws)
