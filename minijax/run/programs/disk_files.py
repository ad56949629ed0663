"""Files of the disk cache: written atomically, read only if they are intact and owned by the user."""

import contextlib
import os
import stat
import struct
import time
from typing import Any

from minijax.base.lazy import defer

hashlib = defer("hashlib")

# A file: its format, its key, a checksum of the other fields but the format, the compile time, the executable.
FORMAT = b"minijax program 3\n"
HEADER = struct.Struct(f"<{len(FORMAT)}s32s32sd")
SUFFIX = "-minijax"
_TEMPORARY = ".tmp"
_ABANDONED = 3600.0  # the age in seconds at which a temporary file counts as abandoned


def checksum(key: bytes, seconds: float, data: Any) -> bytes:
    """The checksum of a file with that key and these contents."""
    whole = hashlib.sha256(key + struct.pack("<d", seconds))
    whole.update(data)
    return whole.digest()


def read(path: str, key: bytes) -> tuple[float, bytes]:
    """The compile time of a program in seconds, and its serialized executable.

    Raises FileNotFoundError if the file is missing, PermissionError or ValueError if it cannot be trusted.
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
            os.utime(file)  # `shrink` deletes the least recently used files first
    finally:
        os.close(file)
    if len(content) < HEADER.size:
        raise ValueError(f"truncated to {len(content)} bytes")
    form, stored_key, stored_sum, seconds = HEADER.unpack_from(content)
    data = content[HEADER.size :]
    if form != FORMAT or stored_key != key:
        raise ValueError("it belongs to another program or version")
    if stored_sum != checksum(key, seconds, data):
        raise ValueError("the checksum is not that of the content")
    return seconds, data


def seconds_of_latest(folder: str, prefix: str) -> float | None:
    """The compile time of the latest program whose name consists of `prefix` and a key; None without such a file."""
    length = len(prefix) + 64 + len(SUFFIX)
    try:
        with os.scandir(folder) as files:
            found = [f for f in files if f.name.startswith(prefix) and len(f.name) == length]
            latest = max(found, key=lambda file: file.stat(follow_symlinks=False).st_mtime, default=None)
        if latest is None or not latest.is_file(follow_symlinks=False):
            return None
        with open(latest.path, "rb") as stream:
            form, _, _, seconds = HEADER.unpack(stream.read(HEADER.size))
    except (OSError, struct.error):
        return None
    return seconds if form == FORMAT else None


def write(path: str, key: bytes, seconds: float, data: bytes) -> None:
    """Writes a file atomically: concurrent readers see the previous file."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    temporary = os.path.join(folder, f".{os.urandom(8).hex()}{SUFFIX}{_TEMPORARY}")
    # No fsync: the checksum detects a file that was truncated by a crash of the machine.
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
    """Deletes the least recently used entries until the others fit, and temporary files of killed writers."""
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
