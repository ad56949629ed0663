#!/usr/bin/env python
"""One array library in a process of its own: the same programs, written once over the operations that all have.

    python benchmarks/peer_programs.py minijax

Prints JSON: for each program the seconds of its first call and of a later one, and results that must be equal
everywhere; or why it cannot run. `peers.py` starts it for each library.
"""

import importlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

if os.environ.get("PEERS_CORE") and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before NumPy counts cores

import numpy as np

BUDGET = float(os.environ.get("PEERS_SECONDS", "0.5"))  # for repeated calls of a program
RATE, ROWS, WIDTH, HEADS, TIME = 0.1, 32, 64, 4, 32


class Library:
    """What programs need of a library: `ops` has tanh, exp, ...; parameters are lists of arrays."""

    ops: Any
    package: str
    axis, keep = "axis", "keepdims"

    def array(self, x: np.ndarray) -> Any:
        raise NotImplementedError

    def total(self, x: Any, axis: int | None = None) -> Any:
        named = {} if axis is None else {self.axis: axis, self.keep: True}
        return self.ops.sum(x, **named)

    def top(self, x: Any) -> Any:
        return self.ops.max(x, **{self.axis: -1, self.keep: True})

    def relu(self, x: Any) -> Any:
        return self.ops.maximum(x, 0.0)

    def swap(self, x: Any, order: tuple[int, ...]) -> Any:
        return self.ops.transpose(x, order)

    def value_and_grad(self, loss: Callable) -> Callable:
        raise NotImplementedError("it has no derivatives")

    def each_gradient(self, loss: Callable) -> Callable:
        """(parameters, rows, targets) -> the gradient for each row."""
        raise NotImplementedError("it has no gradients of each example")

    def scan(self, step: Callable, carry: Any, xs: Any) -> Any:
        for i in range(xs.shape[0]):
            carry = step(carry, xs[i])
        return carry

    def compiled(self, function: Callable) -> Callable:
        return function

    def done(self, results: Any) -> list[float]:
        """Waits for the results, a sequence of scalars."""
        return [float(np.asarray(x)) for x in results]


class Jax(Library):
    def __init__(self, name: str):
        self.package = name
        self.jax = importlib.import_module(name)
        self.ops = importlib.import_module(f"{name}.numpy")
        self.array = self.ops.asarray
        self.compiled = self.jax.jit
        self.value_and_grad = self.jax.value_and_grad

    def each_gradient(self, loss):
        return self.jax.vmap(self.jax.grad(loss), (None, 0, 0))

    def scan(self, step, carry, xs):
        return self.jax.lax.scan(lambda c, x: (step(c, x), None), carry, xs)[0]


class Torch(Library):
    package = "torch"
    axis, keep = "dim", "keepdim"

    def __init__(self, compiles: bool):
        import torch

        self.torch, self.ops = torch, torch
        self.array = torch.from_numpy
        self.relu = torch.relu
        self.swap = lambda x, order: x.permute(order)
        self.top = lambda x: x.amax(-1, keepdim=True)
        self.compiled = torch.compile if compiles else lambda f: f
        self.compiles = compiles

    def value_and_grad(self, loss):
        if self.compiles:  # traced with the step
            taken = self.torch.func.grad_and_value(loss)
            return lambda params, *data: taken(params, *data)[::-1]

        def eager(params, *data):
            params = [p.detach().requires_grad_() for p in params]
            value = loss(params, *data)
            return value.detach(), self.torch.autograd.grad(value, params)

        return eager

    def each_gradient(self, loss):
        return self.torch.func.vmap(self.torch.func.grad(loss), (None, 0, 0))

    def done(self, results):
        return [x.item() for x in results]


class Tinygrad(Library):
    package = "tinygrad"
    keep = "keepdim"

    def __init__(self):
        from tinygrad import Tensor, TinyJit

        self.Tensor, self.jit = Tensor, TinyJit
        self.ops = Tensor
        self.array = Tensor
        self.relu = Tensor.relu
        self.swap = lambda x, order: x.permute(order)

    def value_and_grad(self, loss):
        def taken(params, *data):
            params = [p.detach().requires_grad_() for p in params]
            value = loss(params, *data)
            return value, value.gradient(*params)

        return taken

    def compiled(self, function):
        captured = self.jit(lambda *args: [x.realize() for x in function(*args)])
        return captured

    def done(self, results):
        return [x.item() for x in results]


class Mlx(Library):
    package = "mlx"

    def __init__(self):
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.mx, self.ops = mx, mx
        self.array, self.compiled, self.value_and_grad = mx.array, mx.compile, mx.value_and_grad

    def each_gradient(self, loss):
        return self.mx.vmap(self.mx.grad(loss), (None, 0, 0))

    def done(self, results):
        return [x.item() for x in results]


class NumPy(Library):
    """Derivatives are written by hand, for the programs where that is short."""

    ops, package = np, "numpy"
    array = staticmethod(np.asarray)


LIBRARIES: dict[str, Callable[[], Library]] = {
    "minijax": lambda: Jax("minijax"),
    "jax": lambda: Jax("jax"),
    "PyTorch": lambda: Torch(False),
    "PyTorch, compiled": lambda: Torch(True),
    "MLX": Mlx,
    "tinygrad": Tinygrad,
    "NumPy": NumPy,
}


# ---- the programs: each maker returns a function of no arguments, whose results are a few scalars ----


def _numbers(*shape: int, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _targets(rows: int, classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[np.arange(rows) % classes]


def _log_softmax(lib: Library, x: Any) -> Any:
    shifted = x - lib.top(x)
    return shifted - lib.ops.log(lib.total(lib.ops.exp(shifted), -1))


def _mlp_loss(lib: Library) -> Callable:
    def loss(params, x, y):
        for w, b in zip(params[:-2:2], params[1:-2:2], strict=True):
            x = lib.relu(x @ w + b)
        logits = x @ params[-2] + params[-1]
        return -lib.total(_log_softmax(lib, logits) * y) / (x.shape[0] if len(x.shape) > 1 else 1)

    return loss


def _mlp_params(lib: Library, sizes: Sequence[int]) -> list:
    pairs = zip(sizes, sizes[1:], strict=False)
    return [
        lib.array(p)
        for i, (n, m) in enumerate(pairs)
        for p in (_numbers(n, m, scale=n**-0.5, seed=i), np.zeros(m, np.float32))
    ]


def _mlp_by_hand(params: list, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, list, list]:
    """Per row: the loss, the inputs of each layer, and the cotangents of each layer's results."""
    inputs = [x]
    for w, b in zip(params[:-2:2], params[1:-2:2], strict=True):
        inputs.append(np.maximum(inputs[-1] @ w + b, 0))
    log_p = _log_softmax(NumPy(), inputs[-1] @ params[-2] + params[-1])
    cts = [np.exp(log_p) - y]
    for w, h in zip(params[-2:0:-2], inputs[:0:-1], strict=True):
        cts.append((cts[-1] @ w.T) * (h > 0))
    return -(log_p * y).sum(-1), inputs, cts[::-1]


def mlp_step(lib: Library) -> Callable:
    """A training step of a network of 64, 128, 128 and 10 units, for 32 rows."""
    params, x, y = (
        _mlp_params(lib, (64, 128, 128, 10)),
        lib.array(_numbers(ROWS, 64, seed=9)),
        lib.array(_targets(ROWS, 10)),
    )
    if lib.ops is np:

        def by_hand():
            losses, inputs, cts = _mlp_by_hand(params, x, y)
            grads = [g / ROWS for h, ct in zip(inputs, cts, strict=True) for g in (h.T @ ct, ct.sum(0))]
            new = [p - RATE * g for p, g in zip(params, grads, strict=True)]
            return [losses.mean(), *(p.sum() for p in new)]

        return by_hand
    return _training(lib, _mlp_loss(lib), params, x, y)


def _training(lib: Library, loss: Callable, params: list, *data: Any) -> Callable:
    taken = lib.value_and_grad(loss)

    def step(params, *data):
        value, grads = taken(params, *data)
        return [value, *(lib.total(p - RATE * g) for p, g in zip(params, grads, strict=True))]

    run = lib.compiled(step)
    return lambda: run(params, *data)


def transformer_step(lib: Library) -> Callable:
    """A training step of a transformer's layer: attention with 4 heads, and a feed-forward part."""
    params = [lib.array(_numbers(WIDTH, WIDTH, scale=0.1, seed=i)) for i in range(4)]
    params += [
        lib.array(_numbers(WIDTH, 4 * WIDTH, scale=0.1, seed=5)),
        lib.array(_numbers(4 * WIDTH, WIDTH, scale=0.1, seed=6)),
    ]
    x, y = (lib.array(_numbers(4, TIME, WIDTH, seed=i)) for i in (7, 8))
    mask = lib.array(np.where(np.tri(TIME), 0, -1e9).astype(np.float32))

    def normal(x):
        return x * (lib.total(x * x, -1) / WIDTH + 1e-6) ** -0.5

    def heads(x, w):
        return lib.swap((x @ w).reshape((4, TIME, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def gelu(x):
        return 0.5 * x * (1 + lib.ops.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def loss(params, x, y, mask):
        q, k, v, o, up, down = params
        h = normal(x)
        scores = heads(h, q) @ lib.swap(heads(h, k), (0, 1, 3, 2)) * (WIDTH // HEADS) ** -0.5 + mask
        mixed = lib.ops.exp(_log_softmax(lib, scores)) @ heads(h, v)
        x = x + lib.swap(mixed, (0, 2, 1, 3)).reshape((4, TIME, WIDTH)) @ o
        x = x + gelu(normal(x) @ up) @ down
        return lib.total((x - y) * (x - y)) / (4 * TIME * WIDTH)

    return _training(lib, loss, params, x, y, mask)


def per_example(lib: Library) -> Callable:
    """The norm of the gradient for each of 32 rows, by a network of 64, 128 and 10 units."""
    params, x, y = _mlp_params(lib, (64, 128, 10)), lib.array(_numbers(ROWS, 64, seed=9)), lib.array(_targets(ROWS, 10))
    if lib.ops is np:

        def by_hand():
            _, inputs, cts = _mlp_by_hand(params, x, y)
            squares = sum(
                (h * h).sum(-1) * (ct * ct).sum(-1) + (ct * ct).sum(-1) for h, ct in zip(inputs, cts, strict=True)
            )
            return [squares.sum(), (squares**2).sum()]

        return by_hand
    taken = lib.each_gradient(_mlp_loss(lib))

    def norms(params, x, y):
        grads = taken(params, x, y)
        squares = sum(lib.ops.sum((g * g).reshape((ROWS, -1)), **{lib.axis: 1}) for g in grads)
        return [lib.total(squares), lib.total(squares * squares)]

    run = lib.compiled(norms)
    return lambda: run(params, x, y)


def elementwise(lib: Library) -> Callable:
    """A chain of 30 elementwise operations on 100 000 numbers, and their sum."""
    x, y = lib.array(_numbers(100_000)), lib.array(_numbers(100_000, seed=1))

    def chain(x, y):
        for _ in range(10):
            x = lib.ops.sin(x) * y + x
        return [lib.total(x) / 100_000]

    run = lib.compiled(chain)
    return lambda: run(x, y)


def rnn_step(lib: Library) -> Callable:
    """A training step of a recurrent network: 50 steps of 32 units."""
    params = [lib.array(_numbers(32, 32, scale=0.15, seed=i)) for i in range(2)] + [lib.array(np.zeros(32, np.float32))]
    xs, first = lib.array(_numbers(50, 4, 32, seed=3)), lib.array(np.zeros((4, 32), np.float32))

    def loss(params, xs, first):
        w, u, b = params
        last = lib.scan(lambda h, x: lib.ops.tanh(h @ w + x @ u + b), first, xs)
        return lib.total(last * last) / 128

    return _training(lib, loss, params, xs, first)


PROGRAMS = {
    "MLP, training step": mlp_step,
    "transformer layer, training step": transformer_step,
    "gradient of each example": per_example,
    "30 elementwise operations": elementwise,
    "RNN of 50 steps, training step": rnn_step,
}


def measured(lib: Library, make: Callable) -> dict[str, Any]:
    """The seconds of the first and of a later call, and the results."""
    start = time.perf_counter()
    run = make(lib)
    results = lib.done(run())
    first = time.perf_counter() - start
    for _ in range(3):  # some libraries capture at the second call
        lib.done(run())
    times, end = [], time.perf_counter() + BUDGET
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        lib.done(run())
        times.append(time.perf_counter() - start)
    return {"first": first, "seconds": min(times), "results": results, "version": version_of(lib)}


def version_of(lib: Library) -> str:
    """The name and the version of a library."""
    try:
        return f"{lib.package} {importlib.metadata.version(lib.package)}"
    except importlib.metadata.PackageNotFoundError:
        return lib.package


def main(name: str) -> None:
    found: dict[str, Any] = {}
    try:
        lib = LIBRARIES[name]()
    except ImportError as error:
        print(json.dumps({"error": f"not installed: {error}"}))
        return
    for program, make in PROGRAMS.items():
        try:
            found[program] = measured(lib, make)
        except Exception as error:
            found[program] = {"error": f"{type(error).__name__}: {error}".split("\n")[0][:160]}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
