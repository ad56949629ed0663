# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.dtypes import TypePromotionError as TypePromotionError
from minijax.base.dtypes import canonicalize_dtype as canonicalize_dtype
from minijax.base.dtypes import extended as extended
from minijax.base.dtypes import finfo as finfo
from minijax.base.dtypes import iinfo as iinfo
from minijax.base.dtypes import issubdtype as issubdtype
from minijax.base.dtypes import itemsize_bits as itemsize_bits
from minijax.base.dtypes import prng_key as prng_key
from minijax.base.dtypes import result_type as result_type
from minijax.base.dtypes import scalar_type_of as scalar_type_of
from ml_dtypes import bfloat16 as bfloat16
from numpy.dtypes import VoidDType

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "itemsize_bits", "prng_key", "result_type", "scalar_type_of"
]

float0: VoidDType
