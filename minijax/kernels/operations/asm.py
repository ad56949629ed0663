"""Operations that only GPUs have: instructions written as text, and products of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.api.shapes import ShapeDtypeStruct
from minijax.base import dtypes
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray, typeof
from minijax.primitives.dot import Precision, dot_general
from minijax.primitives.moving import as_array_or_constant


class InlineAsm(Primitive):
    """Applies an instruction to elements; `pack` elements are packed into a register."""

    name = "elementwise_inline_asm_p"
    multiple_results = True

    def infer(self, *avals, result_shape_dtypes, **params):
        return [ShapedArray(tuple(s.shape), np.dtype(s.dtype)) for s in result_shape_dtypes]


elementwise_inline_asm_p = InlineAsm()


def elementwise_inline_asm(
    asm: str, *, args: Sequence[Any], constraints: str, pack: int, result_shape_dtypes: Sequence[Any]
) -> Sequence[Any]:
    """Applies instructions of a GPU to the elements of arrays.

    Args:
      asm: text of the instructions, with `$0` for the result and `$1`, ... for the operands.
      args: arrays.
      constraints: kinds of the registers, as in LLVM.
      pack: number of elements in a register.
      result_shape_dtypes: shapes and dtypes of the results.

    Returns:
      A list of arrays.

    Example:
        >>> def kernel(x, o):
        ...     (y,) = pl.triton.elementwise_inline_asm(
        ...         "ex2.approx.f32 $0, $1;", args=[x[...]], constraints="=r,r", pack=1,
        ...         result_shape_dtypes=[jax.ShapeDtypeStruct((2,), jnp.float32)])
        ...     o[...] = y
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32))
        >>> "ex2.approx.f32" in str(jax.make_jaxpr(f)(jnp.ones(2)))
        True
    """
    return elementwise_inline_asm_p.bind(
        *args, asm=asm, constraints=constraints, pack=pack, result_shape_dtypes=tuple(result_shape_dtypes)
    )


def approx_tanh(x: Any) -> Any:
    """Returns an approximation of tanh, by the instruction that GPUs have for it.

    Args:
      x: array of float16, bfloat16 or float32.

    Raises TypeError for another dtype.

    Example:
        >>> kernel = lambda x, o: o.set(pl.triton.approx_tanh(x[...]))
        >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32))
        >>> "tanh.approx.f32" in str(jax.make_jaxpr(f)(jnp.ones(2)))
        True
    """
    x = as_array_or_constant(x)
    dtype = typeof(x).dtype
    kinds = {
        np.dtype(np.float16): ("f16", "h", 1),
        dtypes.bfloat16: ("bf16", "h", 1),
        np.dtype(np.float32): ("f32", "f", 1),
    }
    if dtype not in kinds:
        raise TypeError(f"approx_tanh does not accept {dtype} arrays")
    name, register, pack = kinds[dtype]
    (result,) = elementwise_inline_asm(
        f"tanh.approx.{name} $0, $1;",
        args=[x],
        constraints=f"={register},{register}",
        pack=pack,
        result_shape_dtypes=[ShapeDtypeStruct(typeof(x).shape, dtype)],
    )
    return result


def dot(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None, precision: Any = None
) -> Any:
    """Returns the product of two matrices, accumulated in float32, or int32 for integers.

    Args:
      a, b: matrices.
      trans_a, trans_b: whether they are transposed.
      allow_tf32: whether float32 may be multiplied with 10 bits of the mantissa.
      precision: as in `jax.lax.dot_general`.

    Raises ValueError for arrays of another rank, or if both `allow_tf32` and `precision` are given.

    Example:
        >>> kernel = lambda x, o: o.set(pl.triton.dot(x[...], x[...], trans_b=True))
        >>> x, out = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jax.ShapeDtypeStruct((2, 2), jnp.float32)
        >>> pl.pallas_call(kernel, out, interpret=True)(x)
        Array([[ 5., 11.],
               [11., 25.]], dtype=float32)
    """
    if len(typeof(a).shape) != 2 or len(typeof(b).shape) != 2:
        raise ValueError("`a` and `b` must be 2D arrays.")
    if allow_tf32 is not None:
        if precision is not None:
            raise ValueError("Only one of allow_tf32 and precision can be specified")
        precision = Precision.HIGH if allow_tf32 else Precision.HIGHEST
    is_int = np.issubdtype(typeof(a).dtype, np.integer)
    return dot_general(
        a,
        b,
        (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())),
        precision=precision,
        preferred_element_type=np.int32 if is_int else np.float32,
    )
