"""jax.experimental.random: a stateful random number generator."""

import dataclasses
import secrets
from collections.abc import Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import random
from minijax.base.faces import listing
from minijax.base.tree import register_dataclass
from minijax.composed.refs import addupdate, new_ref
from minijax.ir import state
from minijax.ir.refs import Ref
from minijax.ir.types import typeof
from minijax.primitives.structural import broadcast_shapes
from minijax.random.keys import is_key

__all__, __dir__ = listing(__name__, "StatefulPRNG stateful_rng")

Size = int | Sequence[int] | None


def _size(size: Size, *parameters: Any) -> Any:
    return broadcast_shapes(*(typeof(p).shape for p in parameters)) if size is None else size


@register_dataclass
@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A key and a reference that counts the draws from it: a pytree with the methods of NumPy's generators.

    Jitted functions and loops update the counter, whether the generator is an argument or closed over.
    """

    _base_key: Any
    _counter: Ref

    def __post_init__(self):
        if not is_key(self._base_key):
            raise ValueError(f"StatefulPRNG: Expected base_key to be a typed PRNG key; got {self._base_key}")
        if not isinstance(self._counter, Ref):
            raise ValueError(f"StatefulPRNG: Expected counter to be a scalar integer ref; got {self._counter}")

    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """A new key, or an array of them. Raises ValueError for a generator that has been split."""
        if typeof(self._base_key).shape:
            raise ValueError("key: cannot operate on split stateful generator; use it under vmap")
        key = random.fold_in(self._base_key, self._counter[...])
        addupdate(self._counter, ..., 1)
        return random.split(key, shape) if shape != () else key

    def random(self, size: Size = None, dtype: Any = float) -> Any:
        """Uniform numbers in [0, 1)."""
        return random.uniform(self.key(), () if size is None else size, dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Uniform numbers in [low, high)."""
        return random.uniform(self.key(), _size(size, low, high), dtype, low, high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Normal numbers with mean `loc` and standard deviation `scale`."""
        return loc + scale * random.normal(self.key(), _size(size, loc, scale), dtype)

    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int) -> Any:
        """Uniform integers in [low, high), or in [0, low) if `high` is None."""
        low, high = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _size(size, low, high), low, high, dtype)

    def spawn(self, n_children: int) -> list["StatefulPRNG"]:
        """A list of generators, independent of each other and of this one."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)] if n_children else []

    def split(self, num: int | Sequence[int]) -> "StatefulPRNG":
        """`num` generators as one generator whose leaves have leading axes, to map over with vmap."""
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(jnp.zeros(typeof(keys).shape, int)))


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator with this seed, or with a seed from the operating system. `impl` is as for `jax.random.key`."""
    if seed is None:
        if not state.is_eager():
            raise TypeError(
                "When used within transformed code, jax.experimental.random.stateful_rng() requires an explicit seed "
                "to be set."
            )
        seed = secrets.randbits(32)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))
