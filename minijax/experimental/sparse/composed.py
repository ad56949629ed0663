"""The base classes of the primitives of sparse arrays, which are lowered by tracing a Python function."""

from collections.abc import Sequence
from typing import Any

from minijax.api.autodiff import linear_transpose
from minijax.ir.primitive import Axis, Primitive, is_linear
from minijax.ir.types import Zero, typeof
from minijax.primitives import moving
from minijax.primitives.families import emit
from minijax.primitives.zeros import add_zeros


class Composed(Primitive):
    """A primitive that is lowered by tracing `compute(*operands, **params)`, which returns a sequence.

    The first result is linear in each of the operands with the numbers `linear`; other results have no tangents.
    """

    linear: tuple[int, ...] = (0,)

    def compute(self, *operands: Any, **params: Any) -> Sequence:
        raise NotImplementedError

    def lower(self, e, ins, outs, *operands, **params):
        return emit(e, self.compute, ins, operands, **params)

    def jvp(self, primals, tangents, **params):
        results = self.bind_all(primals, params)
        total: Any = Zero.from_primal_value(results[0])
        for k in self.linear:
            if type(tangents[k]) is not Zero:
                operands = [*primals[:k], tangents[k], *primals[k + 1 :]]
                total = self.added(total, self.bind_all(operands, params)[0])
        return results, [total, *map(Zero.from_primal_value, results[1:])]

    def added(self, total: Any, term: Any) -> Any:
        """The sum of two tangents; the first may be a symbolic zero."""
        return add_zeros(total, term)

    def transposed(self, ct: Any, operands: Sequence, **params: Any) -> list:
        """The cotangents of operands with one linear operand, by transposing `compute`."""
        (k,) = (k for k, x in enumerate(operands) if is_linear(x))
        of_linear = lambda x: self.compute(*operands[:k], x, *operands[k + 1 :], **params)[0]  # noqa: E731
        (pulled,) = linear_transpose(of_linear, operands[k].aval)(ct)
        return [pulled if j == k else None for j in range(len(operands))]


class FromDense(Composed):
    """The data and the index buffers of the nonzero elements of a dense array, padded to `nse` elements."""

    multiple_results = True

    def elements(self, mat: Any, *index_buffers: Any) -> Any:
        """The elements of `mat` at the positions in the index buffers `index_buffers`."""
        raise NotImplementedError

    def jvp(self, primals, tangents, **params):
        data, *index_buffers = self.bind_all(primals, params)
        (t,) = tangents
        pushed = Zero.from_primal_value(data) if type(t) is Zero else self.elements(t, *index_buffers)
        return [data, *index_buffers], [pushed, *map(Zero.from_primal_value, index_buffers)]


class Batched(Composed):
    """A primitive of buffers with batch axes in front; the last index buffer has `unbatched` other axes."""

    unbatched = 2

    def n_batch(self, buffer: Any, dim: int | None) -> int:
        """The number of batch axes of the last index buffer, which is mapped over `dim`, without that axis."""
        return typeof(buffer).ndim - self.unbatched - (dim is not None)

    def in_front(self, buffers: Sequence, dims: Sequence, n_batch: int) -> list:
        """Moves the mapped axis of each buffer to the front, or adds one of size one to unmapped buffers.

        Raises NotImplementedError if a mapped axis is not among the batch axes.
        """
        moved = []
        for x, dim in zip(buffers, dims, strict=True):
            if dim is not None and dim > n_batch:
                raise NotImplementedError(
                    f"{self.name}: batch_dims must be None or satisfy 0 < dim < n_batch: axis {dim} of "
                    f"{typeof(x).str_short()} is mapped, with n_batch={n_batch}."
                )
            moved.append(moving.expand_dims(x, (0,)) if dim is None else moving.move_axis(x, dim, 0))
        return moved

    def batched(self, axis: Axis, buffers: Sequence, dims: Sequence, spinfo: Any) -> tuple[list, Any]:
        """Buffers with the mapped axis in front, and `spinfo` with one batch axis more."""
        buffers = self.in_front(buffers, dims, self.n_batch(buffers[-1], dims[-1]))
        return buffers, spinfo._replace(shape=(axis.size, *spinfo.shape))
