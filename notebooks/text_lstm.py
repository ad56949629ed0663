"""A recurrent network learns to write Python's documentation, character by character.

The text is the documentation in the standard library, so nothing is downloaded. Run it with
`python notebooks/text_lstm.py`; with `jax` in the place of `minijax` in its imports it is a JAX program, with the
same losses. The cells (`# %%`) open as a notebook in many editors.
"""

# %%
import argparse
import importlib
import inspect
import math
import time

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.example_libraries import optimizers

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1500)
parser.add_argument("--picture", default="text_lstm.png", help="where the loss curve is drawn")
parser.add_argument("--losses", help="a file for the losses, step by step, as float32")
options, _ = parser.parse_known_args()

# %% The text: documentation strings of the standard library, as numbers of characters
MODULES = """
argparse array ast asyncio base64 bisect builtins calendar cmath cmd codecs collections concurrent.futures configparser
contextlib copy csv dataclasses datetime decimal difflib dis doctest email enum fileinput fractions functools gettext
glob gzip hashlib heapq html http.client http.cookies inspect io itertools json logging logging.handlers lzma mailbox
math mimetypes operator os pathlib pdb pickle pickletools platform plistlib pprint profile pstats pydoc queue random
re sched selectors shelve shlex shutil signal smtplib socket socketserver ssl statistics string struct subprocess sys
tarfile tempfile textwrap threading time timeit tokenize trace traceback types unittest unittest.mock
urllib.parse urllib.request uuid warnings wave weakref xml.dom.minidom xml.etree.ElementTree zipfile
""".split()


def documented(module):
    """A module, its functions and classes, and their methods."""
    yield module
    for _, item in sorted(vars(module).items(), key=lambda named: named[0]):
        if inspect.isclass(item) or inspect.isroutine(item):
            yield item
        if inspect.isclass(item):
            yield from (method for _, method in sorted(vars(item).items()) if inspect.isroutine(method))


def documentation():
    """The documentation strings, each once; modules that this Python lacks are left out."""
    strings = {}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        strings |= {
            inspect.cleandoc(item.__doc__): None for item in documented(module) if isinstance(item.__doc__, str)
        }
    return "\n\n".join(strings)


ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
code_of = {character: code for code, character in enumerate(ALPHABET)}
codes = np.array([code_of[c] for c in documentation() if c in code_of], np.uint8)
held_out, training = jnp.asarray(codes[: len(codes) // 20]), jnp.asarray(codes[len(codes) // 20 :])
print(f"{len(training):,} characters of {len(ALPHABET)} kinds to learn from, {len(held_out):,} held out")

# %% The model: an LSTM over vectors of the characters, and the logits of the character that follows
BATCH, LENGTH, EMBEDDING, WIDTH = 32, 64, 32, 128


def init_params(key):
    keys = jax.random.split(key, 3)
    return {
        "embedding": 0.5 * jax.random.normal(keys[0], (len(ALPHABET), EMBEDDING)),
        "gates": jax.nn.initializers.glorot_uniform()(keys[1], (EMBEDDING + WIDTH, 4 * WIDTH)),
        "gates bias": jnp.zeros(4 * WIDTH),
        "logits": jax.nn.initializers.glorot_uniform()(keys[2], (WIDTH, len(ALPHABET))),
        "logits bias": jnp.zeros(len(ALPHABET)),
    }


def cell(params, state, code):
    """One character: the next state, and the logits."""
    hidden, memory = state
    inputs = jnp.concatenate([params["embedding"][code], hidden], axis=-1)
    enter, keep, leave, new = jnp.split(inputs @ params["gates"] + params["gates bias"], 4, axis=-1)
    memory = jax.nn.sigmoid(keep + 1.0) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
    return (hidden, memory), hidden @ params["logits"] + params["logits bias"]


def rest(*batch):
    """The state before the first character."""
    return jnp.zeros((*batch, WIDTH)), jnp.zeros((*batch, WIDTH))


def loss(params, windows):
    """The mean cross-entropy, in nats, of each character but the first of the windows (batch, length + 1)."""
    columns = windows.T.astype(int)
    _, logits = jax.lax.scan(lambda state, code: cell(params, state, code), rest(len(windows)), columns[:-1])
    log_likelihoods = jnp.take_along_axis(jax.nn.log_softmax(logits), columns[1:, :, None], axis=-1)
    return -jnp.mean(log_likelihoods)


# %% One step: windows of the text, the loss, the gradients, the update
init_optimizer, update, params_of = optimizers.adam(optimizers.exponential_decay(1e-2, 500, 0.5))


def draw(text, key, count=BATCH):
    starts = jax.random.randint(key, (count,), 0, len(text) - LENGTH)
    return text[starts[:, None] + jnp.arange(LENGTH + 1)]


@jax.jit
def step(i, state, text, key):
    windows = draw(text, jax.random.fold_in(key, i))
    value, gradients = jax.value_and_grad(loss)(params_of(state), windows)
    return update(i, optimizers.clip_grads(gradients, 1.0), state), value


# %% Training
state, key = init_optimizer(init_params(jax.random.key(0))), jax.random.key(1)
losses, start, shown = [], time.perf_counter(), 0
for i in range(options.steps):
    state, value = step(i, state, training, key)
    losses.append(value)
    if (i + 1) % max(1, options.steps // 10) == 0:
        recent = np.mean([float(v) for v in losses[shown:]]) / math.log(2)
        now = time.perf_counter()
        print(f"step {i + 1:6d}  {recent:.3f} bits a character  {(i + 1 - shown) / (now - start):6.1f} steps/s")
        start, shown = now, i + 1
if options.losses:
    np.asarray(losses, np.float32).tofile(options.losses)

# %% What it learned: text that it has not seen, and text of its own
params = params_of(state)
nats = [float(jax.jit(loss)(params, draw(text, jax.random.key(2), 512))) for text in (training, held_out)]
known, unseen = np.array(nats) / math.log(2)
print(f"{known:.3f} bits a character in the text it learned from, {unseen:.3f} in that held out")


@jax.jit
def write(params, prompt, keys, warmth):
    """Generates one character for each key, after those of the prompt."""
    state, logits = jax.lax.scan(lambda state, code: cell(params, state, code), rest(), prompt)

    def next_character(carry, key):
        state, logits = carry
        code = jax.random.categorical(key, logits / warmth)
        return cell(params, state, code), code

    return jax.lax.scan(next_character, (state, logits[-1]), keys)[1]


PROMPT = "Return the "
written = write(params, jnp.array([code_of[c] for c in PROMPT]), jax.random.split(jax.random.key(3), 500), 0.7)
print("-" * 80, PROMPT + "".join(ALPHABET[code] for code in written.tolist()), "-" * 80, sep="\n")

# %% The loss curve
try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    print("matplotlib is not installed: no picture")
else:
    pyplot.figure(figsize=(7, 4))
    pyplot.plot(np.asarray(losses) / math.log(2), linewidth=0.5)
    pyplot.axhline(unseen, color="black", linestyle=":", label="text held out, at the end")
    pyplot.xlabel("step")
    pyplot.ylabel("bits a character")
    pyplot.title("Learning to write Python's documentation")
    pyplot.legend()
    pyplot.savefig(options.picture, dpi=120, bbox_inches="tight")
    print("loss curve in", options.picture)
