"""Kernels whose modules for Triton are compared with jax's, and how a module is read out of a lowered program."""

import dataclasses
import importlib
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from minijax.run.programs import kernel_modules


@dataclasses.dataclass(frozen=True)
class Type:
    """The shape and dtype of an operand or a result."""

    shape: tuple[int, ...]
    dtype: Any

    size = property(lambda self: int(np.prod(self.shape)))
    ndim = property(lambda self: len(self.shape))


def _of(dtype: Any) -> Callable[..., Type]:
    return lambda *shape: Type(shape, np.dtype(dtype))


f32, f64, f16, i32, u32, i8, u8, i16, i64, b1 = map(
    _of, (np.float32, np.float64, np.float16, np.int32, np.uint32, np.int8, np.uint8, np.int16, np.int64, np.bool_)
)
bf16, f8, f8n = map(_of, (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn))
i4, u4 = map(_of, (ml_dtypes.int4, ml_dtypes.uint4))


def names_of(package: str) -> types.SimpleNamespace:
    """The modules that kernels use, of jax or minijax."""
    get = lambda name: importlib.import_module(f"{package}.{name}")  # noqa: E731
    return types.SimpleNamespace(
        jax=importlib.import_module(package), jnp=get("numpy"), lax=get("lax"), nn=get("nn"),
        pl=get("experimental.pallas"), plt=get("experimental.pallas.triton"),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel: `body(n, *refs)`, with the names of `names_of`; `options(n)` are those of `pallas_call`."""

    body: Callable
    outs: Any
    ins: Sequence[Type]
    options: Callable = lambda n: {}
    platform: str = "cuda"
    transform: Callable = lambda n, f: f

    def call(self, n: types.SimpleNamespace, **more: Any) -> Callable:
        """The function that calls the kernel."""
        shape = lambda a: n.jax.ShapeDtypeStruct(a.shape, a.dtype)  # noqa: E731

        def kernel(*refs):
            self.body(n, *refs)

        outs = tuple(map(shape, self.outs)) if isinstance(self.outs, tuple) else shape(self.outs)
        options = {"compiler_params": n.plt.CompilerParams(), **self.options(n), **more}
        return self.transform(n, n.pl.pallas_call(kernel, outs, **options))

    def lowered(self, package: str) -> str:
        """The program that calls the kernel."""
        n = names_of(package)
        types = [n.jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.ins]
        return n.jax.jit(self.call(n)).trace(*types).lower(lowering_platforms=(self.platform,)).as_text()

    def module(self, package: str) -> str:
        """The module of the kernel, as MLIR prints it."""
        return kernel_modules.triton_text(bytecode_of(self.lowered(package)))

    def interpreted(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of minijax's interpreter."""
        n = names_of("minijax")
        results = n.jax.jit(self.call(n, interpret=True))(*arrays)
        return list(map(np.asarray, n.jax.tree.leaves(results)))

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Operands, whose integers are indices of at least eight elements."""
        return [_drawn(a, rng) for a in self.ins]


def _drawn(a: Type, rng: np.random.Generator) -> np.ndarray:
    if a.dtype == np.bool_:
        return rng.integers(0, 2, a.shape).astype(bool)
    if "int" in a.dtype.name:
        return rng.integers(0, 8, a.shape).astype(a.dtype)
    return rng.uniform(1.1, 1.9, a.shape).astype(a.dtype)


def sizes_of(text: str) -> tuple[int, ...]:
    """The launch in a lowered program."""
    return tuple(int(re.search(rf"grid_{axis} = (\d+)", text)[1]) for axis in "xyz")


_IR = re.compile(r' ir = "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(rb"\\(\\|[0-9A-F]{2})")


def bytecode_of(text: str) -> bytes:
    """The bytecode in a lowered program."""
    raw = _IR.search(text)[1].encode()
    return _ESCAPED.sub(lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 16)]), raw)


def without_bytecode(text: str) -> str:
    return _IR.sub(" ir", text)


def value(function: Callable, out: Any, *ins: Type, **more: Any) -> Kernel:
    """A kernel that applies `function(n, *values)` to whole blocks."""

    def body(n, *refs):
        results = function(n, *[r[...] for r in refs[: len(ins)]])
        results = results if isinstance(results, list | tuple) else [results]
        for ref, result in zip(refs[len(ins) :], results, strict=True):
            ref[...] = result

    return Kernel(body, out, ins, **more)


def _same(name: str, *dtypes: Callable, shape: tuple = (8,)) -> dict[str, Kernel]:
    """Kernels of a function of `lax` with one operand, by dtype."""
    return {f"{name}-{t().dtype}": value(lambda n, x: getattr(n.lax, name)(x), t(*shape), t(*shape)) for t in dtypes}


def _pairs(name: str, *dtypes: Callable, out: Callable | None = None) -> dict[str, Kernel]:
    return {
        f"{name}-{t().dtype}": value(lambda n, x, y: getattr(n.lax, name)(x, y), (out or t)(8), t(8), t(8))
        for t in dtypes
    }


FUNCTIONS = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh exp exp2 expm1 floor log log1p rsqrt sin sinh sqrt tan tanh"
).split()
HALF = "ceil cos exp exp2 floor log rsqrt sin sqrt".split()  # of the others in float16 the compiler makes no code
ELEMENTWISE = {k: v for name in FUNCTIONS for k, v in _same(name, f32).items()}
ELEMENTWISE |= {k: v for name in HALF for k, v in _same(name, f16).items()}
ELEMENTWISE |= _same("abs", f32, bf16, i32, i8) | _same("neg", f32, i32, u8) | _same("sign", f32, bf16, i32, u32)
ELEMENTWISE |= _same("square", f32, i32) | _same("population_count", i32) | _same("clz", i32)
ELEMENTWISE |= _same("bitwise_not", i32, u32, b1) | _same("logistic", f32) | _same("abs", f32, shape=())
for _name in ("add", "sub", "mul", "max", "min", "rem"):
    ELEMENTWISE |= _pairs(_name, f32, bf16, i32, u32)
ELEMENTWISE |= _pairs("div", f32, i32, u8) | _pairs("atan2", f32) | _pairs("nextafter", f32) | _pairs("pow", f32)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    ELEMENTWISE |= _pairs(_name, f32, i32, u32, out=b1)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    ELEMENTWISE |= _pairs(_name, i32, b1)
for _name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    ELEMENTWISE |= _pairs(_name, i32, u32)
for _k in (-3, -1, 0, 1, 2, 3, 5, 7, 10):
    ELEMENTWISE[f"integer_pow{_k}"] = value(lambda n, x, k=_k: n.lax.integer_pow(x, k), f32(8), f32(8))
ELEMENTWISE |= {
    "eq-bool": value(lambda n, x, y: n.lax.eq(x, y), b1(8), b1(8), b1(8)),
    "lt-bool": value(lambda n, x, y: n.lax.lt(x, y), b1(8), b1(8), b1(8)),
    "is_finite": value(lambda n, x: n.lax.is_finite(x), b1(8), f32(8)),
    "is_finite-f16": value(lambda n, x: n.lax.is_finite(x), b1(8), f16(8)),
    "pow-int": value(lambda n, x, y: n.lax.pow(x, y), f32(8), f32(8), i32(8)),
    "clamp": value(lambda n, x: n.lax.clamp(0.0, x, 1.0), f32(8), f32(8)),
    "clamp-arrays": value(lambda n, a, x, b: n.lax.clamp(a, x, b), i32(8), i32(8), i32(8), i32(8)),
    "select": value(lambda n, c, x, y: n.jnp.where(c > 0, x, y), f32(8), i32(8), f32(8), f32(8)),
    "select-number": value(lambda n, x: n.jnp.where(x > 0, x, 0.0), f32(8), f32(8)),
    "select-scalar": value(lambda n, c, x, y: n.lax.select_n(c > 0, x, y), f32(8), i32(), f32(8), f32(8)),
    "numbers": value(lambda n, x: (x * 2.0 + 3) / np.float32(7), f32(8), f32(8)),
    "numbers-bf16": value(lambda n, x: 1 - x * 2.5, bf16(8), bf16(8)),
    "numbers-scalar": value(lambda n, x: 1 - x * 2, i32(), i32()),
    "gelu": value(lambda n, x: n.nn.gelu(x), f32(8), f32(8)),
    "silu": value(lambda n, x: n.nn.silu(x), f32(8), f32(8)),
    "relu": value(lambda n, x: n.nn.relu(x), f32(8), f32(8)),
    "softmax": value(lambda n, x: n.nn.softmax(x), f32(4, 8), f32(4, 8)),
    "logaddexp": value(lambda n, x, y: n.jnp.logaddexp(x, y), f32(8), f32(8), f32(8)),
    "var": value(lambda n, x: n.jnp.var(x, axis=0), f32(8), f32(4, 8)),
    "exp-rocm": value(lambda n, x: n.jnp.exp(x), f32(8), f32(8), platform="rocm"),
    "pow-rocm": value(lambda n, x, y: n.lax.pow(x, y), f32(8), f32(8), i32(8), platform="rocm"),
    "abs-rocm": value(lambda n, x: n.lax.abs(x), i32(8), i32(8), platform="rocm"),
    "clz-rocm": value(lambda n, x: n.lax.clz(x) + n.lax.population_count(x), i32(8), i32(8), platform="rocm"),
}  # fmt: skip
ELEMENTWISE["polynomial"] = value(lambda n, x: x * x * x - 1, f32(4, 8), f32(4, 8))


def _converted(a: Callable, b: Callable) -> Kernel:
    return value(lambda n, x: n.lax.convert_element_type(x, b().dtype), b(8), a(8))


_TO = (f32, f16, bf16, i8, u8, i32, u32, b1)
CONVERSIONS = {
    f"{a().dtype}-{b().dtype}": _converted(a, b) for a in (f32, f16, bf16, i8, u8, i32, u32, b1) for b in _TO if a is not b
} | {f"{a().dtype}-{b().dtype}": _converted(a, b) for a, b in [
    (f32, f8), (f16, f8), (f8, f32), (f8n, bf16), (f32, f8n), (i16, i32),
]} | {
    f"bitcast-{a().dtype}-{b().dtype}": value(lambda n, x, b=b: n.lax.bitcast_convert_type(x, b().dtype), b(8), a(8))
    for a, b in [(f32, i32), (i32, u32), (bf16, i16)]
}  # fmt: skip

SHAPES = {
    "row": value(lambda n, x, y: x + y[None, :], f32(4, 8), f32(4, 8), f32(8)),
    "column": value(lambda n, x, y: x + y[:, None], f32(4, 8), f32(4, 8), f32(4)),
    "broadcast-3": value(lambda n, x: n.lax.broadcast_in_dim(x, (4, 8, 2), (1,)), f32(4, 8, 2), f32(8)),
    "broadcast-02": value(lambda n, x: n.lax.broadcast_in_dim(x, (4, 8, 2), (0, 2)), f32(4, 8, 2), f32(4, 1)),
    "broadcast-same": value(lambda n, x: n.lax.broadcast_in_dim(x, (4, 1, 8), (0, 2)), f32(4, 1, 8), f32(4, 8)),
    "broadcast-scalar": value(lambda n, x: n.jnp.full((4, 8), x), f32(4, 8), f32()),
    "zeros": value(lambda n, x: x + n.jnp.zeros((4, 8)), f32(4, 8), f32(4, 8)),
    "reshape": value(lambda n, x: x.reshape(8, 4), f32(8, 4), f32(4, 8)),
    "reshape-to-scalar": value(lambda n, x: x.reshape(()), f32(), f32(1, 1)),
    "reshape-to-scalar-int": value(lambda n, x: x.reshape(()), i32(), i32(1, 1)),
    "reshape-of-scalar": value(lambda n, x: x.reshape(1, 1), f32(1, 1), f32()),
    "squeeze": value(lambda n, x: n.lax.squeeze(x, (1,)), f32(4), f32(4, 1)),
    "transpose": value(lambda n, x: x.T, f32(8, 4), f32(4, 8)),
    "transpose-3": value(lambda n, x: x.transpose(2, 0, 1), f32(2, 4, 8), f32(4, 8, 2)),
    "iota": value(lambda n, x: x + n.lax.iota(np.int32, 8), i32(8), i32(8)),
    "iota-float": value(lambda n, x: x + n.lax.broadcasted_iota(np.float32, (4, 8), 1), f32(4, 8), f32(4, 8)),
    "iota-0": value(lambda n, x: x + n.lax.broadcasted_iota(np.int32, (4, 8), 0), i32(4, 8), i32(4, 8)),
    "iota-3": value(lambda n, x: x + n.lax.broadcasted_iota(np.int32, (4, 8, 2), 1), i32(4, 8, 2), i32(4, 8, 2)),
    "arange": value(lambda n, x: x + n.jnp.arange(8), i32(8), i32(8)),
    "split": value(lambda n, x: n.lax.split(x, (4, 4))[1], f32(4), f32(8)),
    "split-1": value(lambda n, x: n.jnp.add(*n.lax.split(x, (4, 4), axis=1)), f32(4, 4), f32(4, 8)),
    "split-0": value(lambda n, x: n.jnp.add(*n.lax.split(x, (2, 2), axis=0)), f32(2, 8), f32(4, 8)),
    "split-4": value(lambda n, x: n.lax.split(x, (2,) * 4, axis=1)[1], f32(4, 2), f32(4, 8)),
    "concatenate": value(lambda n, x, y: n.lax.concatenate([x, y], 1), f32(8, 2), f32(8, 1), f32(8, 1)),
    "stack": value(lambda n, x, y: n.jnp.stack([x, y], -1), f32(8, 2), f32(8), f32(8)),
    "unstack": value(lambda n, x: n.jnp.add(*n.jnp.unstack(x, axis=1)), f32(8), f32(8, 2)),
    "copies": value(lambda n, x: n.lax.stop_gradient(x), f32(8), f32(8)),
}

REDUCTIONS = {
    "sum": value(lambda n, x: n.jnp.sum(x), f32(), f32(8)),
    "sum-0": value(lambda n, x: n.jnp.sum(x, axis=0), f32(8), f32(4, 8)),
    "sum-1": value(lambda n, x: n.jnp.sum(x, axis=1), f32(4), f32(4, 8)),
    "sum-both": value(lambda n, x: n.jnp.sum(x), f32(), f32(4, 8)),
    "sum-02": value(lambda n, x: n.jnp.sum(x, axis=(0, 2)), f32(8), f32(4, 8, 2)),
    "sum-int": value(lambda n, x: n.jnp.sum(x), i32(), i32(4, 8)),
    "sum-bf16": value(lambda n, x: n.jnp.sum(x, axis=0), bf16(8), bf16(4, 8)),
    "sum-kept": value(lambda n, x: x / n.jnp.sum(x, axis=1, keepdims=True), f32(4, 8), f32(4, 8)),
    "max": value(lambda n, x: n.jnp.max(x, axis=1), f32(4), f32(4, 8)),
    "max-both": value(lambda n, x: n.jnp.max(x), f32(), f32(4, 8)),
    "max-int": value(lambda n, x: n.jnp.max(x, axis=1), i32(4), i32(4, 8)),
    "max-uint": value(lambda n, x: n.jnp.max(x, axis=1), u32(4), u32(4, 8)),
    "min": value(lambda n, x: n.jnp.min(x, axis=1), f32(4), f32(4, 8)),
    "mean": value(lambda n, x: n.jnp.mean(x, axis=1), f32(4), f32(4, 8)),
    "argmax": value(lambda n, x: n.jnp.argmax(x, axis=1), i32(4), f32(4, 8)),
    "argmin": value(lambda n, x: n.jnp.argmin(x, axis=0), i32(8), f32(4, 8)),
    "argmax-int": value(lambda n, x: n.jnp.argmax(x), i32(), i32(8)),
    "argmax-uint": value(lambda n, x: n.jnp.argmax(x), i32(), u32(8)),
    "cumsum": value(lambda n, x: n.jnp.cumsum(x), f32(8), f32(8)),
    "cumsum-1": value(lambda n, x: n.lax.cumsum(x, axis=1), i32(4, 8), i32(4, 8)),
}


def _dot(out: Callable, a: Callable, *, axes: Any = ((1,), (0,)), shapes: Any = ((16, 16),) * 3, **kw: Any) -> Kernel:
    def function(n, x, y):
        options = dict(kw)
        if isinstance(name := options.get("precision"), str) and name.isupper():
            options["precision"] = n.lax.DotAlgorithmPreset[name]
        return n.lax.dot_general(x, y, (axes, ((), ())), **options)

    return value(function, out(*shapes[2]), a(*shapes[0]), a(*shapes[1]))


def _acc(kind: Callable) -> dict[str, Any]:
    return {"preferred_element_type": kind().dtype}


PRODUCTS = {
    "f32": _dot(f32, f32),
    "f32-sizes": _dot(f32, f32, shapes=((16, 32), (32, 64), (16, 64)), **_acc(f32)),
    "default": _dot(f32, f32, precision="default"),
    "high": _dot(f32, f32, precision="high"),
    "highest": _dot(f32, f32, precision="highest"),
    "mixed": _dot(f32, f32, precision=("default", "highest")),
    "00": _dot(f32, f32, axes=((0,), (0,))),
    "11": _dot(f32, f32, axes=((1,), (1,))),
    "01": _dot(f32, f32, axes=((0,), (1,))),
    "f16": _dot(f16, f16),
    "f16-f32": _dot(f32, f16, **_acc(f32)),
    "bf16": _dot(bf16, bf16),
    "bf16-f32": _dot(f32, bf16, **_acc(f32)),
    "i8": _dot(i32, i8, **_acc(i32)),
    "f8": _dot(f32, f8, **_acc(f32)),
    "matmul": value(lambda n, x, y: x @ y, f32(16, 16), f32(16, 16), f32(16, 16)),
    **{f"{name}-{t().dtype}": _dot(f32, t, precision=name, **_acc(f32)) for t in (f32, bf16) for name in (
        "F16_F16_F16", "F16_F16_F32", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
        "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32",
    )},
}  # fmt: skip


# ---- references -----------------------------------------------------------------------------------------


def _blocks(n, grid, ins, outs):
    spec = lambda shape, index: n.pl.BlockSpec(shape, index)  # noqa: E731
    return dict(grid=grid, in_specs=[spec(*s) for s in ins], out_specs=spec(*outs))


def _stores(function: Callable) -> Callable:
    """A kernel's body: the last reference gets the function of the others."""

    def body(n, *refs):
        refs[-1][...] = function(n, *refs[:-1])

    return body


def _add(n, x, y, o):
    o[...] = x[...] + y[...]


def _rows(n, x, o):
    i = n.pl.program_id(0)
    o[0, :] = x[1, :] + x[2]
    o[1, :2] = x[:2, 0]
    o[0, 0] = x[1, 1]
    o[i, 1] = x[2, i]
    o[i, n.pl.ds(0, 4, 2)] = x[i, n.pl.ds(i, 4)]


REFERENCES = {
    "whole": Kernel(_add, f32(8), [f32(8), f32(8)]),
    "scalar": Kernel(_add, f32(), [f32(), f32()]),
    "blocks": Kernel(
        _add, f32(20, 128), [f32(20, 128)] * 2,
        lambda n: _blocks(n, (3,), [((8, 128), lambda i: (i, 0))] * 2, ((8, 128), lambda i: (i, 0))),
    ),
    "squeezed": Kernel(
        _stores(lambda n, x: x[...]), bf16(4, 8, 16), [bf16(4, 8, 16)],
        lambda n: _blocks(n, (4, 2), [((None, 8, 8), lambda i, j: (i, 0, j))],
                          ((n.pl.squeezed, 8, 8), lambda i, j: (i, 0, j))),
    ),
    "element": Kernel(
        _stores(lambda n, x: x[...]), f32(8), [f32(16)],
        lambda n: _blocks(n, (2,), [((n.pl.Element(8),), lambda i: (i * 8,))], ((8,), lambda i: (0,))),
    ),
    "arithmetic-index": Kernel(
        _stores(lambda n, x: x[...]), f32(8), [f32(16, 8)],
        lambda n: _blocks(n, (2, 4), [((None, 8), lambda i, j: (i + j * 2, j // 4))], ((8,), lambda i, j: (0,))),
    ),
    "index-by-id": Kernel(
        _stores(lambda n, x: x[...]), f32(8), [f32(16, 8)],
        lambda n: _blocks(n, (2,), [((None, 8), lambda i: (n.pl.program_id(0), 0))], ((8,), lambda i: (0,))),
    ),
    "rows": Kernel(_rows, f32(4, 8), [f32(4, 8)], lambda n: dict(grid=(2,))),
    "vmapped-id": Kernel(
        _stores(lambda n, x: x[...] + n.pl.program_id(0)), f32(8), [f32(3, 8)],
        lambda n: _blocks(n, (2, 4), [((8,), lambda i, j: (0,))], ((8,), lambda i, j: (0,))),
        transform=lambda n, f: n.jax.vmap(f),
    ),
    "vmapped-twice": Kernel(
        _stores(lambda n, x: x[...] + n.pl.program_id(0)), f32(8), [f32(3, 5, 8)],
        lambda n: _blocks(n, (2,), [((8,), lambda i: (0,))], ((8,), lambda i: (0,))),
        transform=lambda n, f: n.jax.vmap(n.jax.vmap(f)),
    ),
    "array": Kernel(_stores(lambda n, x, i: x[i[...]]), f32(4), [f32(8), i32(4)]),
    "array-rows": Kernel(_stores(lambda n, x, i: x[i[...], :]), f32(4, 8), [f32(8, 8), i32(4)]),
    "arrays": Kernel(_stores(lambda n, x, i: x[i[...][:, None], i[...][None, :]]), f32(4, 4), [f32(8, 8), i32(4)]),
    "arrays-together": Kernel(_stores(lambda n, x, i: x[i[...], i[...]]), f32(4), [f32(8, 8), i32(4)]),
    "array-int": Kernel(_stores(lambda n, x, i: x[i[...], 2]), f32(4), [f32(8, 8), i32(4)]),
    "int-array": Kernel(_stores(lambda n, x, i: x[2, i[...]]), f32(4), [f32(8, 8), i32(4)]),
    "arrays-apart": Kernel(_stores(lambda n, x, i: x[i[...], :, i[...]]), f32(4, 8), [f32(8, 8, 8), i32(4)]),
    "array-id": Kernel(
        _stores(lambda n, x, i: x[i[...], n.pl.program_id(0)]), f32(4), [f32(8, 8), i32(4)], lambda n: dict(grid=(2,))
    ),
    "windows": Kernel(
        _stores(lambda n, x: x[n.pl.ds(n.pl.program_id(0), 4, 2), n.pl.ds(n.pl.program_id(0), 4)]), f32(4, 4),
        [f32(16, 16)], lambda n: dict(grid=(2,)),
    ),
    "bool": Kernel(_stores(lambda n, x: x[...] & (x[...] | True)), b1(8), [b1(8)]),
    "bool-scalar": Kernel(_stores(lambda n, x: x[...]), b1(), [b1()]),
    "f8": Kernel(_stores(lambda n, x: (x[...].astype(np.float32) * 2).astype(x.dtype)), f8(8), [f8(8)]),
    "i4": Kernel(_stores(lambda n, x: x[...].astype(np.int32)), i32(8), [i4(8)]),
    "u4": Kernel(_stores(lambda n, x: x[...].astype(np.int32)), i32(4, 8), [u4(4, 8)]),
    "i4-column": Kernel(_stores(lambda n, x: x[:, 0].astype(np.int32)), i32(4), [i4(4, 8)]),
    "i4-scalar": Kernel(_stores(lambda n, x: x[1].astype(np.int32)), i32(), [i4(8)]),
    "i4-slice": Kernel(_stores(lambda n, x: x[2:6].astype(np.float32)), f32(4), [i4(16)]),
    "i4-odd": Kernel(_stores(lambda n, x: x[3:7].astype(np.float32)), f32(4), [i4(16)]),
    "i4-blocks": Kernel(
        _stores(lambda n, x: x[...].astype(np.float32)), f32(16, 16), [i4(16, 16)],
        lambda n: _blocks(n, (2,), [((8, 16), lambda i: (i, 0))], ((8, 16), lambda i: (i, 0))),
    ),
    "large": Kernel(
        _stores(lambda n, x: x[n.pl.program_id(0), 0:4]), f32(4), [f32(1 << 20, 1 << 11)],
        lambda n: _blocks(n, (2,), [((2, 2048), lambda i: (i, 0))], ((4,), lambda i: (0,))),
    ),
    "large-2": Kernel(
        _stores(lambda n, x: x[0:2, 0:4]), f32(2, 4), [f32(1 << 20, 1 << 11)],
        lambda n: _blocks(n, (2,), [((2, 2048), lambda i: (i, 0))], ((2, 4), lambda i: (0, 0))),
    ),
    "large-scalar": Kernel(
        _stores(lambda n, x: x[n.pl.program_id(0), 0]), f32(), [f32(1 << 20, 1 << 11)],
        lambda n: _blocks(n, (2,), [((2, 2048), lambda i: (i, 0))], ((), lambda i: ())),
    ),
    "several": Kernel(
        lambda n, x, a, b: (a.__setitem__(..., x[...] + 1), b.__setitem__(..., x[...] * 2)), (f32(8), f32(8)), [f32(8)]
    ),
}  # fmt: skip


def _ids(count: int) -> Callable:
    def body(n, o):
        total = n.jnp.int32(0)
        for axis in range(count):
            total = total + n.pl.program_id(axis)
        o[...] = total

    return body


_GRIDS = [
    (5,), (2, 3), (1, 5), (2, 3, 4), (2, 2, 2), (1, 1, 2), (2, 3, 4, 5), (2, 3, 4, 5, 6), (2, 1, 3, 1, 4), (2, 100000),
    (3, 70000, 2), (70000,), (2, 3, 4, 70000),
]  # fmt: skip
GRIDS = {"x".join(map(str, g)): Kernel(_ids(len(g)), i32(), [], lambda n, g=g: dict(grid=g)) for g in _GRIDS}
GRIDS["num_programs"] = Kernel(
    lambda n, o: o.__setitem__(..., n.pl.num_programs(0) + n.pl.program_id(0)), i32(), [], lambda n: dict(grid=(4,))
)


# ---- control flow ---------------------------------------------------------------------------------------


def _when(n, x, c, o):
    def write():
        o[...] = x[1]  # noqa: E704

    n.pl.when(c[...] > 0)(write)


def _in_place(n, x, o):
    def step(i, _):
        o[i] = x[i] * 2  # noqa: E704

    n.lax.fori_loop(0, 8, step, None)


def _nested(n, x, o):
    def inner(i, c):
        return n.lax.fori_loop(0, i, lambda j, d: d + x[j], c)

    o[...] = n.lax.fori_loop(0, 8, inner, n.jnp.float32(0))


CONTROL = {
    "fori": Kernel(_stores(lambda n, x: n.lax.fori_loop(0, 8, lambda i, c: c + x[i], n.jnp.float32(0))), f32(), [f32(8)]),
    "fori-part": Kernel(_stores(lambda n, x: n.lax.fori_loop(2, 6, lambda i, c: c + x[i], n.jnp.float32(0))), f32(), [f32(8)]),
    "fori-i": Kernel(_stores(lambda n, x: n.lax.fori_loop(0, 8, lambda i, c: c * i + 1, x[0])), f32(), [f32(8)]),
    "fori-two": Kernel(
        _stores(lambda n, x: sum(n.lax.fori_loop(0, 8, lambda i, c: (c[1], c[0] + x[i]), (x[0], x[1])))), f32(), [f32(8)]
    ),
    "fori-block": Kernel(
        _stores(lambda n, x: n.lax.fori_loop(0, 4, lambda i, c: c + x[i], n.jnp.zeros((8,)))), f32(8), [f32(4, 8)]
    ),
    "fori-dynamic": Kernel(
        _stores(lambda n, x, m: n.lax.fori_loop(0, m[...], lambda i, c: c + x[i], n.jnp.float32(0))), f32(), [f32(8), i32()]
    ),
    "fori-from-id": Kernel(
        _stores(lambda n, x, m: n.lax.fori_loop(n.pl.program_id(0), m[...], lambda i, c: c + x[i], n.jnp.float32(0))),
        f32(), [f32(8), i32()], lambda n: dict(grid=(2,)),
    ),
    "fori-in-place": Kernel(_in_place, f32(8), [f32(8)]),
    "fori-nested": Kernel(_nested, f32(), [f32(8)]),
    "scan": Kernel(
        _stores(lambda n, x: n.lax.scan(lambda c, _: (c + x[...], None), n.jnp.zeros((8,)), None, length=4)[0]),
        f32(8), [f32(8)],
    ),
    "while": Kernel(
        _stores(lambda n, x, m: n.lax.while_loop(lambda c: c[0] < 10.0, lambda c: (c[0] * x[0], c[1] + 1), (x[1], m[...]))[0]),
        f32(), [f32(8), i32()],
    ),
    "while-consts": Kernel(
        _stores(lambda n, x, m: n.lax.while_loop(lambda c: c[0] < x[2], lambda c: (c[0] * x[0], c[1] + m[...]), (x[1], 0))[0]),
        f32(), [f32(8), i32()],
    ),
    "while-block": Kernel(
        _stores(lambda n, x: n.lax.while_loop(lambda c: n.jnp.sum(c) < 3.0, lambda c: c * 2, x[...])), f32(8), [f32(8)]
    ),
    "cond": Kernel(
        _stores(lambda n, x, m: n.lax.cond(m[...] > 0, lambda y: y + 1.0, lambda y: y * x[2], x[1])), f32(), [f32(8), i32()]
    ),
    "cond-block": Kernel(
        _stores(lambda n, x, m: n.lax.cond(m[...] > 0, lambda y: y + 1.0, lambda y: n.jnp.zeros_like(y), x[...])),
        f32(8), [f32(8), i32()],
    ),
    "when": Kernel(_when, f32(), [f32(8), i32()]),
    "switch": Kernel(
        _stores(lambda n, x, m: n.lax.switch(m[...], [lambda y: y + 1.0, lambda y: y * x[2], lambda y: y - 3.0, lambda y: y], x[1])),
        f32(), [f32(8), i32()],
    ),
    "jit": value(lambda n, x: n.jax.jit(lambda y: y * 2)(x), f32(8), f32(8)),
    "checkpoint": value(lambda n, x: n.jax.checkpoint(lambda y: n.jnp.sin(y) * 2)(x), f32(8), f32(8)),
}  # fmt: skip


# ---- operations of pl.triton ----------------------------------------------------------------------------


def _masked(n, size=8):
    return n.jnp.arange(size) < 5


def _stored(n, x, o):
    n.plt.store(o.at[...], x[...], mask=_masked(n))


def _atomic(name: str, index: Callable = lambda n: (0,), element: Any = 0, mask: bool = False) -> Callable:
    def body(n, x, o):
        v = x[element]
        getattr(n.plt, name)(o, index(n), v, **({"mask": v > 0} if mask else {}))

    return body


def _rows_of(name: str, *dtypes: Callable) -> dict[str, Kernel]:
    return {f"{name}-{t().dtype}": Kernel(_atomic(name), t(8), [t(8)]) for t in dtypes}


TRITON = {
    "load": Kernel(_stores(lambda n, x: n.plt.load(x.at[...])), f32(8), [f32(8)]),
    "load-mask": Kernel(_stores(lambda n, x: n.plt.load(x.at[...], mask=_masked(n))), f32(8), [f32(8)]),
    "load-other": Kernel(_stores(lambda n, x: n.plt.load(x.at[...], mask=_masked(n), other=0.0)), f32(8), [f32(8)]),
    "load-int": Kernel(_stores(lambda n, x: n.plt.load(x.at[...], mask=_masked(n), other=0)), f32(8), [f32(8)]),
    "load-long": Kernel(_stores(lambda n, x: n.plt.load(x.at[n.pl.ds(0, 8)], mask=_masked(n))), f32(8), [f32(5)]),
    "load-row": Kernel(
        _stores(lambda n, x: n.plt.load(x.at[0, :], mask=n.pl.program_id(0) < 5, other=1.0)), f32(8), [f32(4, 8)],
        lambda n: dict(grid=(2,)),
    ),
    "load-others": Kernel(
        _stores(lambda n, x: n.plt.load(x.at[0, :], mask=_masked(n), other=n.jnp.full((8,), 2.0))), f32(8), [f32(4, 8)]
    ),
    "load-bool": Kernel(_stores(lambda n, x: n.plt.load(x.at[...], mask=x[...], other=False)), b1(8), [b1(8)]),
    "load-evict": Kernel(
        _stores(lambda n, x: n.plt.load(x.at[...], eviction_policy="evict_last")), f32(8), [f32(8)]
    ),
    "load-window": Kernel(
        _stores(lambda n, x: n.plt.load(x.at[n.pl.ds(n.pl.program_id(0) * 4, 4)])), f32(4), [f32(8)],
        lambda n: dict(grid=(2,)),
    ),
    "load-2": Kernel(
        _stores(lambda n, x: n.plt.load(x.at[...], mask=(n.jnp.arange(4) < 3)[:, None], other=0.0)), f32(4, 8), [f32(4, 8)]
    ),
    "store": Kernel(_stored, f32(8), [f32(8)]),
    "store-evict": Kernel(
        lambda n, x, o: n.plt.store(o.at[0], x[0], eviction_policy="evict_first"), f32(8), [f32(8)]
    ),
    **_rows_of("atomic_add", f32, i32, u32, f16, bf16),
    **_rows_of("atomic_max", f32, i32, u32),
    **_rows_of("atomic_min", f32, i32, u32),
    **_rows_of("atomic_and", i32, u32),
    **_rows_of("atomic_or", i32),
    **_rows_of("atomic_xor", i32),
    **_rows_of("atomic_xchg", f32, i32),
    "atomic-mask": Kernel(_atomic("atomic_add", lambda n: (n.pl.ds(0, 8),), ..., True), f32(8), [f32(8)]),
    "atomic-max-mask": Kernel(_atomic("atomic_max", lambda n: (n.pl.ds(0, 8),), ..., True), f32(8), [f32(8)]),
    "atomic-min": Kernel(_atomic("atomic_min", lambda n: (n.pl.ds(0, 8),), ...), f32(8), [f32(8)]),
    "atomic-result": Kernel(lambda n, x, o: o.__setitem__(0, n.plt.atomic_add(x, (0,), 1.0)), f32(8), [f32(8)]),
    "cas": Kernel(lambda n, x, o: o.__setitem__(0, n.plt.atomic_cas(x, 0, 1)), i32(8), [i32()]),
    "debug_print": Kernel(
        lambda n, x, o: (n.pl.debug_print("only:", x[0]), o.__setitem__(..., x[...]))[0], f32(2), [f32(2)]
    ),
    "debug_print-int": Kernel(
        lambda n, x, o: (n.pl.debug_print("some", x[...]), o.__setitem__(..., x[...]))[0], i32(2), [i32(2)]
    ),
    "debug_barrier": Kernel(lambda n, x, o: (n.plt.debug_barrier(), o.__setitem__(..., x[...]))[0], f32(), [f32()]),
    "approx_tanh": value(lambda n, x: n.plt.approx_tanh(x), f32(8), f32(8)),
    "approx_tanh-bf16": value(lambda n, x: n.plt.approx_tanh(x), bf16(8), bf16(8)),
    "approx_tanh-rocm": value(lambda n, x: n.plt.approx_tanh(x), bf16(8), bf16(8), platform="rocm"),
    "asm": value(
        lambda n, x: n.plt.elementwise_inline_asm(
            "tanh.approx.f32 $0, $1;", args=[x], constraints="=f,f", pack=1,
            result_shape_dtypes=[n.jax.ShapeDtypeStruct((8,), np.float32)],
        )[0], f32(8), f32(8),
    ),
    "multiple_of": Kernel(
        _stores(lambda n, x, i: x[n.pl.ds(n.pl.multiple_of(i[...], 4), 2)]), f32(2), [f32(8), i32()]
    ),
    "max_contiguous": Kernel(
        _stores(lambda n, x, i: x[n.plt.max_contiguous(n.pl.multiple_of(i[...], 4), 4)]), f32(8), [f32(8), i32(8)]
    ),
    "dot": value(lambda n, x, y: n.plt.dot(x, y), f32(16, 16), f32(16, 16), f32(16, 16)),
    "dot-transposed": value(lambda n, x, y: n.plt.dot(x, y, trans_a=True), f32(16, 16), f32(16, 16), f32(16, 16)),
    "dot-ieee": value(lambda n, x, y: n.plt.dot(x, y, allow_tf32=False), f32(16, 16), f32(16, 16), f32(16, 16)),
    "broadcast_to": value(lambda n, x: n.pl.broadcast_to(n.jnp.sum(x), (2,)), f32(2), f32(2)),
}  # fmt: skip


# ---- whole kernels --------------------------------------------------------------------------------------


def _matmul(n, x, y, o):
    def step(i, total):
        a = x[:, n.pl.ds(i * 16, 16)]
        b = y[n.pl.ds(i * 16, 16), :]
        return total + n.jnp.dot(a, b, preferred_element_type=np.float32)

    o[...] = n.lax.fori_loop(0, 4, step, n.jnp.zeros((32, 32), np.float32)).astype(o.dtype)


def _softmax(n, x, o):
    row = n.plt.load(x.at[...], mask=n.jnp.arange(128) < 100, other=-np.inf)
    e = n.jnp.exp(row - n.jnp.max(row))
    n.plt.store(o.at[...], e / n.jnp.sum(e), mask=n.jnp.arange(128) < 100)


def _attention(n, q, k, v, o):
    total = n.jnp.zeros((16, 32), np.float32)
    start = (total, n.jnp.full((16,), -np.inf), n.jnp.zeros((16,)))

    def step(i, carry):
        total, high, size = carry
        window = n.pl.ds(i * 16, 16)
        s = n.jnp.dot(q[...], k[window, :].T)
        new = n.jnp.maximum(high, n.jnp.max(s, axis=1))
        p, scale = n.jnp.exp(s - new[:, None]), n.jnp.exp(high - new)
        return total * scale[:, None] + n.jnp.dot(p, v[window, :]), new, size * scale + n.jnp.sum(p, axis=1)

    total, _, size = n.lax.fori_loop(0, 4, step, start)
    o[...] = total / size[:, None]


def _layer_norm(n, x, w, b, o):
    v = x[...].astype(np.float32)
    mean = n.jnp.mean(v, axis=1, keepdims=True)
    spread = n.jnp.mean((v - mean) ** 2, axis=1, keepdims=True)
    o[...] = ((v - mean) * n.lax.rsqrt(spread + 1e-5) * w[...] + b[...]).astype(o.dtype)


def _histogram(n, x, o):
    n.plt.atomic_add(o, (x[...],), n.jnp.ones((16,), np.float32))


KERNELS = {
    "matmul": Kernel(
        _matmul, bf16(64, 64), [bf16(64, 64), bf16(64, 64)],
        lambda n: _blocks(n, (2, 2), [((32, 64), lambda i, j: (i, 0)), ((64, 32), lambda i, j: (0, j))],
                          ((32, 32), lambda i, j: (i, j))),
    ),
    "softmax": Kernel(
        _softmax, f32(8, 128), [f32(8, 128)],
        lambda n: _blocks(n, (8,), [((None, 128), lambda i: (i, 0))], ((None, 128), lambda i: (i, 0))),
    ),
    "attention": Kernel(
        _attention, f32(64, 32), [f32(64, 32)] * 3,
        lambda n: _blocks(n, (4,), [((16, 32), lambda i: (i, 0)), *[((64, 32), lambda i: (0, 0))] * 2],
                          ((16, 32), lambda i: (i, 0))),
    ),
    "layer_norm": Kernel(
        _layer_norm, bf16(16, 64), [bf16(16, 64), f32(64), f32(64)],
        lambda n: _blocks(n, (4,), [((4, 64), lambda i: (i, 0)), *[((64,), lambda i: (0,))] * 2],
                          ((4, 64), lambda i: (i, 0))),
    ),
    "histogram": Kernel(
        _histogram, f32(16), [i32(64)],
        lambda n: _blocks(n, (4,), [((16,), lambda i: (i,))], ((16,), lambda i: (0,))),
    ),
}  # fmt: skip


def _with_vjp(n, x):
    twice = n.jax.custom_vjp(lambda y: y * 2)
    twice.defvjp(lambda y: (y * 2, None), lambda _, ct: (ct,))
    return twice(x)


def _counted(n, x, o):
    o[...] = n.jnp.zeros((16,), np.int32)
    n.plt.atomic_add(o, (x[...],), n.jnp.ones((16,), np.int32))


def _raised(n, x, o):
    o[...] = n.jnp.full((8,), 3)
    n.plt.atomic_max(o.at[2:6], (n.pl.ds(1, 2),), x[:2])


# ---- kernels that jax does not lower, or not rightly ----------------------------------------------------

OWN = {
    "rev": value(lambda n, x: n.lax.rev(x, (0, 1)), f32(4, 8), f32(4, 8)),
    "rev-bool": value(lambda n, x: n.lax.rev(x, (0,)), b1(8), b1(8)),
    "slice": value(lambda n, x: x[2:6], f32(4), f32(8)),
    "slice-half": value(lambda n, x: x[:, 4:], f32(4, 4), f32(4, 8)),
    "slice-quarter": value(lambda n, x: x[2:4], f32(2, 8), f32(8, 8)),
    "slice-step": value(lambda n, x: x[1::2], f32(4), f32(8)),
    "dynamic_slice": value(lambda n, x, i: n.lax.dynamic_slice(x, (i, 0), (2, 8)), f32(2, 8), f32(8, 8), i32()),
    "pad": value(lambda n, x: n.lax.pad(x, 7.0, [(1, 3, 0)]), f32(8), f32(4)),
    "pad-interior": value(lambda n, x: n.lax.pad(x, 7.0, [(0, 1, 1)]), f32(8), f32(4)),
    "pad-cut": value(lambda n, x: n.lax.pad(x, 7.0, [(-2, -2, 0), (4, 4, 0)]), f32(4, 16), f32(8, 8)),
    "sort": value(lambda n, x: n.lax.sort(x), f32(16), f32(16)),
    "sort-rows": value(lambda n, x: n.jnp.sort(x, axis=0), i32(16, 4), i32(16, 4)),
    "argsort": value(lambda n, x: n.jnp.argsort(x), i32(16), i32(16)),
    "sort-two": value(lambda n, x, y: n.lax.sort((x, y), num_keys=2), (i32(8), f32(8)), i32(8), f32(8)),
    "concatenate": value(lambda n, x, y: n.lax.concatenate([x, y], 0), f32(16), f32(8), f32(8)),
    "concatenate-0": value(lambda n, x, y: n.lax.concatenate([x, y], 0), f32(2, 8), f32(1, 8), f32(1, 8)),
    "concatenate-4": value(
        lambda n, x, y: n.lax.concatenate([x, y, y], 1), f32(4, 16), f32(4, 8), f32(4, 4)
    ),
    "stack": value(lambda n, x, y: n.jnp.stack([x, y]), f32(2, 8), f32(8), f32(8)),
    "stack-4": value(lambda n, x, y: n.jnp.stack([x, y, x, y], 1), f32(8, 4), f32(8), f32(8)),
    "unstack": value(lambda n, x: n.jnp.unstack(x)[2], f32(8), f32(4, 8)),
    "cumsum-reverse": value(lambda n, x: n.lax.cumsum(x, reverse=True), f32(8), f32(8)),
    "cumprod": value(lambda n, x: n.lax.cumprod(x), f32(8), f32(8)),
    "cummax": value(lambda n, x: n.lax.cummax(x, axis=1), i32(4, 8), i32(4, 8)),
    "prod": value(lambda n, x: n.jnp.prod(x, axis=1), f32(4), f32(4, 8)),
    "all": value(lambda n, x: n.jnp.all(x, axis=1), b1(4), b1(4, 8)),
    "any": value(lambda n, x: n.jnp.any(x), b1(), b1(4, 8)),
    "round": value(lambda n, x: n.jnp.round(x * 4), f32(8), f32(8)),
    "round-away": value(lambda n, x: n.lax.round(x * 4), f32(8), f32(8)),
    "erf": value(lambda n, x: n.lax.erf(x), f32(8), f32(8)),
    "erf-bf16": value(lambda n, x: n.lax.erf(x), bf16(8), bf16(8)),
    "erf_inv": value(lambda n, x: n.lax.erf_inv(x - 1), f32(8), f32(8)),
    "lgamma": value(lambda n, x: n.lax.lgamma(x), f32(8), f32(8)),
    "logistic-f16": value(lambda n, x: n.lax.logistic(x), f16(8), f16(8)),
    "div-bf16": value(lambda n, x, y: x / y, bf16(8), bf16(8), bf16(8)),
    "integer_pow-f16": value(lambda n, x: n.lax.integer_pow(x, -2), f16(8), f16(8)),
    "select-numbers": value(lambda n, c: n.lax.select_n(c > 0, 1.0, 2.0), f32(), i32()),
    "select-4": value(lambda n, c, x, y: n.lax.select_n(c % 4, x, y, x * 2, y * 2), f32(8), i32(8), f32(8), f32(8)),
    "max-bool": value(lambda n, x, y: n.lax.max(x, y), b1(8), b1(8), b1(8)),
    "i8-f8": value(lambda n, x: x.astype(f8().dtype), f8(8), i8(8)),
    "f8-i8": value(lambda n, x: x.astype(np.int8), i8(8), f8(8)),
    "f8-f8": value(lambda n, x: x.astype(f8n().dtype), f8n(8), f8(8)),
    "tanh-f16": value(lambda n, x: n.lax.tanh(x), f16(8), f16(8)),
    "atan2-f16": value(lambda n, x, y: n.lax.atan2(x, y), f16(8), f16(8), f16(8)),
    "pow-f16": value(lambda n, x, y: n.lax.pow(x, y), f16(8), f16(8), f16(8)),
    "pow-int-f16": value(lambda n, x, y: n.lax.pow(x, y), f16(8), f16(8), i32(8)),
    "population_count-u32": value(lambda n, x: n.lax.population_count(x), u32(8), u32(8)),
    "population_count-i8": value(lambda n, x: n.lax.population_count(x), i8(8), i8(8)),
    "clz-u32": value(lambda n, x: n.lax.clz(x), u32(8), u32(8)),
    "clz-i16": value(lambda n, x: n.lax.clz(x), i16(8), i16(8)),
    "dot-i8": _dot(i8, i8),
    "dot-bf16": _dot(f32, bf16, precision="BF16_BF16_BF16", **_acc(f32)),
    "dot-mixed": value(lambda n, x, y: n.jnp.dot(x, y, preferred_element_type=np.float32), f32(16, 16), bf16(16, 16), f32(16, 16)),
    "dot-halves": value(
        lambda n, x, y: n.jnp.dot(x, y, preferred_element_type=np.float32), f32(16, 16), bf16(16, 16), f16(16, 16)
    ),
    "reciprocal": value(lambda n, x: n.pl.reciprocal(x), f32(8), f32(8)),
    "counter-of-while": Kernel(
        _stores(lambda n, x, m: n.lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (9, m[0]))[0]),
        i32(), [f32(8), i32(8)],
    ),
    "matvec": value(lambda n, x, y: x @ y, f32(16), f32(16, 32), f32(32)),
    "vecmat": value(lambda n, x, y: x @ y, f32(32), f32(16), f32(16, 32)),
    "vecvec": value(lambda n, x, y: n.jnp.dot(x, y), f32(), f32(32), f32(32)),
    "dot-batch": value(lambda n, x, y: n.jnp.matmul(x, y), f32(2, 16, 16), f32(2, 16, 16), f32(2, 16, 16)),
    "matvec-batch": value(lambda n, x, y: n.jnp.einsum("bij,bj->bi", x, y), f32(4, 16), f32(4, 16, 32), f32(4, 32)),
    "dot-batch-t": value(lambda n, x, y: n.jnp.einsum("bij,bkj->bik", x, y), f32(2, 16, 16), f32(2, 16, 16), f32(2, 16, 16)),
    "dot-row": value(lambda n, x, y: x @ y, f32(1, 16), f32(1, 16), f32(16, 16)),
    "dot-small": value(lambda n, x, y: x @ y, f32(4, 4), f32(4, 4), f32(4, 4)),
    "dot-outer": value(lambda n, x, y: x @ y, f32(16, 16), f32(16, 1), f32(1, 16)),
    "negative-index": Kernel(_stores(lambda n, x: x[-1]), f32(8), [f32(4, 8)]),
    "array-column": Kernel(_stores(lambda n, x, i: x[:, i[...]]), f32(8, 4), [f32(8, 8), i32(4)]),
    "view": Kernel(_stores(lambda n, x: x.at[1:5, :].at[n.pl.ds(1, 2), 3][...]), f32(2), [f32(8, 8)]),
    "view-id": Kernel(
        _stores(lambda n, x: x.at[n.pl.program_id(0)].at[n.pl.ds(1, 2)][...]), f32(2), [f32(8, 8)], lambda n: dict(grid=(2,))
    ),
    "bitcast-view": Kernel(_stores(lambda n, x: x.bitcast(np.int32)[...]), i32(8, 8), [f32(8, 8)]),
    "reshape-view": Kernel(_stores(lambda n, x: x.reshape(4, 2)[1:3]), f32(2, 2), [f32(8)]),
    "reshape-view-2": Kernel(_stores(lambda n, x: x.reshape(64)[8:24]), f32(16), [f32(8, 8)]),
    "transpose-view": Kernel(_stores(lambda n, x: x.T[2:4]), f32(2, 4), [f32(4, 8)]),
    "row-view": Kernel(_stores(lambda n, x: x.at[1].reshape(4, 2)[...]), f32(4, 2), [f32(2, 8)]),
    "stepped-view": Kernel(_stores(lambda n, x: x.at[n.pl.ds(1, 4, 2)].at[1:3][...]), f32(2), [f32(16)]),
    "view-store": Kernel(lambda n, x, o: o.at[2:6].at[1:3].__setitem__(..., x[:2]), f32(8), [f32(8)]),
    "view-in-blocks": Kernel(
        _stores(lambda n, x: x.reshape(32)[:]), f32(2, 32), [f32(8, 16)],
        lambda n: _blocks(n, (2, 2), [((4, 8), lambda i, j: (i, j))], ((None, 32), lambda i, j: (j, 0))),
    ),
    "i4-store": Kernel(_stores(lambda n, x: x[...].astype(i4().dtype)), i4(16), [i32(16)]),
    "u4-store": Kernel(_stores(lambda n, x: x[...].astype(u4().dtype)), u4(4, 8), [i32(4, 8)]),
    "cond-number": Kernel(
        _stores(lambda n, x, m: n.lax.cond(m[...] > 0, lambda y: y + x[0], lambda y: 2.0, 1.0)), f32(), [f32(8), i32()]
    ),
    "fori-unrolled": Kernel(
        _stores(lambda n, x: n.lax.fori_loop(0, 8, lambda i, c: c + x[i], n.jnp.float32(0), unroll=2)), f32(), [f32(8)]
    ),
    "custom_vjp": value(_with_vjp, f32(8), f32(8)),
    "histogram-int": Kernel(_counted, i32(16), [i32(16)]),
    "atomic_max-view": Kernel(_raised, i32(8), [i32(8)]),
}  # fmt: skip
