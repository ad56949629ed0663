"""Products of matrices of narrow floats with a scale for each block, as NVIDIA's GPUs compute them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.composed.divided import Chosen, Divided, Division, evenly, names_of
from minijax.ir.types import ShapedArray, typeof
from minijax.partition.factors import SdyShardingRule, parse_rule
from minijax.primitives import moving
from minijax.primitives.collective import psum

_DEQUANTIZED = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


class ScaledMatmul(Divided):
    """A batched product of rows by rows, (b, m, k) and (b, n, k) -> (b, m, n), with scales along the last axes."""

    name = "scaled_matmul_wrapper"

    def infer(self, lhs, rhs, lhs_scales, rhs_scales, *, preferred_element_type):
        return [ShapedArray((*lhs.shape[:2], rhs.shape[1]), preferred_element_type)]

    def call(self, e, ins, outs, operands, *, preferred_element_type):
        wanted = _DEQUANTIZED.get(np.dtype(preferred_element_type).name)
        if wanted is None:
            raise KeyError(f"scaled_matmul has no products of {np.dtype(preferred_element_type)}")
        details = dict(lhs_batch_dimensions=[0], rhs_batch_dimensions=[0], dequantize_type=wanted)
        how = dict(backend_config=json.dumps({"scaled_dot_backend_config": details}), api_version=2)
        layouts = dict(operand_layouts=[(2, 1, 0)] * 4, result_layouts=[(2, 1, 0)])
        return e.custom_call("__op$block_scaled_dot", operands, ins, outs, **how, **layouts)

    def rule(self, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> SdyShardingRule:
        return parse_rule("b m k, b n k, b m k, b n k -> b m n")

    def divided(self, mesh: Any, operands: Sequence[Chosen], params: dict) -> Division:
        """Devices that have the same rows and columns, and other parts of what is summed, add their products."""
        lhs, rhs, scales, _ = operands
        (b, m, blocks), n = scales.aval.shape, rhs.aval.shape[1]
        (batch, rows, summed), (_, columns, other) = lhs.entries, rhs.entries
        batch, rows = evenly(mesh, batch, b), evenly(mesh, rows, m)
        columns = evenly(mesh, columns, n) if not {*names_of(columns)} & {*names_of(batch), *names_of(rows)} else None
        used = {*names_of(batch), *names_of(rows), *names_of(columns)}
        summed = evenly(mesh, summed, blocks) if summed == other and not used & {*names_of(summed)} else None

        def of_device(*parts):
            product = self.bind(*parts, **params)
            return [psum(product, names_of(summed)) if summed else product]

        ins = [(batch, rows, summed), (batch, columns, summed)] * 2
        return Division(of_device, [(batch, rows, columns)], ins)

    def batch(self, axis, operands, dims, *, preferred_element_type):
        # [batch, b, m, k] -> [batch b, m, k]
        fronted = [moving.axis_to_front(x, d, axis) for x, d in zip(operands, dims, strict=True)]
        merged = {}
        for i in (0, 2, 1, 3):
            size, own, *rest = typeof(fronted[i]).shape
            merged[i] = moving.reshape(fronted[i], (size * own, *rest))
        lhs, rhs, lhs_scales, rhs_scales = (merged[i] for i in range(4))
        out = self.bind(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=preferred_element_type)
        return [moving.reshape(out, (*typeof(fronted[0]).shape[:2], *typeof(out).shape[1:]))], [0]


scaled_matmul_p = ScaledMatmul()
