"""The on-disk cache of compiled programs; entries are loaded only if they are intact and owned by the user."""

import contextlib
import itertools
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _hlo, version

from minijax.base import config, errors, monitoring
from minijax.base.cache import cache
from minijax.base.lazy import defer
from minijax.run.clients import client
from minijax.run.programs import disk_counts, disk_files, disk_trail
from minijax.run.programs.custom_calls import ensure_custom_calls

hashlib = defer("hashlib")

# ---- options ----------------------------------------------------------------------------------------

_OWN_SIZE = 1 << 30  # the size limit of the default folder
_OWN_THRESHOLD = 0.1  # in seconds
_reported: set[Any] = set()  # warnings already given, and whether the task event was reported
_unwritable: set[str] = set()  # folders to which writing failed
_trails: dict[tuple[str, Any], disk_trail.Trail] = {}  # by folder and client
_lock = threading.Lock()


def reset_cache() -> None:
    """Forgets which folders failed, so that they are tried, and warned of, again; keeps the entries."""
    _reported.clear()
    _unwritable.clear()
    while _trails:
        _trails.popitem()[1].close()


def set_cache_dir(path: str | None) -> None:
    """Sets the folder of compiled programs, `jax_compilation_cache_dir`; None means the default folder.

    Raises ValueError if it is neither a string nor None.
    """
    config.compilation_cache_dir.set(path)


class CacheVerificationError(RuntimeError):
    """Raised if a stored program differs from the one its module compiles to."""


def _own_folder() -> str | None:
    home = os.environ.get("XDG_CACHE_HOME", "")
    home = home if os.path.isabs(home) else os.path.expanduser("~/.cache")
    return os.path.join(home, "minijax") if os.path.isabs(home) else None


def _folder() -> str | None:
    """The folder of the entries; None if the cache is disabled."""
    folder = config.compilation_cache_dir.value
    if folder is None:
        return _own_folder() if _limit() != 0 else None
    if "://" in folder:
        _warn_once(folder, f"jax_compilation_cache_dir: only local folders can hold compiled programs, not {folder}")
        return None
    return folder if folder and _limit() != 0 else None


def folder_in_use() -> str | None:
    """The folder in which compiled programs are kept; None if they are not."""
    return _folder() if config.enable_compilation_cache.value else None


def _limit() -> int:
    """The maximum total size of the entries in bytes; negative if unbounded."""
    size = config.compilation_cache_max_size
    return _OWN_SIZE if config.compilation_cache_dir.value is None and not size.is_set else size.value


def _threshold() -> float:
    seconds = config.persistent_cache_min_compile_time_secs
    return seconds.value if seconds.is_set else _OWN_THRESHOLD


def note_request() -> None:
    """Reports that a program is requested, and once whether this process uses the on-disk cache."""
    enabled = config.enable_compilation_cache.value
    if "task" not in _reported:
        _reported.add("task")
        monitoring.record_event(monitoring.CACHE_TASK if enabled else monitoring.CACHE_DISABLED)
    if enabled:
        monitoring.record_event(monitoring.CACHE_REQUEST)


# XLA's own caches, only on GPUs: the name in jax's option, also XLA's option for the path -> further XLA options.
_XLA_CACHES = {
    "xla_gpu_kernel_cache_file": (("xla_gpu_enable_llvm_module_compilation_parallelism", True),),
    "xla_gpu_per_fusion_autotune_cache_dir": (),
}


def xla_caches() -> tuple[tuple[str, Any], ...]:
    """XLA's options for its own caches in the folder that the user chose; empty for the default folder."""
    names = config.persistent_cache_enable_xla_caches.value or "none"
    if config.compilation_cache_dir.value is None or not config.enable_compilation_cache.value:
        return ()
    folder, chosen = _folder(), _XLA_CACHES if names == "all" else names.split(",")
    if folder is None:
        return ()
    paths = [((name, os.path.join(folder, name)), *more) for name, more in _XLA_CACHES.items() if name in chosen]
    return tuple([option for options in paths for option in options])


# ---- keys -------------------------------------------------------------------------------------------

# Lines of /proc/cpuinfo that differ between processors or over time.
_VOLATILE = ("processor", "cpu MHz", "bogomips", "BogoMIPS", "apicid", "initial apicid", "core id", "physical id")


def _processor() -> str:
    """The properties of this machine's processor that compiled programs depend on: features and thread count."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in itertools.takewhile(str.strip, file) if not line.startswith(_VOLATILE)]
    except OSError:
        lines = [platform.processor(), platform.node()]
    return f"{threads} {platform.machine()} {''.join(lines)}"


@cache(maxsize=64)
def _environment_hash(devices: tuple) -> bytes:
    """The hash of everything that compiled code depends on, besides the program and its options."""
    backend = devices[0].client
    parts = [
        disk_files.FORMAT, version.__version__, backend.platform, backend.platform_version, backend.process_index(),
        [(device.id, device.device_kind) for device in devices], os.environ.get("XLA_FLAGS"),
        os.environ.get("LIBTPU_INIT_ARGS"), _processor() if backend.platform == "cpu" else "",
    ]  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).digest()


# ---- programs ---------------------------------------------------------------------------------------

_UNUSUAL = re.compile(r"[^\w-]", re.ASCII)


_NAMES = 32  # the length of the hash that precedes an executable


def _load(folder: str, label: str, key: bytes, devices: tuple, options: Any) -> tuple[float, bytes, Any]:
    """The compile time of a stored program, the hash of its module with names, and its executable."""
    seconds, data = disk_files.read(os.path.join(folder, label + disk_files.SUFFIX), key)
    names, data = data[:_NAMES], data[_NAMES:]
    ensure_custom_calls(data.decode("latin-1"))
    return seconds, names, devices[0].client.deserialize_executable(data, client.device_list(devices), options, [])


def _trail(folder: str, backend: Any) -> disk_trail.Trail | None:
    """The trail of this command; None for an interactive session, or if no second processor can load ahead."""
    trail = _trails.get((folder, backend))
    if trail is None and len(sys.orig_argv) > 1 and not hasattr(sys, "ps1") and (os.cpu_count() or 1) > 1:
        with _lock:
            trail = _trails.get((folder, backend))
            if trail is None:
                by_id = {device.id: device for device in backend.devices()}

                def load(step, options):
                    devices = tuple([by_id[number] for number in step.devices])
                    return _load(folder, step.label, step.key, devices, options)

                environment = _environment_hash(tuple(backend.devices()))
                trail = _trails[folder, backend] = disk_trail.Trail(folder, environment, load)
    return trail


def load_or_compile(
    name: str, names: Callable[[], bytes], key: Sequence[bytes], devices: tuple, options: Any, build: Callable[[], Any]
) -> tuple[bytes, Any]:
    """The hash of names and the executable, either stored or built, then stored if building took long.

    `key` identifies the program and its options. `names()`, the hash of the module with the operations' names and
    source locations, is part of the key only if an option requests it.
    """
    folder = folder_in_use()
    if folder is None:
        return names(), build()
    entry = _Entry(folder, name, names, key, devices)
    stored = entry.load(options)
    if stored is None:
        started = time.perf_counter()
        executable, own = build(), names()
        entry.store(own, executable, time.perf_counter() - started)
        return own, executable
    executable = stored[1]
    if config.compilation_cache_check_contents.value and _contents(executable) != _contents(build()):
        message = "jax_compilation_cache_check_contents: {} compiles to another program than {}"
        raise CacheVerificationError(message.format(name, entry.path))
    return stored


def load_stored(
    name: str, names: Callable[[], bytes], key: Sequence[bytes], devices: tuple, options: Any
) -> tuple[bytes, Any] | None:
    """The hash of names and the executable, if it is stored; the arguments are those of `load_or_compile`."""
    folder = folder_in_use()
    return None if folder is None else _Entry(folder, name, names, key, devices).load(options)


def _contents(executable: Any) -> list[str]:
    """The optimized HLO without the names of its operations."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_metadata = False
    return [module.to_string(options) for module in executable.hlo_modules()]


def _prefix(name: str) -> str:
    """The beginning of the labels of programs of that name."""
    return f"{_UNUSUAL.sub('_', name[:64])}-"


def seconds_of_latest(name: str) -> float | None:
    """The seconds that compiling the latest stored program of that name took; None without one."""
    folder = _folder() if config.enable_compilation_cache.value else None
    return None if folder is None else disk_files.seconds_of_latest(folder, _prefix(name))


class _Entry:
    """The entry of a program in a folder."""

    __slots__ = ("folder", "name", "key", "label", "devices", "step", "trail")

    def __init__(self, folder: str, name: str, names: Callable[[], bytes], key: Sequence[bytes], devices: tuple):
        self.folder, self.name, self.devices = folder, name, devices
        parts = [_environment_hash(devices), *key]
        if config.compilation_cache_include_metadata_in_key.value:
            parts.append(names())
        self.key = hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()
        self.label = f"{_prefix(name)}{self.key.hex()}"
        self.step = disk_trail.Step(self.label, tuple([device.id for device in devices]), key[1])
        self.trail = _trail(folder, devices[0].client)

    @property
    def path(self) -> str:
        return os.path.join(self.folder, self.label + disk_files.SUFFIX)

    def load(self, options: Any) -> tuple[bytes, Any] | None:
        """The hash of names and the stored executable; None if it is missing, or (with a warning) cannot be trusted."""
        started = time.perf_counter()
        try:
            prefetched = self.trail and self.trail.take(self.label)
            seconds, names, executable = prefetched or _load(self.folder, self.label, self.key, self.devices, options)
        except Exception as error:
            monitoring.log_disk_cache_miss(self.name, self.label)
            # A missing or inaccessible folder is just a miss here; writing an entry to it will report the problem.
            if os.access(self.folder, os.X_OK) and not isinstance(error, FileNotFoundError | NotADirectoryError):
                with contextlib.suppress(OSError):
                    os.unlink(self.path)
                self._warn("reading", error)
            return None
        if self.trail:
            self.trail.note(self.step)
        disk_counts.note(self.folder, "loaded")
        monitoring.log_disk_cache_hit(self.name, self.label, seconds, time.perf_counter() - started)
        return names, executable

    def store(self, names: bytes, executable: Any, seconds: float) -> None:
        """Writes the executable if it took long to compile; warns once of a folder that cannot be written."""
        if seconds < _threshold() or self.folder in _unwritable:
            return
        try:
            data = names + executable.serialize()
            limit, size = _limit(), disk_files.HEADER.size + len(data)
            if len(data) < config.persistent_cache_min_entry_size_bytes.value or 0 <= limit < size:
                return
            disk_files.write(self.path, self.key, seconds, data)
            disk_files.shrink(self.folder, limit)
        except Exception as error:
            _unwritable.add(self.folder)
            self._warn("writing", error)
            return
        if self.trail:
            self.trail.note(self.step)
            self.trail.leave()
        disk_counts.note(self.folder, "stored")
        monitoring.record_event(monitoring.CACHE_MISS)
        if config.compilation_cache_expect_pgle.value:
            errors.warn(
                f"PERSISTENT CACHE WRITE with key {self.label}, this is unexpected because "
                "JAX_COMPILATION_CACHE_EXPECT_PGLE is set."
            )

    def _warn(self, doing: str, error: Exception) -> None:
        if config.raise_persistent_cache_errors.value:
            raise error
        text = f"Error {doing} persistent compilation cache entry for '{self.name}'"
        _warn_once((doing, self.label), f"{text}: {type(error).__name__}: {error}")


def _warn_once(what: Any, text: str) -> None:
    if what not in _reported:
        errors.warn(text)
        _reported.add(what)
