"""Kernels for users: attention, norms and products, for GPUs by Triton and for TPUs by Mosaic."""
