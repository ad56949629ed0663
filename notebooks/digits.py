"""A convolutional network learns to read handwritten digits.

The 1,797 pictures of 8x8 pixels come with scikit-learn: `pip install '.[notebooks]'`. Run it with
`python notebooks/digits.py`; with `jax` in the place of `minijax` in its imports it is a JAX program, with the same
losses. The cells (`# %%`) open as a notebook in many editors.
"""

# %%
import argparse
import time

import numpy as np

import minijax as jax
import minijax.numpy as jnp

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("the pictures come with scikit-learn: pip install '.[notebooks]'") from None

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--picture", default="digits.png", help="where filters and predictions are drawn")
parser.add_argument("--losses", help="a file for the losses, step by step, as float32")
options, _ = parser.parse_known_args()

# %% The pictures (number, row, column, channel) and their digits, a fifth of them held out
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
pictures, labels = digits.images[order, :, :, None].astype(np.float32) / 16, digits.target[order].astype(np.int32)
cut = len(labels) // 5
training = jnp.asarray(pictures[cut:]), jnp.asarray(labels[cut:])
held_out = jnp.asarray(pictures[:cut]), jnp.asarray(labels[:cut])
print(f"{len(labels) - cut} pictures to learn from, {cut} held out")

# %% The model: two convolutions, the largest of each 2x2 pixels, and a dense layer
BATCH, FILTERS, CLASSES = 64, (16, 32), 10
draw_weights = jax.nn.initializers.he_normal()


def init_params(key):
    keys = jax.random.split(key, 3)
    return {
        "first": (draw_weights(keys[0], (3, 3, 1, FILTERS[0])), jnp.zeros(FILTERS[0])),
        "second": (draw_weights(keys[1], (3, 3, *FILTERS)), jnp.zeros(FILTERS[1])),
        "dense": (draw_weights(keys[2], (4 * 4 * FILTERS[1], CLASSES)), jnp.zeros(CLASSES)),
    }


def convolution(params, x):
    weights, bias = params
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.nn.relu(jax.lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=layout) + bias)


def logits(params, x):
    x = convolution(params["second"], convolution(params["first"], x))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    weights, bias = params["dense"]
    return x.reshape(len(x), -1) @ weights + bias


def loss(params, x, labels):
    told = jnp.take_along_axis(jax.nn.log_softmax(logits(params, x)), labels[:, None], axis=-1)
    return -jnp.mean(told)


@jax.jit
def accuracy(params, x, labels):
    return jnp.mean(jnp.argmax(logits(params, x), axis=-1) == labels)


# %% One step: pictures shifted by up to a pixel, the loss, the gradients, and momentum that moves the parameters
def shifted(picture, shift):
    return jax.lax.dynamic_slice(jnp.pad(picture, ((1, 1), (1, 1), (0, 0))), (*shift, 0), picture.shape)


@jax.jit
def step(i, state, data, key):
    params, speed = state
    rows_key, shift_key = jax.random.split(jax.random.fold_in(key, i))
    rows = jax.random.choice(rows_key, len(data[1]), (BATCH,), replace=False)
    batch = jax.vmap(shifted)(data[0][rows], jax.random.randint(shift_key, (BATCH, 2), 0, 3))
    value, gradients = jax.value_and_grad(loss)(params, batch, data[1][rows])
    rate = 0.05 * (1 + jnp.cos(jnp.pi * i / options.steps)) / 2
    speed = jax.tree.map(lambda s, g: 0.9 * s + g, speed, gradients)
    return (jax.tree.map(lambda p, s: p - rate * s, params, speed), speed), value


# %% Training
params = init_params(jax.random.key(0))
state, key = (params, jax.tree.map(jnp.zeros_like, params)), jax.random.key(1)
losses, start, shown = [], time.perf_counter(), 0
for i in range(options.steps):
    state, value = step(i, state, training, key)
    losses.append(value)
    if (i + 1) % max(1, options.steps // 10) == 0:
        recent = np.mean([float(v) for v in losses[shown:]])
        now = time.perf_counter()
        right = float(accuracy(state[0], *held_out))
        rate = (i + 1 - shown) / (now - start)
        print(f"step {i + 1:5d}  loss {recent:.4f}  held out: {right:.1%} right  {rate:6.0f} steps/s")
        start, shown = time.perf_counter(), i + 1
if options.losses:
    np.asarray(losses, np.float32).tofile(options.losses)

# %% What it learned
params = state[0]
chances = np.asarray(jax.nn.softmax(logits(params, held_out[0])))
predicted, true = chances.argmax(axis=-1), np.asarray(held_out[1])
print(f"right of those held out: {np.mean(predicted == true):.4f}")
for i in np.flatnonzero(predicted != true):
    print(f"picture {i}: {true[i]}, taken for {predicted[i]} ({chances[i, predicted[i]]:.0%} sure)")

# %% The picture: the first filters, and the pictures held out that it is least sure of
try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    figure, axes = pyplot.subplots(4, 8, figsize=(9, 5))
    filters = np.moveaxis(np.asarray(params["first"][0])[:, :, 0], -1, 0)
    limit = np.abs(filters).max()
    for axis, weights in zip(axes[:2].flat, filters, strict=True):
        axis.imshow(weights, cmap="RdBu", vmin=-limit, vmax=limit)
    unsure = np.argsort(chances[np.arange(cut), true])[: axes[2:].size]
    for axis, i in zip(axes[2:].flat, unsure, strict=True):
        axis.imshow(pictures[i, :, :, 0], cmap="gray_r")
        color = "black" if predicted[i] == true[i] else "red"
        axis.set_title(f"{predicted[i]}, {chances[i, predicted[i]]:.0%}", fontsize=8, color=color)
    for axis in axes.flat:
        axis.axis("off")
    figure.suptitle("Filters of the first layer; the digits that it is least sure of (red: wrong)")
    figure.savefig(options.picture, dpi=120, bbox_inches="tight")
    print("filters and predictions in", options.picture)
