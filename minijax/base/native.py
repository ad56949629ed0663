"""Names used from jaxlib unchanged, and our own pytree registry: trees, tracebacks, weak caches, HLO shardings."""

from jaxlib import _hlo, _jax
from jaxlib.version import __version__
from jaxlib.weakref_lru_cache import weakref_lru_cache as weakref_lru_cache

JAXLIB_VERSION = __version__
JaxRuntimeError = _jax.JaxRuntimeError
Traceback = _jax.Traceback
approx_top_k_reduction_output_size = _jax.approx_top_k_reduction_output_size
replicated = _hlo.HloSharding.replicate
tiles_of = _hlo.HloSharding.from_proto

DictKey = _jax.pytree.DictKey
FlattenedIndexKey = _jax.pytree.FlattenedIndexKey
GetAttrKey = _jax.pytree.GetAttrKey
PyTreeDef = _jax.pytree.PyTreeDef
PyTreeRegistry = _jax.pytree.PyTreeRegistry
SequenceKey = _jax.pytree.SequenceKey
registry_all_leaves = _jax.pytree.all_leaves
registry_treedef_tuple = _jax.pytree.treedef_tuple

registry = PyTreeRegistry()
