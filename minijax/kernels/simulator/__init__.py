"""Simulates TPUs that run kernels: their memories, copies, semaphores, cores and links."""
