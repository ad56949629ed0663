"""Operations of the vector subcores of SparseCores, which are traced and compiled, but not interpreted."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, tree
from minijax.base.dtypes import DTypeLike
from minijax.composed.refs import parts_of
from minijax.higher.fori_loop import fori_loop
from minijax.ir.body import Flat, argument_names, as_consts, signature_of, source_of, trace_flat
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray, typeof
from minijax.kernels.chips import get_tpu_info, is_tpu_device
from minijax.kernels.expanded import Step, evaluate
from minijax.kernels.grid import INDEX
from minijax.kernels.operations.base import KernelOperation, check_reference, is_reference, type_of
from minijax.kernels.operations.helpers import cdiv
from minijax.kernels.operations.tpu import KERNEL_EFFECT
from minijax.kernels.operations.trees import mark, printed, printed_view
from minijax.primitives.convert import convert
from minijax.primitives.moving import as_array_or_constant, filled
from minijax.transforms.discharge import DischargeableCall

_SUMMED = ("uint32", "int32", "float32")
_HALVES = {"float32": "bfloat16", "int32": "int16", "uint32": "uint16", "int16": "int8", "uint16": "uint8"}
_NARROWER = {wide: dtypes.canonicalize_dtype(narrow) for wide, narrow in _HALVES.items()}
_WIDER = {narrow: dtypes.canonicalize_dtype(wide) for wide, narrow in _HALVES.items()}


class PackFormat(enum.Enum):
    """Says how two vectors are packed.

    Members:
      COMPRESSED: each element of the one beside that of the other, on an axis of size 2.
      INTERLEAVED: in turn, in a vector of twice the length.
    """

    COMPRESSED = "compressed"
    INTERLEAVED = "interleaved"


class SubcoreOperation(Primitive):
    """An operation on vectors of a subcore."""

    def evaluate_in_kernel(self, operands: Sequence, params: dict, step: Any) -> list:
        """Raises NotImplementedError: these operations run on SparseCores only."""
        raise NotImplementedError(f"{self.name} cannot be interpreted: it is an operation of SparseCores")


class MaskedScan(SubcoreOperation):
    """The sums or maxima of the elements up to each, of those that a mask keeps."""

    def __init__(self, name: str):
        self.name = name

    def infer(self, x, mask):
        return [x]


class SubcoreBitcast(SubcoreOperation):
    """The same bits as elements of another dtype."""

    name = "bitcast"
    rule_name = "subcore_bitcast"

    def infer(self, x, *, dtype):
        count = x.shape[-1] * dtypes.itemsize_bits(x.dtype) // dtypes.itemsize_bits(dtype)
        return [ShapedArray((*x.shape[:-1], count), dtype)]


class MaskAllReduce(SubcoreOperation):
    """A number for each group of `reduce` flags, such as how many are set."""

    def __init__(self, name: str):
        self.name = name

    def infer(self, x, *, reduce):
        return [ShapedArray((x.shape[0] // reduce,), np.dtype(np.int32))]


class MaskedSort(SubcoreOperation):
    """Sorted keys, and values in the same order; with a mask, its flags too."""

    name = "masked_sort"
    multiple_results = True

    def infer(self, keys, values, *mask, descending):
        return [keys, values, *mask]


class Unique(SubcoreOperation):
    """For each element how often it occurred up to there, and whether it occurs again, of those that a mask keeps."""

    name = "unique"
    multiple_results = True

    def infer(self, x, mask):
        return [ShapedArray(x.shape, np.dtype(np.int32)), mask]


class Pack(SubcoreOperation):
    """The elements of two vectors as one of a narrower dtype."""

    name = "pack"

    def infer(self, a, b, *, format, preferred_element_type):
        shape = (2 * a.shape[0],) if format is PackFormat.INTERLEAVED else (*a.shape, 2)
        return [ShapedArray(shape, preferred_element_type or _NARROWER[a.dtype.name])]


class Unpack(SubcoreOperation):
    """The elements of a vector as two of a wider dtype."""

    name = "unpack"
    multiple_results = True

    def infer(self, x, *, format, preferred_element_type):
        shape = (x.shape[0] // 2,) if format is PackFormat.INTERLEAVED else x.shape[:-1]
        return [ShapedArray(shape, preferred_element_type or _WIDER[x.dtype.name])] * 2


class SubcoreBarrier(SubcoreOperation):
    """Waits for the other subcores."""

    name = "barrier"
    multiple_results = True

    def infer(self):
        return []

    def effects(self):
        return KERNEL_EFFECT


class ParallelLoop(DischargeableCall):
    """Calls a jaxpr for each index: (lower and upper bound, step, constants, carry) -> carry."""

    name = "parallel_loop"
    auto_pvary = False

    def infer(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def effects(self, *avals, jaxpr, **params):
        return jaxpr.effects

    def evaluate_in_kernel(self, operands: Sequence, params: dict, step: Step) -> list:
        """The last carry; the indices come one after the other."""
        jaxpr = params["jaxpr"]
        lower, upper, stride, consts, carry = params["tree"].unflatten(operands)
        body = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
        one = lambda i, carry: evaluate(body, [], [*consts, lower + i * stride, *carry], step)  # noqa: E731
        return fori_loop(np.int32(0), cdiv(upper - lower, stride), one, list(carry))

    def _on_values(self, operands, params):
        return self.evaluate_in_kernel(operands, params, Step((), ()))


class SubcoreAccess(KernelOperation):
    """An operation on a reference that runs on subcores only."""


class SubcoreGather(SubcoreAccess):
    """The elements of a reference at indices: (view, indices, mask or None)."""

    name = "gather"
    rule_name = "subcore_gather"
    tree_param = "tree"

    def result_types(self, view, indices, mask):
        return [ShapedArray(indices[0].shape, type_of(view).dtype)]

    def as_printed(self, eqn):
        view, indices, mask = self.arguments(eqn.invars, eqn.params)
        ref, leaves, text = printed_view(view)
        text = f"PyTreeDef((*, {text}, [{', '.join('*' * len(indices))}], {mark(mask)}))"
        return printed(eqn, [ref, *leaves, *indices, mask], tree=text)


class SubcoreScatter(SubcoreAccess):
    """Stores or adds to the elements of a reference: (view, indices, value, mask or None)."""

    name = "scatter"
    tree_param = "tree"
    writes = True

    def as_printed(self, eqn):
        view, indices, value, mask = self.arguments(eqn.invars, eqn.params)
        ref, leaves, text = printed_view(view)
        text = f"PyTreeDef((*, {text}, [{', '.join('*' * len(indices))}], *, {mark(mask)}))"
        return printed(eqn, [ref, *leaves, *indices, value, mask], tree=text)


class SubcoreLoad(SubcoreAccess):
    """The first elements of a view, at the places of flags that are set: (view, flags)."""

    name = "load"
    tree_param = "tree"
    reads_only = True

    result_types = KernelOperation.elements_of_view

    def as_printed(self, eqn):
        view, mask = self.arguments(eqn.invars, eqn.params)
        ref, leaves, text = printed_view(view)
        return printed(eqn, [ref, *leaves, mask], has_mask=True, tree=f"PyTreeDef({text})")


class SubcoreSwap(SubcoreAccess):
    """Stores or adds the elements whose flags are set to the first of a view: (view, value, flags or None)."""

    name = "swap"
    rule_name = "subcore_swap"
    tree_param = "tree"
    writes = True

    result_types = KernelOperation.elements_of_view

    def as_printed(self, eqn):
        view, value, mask = self.arguments(eqn.invars, eqn.params)
        ref, leaves, text = printed_view(view)
        operands = [ref, value, *leaves, mask]
        shown = eqn.replace(params={"add": eqn.params["add"]})
        return printed(shown, operands, has_mask=mask is not None, tree=f"PyTreeDef({text})")


class FetchAndAdd(SubcoreAccess):
    """Adds to an integer of another subcore, and returns the old one: (view, value, subcore)."""

    name = "sc_fetch_and_add"
    writes = True

    result_types = KernelOperation.elements_of_view

    def as_printed(self, eqn):
        view, value, subcore_id = self.arguments(eqn.invars, eqn.params)
        ref, leaves, _ = printed_view(view)
        return printed(eqn.replace(params={}), [ref, value, *leaves, subcore_id])


masked_cumsum_p, masked_cummax_p = MaskedScan("masked_cumsum"), MaskedScan("masked_cummax")
all_reduce_ffs_p = MaskAllReduce("all_reduce_ffs")
all_reduce_population_count_p = MaskAllReduce("all_reduce_population_count")
bitcast_p, barrier_p = SubcoreBitcast(), SubcoreBarrier()
masked_sort_p, unique_p, pack_p, unpack_p = MaskedSort(), Unique(), Pack(), Unpack()
gather_p, scatter_p, parallel_loop_p = SubcoreGather(), SubcoreScatter(), ParallelLoop()
load_p, swap_p, fetch_and_add_p = SubcoreLoad(), SubcoreSwap(), FetchAndAdd()


def _scanned(function: str, primitive: Primitive, x: Any, mask: Any) -> Any:
    x = as_array_or_constant(x)
    aval = typeof(x)
    if aval.dtype.name not in _SUMMED:
        raise NotImplementedError(f"{function}: x.dtype={aval.dtype} must be uint32, int32 or float32")
    if len(aval.shape) != 1:
        raise NotImplementedError(f"{function}: x={aval.str_short()} must be rank 1")
    mask = filled(aval.shape, np.bool_(True)) if mask is None else mask
    kind = typeof(mask)
    if kind.dtype != np.bool_:
        raise TypeError(f"{function}: mask.dtype={kind.dtype} is not a boolean dtype")
    if kind.shape != aval.shape:
        raise ValueError(f"{function}: x.shape={aval.shape} != mask.shape={kind.shape}")
    return primitive.bind(x, mask)


def cumsum(x: Any, *, mask: Any = None) -> Any:
    """Returns the sum of the elements up to each.

    Args:
      x: vector of uint32, int32 or float32.
      mask: flags of the elements that are added. By default, all.

    Raises:
      NotImplementedError: for another dtype or rank.
      TypeError: for a mask of another dtype.
      ValueError: for a mask of another shape.
    """
    return _scanned("cumsum", masked_cumsum_p, x, mask)


def cummax(x: Any, *, mask: Any = None) -> Any:
    """Returns the largest of the elements up to each. Arguments and errors: as `plsc.cumsum`."""
    return _scanned("cummax", masked_cummax_p, x, mask)


def bitcast(x: Any, dtype: DTypeLike) -> Any:
    """Returns the bits of a vector as elements of another dtype.

    Args:
      x: array.
      dtype: dtype of the result, whose last axis is longer or shorter if it has fewer or more bits.

    Raises ValueError if the bits of the last axis are not those of a number of elements.
    """
    aval, dtype = typeof(x), dtypes.canonicalize_dtype(dtype)
    have, want = dtypes.itemsize_bits(aval.dtype), dtypes.itemsize_bits(dtype)
    if aval.shape[-1] * have % want:
        raise ValueError(
            f"Cannot bitcast from {aval.dtype} ({have} bits) to {dtype} ({want} bits), because "
            f"x.shape[-1]={aval.shape[-1]} * {have} is not divisible by {want}"
        )
    return bitcast_p.bind(x, dtype=dtype)


def _reduced(primitive: Primitive, x: Any, reduce: int) -> Any:
    if typeof(x).dtype != np.bool_:
        raise TypeError(f"{primitive.name}: Mask all-reduce only supports bool arrays, got {typeof(x).dtype}")
    return primitive.bind(x, reduce=reduce)


def all_reduce_population_count(x: Any, *, reduce: int = 1) -> Any:
    """Returns how many flags are set.

    Args:
      x: vector of flags.
      reduce: by how much shorter the result is than `x`.

    Returns:
      A vector of int32.

    Raises TypeError for another dtype.
    """
    return _reduced(all_reduce_population_count_p, x, reduce)


def all_reduce_ffs(x: Any, *, reduce: int = 1) -> Any:
    """Returns the number of the first flag that is set. Arguments: as `plsc.all_reduce_population_count`."""
    return _reduced(all_reduce_ffs_p, x, reduce)


def subcore_barrier() -> None:
    """Waits until all vector subcores of a SparseCore are here."""
    barrier_p.bind()


def parallel_loop(lower: Any, upper: Any, step: Any = 1, *, unroll: int = 1, carry: Any = None) -> Callable:
    """Runs the decorated function for each index from a lower up to an upper bound, in any order.

    Args:
      lower: first index, an integer.
      upper: bound, which is not reached.
      step: difference of two indices.
      unroll: how many indices are done in one iteration.
      carry: tree of values that are passed from index to index; the function then is (index, carry) -> carry, and the
        decorated name is the last carry. None: the function is (index) -> None.

    Raises ValueError if the function returns another tree than that of the carry.

    See also: `pl.loop`.

    Example:
        >>> @pl.kernel(out_type=jax.ShapeDtypeStruct((8,), jnp.int32), interpret=True,
        ...            mesh=plsc.ScalarSubcoreMesh(axis_name="core", num_cores=1))
        ... def numbers(o_ref):
        ...     @plsc.parallel_loop(0, 8)
        ...     def _(i):
        ...         o_ref[i] = 2 * i
        >>> print(numbers())
        [ 0  2  4  6  8 10 12 14]
    """
    leaves, carry_tree = tree.flatten(carry)

    def decorate(f):
        bounds = [convert(as_array_or_constant(n), np.dtype(np.int32)) for n in (lower, upper, step)]
        values = list(map(as_array_or_constant, leaves))
        given = (0,) if carry is None else (0, carry)
        flat = Flat(f, tree.tree_structure((given, {})), lambda values: values)
        info = DebugInfo("parallel_loop", source_of(f), argument_names(signature_of(f), flat.in_tree, ()))
        body = trace_flat(flat, [INDEX, *map(typeof, values)], info, as_consts)
        if body.out_tree != carry_tree:
            raise ValueError(
                f"parallel_loop: the function must return a carry like its argument {carry_tree}, got {body.out_tree}"
            )
        operands, treedef = tree.flatten((*bounds, list(body.closed.consts), values))
        results = parallel_loop_p.bind_all(operands, dict(jaxpr=body.jaxpr, tree=treedef, unroll=unroll))
        return body.out_tree.unflatten(results)

    return decorate


def _indexed(function: str, ref: Any, indices: Any, mask: Any, value: Any = None) -> list:
    """The indices as a list. Raises ValueError and TypeError for arguments that a subcore does not take."""
    check_reference(ref, f"Can only call `{function}` on a `Ref`: {ref}.", function)
    indices, aval = list(indices or ()), type_of(ref)
    if not indices:
        raise ValueError(f"{function}: Indices must not be empty")
    if aval.dtype.name not in ("int32", "float32"):
        raise TypeError(f"{function}: ref.dtype={aval.dtype} must be int32 or float32")
    if len(indices) != len(aval.shape):
        raise ValueError(f"The number of indices does not match ref.ndim={len(aval.shape)}: got {len(indices)}")
    shapes = [typeof(i).shape for i in indices]
    if any(len(shape) != 1 or shape != shapes[0] for shape in shapes):
        raise ValueError(f"{function}: Indices must be a 1-D array, all of the same size, got the shapes {shapes}")
    if value is not None:
        _check_like(function, "x", value, shapes[0])
        if typeof(value).dtype != aval.dtype:
            raise TypeError(f"{function}: val.dtype={typeof(value).dtype} != ref.dtype={aval.dtype}")
    if mask is not None:
        _check_like(function, "mask", mask, shapes[0])
    return indices


def _check_like(function: str, name: str, x: Any, shape: tuple[int, ...]) -> None:
    if typeof(x).shape != shape:
        raise ValueError(f"{function}: {name}.shape={typeof(x).shape} does not match the expected shape {shape}")


def _check_vector(function: str, dtype: Any, shape: tuple[int, ...]) -> None:
    """Raises NotImplementedError for a vector that is not that of a register, if the device is known."""
    core = get_tpu_info().sparse_core if is_tpu_device() else None
    if core is not None and shape != (lanes := (core.num_lanes,)):
        raise NotImplementedError(f"{function} only supports {dtype} arrays of shapes [{lanes}], got {shape}")


def load_gather(ref: Any, indices: Sequence[Any], *, mask: Any = None) -> Any:
    """Returns the elements of a reference at indices.

    Args:
      ref: reference.
      indices: a vector of int32 for each dimension of the reference.
      mask: flags of the elements that are read. By default, all.

    Raises ValueError unless there is a vector for each dimension.
    """
    indices = _indexed("load_gather", ref, indices, mask)
    _check_vector("Gather", type_of(ref).dtype, typeof(indices[0]).shape)
    return gather_p.call(ref, indices, mask)[0]


def store_scatter(ref: Any, indices: Sequence[Any], x: Any, *, mask: Any = None) -> None:
    """Stores the elements of a vector at indices of a reference.

    Args:
      ref: reference.
      indices: a vector of int32 for each dimension of the reference.
      x: vector.
      mask: flags of the elements that are stored. By default, all.

    Raises ValueError unless there is a vector for each dimension.
    """
    scatter_p.call(ref, _indexed("store_scatter", ref, indices, mask, as_array_or_constant(x)), x, mask, add=False)


def addupdate_scatter(ref: Any, indices: Sequence[Any], x: Any, *, mask: Any = None) -> None:
    """Adds the elements of a vector to those of a reference. Arguments: as `plsc.store_scatter`."""
    scatter_p.call(ref, _indexed("addupdate_scatter", ref, indices, mask, as_array_or_constant(x)), x, mask, add=True)


def _check_target(function: str, ref: Any) -> None:
    if not is_reference(ref):
        raise TypeError(f"{function}: ref must be an AbstractRef or TransformedRef, got {ref}")


def _swapped(function: str, ref: Any, x: Any, mask: Any, add: bool) -> None:
    _check_target(function, ref)
    aval, x = type_of(ref), as_array_or_constant(x)
    _check_mask(function, aval, mask)
    given = typeof(x)
    if given.shape != aval.shape:
        raise ValueError(f"{function}: Value must have shape {aval.shape}, got {given.shape}")
    if given.dtype != aval.dtype:
        raise TypeError(f"{function}: Ref and value must have the same dtype, got {aval.dtype} and {given.dtype}")
    swap_p.call(ref, x, mask, add=add)


def _check_mask(function: str, aval: Any, mask: Any) -> None:
    kind = None if mask is None else typeof(mask)
    if kind is not None and kind.shape != aval.shape:
        raise ValueError(f"{function}: Mask must have shape {aval.shape}, got {kind.shape}")
    if kind is not None and kind.dtype != np.bool_:
        raise TypeError(f"{function}: Mask must be a boolean array, got {kind.dtype}")


def load_expanded(ref: Any, *, mask: Any) -> Any:
    """Returns the first elements of a reference in turn, at the places where a flag is set.

    Args:
      ref: reference, or a view of one.
      mask: flags of the same shape.

    Returns:
      An array of the same shape, whose elements where the flag is not set are undefined.

    Raises:
      ValueError: for a mask of another shape.
      TypeError: for a mask of another dtype.
    """
    _check_target("load_expanded", ref)
    _check_mask("load_expanded", type_of(ref), mask)
    return load_p.call(ref, mask)[0]


def store_compressed(ref: Any, x: Any, *, mask: Any) -> None:
    """Stores the elements of an array whose flags are set, in turn, from the first element of a reference on.

    Args:
      ref: reference, or a view of one.
      x: array of the same shape and dtype.
      mask: flags of the same shape.

    Raises:
      ValueError: for an array or a mask of another shape.
      TypeError: for an array or a mask of another dtype.
    """
    _swapped("store_compressed", ref, x, mask, False)


def addupdate(ref: Any, x: Any) -> None:
    """Adds an array to a reference at once. Arguments and errors: as `plsc.store_compressed`."""
    _swapped("addupdate", ref, x, None, True)


def addupdate_compressed(ref: Any, x: Any, *, mask: Any) -> None:
    """Adds the elements of an array whose flags are set. Arguments and errors: as `plsc.store_compressed`."""
    _swapped("addupdate_compressed", ref, x, mask, True)


def fetch_and_add(x_ref: Any, value: Any, *, subcore_id: Any) -> Any:
    """Adds to an integer in the scalar memory of another vector subcore.

    Args:
      x_ref: reference to an int32 scalar, or a view of one.
      value: scalar of int32.
      subcore_id: number of the subcore.

    Returns:
      The integer before.

    Raises:
      NotImplementedError: for a reference to another dtype.
      ValueError: for a reference to an array or in another memory, or another value.
    """
    aval, value = type_of(x_ref), as_array_or_constant(value)
    if aval.dtype != np.int32:
        raise NotImplementedError(f"fetch_and_add: Only int32 refs are supported, but got {aval.dtype}")
    if aval.shape:
        raise ValueError(f"fetch_and_add: Expected a scalar ref, but got x_ref.shape={aval.shape}.")
    space = parts_of(x_ref)[0].aval.memory_space
    if str(space) != "smem":
        raise ValueError(f"fetch_and_add: Only refs in SMEM memory space are supported, but got one in {space}")
    given = typeof(value)
    if given.shape or given.dtype != np.int32:
        raise ValueError(
            "fetch_and_add: The value must be a scalar of the same type as the ref (int32), but got "
            f"{given.str_short()}."
        )
    place = typeof(as_array_or_constant(subcore_id))
    if place.shape or place.dtype != np.int32:
        raise ValueError(f"fetch_and_add: subcore_id= must be a scalar of type int32, but got {place.str_short(True)}.")
    return fetch_and_add_p.call(x_ref, value, convert(as_array_or_constant(subcore_id), np.dtype(np.int32)))[0]


def sort_key_val(keys: Any, values: Any, *, mask: Any = None, descending: bool = False) -> Any:
    """Returns sorted keys, and values in the same order.

    Args:
      keys: vector.
      values: vector of the same shape.
      mask: flags of the elements that come first. By default, all.
      descending: whether the largest key is the first.

    Returns:
      Keys and values; with a mask, its flags in the new order too.

    Raises ValueError for vectors of different shapes.
    """
    kinds = [typeof(x).dtype for x in (keys, values, *([] if mask is None else [mask]))]
    if kinds[0].name not in _SUMMED:
        raise NotImplementedError(f"sort_key_val: keys dtype {kinds[0]} should be uint32, int32 or float32")
    if kinds[1].itemsize != 4:
        raise NotImplementedError(f"sort_key_val: values dtype {kinds[1]} should be 32 bits")
    if kinds[2:] not in ([], [np.bool_]):
        raise TypeError(f"sort_key_val: mask dtype {kinds[2]} is not boolean")
    shapes = [typeof(x).shape for x in (keys, values, *([] if mask is None else [mask]))]
    if len(set(shapes)) > 1:
        raise ValueError(f"sort_key_val: keys, values and mask must have one shape, got {shapes}")
    return tuple(masked_sort_p.bind(keys, values, *([] if mask is None else [mask]), descending=descending))


def scan_count(x: Any, mask: Any = None) -> tuple[Any, Any]:
    """Returns how often each element occurred up to there, and flags of the last occurrences.

    Args:
      x: vector of integers.
      mask: flags of the elements that are counted. By default, all.
    """
    aval = typeof(x)
    if aval.dtype.name not in _SUMMED:
        raise NotImplementedError(f"scan_count: x.dtype={aval.dtype} must be uint32, int32 or float32")
    mask = filled(aval.shape, np.bool_(True)) if mask is None else mask
    if (kind := typeof(mask)).dtype != np.bool_:
        raise TypeError(f"scan_count: mask.dtype={kind.dtype} is not a boolean dtype")
    if kind.shape != aval.shape:
        raise ValueError(f"scan_count: x.shape={aval.shape} != mask.shape={kind.shape}")
    return tuple(unique_p.bind(x, mask))


def pack(a: Any, b: Any, /, *, format: PackFormat, preferred_element_type: DTypeLike | None = None) -> Any:
    """Returns the elements of two vectors as an array of a narrower dtype.

    Args:
      a: vector.
      b: vector of the same shape and dtype.
      format: how they are packed.
      preferred_element_type: dtype of the result. By default, the one of half as many bits.

    Raises ValueError for vectors of different types, or a dtype without a narrower one.
    """
    one, other = typeof(a), typeof(b)
    if one.shape != other.shape:
        raise ValueError(f"pack: vectors must have one type, got {one.str_short()} and {other.str_short()}")
    if one.dtype != other.dtype:
        raise TypeError(f"Packed arrays must have the same dtype, got {one.dtype} and {other.dtype}")
    if not isinstance(format, PackFormat):
        raise TypeError(f"pack: Unexpected format: {format}")
    dtype = _packed_dtype("pack", one.dtype, preferred_element_type, _NARROWER)
    return pack_p.bind(a, b, format=format, preferred_element_type=dtype)


def unpack(ab: Any, /, *, format: PackFormat, preferred_element_type: DTypeLike | None = None) -> tuple[Any, Any]:
    """Returns two vectors of a wider dtype from one array.

    Args:
      ab: array that `plsc.pack` made.
      format: how they are packed.
      preferred_element_type: dtype of the results. By default, the one of twice as many bits.

    Raises ValueError for an array of another shape, or a dtype without a wider one.
    """
    aval = typeof(ab)
    if format is PackFormat.COMPRESSED and aval.shape[1:] != (2,):
        raise ValueError(f"Compressed unpack requires an array with shape (N, 2), got {aval.shape}")
    dtype = _packed_dtype("unpack", aval.dtype, preferred_element_type, _WIDER)
    return tuple(unpack_p.bind(ab, format=format, preferred_element_type=dtype))


def _packed_dtype(function: str, dtype: Any, preferred: Any, known: dict[str, np.dtype]) -> np.dtype | None:
    """The dtype that is asked for. Raises ValueError if it is needed."""
    if preferred is None and dtype.name not in known:
        raise ValueError(f"{function}: pass preferred_element_type for elements of {dtype}")
    return None if preferred is None else dtypes.canonicalize_dtype(preferred)
