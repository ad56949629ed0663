# %% [markdown]
# # Inside: how a function becomes a program
#
# minijax traces a function to a *jaxpr*, transforms jaxprs, prints one as StableHLO, and has XLA compile that. This notebook
# reads each of these forms, writes a small interpreter and a small transformation, draws a jaxpr, and shows where the code of
# each stage is. [ARCHITECTURE](../ARCHITECTURE.md) has the map of the whole package.

# %%
import minijax as jax
import minijax.numpy as jnp

# %% [markdown]
# ## A jaxpr
#
# `jax.make_jaxpr(f)` runs `f` once with tracers. A tracer has a type but no value; each operation on it is recorded as one
# *equation*. The Python code of `f`, its names and its containers are gone: what is left is a list of operations.


# %%
def f(x, scale):
    y = jnp.sin(x) * scale["gain"]
    return jnp.sum(y * x)


x, scale = jnp.arange(3.0), {"gain": jnp.float32(2.0)}
closed = jax.make_jaxpr(f)(x, scale)
closed

# %% [markdown]
# An equation has a primitive, inputs, outputs and parameters. An input is a variable or a *literal*, a number in the text. All
# variables have types. A *closed* jaxpr also has the values of its constants: arrays that the function read from outside.

# %%
for eqn in closed.jaxpr.eqns:
    types = ", ".join(str(v.aval) for v in eqn.invars)
    result = eqn.outvars[0].aval
    print(f"{eqn.primitive.name:10s} ({types}) -> {result}  {eqn.params}")

# %%
table = jnp.array([10.0, 20.0, 30.0])
with_constant = jax.make_jaxpr(lambda i: table[0] * i)(2.0)
[str(v.aval) for v in with_constant.jaxpr.constvars], with_constant.consts

# %% [markdown]
# ## An interpreter in 25 lines
#
# To run a jaxpr, keep a value for each variable, and take the equations in order. `primitive.bind` computes an operation.
# Equations that call a function, such as `jit`, have a jaxpr as a parameter: `bind` takes it from there.

# %%
from minijax.extend.core import Literal


def run(closed, *inputs, on_equation=lambda eqn, results: None):
    values = {}

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    def write(variables, results):
        values.update(zip(variables, results))

    jaxpr = closed.jaxpr
    write(jaxpr.constvars, closed.consts)
    write(jaxpr.invars, inputs)
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        operands = [read(atom) for atom in eqn.invars]
        results = eqn.primitive.bind(*operands, **params)
        if not eqn.primitive.multiple_results:
            results = [results]
        on_equation(eqn, results)
        write(eqn.outvars, results)
    return [read(atom) for atom in jaxpr.outvars]


run(closed, x, scale["gain"]), f(x, scale)

# %% [markdown]
# An interpreter can do more than compute. This one shows each result on the way:

# %%
show = lambda eqn, results: print(f"{eqn.primitive.name:10s} {results[0]}")
run(closed, x, scale["gain"], on_equation=show)

# %% [markdown]
# It is an ordinary function of arrays, and so it can be traced, differentiated and compiled itself. Traced, it gives the same
# jaxpr again.

# %%
again = jax.make_jaxpr(lambda x, gain: run(closed, x, gain))(x, scale["gain"])
str(again) == str(closed)

# %% [markdown]
# ## A transformation in 25 lines
#
# A transformation is an interpreter whose values are something else. Forward-mode derivatives carry pairs: a primal and a
# tangent. For each primitive there is a rule from pairs to a pair.

# %%
rules = {
    "sin": lambda x, t: (jnp.sin(x), t * jnp.cos(x)),
    "mul": lambda x, t, y, u: (x * y, t * y + x * u),
    "reduce_sum": lambda x, t, axes, out_sharding: (x.sum(axes), t.sum(axes)),
}


def forward(closed, primals, tangents):
    pairs = dict(zip(closed.jaxpr.invars, zip(primals, tangents)))

    def read(atom):
        return (atom.val, 0.0) if isinstance(atom, Literal) else pairs[atom]

    for eqn in closed.jaxpr.eqns:
        operands = [value for atom in eqn.invars for value in read(atom)]
        rule = rules[eqn.primitive.name]
        pairs[eqn.outvars[0]] = rule(*operands, **eqn.params)
    return read(closed.jaxpr.outvars[0])


direction = jnp.array([1.0, 0.0, -1.0])
ours = forward(closed, (x, scale["gain"]), (direction, 0.0))
theirs = jax.jvp(lambda x: f(x, scale), (x,), (direction,))
ours, theirs

# %% [markdown]
# minijax works in the same way, with two differences. Its interpreters run while the function is traced, so that no jaxpr need
# be made first. And its rules are methods of the primitives.

# %% [markdown]
# ## Reverse mode: linearize, then transpose
#
# Reverse mode has no rules of its own. First the function is *linearized* at a point: its derivative, a linear function of the
# tangent, is recorded as a jaxpr. The primal values that it reads are constants of that jaxpr, the *residuals*.

# %%
g = lambda x: f(x, scale)
value, derivative = jax.linearize(g, x)
linear = jax.make_jaxpr(derivative)(x)
linear

# %%
print(*linear.consts, sep="\n")

# %% [markdown]
# Then the linear jaxpr is *transposed*: it is walked backwards, and each linear operation becomes its transpose. A sum becomes
# a broadcast; a product with a residual stays one; a value that is read twice gets the sum of two cotangents (`add_any`).

# %%
transposed = jax.linear_transpose(derivative, x)
jax.make_jaxpr(transposed)(1.0)

# %% [markdown]
# Applied to the cotangent 1, this is the gradient. `jax.grad` does both steps while it traces, in one jaxpr:

# %%
transposed(1.0)[0], jax.grad(g)(x)

# %%
jax.make_jaxpr(jax.grad(g))(x)

# %% [markdown]
# ## What vmap does
#
# `vmap` gives each operation one more axis. Elementwise operations look as before; a reduction gets the next axis; an operand
# without the axis is left as it is where its operation allows. There is no loop, and there is no equation for `vmap`.

# %%
jax.make_jaxpr(jax.vmap(g))(jnp.ones((5, 3)))

# %% [markdown]
# Where the operation itself changes is seen at a product of a matrix with a vector: with a batch of vectors it is a product of
# two matrices, and with a batch of matrices too it has a batch axis.

# %%
w, v = jnp.ones((4, 3)), jnp.ones(3)
batches = jnp.ones((5, 4, 3)), jnp.ones((5, 3))
for name, function, operands in (
    ("neither", jnp.dot, (w, v)),
    ("vectors", jax.vmap(jnp.dot, (None, 0)), (w, batches[1])),
    ("both", jax.vmap(jnp.dot), batches),
):
    (eqn,) = [
        e
        for e in jax.make_jaxpr(function)(*operands).eqns
        if e.primitive.name == "dot_general"
    ]
    contracted, batched = eqn.params["dimension_numbers"]
    print(f"{name:8s} contracted {contracted}, batch {batched}")

# %% [markdown]
# ## A picture
#
# A jaxpr is a graph: equations are boxes, and an arrow leads from an equation to each reader of its results. A box stands one
# row below the lowest of its inputs.

# %%
from matplotlib import pyplot


def draw(axes, jaxpr, title):
    boxes, row_of, columns = {}, {}, {}

    def box(variable, text, row, color):
        columns[row] = columns.get(row, 0) + 1
        row_of[variable] = row
        boxes[variable] = (columns[row] - 1, -row, text, color)

    arrows = []
    for v in (*jaxpr.constvars, *jaxpr.invars):
        color = "#d9ead3" if v in jaxpr.invars else "#eeeeee"
        box(v, v.aval.str_short(short_dtypes=True), 0, color)
    for eqn in jaxpr.eqns:
        sources = [v for v in eqn.invars if not isinstance(v, Literal)]
        row = 1 + max((row_of[v] for v in sources), default=0)
        name = eqn.primitive.name
        literals = [str(v.val) for v in eqn.invars if isinstance(v, Literal)]
        text = f"{name} {', '.join(literals)}".strip()
        box(eqn.outvars[0], text, row, "#cfe2f3")
        arrows += [(v, eqn.outvars[0]) for v in sources]
    width = max(columns.values())
    place = {
        v: ((column + 0.5) * width / columns[-row], row)
        for v, (column, row, _, _) in boxes.items()
    }
    for v, (_, _, text, color) in boxes.items():
        style = dict(boxstyle="round,pad=0.35", fc=color, ec="#555555")
        centred = dict(ha="center", va="center", fontsize=8)
        axes.text(*place[v], text, bbox=style, **centred)
    for source, target in arrows:
        bend = f"arc3,rad={0.25 if row_of[target] - row_of[source] > 1 else 0}"
        style = dict(
            arrowstyle="->",
            color="#777777",
            shrinkA=11,
            shrinkB=11,
            connectionstyle=bend,
        )
        ends = place[target], place[source]
        axes.annotate("", *ends, arrowprops=style, zorder=0)
    lowest = -max(row_of.values())
    axes.set(title=title, xlim=(0, width), ylim=(lowest - 0.5, 0.5))
    axes.axis("off")


figure, (left, middle, right) = pyplot.subplots(
    1, 3, figsize=(11, 4.8), layout="constrained", width_ratios=(1, 1.2, 2)
)
draw(left, jax.make_jaxpr(g)(x).jaxpr, "g")
draw(middle, jax.make_jaxpr(derivative)(x).jaxpr, "its derivative, linearized")
draw(right, jax.make_jaxpr(jax.grad(g))(x).jaxpr, "its gradient")

# %% [markdown]
# Green boxes are arguments, grey ones residuals. The gradient has the function on the way down, and its transposed derivative
# below.

# %% [markdown]
# ## The text that XLA receives
#
# `lower` prints the jaxpr as StableHLO: each equation becomes one operation or a few, with the types of tensors. The results
# of this stage do not depend on the machine.

# %%
lowered = jax.jit(g).lower(x)
print(lowered.as_text())

# %% [markdown]
# ## What XLA makes of it
#
# XLA optimizes the module for a device: here it joins all operations to one *fusion*, a loop that reads `x` once and keeps
# nothing between. The text is in HLO, XLA's own language.

# %%
import re

optimized = lowered.compile().as_text()
start = optimized.index("\n%")
print(re.sub(r", metadata=\{.*?\}", "", optimized[start:]).strip())

# %% [markdown]
# ## Where the code is
#
# `inspect` names the file of each stage, relative to the package.

# %%
import inspect
from pathlib import Path

package = Path(jax.__file__).parent


def where(thing):
    file = inspect.getsourcefile(inspect.unwrap(thing))
    return Path(file).relative_to(package)


from minijax.dispatch import lowering
from minijax.hlo import module
from minijax.ir import body, jaxpr, trace
from minijax.run.programs import compile as compiling, launch
from minijax.transforms import batch, jvp, linearize, transpose

stages = {
    "make_jaxpr, jit": jax.jit,
    "tracing a function": body.trace_flat,
    "recording equations": trace.JaxprTrace,
    "jaxprs": jaxpr,
    "forward derivatives": jvp,
    "linearize": linearize.linearize_jaxpr,
    "transpose": transpose.backward,
    "vmap": batch,
    "from a jaxpr to a program": lowering,
    "printing StableHLO": module,
    "compiling": compiling,
    "launching": launch,
}
for stage, thing in stages.items():
    print(f"{stage:26s} {where(thing)}")

# %% [markdown]
# ## How a primitive's rules are found
#
# A primitive is an object; its rules are methods, found by Python's ordinary lookup. Families of operations share rules in base
# classes, so that most operations are one line. `jvp` differentiates, `batch` is for `vmap`, `transpose` for reverse mode,
# `lower` prints StableHLO.

# %%
rule_names = "infer", "jvp", "transpose", "batch", "lower"
for primitive in {eqn.primitive: None for eqn in closed.jaxpr.eqns}:
    print(f"{primitive.name}: {type(primitive).__name__}")
    for rule in rule_names:
        method = getattr(type(primitive), rule)
        place = f"{method.__qualname__} in {where(method)}" if method else "none"
        print(f"    {rule:10s} {place}")

# %% [markdown]
# `sin` has no transpose: it is not linear, and `linearize` leaves linear operations only. A rule calls operations, as a user
# would; so it can be traced, and a derivative of a derivative needs nothing more. The derivative of a linear operation is the
# operation itself, applied to the tangent. The rule says so, for all of them; `Zero` is a tangent that is known to be zero:

# %%
from minijax.ir.primitive import Linear1

print(inspect.getsource(Linear1.jvp))

# %% [markdown]
# A new operation needs one line, and the rule of its tangent, where a family fits. This one is a sine under another name:

# %%
from minijax.primitives.elementwise import cos, mul
from minijax.primitives.families import INEXACT, Elementwise

tangent = lambda t, ans, x: mul(t, cos(x))
my_sin_p = Elementwise("my_sin", "sine", INEXACT, tangent)
jax.make_jaxpr(jax.vmap(jax.grad(my_sin_p)))(x)

# %%
jax.jit(jax.vmap(jax.grad(my_sin_p)))(x)

# %% [markdown]
# ## Where to go on
#
# - [ARCHITECTURE](../ARCHITECTURE.md): the floors of the package, and the life of a call;
# - [execution](../docs/execution.md): keys, caches, launches;
# - [debugging](debugging.ipynb): how to look into your own programs.
