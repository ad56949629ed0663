"""Random programs: a seed gives the text of a function, its arguments, and the transforms that it goes through.

A program grows a statement at a time inside a trace of the oracle, which determines which statements are legal and what
types they give; so the text, which any module like jax can run, is right by construction. A few programs end in a
statement that the oracle rejected. A change to the tables below gives every seed another program.
"""

import dataclasses
import functools
import random
import re
import textwrap
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import compare
import ml_dtypes
import numpy as np
import transform_matrix

jax = compare.theirs()

SHAPES = ((), (), (1,), (3,), (3,), (2, 3), (2, 3), (3, 1), (3, 3), (1, 3), (2, 1, 3), (0,), (0, 3), (4, 2))
DTYPES = ("float32",) * 8 + (
    "bfloat16", "float16", "int32", "int32", "int8", "int16", "uint8", "uint32", "bool", "complex64",
)  # fmt: skip
WIDE = ("float64", "float64", "int64", "complex128")

# `<a b>` is one of the words; `{hole}` is filled by the method of that name below. The first variable that a
# template names is its subject, which axes, indices and shapes are about.
POINTWISE = """
lax.<sin cos tan tanh exp exp2 expm1 log log1p sqrt rsqrt cbrt logistic sinh cosh asinh atan erf erfc floor ceil>({f})
lax.<abs neg sign round is_finite square reciprocal erf_inv lgamma digamma acos asin atanh acosh>({f})
lax.<sin cos tanh exp log log1p sqrt rsqrt abs neg sign real imag conj square sinh asin>({c})
lax.<abs neg sign bitwise_not population_count clz square>({i})
lax.<add sub mul div rem max min atan2 pow nextafter eq ne lt le gt ge>({f}, {same})
lax.<add sub mul max min bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical rem div>({i}, {same})
lax.<add mul max min eq lt bitwise_and>({x}, {s})
lax.<sub div atan2 pow>({f}, {s})
lax.pow({f}, {i})
lax.integer_pow({z}, <1 2 3 -1 -2 5>)
lax.clamp({s}, {r}, {s})
lax.clamp({r}, {same}, {same})
lax.select({b}, {x}, {same})
lax.select_n({b}, {x}, {same})
lax.complex({f}, {same})
lax.convert_element_type({x}, {dtype})
lax.reduce_precision({f}, 5, 7)
lax.stop_gradient({x})
jnp.<sin cos tanh exp log sqrt sinh arcsin arctan log2 log10 sign square reciprocal cbrt rint deg2rad sinc>({x})
jnp.<isnan isfinite isinf signbit abs negative positive conj real imag angle logical_not nan_to_num exp2 expm1>({x})
jnp.<add subtract multiply divide maximum minimum power arctan2 hypot logaddexp fmin fmax copysign>({x}, {y})
jnp.<floor_divide remainder mod fmod divmod float_power heaviside nextafter>({x}, {y})
jnp.<equal not_equal less greater_equal logical_and logical_or logical_xor isclose>({x}, {y})
jnp.<bitwise_and bitwise_or left_shift right_shift>({i}, {y})
jnp.<add subtract multiply divide maximum power where floor_divide mod>({x}, {s})
jnp.<where select_n>({b}, {x}, {y})
jnp.where({b}, {x}, {s})
jnp.clip({x}, {s}, {s})
jnp.round({x}, 1)
({x} <+ - * / // % **> {y})
({x} <+ - * / // %> {s})
({s} <+ - * / **> {x})
({x} < {y})
({x} >= {y})
({x} == {y})
({b} <& | ^> {y})
({i} << {same})
{x} ** <1 2 3 -1 0.5 2.0>
-{n}
~{i}
abs({n})
{x}.astype({dtype})
nn.<relu sigmoid silu gelu softplus elu selu relu6 celu leaky_relu hard_tanh log_sigmoid soft_sign mish squareplus>({x})
nn.<softmax log_softmax standardize>({v}, axis={axis})
nn.one_hot({i}, 3)
nn.glu({v}, axis={axis})
"""
SHAPING = """
jnp.<sum prod max min mean any all var std count_nonzero nansum ptp>({x})
jnp.<sum prod max min mean any all var std nanmax>({v}, axis={axis}, keepdims=<True False>)
jnp.<sum max mean>({m}, axis=<(0, 1) (0, -1) (-1, 0)>)
jnp.<argmax argmin>({o}, axis={axis})
jnp.sum({x}, where={b}, initial=<0 1.0>)
jnp.average({v}, axis={axis})
lax.<reduce_sum reduce_max reduce_min reduce_prod>({v}, axes=({positive},))
lax.<cumsum cumprod cummax cummin>({v}, axis={positive}, reverse=<True False>)
lax.cumlogsumexp({f}, axis={positive}, reverse=<True False>)
lax.<argmax argmin>({o}, {positive}, jnp.int32)
lax.sort({v}, dimension={axis})
lax.sort(({v}, {same}), num_keys=<1 2>)
lax.top_k({v}, 1)
lax.rev({v}, ({positive},))
lax.pad({x}, jnp.zeros((), {x}.dtype), {padding})
lax.reshape({x}, (-1,)) if {x}.ndim else {x}
lax.expand_dims({x}, (<0 -1>,))
lax.squeeze({x}, ({axis},))
lax.concatenate(({v}, {same}), {positive})
lax.dynamic_slice_in_dim({v}, {start}, 1, axis={positive})
lax.dynamic_update_slice_in_dim({v}, {v0} * 2, {start}, axis={positive})
lax.dynamic_index_in_dim({v}, {start}, {positive}, keepdims=<True False>)
lax.dynamic_update_index_in_dim({v}, {s}, {start}, {positive})
lax.broadcast_in_dim({x}, (2, *{x}.shape), tuple(range(1, {x}.ndim + 1)))
lax.broadcasted_iota({dtype}, {shape}, 0)
lax.full_like({x}, {s})
lax.dot({v}, {w})
lax.batch_matmul({m}, {same})
jnp.<reshape resize>({x}, (-1,))
jnp.<transpose ravel squeeze atleast_1d atleast_2d zeros_like ones_like flip array copy>({x})
jnp.<swapaxes moveaxis>({m}, 0, -1)
jnp.expand_dims({x}, {axis})
jnp.broadcast_to({x}, (2, *{x}.shape))
jnp.<concatenate stack>([{v}, {same}], axis={axis})
jnp.<hstack vstack>([{v}, {y}])
jnp.<concatenate stack>([{v}, {same_shape}])
jnp.split({v}, 1, axis={axis})
jnp.<roll repeat>({v}, 2, axis={axis})
jnp.tile({x}, <2 (2, 1) (1, 2)>)
jnp.flip({v}, {axis})
jnp.pad({x}, 1, mode="<constant edge reflect wrap>")
jnp.<tril triu trace diagonal matrix_transpose rot90>({m})
jnp.<diag diff cumsum cumprod ravel sort argsort unstack>({v})
jnp.<cumsum cumprod sort argsort diff>({v}, axis={axis})
jnp.<take take_along_axis>({v}, {j}, axis={axis})
jnp.take({v}, {j}, axis={axis}, mode="<clip wrap fill>")
jnp.searchsorted({v}, {y})
jnp.<dot matmul inner outer tensordot vdot kron>({v}, {w})
jnp.einsum("{spec}", {v}, {w})
({v} @ {w})
jnp.linspace({s}, {s}, 3)
jnp.arange(<3 4 0>, dtype={dtype})
jnp.<ones zeros>({shape}, {dtype})
jnp.full({shape}, {s})
jnp.eye(<2 3>, dtype={dtype})
jnp.meshgrid({v}, {w})
jnp.linalg.norm({v})
jnp.nonzero({v}, size=2)
{x}[{index}]
{x}[{index}]
{v}[{j}]
{v}[{j}, ...]
{v}[..., {j}]
{m}[{j}, {j}]
{m}[:, {j}]
{v}[{start}]
{v}.at[{j}].<set add multiply max min>({s}, mode="<drop clip promise_in_bounds fill>")
{v}.at[{j}].<set add multiply max min divide>({y})
{x}.at[{index}].<set add multiply max min power>({y})
{x}.at[{index}].<get set add>({s})
{v}.at[{start}].<set add subtract>({y})
{x}.<sum mean max min ravel T prod std real flatten>()
"""
DRAWING = """
random.key(<0 7>)
random.PRNGKey(1)
random.split({key})
random.split({key}, 3)
random.fold_in({key}, {count})
random.key_data({key})
random.<normal uniform>({key}, {shape}, jnp.<float32 bfloat16 float16>)
random.<normal uniform exponential gumbel laplace logistic cauchy rademacher bits>({key}, {shape})
random.randint({key}, {shape}, 0, <5 100>)
random.truncated_normal({key}, -1.0, 2.0, {shape})
random.bernoulli({key}, 0.3, {shape})
random.<permutation categorical>({key}, {v})
random.choice({key}, {v}, (2,))
"""
COLLECTIVE = """
lax.<psum pmax pmin pmean all_gather>({x}, "{name}")
lax.axis_index("{name}")
lax.psum_scatter(jnp.broadcast_to({x}, (3, *{x}.shape)), "{name}")
"""


def _rows(table: str) -> list[str]:
    return table.strip().splitlines()


TABLES = [(5, _rows(POINTWISE)), (5, _rows(SHAPING)), (1, _rows(DRAWING))]
SLIPS = (AttributeError, NameError, ImportError, SyntaxError)


class NotFound(Exception):
    """No value fits the hole."""


class Rejected(Exception):
    """The oracle rejected a statement that was kept: the program ends here."""


def dtype_of(value: Any) -> str:
    return str(value.dtype)


def spelled(name: str, path: tuple) -> str:
    """The expression of a leaf of a tree that has a name; a `Box` has no key for what is inside."""
    return name + jax.tree_util.keystr(path).replace("[<flat index 0>]", ".inside")


def is_key(value: Any) -> bool:
    return dtype_of(value).startswith("key<")


KINDS: dict[str, Callable[[Any], bool]] = {
    "x": lambda v: True,
    "y": lambda v: True,
    "n": lambda v: dtype_of(v) != "bool",
    "f": lambda v: "float" in dtype_of(v),
    "c": lambda v: "complex" in dtype_of(v),
    "z": transform_matrix.is_inexact,
    "i": lambda v: "int" in dtype_of(v),
    "b": lambda v: dtype_of(v) == "bool",
    "r": lambda v: re.match("b?float|u?int", dtype_of(v)) is not None,
    "v": lambda v: v.ndim > 0,
    "o": lambda v: v.ndim > 0 and "complex" not in dtype_of(v),
    "w": lambda v: v.ndim > 0,
    "m": lambda v: v.ndim > 1,
}


class Body:
    """The statements of one function, and the values that the next one can use, by their text."""

    most = 64  # elements of a value that is used again

    def __init__(self, rng: random.Random, scope: dict[str, Any], values: dict[str, Any], depth: int):
        self.rng, self.scope, self.depth = rng, scope, depth
        self.values = values
        self.lines: list[str] = []
        self.own: list[str] = []
        self.axes: tuple[str, ...] = ()

    # Growing

    def grow(self, count: int, errors: bool = False) -> None:
        """Adds that many statements; with `errors`, the first one that the oracle rejects is kept and ends it."""
        for _ in range(8 * count):
            if len(self.own) >= count:
                return
            kept = len(self.lines)
            try:
                self.assign(self.expression())
            except NotFound:
                del self.lines[kept:]
            except Exception as error:
                if errors and not isinstance(error, SLIPS):
                    raise Rejected from error
                del self.lines[kept:]

    def expression(self) -> str:
        if self.depth < 2 and self.rng.random() < 0.3:
            return self.rng.choice(HIGHER)(self)
        if self.axes and self.rng.random() < 0.3:
            return self.filled(self.rng.choice(_rows(COLLECTIVE)))
        table = self.rng.choices([rows for _, rows in TABLES], [weight for weight, _ in TABLES])[0]
        return self.filled(self.rng.choice(table))

    def assign(self, expression: str) -> None:
        name = self.fresh("v")
        self.run(f"{name} = {expression}")
        found = 0
        for path, leaf in jax.tree_util.tree_leaves_with_path(self.scope[name]):
            if hasattr(leaf, "dtype") and leaf.size <= self.most:
                self.values[spelled(name, path)] = leaf
                found += 1
        if not found:
            raise NotFound
        self.own.append(name)

    def run(self, text: str) -> None:
        self.lines += text.splitlines()
        exec(text, self.scope)

    def fresh(self, letter: str) -> str:
        self.scope["#"] = self.scope.get("#", 0) + 1
        return f"{letter}{self.scope['#']}"

    def function(
        self,
        types: list,
        results: Callable[["Body"], str],
        axes: tuple[str, ...] = (),
        closed: bool = False,
        differentiated: bool = False,
    ) -> tuple[str, Any]:
        """Defines a function of arguments of those types; its name, and the types of what `results` names."""
        name, params = self.fresh("f"), [self.fresh("p") for _ in types]
        outside = {} if closed else self.values
        lines = []

        def trace(*tracers: Any) -> Any:
            given = dict(zip(params, tracers, strict=True))
            inner = type(self)(self.rng, {**self.scope, **given}, {**outside, **given}, self.depth + 1)
            inner.scope["differentiated"] |= differentiated
            inner.axes = self.axes + axes
            inner.own += params
            inner.grow(len(params) + self.rng.randrange(1, 4))
            returned = results(inner)
            lines.extend([*inner.lines, f"return {returned}"])
            self.scope["#"] = inner.scope["#"]
            return eval(returned, inner.scope)

        traced = trace
        for axis in axes:
            traced = functools.partial(_under_axis, traced, axis)
        shapes = jax.eval_shape(traced, *map(type_of, types))
        self.run(f"def {name}({', '.join(params)}):\n" + textwrap.indent("\n".join(lines), "    "))
        return name, shapes

    # Results of functions

    def some(self, most: int = 2) -> str:
        """A few of the newest values, as a tuple or one of them."""
        own = self.newest()
        chosen = [*self.rng.sample(own[:-1], min(len(own) - 1, self.rng.randrange(most))), own[-1]]
        return f"({', '.join(chosen)})" if len(chosen) > 1 else chosen[0]

    def newest(self) -> list[str]:
        return [text for text in self.values if re.split(r"\W", text)[0] in self.own]

    def like(self, shape: tuple[int, ...], dtype: Any) -> str:
        """An expression of that type, from one of the newest values; the weak type is left to chance."""
        own = [text for text in self.newest() if not is_key(self.values[text])]
        fitting = [text for text in own if self.values[text].shape == shape]
        text = self.late(fitting or own)
        value = self.values[text]
        if "complex" in dtype_of(value) and "complex" not in str(dtype):
            text = f"jnp.real({text})"
        if value.shape != shape:
            text = f"jnp.sum({text})" if value.shape else text
        if value.dtype != dtype:
            text = f"({text}).astype(jnp.{np.dtype(dtype).name})"
        return text if value.shape == shape else f"jnp.broadcast_to({text}, {shape})"

    def alike(self, types: Any) -> str:
        """An expression of those types, a tuple of arrays or one array."""
        if isinstance(types, tuple):
            return f"({', '.join([self.like(t.shape, t.dtype) for t in types])},)"
        return self.like(types.shape, types.dtype)

    def late(self, texts: list[str]) -> str:
        """One of the texts, rather a late than an early one, so that programs are deep."""
        if not texts:
            raise NotFound
        return texts[max(self.rng.randrange(len(texts)), self.rng.randrange(len(texts)))]

    # Holes

    def filled(self, template: str) -> str:
        text = re.sub(r"<([^<>]+)>", lambda m: self.rng.choice(_words(m[1])), template)
        self.subject: Any = None
        named: dict[str, str] = {}

        def fill(found: re.Match) -> str:
            hole = found[1]
            if hole not in KINDS:
                return str(getattr(self, f"hole_{hole}")())
            if hole not in named:
                named[hole] = self.variable(KINDS[hole])
                self.subject = self.values[named[hole]] if self.subject is None else self.subject
            return named[hole]

        return re.sub(r"\{(\w+)\}", fill, text)

    def variable(self, fits: Callable[[Any], bool] = lambda v: True) -> str:
        return self.late([text for text, value in self.values.items() if not is_key(value) and fits(value)])

    def hole_same(self) -> str:
        return self.variable(lambda v: v.shape == self.subject.shape and v.dtype == self.subject.dtype)

    def hole_same_shape(self) -> str:
        return self.variable(lambda v: v.shape == self.subject.shape)

    def hole_s(self) -> str:
        return self.rng.choice(["2", "-1", "0", "0.5", "1.5", "-2.0", "True", "3", "1e-3", "1j"])

    def hole_axis(self) -> int:
        return self.rng.randrange(-self.subject.ndim, self.subject.ndim) if self.subject.ndim else 0

    def hole_positive(self) -> int:
        return self.rng.randrange(self.subject.ndim) if self.subject.ndim else 0

    def hole_v0(self) -> str:
        return self.variable(lambda v: v.shape == self.subject.shape and v.dtype == self.subject.dtype)

    def hole_start(self) -> str:
        return self.rng.choice([self.variable(lambda v: v.shape == () and "int" in dtype_of(v)), "1", "-1"])

    def hole_count(self) -> str:
        return self.rng.choice(["3", self.variable(lambda v: v.shape == () and "int" in dtype_of(v))])

    def hole_j(self) -> str:
        fixed = ["jnp.array([0, 1])", "jnp.array([[0], [-1]])", "np.array([1, 5])"]
        return self.rng.choice([*fixed, self.variable(lambda v: "int" in dtype_of(v))])

    def hole_index(self) -> str:
        parts = [":", "::2", "::-1", "0", "-1", "1:", ":-1", "None", "jnp.array([0, 0])"]
        count = self.rng.randrange(1, self.subject.ndim + 1) if self.subject.ndim else 0
        return ", ".join([*(self.rng.choice(parts) for _ in range(count)), *self.rng.choice([[], ["..."]])]) or "None"

    def hole_padding(self) -> list:
        return [(self.rng.randrange(-1, 3), 1, self.rng.randrange(2)) for _ in range(self.subject.ndim)]

    def hole_dtype(self) -> str:
        wide = WIDE if self.scope["x64"] else ()
        dtype = self.rng.choice((*DTYPES, *wide))
        return "bool" if dtype == "bool" else f"jnp.{dtype}"

    def hole_shape(self) -> str:
        return str(self.rng.choice(SHAPES))

    def hole_key(self) -> str:
        found = [text for text, value in self.values.items() if is_key(value) and value.shape == ()]
        return self.rng.choice([*found, "random.key(3)", "random.PRNGKey(5)"])

    def hole_spec(self) -> str:
        return self.rng.choice(
            ["ij,jk->ik", "ij,kj->ik", "ij,ij->i", "i,ij->j", "ij,j->i", "...i,...i->...", "i,j->ji"]
        )

    def hole_name(self) -> str:
        return self.rng.choice(self.axes)

    # Arguments of functions

    def operands(self, least: int = 1, fits: Callable[[Any], bool] = lambda v: True) -> tuple[list[str], tuple]:
        texts = [self.variable(fits) for _ in range(self.rng.randrange(least, 3))]
        return texts, tuple(self.values[text].aval for text in texts)


def _words(text: str) -> list[str]:
    """The words between blanks outside of brackets."""
    return re.findall(r"(?:\([^)]*\)|[^\s()])+", text)


def type_of(t: Any, without: int | None = None, weak: bool = True) -> "jax.ShapeDtypeStruct":
    """The type of a value, or of its rows along an axis, with its sharding if it has one."""
    shape, sharding = list(t.shape), t.sharding
    spec = None if sharding is None or sharding.mesh.empty else [*sharding.spec, *[None] * t.ndim][: t.ndim]
    if without is not None:
        for parts in filter(None, (shape, spec)):
            del parts[without]
    laid = None if spec is None else jax.sharding.NamedSharding(sharding.mesh, jax.P(*spec))
    return jax.ShapeDtypeStruct(shape, t.dtype, weak_type=weak and t.weak_type, sharding=laid)


def _under_axis(f: Callable, name: str, *args: Any) -> Any:
    """`f` where the axis of that name, of size 3, is bound; the results for one of its places."""
    stacked = jax.vmap(lambda _, args: f(*args), (0, None), axis_name=name)(np.zeros(3), args)
    return jax.tree_util.tree_map(lambda x: x[0], stacked)


# Higher-order expressions. Each defines the functions that it needs and gives the text of a call.


def _scalar(body: Body, kind: str) -> str:
    text = body.variable(KINDS["n"])
    real = f"jnp.real({text})" if KINDS["c"](body.values[text]) else text
    return f"(jnp.sum({real}) > 0.5)" if kind == "bool" else f"jnp.sum({real}).astype(jnp.int32)"


def _branches(body: Body, count: int, types: list) -> list[str]:
    first, shapes = body.function(types, Body.some)
    return [first, *(body.function(types, lambda inner: inner.alike(shapes))[0] for _ in range(count - 1))]


def cond(body: Body) -> str:
    texts, types = body.operands(0)
    predicate = _scalar(body, "bool")
    return f"lax.cond({', '.join([predicate, *_branches(body, 2, types), *texts])})"


def switch(body: Body) -> str:
    texts, types = body.operands(0)
    branches = ", ".join(_branches(body, body.rng.choice([1, 2, 3]), types))
    return f"lax.switch({', '.join([_scalar(body, 'int'), f'[{branches}]', *texts])})"


def while_loop(body: Body) -> str:
    texts, types = body.operands()
    name, _ = body.function(types, lambda inner: inner.alike(types))
    test = "lambda c: c[0] < 3"
    if body.rng.random() < 0.3:
        extra, _ = body.function(types, lambda inner: inner.like((), np.dtype(bool)))
        test = f"lambda c: (c[0] < 3) & {extra}(*c[1:])"
    step = f"lambda c: (c[0] + 1, *{name}(*c[1:]))"
    return f"lax.while_loop({test}, {step}, (0, {', '.join(texts)}))"


def fori_loop(body: Body) -> str:
    texts, types = body.operands()
    index = jax.ShapeDtypeStruct((), np.int32, weak_type=True)
    name, _ = body.function([index, *types], lambda inner: inner.alike(types))
    stop = body.rng.choice(["3", "3", "0", "jnp.minimum(" + _scalar(body, "int") + ", 3)"])
    return f"lax.fori_loop(0, {stop}, lambda i, c: {name}(i, *c), ({', '.join(texts)},))"


def scan(body: Body) -> str:
    texts, types = body.operands()
    rows = body.variable(lambda v: v.ndim > 0)
    row = type_of(body.values[rows].aval, 0, weak=False)
    name, _ = body.function([*types, row], lambda inner: f"{inner.alike(types)}, {inner.some()}")
    options = body.rng.choice(["", "", ", reverse=True", ", unroll=2", ", unroll=True", ", reverse=True, unroll=3"])
    return f"lax.scan(lambda c, x: {name}(*c, x), ({', '.join(texts)},), {rows}{options})"


def counted_scan(body: Body) -> str:
    texts, types = body.operands()
    name, _ = body.function(types, lambda inner: f"{inner.alike(types)}, {body.rng.choice(['None', inner.some()])}")
    return f"lax.scan(lambda c, x: {name}(*c), ({', '.join(texts)},), None, length={body.rng.choice([0, 1, 3])})"


def map_rows(body: Body) -> str:
    rows = body.variable(lambda v: v.ndim > 0)
    name, _ = body.function([type_of(body.values[rows].aval, 0, weak=False)], Body.some)
    return f"lax.map({name}, {rows}{body.rng.choice(['', '', ', batch_size=2'])})"


def associative_scan(body: Body) -> str:
    rows = body.variable(lambda v: v.ndim > 0)
    combine = body.rng.choice(["jnp.add", "jnp.multiply", "jnp.maximum", "(lambda a, b: a * 2 + b)"])
    return f"lax.associative_scan({combine}, {rows}{body.rng.choice(['', ', reverse=True', ', axis=-1'])})"


def inner_jit(body: Body) -> str:
    texts, types = body.operands()
    name, _ = body.function(types, Body.some)
    call = f"({', '.join(texts)})"
    jitted = f"jax.jit({name}{body.rng.choice(['', '', ', inline=True'])})"
    return body.rng.choice([f"{jitted}{call}", f"({jitted}{call}, {jitted}{call})"])


def checkpoint(body: Body) -> str:
    texts, types = body.operands()
    name, _ = body.function(types, Body.some)
    policies = ["everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable"]
    options = body.rng.choice(
        ["", ", prevent_cse=False", f", policy=jax.checkpoint_policies.{body.rng.choice(policies)}"]
    )
    return f"jax.checkpoint({name}{options})({', '.join(texts)})"


# Custom rules cannot be differentiated by what their functions capture.
def custom_jvp(body: Body) -> str:
    texts, types = body.operands(1, transform_matrix.is_inexact)
    name, _ = body.function(types, Body.some, closed=body.scope["differentiated"])
    custom = body.fresh("f")
    body.run(f"{custom} = jax.custom_jvp({name})")
    body.run(f"{custom}.defjvp(lambda p, t: jax.jvp({name}, p, jax.tree_util.tree_map(lambda d: d * 2, t)))")
    return f"{custom}({', '.join(texts)})"


def custom_vjp(body: Body) -> str:
    texts, types = body.operands()
    name, made = body.function(types, Body.some, closed=body.scope["differentiated"])
    custom = body.fresh("f")
    if not any(map(transform_matrix.is_inexact, jax.tree_util.tree_leaves(made))):
        return f"{name}({', '.join(texts)})"  # jax calls the rule for the gradients of integers, which are zero
    body.run(f"{custom} = jax.custom_vjp({name})")
    body.run(f"{custom}.defvjp(lambda *p: ({name}(*p), p), lambda p, ct: jax.vjp({name}, *p)[1](ct))")
    return f"{custom}({', '.join(texts)})"


def inner_vmap(body: Body) -> str:
    texts, types = body.operands(1, lambda v: v.ndim > 0)
    axis = body.rng.choice([0, 0, -1])
    size = types[0].shape[axis]
    mapped = [t.ndim > 0 and t.shape[axis] == size and body.rng.random() < 0.8 for t in types]
    mapped[0] = True
    rows = [type_of(t, axis if is_mapped else None, weak=False) for t, is_mapped in zip(types, mapped, strict=True)]
    axes = (body.fresh("n"),) if size == 3 and body.rng.random() < 0.5 else ()
    name, _ = body.function(rows, Body.some, axes)
    in_axes = tuple(axis if is_mapped else None for is_mapped in mapped)
    option = f', axis_name="{axes[0]}"' if axes else body.rng.choice(["", "", ", out_axes=-1"])
    return f"jax.vmap({name}, {in_axes}{option})({', '.join(texts)})"


def inner_grad(body: Body) -> str:
    texts, types = body.operands(1, transform_matrix.is_inexact)
    name, _ = body.function(types, lambda inner: inner.like((), np.dtype(np.float32)), differentiated=True)
    order = body.rng.choice(["grad", "grad", "value_and_grad", "hessian", "jacrev", "jacfwd"])
    options = body.rng.choice(["", "", f", argnums={tuple(range(len(texts)))}"])
    return f"jax.{order}({name}{options})({', '.join(texts)})"


def inner_derivative(body: Body) -> str:
    texts, types = body.operands(1, KINDS["z"])
    name, shapes = body.function(types, lambda inner: inner.alike(types[:1]), differentiated=True)
    args = f"({', '.join(texts)},)"
    return body.rng.choice(
        [
            f"jax.jvp({name}, {args}, {args})",
            f"jax.linearize({name}, *{args})[1](*{args})",
            f"jax.vjp({name}, *{args})[1](({texts[0]},))",
            f"jax.jacfwd({name})(*{args})",
            f"jax.jacrev({name})(*{args})",
        ]
    )


HIGHER = [
    cond, cond, switch, while_loop, fori_loop, scan, scan, scan, counted_scan, map_rows, associative_scan, inner_jit,
    inner_jit, checkpoint, custom_jvp, custom_vjp, inner_vmap, inner_vmap, inner_grad, inner_derivative,
]  # fmt: skip


# Programs


def without_unused(lines: list[str]) -> list[str]:
    """The lines without the statements whose names no other line has."""
    for i in reversed(range(1, len(lines))):
        named = re.match(r" *(?:def )?([fv]\d+)(?: = |\()", lines[i])
        if named:
            # The rules of a custom function go with it.
            rest = [x for x in [*lines[:i], *lines[_end(lines, i) :]] if not re.match(rf" *{named[1]}\.def", x)]
            if not re.search(rf"\b{named[1]}\b", "\n".join(rest)):
                return without_unused(rest)
    return lines


def _end(lines: list[str], start: int) -> int:
    """Where the statement that starts there ends: a function's lines go with its head."""
    end = start + 1
    while end < len(lines) and _indent(lines[end]) > _indent(lines[start]):
        end += 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _vmap_of(axis_of: Callable[[int, Any], int | None], **options: Any) -> transform_matrix.Transform:
    """`vmap` with an axis of size 3 at the position that `axis_of` returns for each argument number."""

    def axes(args: tuple) -> tuple:
        leaves, tree = jax.tree_util.tree_flatten(args)
        return jax.tree_util.tree_unflatten(tree, [axis_of(i, leaf) for i, leaf in enumerate(leaves)])

    def batched(args: tuple) -> tuple:
        leaves, tree = jax.tree_util.tree_flatten(args)
        axis = [axis_of(i, leaf) for i, leaf in enumerate(leaves)]
        rows = [x if a is None else np.stack([_narrow(x)] * 3, a) for x, a in zip(leaves, axis, strict=True)]
        return jax.tree_util.tree_unflatten(tree, rows)

    return transform_matrix.Transform(lambda jax, f, args: jax.vmap(f, axes(args), **options), batched)


def _narrow(x: Any) -> np.ndarray:
    return np.asarray(x, {float: np.float32, int: np.int32, complex: np.complex64}.get(type(x)))


def _jacobian(order: str) -> transform_matrix.Transform:
    """The Jacobian of the inexact results; jax cannot lower that of others."""

    def function(jax: ModuleType, f: Callable, args: tuple) -> Callable:
        def inexact(*args: Any) -> list:
            results = jax.tree_util.tree_leaves(f(*args))
            return [r for r in results if transform_matrix.is_inexact(r)] or [jax.numpy.float32(0)]

        return getattr(jax, order)(inexact, argnums=transform_matrix.inexact_argnums(args))

    return transform_matrix.Transform(function)


TRANSFORMS = {
    **{
        name: transform_matrix.TRANSFORMS[name] for name in ("jit", "grad", "value_and_grad", "jvp", "vjp", "linearize")
    },
    **{name: transform_matrix.TRANSFORMS[name] for name in ("vmap", "checkpoint", "hessian")},
    "vmap_last": _vmap_of(lambda i, x: -1),
    "vmap_some": _vmap_of(lambda i, x: None if i % 2 else 0),
    "vmap_out_last": _vmap_of(lambda i, x: 0, out_axes=-1),
    "jacfwd": _jacobian("jacfwd"),
    "jacrev": _jacobian("jacrev"),
}
# Those of many directions make large programs; they come last.
SMALL = ("hessian", "jacfwd", "jacrev")
DERIVATIVES = (*SMALL, "grad", "value_and_grad", "jvp", "vjp", "linearize")


@dataclasses.dataclass(frozen=True)
class Program:
    """A function's text, its arguments, and the transforms it goes through, the innermost first."""

    seed: int
    source: str
    args: tuple
    transforms: tuple[str, ...]
    x64: bool

    @property
    def leaves_calls(self) -> bool:
        """Whether jax leaves calls in the backward pass that ours has not, as in `test_matrix`: its values count."""
        return "checkpoint" in f"{self.source}{self.transforms}"

    def __str__(self) -> str:
        args = "\n".join(f"# {i}: {a!r} {getattr(a, 'dtype', '')}" for i, a in enumerate(self.args))
        path = " of ".join([*reversed(self.transforms), "program"])
        return f"# seed {self.seed}: {path}{', x64' * self.x64}\n{args}\n{self.source}"

    def case(self) -> compare.Case:
        """The program under its transforms."""
        transform = transform_matrix.Transform(lambda jax, f, args: f)
        for name in self.transforms:
            transform = transform_matrix.then(TRANSFORMS[name], transform)

        def program(jax: ModuleType, jnp: ModuleType, lax: ModuleType, nn: ModuleType, random: ModuleType):
            scope = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn, "random": random, "np": np}
            exec(self.source, scope)
            return transform.function(jax, scope["program"], self.args)

        return compare.Case(f"fuzz-{self.seed}", program, transform.arguments(self.args), raises=compare.EITHER)


def _argument(rng: random.Random, numbers: np.random.Generator, x64: bool) -> Any:
    if rng.random() < 0.12:
        return rng.choice([1.5, 2, -0.25, True, 0.5 + 1j, 3])
    dtype = rng.choice(DTYPES + WIDE * x64)
    values = numbers.uniform(0.2, 2.5, rng.choice(SHAPES)) * rng.choice([1, 1, -1])
    if dtype == "bool":
        return values > 1
    if "complex" in dtype:
        return np.asarray(values + 1j * values[..., ::-1] if values.ndim else values + 0.5j).astype(dtype)
    return np.asarray(np.abs(values) if dtype[0] == "u" else values).astype(getattr(ml_dtypes, dtype, dtype))


def _chosen_transforms(rng: random.Random) -> tuple[str, ...]:
    names = list(TRANSFORMS)
    chosen = [rng.choice(names) for _ in range(rng.choices([0, 1, 2, 3], [1, 4, 4, 2])[0])]
    large = [name for name in chosen if name in SMALL]
    return tuple([name for name in chosen if name not in SMALL] + large[:1])


def generate(seed: int, differentiable: bool = False) -> Program:
    """The program of that seed; or one without transforms, all of which jax can differentiate."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    x64 = rng.random() < 0.12
    args = tuple(_argument(rng, numbers, x64) for _ in range(rng.randrange(1, 4)))
    transforms = () if differentiable else _chosen_transforms(rng)
    params, lines = [f"a{i}" for i in range(len(args))], []

    def trace(*tracers: Any) -> None:
        given = dict(zip(params, tracers, strict=True))
        scope = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "nn": jax.nn, "random": jax.random, "np": np, "x64": x64}
        scope["differentiated"] = differentiable or any(name in DERIVATIVES for name in transforms)
        body = Body(rng, {**scope, **given}, given, 0)
        returned = "None"
        try:
            body.grow(rng.randrange(2, 9 - 2 * len(transforms)), errors=rng.random() < 0.04)
            returned = body.some(4)
        except Rejected:
            pass
        lines.extend([*body.lines, f"return {returned}"])

    with jax.enable_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.eval_shape(trace, *compare.placed(jax, args))
    lines = [f"def program({', '.join(params)}):", *textwrap.indent("\n".join(lines), "    ").splitlines()]
    # Unread results are of interest too, but rarely.
    lines = lines if rng.random() < 0.1 else without_unused(lines)
    return Program(seed, "\n".join(lines) + "\n", args, transforms, x64)
