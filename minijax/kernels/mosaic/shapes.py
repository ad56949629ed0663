"""The rules of operations that move elements, and of reductions and products."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.kernels.mosaic.verbs import Value, ints, is_float, is_unsigned, listed, vector, vector_of
from minijax.kernels.mosaic.walk import RULES, Kernel, Site, rule
from minijax.kernels.text import element_of


@rule("broadcast_in_dim")
def _broadcast_in_dim(
    k: Kernel, site: Site, x: Value, *_: Value, broadcast_dimensions: Sequence[int], **__: Any
) -> Value:
    shape = site.out.shape
    if x.shape and x.shape != shape:
        sizes = [1] * len(shape)
        for axis, n in zip(broadcast_dimensions, x.shape, strict=True):
            sizes[axis] = n
        x = k.shape_cast(x, sizes)
    return k.broadcast(x, shape)


@rule("squeeze")
def _squeeze(k: Kernel, site: Site, x: Value, **_: Any) -> Value:
    _check_scalar(site)
    return k.reshape(x, site.out.shape)


def _check_scalar(site: Site) -> None:
    """Raises ValueError for a scalar of 8 or 16 bits, which TPUs cannot take out of a vector."""
    if not site.out.shape and site.out.dtype.itemsize != 4 and site.out.dtype != np.bool_:
        raise ValueError(
            f"Only arrays with 32-bit element types can be converted to scalars, but got: {site.out.dtype}. Convert "
            "the array with `x.astype` before."
        )


@rule("reshape", "expand_dims")
def _reshape(k: Kernel, site: Site, x: Value, *_: Value, **__: Any) -> Value:
    return k.reshape(x, site.out.shape)


@rule("transpose")
def _transpose(k: Kernel, site: Site, x: Value, permutation: Sequence[int]) -> Value:
    return k.one("tpu.transpose", [x], site.type, permutation=ints(permutation))


@rule("concatenate")
def _concatenate(k: Kernel, site: Site, *xs: Value, dimension: int) -> Value:
    return k.concatenate(xs, dimension)


@rule("stack")
def _stack(k: Kernel, site: Site, *xs: Value, axis: int) -> Value:
    shape = list(site.out.shape)
    shape[axis] = 1
    return k.concatenate([k.reshape(x, shape) for x in xs], axis)


@rule("unstack")
def _unstack(k: Kernel, site: Site, x: Value, axis: int) -> list[Value]:
    return [
        k.reshape(part, out.shape)
        for part, out in zip(_parts(k, x, axis, (1,) * x.shape[axis]), site.outs, strict=True)
    ]


def _parts(k: Kernel, x: Value, axis: int, sizes: Sequence[int]) -> Any:
    start = 0
    for size in sizes:
        starts, shape = [0] * len(x.shape), list(x.shape)
        starts[axis], shape[axis] = start, size
        yield k.slice(x, starts, shape)
        start += size


@rule("split")
def _split(k: Kernel, site: Site, x: Value, sizes: Sequence[int], axis: int) -> list[Value]:
    return list(_parts(k, x, axis, sizes))


@rule("tile")
def _tile(k: Kernel, site: Site, x: Value, reps: Sequence[int]) -> Value:
    for axis, count in enumerate(reps):
        if count != 1:
            x = k.concatenate([x] * count, axis)
    return x


@rule("slice")
def _slice(
    k: Kernel, site: Site, x: Value, start_indices: Sequence[int], strides: Sequence[int] | None, **_: Any
) -> Value:
    if strides is not None and any(s != 1 for s in strides):
        raise NotImplementedError(f"slice: strides {tuple(strides)} of a value; read a reference by a strided pl.ds")
    return k.slice(x, start_indices, site.out.shape)


@rule("pad")
def _pad(k: Kernel, site: Site, x: Value, padding: Value, padding_config: Sequence[tuple[int, int, int]]) -> Value:
    if any(low < 0 or high < 0 or inner for low, high, inner in padding_config):
        raise NotImplementedError(f"pad: interior and negative padding {padding_config} in a kernel for TPUs")

    def edge(axis, count):
        shape = list(x.shape)
        shape[axis] = count
        return k.broadcast(padding, shape)

    for axis, (low, high, _) in enumerate(padding_config):
        if low:
            x = k.concatenate([edge(axis, low), x], axis)
        if high:
            x = k.concatenate([x, edge(axis, high)], axis)
    return x


@rule("iota")
def _iota(k: Kernel, site: Site, *_: Value, dtype: Any, dimension: int, **__: Any) -> Value:
    shape = site.out.shape
    counted = np.dtype(np.int32) if dtypes.issubdtype(dtype, np.floating) else np.dtype(dtype)
    if len(shape) == 1:
        row = k.one("tpu.iota", (), vector((1, *shape), counted), dimensions=ints([1], "i32"))
        numbers = k.shape_cast(row, shape)
    else:
        numbers = k.one("tpu.iota", (), vector(shape, counted), dimensions=ints([dimension], "i32"))
    return numbers if counted == dtype else k.cast("sitofp", numbers, element_of(dtype))


@rule("gather")
def _gather(
    k: Kernel, site: Site, x: Value, indices: Value, dimension_numbers: Any, slice_sizes: Any, **_: Any
) -> Value:
    d, rank = dimension_numbers, len(x.shape)
    axes = tuple(d.start_index_map)
    others = tuple(i for i in range(rank) if i not in axes)
    is_along = (
        len(axes) == 1
        and not d.offset_dims
        and tuple(d.collapsed_slice_dims) == axes
        and tuple(d.operand_batching_dims) == tuple(d.start_indices_batching_dims) == others
        and indices.shape[:-1] == x.shape
        and indices.element == "i32"
    )
    if not is_along:
        raise NotImplementedError(
            "gather: kernels for TPUs have `jnp.take_along_axis` of an array and int32 indices of one shape, with "
            "mode='promise_in_bounds'"
        )
    flat = k.shape_cast(indices, indices.shape[:-1])
    return k.one("tpu.dynamic_gather", [x, flat], site.type, dimensions=ints(axes, "i32"))


@rule("roll")
def _roll(
    k: Kernel, site: Site, x: Value, shift: Value, axis: int, stride: int | None = None, stride_axis: int | None = None
) -> Value:
    attributes = dict(dimension=f"{axis} : si32")
    if stride is not None:
        attributes |= dict(stride=f"{stride} : si32", stride_dimension=f"{stride_axis} : si32")
    return k.one("tpu.dynamic_rotate", [x, shift], site.type, **attributes)


@rule("bitcast")
def _bitcast(k: Kernel, site: Site, x: Value, **_: Any) -> Value:
    return k.bitcast(x, site.out.shape, element_of(site.out.dtype))


@rule("broadcast_to")
def _broadcast_to(k: Kernel, site: Site, *_: Value, **__: Any) -> Value:
    raise RuntimeError(
        "`broadcast_to` is a Triton-specific primitive. Please consider using `jnp.broadcast_to` instead."
    )


# ---- reductions ----------------------------------------------------------------------------------------


def _reduction(floats: str, integers: str, identity: Callable[[Any], Any]) -> Callable:
    def lower(k: Kernel, site: Site, x: Value, axes: Sequence[int], **_: Any) -> Value:
        dtype = site.out.dtype
        if is_unsigned(dtype):
            raise NotImplementedError("Reductions over unsigned integers not implemented.")
        if not is_float(x.element) and dtype != np.int32:
            raise NotImplementedError(f"Reductions over {dtype} not implemented.")
        _check_scalar(site)
        return _reduced(k, x, axes, floats if is_float(x.element) else integers, identity(dtype), dtype)

    return lower


def _reduced(k: Kernel, x: Value, axes: Sequence[int], kind: str, start: Any, dtype: Any) -> Value:
    if len(axes) < len(x.shape):
        return k.reduce(kind, x, axes, start, dtype)
    # Vectors have an axis, so that one is put in front and taken off the result.
    rows = k.reduce(kind, k.shape_cast(x, (1, *x.shape)), [i + 1 for i in axes], start, dtype)
    return k.extract(k.shape_cast(rows, (1,) * (len(x.shape) + 1)))


def _smallest(dtype: Any) -> Any:
    return -np.inf if dtypes.issubdtype(dtype, np.floating) else dtypes.iinfo(dtype).min


def _largest(dtype: Any) -> Any:
    return np.inf if dtypes.issubdtype(dtype, np.floating) else dtypes.iinfo(dtype).max


rule("reduce_sum")(_reduction("add", "add", lambda dtype: 0))
rule("reduce_max")(_reduction("maximumf", "maxsi", _smallest))
rule("reduce_min")(_reduction("minimumf", "minsi", _largest))


def _of_flags(name: str) -> Callable:
    """A reduction of flags by that of the floats 0 and 1 called `name`."""

    def lower(k: Kernel, site: Site, x: Value, axes: Sequence[int], **_: Any) -> Value:
        constants = [k.constant(n, np.float32) for n in (1, 0)]
        floats = k.select(x, *[k.broadcast(c, x.shape) for c in constants])
        ins, outs = ([a.update(dtype=np.dtype(np.float32)) for a in avals] for avals in (site.ins, site.outs))
        found = RULES[k.core][name].write(k, Site(ins, outs, name), floats, axes=axes)
        return k.compare("gt", found, k.fill(0, found.shape, np.float32))

    return lower


rule("reduce_and")(_of_flags("reduce_min"))
rule("reduce_or")(_of_flags("reduce_max"))


def _arg(kind: str) -> Callable:
    def lower(k: Kernel, site: Site, x: Value, axes: Sequence[int], index_dtype: Any) -> Value:
        if x.element != "f32":
            raise NotImplementedError(f"{site.name} in a kernel for TPUs takes float32, not {site.ins[0].dtype}")
        (axis,) = axes
        attributes = dict(axis=f"{axis} : i32", kind=f"#tpu.reduction_kind<{kind}>")
        return k.one("tpu.reduce_index", [x], site.type, **attributes)

    return lower


rule("argmax", late=True)(_arg("arg_max"))
rule("argmin", late=True)(_arg("arg_min"))


# ---- products ------------------------------------------------------------------------------------------


@rule("dot_general")
def _dot(k: Kernel, site: Site, x: Value, y: Value, dimension_numbers: Any, precision: Any, **_: Any) -> Value:
    out = site.out
    if dtypes.itemsize_bits(out.dtype) != 32:
        raise NotImplementedError(
            f"dot_general in a kernel for TPUs adds up in 32 bits, not in {out.dtype}: pass "
            "preferred_element_type=jnp.float32"
        )
    start = k.dense(0, out.shape, out.dtype)
    attributes = dict(dimension_numbers=_dimension_numbers(dimension_numbers, len(x.shape), len(y.shape)))
    if (chosen := _precision(precision)) is not None:
        attributes["precision"] = chosen
    hints = dict(transpose_lhs="false", transpose_lhs_hint="false", transpose_rhs="false")
    return k.one("tpu.matmul", [x, y, start], start.type, **attributes, **hints)


def _dimension_numbers(numbers: Any, rank: int, other: int) -> str:
    """The dimensions of a product: contracted ones, others, where those of the result come from, batches."""
    (lhs, rhs), (lhs_batch, rhs_batch) = numbers
    lhs_free = [i for i in range(rank) if i not in (*lhs, *lhs_batch)]
    rhs_free = [i for i in range(other) if i not in (*rhs, *rhs_batch)]
    order = [n for i in (*lhs_batch, *lhs_free) for n in (0, i)] + [n for i in rhs_free for n in (1, i)]
    parts = [lhs, rhs, lhs_free, rhs_free, order, lhs_batch, rhs_batch]
    return f"#tpu.dot_dimension_numbers<{', '.join(map(listed, parts))}>"


def _precision(precision: Any) -> str | None:
    """The attribute of a precision. Raises NotImplementedError for one that the compiler does not have."""
    both = precision if isinstance(precision, tuple) else (precision, precision)
    names = {getattr(p, "name", p) for p in both}
    if names <= {None, "DEFAULT"}:
        return None
    if names == {"HIGHEST"}:
        return "#tpu.contract_precision<fp32>"
    raise NotImplementedError(f"Unsupported dot precision: {precision}. Kernels for TPUs have DEFAULT and HIGHEST.")


@rule("matmul_push_rhs")
def _push_rhs(k: Kernel, site: Site, rhs: Value, staging_register: int, mxu_index: int, transpose: bool) -> None:
    flag = str(bool(transpose)).lower()
    attributes = dict(mxu_index=f"{mxu_index} : i32", staging_register=f"{staging_register} : i32", transpose=flag)
    k.op("tpu.matmul_push_rhs", [rhs], attributes=attributes)


@rule("matmul_acc_lhs")
def _acc_lhs(k: Kernel, site: Site, lhs: Value, acc_addr: int, mxu_index: int, load_staged_rhs: int | None) -> None:
    attributes = dict(acc=f"{acc_addr} : i32", mxu_index=f"{mxu_index} : i32")
    if load_staged_rhs is not None:
        attributes["load_staged_rhs"] = f"{load_staged_rhs} : i32"
    k.op("tpu.matmul_acc_lhs", [lhs], attributes=attributes)


@rule("matmul_pop")
def _pop(k: Kernel, site: Site, acc_addr: int, mxu_index: int, **_: Any) -> Value:
    return k.one("tpu.matmul_pop", (), site.type, acc=f"{acc_addr} : i32", mxu_index=f"{mxu_index} : i32")


@rule("pack_elementwise")
def _pack(k: Kernel, site: Site, *xs: Value, packed_dtype: Any) -> Value:
    return k.one("tpu.pack_elementwise", xs, site.type, target_type=element_of(packed_dtype))


@rule("unpack_elementwise")
def _unpack(k: Kernel, site: Site, x: Value, index: int, packed_dtype: Any, unpacked_dtype: Any) -> Value:
    attributes = dict(index=f"{index} : i32", source_type=element_of(packed_dtype))
    return k.one("tpu.unpack_elementwise", [x], vector_of(x.shape, element_of(unpacked_dtype)), **attributes)


@rule("stochastic_round")
def _stochastic_round(k: Kernel, site: Site, x: Value, bits: Value, **_: Any) -> Value:
    return k.one("tpu.stochastic_convert", [x, bits], site.type)
