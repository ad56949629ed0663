"""The base class of the primitives of sparse arrays, which are lowered by tracing a Python function."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.ir.primitive import Axis, Primitive
from minijax.ir.types import Zero, typeof
from minijax.primitives import moving
from minijax.primitives.families import emit
from minijax.primitives.zeros import add_zeros


class Composed(Primitive):
    """A primitive that is lowered by tracing `compute(*operands, **params)`, which returns a sequence."""

    def compute(self, *operands: Any, **params: Any) -> Sequence:
        raise NotImplementedError

    def lower(self, e, ins, outs, *operands, **params):
        return emit(e, self.compute, ins, operands, **params)

    def jvp_by_parts(
        self, rules: Sequence[Callable | None], primals: Sequence, tangents: Sequence, params: dict
    ) -> tuple[list, list]:
        """The results and tangents: the first tangent is the sum of `rule(tangent, *primals)` over the operands."""
        results = self.bind_all(primals, params)
        total: Any = Zero.from_primal_value(results[0])
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = add_zeros(total, rule(tangent, *primals, **params))
        return results, [total, *map(Zero.from_primal_value, results[1:])]


def batch_axis_in_front(name: str, x: Any, dim: int | None, n_batch: int) -> Any:
    """Moves the mapped axis of `x` to the front, or adds one of size one to an unmapped `x`.

    Raises NotImplementedError if the mapped axis is not among the batch axes.
    """
    if dim is None:
        return moving.expand_dims(x, (0,))
    if dim > n_batch:
        raise NotImplementedError(
            f"{name}: batch_dims must be None or satisfy 0 < dim < n_batch: axis {dim} of {typeof(x).str_short()} is "
            f"mapped, with n_batch={n_batch}."
        )
    return moving.move_axis(x, dim, 0)


def batched_buffers(name: str, axis: Axis, buffers: Sequence, dims: Sequence, spinfo: Any) -> tuple[Any, Any, Any]:
    """Data and indices with the mapped axis in front, and `spinfo` with one batch axis more."""
    data, indices = buffers
    n_batch = typeof(indices).ndim - 2 - (dims[1] is not None)
    moved = [batch_axis_in_front(name, x, dim, n_batch) for x, dim in zip((data, indices), dims, strict=True)]
    return *moved, spinfo._replace(shape=(axis.size, *spinfo.shape))
