# %% [markdown]
# # A tour of minijax
#
# `import minijax as jax` gives a program JAX's Python API: arrays like NumPy's, and functions that transform functions.
# Programs are compiled by XLA, the compiler that JAX uses, for CPUs, GPUs and TPUs. This tour takes about fifteen minutes.
# Every cell is also a JAX program: with `import jax` in the place of `import minijax as jax` it prints the same.

# %%
import minijax as jax
import minijax.numpy as jnp

jax.__version__, jax.devices()

# %% [markdown]
# ## Arrays
#
# `jax.numpy` has NumPy's functions. The arrays are on a device, and they cannot be changed in place: `x.at[i].set(v)` gives
# a new array. In a jitted function the compiler turns that into an update in place where it can.

# %%
x = jnp.arange(12.0).reshape(3, 4)
x

# %%
x.at[1].set(0), x.at[:, 0].add(100)

# %% [markdown]
# Numbers have 32 bits by default. A Python number has no width of its own: it takes the dtype of the array beside it. Such a
# type is called *weak*.

# %%
half = jnp.ones(3, jnp.bfloat16)
(half * 2.5).dtype, (half * jnp.float32(2.5)).dtype

# %% [markdown]
# ## grad: derivatives of programs
#
# `jax.grad(f)` is a function: the gradient of `f` with respect to its first argument. It works through Python control flow,
# containers and other transformations.


# %%
def loss(weights, inputs, targets):
    predictions = jnp.tanh(inputs @ weights["w"] + weights["b"])
    return jnp.mean((predictions - targets) ** 2)


key = jax.random.key(0)
inputs = jax.random.normal(key, (64, 3))
targets = jnp.tanh(inputs @ jnp.array([1.0, -2.0, 0.5]) + 0.3)
weights = {"w": jnp.zeros(3), "b": jnp.zeros(())}
jax.grad(loss)(weights, inputs, targets)

# %% [markdown]
# Containers of arrays such as this dictionary are *pytrees*: the gradient has the same structure as the weights, and
# `jax.tree.map` applies a function to all arrays of several trees.

# %% [markdown]
# ## jit: compiled functions
#
# `jax.jit(f)` traces `f` once for each combination of shapes and dtypes of its arguments: it runs the Python code with
# *tracers* in the place of arrays, records the operations, and compiles them into one program. Later calls run that program;
# the Python code is not run again.


# %%
@jax.jit
def step(weights, inputs, targets):
    print("tracing step")
    value, slopes = jax.value_and_grad(loss)(weights, inputs, targets)
    return jax.tree.map(lambda w, g: w - 0.5 * g, weights, slopes), value


for i in range(200):
    weights, value = step(weights, inputs, targets)
    if i % 50 == 0:
        print(i, f"{value:.4f}")
weights

# %% [markdown]
# "tracing step" was printed once. What was recorded can be read: it is a *jaxpr*, a list of operations with types.

# %%
jax.make_jaxpr(jax.grad(lambda x: jnp.sin(x) * x))(1.0)

# %% [markdown]
# ## vmap: functions of batches
#
# `jax.vmap(f)` turns a function of one example into one of a batch. There is no loop: each operation gets one more axis.


# %%
def distance(a, b):
    return jnp.sqrt(jnp.sum((a - b) ** 2))


points = jax.random.normal(jax.random.key(1), (5, 2))
all_pairs = jax.vmap(jax.vmap(distance, in_axes=(None, 0)), in_axes=(0, None))
all_pairs(points, points).round(2)

# %% [markdown]
# Transformations nest in any order. The Hessian is a derivative of a derivative; here one for each of five points:

# %%
rosenbrock = lambda p: (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
jax.vmap(jax.hessian(rosenbrock))(points).shape

# %% [markdown]
# ## Random numbers
#
# There is no hidden state: each function takes a *key*, and the same key gives the same numbers. `jax.random.split` makes new
# keys of one.

# %%
first, second = jax.random.split(jax.random.key(42))
(
    jax.random.normal(first, (3,)),
    jax.random.normal(first, (3,)),
    jax.random.normal(second, (3,)),
)

# %% [markdown]
# ## Loops and branches on values
#
# While a function is traced, its values are not known yet, so that `if x > 0` cannot choose. The error says so, and names the
# line.

# %% tags=["raises-exception"]
jax.jit(lambda x: x if x > 0 else -x)(1.0)

# %% [markdown]
# `jnp.where` chooses by element; `jax.lax.cond`, `while_loop`, `fori_loop` and `scan` are control flow that is compiled.


# %%
@jax.jit
def collatz_steps(n):
    def step(state):
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return jax.lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]


collatz_steps(27)

# %% [markdown]
# `scan` is a loop that collects results, and that can be differentiated in reverse:

# %%
carry, sums = jax.lax.scan(
    lambda total, x: (total + x, total + x), 0.0, jnp.arange(5.0)
)
carry, sums

# %% [markdown]
# ## What a program costs
#
# A jitted function can be lowered and compiled without calling it. The compiler counts its operations and bytes.

# %%
compiled = jax.jit(lambda x: x @ x).lower(jnp.ones((256, 256))).compile()
costs = compiled.cost_analysis()
f"{costs['flops']:.0f} operations, {compiled.memory_analysis().output_size_in_bytes} bytes of results"

# %% [markdown]
# ## Where to go on
#
# - [autodiff](autodiff.ipynb): derivatives of all kinds, rules of your own, memory;
# - [control flow and recompilation](control_flow.ipynb);
# - [sharding](sharding.ipynb): arrays and programs on several devices;
# - [debugging](debugging.ipynb): prints, NaNs, tracebacks;
# - [inside](inside.ipynb): how minijax works;
# - [coming from PyTorch](from_pytorch.ipynb).
