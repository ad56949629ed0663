"""Products of arrays: dot_general, its precisions and algorithms, and simpler products on top of it."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from minijax.base import cache, config, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import ShardingTypeError
from minijax.base.naming import known_as
from minijax.ir.primitive import FirstOrder, Folding, fold_as, linear_operand
from minijax.ir.refs import Ref, passed_ref
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import entries_of, typed_sharding
from minijax.partition.meshes import P, axes_of
from minijax.partition.shardings import NamedSharding
from minijax.primitives import moving
from minijax.primitives.convert import cast, convert_element_type_p
from minijax.primitives.families import ANY, check_kinds
from minijax.primitives.moving import axes_after_insertion, other_axes
from minijax.primitives.sharding import requested_sharding, with_batch_dim
from minijax.primitives.zeros import add_tangents
from minijax.run.arrays.array import Array, ArrayLike

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]

_PRECISIONS = {"highest": 2, "float32": 2, "high": 1, "bfloat16_3x": 1, "tensorfloat32": 1}
_PRECISIONS |= {"default": 0, "bfloat16": 0, "fastest": 0, None: 0}


class _Named(enum.Enum):
    """An enumeration whose members are printed by name."""

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"

    def __str__(self):
        return self.name


@known_as("jax._src.lax.lax.Precision")
class Precision(_Named):
    """Says how precisely XLA computes products; a higher precision is slower on accelerators, and CPUs ignore it.

    Functions such as `jax.lax.dot_general` and `jax.numpy.matmul` take it as `precision`: a member, its name as text,
    or a pair of these for the two operands. None means the option `jax_default_matmul_precision`.

    `DEFAULT`: fastest; on TPUs, products of float32 are computed in bfloat16, on recent GPUs possibly in TF32. `HIGH`:
    between the two; three bfloat16 products on TPUs. `HIGHEST`: float32 throughout.

    See also: `jax.default_matmul_precision`, `jax.lax.DotAlgorithmPreset`.

    Example:
        >>> jax.lax.dot(jnp.ones(3), jnp.ones(3), precision=jax.lax.Precision.HIGHEST)
        Array(3., dtype=float32)
        >>> with jax.default_matmul_precision("highest"):
        ...     y = jnp.ones((2, 2)) @ jnp.ones((2, 2))
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: Any):
        return cls(_PRECISIONS[value]) if value in _PRECISIONS else None


@known_as("jax._src.lax.lax.DotAlgorithm")
class DotAlgorithm(NamedTuple):
    """Describes the algorithm of a product by the types in which it multiplies and accumulates.

    Pass it as `precision` to `jax.lax.dot_general`; the platform must support it.

    Example:
        >>> algorithm = jax.lax.DotAlgorithm(jnp.bfloat16, jnp.bfloat16, jnp.float32)
        >>> product = jax.jit(lambda x: jax.lax.dot(x, x, precision=algorithm)).trace(jnp.ones((2, 2)))
        >>> "lhs_precision_type = bf16" in product.lower(lowering_platforms=("tpu",)).as_text()
        True
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


_F8 = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e4m3b11fnuz,
)
_TYPES = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32, "F64": np.float64}
_ON_CPU = {"DEFAULT", "F16_F16_F16", "F32_F32_F32", "F64_F64_F64"}
_ON_CPU |= {"BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6"}


@known_as("jax._src.lax.lax.DotAlgorithmPreset")
class DotAlgorithmPreset(_Named):
    """Names algorithms of products: the types of the operands and of the accumulator, and the number of products.

    Pass it as `precision` to `jax.lax.dot_general`; the platform must support it.

    Example:
        >>> float(jax.lax.dot(jnp.ones(3), jnp.ones(3), precision=jax.lax.DotAlgorithmPreset.F32_F32_F32))
        3.0
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    @property
    def _is_f8(self) -> bool:
        return self.name.startswith("ANY_F8")

    @property
    def _times(self) -> int:
        return int(self.name[-1]) if "_X" in self.name else 1

    @property
    def supported_lhs_types(self) -> tuple | None:
        """The dtypes that the left operand may have without conversion; None: any."""
        if self is DotAlgorithmPreset.DEFAULT or self._is_f8:
            return None
        name = self.name.split("_")[0]
        if name == "TF32" or self._times > 1:
            return (np.float32,)
        return (_TYPES["BF16"], np.float32) if name == "BF16" else (_TYPES[name],)

    @property
    def supported_rhs_types(self) -> tuple | None:
        """The dtypes that the right operand may have without conversion; None: any."""
        return self.supported_lhs_types

    @property
    def accumulation_type(self) -> Any:
        """The dtype in which products are accumulated; None: the backend chooses."""
        parts = self.name.split("_")
        place = 4 if self._is_f8 else 2
        return _TYPES.get(parts[place]) if len(parts) > 2 else None

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple | None:
        """The dtypes that the result may have without conversion; None: any."""
        sums = self.accumulation_type
        if sums is None:
            return None
        if self._is_f8:
            return (np.float32, np.float16, ml_dtypes.bfloat16, *_F8)
        narrow = _TYPES[self.name.split("_")[0]] if self.name in ("F16_F16_F32", "BF16_BF16_F32") else sums
        same = np.dtype(lhs_dtype) == np.dtype(rhs_dtype) == np.dtype(narrow)
        return (sums, narrow) if narrow is not sums and same else (sums,)

    def _algorithm(self, lhs: Any, rhs: Any, out: Any) -> tuple | None:
        """The fields of StableHLO's algorithm attribute for operands and result of these dtypes."""
        if self is DotAlgorithmPreset.DEFAULT:
            return None
        if self._is_f8:
            if np.dtype(lhs) not in _F8 or np.dtype(rhs) not in _F8:
                names = f"{np.dtype(lhs)} and {np.dtype(rhs)}"
                raise ValueError(f"dot_general: algorithm '{self}' multiplies float8 numbers, got {names}.")
            sums = self.accumulation_type or out
            return lhs, rhs, sums, 1, 1, 1, self.name.endswith("FAST_ACCUM")
        name = self.name.split("_")[0]
        kind = "tf32" if name == "TF32" else _TYPES[name]
        return kind, kind, self.accumulation_type, 1, 1, self._times, False


PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
)


def canonical_precision(precision: PrecisionLike) -> tuple[Precision, Precision] | DotAlgorithm | Any:
    """Converts a precision argument to a pair, an algorithm or a preset; None if no default is configured."""
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    known = all(isinstance(p, Precision) for p in pair) or all(isinstance(p, str) and p in _PRECISIONS for p in pair)
    if len(pair) != 2 or not known:
        raise ValueError(
            f"precision must be None, one of {[p for p in _PRECISIONS if p]}, a lax.Precision, a pair of "
            f"these, or a lax.DotAlgorithm, lax.DotAlgorithmPreset or name of one; got {precision!r}."
        )
    left, right = (Precision(p) for p in pair)
    return left, right


def precision_pair(precision: Any) -> tuple[str, str]:
    """The names of a pair of precisions; those of the default precision for anything else."""
    is_pair = isinstance(precision, tuple) and isinstance(precision[0], Precision)
    return tuple(p.name for p in precision) if is_pair else ("DEFAULT", "DEFAULT")


class Product(FirstOrder):
    """An operation that is linear in each of its two operands."""

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind_all(primals, params)
        (x, y), (tx, ty) = primals, tangents
        terms = [
            self.bind(l, r, **params)
            for l, r in ((tx, y), (x, ty))  # noqa: E741
            if type(l) is not Zero and type(r) is not Zero
        ]
        return [out], [add_tangents(terms, out)]

    def transpose(self, cts, lhs, rhs, **params):
        (ct,), side = cts, linear_operand(self.name, (lhs, rhs))
        operand, other = ((lhs, rhs), (rhs, lhs))[side]
        grad = Zero(operand.aval) if type(ct) is Zero else self.transposed(ct, operand.aval, other, side, **params)
        return [None, grad] if side else [grad, None]

    def transposed(self, ct: Any, aval: ShapedArray, other: Any, side: int, **params: Any) -> Any:
        """The cotangent of operand `side`, which has type `aval`; `other` is the other operand, which is known."""
        raise NotImplementedError


@cache.cache
def _transposed_numbers(dimension_numbers: tuple, side: int, ndim: int, other_ndim: int) -> tuple[tuple, tuple]:
    """The dimension numbers of the cotangent's product with the other operand, and the operand's order of its axes."""
    (contract, other_contract), (batch, other_batch) = ((pair[side], pair[1 - side]) for pair in dimension_numbers)
    free = other_axes(ndim, contract, batch)
    other_free = other_axes(other_ndim, other_contract, other_batch)
    start = len(batch) if side else len(batch) + len(free)
    ct_contract = tuple(range(start, start + len(other_free)))
    # [batch, free, contracted in the other's order] -> the order of the operand
    order = sorted(range(len(contract)), key=lambda i: other_contract[i])
    numbers = ((ct_contract, other_free), (tuple(range(len(batch))), other_batch))
    return numbers, (*batch, *free, *(contract[i] for i in order))


class DotGeneral(Product):
    """Contracts axes of `lhs` with axes of `rhs`; the result's axes: batch, free of lhs, free of rhs."""

    name = "dot_general"
    sharding_param = "out_sharding"

    def infer(self, lhs, rhs, *, dimension_numbers, precision, preferred_element_type, out_sharding):
        check_kinds(self.name, ANY, lhs, rhs)
        _check_dims(lhs, rhs, dimension_numbers)
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        left = (*lhs_batch, *other_axes(lhs.ndim, lhs_contract, lhs_batch))
        right = other_axes(rhs.ndim, rhs_contract, rhs_batch)
        shape = (*(lhs.shape[i] for i in left), *(rhs.shape[i] for i in right))
        has_algorithm = isinstance(precision, (DotAlgorithm, DotAlgorithmPreset))
        dtype = _result_dtype(lhs.dtype, rhs.dtype, preferred_element_type, may_narrow=has_algorithm)
        return [ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)]

    def sharding_rule(self, mesh, avals, outs, *, dimension_numbers, out_sharding, **params):
        contract, batch = dimension_numbers
        sides = [
            [entries_of(a.entries, axes) for a, axes in zip(avals, pair, strict=True)] for pair in (contract, batch)
        ]
        (lhs, rhs), (lhs_batch, rhs_batch) = sides
        if any(a != b and None not in (a, b) for a, b in zip(lhs_batch, rhs_batch, strict=True)):
            raise ShardingTypeError(
                "dot_general requires lhs batch dimensions and rhs batch dimensions to have the consistent sharding: "
                f"the one has {lhs_batch}, the other {rhs_batch}"
            )
        self._check_unreduced(avals)
        both = [(a, b) for a, b in zip(lhs, rhs, strict=True) if a is not None and b is not None]
        if any(a != b for a, b in both):
            raise ShardingTypeError(
                "dot_general requires contracting dimensions to have consistent sharding: those of lhs have "
                f"{lhs}, those of rhs {rhs}"
            )
        if both:
            raise ShardingTypeError(
                "dot_general: Contracting dimensions are sharded and it is ambiguous where their partial sums are "
                f"added up, which `out_sharding` may specify. The dimensions have {lhs} and {rhs}"
            )
        free = [entries_of(a.entries, other_axes(a.ndim, c, b)) for a, c, b in zip(avals, contract, batch, strict=True)]
        return [(*lhs_batch, *free[0], *free[1])]

    def reduction_state(self, avals, params):
        self._check_unreduced(avals)
        return frozenset(), frozenset()

    def _check_unreduced(self, avals):
        if any(a.reduction_state[0] for a in avals):
            raise ShardingTypeError(f"lhs or rhs passed to dot_general cannot be unreduced: {avals[0]} and {avals[1]}")

    def check_out_sharding(self, avals, requested, params):
        self._check_unreduced(avals)
        unreduced = requested.spec.unreduced
        if not unreduced:
            return
        contract, _ = params["dimension_numbers"]
        lhs, rhs = (entries_of(a.entries, axes) for a, axes in zip(avals, contract, strict=True))
        if unreduced != {axis for e in lhs for axis in axes_of(e)}:
            raise ShardingTypeError(
                "dot_general: out_sharding's unreduced axes should be equal to the contracting specs: they are "
                f"{set(unreduced)} and {lhs}"
            )
        if lhs != rhs:
            raise ShardingTypeError(
                f"dot_general: lhs and rhs contracting dims should be sharded identically where out_sharding is "
                f"unreduced, not as {lhs} and {rhs}"
            )

    def lower(self, e, ins, outs, lhs, rhs, *, dimension_numbers, precision, preferred_element_type, out_sharding):
        contract, batch = dimension_numbers
        (a, b), names, out = ins, [lhs, rhs], outs[0]
        avals = [a, b]
        algorithm, stored = None, out.dtype
        if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
            kinds, stored, algorithm = _plan(e.platform, precision, a, b, out)
        else:
            kinds = _common_dtypes(e.platform, a, b, out)
        for i, kind in enumerate(kinds):
            if kind is not None:
                names[i], avals[i] = _converted(e, names[i], avals[i], kind)
        result = ShapedArray(out.shape, stored)
        product = e.dot_general(*names, *avals, result, contract, batch, precision_pair(precision), algorithm)
        return [product if stored == out.dtype else e.convert(product, result, out)]

    def transposed(self, ct, aval, other, side, *, dimension_numbers, out_sharding, **params):
        numbers, back = _transposed_numbers(dimension_numbers, side, aval.ndim, typeof(other).ndim)
        requested, sharding = None, aval.own_sharding or typeof(ct).own_sharding or typeof(other).own_sharding
        if sharding is not None:
            unreduced, reduced = aval.reduction_state
            requested = typed_sharding(sharding.mesh, entries_of(aval.entries, back), unreduced, reduced)
            requested = requested or NamedSharding(sharding.mesh, P(*[None] * aval.ndim))
        grad = self.bind(ct, other, dimension_numbers=numbers, out_sharding=requested, **params)
        grad = permute_axes(grad, moving.inverse(back))
        return cast(grad, aval.dtype) if typeof(grad).dtype != aval.dtype else grad

    def batch(self, axis, operands, dims, *, dimension_numbers, out_sharding, **params):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        (dl, dr), (lhs, rhs) = dims, operands
        if dl is not None:
            lhs_contract, lhs_batch = axes_after_insertion(lhs_contract, dl), axes_after_insertion(lhs_batch, dl)
        if dr is not None:
            rhs_contract, rhs_batch = axes_after_insertion(rhs_contract, dr), axes_after_insertion(rhs_batch, dr)
        lhs_free = other_axes(typeof(lhs).ndim, lhs_contract, lhs_batch)
        if dl is not None and dr is not None:
            lhs_batch, rhs_batch, where = (dl, *lhs_batch), (dr, *rhs_batch), 0
        elif dl is not None:
            where = len(lhs_batch) + lhs_free.index(dl)
        else:
            rhs_free = other_axes(typeof(rhs).ndim, rhs_contract, rhs_batch)
            where = len(lhs_batch) + len(lhs_free) + rhs_free.index(dr)
        numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
        if out_sharding is not None:
            out_sharding = with_batch_dim(out_sharding, where, axes_of(axis.entry), None)
        return [self.bind(lhs, rhs, dimension_numbers=numbers, out_sharding=out_sharding, **params)], [where]

    def show_params(self, eqn):
        p = eqn.params
        numbers = tuple(tuple(list(side) for side in pair) for pair in p["dimension_numbers"])
        names = ("precision", "preferred_element_type")
        return [("dimension_numbers", numbers), *((n, p[n]) for n in names if p[n] is not None)]


def permute_axes(x: Any, permutation: tuple[int, ...]) -> Any:
    """Transposes `x`, unless the permutation is the identity."""
    return x if permutation == tuple(range(len(permutation))) else moving.transpose(x, permutation)


def _check_dims(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: Any) -> None:
    contract, batch = dimension_numbers
    for side, aval, c, b in (("lhs", lhs, contract[0], batch[0]), ("rhs", rhs, contract[1], batch[1])):
        if not all(0 <= i < aval.ndim for i in (*c, *b)):
            raise TypeError(
                f"dot_general: {side} has rank {aval.ndim}, so its dimension numbers are from 0 to "
                f"{aval.ndim - 1}; got {side}_batch {b} and {side}_contracting {c}."
            )
    for what, (left, right) in (("batch", batch), ("contracting", contract)):
        if what == "batch" and len(left) != len(right):
            raise TypeError(f"dot_general: as many lhs_batch as rhs_batch dimensions are needed, got {left}, {right}.")
        for side, axes in (("lhs", left), ("rhs", right)):
            if len(set(axes)) != len(axes):
                raise TypeError(f"dot_general: {side} {what} dimensions are not distinct: {axes}.")
        check_equal_sizes("dot_general", lhs, rhs, left, right, what)
    for side, c, b in (("lhs", contract[0], batch[0]), ("rhs", contract[1], batch[1])):
        if set(c) & set(b):
            raise TypeError(f"dot_general: {side} dimensions {set(c) & set(b)} are both batch and contracting.")


def check_equal_sizes(
    name: str, lhs: ShapedArray, rhs: ShapedArray, left: Sequence[int], right: Sequence[int], what: str = "contracting"
) -> None:
    """Raises TypeError, in the name of a function, unless these axes of the operands have the same sizes."""
    sizes = tuple([lhs.shape[i] for i in left]), tuple([rhs.shape[i] for i in right])
    if sizes[0] != sizes[1]:
        pairs = [(i, j) for i, j in zip(left, right, strict=False) if lhs.shape[i] != rhs.shape[j]]
        text = f"dot_general requires {what} dimensions to have the same shape, got {sizes[0]} and {sizes[1]}."
        if pairs:
            i, j = pairs[0]
            text += f" Axis {i} of the first operand has size {lhs.shape[i]}, axis {j} of the second {rhs.shape[j]}:"
        raise TypeError(f"{text} {name} of {lhs.str_short()} and {rhs.str_short()}. Transpose or slice one.")


def _rank(dtype: Any) -> tuple:
    """The key by which XLA picks the wider of two operand dtypes for the result."""
    is_complex = dtypes.is_complex(dtype)
    real = np.finfo(dtype).dtype if is_complex else dtype
    if dtypes.issubdtype(real, np.floating):
        info = dtypes.finfo(real)
        return is_complex, info.maxexp, info.nmant, dtypes.itemsize_bits(real), True
    return is_complex, -1, -1, _bits(real), not dtypes.issubdtype(real, np.unsignedinteger)


def _bits(dtype: Any) -> int:
    return 1 if dtype == np.bool_ else dtypes.itemsize_bits(dtype)


def _result_dtype(lhs: Any, rhs: Any, preferred: Any, may_narrow: bool) -> Any:
    dtype = lhs if lhs == rhs else max(lhs, rhs, key=_rank)
    if preferred is None or may_narrow or dtypes.issubdtype(dtype, np.floating):
        return dtype if preferred is None else preferred
    real = np.finfo(dtype).dtype if dtypes.is_complex(dtype) else dtype
    if _bits(preferred) < _bits(real):
        raise TypeError(
            f"dot_general: `preferred_element_type` must not be narrower than the original type: {preferred} "
            f"is narrower than {dtype}."
        )
    return preferred


def _common_dtypes(platform: str, lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray) -> tuple:
    """The dtypes to which operands of different dtypes are converted first; None: no conversion."""
    same = lhs.dtype == rhs.dtype or lhs.dtype in _F8 and rhs.dtype in _F8
    return (None, None) if same or platform == "tpu" else (out.dtype, out.dtype)


def _plan(platform: str, how: Any, lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray) -> tuple:
    """For an algorithm: (dtypes to which operands are converted, dtype of the stored result, attribute)."""
    if platform == "cpu" and str(how) not in _ON_CPU:
        raise ValueError(f"The precision '{how}' is not supported by dot_general on CPU")
    if isinstance(how, DotAlgorithm):
        precisions = [np.dtype(how.lhs_precision_type), np.dtype(how.rhs_precision_type)]
        kinds = tuple(None if a.dtype == d else d for a, d in zip((lhs, rhs), precisions, strict=True))
        return kinds, np.dtype(how.accumulation_type), tuple(how)
    kinds, have = [], []
    for aval, allowed in ((lhs, how.supported_lhs_types), (rhs, how.supported_rhs_types)):
        keeps = allowed is None or aval.dtype in allowed
        kinds.append(None if keeps else np.dtype(allowed[0]))  # pyright: ignore[reportOptionalSubscript]
        have.append(aval.dtype if keeps else kinds[-1])
    outs = how.supported_output_types(*have)
    stored = out.dtype if outs is None or out.dtype in outs else np.dtype(how.accumulation_type)
    return tuple(kinds), stored, how._algorithm(*have, stored)


def _converted(e: Any, x: str, aval: ShapedArray, dtype: Any) -> tuple[str, ShapedArray]:
    out = ShapedArray(aval.shape, dtype)
    if aval.dtype == dtype:  # as in jax's modules, where both operands are converted if one is
        return e.unary("convert", x, aval), out
    if dtype == np.bool_:
        params = dict(new_dtype=dtype, weak_type=False, sharding=None)
        return convert_element_type_p.lower(e, [aval], [out], x, **params)[0], out
    return e.convert(x, aval, out), out


dot_general_p = DotGeneral()
fold_as(Folding.PLAIN, dot_general_p)


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Computes products of arrays that are summed over contracted axes, with batch axes: XLA's general dot product.

    `jax.numpy.matmul`, `jax.numpy.tensordot` and `jax.numpy.einsum` are easier to use, and are made of it.

    Args:
        lhs, rhs: Arrays.
        dimension_numbers: Four tuples of axes, `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`. Axes
            that belong together are at the same place in their tuples and have equal sizes.
        precision: A `jax.lax.Precision`, a `DotAlgorithm`, a preset, or a pair of precisions.
        preferred_element_type: The dtype in which products are summed and returned. By default the promoted dtype of
            the operands.
        out_sharding: The sharding of the result over Explicit mesh axes.

    Returns:
        An array whose axes are the batch axes, the other axes of `lhs`, and the other axes of `rhs`.

    Raises:
        TypeError: If sizes of axes that belong together differ, or axes are repeated or out of bounds.

    Example:
        >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
        >>> jax.lax.dot_general(x, y, dimension_numbers=(((2,), (1,)), ((0,), (0,)))).shape
        (5, 2, 4)
        >>> a = jnp.array([100, 100], jnp.int8)
        >>> jax.lax.dot_general(a, a, (((0,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        Array(20000, dtype=int32)
    """
    if dimension_numbers is None:
        return dot(lhs, rhs, precision=precision, preferred_element_type=preferred_element_type)
    return _dot("dot_general", lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding)


def _dot(name, lhs, rhs, dimension_numbers, precision, preferred, out_sharding):
    try:
        (cl, cr), (bl, br) = dimension_numbers
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name}: dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), got "
            f"{dimension_numbers}"
        ) from None
    try:
        numbers = tuple(tuple(tuple(map(operator.index, side)) for side in pair) for pair in ((cl, cr), (bl, br)))
    except TypeError:
        for x in (lhs, rhs):
            if isinstance(x, Ref):
                raise ValueError(passed_ref(typeof(x), f"a primitive: {name}")) from None
        raise
    if preferred is not None:
        preferred = dtypes.check_and_canonicalize_user_dtype(preferred, name)
    types = dict(precision=canonical_precision(precision), preferred_element_type=preferred)
    rank = typeof(lhs).ndim + typeof(rhs).ndim - 2 * len(cl) - len(bl)
    requested = requested_sharding("dot_general", out_sharding, rank)
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, **types, out_sharding=requested)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Computes the product of vectors or matrices, or that of `dot_general` if dimension numbers are given.

    The other arguments are those of `jax.lax.dot_general`. Raises ValueError for other ranks without dimension numbers.

    Example:
        >>> jax.lax.dot(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    if dimension_numbers is None:
        left, right = typeof(lhs).shape, typeof(rhs).shape
        if len(left) not in (1, 2) or len(right) not in (1, 2) or left[-1] != right[0]:
            raise ValueError(
                "lax.dot: dimension_numbers must be specified unless both operands are vectors or matrices "
                f"that fit; got lhs_shape={left} rhs_shape={right}"
            )
        dimension_numbers = (((len(left) - 1,), (0,)), ((), ()))
    return _dot("dot", lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding)


def batch_matmul(lhs: Array, rhs: Array, precision: PrecisionLike = None) -> Array:
    """Computes the matrix products over the last two axes; the others are batch axes.

    Raises ValueError unless the ranks are equal, and 2 or more.

    Example:
        >>> x = jnp.array([[[1.0, 2.0]], [[3.0, 4.0]]])
        >>> jax.lax.batch_matmul(x, x.transpose(0, 2, 1))
        Array([[[ 5.]],
        <BLANKLINE>
               [[25.]]], dtype=float32)
    """
    left, right = typeof(lhs).ndim, typeof(rhs).ndim
    if left < 2 or right < 2:
        raise ValueError(f"batch_matmul: arguments must be at least 2D, got ranks {left} and {right}")
    if left != right:
        raise ValueError(f"batch_matmul: arguments must have same ndim, got ranks {left} and {right}")
    batch = tuple(range(left - 2))
    return dot_general(lhs, rhs, (((left - 1,), (left - 2,)), (batch, batch)), precision)
