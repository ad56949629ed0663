"""Operations that only TPUs have. They are lowered by the compiler for TPUs and cannot be interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.ir import effects
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray, typeof
from minijax.primitives.convert import convert
from minijax.primitives.moving import as_array_or_constant


class KernelEffect(effects.Effect):
    """Does something in a kernel that its results do not tell."""


KERNEL_EFFECT: frozenset = frozenset({KernelEffect()})
for _registry in (effects.lowerable_effects, effects.control_flow_allowed_effects, effects.remat_allowed_effects):
    _registry.add_type(KernelEffect)


class TpuOperation(Primitive):
    """An operation whose result types are a function of operand types and parameters."""

    def __init__(self, name: str, result_types: Any, has_effect: bool = False):
        self.name, self._result_types, self._has_effect = name, result_types, has_effect
        self.multiple_results = has_effect

    def infer(self, *avals, **params):
        return self._result_types(*avals, **params)

    def effects(self, *avals, **params):
        return KERNEL_EFFECT if self._has_effect else frozenset()


def _nothing(*avals: Any, **params: Any) -> list:
    return []


delay_p = TpuOperation("delay", _nothing, True)
prng_seed_p = TpuOperation("prng_seed", _nothing, True)
trace_value_p = TpuOperation("trace_value", _nothing, True)
touch_p = TpuOperation("add_dependency", _nothing, True)
matmul_push_rhs_p = TpuOperation("matmul_push_rhs", _nothing, True)
matmul_acc_lhs_p = TpuOperation("matmul_acc_lhs", _nothing, True)
debug_barrier_p = TpuOperation("debug_barrier_p", _nothing, True)


class _Effectful(TpuOperation):
    """An operation with an effect and one result."""

    def __init__(self, name: str, result_types: Any):
        super().__init__(name, result_types, True)
        self.multiple_results = False


prng_random_bits_p = _Effectful("prng_random_bits", lambda *, shape: [ShapedArray(shape, np.dtype(np.int32))])
matmul_pop_p = _Effectful("matmul_pop", lambda *, shape, dtype, **params: [ShapedArray(shape, dtype)])
stochastic_round_p = TpuOperation(
    "stochastic_round", lambda x, bits, *, target_dtype: [ShapedArray(x.shape, np.dtype(target_dtype))]
)


def _packed_types(*avals: Any, packed_dtype: Any) -> list:
    return [ShapedArray(avals[0].shape, np.dtype(np.uint32))]


pack_elementwise_p = TpuOperation("pack_elementwise", _packed_types)
unpack_elementwise_p = TpuOperation(
    "unpack_elementwise", lambda x, *, unpacked_dtype, **params: [ShapedArray(x.shape, np.dtype(unpacked_dtype))]
)


def _int32(x: Any) -> Any:
    return convert(as_array_or_constant(x), np.dtype(np.int32))


def delay(nanos: Any) -> None:
    """Waits for a number of nanoseconds, an integer.

    Example:
        >>> def kernel(x, o):
        ...     pl.delay(100)
        ...     o[...] = x[...]
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((1,), jnp.int32))
        >>> "delay" in str(jax.make_jaxpr(f)(jnp.array([1])))
        True
    """
    delay_p.bind(_int32(nanos))


def prng_seed(*seeds: Any) -> None:
    """Seeds the core's generator of random bits with integers.

    Example:
        >>> def kernel(o):
        ...     pltpu.prng_seed(0)
        ...     o[...] = pltpu.prng_random_bits(o.shape)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.int32), interpret=pltpu.InterpretParams())
        >>> f().shape
        (8, 128)
    """
    prng_seed_p.bind(*map(_int32, seeds))


def prng_random_bits(shape: Sequence[int]) -> Any:
    """Returns an int32 array of random bits by the core's generator, which `pltpu.prng_seed` seeds.

    Example:
        >>> def kernel(o):
        ...     pltpu.prng_seed(7)
        ...     o[...] = pltpu.prng_random_bits((8, 128))
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.int32), interpret=pltpu.InterpretParams())
        >>> f().shape
        (8, 128)
    """
    return prng_random_bits_p.bind(shape=tuple(shape))


def stochastic_round(x: Any, random_bits: Any, *, target_dtype: Any) -> Any:
    """Returns float32 numbers rounded to a neighbour of a narrower dtype, by chance.

    Args:
      x: float32 array.
      random_bits: uint32 array of the same shape.
      target_dtype: bfloat16, or a dtype of 8 bits.

    Example:
        >>> kernel = lambda x, bits, o: o.set(pltpu.stochastic_round(x[...], bits[...], target_dtype=jnp.bfloat16))
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.bfloat16))
        >>> "stochastic_round" in str(jax.make_jaxpr(f)(jnp.ones((8, 128)), jnp.zeros((8, 128), jnp.uint32)))
        True
    """
    return stochastic_round_p.bind(x, random_bits, target_dtype=target_dtype)


def pack_elementwise(xs: Sequence[Any], *, packed_dtype: Any) -> Any:
    """Returns a uint32 array whose elements hold an element of each array as `packed_dtype`.

    Raises ValueError for arrays of different types, or as many as do not fit 32 bits.

    Example:
        >>> kernel = lambda x, y, o: o.set(pltpu.pack_elementwise([x[...], y[...]], packed_dtype=jnp.bfloat16))
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.uint32))
        >>> "pack_elementwise" in str(jax.make_jaxpr(f)(jnp.ones((8, 128)), jnp.ones((8, 128))))
        True
    """
    count = 32 // dtypes.itemsize_bits(np.dtype(packed_dtype))
    avals = [typeof(x) for x in xs]
    if len({(a.shape, a.dtype) for a in avals}) > 1:
        raise ValueError(f"pack_elementwise: all arrays must have one type, got {', '.join(map(str, avals))}")
    if len(avals) != count:
        raise ValueError(f"The number of sources must match the packing factor ({count}), got {len(avals)}")
    return pack_elementwise_p.bind(*xs, packed_dtype=packed_dtype)


def unpack_elementwise(x: Any, *, index: int, packed_dtype: Any, unpacked_dtype: Any) -> Any:
    """Returns one of the arrays that `pltpu.pack_elementwise` packed.

    Args:
      x: uint32 array.
      index: number of the array.
      packed_dtype: dtype in which it was packed.
      unpacked_dtype: dtype of the result.

    Example:
        >>> def kernel(x, o):
        ...     packed = pltpu.pack_elementwise([x[...], 2 * x[...]], packed_dtype=jnp.bfloat16)
        ...     kinds = dict(packed_dtype=jnp.bfloat16, unpacked_dtype=jnp.float32)
        ...     o[...] = pltpu.unpack_elementwise(packed, index=1, **kinds)
        >>> out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> print(jax.eval_shape(pl.pallas_call(kernel, out), out))
        ShapeDtypeStruct(shape=(8, 128), dtype=float32)
    """
    return unpack_elementwise_p.bind(x, index=index, packed_dtype=packed_dtype, unpacked_dtype=unpacked_dtype)


def trace_value(label: str, value: Any) -> None:
    """Writes an int32 or float32 scalar to the profiler's trace, under a label.

    Example:
        >>> def kernel(x, o):
        ...     pltpu.trace_value("x", x[0])
        ...     o[...] = x[...]
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32))
        >>> "trace_value" in str(jax.make_jaxpr(f)(jnp.array([1, 2])))
        True
    """
    trace_value_p.bind(value, label=label)


def touch(ref: Any) -> None:
    """Keeps a reference alive up to here.

    Example:
        >>> def kernel(x, o):
        ...     o[...] = x[...]
        ...     pltpu.touch(x)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=pltpu.InterpretParams())
        >>> print(f(jnp.array([1, 2])))
        [1 2]
    """
    touch_p.bind(getattr(ref, "ref", ref))


def matmul_push_rhs(rhs: Any, staging_register: int, mxu_index: int, *, transpose: bool = False) -> None:
    """Loads the right side of a product into a register of a matrix unit.

    Example:
        >>> def kernel(x, y, o):
        ...     pltpu.matmul_push_rhs(y[...], 0, 0)
        ...     pltpu.matmul_acc_lhs(0, x[...], 0, load_staged_rhs=0)
        ...     o[...] = pltpu.matmul_pop(0, (8, 256), jnp.float32, 0)
        >>> x, y = jnp.ones((8, 256), jnp.bfloat16), jnp.ones((256, 256), jnp.bfloat16)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 256), jnp.float32))
        >>> 'matmul_push_rhs' in str(jax.make_jaxpr(f)(x, y))
        True
    """
    matmul_push_rhs_p.bind(rhs, staging_register=staging_register, mxu_index=mxu_index, transpose=transpose)


def matmul_acc_lhs(acc_addr: int, lhs: Any, mxu_index: int, load_staged_rhs: int | None = None) -> None:
    """Multiplies the left side with the right side that is loaded, and adds it to an accumulator.

    Example:
        >>> def kernel(x, y, o):
        ...     pltpu.matmul_push_rhs(y[...], 0, 0)
        ...     pltpu.matmul_acc_lhs(0, x[...], 0, load_staged_rhs=0)
        ...     o[...] = pltpu.matmul_pop(0, (8, 256), jnp.float32, 0)
        >>> x, y = jnp.ones((8, 256), jnp.bfloat16), jnp.ones((256, 256), jnp.bfloat16)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 256), jnp.float32))
        >>> 'matmul_acc_lhs' in str(jax.make_jaxpr(f)(x, y))
        True
    """
    matmul_acc_lhs_p.bind(lhs, acc_addr=acc_addr, mxu_index=mxu_index, load_staged_rhs=load_staged_rhs)


def matmul_pop(acc_addr: int, shape: tuple[int, int], dtype: Any, mxu_index: int) -> Any:
    """Returns the value of an accumulator of a matrix unit, which is emptied.

    Example:
        >>> def kernel(x, y, o):
        ...     pltpu.matmul_push_rhs(y[...], 0, 0)
        ...     pltpu.matmul_acc_lhs(0, x[...], 0, load_staged_rhs=0)
        ...     o[...] = pltpu.matmul_pop(0, (8, 256), jnp.float32, 0)
        >>> x, y = jnp.ones((8, 256), jnp.bfloat16), jnp.ones((256, 256), jnp.bfloat16)
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 256), jnp.float32))
        >>> 'matmul_pop' in str(jax.make_jaxpr(f)(x, y))
        True
    """
    return matmul_pop_p.bind(acc_addr=acc_addr, shape=tuple(shape), dtype=np.dtype(dtype), mxu_index=mxu_index)


def debug_barrier() -> None:
    """Waits for all threads of a GPU's block.

    Example:
        >>> kernel = lambda o: (o.set(jnp.ones(2)), pl.triton.debug_barrier())[0]
        >>> "debug_barrier" in str(jax.make_jaxpr(pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32)))())
        True
    """
    debug_barrier_p.bind()
