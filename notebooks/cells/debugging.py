# %% [markdown]
# # Debugging
#
# A jitted function runs without Python. This notebook shows how to look inside, how to find where a NaN comes from, and how to
# read errors.

# %%
import minijax as jax
import minijax.numpy as jnp

# %% [markdown]
# ## Printing values
#
# `print` in a jitted function prints a tracer, once, while the function is traced. `jax.debug.print` is part of the program, and
# prints the value at each call. It works under every transformation; under `vmap` it prints once for each element, in any order.


# %%
@jax.jit
def f(x):
    print("traced:", x)
    jax.debug.print("x = {x}, twice {y:.2f}", x=x, y=2 * x)
    return jnp.sin(x)


f(1.0)
f(2.0)
jax.effects_barrier()

# %%
jax.grad(f)(3.0)

# %% [markdown]
# `jax.debug.callback(function, values…)` calls any function of the host with NumPy arrays, for example to collect or to plot.

# %%
seen = []


@jax.jit
def halve_until_small(x):
    def body(x):
        jax.debug.callback(lambda x: seen.append(float(x)), x, ordered=True)
        return x / 2

    return jax.lax.while_loop(lambda x: x > 1, body, x)


halve_until_small(10.0)
jax.effects_barrier()
seen

# %% [markdown]
# ## Without compilation
#
# Under `jax.disable_jit()` functions run operation by operation, so that prints, assertions and Python's debugger work. It is
# slow, but each value is an array.

# %%
with jax.disable_jit():
    jax.jit(lambda x: print("an array:", x) or x * 2)(3.0)

# %% [markdown]
# ## Where does the NaN come from?
#
# With `jax_debug_nans` every result is checked. The program that gave a NaN is run again operation by operation, and the error
# names the operation and your line.

# %% tags=["raises-exception"]
with jax.debug_nans(True):
    jax.jit(lambda x: jnp.log(x - 1) * 2)(jnp.float32(0.5))

# %% [markdown]
# ## Checks in compiled programs
#
# An `assert` on a traced value cannot work. `checkify` turns checks into results of the program: the function returns an error
# value besides its result, and `err.throw()` raises it, or not. It finds NaNs, divisions by zero and indices out of range too.

# %%
from minijax.experimental import checkify


def take(x, i):
    checkify.check(i >= 0, "i must not be negative, it is {i}", i=i)
    return x[i]


checked = jax.jit(
    checkify.checkify(take, errors=checkify.user_checks | checkify.index_checks)
)
for i in 1, 5, -1:
    error, value = checked(jnp.arange(3), i)
    print(i, (error.get() or "no error").split(" (")[0].splitlines()[0])

# %% [markdown]
# Without it an index out of range is clamped, and a write out of range is dropped, as XLA does. It is no error:

# %%
jnp.arange(3)[5], jnp.arange(3).at[5].set(9)

# %% [markdown]
# ## Reading errors
#
# An error in a traced function says what clashed, with both types. The traceback ends in your line, since the library's frames
# are left out; `JAX_TRACEBACK_FILTERING=off` shows them.


# %% tags=["raises-exception"]
def layer(w, x):
    return jnp.tanh(x @ w)


jax.jit(layer)(jnp.ones((3, 4)), jnp.ones((2, 5)))

# %% [markdown]
# A tracer that leaves its function, for example in a list, is found when it is used:

# %% tags=["raises-exception"]
leaked = []


@jax.jit
def keep(x):
    leaked.append(x * 2)
    return x


keep(1.0)
leaked[0] + 1

# %% [markdown]
# ## What was compiled, and when
#
# `jax.log_compiles()` logs each compilation. `why()` explains the last one (see
# [control flow](control_flow.ipynb)), and the stages show every form of a program:

# %%
traced = jax.jit(lambda x: jnp.where(x > 0, x, 0.0)).trace(jnp.ones(3))
print(traced.jaxpr)
print(traced.lower().as_text()[:400])

# %% [markdown]
# ## Time and memory
#
# Calls return before their results are computed. To measure, wait for them:

# %%
import time

big = jax.jit(lambda x: x @ x)
x = jnp.ones((1000, 1000))
big(x).block_until_ready()  # compiled
start = time.perf_counter()
y = big(x)
dispatched = time.perf_counter() - start
y.block_until_ready()
computed = time.perf_counter() - start
dispatched < computed

# %% [markdown]
# `jax.profiler.trace(folder)` writes a profile that Perfetto or TensorBoard shows; `compiled.cost_analysis()` and
# `compiled.memory_analysis()` have the compiler's figures.
