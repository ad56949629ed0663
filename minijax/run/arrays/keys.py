"""`PRNGKeyArray`: arrays of random keys, stored as the 32-bit words of their generators."""

import copyreg
from typing import Any, NoReturn

from minijax.base import dtypes
from minijax.base.naming import known_as
from minijax.base.util import dir_without
from minijax.ir import types
from minijax.ir.types import ShapedArray
from minijax.partition.shardings import NamedSharding
from minijax.run.arrays.array import ArrayImpl, ExtendedArray, extended_arrays, remove_numeric_methods, signature


@known_as("jax._src.random.prng.PRNGKeyArray")
class PRNGKeyArray(ExtendedArray):
    """An array of random keys; its words are `jax.random.key_data(keys)`."""

    __slots__ = ("_used",)
    __dir__ = dir_without("clone format is_ready platform tobytes tolist traceback weak_type")

    itemsize = property(lambda self: self._sig.aval.dtype.itemsize)
    nbytes = property(lambda self: self._sig.aval.size * self._sig.aval.dtype.itemsize)
    _impl = property(lambda self: self._sig.aval.dtype._impl)

    @property
    def _consumed(self) -> Any:
        """A mask of the keys that programs have consumed; recorded only under `jax_debug_key_reuse`."""
        return getattr(self, "_used", False)

    @_consumed.setter
    def _consumed(self, used: Any) -> None:
        self._used = used

    @property
    def weak_type(self) -> NoReturn:
        raise AttributeError("random keys have no weak_type")

    @property
    def _value(self) -> NoReturn:
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. "
            "Use jax.random.key_data(arr) if you wish to extract the underlying integer array."
        )

    def __bool__(self):
        raise TypeError("key array cannot be converted to boolean.")

    def _scalar(self) -> NoReturn:
        raise TypeError("a random key cannot be converted to a Python number; see jax.random.key_data")

    def __index__(self):
        return self._scalar()

    def __repr__(self):
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._base_array}"

    __str__ = __repr__

    __format__ = object.__format__

    def __reduce__(self):
        state = {"_impl": self._impl, "_consumed": self._consumed, "_base_array": self._base_array}
        return copyreg.__newobj__, (PRNGKeyArray,), state

    def __setstate__(self, state):
        made = key_array(state["_impl"], state["_base_array"])
        super().__init__(made._settled_raw, made._sig)
        self._consumed = state["_consumed"]


remove_numeric_methods(PRNGKeyArray, "random keys have no {0}; jax.random.key_data gives their words")


def key_array(impl: Any, words: ArrayImpl) -> PRNGKeyArray:
    """The key array of a generator that has these words, in the same memory."""
    sig, suffix = words._sig, len(impl.key_shape)
    aval = ShapedArray(sig.shape[: len(sig.shape) - suffix], dtypes.KeyType(impl))
    sharding = sig.sharding
    if isinstance(sharding, NamedSharding) and not any(sharding.spec[aval.ndim :]):
        sharding = sharding.update(spec=sharding.spec.update(partitions=sharding.spec.partitions[: aval.ndim]))
    return words._as(signature(aval, sharding, sig.committed))


extended_arrays[dtypes.prng_key] = PRNGKeyArray
types.register_value_type(PRNGKeyArray, lambda x: x._sig.aval)
