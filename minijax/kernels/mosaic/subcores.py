"""The rules of operations on the subcores of SparseCores."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax.composed.refs import TransformedRef
from minijax.hlo import spell
from minijax.indexing.language import Index
from minijax.kernels.mosaic import control, elementwise, references, shapes, transfers
from minijax.kernels.mosaic.references import Box, box_of, located, target, with_constants
from minijax.kernels.mosaic.transfers import of_tree
from minijax.kernels.mosaic.verbs import Memory, Value, ints, vector, vector_of
from minijax.kernels.mosaic.walk import RULES, Kernel, Site, rule
from minijax.kernels.parameters import CoreType
from minijax.kernels.subcores import get_sparse_core_info
from minijax.kernels.text import I32

_VECTOR = (CoreType.SC_VECTOR_SUBCORE,)
SUBCORES = (CoreType.SC_SCALAR_SUBCORE, *_VECTOR)

# ---- what subcores do as TensorCores ---------------------------------------------------------------------

_SHARED = (control, elementwise, references, shapes, transfers)  # modules that register the rules below
_AS_TENSORCORES = """
    abs add add_dependency and axis_index bitcast_convert_type broadcast_in_dim check clamp concatenate cond
    convert_element_type delay div dma_start dma_wait empty_ref eq exp gather ge get_barrier_semaphore gt jit le lt max
    min mul multiple_of ne neg not num_programs or program_id reduce_and reduce_or rem reshape reshard run_scoped scan
    select_n semaphore_read semaphore_signal semaphore_wait shift_left shift_right_arithmetic shift_right_logical sign
    slice split squeeze stack sub trace_value unstack while xor
""".split()
for _core in SUBCORES:
    RULES[_core].update({name: RULES[CoreType.TC][name] for name in _AS_TENSORCORES})


# ---- reads and writes ------------------------------------------------------------------------------------


def _box(k: Kernel, view: Any, what: str, out: Any) -> tuple[Memory, Box, list[Value]]:
    """The memory, the box and its first element's indices of a read or write of `out`.

    Raises NotImplementedError for what a subcore can only copy.
    """
    view = view if type(view) is TransformedRef else TransformedRef(view, (), [])
    if view.ref.space in ("hbm", "vmem_shared"):
        raise NotImplementedError(
            f"{what}: a subcore does not read or write {view.ref.space.upper()} memory; copy the data to VMEM by "
            "`pltpu.async_copy`"
        )
    ref, box = target(k, view.ref, view._path, view._arrays)
    first = next((i for i, n in enumerate(box.sizes) if n != 1), len(box.sizes))
    if any(box.dropped[first:]):
        raise NotImplementedError(f"{what}: a number after a slice in an index is not supported on SparseCores")
    if any(s != 1 for s in box.strides):
        raise NotImplementedError(f"{what}: slices have stride 1 on SparseCores, got {box.strides}")
    if (not out.shape) != (ref.space == "smem"):
        raise NotImplementedError(
            f"{what}: subcores have scalars in SMEM and vectors in VMEM, got {out.str_short()} in {ref.space.upper()}. "
            "Take an element of a vector of VMEM, as in `ref[pl.ds(i, 8)][0]`"
        )
    if ref.dtype == np.bool_:
        raise NotImplementedError(f"{what}: references to flags are not supported on SparseCores; use int32")
    return ref, box, [k.as_index(s) for s in box.starts]


def _check_register(what: str, aval: Any) -> None:
    """Raises NotImplementedError for a vector that is not that of a register."""
    packed = 4 // aval.dtype.itemsize
    allowed = [(packed * _lanes(),), (packed, _lanes())][: min(packed, 2)]
    if aval.shape not in allowed:
        raise NotImplementedError(
            f"{what}: subcores have {aval.dtype} vectors of the shapes {allowed}, got {aval.shape}"
        )


def _register_shape(k: Kernel, box: Box, out: Any) -> Sequence[int]:
    """The shape in which a vector is read and written: with axes of size 1 for dropped ones if layouts are inferred."""
    if k.has_layout_passes:
        return box.sizes
    _check_register("needs_layout_passes=False", out)
    return out.shape


def _fitted(k: Kernel, mask: Value | None, shape: Sequence[int]) -> Value | None:
    return mask if mask is None or mask.shape == tuple(shape) else k.shape_cast(mask, shape)


def _load(k: Kernel, ref: Memory, box: Box, indices: Sequence[Value], out: Any, mask: Value | None = None) -> Value:
    if not out.shape:
        return k.one("memref.load", [ref.value, *indices], vector((), out.dtype))
    shape = _register_shape(k, box, out)
    kind, mask = vector(shape, out.dtype), _fitted(k, mask, shape)
    (found,) = k.grouped("tpu.vector_load", [[ref.value], indices, [mask]], [kind], strides=ints([], "i32"))
    return k.shape_cast(found, out.shape) if k.has_layout_passes else found


def _of_path(k: Kernel, site: Site, operands: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """The view that is read or written, and the value if one is written."""
    count = 1 + (site.name == "swap")
    ref, *value = operands[:count]
    view = TransformedRef(ref, tuple(params["path"]), list(operands[count:]))
    return [*[k.value(x, site.ins[1]) for x in value], with_constants(k, view)][::-1]


@rule("get", arguments=_of_path, cores=SUBCORES)
@rule("load", arguments=of_tree, cores=SUBCORES)
def _get(k: Kernel, site: Site, view: Any, mask: Value | None = None, **_: Any) -> Value:
    return _load(k, *_box(k, view, site.name, site.out), site.out, mask)


@rule("swap", arguments=_of_path, cores=SUBCORES)
@rule("subcore_swap", arguments=of_tree, cores=SUBCORES)
def _swap(k: Kernel, site: Site, view: Any, x: Value, mask: Value | None = None, add: bool = False, **_: Any) -> Value:
    out = site.out
    ref, box, indices = _box(k, view, "swap", out)
    if not out.shape and (add or mask is not None):
        raise NotImplementedError("swap: scalars are not added to references, nor stored by a mask, on SparseCores")
    old = _load(k, ref, box, indices, out, mask)
    if not out.shape:
        k.op("memref.store", [x, ref.value, *indices])
        return old
    if k.has_layout_passes:
        x, mask = k.shape_cast(x, box.sizes), _fitted(k, mask, box.sizes)
    k.vector_store(ref.value, indices, x, mask, add)
    return old


def _indexed(k: Kernel, view: Any, what: str) -> Memory:
    """The memory of a gather or scatter by indices. Raises ValueError unless it is VMEM."""
    ref = located(k, view)
    if ref.space != "vmem":
        raise ValueError(f"{what}: subcores gather and scatter in VMEM, got a reference in {ref.space.upper()}")
    return ref


@rule("subcore_gather", arguments=of_tree, cores=SUBCORES)
def _gather(k: Kernel, site: Site, view: Any, indices: Sequence[Value], mask: Value | None, **_: Any) -> Value:
    _check_register("load_gather", site.out)
    ref = _indexed(k, view, "load_gather")
    return k.grouped("tpu.vector_load_idx", [[ref.value], indices, [mask]], [site.type])[0]


@rule("scatter", arguments=of_tree, cores=SUBCORES)
def _scatter(
    k: Kernel, site: Site, view: Any, indices: Sequence[Value], x: Value, mask: Value | None, *, add: bool, **_: Any
) -> None:
    ref = _indexed(k, view, "addupdate_scatter" if add else "store_scatter")
    k.grouped("tpu.vector_store_idx", [[x], [ref.value], indices, [mask]], add=str(add).lower())


# ---- vectors ---------------------------------------------------------------------------------------------


def _all_true(k: Kernel, shape: Sequence[int]) -> Value:
    return k.fill(True, shape, np.bool_)


def _scan(kind: str, k: Kernel, site: Site, x: Value, mask: Value, **_: Any) -> Value:
    """The sums, or the largest or smallest elements, up to each."""
    is_compared = kind != "sum" and site.ins[0].dtype == np.int32
    flip = k.fill(np.iinfo(np.int32).min, x.shape, np.int32) if is_compared else None
    if flip is not None:
        x = k.binary("xor", x, flip)
    found = k.one("tpu.scan", [x, mask], x.type, kind=f"#tpu.reduction_kind<{kind}>")
    return found if flip is None else k.binary("xor", found, flip)


for _name, _kind in (("cumsum", "sum"), ("cummax", "max"), ("cummin", "min")):
    rule(f"masked_{_name}", cores=SUBCORES)(partial(_scan, _kind))


@rule("cumsum", cores=SUBCORES)
def _cumsum(k: Kernel, site: Site, x: Value, axis: int, reverse: bool) -> Value:
    if axis or reverse or len(x.shape) != 1:
        raise NotImplementedError(
            f"cumsum: subcores add up vectors from the first element on, got axis={axis} of {site.ins[0].str_short()} "
            f"with reverse={reverse}"
        )
    return _scan("sum", k, site, x, _all_true(k, x.shape))


def _reduction(kind: str, k: Kernel, site: Site, x: Value, axes: Sequence[int], **_: Any) -> Value:
    """The last element of a scan."""
    if tuple(axes) != (0,):
        raise NotImplementedError(f"{site.name}: reductions require axes to be (0,) on SparseCore, but got {axes}.")
    found = _scan(kind, k, site, x, _all_true(k, x.shape))
    return k.element(found, [x.shape[0] - 1])


for _kind in ("sum", "max", "min"):
    rule(f"reduce_{_kind}", cores=_VECTOR)(partial(_reduction, _kind))


def _sorted(k: Kernel, site: Site, keys: Value, values: Value, mask: Value, descending: bool) -> list[Value]:
    """(mask, keys, values), sorted by the keys as numbers without sign."""
    kinds = [mask.type, keys.type, values.type]
    return k.op("tpu.sort", [keys, values, mask], kinds, dict(descending=str(descending).lower()))


@rule("masked_sort", cores=SUBCORES)
def _sort_key_val(k: Kernel, site: Site, keys: Value, values: Value, *mask: Value, descending: bool) -> list[Value]:
    if any(a.shape != (_lanes(),) for a in site.ins):
        raise ValueError(f"sort_key_val: subcores sort vectors of {_lanes()} elements, got {site.ins[0].str_short()}")
    if any(a.dtype.itemsize != 4 for a in site.ins[:2]):
        raise NotImplementedError(
            f"sort_key_val: keys and values have 32 bits, got {site.ins[0].dtype} and {site.ins[1].dtype}"
        )
    flags = mask[0] if mask else k.dense(True, keys.shape, np.bool_)
    is_signed = site.ins[0].dtype == np.int32
    flip = k.fill(np.iinfo(np.int32).min, keys.shape, np.int32) if is_signed else None
    if flip is not None:
        keys = k.binary("xor", keys, flip)
    flags, keys, values = _sorted(k, site, keys, values, flags, descending)
    if flip is not None:
        keys = k.binary("xor", keys, flip)
    return [keys, values, flags][: 2 + len(mask)]


def _lanes() -> int:
    return get_sparse_core_info().num_lanes


@rule("sort", cores=_VECTOR)
def _sort(k: Kernel, site: Site, keys: Value, *values: Value, dimension: int, num_keys: int, **_: Any) -> list[Value]:
    if dimension not in (0, -1) or num_keys != 1 or any(a.shape != (_lanes(),) for a in site.ins):
        raise NotImplementedError(
            f"sort: vector subcores sort vectors of {_lanes()} elements by one key, got "
            f"{[a.str_short() for a in site.ins]}, dimension={dimension} and num_keys={num_keys}"
        )
    flags = k.dense(True, keys.shape, np.bool_)
    found = [_sorted(k, site, keys, x, flags, False) for x in values or [keys]]
    return [found[0][1], *[f[2] for f in found]][: len(site.outs)]


@rule("iota", cores=_VECTOR)
def _iota(k: Kernel, site: Site, *_: Value, dimension: int, **__: Any) -> Value:
    if site.out.shape != (_lanes(),):
        raise ValueError(f"iota: vector subcores have vectors of {_lanes()} elements, got {site.out.str_short()}")
    return k.one("tpu.iota", (), site.type, dimensions=ints([dimension], "i32"))


@rule("rev", cores=_VECTOR)
def _rev(k: Kernel, site: Site, x: Value, dimensions: Sequence[int]) -> Value:
    if tuple(dimensions) != (0,):
        raise NotImplementedError(f"rev: vector subcores reverse vectors, got dimensions={dimensions}")
    last = k.fill(_lanes() - 1, (_lanes(),), np.int32)
    places = k.binary("sub", last, k.one("tpu.iota", (), last.type, dimensions=ints([0], "i32")))
    return k.one("tpu.dynamic_gather", [x, places], x.type, dimensions=ints([0], "i32"))


@rule("unique", cores=SUBCORES)
def _scan_count(k: Kernel, site: Site, x: Value, mask: Value) -> list[Value]:
    counts = vector(x.shape, np.int32)
    return k.op("tpu.scan_count", [mask, x], [mask.type, counts])[::-1]


@rule("subcore_bitcast", cores=SUBCORES)
def _bitcast(k: Kernel, site: Site, x: Value, dtype: Any) -> Value:
    return k.one("vector.bitcast", [x], site.type)


def _all_reduce(kind: str, k: Kernel, site: Site, x: Value, **_: Any) -> Value:
    attributes = dict(dim="0 : i64", kind=f"#tpu.reduction_kind<{kind}>")
    return k.one("tpu.all_reduce", [x], vector_of(site.out.shape, "i32"), **attributes)


rule("all_reduce_population_count", cores=SUBCORES)(partial(_all_reduce, "sum"))
rule("all_reduce_ffs", cores=SUBCORES)(partial(_all_reduce, "find_first_set"))


def _format(how: Any) -> str:
    return f"#tpu.pack_format<{how.value}>"


@rule("pack", cores=SUBCORES)
def _pack(k: Kernel, site: Site, *parts: Value, format: Any, **_: Any) -> Value:
    attributes = dict(pack_format=_format(format), positions=ints(range(len(parts)), "i32"))
    return k.one("tpu.pack_subelements", parts, site.type, **attributes)


@rule("unpack", cores=SUBCORES)
def _unpack(k: Kernel, site: Site, x: Value, *, format: Any, **_: Any) -> list[Value]:
    how = _format(format)
    return [
        k.one("tpu.unpack_subelements", [x], site.type, index=f"{i} : i32", pack_format=how)
        for i in range(len(site.outs))
    ]


# ---- loops, barriers and prints --------------------------------------------------------------------------


@rule("parallel_loop", arguments=of_tree, cores=SUBCORES)
def _parallel_loop(k: Kernel, site: Site, *operands: Any, jaxpr: Any, unroll: int, **_: Any) -> list[Value]:
    lower, upper, step, consts, carry = operands
    body: Callable = lambda i, *carry: k.values(jaxpr, [*consts, i, *carry])  # noqa: E731
    notes = f"{{sc.loop_unroll_factor = {unroll} : i64, sc.parallel_access}}"
    return k.loop(lower, upper, step, carry, body, notes)


@rule("debug_print", cores=SUBCORES)
def _debug_print(k: Kernel, site: Site, *xs: Value | Memory, fmt: str, **_: Any) -> list[Value]:
    if "{" in fmt or len(xs) > 1:
        raise NotImplementedError(
            f"debug_print: subcores print at most one value, after a text without placeholders, got {fmt!r} and "
            f"{len(xs)} values"
        )
    tag = spell.string(fmt)
    if xs and isinstance(xs[0], Memory):
        k.op("tpu.log_buffer", [xs[0].value], attributes=dict(shape=ints(xs[0].shape), tag=tag))
    else:
        k.op("tpu.log", xs, attributes=dict(tag=tag))
    return []


@rule("barrier", cores=SUBCORES)
def _barrier(k: Kernel, site: Site) -> None:
    k.op("tpu.barrier", [k.index(0)])


def _of_fetch(k: Kernel, site: Site, operands: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """(value, view, subcore), made in this order."""
    avals = params["args_tree"].unflatten(site.ins)
    view, value, subcore = params["args_tree"].unflatten(operands)
    return [k.value(value, avals[1]), with_constants(k, view), k.value(subcore, avals[2])]


@rule("sc_fetch_and_add", arguments=_of_fetch, cores=SUBCORES)
def _fetch_and_add(k: Kernel, site: Site, value: Value, view: Any, subcore: Value, **_: Any) -> Value:
    if type(view) is not TransformedRef:
        view = TransformedRef(view, (), [])
    *before, last = view._path or [Index((), ())]
    if before or type(last) is not Index:
        raise NotImplementedError("fetch_and_add: the scalar is an element of a reference, not of a view of one")
    starts = box_of(view.ref, last, view._arrays).starts
    return k.one("tpu.fetch_and_add_sync", [view.ref.value, *starts, value, subcore], I32)
