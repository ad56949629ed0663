# %% [markdown]
# # Control flow, and when a function is compiled again
#
# `jit` runs a Python function once to record its operations. What this means for `if` and `for`, and how to see why a function
# was traced again, is shown here.

# %%
import minijax as jax
import minijax.numpy as jnp

# %% [markdown]
# ## Python's control flow is unrolled
#
# Python's `if` and `for` run while the function is traced. They may depend on what is known then: shapes, dtypes, Python
# numbers, trees. The loop below leaves three multiplications in the program.


# %%
def power(x, n):
    y = 1.0
    for _ in range(n):
        y = y * x
    return y


jax.make_jaxpr(power, static_argnums=1)(2.0, 3)

# %% [markdown]
# They may not depend on values of arrays. The error names the argument and the line, and what to use instead.


# %% tags=["raises-exception"]
@jax.jit
def clipped_power(x, n):
    if x > 1:
        return power(x, 3)
    return x


clipped_power(2.0, 3)

# %% [markdown]
# ## Control flow in the program
#
# | function | for |
# |---|---|
# | `jnp.where(p, a, b)`, `lax.select` | a choice by element; both sides are computed |
# | `lax.cond(p, f, g, *args)`, `lax.switch` | one of several functions; one is run |
# | `lax.fori_loop(lo, hi, body, init)` | a counted loop; differentiable if the bounds are Python numbers |
# | `lax.while_loop(cond, body, init)` | until a condition; not differentiable in reverse, since nobody knows how much to keep |
# | `lax.scan(f, carry, xs)` | a loop over the first axis that collects results; differentiable |
# | `lax.map(f, xs)` | the same without a carry; `batch_size=` runs several elements at a time |
# | `lax.associative_scan(f, xs)` | all prefixes in parallel, for an associative `f` |


# %%
def safe_inverse(x):
    return jax.lax.cond(x == 0, lambda x: jnp.inf, lambda x: 1 / x, x)


(
    jax.jit(safe_inverse)(4.0),
    jax.grad(safe_inverse)(4.0),
    jax.vmap(safe_inverse)(jnp.array([0.0, 0.5])),
)

# %% [markdown]
# Under `vmap` a `cond` with a batch of conditions becomes a `select`: both branches are computed. The jaxpr shows it.

# %%
jax.make_jaxpr(jax.vmap(safe_inverse))(jnp.ones(3))

# %% [markdown]
# A carry keeps its type from one iteration to the next. Where it does not, the error shows both types.

# %% tags=["raises-exception"]
jax.lax.fori_loop(0, 3, lambda i, x: x * 1.5, jnp.int32(1))

# %% [markdown]
# A loop with `scan` is one program of constant size; unrolled in Python it grows with the number of steps.


# %%
def unrolled(x):
    for _ in range(100):
        x = jnp.sin(x)
    return x


def rolled(x):
    return jax.lax.scan(lambda x, _: (jnp.sin(x), None), x, length=100)[0]


for f in unrolled, rolled:
    print(
        f.__name__,
        len(jax.jit(f).lower(1.0).as_text().splitlines()),
        "lines of StableHLO",
    )

# %% [markdown]
# ## What a jitted function is compiled for
#
# A program is kept for each combination of: the shapes, dtypes and weak types of the arguments, the structure of containers,
# the values of static arguments, where the arrays are, and the options that programs depend on.


# %%
@jax.jit
def scale(x, factor):
    return x * factor


scale(jnp.ones(3), 2.0)
scale(jnp.ones(3), 3.0)  # another value: the same program
scale(jnp.ones(4), 2.0)  # another shape
scale(jnp.ones(3), jnp.float32(2.0))  # a number with a dtype of its own
scale._cache_size()

# %% [markdown]
# `why()` explains the last trace in words.

# %%
print(scale.why())

# %% [markdown]
# Static arguments are part of the key: each value is another program. They must be hashable.


# %%
@jax.jit(static_argnames="n")
def repeated(x, n):
    return jnp.tile(x, n)


repeated(jnp.ones(2), n=2)
repeated(jnp.ones(2), n=3)
print(repeated.why())

# %% [markdown]
# The most frequent mistake is a function that is made anew for each call: a new function has no programs. `recompile_budget`
# turns it into an error that says so.

# %% tags=["raises-exception"]
import minijax

with minijax.recompile_budget(3):
    for i in range(10):
        jax.jit(lambda x: x + 1)(jnp.ones(3))

# %% [markdown]
# ## What is not recorded
#
# Prints, appends to lists and other effects of Python happen while tracing, once. Values that a function reads from outside are
# constants of the program: later changes are not seen.

# %%
offset = 1.0
shifted = jax.jit(lambda x: x + offset)
first = shifted(1.0)
offset = 100.0
first, shifted(1.0)

# %% [markdown]
# State belongs into arguments and results, or into a reference (`jax.new_ref`), which a program may change:

# %%
counter = jax.new_ref(jnp.zeros((), jnp.int32))


@jax.jit
def count(x):
    counter[...] += 1
    return x * 2


for i in range(3):
    count(float(i))
counter[...]
