"""Files of the disk cache: written whole or not at all, read only if they are whole and the user's own."""

import contextlib
import os
import stat
import struct
import time
from typing import Any

from minijax.base.lazy import defer

hashlib = defer("hashlib")

# A file: its format, its key, a checksum of all that follows the format but itself, seconds, the executable.
FORMAT = b"minijax program 3\n"
HEADER = struct.Struct(f"<{len(FORMAT)}s32s32sd")
SUFFIX = "-minijax"
_TEMPORARY = ".tmp"
_ABANDONED = 3600.0  # the age in seconds of a temporary file that nobody writes any more


def checksum(key: bytes, seconds: float, data: Any) -> bytes:
    """The checksum of a file of that key with these contents."""
    whole = hashlib.sha256(key + struct.pack("<d", seconds))
    whole.update(data)
    return whole.digest()


def read(path: str, key: bytes) -> tuple[float, bytes]:
    """How long a program took to compile, and its executable, serialized.

    Raises FileNotFoundError if there is none, PermissionError or ValueError if it is not to be trusted.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_uid != os.geteuid():
            raise PermissionError(f"owned by another user, {status.st_uid}")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"others may write it, mode {stat.S_IMODE(status.st_mode):o}")
        with open(file, "rb", closefd=False) as stream:
            content = stream.read()
        with contextlib.suppress(OSError):
            os.utime(file)  # the least recently used ones go first
    finally:
        os.close(file)
    if len(content) < HEADER.size:
        raise ValueError(f"truncated to {len(content)} bytes")
    form, stored_key, stored_sum, seconds = HEADER.unpack_from(content)
    data = content[HEADER.size :]
    if form != FORMAT or stored_key != key:
        raise ValueError("another program's, or of another version")
    if stored_sum != checksum(key, seconds, data):
        raise ValueError("the checksum is not that of the content")
    return seconds, data


def write(path: str, key: bytes, seconds: float, data: bytes) -> None:
    """Makes a file, all of it or none: who reads meanwhile sees the one before."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    temporary = os.path.join(folder, f".{os.urandom(8).hex()}{SUFFIX}{_TEMPORARY}")
    # Without fsync: what a crash of the machine cuts off, the checksum shows.
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as stream:
            stream.write(HEADER.pack(FORMAT, key, checksum(key, seconds, data), seconds) + data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def shrink(folder: str, limit: int) -> None:
    """Deletes the entries that were not used for longest until the others fit, and what killed writers left."""
    entries, now = [], time.time()
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):  # another process was faster
                status = file.stat(follow_symlinks=False)
                if file.name.endswith(SUFFIX):
                    entries.append((status.st_mtime, status.st_size, file.path))
                elif file.name.endswith(SUFFIX + _TEMPORARY) and now - status.st_mtime > _ABANDONED:
                    os.unlink(file.path)
    entries.sort(reverse=True)
    total = 0
    for _, size, path in entries:
        total += size
        if 0 <= limit < total:
            with contextlib.suppress(OSError):
                os.unlink(path)
