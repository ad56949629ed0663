# The names of this module's table, written by tests/write_stubs.py.

from minijax.composed.random import rbg_prng_impl as rbg_prng_impl
from minijax.composed.random import threefry_prng_impl as threefry_prng_impl
from minijax.composed.random import unsafe_rbg_prng_impl as unsafe_rbg_prng_impl
from minijax.primitives.random_bits import threefry2x32_p as threefry2x32_p
from minijax.primitives.random_bits import threefry_2x32 as threefry_2x32
from minijax.random.keys import define_prng_impl as define_prng_impl
from minijax.random.keys import random_seed as random_seed
from minijax.random.keys import seed_with_impl as seed_with_impl

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_2x32",
    "threefry_prng_impl", "unsafe_rbg_prng_impl"
]
