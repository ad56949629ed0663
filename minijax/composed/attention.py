"""Attention by cuDNN on NVIDIA GPUs: one operation computes it without storing the logits, another its derivative.

Operands of both: query (b, t, n, h), key and value (b, s, m, h), bias (b or 1, n or 1, t, s), lengths of queries and of
keys (b,), and four that only packed and paged sequences have. An absent operand has no elements.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.composed.divided import Chosen, Divided, Division, evenly, names_of
from minijax.ir.types import ShapedArray, typeof, varying_axes
from minijax.partition.factors import ArrayMapping, SdyShardingRule
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


class _Attention(Divided):
    """The rules that both operations share.

    Parameters: `variadic_args` (whether there is a bias, and a cotangent of it), `sliding_window_length` (the number of
    keys up to the query's own), and options of cuDNN.
    """

    multiple_results = True
    auto_pvary = False  # operands without elements need not vary
    suffix = ""  # of the function's name
    shares_bias = False  # True if a bias of all elements may serve a whole batch
    products: dict[str, tuple[str, ...]]  # name -> the axes of a product, in the order of `_SIDES`

    def call(self, e, ins, outs, operands, *, variadic_args, mask_type, **params):
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

    def rule(self, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> SdyShardingRule:
        """A rule in which operands share no factors: `divided` shards them as the query."""
        factors = [[f"x{i}_{k}" for k in range(a.ndim)] for i, a in enumerate(ins)]
        sides = factors, self._factors(factors, outs)
        return SdyShardingRule(*[tuple([ArrayMapping(*names) for names in side]) for side in sides])

    def divided(self, mesh: Any, operands: Sequence[Chosen], params: dict) -> Division:
        """Each device computes the batch elements and heads that the query's sharding gives it."""
        query, key = operands[:2]
        (b, _, n, _), bias = query.aval.shape, operands[_BIAS].aval.shape
        batch, _, heads, _ = query.entries
        batch, heads = evenly(mesh, batch, b), evenly(mesh, heads, n, key.aval.shape[2])
        own = batch if bias[0] == b else None, heads if bias[1:] and bias[1] == n else None
        summed = [name for axes, its in zip((batch, heads), own, strict=True) if its is None for name in names_of(axes)]

        def entries(i: int, aval: ShapedArray) -> tuple:
            entries = {4: (batch, None, heads, None), 3: (batch, heads, None), 1: (batch,)}[aval.ndim]
            return ((*own, None, None)[: aval.ndim] if i == _BIAS else entries) if aval.size else ()

        def of_device(*parts):
            found = self.bind(*parts, **params)
            return [psum(x, tuple(summed)) if i == _BIAS and summed else x for i, x in enumerate(found)]

        avals = [x.aval for x in operands]
        results = self.infer(*avals, **params)
        return Division(of_device, *[[entries(i, a) for i, a in enumerate(side)] for side in (results, avals)])

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
