"""Runs the text of a kernel without Pallas: its steps one after the other, its references as arrays of NumPy.

`modules_of` returns stand-ins for the modules that the text names. `jnp` stays what it is: each operation runs at once.
"""

import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


def unwritten(dtype: Any, smallest: bool = True) -> np.ndarray:
    """An element of memory that nothing has written: NaN, the smallest or largest integer, or False (True)."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array(not smallest)
    if dtype.kind in "iu":
        return np.array(np.iinfo(dtype).min if smallest else np.iinfo(dtype).max, dtype)
    return np.array(np.nan).astype(dtype)


class Cut:
    """`pl.ds`: the elements of an axis from one on."""

    def __init__(self, start: Any, size: int, stride: int = 1):
        self.start, self.size, self.stride = start, size, stride

    def over(self, n: int) -> slice:
        """The slice of an axis of this size; a start too large, or below zero, is moved as XLA does."""
        start = int(self.start)
        extent = (self.size - 1) * self.stride + 1
        start = min(max(start + n if start < 0 else start, 0), n - extent)
        return slice(start, start + extent, self.stride)


class PlainRef:
    """A reference: a view of an array of NumPy, which is read and written in place."""

    def __init__(self, view: np.ndarray, jnp: Any):
        self.view, self.jnp = view, jnp

    shape = property(lambda self: self.view.shape)
    dtype = property(lambda self: self.view.dtype)
    at = property(lambda self: SimpleAt(self))

    def part(self, indices: Any) -> np.ndarray:
        """The view that indices select."""
        indices = indices if isinstance(indices, tuple) else (indices,)
        if Ellipsis in [i for i in indices if i is Ellipsis]:
            at = next(k for k, i in enumerate(indices) if i is Ellipsis)
            indices = (*indices[:at], *[slice(None)] * (self.view.ndim - len(indices) + 1), *indices[at + 1 :])
        view, axis = self.view, 0
        for index in indices:
            if isinstance(index, slice):
                view, axis = view[(slice(None),) * axis + (index,)], axis + 1
            elif isinstance(index, Cut):
                view, axis = view[(slice(None),) * axis + (index.over(view.shape[axis]),)], axis + 1
            else:
                found = Cut(index, 1).over(view.shape[axis]).start
                view = view[(slice(None),) * axis + (found, ...)]
        return view

    def __getitem__(self, indices: Any) -> Any:
        return self.jnp.asarray(self.part(indices).copy())

    def __setitem__(self, indices: Any, value: Any) -> None:
        view = self.part(indices)
        view[...] = np.asarray(value).astype(view.dtype)


class SimpleAt:
    """`ref.at`: indices give a view."""

    def __init__(self, ref: PlainRef):
        self.ref = ref

    def __getitem__(self, indices: Any) -> PlainRef:
        return PlainRef(self.ref.part(indices), self.ref.jnp)


class Over:
    """A module with some names replaced."""

    def __init__(self, module: Any, **replaced: Any):
        self.module, self.replaced = module, replaced

    def __getattr__(self, name: str) -> Any:
        return self.replaced[name] if name in self.replaced else getattr(self.module, name)


def modules_of(side: ModuleType, smallest: bool = True) -> dict[str, Any]:
    """The stand-ins by name: of `pl`, `pltpu`, `plt` what random kernels use, and loops and branches of `lax`."""
    jnp = importlib.import_module(f"{side.__name__}.numpy")
    real = importlib.import_module(f"{side.__name__}.experimental.pallas")
    step = SimpleNamespace(numbers=(), sizes=(), smallest=smallest)
    fresh = lambda shape, dtype: np.full(shape, unwritten(dtype, smallest), dtype)  # noqa: E731

    def run_scoped(f: Callable, *types: tuple) -> Any:
        return f(*[PlainRef(fresh(*t), jnp) for t in types])

    def when(condition: Any) -> Callable:
        return lambda f: f() if bool(condition) else None

    def loop(lower: int, upper: int) -> Callable:
        return lambda f: [f(np.int32(i)) for i in range(int(lower), int(upper))] and None

    pl = Over(
        real,
        program_id=lambda axis: jnp.int32(step.numbers[axis]),
        num_programs=lambda axis: step.sizes[axis],
        ds=Cut,
        when=when,
        loop=loop,
        run_scoped=run_scoped,
        pallas_call=lambda kernel, out_shape, **options: PlainCall(kernel, out_shape, step, jnp, fresh, **options),
    )
    memory = lambda shape, dtype: (shape, np.dtype(dtype))  # noqa: E731
    pltpu = SimpleNamespace(
        VMEM=memory,
        SMEM=memory,
        PrefetchScalarGridSpec=lambda *parts: SimpleNamespace(
            **dict(zip(("scalars", "grid", "ins", "outs", "scratch"), parts, strict=True))
        ),
    )
    lax = Over(
        side.lax, fori_loop=_fori_loop, while_loop=_while_loop, cond=lambda c, yes, no, *x: (yes if c else no)(*x)
    )
    return dict(jax=side, jnp=jnp, lax=lax, pl=pl, pltpu=pltpu, plt=_triton(jnp), np=np, interpret=None)


def results(program: Any, side: ModuleType) -> list[np.ndarray]:
    """What a program of `kernels` computes."""
    # The simulator's memory begins with the largest integers.
    call = program.function(modules_of(side, smallest=program.form == "interpret"))
    if not program.transforms:
        return call(*program.args)
    size = next(len(x) for x, axis in zip(program.args, program.in_axes, strict=True) if axis is not None)
    rows = [[x if a is None else x[k] for x, a in zip(program.args, program.in_axes, strict=True)] for k in range(size)]
    return [np.stack(parts) for parts in zip(*[call(*row) for row in rows], strict=True)]


def _fori_loop(lower: Any, upper: Any, body: Callable, carry: Any) -> Any:
    for i in range(int(lower), int(upper)):
        carry = body(np.int32(i), carry)
    return carry


def _while_loop(test: Callable, body: Callable, carry: Any) -> Any:
    while test(carry):
        carry = body(carry)
    return carry


def _triton(jnp: Any) -> SimpleNamespace:
    def load(ref: PlainRef, mask: Any, other: Any) -> Any:
        return jnp.where(mask, ref[...], jnp.asarray(other, ref.dtype))

    def store(ref: PlainRef, value: Any, mask: Any) -> None:
        np.copyto(ref.view, np.asarray(value).astype(ref.dtype), where=np.asarray(mask))

    def atomic(combine: Callable) -> Callable:
        def run(ref: PlainRef, indices: Any, value: Any) -> Any:
            before = ref[indices]
            ref[indices] = combine(before, value)
            return before

        return run

    return SimpleNamespace(
        load=load,
        store=store,
        atomic_add=atomic(jnp.add),
        atomic_max=atomic(jnp.maximum),
        atomic_min=atomic(jnp.minimum),
    )


class PlainCall:
    """`pl.pallas_call(...)`: runs the kernel over the grid, on blocks that are cut from the arrays and put back."""

    def __init__(
        self, kernel: Callable, out_shape: Any, step: Any, jnp: Any, fresh: Callable, *, grid_spec: Any,
        input_output_aliases: dict, **_: Any,
    ):  # fmt: skip
        self.kernel, self.out_shape, self.spec, self.step = kernel, out_shape, grid_spec, step
        self.jnp, self.fresh, self.aliases = jnp, fresh, input_output_aliases
        # Of a batch, all elements have the same scratch.
        self.scratch = [PlainRef(fresh(*t), jnp) for t in grid_spec.scratch]

    def __call__(self, *args: Any) -> list:
        spec = self.spec
        scalars = [PlainRef(np.array(x), self.jnp) for x in args[: spec.scalars]]
        arrays = [self.padded(np.array(x), s) for x, s in zip(args[spec.scalars :], spec.ins, strict=True)]
        results = []
        for k, (shape, s) in enumerate(zip(self.out_shape, spec.outs, strict=True)):
            sources = [i - spec.scalars for i, o in self.aliases.items() if o == k]
            whole = self.fresh(shape.shape, shape.dtype)
            results.append(arrays[sources[0]] if sources else self.padded(whole, s))
        self.step.sizes = spec.grid
        specs, whole = [*spec.ins, *spec.outs], [*arrays, *results]
        for numbers in itertools.product(*map(range, spec.grid)):
            self.step.numbers = numbers
            windows = [self.window(x, s, numbers, scalars) for x, s in zip(whole, specs, strict=True)]
            copies = [x[w].copy() for x, w in zip(whole, windows, strict=True)]
            self.kernel(*scalars, *[PlainRef(x, self.jnp) for x in copies], *self.scratch)
            for x, w, copy in list(zip(whole, windows, copies, strict=True))[len(arrays) :]:
                x[w] = copy
        return [self.cut(x, t.shape, s) for x, t, s in zip(results, self.out_shape, spec.outs, strict=True)]

    def cut(self, x: np.ndarray, shape: Sequence[int], spec: Any) -> np.ndarray:
        """The array without what was added."""
        lows = [getattr(d, "padding", (0, 0))[0] for d in spec.block_shape]
        return x[(*[slice(low, low + n) for low, n in zip(lows, shape, strict=True)], ...)]

    def padded(self, x: np.ndarray, spec: Any) -> np.ndarray:
        """The array up to whole blocks; what is added was never written."""
        low, shape = [], []
        for n, d in zip(x.shape, spec.block_shape, strict=True):
            size, padding = _size(d) or 1, getattr(d, "padding", (0, 0))
            low.append(padding[0])
            shape.append(math.ceil((n + sum(padding)) / size) * size)
        if tuple(shape) == x.shape:
            return x
        out = self.fresh(tuple(shape), x.dtype)
        out[tuple(slice(m, m + n) for m, n in zip(low, x.shape, strict=True))] = x
        return out

    def window(self, x: np.ndarray, spec: Any, numbers: Sequence[int], scalars: list) -> tuple:
        """The part of an array that is the block of a step: an int on each dimension that the kernel does not see."""
        found = spec.index_map(*[self.jnp.int32(n) for n in numbers], *scalars)
        window = []
        for n, d, size in zip(found, spec.block_shape, x.shape, strict=True):
            count = _size(d)
            is_counted = isinstance(d, int) or type(d).__name__ == "Blocked"
            cut = Cut(int(n) * (count if is_counted else 1), count or 1).over(size)
            window.append(cut if count else cut.start)
        return (*window, ...)


def _size(dim: Any) -> int | None:
    """The size of a dimension of a block; None if the kernel does not see it."""
    return dim if isinstance(dim, int) else getattr(dim, "block_size", None)
