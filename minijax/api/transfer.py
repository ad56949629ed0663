"""Transfers and waiting for values, and scopes around operations."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, source, tree
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import UnexpectedTracerError
from minijax.ir import context, state
from minijax.ir.concrete import concrete_value
from minijax.ir.trace import CompileTimeTrace, Tracer
from minijax.ir.types import ShapedArray, is_value, typeof
from minijax.partition import meshes
from minijax.partition.layouts import Format, check_not_auto
from minijax.partition.memory import MemorySpace
from minijax.partition.meshes import PartitionSpec
from minijax.partition.shardings import NamedSharding, Sharding, SingleDeviceSharding, check_sharding_of_type
from minijax.primitives.device import ALWAYS_COPY, DONATE_INPUT, REUSE_INPUT, device_put as put_values
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl, DeviceLike, ExtendedArray, joined
from minijax.run.arrays.token import Token
from minijax.run.clients import client, guards


@source.boundary
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Transfers arrays to a device, or distributes them by a sharding.

    The call does not wait for the transfer. Arrays with a device or sharding given are committed to it: computations
    with them run there. Inside a traced function it is an operation of the program.

    Args:
        x: An array, a number, or a pytree of them.
        device: A `jax.Device`, a `Sharding`, a `Format`, a `jax.memory.Space`, a `PartitionSpec` on the context mesh,
            or a pytree prefix of these. None: arrays stay where they are, and other values go to the default device.
        src: The sharding or device of `x`, which JAX finds out by itself as a rule.
        donate: If true, the memory of `x` may be used for the result, and `x` is deleted.
        may_alias: If false, the result has memory of its own. By default it may share that of `x`.

    Returns:
        `x`, with each leaf as a `jax.Array` at its place.

    Raises:
        TypeError: If a leaf is not a valid JAX value.
        ValueError: If the shape cannot be sharded this way, or if both `donate` and `may_alias` are true.

    See also: `jax.device_get`, `jax.make_array_from_callback`, `jax.lax.with_sharding_constraint`.

    Example:
        >>> x = jax.device_put(np.arange(3), jax.devices()[0])
        >>> x.committed
        True
        >>> mesh = jax.make_mesh((1,), ("x",))
        >>> jax.device_put(x, jax.NamedSharding(mesh, jax.P("x"))).sharding.spec
        P('x',)
    """
    leaves, treedef = tree.flatten(x)
    for leaf in leaves:
        if not is_value(leaf) and not hasattr(leaf, "__array__"):
            raise TypeError(
                f"Argument {leaf!r} of type {type(leaf)} is not a valid JAX type. Pass arrays, numbers or pytrees of "
                "them."
            )
    of_leaves = lambda name, prefix: tree.flatten_axes(f"device_put {name}", treedef, prefix)  # noqa: E731
    targets = list(map(_target, leaves, of_leaves("device", device)))
    sources = list(map(_source, leaves, of_leaves("src", src)))
    copies = list(map(_copy_semantics, of_leaves("donate", donate), of_leaves("may_alias", may_alias)))
    return treedef.unflatten(put_values(leaves, targets, sources, copies))


def _target(x: Any, device: Any) -> Any:
    """Returns the device or sharding to transfer `x` to; a spec is resolved with the context mesh."""
    if isinstance(device, PartitionSpec):
        device = on_context_mesh(device)
    if not isinstance(device, Sharding | Format | client.Device | MemorySpace | None):
        raise ValueError(
            "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, "
            f"`jax.memory.Space` or a pytree of these values. Received invalid value: {device}. "
            "`jax.devices()` gives the devices."
        )
    if isinstance(device, Sharding) and is_value(x) and type(x) is not Token:
        check_sharding_of_type(device, typeof(x), "device_put args")
    return device


def _source(x: Any, src: Any) -> Any:
    """Returns `src`, by default the sharding of `x` if it is an array whose value is known."""
    if src is not None:
        return src
    known = concrete_value(x)
    return known.sharding if isinstance(known, ArrayImpl) else None


def _copy_semantics(donate: Any, may_alias: Any) -> Any:
    if donate and may_alias:
        raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    return DONATE_INPUT if donate else ALWAYS_COPY if may_alias is False else REUSE_INPUT


def on_context_mesh(spec: PartitionSpec) -> NamedSharding:
    """Returns the sharding with this spec on the context mesh. Raises ValueError if no mesh is set."""
    mesh = meshes.context_mesh()
    if mesh is None:
        raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put")
    return NamedSharding(mesh, spec)


def from_dlpack(external_array: Any, device: DeviceLike | None = None, copy: bool | None = None) -> Any:
    """Imports an array of another library that supports DLPack, without a copy where that is possible.

    Args:
        external_array: An object with the methods `__dlpack__` and `__dlpack_device__`.
        device: The device of the result. By default, that of the array.
        copy: Whether the memory is copied. None: only where it must be, for example if it is not aligned.

    Raises:
        TypeError: If the object does not support DLPack.
        ValueError: If a copy is needed and `copy` is false.

    Example:
        >>> jax.dlpack.from_dlpack(np.arange(3, dtype=np.float32))
        Array([0., 1., 2.], dtype=float32)
    """
    return transfer.from_dlpack(external_array, device, copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Returns whether arrays of this dtype can be exchanged by dlpack.

    Example:
        >>> jax.dlpack.is_supported_dtype(jnp.float32), jax.dlpack.is_supported_dtype(jnp.float8_e4m3fn)
        (True, False)
    """
    if dtype is None:
        raise TypeError("Expected a string or dtype-like object; got dtype=None")
    return np.dtype(dtype) in _EXCHANGED


_EXCHANGED = frozenset(
    dtypes.BY_NAME[name]
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex64 complex128".split()
)


def device_get(x: Any) -> Any:
    """Copies arrays to the host, as NumPy arrays.

    All copies are started before the first one is waited for, which is faster than `np.asarray` for one array after
    the other.

    Args:
        x: An array, or a pytree of arrays and other values.

    Returns:
        `x` with each `jax.Array` replaced by a `np.ndarray`. Numbers and other leaves remain as they are.

    Raises:
        ValueError: If an array has shards on devices of other processes; see
            `jax.experimental.multihost_utils.process_allgather`.

    See also: `jax.device_put`, `jax.copy_to_host_async`.

    Example:
        >>> jax.device_get({"a": jnp.arange(3), "b": 1.0})
        {'a': array([0, 1, 2], dtype=int32), 'b': 1.0}
    """
    is_array = lambda leaf: hasattr(leaf, "__array__") and not isinstance(leaf, Tracer | ExtendedArray)  # noqa: E731
    with guards.explicit_transfers():
        return tree.tree_map(lambda leaf: np.asarray(leaf) if is_array(leaf) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Waits until all arrays in a tree have been computed, and returns the tree.

    Functions return before their computations end. Call this before stopping a clock, to measure the computation and
    not its start. Errors of computations are raised here. Leaves that are not arrays are ignored.

    Args:
        x: A pytree of arrays and other values.

    Returns:
        `x` itself.

    Example:
        >>> import time
        >>> start = time.perf_counter()
        >>> y = jax.block_until_ready(jnp.ones((100, 100)) @ jnp.ones((100, 100)))
        >>> time.perf_counter() > start
        True
    """
    return _call_on_leaves(x, "block_until_ready")


def copy_to_host_async(x: Any) -> Any:
    """Starts to copy the arrays of a tree to the host, and returns the tree without waiting.

    A later `np.asarray` or `jax.device_get` then has less to wait for.

    Example:
        >>> x = jax.copy_to_host_async(jnp.array([1, 2]))
        >>> np.asarray(x)
        array([1, 2], dtype=int32)
    """
    return _call_on_leaves(x, "copy_to_host_async")


def _call_on_leaves(x: Any, method: str) -> Any:
    """Calls a method on all leaves that have it, and returns the tree."""
    for leaf in tree.tree_leaves(x):
        getattr(leaf, method, lambda: None)()
    return x


class ensure_compile_time_eval(contextlib.ContextDecorator, state.set_current_trace):
    """Evaluates operations on known values eagerly in a `with` statement, also while a function is traced.

    Use it to compute sizes or tables with `jax.numpy`. Operations on tracers are still traced.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     with jax.ensure_compile_time_eval():
        ...         n = int(jnp.sum(jnp.array([1, 2])))
        ...     return jnp.broadcast_to(x, (n,))
        >>> f(7)
        Array([7, 7, 7], dtype=int32, weak_type=True)
    """

    def __init__(self):
        super().__init__(None)

    def __enter__(self) -> None:
        outer = state.thread.trace
        self._trace = outer and CompileTimeTrace(outer)
        super().__enter__()

    def _recreate_cm(self):
        return type(self)()


class named_scope(contextlib.ContextDecorator, context.entered):
    """Adds a name to the name stack of the operations in a `with` statement, which profiles and dumps of XLA show.

    It is a decorator, too. Raises TypeError if the name is not a text.

    Example:
        >>> def f(x):
        ...     with jax.named_scope("layer"):
        ...         return jnp.sin(x)
        >>> jax.make_jaxpr(f)(1.0).eqns[0].source_info.name_stack
        NameStack(stack=('layer',))
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string, got {name!r}")
        self._name = name

    def __enter__(self) -> context.NameStack:
        self._context = context.extended_name_stack(self._name)._context
        super().__enter__()
        return context.NameStack(context.current_context().name_stack)

    def _recreate_cm(self):
        return type(self)(self._name)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """Returns `fun` with its operations in a `named_scope`, by default of its own name.

    Example:
        >>> double = jax.named_call(lambda x: 2 * x, name="double")
        >>> jax.make_jaxpr(double)(1).eqns[0].source_info.name_stack
        NameStack(stack=('double',))
    """
    scope = name or getattr(fun, "__name__", "fun")
    return functools.wraps(fun)(named_scope(scope)(fun))


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: DTypeLike | None = None
) -> ArrayImpl:
    """Returns the global array whose addressable shards are `arrays`, one on each device; it shares their memory.

    Raises TypeError or ValueError if they are not the shards of an array with this shape and sharding.

    Example:
        >>> rows = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
        >>> jax.make_array_from_single_device_arrays((2,), rows, [jnp.array([1, 2])])
        Array([1, 2], dtype=int32)
    """
    name = "jax.make_array_from_single_device_arrays"
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got {type(arrays)}.")
    if any(isinstance(x, Tracer) for x in arrays):
        kinds = {type(x) for x in arrays}
        raise ValueError(f"{name} requires a list of concrete arrays as input, but got types {kinds}")
    for x in arrays:
        if not isinstance(x, ArrayImpl):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(x)}")
        x._check_alive()
        if x._sig.device is None:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one shard each. "
                f"An argument array had {x.sharding.num_devices} shard(s)."
            )
    if not arrays and dtype is None:
        raise ValueError(
            f"If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to `{name}`."
        )
    kinds = {x.dtype for x in arrays} or {dtypes.canonicalize_dtype(np.dtype(dtype))}
    if dtype is not None and np.dtype(dtype) not in kinds:
        raise ValueError(
            f"If `dtype` is provided to `{name}`, it must match the dtype of the addressable shards. Got "
            f"dtype={np.dtype(dtype)} and shard dtypes {sorted(map(str, kinds))}."
        )
    aval = ShapedArray(tuple(shape), arrays[0].dtype if arrays else kinds.pop())
    return joined(aval, sharding, list(arrays), True)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding | Format,
    data_callback: Callable[[Any], Any],
    dtype: DTypeLike | None = None,
) -> ArrayImpl:
    """Returns the array whose shard at an index, a tuple of slices, is `data_callback(index)`.

    Raises ValueError if a shard has the wrong shape, or another dtype than the one given.

    Example:
        >>> x, rows = np.arange(4.0), jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
        >>> jax.make_array_from_callback(x.shape, rows, lambda index: x[index])
        Array([0., 1., 2., 3.], dtype=float32)
    """
    if not state.is_eager():
        raise UnexpectedTracerError(
            "jax.make_array_from_callback cannot be called within a traced context: its parts are values on devices"
        )
    target = sharding
    check_not_auto(target, "`jax.make_array_from_callback`")
    sharding = target.sharding if isinstance(target, Format) else target
    if not isinstance(sharding, Sharding):
        raise TypeError(f"sharding should be an instance of `jax.sharding`. Got {sharding} of type {type(sharding)}")
    places = sharding.addressable_devices_indices_map(tuple(shape))
    if not places:
        if dtype is None:
            raise ValueError(
                "If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
                "`jax.make_array_from_callback`."
            )
        return joined(ShapedArray(tuple(shape), dtypes.canonicalize_dtype(np.dtype(dtype))), sharding, [], True)
    once = data_callback(next(iter(places.values()))) if sharding.is_fully_replicated else None
    values = [data_callback(index) if once is None else once for index in places.values()]
    parts = [
        transfer.to_device(v if isinstance(v, ArrayImpl) else np.asarray(v), d)
        for v, d in zip(values, places, strict=True)
    ]
    if dtype is not None and any(x.dtype != np.dtype(dtype) for x in parts):
        raise ValueError(
            "If `dtype` is provided to `jax.make_array_from_callback`, it must match the dtype of the "
            f"addressable shards. Got dtype={np.dtype(dtype)} and shard dtype={parts[0].dtype}`."
        )
    array = joined(ShapedArray(tuple(shape), parts[0].dtype), sharding, parts, True)
    return transfer.to_device(array, target) if isinstance(target, Format) else array


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """Returns global arrays of these shardings, assembled from the leaves of `local_data` of each process.

    Each dimension of `global_shape` is that of the local data, if every process has all of it, or the sum over
    processes; None infers it. Raises ValueError for a shape that is neither.

    Example:
        >>> rows = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
        >>> jax.make_array_from_process_local_data(rows, np.arange(4.0))
        Array([0., 1., 2., 3.], dtype=float32)
    """
    leaves, treedef = tree.flatten(local_data)
    shardings = tree.flatten_axes("make_array_from_process_local_data sharding", treedef, sharding)
    shardings = [on_context_mesh(s) if isinstance(s, PartitionSpec) else s for s in shardings]
    shardings = [s if isinstance(s, Sharding) else SingleDeviceSharding(s) for s in shardings]
    is_shape = isinstance(global_shape, tuple) and all(isinstance(n, int | None) for n in global_shape)
    shapes = [global_shape] * len(leaves) if global_shape is None or is_shape else treedef.flatten_up_to(global_shape)
    rows = zip(leaves, shardings, shapes, strict=True)
    return treedef.unflatten([_from_local_data(x, s, shape) for x, s, shape in rows])


def _from_local_data(x: Any, sharding: Sharding, shape: Any) -> ArrayImpl:
    local = np.shape(x)
    if shape is not None and None in shape:
        raise ValueError(f"make_array_from_process_local_data: global_shape={shape} has Nones. This is not supported.")
    if not sharding.is_fully_addressable:
        return _from_local_shards(np.asarray(x), sharding, shape)
    if shape is not None and tuple(shape) != local:
        raise ValueError(
            "When calling `make_array_from_process_local_data` on a single process, global_shape should be None "
            f"or equal to local_data.shape. Got global_shape={shape} and local_data.shape={local}."
        )
    sharding.check_compatible_aval(local)
    sharding.shard_shape(local)
    return device_put(x, sharding)


def _from_local_shards(value: np.ndarray, sharding: Sharding, shape: Sequence[int] | None) -> ArrayImpl:
    if shape is not None and len(shape) != value.ndim:
        raise ValueError(
            f"make_array_from_process_local_data: global_shape={shape} and the data, {value.shape}, differ in rank"
        )
    local_tiles = _local_tiles(sharding, value.ndim)
    if shape is None:
        shape = [
            _global_size(axis, *rest)
            for axis, rest in enumerate(zip(value.shape, sharding.tiling(value.ndim), local_tiles, strict=True))
        ]
    sizes = tuple(shape)
    sharding.check_compatible_aval(sizes)
    part = sharding.shard_shape(sizes)
    for axis, (size, total, n, tiles) in enumerate(zip(value.shape, sizes, part, local_tiles, strict=True)):
        if size != total and (tiles is None or size != n * len(tiles)):
            raise ValueError(
                "make_array_from_process_local_data: each dimension should match either global or process shape. "
                f"In dimension {axis}, the process data has {size} elements, for {tiles and n * len(tiles)} of this "
                f"process and global_shape={sizes}."
            )

    def data(index):
        rows = []
        for size, total, n, tiles, wanted in zip(value.shape, sizes, part, local_tiles, index, strict=True):
            tile = (wanted.start or 0) // n if n else 0
            start = n * (tile if size == total else tiles.index(tile))
            rows.append(slice(start, start + n))
        return value[tuple(rows)]

    return make_array_from_callback(sizes, sharding, data)


def _global_size(axis: int, size: int, count: int, tiles: list[int] | None) -> int:
    if tiles is None:
        raise ValueError(
            f"make_array_from_process_local_data: the shards of processes along axis {axis} overlap without "
            "being equal: global_shape must be given"
        )
    return size * count // len(tiles)


def _local_tiles(sharding: Sharding, ndim: int) -> list[list[int] | None]:
    """Returns the tiles that this process has along each axis; None if processes share some of them, but not all."""
    of_process: dict[bool | int, list[set]] = {}
    local_devices = sharding.addressable_devices
    for device, position in sharding._positions(ndim):
        process = True if device in local_devices else -device.process_index
        tiles = of_process.setdefault(process, [set() for _ in range(ndim)])
        for seen, (tile, _) in zip(tiles, position, strict=True):
            seen.add(tile)
    own: list[list[int] | None] = []
    for axis in range(ndim):
        sets = {frozenset(tiles[axis]) for tiles in of_process.values()}
        is_uniform = sum(map(len, sets)) == len(frozenset().union(*sets)) and len({*map(len, sets)}) == 1
        own.append(sorted(of_process[True][axis]) if is_uniform else None)
    return own
