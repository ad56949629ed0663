"""Exchanges over a named axis: of slices of different sizes, and point to point."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes, tree
from minijax.composed.arrays.cumulative import cumsum
from minijax.ir.primitive import cotangents, is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, is_zero, token_type, typeof
from minijax.primitives import moving
from minijax.primitives.collective import Named, _pvary, all_to_all, axis_size
from minijax.primitives.counting import iota
from minijax.primitives.elementwise import add, mul, select_n
from minijax.primitives.varying import device_groups, names_of
from minijax.primitives.zeros import instantiate, zeros_like_aval

_INT32 = np.dtype(np.int32)
_RAGGED = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


class RaggedAllToAll(Named):
    """Every member sends slices of its operand, which are written into the outputs of the others."""

    name = "ragged_all_to_all"
    auto_pvary = False

    def infer(self, operand, output, *ragged, axis_name, axis_index_groups):
        axis_size(axis_name)
        for name, aval in zip(_RAGGED, ragged, strict=True):
            if not dtypes.issubdtype(aval.dtype, np.integer):
                raise ValueError(f"{self.name} {name} must be integer type, not {aval.dtype}")
            if aval.ndim != 1 or not aval.size:
                raise ValueError(
                    f"{self.name} {name} must be rank 1 with positive dimension size, but got shape {aval.shape}"
                )
        return [output.update(weak_type=False)]

    def at_once(self, *operands, **params):
        raise RuntimeError(f"{self.name} must be used within a mapped context like vmap or shard_map.")

    def lower(self, e, ins, outs, *operands, axis_name, axis_index_groups):
        groups = device_groups(e, self, axis_name, axis_index_groups)
        return e.ragged_all_to_all(operands, ins, outs, groups)

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        if all(map(is_zero, tangents[:2])):
            return [out], [Zero.from_primal_value(out)]
        return [out], [self.bind(*map(instantiate, tangents[:2]), *primals[2:], **params)]

    def transpose(self, cts, operand, output, *ragged, axis_name, axis_index_groups):
        (ct,) = cts
        if is_zero(ct):
            return cotangents((operand, output, *ragged), (), (False, False))
        input_offsets, send_sizes, output_offsets, recv_sizes = ragged
        # The cotangent of received rows is sent back: from the sender's output offset to its input offset.
        zeros = zeros_like_aval(operand.aval if is_undefined_primal(operand) else typeof(operand))
        starts, targets = (
            all_to_all(x, axis_name, 0, 0, tiled=True, axis_index_groups=axis_index_groups)
            for x in (output_offsets, input_offsets)
        )
        params = dict(axis_name=axis_name, axis_index_groups=axis_index_groups)
        operand_ct = self.bind(ct, zeros, starts, recv_sizes, targets, send_sizes, **params)
        return [operand_ct, _zero_received_rows(ct, starts, recv_sizes), *[None] * 4]

    def batch(self, axis, operands, dims, **params):
        if axis.name in names_of(params["axis_name"]):
            raise NotImplementedError(f"{self.name} over the axis of vmap is not implemented")
        if None in dims[2:]:
            raise AssertionError(f"{self.name} under vmap takes only offsets and sizes that are all mapped")
        operand, output = (moving.axis_to_front(x, d, axis) for x, d in zip(operands[:2], dims[:2], strict=True))
        ragged = [moving.move_axis(x, d, 1) for x, d in zip(operands[2:], dims[2:], strict=True)]
        for i, x in ((0, operand), (2, output)):
            numbers = moving.expand_dims(iota(typeof(ragged[i]).dtype, axis.size), (0,))
            ragged[i] = add(ragged[i], mul(numbers, typeof(numbers).dtype.type(typeof(x).shape[1])))
        merged = [
            moving.reshape(x, (prod(typeof(x).shape[:2]), *typeof(x).shape[2:])) for x in (operand, output, *ragged)
        ]
        return [moving.reshape(self.bind(*merged, **params), typeof(output).shape)], [0]


def _zero_received_rows(ct: Any, starts: Any, sizes: Any) -> Any:
    """`ct` with zeros in the rows that were overwritten: `sizes[i]` rows from `starts[i]` on."""
    aval = typeof(ct)
    mask = moving.filled((aval.shape[0],), 0, _INT32)
    mask = cumsum(mask.at[starts].set(1).at[add(starts, sizes)].add(-1))
    mask = moving.broadcast_to_shape(moving.expand_dims(mask, tuple(range(1, aval.ndim))), aval.shape)
    return select_n(mask, ct, zeros_like_aval(aval))


class _PointToPoint(Named):
    """A transfer between the (source, target) pairs of `perm`, ordered by a token; only on GPUs."""

    at_once = Named._no_evaluation

    def pairs(self, e, axis_name, perm):
        if e.platform not in ("cuda", "rocm"):
            raise NotImplementedError(f"{self.name} is currently only implemented on GPU")
        if any(len(set(side)) < len(perm) for side in zip(*perm, strict=True)):
            raise ValueError(f"{self.name} sources and destinations must be unique, got {perm}.")
        rows = device_groups(e, self, axis_name)
        return [(row[a], row[b]) for row in rows for a, b in perm]


class PSend(_PointToPoint):
    """Sends a value and returns a token."""

    name = "psend"

    def infer(self, x, *, axis_name, perm):
        return [token_type]

    def lower(self, e, ins, outs, x, *, axis_name, perm):
        pairs = self.pairs(e, axis_name, perm)
        return [e.send(x, e.create_token(), ins[0], pairs)]


class PRecv(_PointToPoint):
    """Receives a value after a token; zeros if none is sent to the device."""

    name = "precv"

    def infer(self, token, *, out_shape, axis_name, perm):
        axis_size(axis_name)
        return [out_shape]

    def lower(self, e, ins, outs, token, *, out_shape, axis_name, perm):
        return e.recv(token, outs[0], self.pairs(e, axis_name, perm))[:1]


ragged_all_to_all_p, psend_p, precv_p = RaggedAllToAll(), PSend(), PRecv()


def ragged_all_to_all(operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any,
                      recv_sizes: Any, *, axis_name: Any, axis_index_groups: Any = None) -> Any:  # fmt: skip
    """Exchanges rows of `operand` over a named axis. Returns `output` with the received rows.

    `send_sizes[i]` rows from `input_offsets[i]` on are sent to member i, which writes them from `output_offsets[i]` on.
    `recv_sizes[i]` is the number of rows from member i. Raises ValueError for offsets or sizes that are not vectors of
    integers. XLA runs it on GPU and TPU.

    Example:
        >>> one = jnp.array([0]), jnp.array([2]), jnp.array([1]), jnp.array([2])
        >>> f = lambda x: jax.lax.ragged_all_to_all(x, jnp.zeros(4), *one, axis_name="i")
        >>> f = jax.shard_map(f, mesh=jax.make_mesh((1,), ("i",)), in_specs=jax.P(), out_specs=jax.P("i"))
        >>> jax.eval_shape(f, jnp.ones(3)).shape
        (4,)
    """
    groups = axis_index_groups and tuple(map(tuple, axis_index_groups))
    params = dict(axis_name=names_of(axis_name), axis_index_groups=groups)
    return ragged_all_to_all_p.bind(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, **params)


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends values along a named axis by (source, target) pairs. Returns a token for each leaf.

    Only on GPUs. Raises ValueError when lowered, for repeated sources or targets.

    Example:
        >>> mesh, like = jax.make_mesh((1,), ("i",)), jax.ShapeDtypeStruct((2,), jnp.float32)
        >>> f = lambda x: jax.lax.precv(jax.lax.psend(x, "i", [(0, 0)]), like, "i", [(0, 0)])
        >>> f = jax.shard_map(f, mesh=mesh, in_specs=jax.P(), out_specs=jax.P("i"), check_vma=False)
        >>> [eqn.primitive.name for eqn in jax.make_jaxpr(f)(jnp.ones(2)).eqns[0].params["jaxpr"].eqns]
        ['psend', 'precv']
    """
    axis_size(axis_name)
    how = dict(axis_name=names_of(axis_name), perm=tuple(map(tuple, perm)))
    return tree.tree_map(lambda leaf: psend_p.bind(_pvary(leaf, axis_name), **how), x)


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Receives the value that `psend` with the same `perm` sends, of the type of `out_shape`, after the token.

    Example:
        >>> mesh, like = jax.make_mesh((1,), ("i",)), jax.ShapeDtypeStruct((2,), jnp.float32)
        >>> f = lambda x: jax.lax.precv(jax.lax.psend(x, "i", [(0, 0)]), like, "i", [(0, 0)])
        >>> f = jax.shard_map(f, mesh=mesh, in_specs=jax.P(), out_specs=jax.P("i"), check_vma=False)
        >>> jax.eval_shape(f, jnp.ones(2)).shape
        (2,)
    """
    aval = ShapedArray(out_shape.shape, np.dtype(out_shape.dtype))
    return precv_p.bind(token, out_shape=aval, axis_name=names_of(axis_name), perm=tuple(map(tuple, perm)))
