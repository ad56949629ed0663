"""Attention by cuDNN on NVIDIA GPUs: one operation computes it without storing the logits, another its derivative.

Operands of both: query (b, t, n, h), key and value (b, s, m, h), bias (b or 1, n or 1, t, s), lengths of queries and of
keys (b,), and four that only packed and paged sequences have. An absent operand has no elements.
"""

from __future__ import annotations

import enum
import functools
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import tree
from minijax.calls.custom_partitioning import custom_partitioning_p
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Primitive
from minijax.ir.rules import no_lowering
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray, typeof, varying_axes
from minijax.partition.factors import ArrayMapping, SdyShardingRule
from minijax.partition.meshes import PartitionSpec
from minijax.partition.shardings import NamedSharding
from minijax.primitives import moving
from minijax.primitives.collective import psum

_FLOAT32 = np.dtype(np.float32)
_WORKSPACE = ShapedArray((0,), np.dtype(np.uint8))
_BIAS, _LENGTHS = 3, (4, 5)  # places among the operands
_ELEMENTS = {"bfloat16": "BF16", "float16": "F16"}
_SIDES = ("lhs_contracting_dimensions", "rhs_contracting_dimensions", "lhs_batch_dimensions", "rhs_batch_dimensions")


class MaskType(enum.Enum):
    """Which logits are used: all, those within the lengths, those that are not ahead of the query, or both."""

    NO_MASK = 0
    PADDING = 1
    CAUSAL = 2
    PADDING_CAUSAL = 3
    ALIBI = 4

    @property
    def is_padded(self) -> bool:
        """Whether the lengths of the sequences are read."""
        return self in (MaskType.PADDING, MaskType.PADDING_CAUSAL)


class _Attention(Primitive):
    """The rules that both operations share.

    Parameters: `variadic_args` (whether there is a bias, and a cotangent of it), `sliding_window_length` (the number of
    keys up to the query's own), and options of cuDNN.
    """

    has_bodies = False
    multiple_results = True
    auto_pvary = False  # operands without elements need not vary
    suffix = ""  # of the function's name
    shares_bias = False  # True if a bias of all elements may serve a whole batch
    products: dict[str, tuple[str, ...]]  # name -> the axes of a product, in the order of `_SIDES`

    def lower(self, e, ins, outs, *operands, **params):
        if e.platform != "cuda":
            no_lowering(self, e.platform)
        if e.num_partitions == 1 or e.manual is not None:
            return self._call(e, ins, outs, operands, **params)
        closed = ClosedJaxpr(*trace_to_jaxpr(lambda *xs: self.bind(*xs, **params), ins, DebugInfo("jit", self.name)))
        return custom_partitioning_p.lower(
            e, ins, outs, *operands, call=closed, partition=(functools.partial(self._partition, params), _Chosen),
            sharding_rule=self._rule(ins, outs), static_args=(), decode_shardings=True,
            in_tree=tree.tree_structure(tuple(ins)), out_tree=tree.tree_structure(list(outs)),
            infer_sharding_from_operands=None, propagate_user_sharding=None,
        )  # fmt: skip

    def _call(self, e, ins, outs, operands, *, variadic_args, mask_type, **params):
        has_bias = variadic_args[0]
        places = self._places(has_bias, mask_type.is_padded)
        # cuDNN's results are (b, n, t, h), in the memory order of (b, t, n, h).
        turned = [_turned(a) if a.ndim == 4 and i < _BIAS else a for i, a in enumerate(outs)]
        orders = [(3, 1, 2, 0) if a is not b else _row_major(a) for a, b in zip(turned, outs, strict=True)]
        names = e.custom_call(
            f"__cudnn$fmha{'ScaleBias' * has_bias}Softmax{self.suffix}", [operands[i] for i in places],
            [ins[i] for i in places], [*turned, _WORKSPACE], api_version=2,
            backend_config=json.dumps(self._config(ins, mask_type, **params)),
            operand_layouts=[_row_major(ins[i]) for i in places], result_layouts=[*orders, (0,)],
        )  # fmt: skip
        found = zip(names[:-1], turned, outs, strict=True)
        return [name if a is b else e.transpose(name, a, b, (0, 2, 1, 3)) for name, a, b in found]

    def _config(self, ins, mask_type, *, scale, seed, dropout_rate, sliding_window_length, **_):
        products = {
            f"{name}_dot_dimension_numbers": {side: list(axes) for side, axes in zip(_SIDES, numbers, strict=True)}
            for name, numbers in self.products.items()
        }
        algorithm = dict(
            algo_id="0",
            math_type="TENSOR_OP_MATH",
            tuning_knobs={"17": "1", "24": "0"},
            is_cudnn_frontend=True,
            workspace_size="0",
        )
        config = dict(
            algorithm=algorithm,
            fmha_scale=scale,
            intermediate_tensor_shape=_shape_of_logits(ins),
            is_flash_attention=True,
            mask_type=mask_type.name,
            **products,
            dropout_rate=dropout_rate,
            seed=seed,
            sliding_window_length=sliding_window_length or 0,
            max_seg_per_batch=1,
            is_paged_attention=False,
        )
        return {"operation_queue_id": "0", "cudnn_fmha_backend_config": config}

    def _rule(self, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> SdyShardingRule:
        """A rule in which operands share no factors: `_partition` shards them as the query."""
        factors = [[f"x{i}_{k}" for k in range(a.ndim)] for i, a in enumerate(ins)]
        sides = factors, self._factors(factors, outs)
        return SdyShardingRule(*[tuple([ArrayMapping(*names) for names in side]) for side in sides])

    def _partition(self, params: dict, mesh: Any, operands: Sequence, results: Sequence) -> tuple:
        """Each device computes the batch elements and heads that the query's sharding gives it."""
        batch, heads = _axes_of_query(mesh, *operands[:2])
        (b, _, n, _), bias = operands[0].aval.shape, operands[_BIAS].aval.shape
        own = batch if bias[0] == b else None, heads if bias[1:] and bias[1] == n else None

        def sharded(i: int, x: _Chosen) -> NamedSharding:
            specs = {4: (batch, None, heads, None), 3: (batch, heads, None), 1: (batch,)}
            spec = (*own, None, None)[: x.aval.ndim] if i == _BIAS else specs[x.aval.ndim]
            return NamedSharding(mesh, PartitionSpec(*(spec if x.aval.size else ())))

        ins, outs = ([sharded(i, x) for i, x in enumerate(side)] for side in (operands, results))
        summed = [name for axes, its in zip((batch, heads), own, strict=True) if its is None for name in _names(axes)]

        def of_device(*parts):
            found = self.bind(*parts, **params)
            return [psum(x, tuple(summed)) if i == _BIAS and summed else x for i, x in enumerate(found)]

        return mesh, of_device, outs, tuple(ins)

    def batch(self, axis, operands, dims, **params):
        # (batch, b, ...) -> (batch b, ...)
        (b, *_), (rows, *_) = (_unbatched_shape(operands[i], dims[i]) for i in (0, _BIAS))
        merged = [
            x
            if _is_absent(x) or i == _BIAS and self.shares_bias and d is None and rows == 1
            else _merged(x, d, axis, b)
            for i, (x, d) in enumerate(zip(operands, dims, strict=True))
        ]
        results = self.bind(*merged, **params)
        for i, x in enumerate(results):
            size, *rest = typeof(x).shape
            x = moving.reshape(x, (size // b if b else axis.size, b, *rest))
            results[i] = moving.expand_dims(moving.sum_axis(x, 1), (1,)) if i == _BIAS and rows < b else x
        return results, [0] * len(results)


class AttentionForward(_Attention):
    """Computes attention and, with `is_training`, the logsumexp of the logits."""

    name = "dot_product_attention_fwd_wrapper"
    shares_bias = True
    products = {"bmm1": ("3", "3", "02", "02"), "bmm2": ("3", "1", "01", "02")}

    def infer(self, query, key, *others, is_training, **params):
        b, t, n, _ = query.shape
        sums = [((b, n, t), _FLOAT32)] if is_training else []
        return [_varying(query, *kind) for kind in ((query.shape, query.dtype), *sums)]

    def _places(self, has_bias: bool, is_padded: bool) -> list[int]:
        """The places of the operands that cuDNN takes, in its order."""
        return [0, 1, 2, *[_BIAS] * has_bias, *_LENGTHS * is_padded]

    def _factors(self, operands: Sequence[Sequence[str]], outs: Sequence[ShapedArray]) -> list[list[str]]:
        """The factors of the results' axes."""
        (b, t, n, _), features = operands[0], operands[2][3]
        return [[b, t, n, features], [b, n, t]][: len(outs)]


class AttentionBackward(_Attention):
    """Computes the cotangents of query, key, value and bias.

    Operands: those of the forward operation, the logsumexp, the result and its cotangent.
    """

    name = "dot_product_attention_bwd_wrapper"
    suffix = "Backward"
    products = {
        "bmm1_grad_gemm1": ("2", "1", "01", "02"),
        "bmm1_grad_gemm2": ("3", "1", "01", "02"),
        "bmm2_grad_gemm1": ("2", "1", "01", "02"),
        "bmm2_grad_gemm2": ("3", "3", "02", "02"),
    }

    def infer(self, *avals, variadic_args, **params):
        return [_varying(a, a.shape, a.dtype) for a in avals[: _BIAS + variadic_args[1]]]

    def _places(self, has_bias: bool, is_padded: bool) -> list[int]:
        sums, result, cotangent = 10, 11, 12
        return [0, 1, 2, sums, cotangent, *[_BIAS] * has_bias, result, *_LENGTHS * is_padded]

    def _factors(self, operands: Sequence[Sequence[str]], outs: Sequence[ShapedArray]) -> list[list[str]]:
        return list(map(list, operands[: len(outs)]))


attention_fwd_p, attention_bwd_p = AttentionForward(), AttentionBackward()


def _varying(like: ShapedArray, shape: tuple[int, ...], dtype: np.dtype) -> ShapedArray:
    """The type of a result that varies over the manual mesh axes over which `like` does."""
    return ShapedArray(shape, dtype).varying_over(varying_axes(like))


class _Chosen(NamedTuple):
    """An operand or result, and the sharding that the compiler has chosen for it."""

    aval: ShapedArray
    sharding: Any


def _axes_of_query(mesh: Any, query: _Chosen, key: _Chosen) -> tuple[Any, Any]:
    """The mesh axes that shard batch and heads of the query; None for those that do not divide these evenly."""
    if not isinstance(query.sharding, NamedSharding):
        return None, None
    (b, _, n, _), heads_of_keys = query.aval.shape, key.aval.shape[2]
    batch, _, heads, _ = query.sharding.spec.padded(4)
    of_batch, of_heads = (math.prod([mesh.shape[name] for name in _names(axes)]) for axes in (batch, heads))
    return None if b % of_batch else batch, None if n % of_heads or heads_of_keys % of_heads else heads


def _names(axes: Any) -> tuple:
    return axes if isinstance(axes, tuple) else () if axes is None else (axes,)


def _is_absent(x: Any) -> bool:
    return typeof(x).shape == (0,)


def _unbatched_shape(x: Any, d: int | None) -> tuple[int, ...]:
    shape = typeof(x).shape
    return shape if d is None else (*shape[:d], *shape[d + 1 :])


def _merged(x: Any, d: int | None, axis: Any, b: int) -> Any:
    """(batch, b or 1, ...) -> (batch b, ...)."""
    x = moving.axis_to_front(x, d, axis)
    size, _, *rest = typeof(x).shape
    x = moving.broadcast_to_shape(x, (size, b, *rest))
    return moving.reshape(x, (size * b, *rest))


def _row_major(aval: ShapedArray) -> tuple[int, ...]:
    return tuple(reversed(range(aval.ndim)))


def _turned(aval: ShapedArray) -> ShapedArray:
    b, t, n, h = aval.shape
    return ShapedArray((b, n, t, h), aval.dtype)


def _shape_of_logits(ins: Sequence[ShapedArray]) -> dict[str, Any]:
    """The type of the logits as a `ShapeProto` of XLA."""
    (b, t, n, _), (_, s, _, _) = ins[0].shape, ins[1].shape
    layout = dict(
        dim_level_types=[],
        dim_unique=[],
        dim_ordered=[],
        minor_to_major=["3", "2", "1", "0"],
        tiles=[],
        element_size_in_bits="0",
        memory_space="0",
        index_primitive_type="PRIMITIVE_TYPE_INVALID",
        pointer_primitive_type="PRIMITIVE_TYPE_INVALID",
        dynamic_shape_metadata_prefix_bytes="0",
    )
    return dict(
        element_type=_ELEMENTS[ins[0].dtype.name],
        dimensions=list(map(str, (b, n, t, s))),
        tuple_shapes=[],
        layout=layout,
        is_dynamic_dimension=[False] * 4,
    )
