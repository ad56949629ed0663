# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.array_serialization.tensorstore_impl import (async_deserialize as async_deserialize,
    async_serialize as async_serialize, combine_kvstores as combine_kvstores, estimate_read_memory_footprint as
    estimate_read_memory_footprint, get_tensorstore_spec as get_tensorstore_spec, is_tensorstore_spec_leaf as
    is_tensorstore_spec_leaf, merge_nested_ts_specs as merge_nested_ts_specs)
