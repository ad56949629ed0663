"""Kernels of Triton: jaxprs of kernels, equation by equation, with the rules of their operations."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import source, tree
from minijax.composed.refs import parts_of
from minijax.ir.jaxpr import Jaxpr, JaxprEqn, Literal
from minijax.ir.types import ShapedArray
from minijax.kernels.text import Value
from minijax.kernels.triton import control, elementwise, memory, moving, shapes
from minijax.kernels.triton.memory import Block, access, read, write
from minijax.kernels.triton.verbs import CACHES, F32, I32, Number, Tiles, attribute, kind


class Kernel(Tiles):
    """Writes the operations of a kernel: `ids` are the numbers of the step, `sizes` the axes of the grid."""

    def __init__(self, platform: str, grid: Any):
        super().__init__()
        self.is_rocm = platform == "rocm"
        self.grid = grid
        self.ids: Sequence[Value] = ()

    def walk(self, jaxpr: Jaxpr, args: Sequence, consts: Sequence = (), skipped: int = 0) -> list:
        """Writes the equations of a jaxpr, and returns its results but for the first `skipped` ones."""
        env: dict[Any, Any] = {v: _constant(c) for v, c in zip(jaxpr.constvars, consts, strict=False)}
        env.update(zip(jaxpr.invars, args, strict=True))

        def look(a):
            if isinstance(a, Literal):
                return Number(a.val, a.aval.dtype)
            if callable(env[a]):  # a result that is computed where it is read
                env[a] = env[a]()
            return env[a]

        for eqn in jaxpr.eqns:
            results = self._lowered(eqn, [look(a) for a in eqn.invars])
            env.update(zip(eqn.outvars, results, strict=True))
        return [look(a) for a in jaxpr.outvars[skipped:]]

    def _lowered(self, eqn: JaxprEqn, operands: list) -> Sequence:
        name = eqn.primitive.name
        rule = RULES.get(name, _unknown)
        try:
            for atom in (*eqn.invars, *eqn.outvars):
                _check_size(atom.aval)
            results = rule(self, eqn, *operands)
        except (NotImplementedError, ValueError) as error:
            note = f"This is the operation {name} at {source.summary(eqn.source_info.traceback)}, in a Triton kernel."
            if not getattr(error, "__notes__", None):  # the innermost operation tells most
                error.add_note(note)
            raise
        return results if isinstance(results, list) else [results]


def _unknown(k, eqn, *operands):
    raise NotImplementedError(
        f"Unimplemented primitive in Pallas Triton lowering: {eqn.primitive.name}. Compute it outside of the kernel, "
        "or by other operations."
    )


def _constant(value: Any) -> Number:
    if np.ndim(value):
        raise ValueError(f"a Triton kernel captures an array of shape {np.shape(value)}: pass it as an input")
    return Number(np.asarray(value)[()], value.dtype)


def _check_size(aval: Any) -> None:
    if isinstance(aval, ShapedArray) and (size := prod(aval.shape)) & (size - 1):
        raise ValueError(
            "The Pallas Triton lowering currently requires that all operations have array arguments and results whose "
            f"size is a power of 2. Encountered an array of shape {aval.shape}"
        )


# ---- references -----------------------------------------------------------------------------------------


def _get(k, eqn, block, *arrays):
    return read(k, access(k, block, eqn.params["path"], arrays))


def _swap(k, eqn, block, value, *arrays):
    at = access(k, block, eqn.params["path"], arrays)
    value = k.tile(value, eqn.outvars[0].aval.shape)
    old = read(k, at)
    write(k, at, value)
    return old


def _addupdate(k, eqn, block, value, *arrays):
    at = access(k, block, eqn.params["path"], arrays)
    memory.atomic(k, "add", at, k.tile(value, at.pointers.shape), None)
    return []


def _arguments(k, eqn, operands):
    """The arguments of an operation on references: where its elements are, and the others."""
    ref, *others = tree.tree_unflatten(eqn.params["args_tree"], operands)
    return access(k, *parts_of(ref)), others


def _option(name: str, value: Any, known: Any) -> Any:
    if value not in known:
        raise ValueError(f"unsupported {name}: {value}")
    return value


def _in_shape(k, x, shape):
    """A mask, or other values, in the shape of a view, as NumPy broadcasts; None stays."""
    if x is None:
        return None
    x = k.tile(x)
    while x.shape and len(x.shape) < len(shape):
        x = k.expand(x, 0)
    return k.broadcast(x, shape)


def _masked_load(k, eqn, *operands):
    at, (mask, other) = _arguments(k, eqn, operands)
    p, shape = eqn.params, at.pointers.shape
    if at.is_packed:
        shape = eqn.outvars[0].aval.shape
    if isinstance(other, Number) and kind(other.dtype) == 1 and other.value >= 0:
        other = Number(other.value, np.dtype(f"u{other.dtype}"))  # jax converts it without sign
    mask, other = _in_shape(k, mask, shape), _in_shape(k, other if mask is not None else None, shape)
    other = other if other is None else k.cast(other, at.dtype)
    cache, evict = _option("cache modifier", p["cache_modifier"], CACHES), _eviction(p)
    if p["is_volatile"] and (cache or evict):
        raise ValueError("masked_load: a volatile load in a Triton kernel has no cache modifier and no eviction policy")
    return read(k, at, mask, other, cache=cache, evict=evict, is_volatile=p["is_volatile"])


def _eviction(params):
    return _option("eviction policy", params["eviction_policy"], (None, "evict_first", "evict_last", "evict_normal"))


def _masked_swap(k, eqn, *operands):
    at, (value, mask) = _arguments(k, eqn, operands)
    shape = eqn.outvars[0].aval.shape
    value, mask = k.tile(value, shape), _in_shape(k, mask, shape)
    old = read(k, at, mask, None if mask is None else value)
    write(k, at, value, mask, _eviction(eqn.params))
    return old


def _atomic_rmw(k, eqn, *operands):
    at, (value, mask) = _arguments(k, eqn, operands)
    shape = at.pointers.shape
    mask = _in_shape(k, mask, shape)
    return memory.atomic(k, eqn.params["atomic_type"].name.lower(), at, k.tile(value, shape), mask)


def _atomic_cas(k, eqn, *operands):
    ref, expected, value = tree.tree_unflatten(eqn.params["args_tree"], operands)
    if type(ref) is Block and not ref.shape and not ref.array_shape:
        pointers = ref.pointer
    else:
        pointers = _arguments(k, eqn, operands)[0].pointers
    return k.compare_and_swap(pointers, k.tile(expected), k.tile(value))


# ---- the grid, hints and effects ------------------------------------------------------------------------


def _program_id(k, eqn):
    return k.ids[_axis(k, eqn.params["axis"])]


def _axis(k, axis):
    """The number of an axis of the whole grid, whose vmapped axes the kernel does not count."""
    return [i for i in range(len(k.grid.grid)) if i not in k.grid.vmapped_dims][axis]


def _num_programs(k, eqn):
    return Number(k.grid.grid[_axis(k, eqn.params["axis"])], I32)


def _axis_index(k, eqn):
    names = k.grid.grid_names
    if names is None or eqn.params["axis_name"] not in names:
        raise ValueError(
            f"axis_index of {eqn.params['axis_name']!r} in a Triton kernel: the grid has the names {names}"
        )
    return k.ids[names.index(eqn.params["axis_name"])]


def _hint(name):
    def rule(k, eqn, x):
        x, values = k.tile(x), eqn.params["values"]
        values = values if isinstance(values, tuple | list) else (values,)
        shown = f"{values[0]}" if len(values) == 1 else f"[{', '.join(map(str, values))}]"
        k.annotate(x, f"tt.{name} = dense<{shown}> : tensor<{len(values)}xi32>")
        return x

    return rule


def _debug_print(k, eqn, *xs):
    p = eqn.params
    if p["has_placeholders"]:
        raise ValueError("pl.debug_print() does not support placeholders when lowering to Triton")
    xs = list(map(k.tile, xs))
    signs = ", ".join(str(int(kind(x.dtype) == 1)) for x in xs)
    signed = f"array<i32: {signs}>" if xs else "array<i32>"
    k.op("tt.print", xs, (), {"prefix": attribute(f" {p['fmt']} "), "hex": "false", "isSigned": signed})
    return []


def _debug_barrier(k, eqn):
    k.op("gpu.barrier")
    return []


def _inline_asm(k, eqn, *xs):
    p, outs = eqn.params, [v.aval for v in eqn.outvars]
    xs = [k.tile(x, outs[0].shape) for x in xs]
    if k.is_rocm and p["asm"].startswith("tanh.approx."):  # the instruction of `approx_tanh`
        wide = k.extern("__triton_hip_fast_tanhf", [k.cast(xs[0], F32)], F32, "libdevice")
        return k.cast(wide, outs[0].dtype)
    attributes = {
        "asm_string": attribute(p["asm"]),
        "constraints": attribute(p["constraints"]),
        "packed_element": attribute(p["pack"]),
        "pure": "true",
    }
    return k.several("tt.elementwise_inline_asm", xs, outs, attributes)


RULES = {
    **elementwise.RULES,
    **shapes.RULES,
    **moving.RULES,
    **control.RULES,
    "get": _get,
    "swap": _swap,
    "addupdate": _addupdate,
    "masked_load": _masked_load,
    "masked_swap": _masked_swap,
    "atomic_rmw": _atomic_rmw,
    "atomic_cas": _atomic_cas,
    "program_id": _program_id,
    "num_programs": _num_programs,
    "axis_index": _axis_index,
    "multiple_of": _hint("divisibility"),
    "max_contiguous": _hint("contiguity"),
    "debug_print": _debug_print,
    "debug_barrier_p": _debug_barrier,
    "elementwise_inline_asm_p": _inline_asm,
}
