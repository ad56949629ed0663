"""The approximate largest or smallest k elements, which XLA computes fast on TPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.documentation import filled
from minijax.base.native import approx_top_k_reduction_output_size
from minijax.base.symbolic.dimension import is_int
from minijax.base.util import named
from minijax.composed.arrays.index_in_dim import along
from minijax.composed.linalg.matrices import from_front
from minijax.dispatch.jitted import jitted
from minijax.ir.primitive import Primitive
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving
from minijax.primitives.gather_dims import GatherScatterMode
from minijax.primitives.gather_scatter import gather
from minijax.primitives.structural import squeeze
from minijax.run.arrays.array import Array

_INDEX = np.dtype(np.int32)


@jitted("take_along_axis", static=("axis",))
def _take_along_axis(x: Any, places: Any, axis: int) -> Any:
    """The elements at the indices `places` along an axis."""
    plan = along(typeof(x).shape, typeof(places).shape, axis)
    vectors = moving.reshape_to(from_front(places, typeof(x).shape[axis]), (*plan.index_shape, 1))
    x = squeeze(x, plan.squeezed) if plan.squeezed else x
    return gather(x, vectors, plan.numbers, plan.slice_sizes, mode=GatherScatterMode.FILL_OR_DROP)


class ApproxTopK(Primitive):
    """The `k` largest (smallest, unless `is_max_k`) elements along an axis, and their indices."""

    has_bodies = False
    name = "approx_top_k"
    multiple_results = True

    def infer(
        self, x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override, aggregate_to_topk
    ):
        if k <= 0:
            raise ValueError(f"approx_top_k: k must be positive, got {k}")
        if not x.ndim:
            raise TypeError(f"approx_top_k operand must have >= 1 dimension, got {x.shape}")
        if not -x.ndim <= reduction_dimension < x.ndim:
            raise IndexError(f"approx_top_k: reduction_dimension {reduction_dimension} is out of range for {x}")
        sizes = list(x.shape)
        size = sizes[reduction_dimension]
        if size < k:
            raise ValueError(f"approx_top_k: k must be smaller than the size of reduction_dim {size}, got {k}")
        if not dtypes.issubdtype(x.dtype, np.floating):
            raise ValueError(f"approx_top_k: operand must be a floating type, got {x.dtype}")
        how = k, recall_target, aggregate_to_topk, reduction_input_size_override
        if not (aggregate_to_topk or is_int(size) and is_int(k)):
            raise NotImplementedError(f"approx_top_k with aggregate_to_topk=False of symbolic sizes, {k} of {size}")
        sizes[reduction_dimension] = (
            k if aggregate_to_topk else approx_top_k_reduction_output_size(size, x.ndim, *how)[0]
        )
        best = x.update(shape=tuple(sizes))
        return [best, best.update(dtype=_INDEX)]

    def lower(self, e, ins, outs, x, *, k, reduction_dimension, recall_target, is_max_k, **options):
        (aval,) = ins
        axis = reduction_dimension % aval.ndim
        unit, index = (ShapedArray((), d) for d in (aval.dtype, _INDEX))
        comparator = e.top_k_comparator("GT" if is_max_k else "LT", aval.dtype)
        places = ShapedArray(aval.shape, _INDEX)
        numbers, nowhere = e.iota(axis, places), e.constant(-1, index)
        worst = e.constant(-np.inf if is_max_k else np.inf, unit)
        config = {
            "aggregate_to_topk": options["aggregate_to_topk"],
            "recall_target": np.float32(recall_target),
            "reduction_dim": axis,
            "reduction_input_size_override": options["reduction_input_size_override"],
        }
        if e.platform != "tpu":
            config["is_fallback"] = True
        operands, types = (x, numbers, worst, nowhere), (aval, places, unit, index)
        return e.approx_top_k(operands, types, outs, k, config, comparator)

    def jvp(self, primals, tangents, **params):
        values, places = self.bind(*primals, **params)
        (t,) = tangents
        if type(t) is Zero:
            tangent_out = Zero.from_primal_value(values)
        else:
            tangent_out = _take_along_axis(t, places, params["reduction_dimension"] % typeof(t).ndim)
        return [values, places], [tangent_out, Zero.from_primal_value(places)]

    def batch(self, axis, operands, dims, *, reduction_dimension, **params):
        (d,) = dims
        reduced = reduction_dimension % (typeof(operands[0]).ndim - 1)
        return self.bind(*operands, reduction_dimension=reduced + (d <= reduced), **params), [d, d]


approx_top_k_p = ApproxTopK()


def _approximate(name: str, is_max_k: bool, **doc: str) -> Callable[..., tuple[Array, Array]]:
    def function(
        operand: Array,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
    ) -> tuple[Array, Array]:
        """Returns the `k` {what} elements of floats along an axis, and their indices; on TPUs some may be missed.

        `recall_target` is the share that is found on TPUs, by the algorithm of arXiv:2206.14286. Other platforms find
        all. Without `aggregate_to_topk`, the results may have more than `k` elements, not in order.

        Example:
            >>> jax.lax.{name}(jnp.array([3.0, 9.0, 1.0, 7.0]), 2)
            [Array({values}, dtype=float32), Array({places}, dtype=int32)]
        """
        return approx_top_k_p.bind(
            operand, k=k, reduction_dimension=reduction_dimension, recall_target=recall_target, is_max_k=is_max_k,
            reduction_input_size_override=reduction_input_size_override, aggregate_to_topk=aggregate_to_topk,
        )  # fmt: skip

    return named(function, name, filled(function, dict(name=name, **doc)))


approx_max_k, approx_min_k = (
    _approximate("approx_max_k", True, what="largest", values="[9., 7.]", places="[1, 3]"),
    _approximate("approx_min_k", False, what="smallest", values="[1., 3.]", places="[2, 0]"),
)
