"""`PRNGKeyArray`: arrays of random keys, stored as the 32-bit words of their generators."""

from typing import Any, NoReturn

from minijax.base import dtypes
from minijax.hlo.spell import physical
from minijax.ir import types
from minijax.ir.types import ShapedArray
from minijax.run.array import ArrayImpl, extended_arrays, signature


class _Refused:
    """A method or, with the error at once, a property of arrays that those of keys do not have."""

    def __init__(self, name: str, error: type[Exception] | None = None):
        self.name, self.error = name, error

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        if self.error:
            raise self.error(f"{owner.__name__!r} object has no attribute {self.name!r}")
        return self._call

    def _call(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"random keys have no {self.name}; jax.random.key_data gives their words")


class PRNGKeyArray(ArrayImpl):
    """An array of random keys; its words are `jax.random.key_data` of it."""

    __slots__ = ("_used",)

    shape = property(lambda self: self._sig.aval.shape)
    dtype = property(lambda self: self._sig.aval.dtype)
    itemsize = property(lambda self: self._sig.aval.dtype.itemsize)
    nbytes = property(lambda self: self._sig.aval.size * self._sig.aval.dtype.itemsize)
    _impl = property(lambda self: self._sig.aval.dtype._impl)

    @property
    def _consumed(self) -> Any:
        """Which of the keys programs have used, as far as `jax_debug_key_reuse` was on."""
        return getattr(self, "_used", False)

    @_consumed.setter
    def _consumed(self, used: Any) -> None:
        self._used = used

    @property
    def weak_type(self) -> NoReturn:
        raise AttributeError("random keys have no weak_type")

    @property
    def _base_array(self) -> ArrayImpl:
        """The words of the keys, in the same memory."""
        sig = self._sig
        return ArrayImpl(self._raw, signature(physical(sig.aval), sig.sharding, sig.committed))

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object: the key array has rank 0")
        return self.shape[0]

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
        return key_array, (self._impl, self._base_array)


_METHODS = """
    __array_namespace__ all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate
    cumprod cumsum diagonal dot item max mean min nonzero prod ptp repeat round searchsorted sort std sum to_device
    trace var view
"""
_PROPERTIES = {
    **dict.fromkeys("imag mT real".split(), NotImplementedError),
    **dict.fromkeys(
        "__dlpack__ __dlpack_device__ clone format is_ready platform tobytes tolist traceback".split(), AttributeError
    ),
}
for _name in (*_METHODS.split(), *_PROPERTIES):
    setattr(PRNGKeyArray, _name, _Refused(_name, _PROPERTIES.get(_name)))


def key_array(impl: Any, words: ArrayImpl) -> PRNGKeyArray:
    """The keys of a generator whose words these are, in the same memory."""
    sig, suffix = words._sig, len(impl.key_shape)
    aval = ShapedArray(sig.shape[: len(sig.shape) - suffix], dtypes.KeyType(impl))
    return PRNGKeyArray(words._raw, signature(aval, sig.sharding, sig.committed))


extended_arrays[dtypes.prng_key] = PRNGKeyArray
types.register_value_type(PRNGKeyArray, lambda x: x._sig.aval)
