"""Random programs as people write them: closures, Python numbers, trees, custom rules, references, effects, meshes.

The statements are those of `generator`, and those below. The arguments are of mixed kinds, and a program goes through
one to four wrappers of `wrapping`. A change to the tables gives every seed another program.
"""

import dataclasses
import importlib
import random
import re
import textwrap
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import compare
import numpy as np
import transform_matrix
from fuzz import generator, wrapping

jax = compare.theirs()

PRELUDE = """
N = 3
SCALE = np.float32(1.5)
TABLE = np.arange(9.0, dtype=np.float32).reshape(3, 3) / 4
ORDER = np.array([2, 0, 1])
WEIGHTS = jnp.asarray(np.array([0.25, -0.5, 1.75], np.float32))
WEAK = jnp.asarray(1.25)
OPTIONS = {"rate": 0.1, "none": None, "steps": 2}


class Point(NamedTuple):
    x: Any
    y: Any = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Params:
    w: Any
    b: Any = None
    name: str = dataclasses.field(default="p", metadata=dict(static=True))


@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, inside, note="n"):
        self.inside, self.note = inside, note

    def tree_flatten(self):
        return (self.inside,), self.note

    @classmethod
    def tree_unflatten(cls, note, children):
        return cls(*children, note)
"""
NUMBERS = (
    "2", "-1", "0.5", "True", "np.float32(0.5)", "np.int32(2)", "np.array(1.5)", "np.bool_(True)", "N", "SCALE",
    "WEAK", "np.float16(2)", "OPTIONS['rate']", "np.int8(3)", "1j", "WEIGHTS", "TABLE", "np.ones(3)", "jnp.float32(2)",
    "np.uint8(1)", "float('inf')", "np.pi", "jnp.pi", "np.arange(3)", "WEIGHTS[0]", "TABLE[1]", "len(OPTIONS)",
)  # fmt: skip

PLAIN = """
({x} <+ - * / // % **> {s})
({s} <+ - * / - **> {x})
({x} << > <= == !=> {s})
jnp.<add multiply maximum power where_ mod arctan2 hypot logaddexp>({x}, {s})
jnp.where({b}, {x}, {s})
jnp.where({x} > 0, {x}, {s})
jnp.select([{b}, {b}], [{x}, {s}], {s})
jnp.piecewise({f}, [{f} > 1], [lambda t: t * 2, lambda t: -t])
jnp.array([{x}, {same}])
jnp.array([jnp.sum({x}), {s}, 1])
jnp.asarray({x}, <float int bool jnp.float32 jnp.bfloat16 complex>)
jnp.stack([{x}, {same_shape}], -1)
jnp.clip({x}, <0 None -1.0>, <1 2.0 SCALE>)
jnp.<linspace logspace arange>(0.0, <N 4>)
jnp.<ones_like zeros_like>({x}, dtype=<int float None bool>)
jnp.full_like({x}, {s})
jnp.full((N, 2), {s})
jnp.interp({f}, WEIGHTS, TABLE[0])
jnp.polyval(WEIGHTS, {x})
jnp.convolve({f}, WEIGHTS, <"full" "same" "valid">)
jnp.<median ptp nanmean quantile_>({f})
jnp.percentile({v}, <50 25.0>, axis={axis})
jnp.quantile({v}, <0.5 WEIGHTS[:1]>)
jnp.unique({x}, size=3)
jnp.bincount(jnp.abs({i}).ravel(), length=4)
jnp.histogram({f}, bins=3)
jnp.vectorize(lambda t: t * SCALE, signature="<(n)->(n) ()->()>")({x})
jnp.apply_along_axis(jnp.sum, {axis}, {v})
jnp.einsum("<...i,i->... ...i,ji->...j>", {v}, <WEIGHTS TABLE>)
jnp.<dot matmul inner>({v}, <WEIGHTS TABLE>)
({v} @ <WEIGHTS TABLE>)
(<WEIGHTS TABLE> @ {v})
jnp.tensordot({v}, TABLE, 1)
jnp.linalg.norm({v}, axis={axis}, ord=<1 2 None>)
jnp.linalg.<det inv slogdet>(TABLE + jnp.eye(3) * jnp.sum({f}))
jnp.linalg.solve(TABLE + 3 * jnp.eye(3), jnp.resize({f}, (3,)))
jnp.linalg.<cholesky eigvalsh>(jnp.eye(3) * (1.0 + jnp.sum({f}) ** 2))
jax.scipy.linalg.solve_triangular(jnp.eye(3) + TABLE, jnp.resize({f}, (3,)), lower=<True False>)
jax.scipy.special.<logsumexp gammaln expit logit xlogy_ entr erf>({f})
nn.<softmax log_softmax logsumexp standardize>({v}, axis={axis})
nn.<relu gelu silu swish softplus elu>({x})
nn.one_hot({i}, N, dtype=<float jnp.float32 jnp.int32>)
jax.ops.segment_sum({v}, jnp.zeros({v}.shape[0], int), num_segments=2)
lax.top_k({v}, 1)
lax.reduce({f}, 0.0, lax.add, tuple(range({f}.ndim)))
lax.reduce({x}, jnp.zeros((), {x}.dtype), lambda a, b: a + b, (0,))
lax.reduce_window({f}, 0.0, lax.add, (1,) * {f}.ndim, (1,) * {f}.ndim, "SAME")
lax.cumsum({v})
lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] + b[1]), ({v}, {same}))
lax.stop_gradient({x})
lax.optimization_barrier(({x}, {y}))
lax.select_and_gather_add_({x})
lax.convert_element_type({x}, <float int jnp.bfloat16>)
lax.dynamic_slice({v}, ({start},) + (0,) * ({v}.ndim - 1), (1,) + {v}.shape[1:])
jax.checkpoint_name_({x})
checkpoint_name({x}, "kept")
jax.numpy.fft.<fft rfft ifft>({v})
{v}[<0 -1 N-4 None ... ORDER[:1]>]
{v}[{start}]
{v}[jnp.argsort({v}, axis=0)[..., :1]]
{v}[{v} > jnp.inf]
{v}[np.array([0])]
{v}.at[<0 -1 ORDER[1] np.array([0]) ...>].<set add multiply min max get apply_>({s})
{v}.at[<0 ::2 jnp.array([0,0])>].<set add>({s}, mode="drop", unique_indices=<True False>)
{v}.at[0].apply(jnp.sin)
{v}.at[jnp.where({v} > 0, 0, 0)].add(1)
{v}.at[{start}].get(mode="fill", fill_value={s})
{x}.astype(<float int bool complex>)
{x}.<sum mean max min std prod cumsum argmax sort ravel>()
{v}.<sum mean max min cumsum argsort>(axis={axis})
{x}.reshape(-1)
{v}.T
{x} * {x}.size
{x}.sum(where={x} > 0)
jnp.sort({v}, axis={axis}, descending=True)
jnp.argsort({v}, stable=<True False>)
jnp.lexsort(({v}, {same}))
jnp.cumsum({v}, axis=0)[::-1]
jnp.pad({v}, (1, 0), constant_values=<0 2 SCALE>)
jnp.take({v}, <ORDER 0 jnp.array([0])>, axis=0)
jnp.split({v}, [1])
jnp.meshgrid({v}, WEIGHTS)
jnp.diag({v})
jnp.outer({v}, WEIGHTS)
jnp.cross(WEIGHTS, jnp.resize({f}, (3,)))
jnp.isclose({x}, {s})
jnp.any({x} > 0)
jnp.nan_to_num({f}, nan={s})
jnp.round({f}, 2)
sum([{x}, {same}])
max({x}.shape, default=0) * {x}
jax.tree.map(lambda t: t * 2, {{"a": {x}, "b": None}})
jax.tree.reduce(lambda a, b: a + b, [{x}, {same}])
jax.flatten_util.ravel_pytree({{"a": {f}, "n": None, "b": [{same}]}})[0]
Point({x}, {y})
Params(w={x}, name="q")
Box({{"in": {x}}})
jax.tree.map(jnp.add, Params({x}, {y}), Params({same_shape}, {y}))
jax.value_and_grad(lambda t: jnp.sum(jnp.sin(t) * SCALE))({f})
jax.grad(lambda p: jnp.sum(p["w"] ** 2) * p["s"])({{"w": {f}, "s": 2.0}})
jax.grad(lambda p: jnp.sum(p.w ** 2))(Params({f}, None))
jax.grad(lambda a, b: (jnp.sum(a * 2), b), has_aux=True)({f}, {x})
jax.vmap(lambda r, k: r * k, (0, None))({v}, {s})
jax.vmap(lambda p: p["a"] + 1, ({{"a": 0, "b": None}},))({{"a": {v}, "b": {s}}})
jax.vmap(lambda r: (r, 1.0), out_axes=(0, None))({v})
jax.linear_transpose(lambda t: t * SCALE + 0 * t, {f})({f})
jax.jvp(lambda t: t ** 2, ({f},), (jnp.ones_like({f}),))
jax.vjp(lambda t: jnp.sum(t * t), {f})[1](1.0)
jax.jit(lambda t, n: t * n, static_argnums=1)({x}, <3 N 0.5>)
jax.jit(lambda t, *, n: t + n, static_argnames="n")({x}, n=<2 N>)
jax.jit(lambda t, n=2: t + n)({x}, n={s})
jax.jit(lambda t, u: t, keep_unused=<True False>)({x}, {s})
jax.jit(lambda t: t * 2, inline=<True False>)({x})
jax.jit(lambda p: p)({{"x": {x}, "n": None}})
jax.nn.initializers.<normal glorot_uniform he_normal zeros>()(random.key(0), (3, 2))
random.<normal uniform>(random.fold_in(random.key(1), {count}), (N,))
random.<normal gumbel>({key}, {shape})
random.split({key}, N)
jax.vmap(lambda k: random.normal(k, (2,)))(random.split({key}, 2))
random.choice({key}, <3 WEIGHTS 5>, (2,), replace=<True False>)
random.categorical({key}, {f})
random.permutation({key}, <4 WEIGHTS>)
random.<gamma poisson beta_ dirichlet_ t>({key}, 2.0, (2,))
"""
CARRIES = (
    '{{"n": 0, "m": {x}, "none": None}}', "({x}, 0.0)", "Point({x}, np.float32(1))", "Params({x}, 2, name='c')",
    "[{x}, {y}, True]", "({x}, WEAK)", "(0, {x}, ())", "Box({x})", "{x}", "{{}}",
)  # fmt: skip
STEP = "jax.tree.map(lambda t: (t + t).astype(jnp.asarray(t).dtype) if jnp.ndim(t) >= 0 else t, {})"


def rows_of(table: str) -> list[str]:
    return [row for row in table.strip().splitlines() if not re.search(r"\w_[(>]", row)]


class Body(generator.Body):
    """Statements as people write them."""

    def expression(self) -> str:
        drawn = self.rng.random()
        if drawn < 0.45:
            return self.filled(self.rng.choice(ROWS))
        if drawn < 0.75 and self.depth < 2:
            return self.rng.choice(FORMS)(self)
        return super().expression()

    def filled(self, template: str) -> str:
        return super().filled(template).replace("{{", "{").replace("}}", "}")

    def hole_s(self) -> str:
        return self.rng.choice(NUMBERS)

    def result(self) -> str:
        """The results of a program, at times a tree."""
        names = self.newest()
        if not names:
            raise generator.NotFound
        chosen = [self.late(names) for _ in range(self.rng.randrange(1, 4))]
        first, last = chosen[0], chosen[-1]
        forms = [self.some(3)] * 4 + [
            f'{{"r": {first}, "none": None, "t": ({last}, 1.5)}}', f"Point({first}, {last})",
            f"Params({first}, [{last}])", f"[{', '.join(chosen)}]", f"({first}, SCALE, 2, TABLE)", f"{first}, WEIGHTS",
        ]  # fmt: skip
        return self.rng.choice(forms)


ROWS = rows_of(PLAIN)


# Forms: each defines what it needs and gives the text of a call.


def scan(body: Body) -> str:
    carry = body.filled(body.rng.choice(CARRIES))
    xs = body.filled(body.rng.choice(["{v}", "{{'x': {v}, 'n': None}}", "(jnp.arange(N), ORDER)", "TABLE", "None"]))
    length = ", length=2" if xs == "None" else ""
    options = body.rng.choice(["", "", ", reverse=True", ", unroll=2", ", unroll=True"])
    step = body.rng.choice(
        [
            "lambda c, x: (c, x)",
            f"lambda c, x: ({STEP.format('c')}, x)",
            "lambda c, x: (jax.tree.map(lambda t: t * 2, c), jax.tree.leaves(c))",
            "lambda c, x: (jax.tree.map(lambda t: t, c), jax.tree.map(lambda t: t * SCALE, (c, x)))",
            f"lambda c, x: (c, jax.tree.map(lambda t: t + {body.variable()}, x))",
            "jax.checkpoint(lambda c, x: (jax.tree.map(jnp.cos, c), x))",
        ]
    )
    return f"lax.scan({step}, {carry}, {xs}{length}{options})"


def while_loop(body: Body) -> str:
    state = body.filled(body.rng.choice(CARRIES))
    test = body.rng.choice(["s[0] < 3", "s[0] < N", f"(s[0] < 2) & jnp.all(s[0] < {body.rng.choice(NUMBERS)})"])
    start = body.rng.choice(["0", "0.0", "np.int32(0)", "jnp.int8(1)"])
    change = body.rng.choice(["t", "t * 2", "t + 1", "-t", "jnp.sin(t)"])
    return f"lax.while_loop(lambda s: {test}, lambda s: (s[0] + 1, jax.tree.map(lambda t: {change}, s[1])), ({start}, {state}))"


def fori_loop(body: Body) -> str:
    state = body.filled(body.rng.choice(CARRIES))
    low, high = body.rng.choice(
        [("0", "2"), ("0", "N"), ("np.int32(1)", "N"), ("0", "jnp.int32(2)"), ("jnp.int8(0)", "2")]
    )
    change = body.rng.choice(["t + i", "t * 2", "t + (i > 1)", "t", f"t + {body.variable()}"])
    unroll = body.rng.choice(["", "", ", unroll=2", ", unroll=True"])
    return f"lax.fori_loop({low}, {high}, lambda i, c: jax.tree.map(lambda t: {change}, c), {state}{unroll})"


def cond(body: Body) -> str:
    test = body.rng.choice(["True", "N > 2", f"jnp.sum(jnp.real({body.variable()})) > 0", f"{body.variable()}"])
    state = body.filled(body.rng.choice(CARRIES))
    pair = body.rng.choice(
        [
            "lambda c: c, lambda c: jax.tree.map(lambda t: t * 2, c)",
            f"lambda c: {body.variable()}, lambda c: {body.variable()}",
            "lambda c: (1.0, c), lambda c: (2.0, c)",
            "lambda c: 1, lambda c: jnp.int32(2)",
            "lambda c: (SCALE, c), lambda c: (np.float32(2), c)",
            "lambda c: jax.tree.map(jnp.sin, c), lambda c: jax.tree.map(jnp.cos, c)",
        ]
    )
    if body.rng.random() < 0.3:
        index = body.rng.choice(["N", "1", f"jnp.sum({body.variable(generator.KINDS['i'])})"])
        return f"lax.switch({index}, [{pair}, lambda c: c], {state})"
    return f"lax.cond({test}, {pair}, {state})"


def _closed(body: Body, fits: Callable = transform_matrix.is_inexact) -> tuple[str, str, Any]:
    """A function of one variable that captures no tracer, the variable, and the function's types."""
    text = body.variable(fits)
    name, shapes = body.function([body.values[text].aval], Body.some, closed=True)
    return name, text, shapes


def custom_vjp(body: Body) -> str:
    name, text, shapes = _closed(body)
    custom, scale = body.fresh("f"), body.rng.choice(["2", "N", "0.5", "SCALE", "'name'", "None"])
    factor = "1.5" if scale in ("'name'", "None") else "n"
    remat = body.rng.choice(["", "", ", optimize_remat=True"])
    shape = body.rng.choice(["first", "last", "tree", "symbolic"])
    if shape == "first":
        body.run(f"{custom} = jax.custom_vjp(lambda n, t: {name}(t), nondiff_argnums=(0,))")
        body.run(
            f"{custom}.defvjp(lambda n, t: ({name}(t), t), lambda n, t, ct: ({factor} * jax.vjp({name}, t)[1](ct)[0],){remat})"
        )
        return f"{custom}({scale}, {text})"
    if shape == "last":
        body.run(f"{custom} = jax.custom_vjp(lambda t, n: {name}(t), nondiff_argnames=('n',))")
        body.run(
            f"{custom}.defvjp(lambda t, n: ({name}(t), {{'t': t, 'none': None}}), lambda n, res, ct: (jax.vjp({name}, res['t'])[1](ct)[0],){remat})"
        )
        return f"{custom}({text}, {scale})"
    if shape == "tree":
        body.run(f"{custom} = jax.custom_vjp(lambda p: {name}(p['t']))")
        body.run(
            f"{custom}.defvjp(lambda p: ({name}(p['t']), p), lambda p, ct: ({{'t': jax.vjp({name}, p['t'])[1](ct)[0], 'n': None}},){remat})"
        )
        return f"{custom}({{'t': {text}, 'n': 2.0}})"
    body.run(f"{custom} = jax.custom_vjp(lambda t, u: {name}(t))")
    body.run(
        f"{custom}.defvjp(lambda t, u: ({name}(t.value), t.value), lambda t, ct: (jax.vjp({name}, t)[1](jax.tree.map("
        "lambda c: jnp.zeros(c.shape, c.dtype) if isinstance(c, jax.custom_derivatives.SymbolicZero) else c, ct))[0], None), symbolic_zeros=True)"
    )
    return f"{custom}({text}, {body.rng.choice(NUMBERS)})"


def custom_jvp(body: Body) -> str:
    name, text, _ = _closed(body)
    custom = body.fresh("f")
    shape = body.rng.choice(["nondiff", "defjvps", "tree", "zeros"])
    if shape == "nondiff":
        body.run(f"{custom} = jax.custom_jvp(lambda n, t: {name}(t), nondiff_argnums=(0,))")
        body.run(f"{custom}.defjvp(lambda n, p, t: jax.jvp({name}, p, t))")
        return f"{custom}({body.rng.choice(['2', 'N', 'jnp.sin', 'None', repr('s')])}, {text})"
    if shape == "defjvps":
        body.run(f"{custom} = jax.custom_jvp(lambda t, u: t * u)")
        body.run(
            f"{custom}.defjvps(lambda d, ans, t, u: 2 * d * u, {body.rng.choice(['None', 'lambda d, ans, t, u: t * d'])})"
        )
        return f"{custom}({text}, {body.rng.choice([text, '2.0', 'SCALE', 'WEIGHTS'])})"
    if shape == "tree":
        body.run(f"{custom} = jax.custom_jvp(lambda p: Point({name}(p.x), p.y))")
        body.run(
            f"{custom}.defjvp(lambda p, t: (Point({name}(p[0].x), p[0].y), Point(jax.jvp({name}, (p[0].x,), (t[0].x,))[1], t[0].y)))"
        )
        return f"{custom}(Point({text}, {body.rng.choice(['None', '1.0', text])}))"
    body.run(f"{custom} = jax.custom_jvp({name})")
    body.run(
        f"@functools.partial({custom}.defjvp, symbolic_zeros=True)\ndef _(p, t):\n    return jax.jvp({name}, p, t)"
    )
    return f"{custom}({text})"


def custom_vmap(body: Body) -> str:
    name, text, _ = _closed(body, lambda v: True)
    custom = body.fresh("f")
    body.run(f"{custom} = jax.custom_batching.custom_vmap(lambda t, n: {name}(t))")
    body.run(
        f"{custom}.def_vmap(lambda size, batched, t, n: ((r := jax.vmap({name}, 0 if batched[0] else None, axis_size=size)(t)), "
        "jax.tree.map(lambda _: True, r)))"
    )
    return f"{custom}({text}, {body.rng.choice(NUMBERS)})"


def checkpoint(body: Body) -> str:
    texts, types = body.operands()
    name, _ = body.function(types, Body.some)
    options = body.rng.choice(
        ["", ", prevent_cse=False", ", policy=jax.checkpoint_policies.dots_saveable", ", static_argnums=(1,)"]
        + [', policy=jax.checkpoint_policies.save_only_these_names("kept")']
    )
    if "static" in options:
        return f"jax.checkpoint(lambda c, n: {name}(*c), static_argnums=(1,))(({', '.join(texts)},), N)"
    return f"jax.checkpoint(lambda c: {name}(*c){options})([{', '.join(texts)}])"


def jitted(body: Body) -> str:
    texts, types = body.operands()
    name, _ = body.function(types, Body.some)
    call = ", ".join(texts)
    options = body.rng.choice(
        ["", ", inline=True", ", keep_unused=True", ", donate_argnums=(0,)", ", static_argnames='n'"]
    )
    forms = [
        f"jax.jit(lambda p, n=1: {name}(*p){options})(({call},), n=2)",
        f"jax.jit(functools.partial({name}){options.replace('n' + chr(39), 'zz' + chr(39))})({call})",
        f"jax.jit(jax.jit({name}){options.replace('n' + chr(39), 'zz' + chr(39))})({call})",
        f"jax.named_call({name}, name='called')({call})",
        f"jax.closure_convert({name}, {call})[0]({call})",
        f"jax.jit(lambda f, p: f(*p), static_argnums=0)({name}, ({call},))",
        f"jax.jit({name}).__call__({call})",
        f"[g({call}) for g in [jax.jit({name})] * 2]",
        f"jax.vmap(jax.jit({name}), axis_size=2, in_axes=None, out_axes=0)({call})",
    ]
    return body.rng.choice(forms)


def reference(body: Body) -> str:
    text = body.variable()
    ref, out = body.fresh("r"), body.fresh("f")
    fill = body.rng.choice(
        [
            f"{ref}[...] = {ref}[...] * 2",
            f"{ref}[...] += {body.rng.choice(NUMBERS)}",
            f"jax.lax.fori_loop(0, 2, lambda i, _: jax.ref.addupdate({ref}, ..., 1), None)",
            f"jax.ref.set({ref}, ..., jnp.zeros_like({ref}[...]))",
            f"lax.scan(lambda _, i: ({ref}.__setitem__(..., {ref}[...] + {ref}[...]), {ref}[...]), None, None, length=2)",
            f"jax.jit(lambda t: {ref}.__setitem__(..., t))({ref}[...] + {ref}[...])",
            f"lax.cond(N > 2, lambda: {ref}.__setitem__(..., {ref}[...]), lambda: None)",
            f"jax.ref.swap({ref}, ..., {text})",
        ]
    )
    end = body.rng.choice([f"{ref}[...]", f"jax.freeze({ref})", f"jax.ref.get({ref})"])
    body.run(f"def {out}(t):\n    {ref} = jax.new_ref(t)\n    {fill}\n    return {end}")
    return f"{out}({text})"


def effect(body: Body) -> str:
    text = body.variable()
    shape = f"jax.typeof({text})" if body.rng.random() < 0.3 else f"jax.ShapeDtypeStruct({text}.shape, {text}.dtype)"
    kind = body.rng.choice(["debug", "print", "pure", "io", "ordered"])
    if kind == "debug":
        body.run(f"jax.debug.callback(nothing, {text}, ordered={body.rng.choice([True, False])})")
        return f"{text} * 1"
    if kind == "print":
        body.run(f"jax.debug.print('', {text})")
        return f"{text} * 1"
    if kind == "pure":
        method = body.rng.choice(["sequential", "expand_dims", "broadcast_all"])
        call = f"jax.pure_callback(same, {shape}, {text}, vmap_method='{method}')"
    else:
        call = f"jax.experimental.io_callback(same, {shape}, {text}, ordered={kind == 'ordered'})"
    return f"lax.stop_gradient({call})" if body.scope["differentiated"] and body.rng.random() < 0.2 else call


def mesh(body: Body) -> str:
    text = body.variable()
    body.run("mesh = jax.make_mesh((2,), ('m',), devices=jax.devices()[:2])")
    return body.rng.choice(
        [
            f"jax.shard_map(lambda t: t * 2, mesh=mesh, in_specs=jax.P(), out_specs=jax.P())({text})",
            f"jax.shard_map(lambda t: lax.psum(t, 'm'), mesh=mesh, in_specs=jax.P('m'), out_specs=jax.P())(jnp.stack([{text}] * 2))",
            f"jax.shard_map(lambda t: t + lax.axis_index('m'), mesh=mesh, in_specs=jax.P('m'), out_specs=jax.P('m'))(jnp.stack([{text}] * 2))",
            f"lax.with_sharding_constraint({text}, jax.NamedSharding(mesh, jax.P()))",
            f"jax.shard_map(lambda t: jnp.sin(t) * {body.rng.choice(NUMBERS)}, mesh=mesh, in_specs=jax.P(), out_specs=jax.P(), check_vma=False)({text})",
        ]
    )


def derivative(body: Body) -> str:
    text = body.variable(transform_matrix.is_inexact)
    name, _ = body.function(
        [body.values[text].aval], lambda inner: inner.like((), np.dtype(np.float32)), differentiated=True
    )
    return body.rng.choice(
        [
            f"jax.grad(lambda p: {name}(p['a']) * p['s'])({{'a': {text}, 's': 2.0}})",
            f"jax.value_and_grad(lambda p: ({name}(p.w), p), has_aux=True)(Params({text}))",
            f"jax.grad({name})({text})",
            f"jax.vjp({name}, {text})[1](1.0)",
            f"jax.linearize({name}, {text})[1]({text})",
            f"jax.jvp({name}, [{text}], [{text}])",
            f"jax.vmap(jax.grad({name}), axis_size=2, in_axes=None)({text})",
            f"jax.jit(jax.grad({name}))({text})",
            f"jax.grad(jax.checkpoint({name}))({text})",
        ]
    )


def descent(body: Body) -> str:
    """A few steps of gradient descent over a tree of parameters."""
    text = body.variable(lambda v: generator.dtype_of(v) == "float32")
    loss, step = body.fresh("f"), body.fresh("f")
    body.run(f"def {loss}(p):\n    return jnp.mean((p['w'] * SCALE + p['b'] - 1) ** 2)")
    body.run(
        f"@jax.jit\ndef {step}(p, _=None):\n    g = jax.grad({loss})(p)\n    return jax.tree.map(lambda a, b: a - OPTIONS['rate'] * b, p, g)"
    )
    start = f"{{'w': {text}, 'b': {body.rng.choice(['0.0', '1.5', 'np.float32(0)', 'WEIGHTS[0]'])}, 'n': None}}"
    return body.rng.choice(
        [f"{step}({step}({start}))", f"lax.fori_loop(0, 2, lambda i, p: {step}(p), {start})",
         f"lax.scan(lambda p, _: ({step}(p), {loss}(p)), {start}, length=2)"]
    )  # fmt: skip


FORMS = [
    scan, scan, while_loop, fori_loop, cond, cond, custom_vjp, custom_vjp, custom_jvp, custom_vmap, checkpoint, jitted,
    jitted, reference, reference, effect, mesh, derivative, descent,
]  # fmt: skip


# Arguments


def _leaf(rng: random.Random) -> str:
    shape = rng.choice(["()", "(3,)", "(3,)", "(2, 3)", "(3, 3)", "(1,)"])
    number = round(rng.uniform(-2, 2), 2)
    ramp = f"(np.arange(np.prod({shape}), dtype=np.float32) * 0.25 + {number}).reshape({shape})"
    return rng.choice(
        [ramp] * 8
        + [f"jnp.asarray({ramp})"] * 3
        + [
            "1.5", "2", "True", "0.5 + 1j", "-0.25", "3", f"np.float32({number})", "np.int32(3)", "np.bool_(True)",
            "np.float16(0.5)", "np.int8(-2)", f"{ramp}.astype(np.int32)", f"{ramp} > 0", f"{ramp}.astype(jnp.bfloat16)",
            f"{ramp}.astype(np.complex64)", "jnp.asarray(1.25)", "jnp.asarray(2)", f"{ramp}.astype(np.float16)",
            f"jnp.broadcast_to(jnp.asarray(0.75), {shape})", f"{ramp}.astype(np.float64)", f"{ramp}.astype(np.uint8)",
        ]
    )  # fmt: skip


def _argument(rng: random.Random) -> str:
    drawn = rng.random()
    if drawn < 0.6:
        return _leaf(rng)
    if drawn < 0.65:
        return rng.choice(["random.key(3)", "random.PRNGKey(1)", "None", "()"])
    return rng.choice(
        [
            f"{{'w': {_leaf(rng)}, 'b': None}}", f"{{'w': {_leaf(rng)}, 'b': {_leaf(rng)}}}",
            f"({_leaf(rng)}, {_leaf(rng)})", f"[{_leaf(rng)}, None]", f"Point({_leaf(rng)}, {_leaf(rng)})",
            f"Point({_leaf(rng)})", f"Params({_leaf(rng)}, {_leaf(rng)}, name='a')", f"Params({_leaf(rng)})",
            f"Box({_leaf(rng)})", f"{{'in': {{'x': {_leaf(rng)}}}, 'z': ({_leaf(rng)},)}}",
        ]
    )  # fmt: skip


# Programs


def nothing(*values: Any) -> None:
    pass


def same(value: Any) -> Any:
    return np.asarray(value)


def scope_of(package: ModuleType) -> dict[str, Any]:
    """The names that a program may use, of one side."""
    named = {"jax": package, "np": np, "dataclasses": dataclasses, "NamedTuple": NamedTuple, "Any": Any}
    named |= {"nothing": nothing, "same": same, "functools": importlib.import_module("functools")}
    of = {"jnp": "numpy", "lax": "lax", "nn": "nn", "random": "random"}
    named |= {name: importlib.import_module(f"{package.__name__}.{module}") for name, module in of.items()}
    for module in ("scipy.linalg", "scipy.special", "flatten_util", "custom_batching", "extend.core", "experimental"):
        importlib.import_module(f"{package.__name__}.{module}")
    named["checkpoint_name"] = importlib.import_module(f"{package.__name__}.ad_checkpoint").checkpoint_name
    exec(PRELUDE, named)
    return named


@dataclasses.dataclass(frozen=True)
class Program:
    """A function's text, the texts of its arguments, and the wrappers it goes through, the innermost first."""

    seed: int
    source: str
    args: tuple[str, ...]
    transforms: tuple[tuple[str, int], ...]
    x64: bool = False

    def __str__(self) -> str:
        args = "\n".join(f"# {i}: {a}" for i, a in enumerate(self.args))
        return f"# seed {self.seed}: {' of '.join([*map(str, reversed(self.transforms)), 'program'])}{', x64' * self.x64}\n{args}\n{self.source}"

    def on(self, package: ModuleType) -> tuple[Callable, tuple]:
        """The function under its wrappers, and its arguments."""
        scope = scope_of(package)
        exec(self.source, scope)
        args = tuple(eval(a, scope) for a in self.args)
        return wrapping.wrapped(package, scope["program"], args, self.transforms)


def drawn_arguments(rng: random.Random) -> tuple[bool, tuple[str, ...], tuple[tuple[str, int], ...]]:
    """Whether numbers are wide, the texts of arguments, and wrappers."""
    return rng.random() < 0.1, tuple(_argument(rng) for _ in range(rng.randrange(1, 4))), wrapping.drawn(rng)


def generate(seed: int, kind: type[Body] = Body, source: random.Random | None = None) -> Program:
    """The program of that seed, of statements of a `kind`; drawn from `source`, by default that of the seed."""
    rng = source or random.Random(seed)
    x64, texts, transforms = drawn_arguments(rng)
    params, lines = [f"a{i}" for i in range(len(texts))], []

    with jax.enable_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scope = scope_of(jax) | {"x64": x64}
        scope["differentiated"] = any(name in wrapping.DERIVATIVES for name, _ in transforms)
        args = [eval(text, scope) for text in texts]

        def trace(*given: Any) -> None:
            named = dict(zip(params, given, strict=True))
            values = {
                generator.spelled(name, path): leaf
                for name, tree in named.items()
                for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
            }
            values |= {"WEIGHTS": scope["WEIGHTS"]}
            body = kind(rng, {**scope, **named}, values, 0)
            body.own += params
            returned = "None"
            try:
                body.grow(rng.randrange(1, 5), errors=rng.random() < 0.04)
                returned = body.result()
            except (generator.Rejected, generator.NotFound):
                pass
            lines.extend([*body.lines, f"return {returned}"])

        jax.eval_shape(trace, *args)
    lines = [f"def program({', '.join(params)}):", *textwrap.indent("\n".join(lines), "    ").splitlines()]
    lines = lines if rng.random() < 0.1 else generator.without_unused(lines)
    return Program(seed, "\n".join(lines) + "\n", texts, transforms, x64)
