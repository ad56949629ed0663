"""The scalar types `jnp.float32`, `jnp.int8`, ...: callables that create arrays, and are accepted as dtypes."""

from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.naming import known_as
from minijax.ir.types import offers_array, unwrapped
from minijax.numpy import creation
from minijax.run.arrays.array import Array


class _ScalarMeta(type):
    """The metaclass of the scalar types, which compare and hash like their dtypes' types."""

    dtype: np.dtype

    def __hash__(self):
        return hash(self.dtype.type)

    def __eq__(self, other):
        return self is other or self.dtype.type == other

    def __call__(self, x: Any) -> Any:
        return creation.asarray(x, dtype=self.dtype)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.dtype.type)


def _abstract(self, *args, **kwargs):
    raise NotImplementedError("scalar types cannot be instantiated")


def _scalar_type(name: str) -> Any:
    dtype = dtypes.BY_NAME[name]
    doc = f"A JAX scalar constructor of type {name}: its calls give arrays of rank 0 and of this dtype."
    kind = _ScalarMeta(name, (object,), {"dtype": dtype, "__init__": _abstract, "__doc__": doc})
    kind.__module__ = f"{__name__.partition('.')[0]}.numpy"
    return known_as(f"jax.numpy.{name}")(kind)


TYPES = {name: _scalar_type(name) for name in dtypes.BY_NAME}
globals().update(TYPES)
bool_ = TYPES["bool"]
uint, int_, float_, complex_ = TYPES["uint64"], TYPES["int64"], TYPES["float64"], TYPES["complex128"]
single, double, csingle, cdouble = TYPES["float32"], TYPES["float64"], TYPES["complex64"], TYPES["complex128"]


def isscalar(element: Any) -> bool:
    """Returns whether a value is a scalar.

    Unlike in NumPy, this is true for every array of rank 0, including traced ones.

    Example:
      >>> jnp.isscalar(1.0), jnp.isscalar(jnp.ones(1))
      (True, False)
    """
    if isinstance(element, Array | np.ndarray | np.generic) or offers_array(element):
        return np.ndim(unwrapped(element)) == 0
    return np.isscalar(element)
