"""All programs that are compiled for accelerators: each module adds its own."""

from . import control, models, operations, sharded
from .registry import MACHINES, PROGRAMS, TPUS

__all__ = ["MACHINES", "PROGRAMS", "TPUS", "control", "models", "operations", "sharded"]
