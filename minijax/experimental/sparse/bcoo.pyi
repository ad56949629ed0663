# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.sparse.bcoo_array import BCOO as BCOO
from minijax.experimental.sparse.bcoo_array import BCOOProperties as BCOOProperties
from minijax.experimental.sparse.bcoo_array import Buffer as Buffer
from minijax.experimental.sparse.bcoo_array import CUSPARSE_DATA_DTYPES as CUSPARSE_DATA_DTYPES
from minijax.experimental.sparse.bcoo_array import CUSPARSE_INDEX_DTYPES as CUSPARSE_INDEX_DTYPES
from minijax.experimental.sparse.bcoo_dense import bcoo_extract as bcoo_extract
from minijax.experimental.sparse.bcoo_dense import bcoo_extract_p as bcoo_extract_p
from minijax.experimental.sparse.bcoo_dense import bcoo_fromdense as bcoo_fromdense
from minijax.experimental.sparse.bcoo_dense import bcoo_fromdense_p as bcoo_fromdense_p
from minijax.experimental.sparse.bcoo_dense import bcoo_todense as bcoo_todense
from minijax.experimental.sparse.bcoo_dense import bcoo_todense_p as bcoo_todense_p
from minijax.experimental.sparse.bcoo_dot import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general as bcoo_dot_general
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general_p as bcoo_dot_general_p
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from minijax.experimental.sparse.bcoo_dot import bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p
from minijax.experimental.sparse.bcoo_dot import bcoo_multiply_dense as bcoo_multiply_dense
from minijax.experimental.sparse.bcoo_dot import bcoo_multiply_sparse as bcoo_multiply_sparse
from minijax.experimental.sparse.bcoo_dot import bcoo_spdot_general_p as bcoo_spdot_general_p
from minijax.experimental.sparse.bcoo_layout import bcoo_eliminate_zeros as bcoo_eliminate_zeros
from minijax.experimental.sparse.bcoo_layout import bcoo_sort_indices as bcoo_sort_indices
from minijax.experimental.sparse.bcoo_layout import bcoo_sort_indices_p as bcoo_sort_indices_p
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates as bcoo_sum_duplicates
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from minijax.experimental.sparse.bcoo_layout import bcoo_transpose as bcoo_transpose
from minijax.experimental.sparse.bcoo_layout import bcoo_transpose_p as bcoo_transpose_p
from minijax.experimental.sparse.bcoo_layout import bcoo_update_layout as bcoo_update_layout
from minijax.experimental.sparse.bcoo_shapes import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from minijax.experimental.sparse.bcoo_shapes import bcoo_concatenate as bcoo_concatenate
from minijax.experimental.sparse.bcoo_shapes import bcoo_dynamic_slice as bcoo_dynamic_slice
from minijax.experimental.sparse.bcoo_shapes import bcoo_gather as bcoo_gather
from minijax.experimental.sparse.bcoo_shapes import bcoo_reduce_sum as bcoo_reduce_sum
from minijax.experimental.sparse.bcoo_shapes import bcoo_reshape as bcoo_reshape
from minijax.experimental.sparse.bcoo_shapes import bcoo_rev as bcoo_rev
from minijax.experimental.sparse.bcoo_shapes import bcoo_slice as bcoo_slice
from minijax.experimental.sparse.bcoo_shapes import bcoo_squeeze as bcoo_squeeze

__all__ = [
    "BCOO", "BCOOProperties", "Buffer", "CUSPARSE_DATA_DTYPES", "CUSPARSE_INDEX_DTYPES", "bcoo_broadcast_in_dim",
    "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_p",
    "bcoo_dot_general_sampled", "bcoo_dot_general_sampled_p", "bcoo_dynamic_slice", "bcoo_eliminate_zeros",
    "bcoo_extract", "bcoo_extract_p", "bcoo_fromdense", "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices",
    "bcoo_sort_indices_p", "bcoo_spdot_general_p", "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_sum_duplicates_p",
    "bcoo_todense", "bcoo_todense_p", "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout"
]
