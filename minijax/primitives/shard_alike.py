"""Values that the compiler shards in the same way."""

from typing import Any

from minijax.base import dtypes, tree
from minijax.ir.primitive import Primitive, is_undefined_primal
from minijax.ir.types import Zero, typeof
from minijax.primitives.zeros import aligned, instantiate


class ShardAlike(Primitive):
    """The identity of two values of one shape, which the compiler gives the same sharding."""

    name = "shard_alike"
    multiple_results = True
    auto_pvary = False
    constrain_results = False

    def infer(self, x, y):
        return [x, y]

    def lower(self, e, ins, outs, x, y):
        results = [_replicate_key_words(e, v, aval) for v, aval in zip((x, y), ins, strict=True)]
        e.sharding_group(results, ins)
        return [_replicate_key_words(e, v, aval) for v, aval in zip(results, ins, strict=True)]

    def jvp(self, primals, tangents):
        results = self.bind_all(primals, {})
        of_integers = any(t.aval.dtype == dtypes.float0 for t in tangents if type(t) is Zero)
        if of_integers or all(type(t) is Zero for t in tangents):
            return results, list(tangents)
        return results, self.bind_all(list(map(instantiate, tangents)), {})

    def transpose(self, cts, *operands):
        if not any(type(ct) is Zero for ct in cts):
            cts = self.bind_all(cts, {})
        return [ct if is_undefined_primal(x) else None for ct, x in zip(cts, operands, strict=True)]

    def batch(self, axis, operands, dims):
        y, x, d = aligned(axis, *operands[::-1], *dims[::-1])
        return self.bind_all([x, y], {}), [d, d]


def _replicate_key_words(e: Any, x: str, aval: Any) -> str:
    """Constrains `x`, if it is an array of keys, to keep the words of one key on one device."""
    return e.replicate_key_words([x], [aval])[0] if e.num_partitions > 1 else x


shard_alike_p = ShardAlike()


def shard_alike(x: Any, y: Any) -> tuple:
    """Returns trees `x` and `y` of one structure; the compiler gives corresponding arrays the same sharding.

    Raises ValueError if the trees, or the shapes of their arrays, differ.
    """
    (xs, treedef), (ys, other) = tree.flatten(x), tree.flatten(y)
    if treedef != other:
        raise ValueError(f"shard_alike: Trees should be equal. Got x_tree: {treedef}, y_tree: {other}")
    for a, b in zip(xs, ys, strict=True):
        shapes = typeof(a).shape, typeof(b).shape
        if shapes[0] != shapes[1]:
            raise ValueError(
                "shard_alike: The leaves shapes of `x` and `y` should match. "
                f"Got `x` leaf shape: {shapes[0]} and `y` leaf shape: {shapes[1]}"
            )
    pairs = [shard_alike_p.bind(a, b) for a, b in zip(xs, ys, strict=True)]
    return treedef.unflatten([a for a, _ in pairs]), treedef.unflatten([b for _, b in pairs])
