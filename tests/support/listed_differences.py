"""Lists of known differences, which must not outlive the differences: an entry that no longer differs makes its test fail.

raising.py does the same for the cells that raise.
"""

from collections.abc import Callable, Collection, Iterable

import compare
import pytest


def idle_entries(entries: Iterable[str], cases: Collection[compare.Case], differ: Callable | None = None) -> list[str]:
    """The entries without a case that differs. A case belongs to an entry if its name starts with it.

    `differ` takes a case; by default, cases differ if their jaxprs do.
    """
    pytest.importorskip("jax")  # records hold what is equal
    differ = differ or jaxprs_differ
    return [e for e in entries if not any(differ(c) for c in cases if c.name.startswith(e))]


def jaxprs_differ(case: compare.Case) -> bool:
    """Returns whether the jaxprs of both sides are made, and differ."""
    try:
        compare.same_jaxpr(case.program, *case.args)
    except compare.Mismatch:
        return True
    except Exception:
        return False
    return False


def is_listed_difference(same: bool, entry: object, entries: Collection) -> str:
    """An empty string if a comparison has the outcome that the list promises; else what is wrong."""
    if same == (entry not in entries):
        return ""
    return f"{entry!r} is listed, and no longer differs" if same else f"{entry!r} differs, and is not listed"
