"""Creates, splits and converts random keys: typed keys, and the legacy raw keys of uint32 words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.base import config, dims, dtypes, errors
from minijax.base.source import boundary, hide_frames
from minijax.composed import random
from minijax.ir.types import is_value, typeof, unwrapped
from minijax.primitives.convert import convert
from minijax.primitives.elementwise import add
from minijax.primitives.families import scalar_like
from minijax.run.arrays.array import Array, ArrayLike


@dataclass(frozen=True, repr=False, slots=True)
class PRNGSpec:
    """Names a PRNG implementation that is not registered by name."""

    _impl: random.PRNGImpl

    def __repr__(self):
        return f"PRNGSpec({self._impl.name!r})"

    def __str__(self):
        return str(self._impl)


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Callable, split: Callable, random_bits: Callable,
                     fold_in: Callable, name: str = "<unnamed>", tag: str = "?") -> PRNGSpec:  # fmt: skip
    """Defines a PRNG implementation, to be passed as `impl`; see `PRNGImpl` for the functions."""
    return PRNGSpec(random.PRNGImpl(key_shape, seed, split, random_bits, fold_in, name, tag))


def random_seed(seeds: Any, impl: random.PRNGImpl) -> Array:
    """Keys seeded by an array of integers."""
    seeds = np.int64(seeds) if isinstance(seeds, int) else seeds
    offset = config.random_seed_offset.value
    return random.random_seed_p.bind(add(seeds, scalar_like(seeds, offset)) if offset else seeds, impl=impl)


def seed_with_impl(impl: random.PRNGImpl, seed: Any) -> Array:
    """As `random_seed`, with the PRNG implementation first."""
    return random_seed(seed, impl)


def resolve_impl(spec: Any) -> random.PRNGImpl:
    """The PRNG implementation given by a name, a key dtype or a `PRNGSpec`; by default the configured one."""
    if spec is None:
        spec = config.default_prng_impl.value
    if isinstance(spec, random.PRNGImpl):
        return spec
    if isinstance(spec, PRNGSpec | dtypes.KeyType):
        return spec._impl
    if not isinstance(spec, str):
        raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")
    if spec not in random.NAMED_IMPLS:
        raise ValueError(f'unrecognized PRNG implementation "{spec}". There are: {", ".join(random.NAMED_IMPLS)}')
    return random.NAMED_IMPLS[spec]


def is_key(x: Any) -> bool:
    """Returns whether `x` is an array of typed keys."""
    return is_value(x) and isinstance(getattr(typeof(x), "dtype", None), dtypes.KeyType)


# ---- keys from seeds and words ----------------------------------------------------------------------


def _seeded(name: str, seed: Any, impl: random.PRNGImpl) -> Any:
    seed = unwrapped(seed)
    if is_key(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if seed is None:
        raise ValueError(f"{name}: None is not a valid seed")
    if isinstance(seed, int):
        seed = np.int64(seed)
    elif not is_value(seed):
        seed = np.asarray(seed)
    aval = typeof(seed)
    if aval.shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape {aval.shape} != (). "
            "Use jax.vmap for batching"
        )
    if not np.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}. Convert it with `int`.")
    return random_seed(seed, impl)


def key(seed: int | ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """Creates a random key from an integer seed.

    Keys are the state of random numbers: a function of `jax.random` called twice with one key returns the same numbers.
    Use each key once, and make new keys by `jax.random.split` or `jax.random.fold_in`. This key is a scalar array of a
    dtype of its own, such as `key<fry>`, which arithmetic does not accept. `jax.random.PRNGKey` makes the older kind.

    Args:
        seed: An integer scalar, which may be traced. Of a number of 64 bits, the upper bits count with
            `jax_enable_x64` only.
        impl: The name of a generator, `"threefry2x32"`, `"rbg"` or `"unsafe_rbg"`. By default, that of the option
            `jax_default_prng_impl`.
        dtype: The dtype of keys, in place of `impl`.

    Returns:
        An array of shape () with a key dtype.

    Raises:
        TypeError: If the seed is not a scalar integer.
        ValueError: If both `impl` and `dtype` are given, or the generator is unknown.

    See also: `jax.random.split`, `jax.random.fold_in`, `jax.random.key_data`.

    Example:
        >>> key = jax.random.key(0)
        >>> key.shape, str(key.dtype)
        ((), 'key<fry>')
        >>> float(jax.random.normal(key)) == float(jax.random.normal(key))
        True
    """
    return _seeded("key", seed, _impl_of("key", impl, dtype))


@boundary
def _impl_of(name: str, impl: Any, dtype: Any) -> random.PRNGImpl:
    if impl is not None and dtype is not None:
        raise ValueError(f"{name}: Cannot specify both `impl` and `dtype`")
    return resolve_impl(impl if dtype is None else dtype)


def PRNGKey(seed: int | ArrayLike, *, impl: Any = None) -> Array:
    """Creates a raw random key, an array of uint32 words, from an integer seed.

    `jax.random.key` makes typed keys, which new programs should prefer: nobody can add to them by mistake. All
    functions of `jax.random` accept both kinds, and return keys of the kind that they got.

    Args:
        seed: An integer scalar, which may be traced.
        impl: The name of a generator. By default, that of the option `jax_default_prng_impl`.

    Returns:
        An array of uint32; for the default generator, of shape (2,). If the option `jax_enable_custom_prng` is set, a
        typed key.

    Raises:
        TypeError: If the seed is not a scalar integer.

    Example:
        >>> jax.random.PRNGKey(42)
        Array([ 0, 42], dtype=uint32)
        >>> print(jax.random.normal(jax.random.PRNGKey(42)) == jax.random.normal(jax.random.key(42)))
        True
    """
    typed = _seeded("PRNGKey", seed, resolve_impl(impl))
    return typed if config.enable_custom_prng.value else random.random_unwrap_p.bind(typed)


def key_dtype(impl_spec: Any = None) -> dtypes.KeyType:
    """Returns the dtype of the typed keys of a generator, by default of the configured one.

    Example:
        >>> jax.random.key_dtype("rbg") == jax.random.key(0, impl="rbg").dtype
        True
    """
    return dtypes.KeyType(resolve_impl(impl_spec))


def wrap_key_data(key_bits_array: Array, *, impl: Any = None, dtype: Any = None) -> Array:
    """Creates typed keys from their uint32 words; the inverse of `jax.random.key_data`.

    Raises TypeError if the words have another dtype, or another last axis than the generator needs.

    Example:
        >>> data = jax.random.key_data(jax.random.key(7))
        >>> bool(jax.random.wrap_key_data(data) == jax.random.key(7))
        True
    """
    impl = _impl_of("wrap_key_data", impl, dtype)
    random.check_words(key_bits_array, impl)
    return random.random_wrap_p.bind(key_bits_array, impl=impl)


# ---- what functions of keys accept ------------------------------------------------------------------

_LEGACY = (
    "Legacy uint32 key array passed as key to jax.random function. "
    "Please create keys using jax.random.key(). "
    'If use of a raw key array was intended, set jax_legacy_prng_key="allow".'
)
_LegacyState = config.LegacyPrngKeyState


def as_keys(keys: Any, warn: bool = False) -> tuple[Array, bool]:
    """(typed keys, whether `keys` were raw words). Raises TypeError if `keys` are not keys."""
    try:
        if is_key(keys) and isinstance(keys, Array):
            return keys, False
        if is_key(keys) or not is_value(keys):
            raise TypeError(f"unexpected PRNG key type {type(keys)}. Make a key with jax.random.key(seed).")
        impl = resolve_impl(None)
        random.check_words(keys, impl)
        if warn and config.legacy_prng_key.value is not _LegacyState.ALLOW:
            if config.legacy_prng_key.value is _LegacyState.ERROR:
                raise ValueError(_LEGACY)
            errors.warn(_LEGACY)
        return random.random_wrap_p.bind(keys, impl=impl), True
    except Exception as error:
        hide_frames(error)
        raise


@boundary
def single_key(name: str, key: Any) -> tuple[Array, bool]:
    """(typed key, whether `key` was raw words). Raises ValueError for an array of keys."""
    typed, raw = as_keys(key, warn=True)
    if typeof(typed).shape:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape {typeof(key).shape} != (). "
            "Use jax.vmap for batching."
        )
    return typed, raw


def _like(keys: Array, raw: bool) -> Array:
    return random.random_unwrap_p.bind(keys) if raw else keys


# ---- keys from keys ---------------------------------------------------------------------------------


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """Creates new keys from one key, which should not be used afterwards.

    The new keys are independent of each other and of numbers drawn with other keys.

    Args:
        key: A typed or a raw key; not an array of keys, for which `jax.vmap` serves.
        num: The number of new keys, by default 2, or a shape.

    Returns:
        An array of keys of shape `(num,)`, or of the shape `num`. Raw keys have one more axis, for their words.

    Raises:
        ValueError: If `key` is an array of several keys.

    See also: `jax.random.fold_in`.

    Example:
        >>> key, subkey = jax.random.split(jax.random.key(0))
        >>> x = jax.random.normal(subkey, (3,))
        >>> jax.random.split(key, 4).shape
        (4,)
    """
    key, raw = single_key("split", key)
    shape = dims.canonical_shape(num if isinstance(num, tuple | list) else (num,))
    return _like(random.random_split_p.bind(key, shape=shape), raw)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Creates a new key from a key and an integer.

    Use it to derive a key for each step of a loop, or for each device, without handing keys around.

    Args:
        key: A typed or a raw key.
        data: An integer scalar of 32 bits, which may be traced.

    Returns:
        A key of the kind of `key`. Different integers give independent keys.

    Raises:
        TypeError: If `data` is not a scalar.
        ValueError: If `key` is an array of several keys.

    Example:
        >>> key = jax.random.key(0)
        >>> draws = [float(jax.random.uniform(jax.random.fold_in(key, step))) for step in range(3)]
        >>> len(set(draws))
        3
    """
    key, raw = single_key("fold_in", key)
    data = unwrapped(data)
    if data is None:
        raise ValueError("fold_in: None is not a valid value for data, which is an integer")
    if isinstance(data, bool | int | float | np.generic | str):
        data = np.uint32(data)
    shape = typeof(data).shape
    if shape:
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {shape} != (). Use jax.vmap for batching."
        )
    return _like(random.random_fold_in_p.bind(key, convert(data, random.UINT32)), raw)


def key_data(keys: ArrayLike) -> Array:
    """Returns the uint32 words of keys; the words are the last axis.

    Example:
        >>> jax.random.key_data(jax.random.key(7))
        Array([0, 7], dtype=uint32)
    """
    return random.random_unwrap_p.bind(as_keys(keys)[0])


def key_impl(keys: ArrayLike) -> str | PRNGSpec:
    """Returns the generator of keys: its name if it is registered, else a `PRNGSpec`.

    Example:
        >>> jax.random.key_impl(jax.random.key(0))
        'threefry2x32'
    """
    impl = typeof(as_keys(keys)[0]).dtype._impl
    return impl.name if random.NAMED_IMPLS.get(impl.name) == impl else PRNGSpec(impl)


def clone(key: Any) -> Array:
    """Copies a key; the key-reuse checker counts the copy as unused.

    Example:
        >>> key = jax.random.key(7)
        >>> bool(jax.random.clone(key) == key)
        True
    """
    return random.random_clone_p.bind(key)
