"""The names of functions of BCOO that both the package and `sparse.bcoo` have, as tables of `Face`."""

BCOO_FUNCTIONS = """
minijax.experimental.sparse.bcoo_dense: bcoo_extract bcoo_extract_p bcoo_fromdense bcoo_fromdense_p bcoo_todense
    bcoo_todense_p
minijax.experimental.sparse.bcoo_dot: bcoo_conv_general_dilated bcoo_dot_general bcoo_dot_general_p
    bcoo_dot_general_sampled bcoo_dot_general_sampled_p bcoo_multiply_dense bcoo_multiply_sparse bcoo_spdot_general_p
minijax.experimental.sparse.bcoo_shapes: bcoo_broadcast_in_dim bcoo_concatenate bcoo_dynamic_slice bcoo_gather
    bcoo_reduce_sum bcoo_reshape bcoo_rev bcoo_slice bcoo_squeeze
minijax.experimental.sparse.bcoo_layout: bcoo_sort_indices bcoo_sort_indices_p bcoo_sum_duplicates
    bcoo_sum_duplicates_p bcoo_transpose bcoo_transpose_p bcoo_update_layout"""
