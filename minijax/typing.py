"""jax.typing: annotations for arrays and dtypes."""

from minijax.base.dtypes import DTypeLike as DTypeLike
from minijax.run.arrays.array import ArrayLike as ArrayLike
