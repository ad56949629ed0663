"""Random Pallas kernels: a seed gives the text of a kernel and of its call, and the arguments.

Each value has bounds, by which the generator knows whether it is exact: only such values decide anything (comparisons,
indices, casts to integers), since the last bits of others may differ. A change to the tables gives every seed another
program.
"""

import dataclasses
import math
import random
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import compare
import ml_dtypes
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules

DTYPES = ("float32",) * 6 + ("bfloat16", "bfloat16", "int32", "int32", "uint8", "bool")
FORMS = ("interpret", "simulator", "tpu")
# By form: the shapes of the blocks as the kernel sees them.
SHAPES = {
    "interpret": ((4,), (3,), (2, 3), (2, 4), (3, 1), (2, 2, 3), ()),
    "simulator": ((2, 3), (2, 4), (8, 128), (4, 3)),
    "tpu": ((8, 128), (16, 128), (8, 256)),
}
MANTISSA = {"float32": 2**23, "bfloat16": 2**7}
LARGE = 500.0


class Value(NamedTuple):
    """A value of the kernel: its name, type, largest magnitude and least step; a step of 0 says that it is rounded."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    high: float = 2.0
    step: float = 0.25

    @property
    def is_float(self) -> bool:
        return self.dtype in MANTISSA

    @property
    def exact(self) -> bool:
        return not self.is_float or (self.step > 0 and self.high / self.step < MANTISSA[self.dtype])


class Reference(NamedTuple):
    """A reference of the kernel: its name and type, whether it is written, and whether its values are those given."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    written: bool
    high: float = 2.0
    step: float = 0.25


@dataclasses.dataclass(frozen=True)
class Program:
    """The text of a kernel and of its call; `form` says where it runs."""

    seed: int
    source: str
    args: tuple
    form: str
    transforms: tuple[str, ...] = ()
    in_axes: tuple = ()

    def __str__(self) -> str:
        args = "\n".join(f"# {i}: {a!r} {a.dtype}" for i, a in enumerate(self.args))
        return f"# seed {self.seed}: {self.form} {' '.join(self.transforms)} {self.in_axes}\n{args}\n{self.source}"

    def function(self, modules: dict[str, Any]) -> Callable:
        """The call, with these modules under their names."""
        scope = dict(modules)
        exec(self.source, scope)
        return scope["program"]

    def on(self, side: ModuleType, interpret: Any = True) -> Callable:
        """The call on a side, under its transforms."""

        def program(jax: Any, jnp: Any, lax: Any, pl: Any, pltpu: Any, plt: Any) -> Callable:
            return self.under(dict(jax=jax, jnp=jnp, lax=lax, pl=pl, pltpu=pltpu, plt=plt), interpret)

        return compare.run_on(side, program)

    def under(self, modules: dict[str, Any], interpret: Any) -> Callable:
        """The call with these modules, under its transforms."""
        f = self.function({**modules, "np": np, "interpret": interpret})
        return modules["jax"].vmap(f, self.in_axes) if self.transforms else f


class Body:
    """The statements of a kernel, which grow one at a time."""

    def __init__(self, rng: random.Random, form: str, shape: tuple[int, ...], refs: list[Reference], axes: int):
        self.rng, self.form, self.shape, self.refs, self.axes = rng, form, shape, refs, axes
        self.values: list[Value] = []
        self.lines: list[str] = []
        self.count = 0
        # Within loops a value may grow with each iteration.
        self.depth = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def add(self, text: str, shape: tuple, dtype: str, high: float = 2.0, step: float = 0.25) -> Value:
        """Appends an assignment. A large value is cut, so that sums stay finite."""
        value = Value(self.name(), shape, dtype, high, step)
        self.lines.append(f"{value.name} = {text}")
        if value.is_float and high > LARGE:
            exact = value.exact
            clipped = Value(self.name(), shape, dtype, 4.0, step if exact else 0)
            self.lines.append(f"{clipped.name} = jnp.clip({value.name}, -4, 4)")
            value = clipped
        elif value.is_float and not value.exact:
            value = value._replace(step=0)
        self.values.append(value)
        return value

    def pick(self, test: Callable[[Value], bool]) -> Value | None:
        found = [v for v in self.values if test(v)]
        # Later values more often, so that programs have depth.
        return self.rng.choice(found[-4:] if found and self.rng.random() < 0.6 else found) if found else None

    def scalar_index(self, size: int = 3) -> str:
        """An integer of the step below `size`, a number on an axis or a constant.

        Others would be clamped, but XLA merges two slices and then clamps the sum of their starts only.
        """
        k = self.rng.randrange(self.axes)
        return self.rng.choice([f"i{k} % {size}", f"jnp.minimum(i{k}, {size - 1})", str(size - 1), "0"])

    def last(self) -> str:
        """An index from the end, which jax's simulator fails on."""
        return "-1" if self.form == "interpret" else "0"

    def condition(self) -> str:
        """A scalar condition."""
        rng = self.rng
        i = f"i{rng.randrange(self.axes)}"
        choices = [f"{i} == 0", f"{i} > 0", f"{i} % 2 == 0", f"{i} == pl.num_programs({i[1:]}) - 1"]
        v = self.pick(lambda v: v.exact and v.dtype != "bool")
        if v:
            choices.append(f"jnp.sum({v.name}.astype(jnp.int32)) > 1" if not v.is_float else f"jnp.max({v.name}) > 0")
        return rng.choice(choices)

    def grow(self, statements: int, nested: bool = False) -> None:
        kinds = NESTED if nested else STATEMENTS
        for _ in range(statements):
            self.rng.choices([f for f, _ in kinds], [w for _, w in kinds])[0](self)

    def within(self, statements: int, head: str, tail: Callable[["Body"], str | None]) -> None:
        """A function's head, with a few statements, which see the values before it, and an end."""
        inner = Body(self.rng, self.form, self.shape, self.refs, self.axes)
        inner.values, inner.count, inner.depth = list(self.values), self.count, self.depth + 1
        inner.grow(statements, nested=True)
        end = tail(inner)
        lines = [*inner.lines, *([end] if end else [])]
        self.lines += [head, *textwrap.indent("\n".join(lines or ["pass"]), "    ").splitlines()]
        self.count = inner.count


# ---- values ---------------------------------------------------------------------------------------------------


def load(b: Body) -> None:
    r = b.rng.choice(b.refs)
    step = r.step if not r.written else 0
    kind = b.rng.random()
    if kind < 0.6 or not r.shape or b.form == "tpu":
        b.add(f"{r.name}[...]", r.shape, r.dtype, r.high, step)
    elif kind < 0.75:
        n = b.rng.randrange(1, r.shape[0] + 1)
        at = b.scalar_index(r.shape[0] - n + 1)
        start = b.rng.choice([f"pl.ds({at}, {n})", f":{n}", f"pl.ds(0, {n})"])
        view = b.rng.choice(["{0}[{1}]", "{0}.at[{1}][...]", "{0}[{1}, ...]"]).format(r.name, start)
        b.add(view, (n, *r.shape[1:]), r.dtype, r.high, step)
    elif kind < 0.9:
        b.add(
            f"{r.name}[{b.rng.choice(['0', b.last(), b.scalar_index(r.shape[0])])}]", r.shape[1:], r.dtype, r.high, step
        )
    elif b.form == "interpret":
        mask = b.pick(lambda v: v.dtype == "bool" and v.shape == r.shape)
        if mask:
            other = "False" if r.dtype == "bool" else b.rng.choice(["0", "1"])
            b.add(f"plt.load({r.name}, mask={mask.name}, other={other})", r.shape, r.dtype, r.high, step)


def unary(b: Body) -> None:
    v = b.pick(lambda v: True)
    if not v:
        return load(b)
    name, rng = v.name, b.rng
    if v.is_float:
        text, high, step = rng.choice(
            [
                (f"-{name}", v.high, v.step),
                (f"jnp.abs({name})", v.high, v.step),
                (f"{name} * 0.5", v.high / 2, v.step / 2),
                (f"{name} + 1", v.high + 1, min(v.step, 1.0)),
                (f"{name} * 2 - 1", 2 * v.high + 1, min(v.step, 1.0)),
                (f"jnp.maximum({name}, 0)", v.high, v.step),
                (f"jnp.square({name})", v.high**2, v.step**2),
                (f"jnp.tanh({name})", 1.0, 0),
                (f"jnp.exp(-jnp.abs({name}))", 1.0, 0),
                (f"lax.rsqrt(jnp.square({name}) + 1)", 1.0, 0),
                (f"jnp.sin({name})", 1.0, 0),
                (f"{name} / (1 + jnp.abs({name}))", 1.0, 0),
                (f"jnp.floor({name})", v.high + 1, 1.0) if v.exact else (f"{name} - 0.25", v.high + 1, v.step / 4),
                (f"{name} * ({b.scalar_index()})", 4 * v.high, v.step),
            ]
        )
    elif v.dtype == "bool":
        text, high, step = f"~{name}", 1, 1
    else:
        text = rng.choice(
            [f"{name} + 1", f"{name} * 3", f"{name} // 2", f"{name} % 3", f"~{name}", f"{name} << 1", f"{name} & 6"]
        )
        high, step = 1, 1
    b.add(text, v.shape, v.dtype, high, step)


def binary(b: Body) -> None:
    x = b.pick(lambda v: v.dtype != "bool")
    if not x:
        return load(b)
    y = b.pick(lambda v: v.dtype == x.dtype and broadcast(v.shape, x.shape) is not None)
    shape, step = broadcast(x.shape, y.shape), min(x.step, y.step)
    op = b.rng.choice(["+", "-", "*", "max", "min"] if x.is_float else ["+", "-", "*", "max", "min", "&", "|", "^"])
    if op in ("max", "min"):
        b.add(f"jnp.{op}imum({x.name}, {y.name})", shape, x.dtype, max(x.high, y.high), step)
    elif op == "*":
        b.add(f"{x.name} * {y.name}", shape, x.dtype, x.high * y.high, x.step * y.step)
    else:
        b.add(f"{x.name} {op} {y.name}", shape, x.dtype, x.high + y.high, step)


def comparison(b: Body) -> None:
    x = b.pick(lambda v: v.exact and v.dtype != "bool")
    if not x:
        return load(b)
    y = b.pick(lambda v: v.dtype == x.dtype and v.exact and broadcast(v.shape, x.shape) is not None)
    op = b.rng.choice(["<", "<=", ">", ">=", "==", "!="])
    other, shape = (y.name, broadcast(x.shape, y.shape)) if b.rng.random() < 0.6 else ("1", x.shape)
    b.add(f"{x.name} {op} {other}", shape, "bool", 1, 1)


def logic(b: Body) -> None:
    x = b.pick(lambda v: v.dtype == "bool")
    if not x:
        return comparison(b)
    y = b.pick(lambda v: v.dtype == "bool" and broadcast(v.shape, x.shape) is not None)
    b.add(f"{x.name} {b.rng.choice('&|^')} {y.name}", broadcast(x.shape, y.shape), "bool", 1, 1)


def where(b: Body) -> None:
    c = b.pick(lambda v: v.dtype == "bool")
    x = b.pick(lambda v: c and broadcast(v.shape, c.shape) is not None)
    if not x:
        return comparison(b)
    shape = broadcast(x.shape, c.shape)
    y = b.pick(lambda v: v.dtype == x.dtype and broadcast(v.shape, shape) is not None)
    other = y.name if b.rng.random() < 0.7 else ("False" if x.dtype == "bool" else "0")
    if other == y.name:
        shape = broadcast(shape, y.shape)
    b.add(f"jnp.where({c.name}, {x.name}, {other})", shape, x.dtype, max(x.high, y.high, 1), min(x.step, y.step))


def reduction(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) > 0)
    if not x:
        return load(b)
    axis = b.rng.choice([*range(len(x.shape)), None])
    keep = b.rng.random() < 0.6
    n = math.prod(x.shape) if axis is None else x.shape[axis]
    kept = [1 if axis in (k, None) else m for k, m in enumerate(x.shape)]
    shape = tuple(kept) if keep else tuple([m for k, m in enumerate(x.shape) if axis is not None and k != axis])
    how = f"axis={axis}, keepdims={keep}"
    if x.dtype == "bool":
        return b.add(f"jnp.{b.rng.choice(['any', 'all'])}({x.name}, {how})", shape, "bool", 1, 1) and None
    op = b.rng.choice(["sum", "max", "min"])
    dtype = f", dtype={x.name}.dtype" if op == "sum" else ""
    b.add(f"jnp.{op}({x.name}, {how}{dtype})", shape, x.dtype, x.high * (n if op == "sum" else 1), x.step)


def position(b: Body) -> None:
    """The number of the largest element."""
    x = b.pick(lambda v: v.is_float and v.exact and len(v.shape) > 0)
    if not x:
        return reduction(b)
    axis = b.rng.randrange(len(x.shape))
    shape = tuple([m for k, m in enumerate(x.shape) if k != axis])
    b.add(f"jnp.{b.rng.choice(['argmax', 'argmin'])}({x.name}, axis={axis}).astype(jnp.int32)", shape, "int32")


def product(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) == 2 and v.dtype in ("float32", "bfloat16", "int32"))
    if not x:
        return binary(b)
    y = b.pick(lambda v: v.dtype == x.dtype and len(v.shape) == 2 and v.shape[1] == x.shape[1])
    kind = "int32" if x.dtype == "int32" else "float32"
    names = f"{x.name}, {y.name}, (((1,), (1,)), ((), ()))"
    high, step = x.high * y.high * x.shape[1], x.step * y.step
    # A product of bfloat16 is exact in float32.
    made = b.add(
        f"lax.dot_general({names}, preferred_element_type=jnp.{kind})", (x.shape[0], y.shape[0]), kind, high, step
    )
    if b.rng.random() < 0.6 and y.dtype == kind and made.shape[1] == y.shape[0]:
        b.add(
            f"lax.dot_general({made.name}, {y.name}, (((1,), (0,)), ((), ())), preferred_element_type=jnp.{kind})",
            (made.shape[0], y.shape[1]), kind, made.high * y.high * y.shape[0], made.step * y.step,
        )  # fmt: skip


def cast(b: Body) -> None:
    dtype = b.rng.choice(("float32", "float32", "bfloat16", "int32", "uint8", "bool"))
    x = b.pick(lambda v: v.exact or dtype in MANTISSA)
    if not x:
        return load(b)
    if dtype == "bool":
        return b.add(f"{x.name} != 0", x.shape, "bool", 1, 1) and None
    if x.is_float and dtype in ("int32", "uint8"):
        low = 0 if dtype == "uint8" else -99
        return (
            b.add(f"jnp.nan_to_num(jnp.clip({x.name}, {low}, 99)).astype(jnp.{dtype})", x.shape, dtype, 1, 1) and None
        )
    if x.dtype in ("int32", "uint8") and dtype in MANTISSA:
        return b.add(f"({x.name} % 16).astype(jnp.{dtype})", x.shape, dtype, 16, 1) and None
    step = x.step if x.dtype != "bool" else 1
    b.add(f"{x.name}.astype(jnp.{dtype})", x.shape, dtype, x.high if x.is_float else 2, step)


def shaping(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) > 0)
    if not x:
        return load(b)
    kind = b.rng.randrange(5)
    if kind == 0 and b.form == "interpret":
        b.add(f"{x.name}.T", x.shape[::-1], x.dtype, x.high, x.step)
    elif kind == 1:
        b.add(f"jnp.concatenate([{x.name}, {x.name}], axis=0)[:{x.shape[0]}]", x.shape, x.dtype, x.high, x.step)
    elif kind == 2:
        axis = b.rng.randrange(len(x.shape))
        b.add(f"lax.broadcasted_iota(jnp.int32, {x.shape}, {axis})", x.shape, "int32")
    elif kind == 3 and b.form == "interpret":
        b.add(f"{x.name}.reshape(-1)", (math.prod(x.shape),), x.dtype, x.high, x.step)
    else:
        b.add(f"jnp.broadcast_to({x.name}[:1], {x.shape})", x.shape, x.dtype, x.high, x.step)


# ---- effects, loops and branches ----------------------------------------------------------------------------------


def stored(b: Body, r: Reference, shape: tuple | None = None) -> str | None:
    """A value for a part of a reference, of its type."""
    shape = r.shape if shape is None else shape
    v = b.pick(lambda v: v.dtype == r.dtype and broadcast(v.shape, shape) == shape)
    if not v:
        return None
    return v.name if v.shape == shape else f"jnp.broadcast_to({v.name}, {shape})"


def store(b: Body) -> None:
    r = b.rng.choice([r for r in b.refs if r.written])
    kind = b.rng.random()
    text = stored(b, r)
    if not text:
        return load(b)
    if kind < 0.45 or not r.shape:
        b.lines.append(f"{r.name}[...] = {text}")
    elif kind < 0.6 and r.dtype != "bool":
        b.lines.append(f"{r.name}[...] += {text}")
    elif kind < 0.7 and b.form == "interpret":
        mask = b.pick(lambda v: v.dtype == "bool" and v.shape == r.shape)
        b.lines.append(f"plt.store({r.name}, {text}, mask={mask.name})" if mask else f"{r.name}[...] = {text}")
    elif kind < 0.85 and b.form != "tpu":
        n = b.rng.randrange(1, r.shape[0] + 1)
        part = stored(b, r, (n, *r.shape[1:]))
        start = b.rng.choice([f"pl.ds({b.scalar_index(r.shape[0] - n + 1)}, {n})", f":{n}"])
        b.lines.append(f"{r.name}[{start}] = {part}" if part else f"{r.name}[...] = {text}")
    elif kind < 0.92 and b.form == "interpret" and r.dtype in ("float32", "int32"):
        op = b.rng.choice(["add", "max", "min"])
        b.add(f"plt.atomic_{op}({r.name}, ({'slice(None), ' * len(r.shape)}), {text})", r.shape, r.dtype, 8.0, 0)
    elif b.form != "tpu":
        part = stored(b, r, r.shape[1:])
        at = b.rng.choice(["0", b.last(), b.scalar_index(r.shape[0])])
        b.lines.append(f"{r.name}[{at}] = {part}" if part else f"{r.name}[...] = {text}")


def conditional(b: Body) -> None:
    b.within(b.rng.randrange(1, 4), f"@pl.when({b.condition()})\ndef _():", lambda inner: forced_store(inner))


def forced_store(inner: Body) -> str | None:
    r = inner.rng.choice([r for r in inner.refs if r.written])
    text = stored(inner, r)
    return f"{r.name}[...] = {text}" if text else f"{r.name}[...] = jnp.zeros({r.shape}, jnp.{word(r.dtype)})"


def looped(b: Body) -> None:
    n = b.rng.choice(["2", "3", "i0", "i0 + 1"] if b.form != "tpu" else ["2", "3"])
    b.within(b.rng.randrange(1, 3), f"@pl.loop(0, {n})\ndef _(k{b.depth}):", lambda inner: forced_store(inner))


def fori(b: Body) -> None:
    v = b.pick(lambda v: v.dtype != "bool")
    if not v:
        return load(b)
    n, f, carry = b.rng.choice(["2", "3", f"i{b.axes - 1} + 1"]), f"f{b.count}", f"c{b.count}"
    index = f"k{b.count}"

    def tail(inner: Body) -> str:
        x = inner.pick(lambda x: x.dtype == v.dtype and broadcast(x.shape, v.shape) == v.shape)
        step = f" * {index}.astype(jnp.{v.dtype})" if inner.rng.random() < 0.5 else ""
        return f"return {carry} + {x.name}{step}"

    b.within(b.rng.randrange(0, 3), f"def {f}({index}, {carry}):", tail)
    b.add(f"lax.fori_loop(0, {n}, {f}, {v.name})", v.shape, v.dtype, 99.0, 0)


def while_(b: Body) -> None:
    v = b.pick(lambda v: v.dtype != "bool")
    if not v:
        return load(b)
    test, step = f"lambda c: c[0] < {b.rng.choice(['2', 'i0'])}", f"lambda c: (c[0] + 1, c[1] + {v.name})"
    b.add(f"lax.while_loop({test}, {step}, (jnp.int32(0), {v.name}))[1]", v.shape, v.dtype, 4 * v.high, v.step)


def branch(b: Body) -> None:
    x = b.pick(lambda v: True)
    y = b.pick(lambda v: x and (v.shape, v.dtype) == (x.shape, x.dtype))
    if not x:
        return load(b)
    b.add(
        f"lax.cond({b.condition()}, lambda: {x.name}, lambda: {y.name})",
        x.shape, x.dtype, max(x.high, y.high), min(x.step, y.step),
    )  # fmt: skip


def scoped(b: Body) -> None:
    v = b.pick(lambda v: len(v.shape) > 0)
    if not v:
        return load(b)
    f, t = f"f{b.count}", f"t{b.count}"
    b.lines += [f"def {f}({t}):", f"    {t}[...] = {v.name}", f"    return {t}[...]"]
    b.add(f"pl.run_scoped({f}, pltpu.VMEM({v.shape}, jnp.{word(v.dtype)}))", v.shape, v.dtype, v.high, v.step)


STATEMENTS = [
    (load, 3), (unary, 4), (binary, 5), (comparison, 2), (logic, 1), (where, 2), (reduction, 2), (position, 0.4),
    (product, 1), (cast, 1.5), (shaping, 1), (store, 2), (conditional, 1.2), (looped, 0.5), (fori, 0.8), (while_, 0.3),
    (branch, 0.6), (scoped, 0.4),
]  # fmt: skip
NESTED = [
    (f, w) for f, w in STATEMENTS if f in (load, unary, binary, comparison, where, reduction, cast, store, shaping)
]


def broadcast(x: tuple, y: tuple) -> tuple | None:
    try:
        return np.broadcast_shapes(x, y)
    except ValueError:
        return None


def word(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


# ---- operands -----------------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """An operand or a result: its array's shape, its block's, its index map, and what the kernel sees."""

    array: tuple[int, ...]
    block: tuple[str, ...]
    index: tuple[str, ...]
    seen: tuple[int, ...]
    dtype: str
    ragged: bool

    def spec(self, params: str) -> str:
        index = f"lambda {params}: ({''.join(f'{e}, ' for e in self.index)})"
        return f"pl.BlockSpec(({''.join(f'{b}, ' for b in self.block)}), {index})"


def operand(rng: random.Random, form: str, grid: tuple[int, ...], seen: tuple[int, ...], dtype: str, result: bool,
            scalars: int) -> Operand:  # fmt: skip
    """A random operand whose blocks look so: squeezed dimensions are put between, and the rest is cut in a random way."""
    is_calm = form != "interpret"
    dims: list[int | None] = list(seen)
    for _ in range(rng.choices([0, 1, 2], [5, 3, 1])[0]):
        dims.insert(0 if form == "tpu" else rng.randrange(len(dims) + 1), None)
    array, block, index, ragged = [], [], [], False
    axes = list(range(len(grid)))
    for d in dims:
        number, count = _index(rng, grid, axes, result and is_calm, scalars)
        size = d or 1
        kind = rng.random()
        if d is None:
            array.append(count)
            block.append(rng.choice(["None", "pl.squeezed"]))
        elif kind < 0.12 and not is_calm:
            step = rng.randrange(1, size + 1)
            padding = rng.choice(["", "", ", (1, 0)", ", (0, 1)", ", (1, 1)"])
            n = (count - 1) * step + size - (sum(map(int, padding.strip(", ()").split(", "))) if padding else 0)
            if n < 1:
                padding, n = "", (count - 1) * step + size
            ragged |= bool(padding)
            array.append(n)
            block.append(f"pl.Element({size}{padding})")
            number = f"({number}) * {step}"
        else:
            less = rng.randrange(1, size) if size > 1 and rng.random() < 0.15 and not is_calm else 0
            ragged |= less > 0
            array.append(count * size - less)
            block.append(f"pl.Blocked({size})" if rng.random() < 0.1 else str(size))
        index.append(number)
    return Operand(tuple(array), tuple(block), tuple(index), seen, dtype, ragged)


def _index(rng: random.Random, grid: tuple, axes: list, is_calm: bool, scalars: int) -> tuple[str, int]:
    """The number of the block on a dimension, and of how many."""
    if is_calm:
        # Blocks of results are revisited in a row only: each axis in its order, and the last ones not at all.
        kind = rng.random()
        if axes and kind < 0.8:
            return f"i{axes[0]}", grid[axes.pop(0)]
        return "0", 1
    k = rng.randrange(len(grid))
    n = grid[k]
    other = rng.randrange(len(grid))
    choices = [
        (f"i{k}", n), (f"i{k}", n), (f"i{k}", n), ("0", 1), ("1", 2), (f"{n - 1} - i{k}", n), (f"i{k} // 2", (n + 1) // 2),
        (f"(i{k} + i{other}) % {n}", n), (f"i{k} * {grid[other]} + i{other}", n * grid[other]) if k != other else ("0", 2),
        (f"jnp.minimum(i{k}, {max(n - 2, 0)})", n), (f"i{k} + 1", n),
    ]  # fmt: skip
    choices += [(f"s{s}[i{k}]", 3) for s in range(scalars)] * 3
    return rng.choice(choices)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of which sums and products of a few are exact."""
    if dtype == "bool":
        return rng.random(shape) > 0.5
    if dtype in ("int32", "uint8"):
        return np.asarray(rng.integers(-9 if dtype == "int32" else 0, 10, shape)).astype(dtype)
    return np.asarray(rng.integers(-8, 9, shape) / 4).astype(getattr(ml_dtypes, dtype, dtype))


def generate(seed: int, form: str = "interpret") -> Program:
    """The program of that seed."""
    rng, draws = random.Random(f"{form}{seed}"), np.random.default_rng(seed)
    grid = tuple([rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))])
    while math.prod(grid) > 16:
        grid = tuple([max(n - 1, 1) for n in grid])
    shape = rng.choice(SHAPES[form])
    scalars = rng.choices([0, 1, 2], [6, 2, 1])[0]
    kinds = DTYPES if form != "tpu" else ("float32",) * 4 + ("int32", "bfloat16")
    pool = [rng.choice(kinds) for _ in range(rng.randrange(1, 4))]
    ins = [_operand_of(rng, form, grid, shape, pool, False, scalars) for _ in range(rng.randrange(1, 4))]
    outs = [_operand_of(rng, form, grid, shape, pool, True, 0) for _ in range(rng.choices([1, 2, 3], [5, 3, 1])[0])]
    aliases = {}
    if rng.random() < 0.2:
        ins[0] = outs[0]
        # A block that is revisited is not read again on a TPU.
        once = all(f"i{k}" in outs[0].index for k, n in enumerate(grid) if n > 1)
        if not outs[0].ragged and (form == "interpret" or once):
            aliases[scalars] = 0
    scratch = [(shape, rng.choice(pool)) for _ in range(rng.choices([0, 1, 2], [4, 3, 1])[0])]
    lines = _kernel(rng, form, grid, shape, (scalars, ins, outs, scratch, aliases))
    params = ", ".join([f"i{k}" for k in range(len(grid))] + [f"s{k}" for k in range(scalars)])
    shapes = "".join(f"jax.ShapeDtypeStruct({o.array}, jnp.{word(o.dtype)}), " for o in outs)
    space = ", ".join(f"pltpu.VMEM({s}, jnp.{word(d)})" for s, d in scratch)
    listed = lambda specs: "[" + ", ".join(s.spec(params) for s in specs) + "]"  # noqa: E731
    lines += [
        "program = pl.pallas_call(",
        f"    kernel, [{shapes}],",
        f"    grid_spec=pltpu.PrefetchScalarGridSpec({scalars}, {grid}, {listed(ins)}, {listed(outs)}, [{space}]),",
        f"    input_output_aliases={aliases}, interpret=interpret,",
        ")",
    ]
    args = [np.asarray(draws.integers(0, 3, (max(grid),))).astype(np.int32) for _ in range(scalars)]
    args += [numbers(draws, x.array, x.dtype) for x in ins]
    if form != "interpret" or rng.random() > 0.15:
        return Program(seed, "\n".join(lines) + "\n", tuple(args), form)
    axes = [None] * scalars + [rng.choice([0, 0, None]) for _ in ins]
    axes[-1] = 0
    args = [x if a is None else np.stack([x, x[..., ::-1] if x.ndim else x]) for x, a in zip(args, axes, strict=True)]
    return Program(seed, "\n".join(lines) + "\n", tuple(args), form, ("vmap",), tuple(axes))


def _operand_of(rng: random.Random, form: str, grid: tuple, shape: tuple, pool: list, result: bool, scalars: int):
    seen = shape
    if not result and len(shape) > 1 and form == "interpret" and rng.random() < 0.2:
        seen = tuple([1 if rng.random() < 0.5 else n for n in shape])
    return operand(rng, form, grid, seen, rng.choice(pool), result, scalars)


def _kernel(rng: random.Random, form: str, grid: tuple, shape: tuple, parts: tuple) -> list[str]:
    scalars, ins, outs, scratch, aliases = parts
    refs = [
        Reference(f"a{k}", x.seen, x.dtype, False)
        for k, x in enumerate(ins)
        if not (aliases and k == 0 and form == "interpret")
    ]
    refs += [Reference(f"o{k}", x.seen, x.dtype, True, 8.0, 0) for k, x in enumerate(outs)]
    refs += [Reference(f"t{k}", s, d, True, 8.0, 0) for k, (s, d) in enumerate(scratch)]
    body = Body(rng, form, shape, refs, len(grid))
    body.lines += [f"i{k} = pl.program_id({k})" for k in range(len(grid))]
    inputs = [r for r in refs if not r.written] or refs[-1:]
    for r in inputs[:2]:
        body.add(f"{r.name}[...]", r.shape, r.dtype, r.high, r.step)
    if form != "interpret":
        # Elsewhere, memory that was not written has other values.
        body.lines += [f"{r.name}[...] = jnp.zeros({r.shape}, jnp.{word(r.dtype)})" for r in refs if r.written]
    elif scratch and rng.random() < 0.8:
        r = refs[-1]
        first = " & ".join(f"(i{k} == 0)" for k in range(len(grid)))
        body.lines += [f"@pl.when({first})", "def _():", f"    {r.name}[...] = jnp.zeros({shape}, jnp.{word(r.dtype)})"]
    body.grow(rng.randrange(5, 17))
    for r in refs:
        if r.name[0] == "o" and rng.random() < 0.95:
            text = stored(body, r)
            plus = "+" if rng.random() < 0.3 and r.dtype != "bool" else ""
            if text:
                body.lines.append(f"{r.name}[...] {plus}= {text}")
    params = [f"s{k}" for k in range(scalars)] + [f"a{k}" for k in range(len(ins))]
    params += [f"o{k}" for k in range(len(outs))] + [f"t{k}" for k in range(len(scratch))]
    return [f"def kernel({', '.join(params)}):", *textwrap.indent("\n".join(body.lines), "    ").splitlines()]
