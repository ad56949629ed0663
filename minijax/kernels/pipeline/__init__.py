"""Pipelines within kernels: loops that copy blocks while a body runs."""
