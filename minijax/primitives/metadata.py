"""XLA metadata of a value: frontend attributes of the operation that computes it."""

from typing import Any

from minijax.base import tree
from minijax.hlo.emitter import metadata_attributes
from minijax.ir.primitive import Linear1, Primitive


class XlaMetadataValue(Linear1):
    """The identity; the operation that computes the operand gets frontend attributes."""

    name = "xla_metadata_value"

    def infer(self, x, *, xla_metadata_kvs):
        return [x]

    def lower(self, e, ins, outs, x, *, xla_metadata_kvs):
        e.tag([x], metadata_attributes(xla_metadata_kvs), constants=True)
        return [x]

    def transposed(self, ct, aval, *, xla_metadata_kvs):
        return ct

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims


xla_metadata_value_p: Primitive = XlaMetadataValue()


def tagged(x: Any, metadata: dict[str, Any]) -> Any:
    """Attaches metadata to the operations that compute the leaves of `x`."""
    pairs = tuple(sorted(metadata.items()))
    return tree.tree_map(lambda leaf: xla_metadata_value_p.bind(leaf, xla_metadata_kvs=pairs), x)
