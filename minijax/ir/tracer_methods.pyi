"""Tracers have what arrays have, set at run time by `minijax.numpy.methods`."""

from minijax.run.arrays.array_methods import ArrayMethods as ArrayMethods
