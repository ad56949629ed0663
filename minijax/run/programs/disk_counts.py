"""Counts of the programs that processes loaded from the on-disk cache, and of those that they stored in it."""

import atexit
import contextlib
import os
from collections import Counter

_LONGEST = 1 << 16  # bytes of a file of counts, of some thousands of processes; then its older half goes
_counts: dict[str, Counter] = {}  # of this process, by folder
_process = 0


def note(folder: str, kind: str) -> None:
    """Counts a program of a folder; `kind` is "loaded" or "stored"."""
    global _process
    if _process != os.getpid():  # a fork does not count for its parent
        _counts.clear()
        if not _process:
            atexit.register(_save)
        _process = os.getpid()
    _counts.setdefault(folder, Counter())[kind] += 1


def read(folder: str) -> tuple[int, int, int]:
    """The numbers of programs loaded and stored by the latest processes that used the folder, and of processes."""
    rows = []
    with contextlib.suppress(OSError), open(_path(folder), encoding="ascii", errors="replace") as lines:
        rows = [row for row in map(str.split, lines) if len(row) == 2 and all(map(str.isdecimal, row))]
    loaded, stored = (sum([int(row[i]) for row in rows]) for i in (0, 1))
    return loaded, stored, len(rows)


def _path(folder: str) -> str:
    return os.path.join(folder, "counts")


def _save() -> None:
    if _process != os.getpid():
        return
    for folder, counts in _counts.items():
        with contextlib.suppress(OSError):
            # One write in append mode, so that processes that end together do not mix their lines.
            file = os.open(_path(folder), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with open(file, "rb+") as stream:
                if os.fstat(file).st_size > _LONGEST:
                    kept = stream.read()[_LONGEST // 2 :].partition(b"\n")[2]
                    stream.truncate(0)
                    stream.write(kept)
                stream.write(b"%d %d\n" % (counts["loaded"], counts["stored"]))
