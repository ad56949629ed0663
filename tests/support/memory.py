"""Memory of the process that runs the tests: when it has grown, the programs and traces of both sides are dropped.

They are hardly used again by later tests, and a process that keeps them grows to several gigabytes.
"""

import ctypes
import gc
import os
import sys
from pathlib import Path

# Dropped more often, programs that tests share are compiled again; more seldom, a run with two processes takes more memory.
GROWTH = 600 * 2**20

_floor = 0


def resident() -> int:
    """Returns the bytes of the process that are in memory, or 0 where the system has no /proc."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


def drop_after_growth() -> None:
    """Drops what both sides keep, if the process has grown since it was dropped last."""
    global _floor
    if resident() - _floor > GROWTH:
        drop()
        _floor = resident()


def drop() -> None:
    """Empties the caches of both sides, and returns free memory to the system."""
    for name in ("jax", "minijax"):
        if name in sys.modules:
            sys.modules[name].clear_caches()
    gc.collect()
    # The C library keeps freed memory for itself: half of what the programs took.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
