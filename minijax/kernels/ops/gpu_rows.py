"""Kernels for GPUs that work on rows: softmax, layer normalization and root mean square normalization."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.api.autodiff import vjp
from minijax.api.custom import custom_vjp
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.kernels.blocks import BlockSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.operations.helpers import cdiv, dslice, next_power_of_2
from minijax.kernels.operations.masked import load, store
from minijax.kernels.parameters import TritonParams
from minijax.run.arrays.array import Array

_ROWS, _COLUMNS = 32, 128  # of the blocks in which sums over rows are computed


def _columns(block_size: int, size: int) -> tuple[Any, Any]:
    """The index of a row, whose length is a power of two, and which of its elements there are."""
    return dslice(0, block_size), lax.iota(jnp.int32, block_size) < size


# ---- softmax -------------------------------------------------------------------------------------------


@functools.partial(jit, static_argnames=("axis", "num_warps", "interpret", "debug"))
def softmax(x: Array, *, axis: int = -1, num_warps: int = 4, interpret: bool = False, debug: bool = False) -> Array:
    """Computes the softmax of each row by a kernel for GPUs.

    Args:
      x: array.
      axis: the last axis.
      num_warps: number of warps that compute a row.
      interpret: whether the kernel is interpreted, on any device.
      debug: whether to print the kernel.

    Returns:
      An array of the shape and dtype of `x`.

    Raises NotImplementedError for an axis that is not the last one.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import softmax
        >>> softmax.softmax(jnp.zeros((2, 4)), interpret=True)
        Array([[0.25, 0.25, 0.25, 0.25],
               [0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """
    if axis not in (-1, x.ndim - 1):
        raise NotImplementedError(
            "softmax: reductions along non-trailing dimension unsupported; move the axis to the end"
        )
    size = x.shape[-1]

    def kernel(x_ref, o_ref):
        row, there = _columns(next_power_of_2(size), size)
        values = load(x_ref.at[row], mask=there, other=-jnp.inf).astype(jnp.float32)
        powers = jnp.exp(values - jnp.max(values))
        store(o_ref.at[row], (powers / jnp.sum(powers)).astype(o_ref.dtype), mask=there)

    rows = x.reshape(-1, size)
    options: dict[str, Any] = dict(
        interpret=interpret, debug=debug, compiler_params=TritonParams(num_warps=num_warps, num_stages=1)
    )
    call = pallas_call(
        kernel,
        ShapeDtypeStruct(rows.shape, x.dtype),
        grid=(len(rows),),
        in_specs=[_ROW(size)],
        out_specs=_ROW(size),
        **options,
    )
    return call(rows).reshape(x.shape)


def _ROW(size: int) -> BlockSpec:  # noqa: N802
    return BlockSpec((None, size), lambda i: (i, 0))


# ---- kernels of norms ----------------------------------------------------------------------------------


def _normalized(x_ref: Any, eps: float, block_size: int, is_centered: bool) -> tuple[Any, Any, Any]:
    """A row divided by its deviation, its mean and the inverse of the deviation."""
    size = x_ref.shape[0]
    row, there = _columns(block_size, size)
    x = load(x_ref.at[row], mask=there, other=0.0).astype(jnp.float32)
    mean = jnp.sum(x) / size if is_centered else jnp.float32(0)
    x = jnp.where(there, x - mean, 0.0) if is_centered else x
    rstd = lax.rsqrt(jnp.sum(x * x) / size + eps)
    return x * rstd, mean, rstd


def _forward(
    x_ref: Any, weight_ref: Any, bias_ref: Any, o_ref: Any, stats: Sequence, eps: float, block_size: int
) -> None:
    """Writes a normalized row, and to `stats`, references or None, its mean and inverse deviation, or only this."""
    row, there = _columns(block_size, x_ref.shape[0])
    normal, mean, rstd = _normalized(x_ref, eps, block_size, len(stats) == 2)
    weight, bias = (load(r.at[row], mask=there, other=0.0).astype(jnp.float32) for r in (weight_ref, bias_ref))
    store(o_ref.at[row], (normal * weight + bias).astype(o_ref.dtype), mask=there)
    for ref, value in zip(stats, (mean, rstd) if len(stats) == 2 else (rstd,), strict=True):
        if ref is not None:
            ref[...] = value.astype(ref.dtype)


def layer_norm_forward_kernel(
    x_ref: Any,
    weight_ref: Any,
    bias_ref: Any,
    o_ref: Any,
    mean_ref: Any = None,
    rstd_ref: Any = None,
    *,
    eps: float,
    block_size: int,
) -> None:
    """Normalizes a row; a kernel.

    Args:
      x_ref: the row.
      weight_ref: weights of the columns.
      bias_ref: biases of the columns.
      o_ref: reference of the result.
      mean_ref: reference of the mean, or None.
      rstd_ref: reference of the inverse of the deviation, or None.
      eps: number added to the variance.
      block_size: power of two that is not less than the length of the row.

    Example:
        >>> import functools
        >>> from minijax.experimental.pallas.ops.gpu import layer_norm
        >>> kernel = functools.partial(layer_norm.layer_norm_forward_kernel, eps=1e-5, block_size=2)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), interpret=True)
        >>> print(f(jnp.array([1.0, 3.0]), jnp.ones(2), jnp.zeros(2)).round(2))
        [-1.  1.]
    """
    _forward(x_ref, weight_ref, bias_ref, o_ref, (mean_ref, rstd_ref), eps, block_size)


def rms_norm_forward_kernel(
    x_ref: Any, weight_ref: Any, bias_ref: Any, o_ref: Any, rstd_ref: Any = None, *, eps: float, block_size: int
) -> None:
    """Divides a row by the root of its mean square; a kernel. See `layer_norm_forward_kernel`.

    Example:
        >>> import functools
        >>> from minijax.experimental.pallas.ops.gpu import rms_norm
        >>> kernel = functools.partial(rms_norm.rms_norm_forward_kernel, eps=1e-5, block_size=2)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), interpret=True)
        >>> print(f(jnp.array([1.0, 3.0]), jnp.ones(2), jnp.zeros(2)).round(2))
        [0.45      1.3399999]
    """
    _forward(x_ref, weight_ref, bias_ref, o_ref, (rstd_ref,), eps, block_size)


def _dx(x_ref: Any, weight_ref: Any, do_ref: Any, mean_ref: Any, rstd_ref: Any, dx_ref: Any, block_size: int) -> None:
    """Writes the derivative by a row: with n normalized, w the weights, d the derivative by the result,
    (d w - n mean(n d w) - mean(d w)) / deviation; the last term is absent if the mean is not subtracted."""
    size = x_ref.shape[0]
    row, there = _columns(block_size, size)
    x, weight, do = (load(r.at[row], mask=there, other=0.0).astype(jnp.float32) for r in (x_ref, weight_ref, do_ref))
    rstd, mean = rstd_ref[...], 0.0 if mean_ref is None else mean_ref[...]
    normal = jnp.where(there, (x - mean) * rstd, 0.0)
    weighted = do * weight
    dx = weighted - normal * (jnp.sum(normal * weighted) / size)
    if mean_ref is not None:
        dx = dx - jnp.sum(weighted) / size
    store(dx_ref.at[row], (dx * rstd).astype(dx_ref.dtype), mask=there)


def layer_norm_backward_kernel_dx(
    x_ref: Any,
    weight_ref: Any,
    bias_ref: Any,
    do_ref: Any,
    mean_ref: Any,
    rstd_ref: Any,
    dx_ref: Any,
    *,
    eps: float,
    block_size: int,
) -> None:
    """Computes the derivative by a row; a kernel. See `layer_norm_forward_kernel`.

    Example:
        >>> import functools
        >>> from minijax.experimental.pallas.ops.gpu import layer_norm
        >>> kernel = functools.partial(layer_norm.layer_norm_backward_kernel_dx, eps=1e-5, block_size=2)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), interpret=True)
        >>> x, one, cts = jnp.array([1.0, 3.0]), jnp.ones(2), jnp.array([1.0, 0.0])
        >>> print(f(x, one, one, cts, jnp.full((), 2.0), jnp.full((), 0.5)).round(2))
        [ 0.19 -0.19]
    """
    _dx(x_ref, weight_ref, do_ref, mean_ref, rstd_ref, dx_ref, block_size)


def rms_norm_backward_kernel_dx(
    x_ref: Any, weight_ref: Any, bias_ref: Any, do_ref: Any, rstd_ref: Any, dx_ref: Any, *, eps: float, block_size: int
) -> None:
    """Computes the derivative by a row; a kernel. See `layer_norm_forward_kernel`.

    Example:
        >>> import functools
        >>> from minijax.experimental.pallas.ops.gpu import rms_norm
        >>> kernel = functools.partial(rms_norm.rms_norm_backward_kernel_dx, eps=1e-5, block_size=2)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), interpret=True)
        >>> x, one, cts = jnp.array([1.0, 3.0]), jnp.ones(2), jnp.array([1.0, 0.0])
        >>> print(f(x, one, one, cts, jnp.full((), 0.5)).round(2))
        [ 0.44 -0.19]
    """
    _dx(x_ref, weight_ref, do_ref, None, rstd_ref, dx_ref, block_size)


def _dw_db(
    x_ref: Any, do_ref: Any, mean_ref: Any, rstd_ref: Any, dw_ref: Any, db_ref: Any, block_m: int, block_n: int
) -> None:
    """Writes the derivatives by the weights and biases of some columns, which it sums over blocks of rows."""
    rows, columns = x_ref.shape

    def add(i, sums):
        part, own = i * block_m + lax.iota(jnp.int32, block_m), lax.iota(jnp.int32, block_n)
        there = part < rows
        seen = there[:, None] & (own < columns)[None, :]
        x, do = (
            load(r.at[part[:, None], own[None, :]], mask=seen, other=0.0).astype(jnp.float32) for r in (x_ref, do_ref)
        )
        rstd = load(rstd_ref.at[part], mask=there, other=0.0)
        mean = 0.0 if mean_ref is None else load(mean_ref.at[part], mask=there, other=0.0)[:, None]
        return sums[0] + jnp.sum(do * (x - mean) * rstd[:, None], 0), sums[1] + jnp.sum(do, 0)

    zeros = jnp.zeros((block_n,), jnp.float32)
    dw, db = lax.fori_loop(0, cdiv(rows, block_m), add, (zeros, zeros))
    there = lax.iota(jnp.int32, block_n) < columns
    for ref, value in ((dw_ref, dw), (db_ref, db)):
        store(ref.at[dslice(0, block_n)], value.astype(ref.dtype), mask=there)


def layer_norm_backward_kernel_dw_db(
    x_ref: Any,
    weight_ref: Any,
    bias_ref: Any,
    do_ref: Any,
    mean_ref: Any,
    rstd_ref: Any,
    dw_ref: Any,
    db_ref: Any,
    *,
    eps: float,
    block_m: int,
    block_n: int,
) -> None:
    """Computes the derivatives by weights and biases; a kernel, whose blocks are columns.

    Args:
      x_ref: the columns.
      weight_ref: their weights.
      bias_ref: their biases.
      do_ref: derivative by the result.
      mean_ref: means of the rows.
      rstd_ref: inverses of the rows' deviations.
      dw_ref: reference of the derivative by the weights.
      db_ref: reference of the derivative by the biases.
      eps: number added to the variance.
      block_m: number of rows that are summed at once.
      block_n: number of columns.

    Example:
        >>> import functools
        >>> from minijax.experimental.pallas.ops.gpu import layer_norm
        >>> kernel = functools.partial(layer_norm.layer_norm_backward_kernel_dw_db, eps=1e-5, block_m=1, block_n=2)
        >>> f = pl.pallas_call(kernel, [jax.ShapeDtypeStruct((2,), jnp.float32)] * 2, interpret=True)
        >>> x, one, cts = jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.array([[1.0, 2.0]])
        >>> dw, db = f(x, one, one, cts, jnp.full(1, 2.0), jnp.ones(1))
        >>> print(dw, db)
        [-1.  2.] [1. 2.]
    """
    _dw_db(x_ref, do_ref, mean_ref, rstd_ref, dw_ref, db_ref, block_m, block_n)


def rms_norm_backward_kernel_dw_db(
    x_ref: Any,
    weight_ref: Any,
    bias_ref: Any,
    do_ref: Any,
    rstd_ref: Any,
    dw_ref: Any,
    db_ref: Any,
    *,
    eps: float,
    block_m: int,
    block_n: int,
) -> None:
    """Computes the derivatives by weights and biases; a kernel. See `layer_norm_backward_kernel_dw_db`.

    Example:
        >>> import functools
        >>> from minijax.experimental.pallas.ops.gpu import rms_norm
        >>> kernel = functools.partial(rms_norm.rms_norm_backward_kernel_dw_db, eps=1e-5, block_m=1, block_n=2)
        >>> f = pl.pallas_call(kernel, [jax.ShapeDtypeStruct((2,), jnp.float32)] * 2, interpret=True)
        >>> x, one, cts = jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.array([[1.0, 2.0]])
        >>> dw, db = f(x, one, one, cts, jnp.ones(1))
        >>> print(dw, db)
        [1. 6.] [1. 2.]
    """
    _dw_db(x_ref, do_ref, None, rstd_ref, dw_ref, db_ref, block_m, block_n)


# ---- norms ---------------------------------------------------------------------------------------------


class _Norm(NamedTuple):
    """A norm: its kernels and reference, and how many statistics of a row its derivative needs."""

    forward: Callable
    dx: Callable
    dw_db: Callable
    reference: Callable
    stats: int


class _Options(NamedTuple):
    """The options of a call, which are the same in both directions."""

    num_warps: int | None
    num_stages: int | None
    eps: float
    backward_pass_impl: str
    interpret: bool

    def of(self, size: int) -> dict[str, Any]:
        """The options of kernels on rows of `size` elements; 256 elements a warp, unless `num_warps` says otherwise."""
        warps = self.num_warps or max(1, min(next_power_of_2(size) // 256, 8))
        return dict(interpret=self.interpret, compiler_params=TritonParams(num_warps=warps, num_stages=self.num_stages))


def _run_forward(norm: _Norm, x: Any, weight: Any, bias: Any, options: _Options, keeps_stats: bool) -> list:
    """The normalized rows, and the statistics of the rows if they are kept."""
    size = x.shape[-1]
    rows = x.reshape(-1, size)
    stat = ShapeDtypeStruct((len(rows),), jnp.float32)
    stats = [stat] * norm.stats * keeps_stats
    one, every = BlockSpec((None,), lambda i: (i,)), BlockSpec((size,), lambda i: (0,))
    call = pallas_call(
        functools.partial(norm.forward, eps=options.eps, block_size=next_power_of_2(size)),
        [ShapeDtypeStruct(rows.shape, x.dtype), *stats],
        grid=(len(rows),),
        in_specs=[_ROW(size), every, every],
        out_specs=[_ROW(size), *[one] * len(stats)],
        **options.of(size),
    )
    out, *found = call(rows, weight, bias)
    return [out.reshape(x.shape), *found]


def _run_backward(norm: _Norm, options: _Options, residuals: Sequence, do: Any) -> tuple[Any, Any, Any]:
    """The derivatives by rows, weights and biases."""
    x, weight, bias, *stats = residuals
    if options.backward_pass_impl == "xla":
        return vjp(functools.partial(norm.reference, eps=options.eps), x, weight, bias)[1](do)
    size = x.shape[-1]
    rows, do = x.reshape(-1, size), do.reshape(-1, size)
    one, every = BlockSpec((None,), lambda i: (i,)), BlockSpec((size,), lambda i: (0,))
    dx = pallas_call(
        functools.partial(norm.dx, eps=options.eps, block_size=next_power_of_2(size)),
        ShapeDtypeStruct(rows.shape, x.dtype),
        grid=(len(rows),),
        in_specs=[_ROW(size), every, every, _ROW(size), *[one] * len(stats)],
        out_specs=_ROW(size),
        **options.of(size),
    )(rows, weight, bias, do, *stats)
    width = min(_COLUMNS, next_power_of_2(size))
    padded = cdiv(size, width) * width
    fill = lambda a: jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, padded - size)])  # noqa: E731
    columns, some = BlockSpec((len(rows), width), lambda j: (0, j)), BlockSpec((width,), lambda j: (j,))
    whole = BlockSpec((len(rows),), lambda j: (0,))
    dw, db = pallas_call(
        functools.partial(norm.dw_db, eps=options.eps, block_m=_ROWS, block_n=width),
        [ShapeDtypeStruct((padded,), a.dtype) for a in (weight, bias)],
        grid=(padded // width,),
        in_specs=[columns, some, some, columns, *[whole] * len(stats)],
        out_specs=[some, some],
        **options.of(_ROWS * width),
    )(fill(rows), fill(weight), fill(bias), fill(do), *stats)
    return dx.reshape(x.shape), dw[:size], db[:size]


def _checked(options: _Options) -> _Options:
    if options.backward_pass_impl not in ("triton", "xla"):
        raise ValueError(f"Invalid backward pass implementation: {options.backward_pass_impl}. Use 'triton' or 'xla'.")
    return options


def _as_rows(columns: Array, x: Array) -> Array:
    """Numbers of the columns as an array of the rank of `x`."""
    return columns.reshape((1,) * (x.ndim - 1) + columns.shape)


@functools.partial(jit, static_argnames=("eps",))
def layer_norm_reference(x: Array, weight: Array, bias: Array, *, eps: float = 1e-5) -> Array:
    """Computes `layer_norm` by operations of XLA.

    Args:
      x: array, whose last axis is normalized.
      weight: weights of the last axis.
      bias: biases of the last axis.
      eps: number added to the variance.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import layer_norm
        >>> layer_norm.layer_norm_reference(jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2)).round(2)
        Array([[-1.,  1.]], dtype=float32)
    """
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.maximum(0.0, jnp.mean(jnp.square(x), -1, keepdims=True) - jnp.square(mean))
    return (x - mean) * lax.rsqrt(variance + eps) * _as_rows(weight, x) + _as_rows(bias, x)


@functools.partial(jit, static_argnames=("eps",))
def rms_norm_reference(x: Array, weight: Array, bias: Array, *, eps: float = 1e-5) -> Array:
    """Computes `rms_norm` by operations of XLA. See `layer_norm_reference`.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import rms_norm
        >>> rms_norm.rms_norm_reference(jnp.array([[3.0, 3.0]]), jnp.ones(2), jnp.zeros(2)).round(2)
        Array([[1., 1.]], dtype=float32)
    """
    return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + eps) * _as_rows(weight, x) + _as_rows(bias, x)


_LAYER_NORM = _Norm(
    layer_norm_forward_kernel, layer_norm_backward_kernel_dx, layer_norm_backward_kernel_dw_db, layer_norm_reference, 2
)
_RMS_NORM = _Norm(
    rms_norm_forward_kernel, rms_norm_backward_kernel_dx, rms_norm_backward_kernel_dw_db, rms_norm_reference, 1
)
_NONDIFF = (3, 4, 5, 6, 7)


@functools.partial(custom_vjp, nondiff_argnums=_NONDIFF)
@functools.partial(jit, static_argnums=_NONDIFF)
def layer_norm(
    x: Array,
    weight: Array,
    bias: Array,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-5,
    backward_pass_impl: str = "triton",
    interpret: bool = False,
) -> Array:
    """Normalizes the last axis to mean 0 and variance 1, then scales and shifts it, by a kernel for GPUs.

    Args:
      x: array.
      weight: weights of the last axis.
      bias: biases of the last axis.
      num_warps: number of warps that compute a row.
      num_stages: number of stages into which loops are pipelined.
      eps: number added to the variance.
      backward_pass_impl: "triton" computes derivatives by kernels, "xla" by operations of XLA.
      interpret: whether the kernels are interpreted, on any device.

    Returns:
      An array of the shape and dtype of `x`.

    Raises ValueError for another `backward_pass_impl`.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import layer_norm
        >>> layer_norm.layer_norm(jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2), interpret=True).round(3)
        Array([[-1.,  1.]], dtype=float32)
    """
    options = _checked(_Options(num_warps, num_stages, eps, backward_pass_impl, interpret))
    return _run_forward(_LAYER_NORM, x, weight, bias, options, False)[0]


@functools.partial(custom_vjp, nondiff_argnums=_NONDIFF)
@functools.partial(jit, static_argnums=_NONDIFF)
def rms_norm(
    x: Array,
    weight: Array,
    bias: Array,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-5,
    backward_pass_impl: str = "triton",
    interpret: bool = False,
) -> Array:
    """Divides the last axis by the root of its mean square, then scales and shifts it, by a kernel for GPUs.

    Args:
      x: array.
      weight: weights of the last axis.
      bias: biases of the last axis.
      num_warps: number of warps that compute a row.
      num_stages: number of stages into which loops are pipelined.
      eps: number added to the mean square.
      backward_pass_impl: "triton" computes derivatives by kernels, "xla" by operations of XLA.
      interpret: whether the kernels are interpreted, on any device.

    Returns:
      An array of the shape and dtype of `x`.

    Raises ValueError for another `backward_pass_impl`.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import rms_norm
        >>> rms_norm.rms_norm(jnp.array([[3.0, 3.0]]), jnp.ones(2), jnp.zeros(2), interpret=True).round(3)
        Array([[1., 1.]], dtype=float32)
    """
    options = _checked(_Options(num_warps, num_stages, eps, backward_pass_impl, interpret))
    return _run_forward(_RMS_NORM, x, weight, bias, options, False)[0]


_FORWARD = """Computes `%` and what its derivative needs. Its arguments are those of `%`.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import %
        >>> x, one, zero = jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2)
        >>> out, residuals = %.%_forward(x, one, zero, interpret=True)
        >>> jnp.allclose(out, %.%_reference(x, one, zero))
        Array(True, dtype=bool)
    """
_BACKWARD = """Computes the derivatives of `%` by its three arrays, from what `%_forward` returned.

    Example:
        >>> from minijax.experimental.pallas.ops.gpu import %
        >>> x, one, zero = jnp.array([[1.0, 3.0]]), jnp.ones(2), jnp.zeros(2)
        >>> _, residuals = %.%_forward(x, one, zero, interpret=True)
        >>> dx, dw, db = %.%_backward(None, 3, 1e-5, "triton", True, residuals, jnp.ones((1, 2)))
        >>> print(dx.shape, db)
        (1, 2) [1. 1.]
    """


def _rules(norm: _Norm, name: str) -> tuple[Callable, Callable]:
    def forward(
        x: Array,
        weight: Array,
        bias: Array,
        num_warps: int | None = None,
        num_stages: int | None = 3,
        eps: float = 1e-5,
        backward_pass_impl: str = "triton",
        interpret: bool = False,
    ) -> tuple[Array, Any]:
        options = _checked(_Options(num_warps, num_stages, eps, backward_pass_impl, interpret))
        out, *stats = _run_forward(norm, x, weight, bias, options, True)
        return out, (x, weight, bias, *stats)

    def backward(
        num_warps: int | None,
        num_stages: int | None,
        eps: float,
        backward_pass_impl: str,
        interpret: bool,
        res: Any,
        do: Array,
    ) -> tuple[Array, Array, Array]:
        options = _Options(num_warps, num_stages, eps, backward_pass_impl, interpret)
        return _run_backward(norm, options, res, do)

    forward.__name__, backward.__name__ = f"{name}_forward", f"{name}_backward"
    forward.__doc__ = _FORWARD.replace("%", name)
    backward.__doc__ = _BACKWARD.replace("%", name)
    return forward, backward


layer_norm_forward, layer_norm_backward = _rules(_LAYER_NORM, "layer_norm")
rms_norm_forward, rms_norm_backward = _rules(_RMS_NORM, "rms_norm")
layer_norm.defvjp(layer_norm_forward, layer_norm_backward)
rms_norm.defvjp(rms_norm_forward, rms_norm_backward)
