"""Compiles StableHLO modules to loaded programs, each once; loaded programs can be queried."""

import contextlib
import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo, _jax, xla_client as xc

from minijax.base import config
from minijax.base.cache import WeakValues, cache, key
from minijax.base.lazy import defer
from minijax.base.util import ByKey
from minijax.hlo.custom_call import HostTransfers
from minijax.hlo.divisions import with_guarded_divisions
from minijax.hlo.flat_bits import with_flat_bits
from minijax.hlo.locations import Located
from minijax.hlo.simple import is_simple
from minijax.hlo.sizes import has_symbolic_sizes
from minijax.run.clients import client, jaxlib_versions
from minijax.run.programs import bindings
from minijax.run.programs.custom_calls import ensure_custom_calls
from minijax.run.programs.host_calls import add_advice, on_channels
from minijax.run.watching import hlo_transforms
from minijax.run.watching.profiler import TraceAnnotation
from minijax.run.watching.progress import progress

disk_cache = defer("minijax.run.programs.disk_cache")
hashlib = defer("hashlib")
JaxRuntimeError = _jax.JaxRuntimeError

# ---- counting ---------------------------------------------------------------------------------------

_compile_total = [0]
_count_lock = threading.Lock()
unfinished: weakref.WeakSet[Any] = weakref.WeakSet()  # programs that threads compile


def finish() -> None:
    """Waits until what threads compile is compiled."""
    for program in list(unfinished):
        with contextlib.suppress(Exception):  # which is raised where a result is needed
            program.loaded()


def compile_count() -> int:
    """The number of programs that XLA has compiled in this process."""
    finish()
    return _compile_total[0]


# ---- options ----------------------------------------------------------------------------------------

# Options of jax that are not fields of XLA's debug options, and XLA's defaults for them.
_BUILD_OPTIONS = {
    "exec_time_optimization_effort": 0.0,
    "memory_fitting_effort": 0.0,
    "optimization_level": "UNKNOWN",
    "memory_fitting_level": "O2",
}
_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}
_UNOPTIMIZED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def base_options(replicas: int, partitions: int, ids: np.ndarray | None) -> xc.CompileOptions:
    """XLA's compile options from `jax.config`; `ids` are the devices' ids, one row for each replica."""
    compile_options = xc.CompileOptions()
    build = compile_options.executable_build_options
    compile_options.num_replicas = build.num_replicas = replicas
    compile_options.num_partitions = build.num_partitions = partitions
    if ids is not None:
        compile_options.device_assignment = xc.DeviceAssignment.create(ids)
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = config.state().use_shardy_partitioner
    for name, default in _BUILD_OPTIONS.items():
        value = config.option(name).value
        if value is not None and value != default:
            jaxlib_versions.set_option(build, name, _LEVELS.get(value, value))
    return compile_options


Open = tuple[tuple[bool, ...], tuple[bool, ...]]  # the arguments and the results whose shardings XLA chooses
CLOSED: Open = (), ()


def make_options(
    devices: Sequence[Any], options: dict[str, Any] | None = None, is_open: Open = CLOSED
) -> xc.CompileOptions:
    """XLA's compile options for a program on these devices; `options` are jax's `compiler_options`."""
    compile_options = base_options(1, len(devices), np.array([[device.id for device in devices]]))
    build = compile_options.executable_build_options
    if is_open != CLOSED:
        build.allow_spmd_sharding_propagation_to_parameters = list(is_open[0])
        build.allow_spmd_sharding_propagation_to_output = list(is_open[1])
    overrides = dict(_UNOPTIMIZED) if config.disable_most_optimizations.value else {}
    for name, value in (options or {}).items():
        if name in _BUILD_OPTIONS:
            jaxlib_versions.set_option(build, name, value)
        else:
            hash(value)
            overrides[name] = value
    if overrides:
        compile_options.env_option_overrides = list(overrides.items())
    return compile_options


def _check_types(text: str) -> None:
    # XLA does not support arrays of these types, and would end the process instead of raising an error.
    if "f6E2M3FN>" in text or "f6E3M2FN>" in text:
        raise JaxRuntimeError("INVALID_ARGUMENT: XLA does not support float6_e2m3fn and float6_e3m2fn")


_DEVICE_COUNT = "--xla_force_host_platform_device_count"


def quick_options(platform: str) -> dict[str, Any]:
    """XLA's options that compile a program in less than half of the time, without most optimizations.

    Empty if the user has set options of XLA in the environment, and on other platforms than CPUs.
    """
    flags = os.environ.get("XLA_FLAGS", "").replace(_DEVICE_COUNT, "")
    return {} if platform != "cpu" or "xla_" in flags else dict(jaxlib_versions.QUICK_TO_COMPILE)


def default_options(text: str, platform: str) -> dict[str, Any]:
    """XLA's options for a module, if the user gives none: the quick ones if its results do not depend on them."""
    options = quick_options(platform)
    return options if options and is_simple(text) else {}


# ---- compiling --------------------------------------------------------------------------------------

_UNPARSED = 12  # this many programs are passed to XLA as text

_STRINGS_AND_LOCATIONS = re.compile(
    r'("(?:[^"\\]|\\.)*")|\s*\bloc\((?:[^()"]|"(?:[^"\\]|\\.)*"|\((?:[^()"]|"(?:[^"\\]|\\.)*"|'
    r'\((?:[^()"]|"(?:[^"\\]|\\.)*")*\))*\))*\)'
)
_LOCATION_ALIAS = re.compile(r"^#loc\w*\s*=.*$\n?", re.MULTILINE)


def strip_locations(text: str) -> str:
    """A module without source locations: equal for modules with the same operations."""
    if "loc(" in text:
        text = _STRINGS_AND_LOCATIONS.sub(lambda m: m.group(1) or "", _LOCATION_ALIAS.sub("", text))
    return text.strip()


def hash_of(text: str) -> bytes:
    """The hash of a text."""
    return hashlib.sha256(text.encode()).digest()


def digest(text: str) -> bytes:
    """The hash of a module without source locations."""
    return hash_of(strip_locations(text))


@cache(maxsize=256)
def _prepared_options(devices, options, is_open, key, state, unoptimized, xla_caches=()) -> tuple[Any, bytes]:
    """Compile options and their serialization; `key` distinguishes equal values of different types.

    The paths of XLA's own caches are not in the serialization, since programs do not depend on them.
    """
    prepared = make_options(devices, dict(options), is_open)
    serialized = prepared.SerializeAsString()
    for name, value in xla_caches:
        jaxlib_versions.set_option(prepared.executable_build_options.debug_options, name, value)
    return prepared, serialized


class Source(ByKey):
    """A program to compile; two are equal if their modules without locations, devices and options are equal.

    `names`, the hash of the module with locations, distinguishes programs that must also keep their own names.
    """

    __slots__ = ("devices", "options", "name", "hashes")

    def __init__(self, text, devices, options=None, name="", names=b"", is_open=CLOSED):
        items = tuple((options or default_options(text, devices[0].platform)).items())
        xla_caches = disk_cache.xla_caches() if devices[0].platform == "gpu" else ()
        self.options, serialized = _prepared_options(
            devices, items, is_open, key(items), config.state(), config.disable_most_optimizations.value, xla_caches
        )
        self.hashes = digest(text), serialized, names
        self.identify(self.hashes, devices, hlo_transforms.state())
        self.devices, self.name = devices, name


# Weak, since an executable takes 200 KB or more. Some unused ones are kept, for programs that define the same
# functions again and again.
KEPT = 64
_loaded = WeakValues(keep=KEPT)


def backend_compile_and_load(
    backend: Any, module: Any, executable_devices: Any, options: Any, host_callbacks: Sequence[Any] = ()
) -> Any:
    """Compiles a module with XLA; other libraries replace this function by their own."""
    if not client.is_attached(executable_devices[0]):
        return backend.compile(module, executable_devices, options)
    callbacks = [on_channels(f, backend) if isinstance(f, HostTransfers) else f for f in host_callbacks]
    functions = [callbacks] if callbacks else []
    with TraceAnnotation("backend_compile_and_load"):
        try:
            return backend.compile_and_load(module, executable_devices, options, *functions)
        except JaxRuntimeError as error:
            if "No such compile option" in str(error):
                add_advice(error, ". compiler_options has names of XLA's options: correct it, or leave it out.")
            raise


_own_compiler = backend_compile_and_load


def is_replaced() -> bool:
    """Returns whether another library compiles."""
    return backend_compile_and_load is not _own_compiler


def _refined(text: str) -> bytes:
    """A module in which shapes that follow from the arguments' shapes are replaced by constants.

    Raises ValueError, as jax does, if they do not meet the constraints of the module.
    """
    try:
        return _jax.mlir.refine_polymorphic_shapes(
            text.encode(), enable_shape_assertions=True, validate_static_shapes=True, enable_shardy=True
        )
    except JaxRuntimeError as error:
        raise ValueError(f"Error refining shapes: {error}") from None


def shown(name: str, text: Callable[[], str]) -> progress:
    """Context manager that shows, if it lasts long, that a program is compiled."""
    return progress(name, text, functools.partial(disk_cache.seconds_of_latest, name))


def _build(source: Source, text: str, host_calls: Sequence[Any] = ()) -> Any:
    _check_types(text)
    ensure_custom_calls(text)
    if len(source.devices) == 1 and source.devices[0].platform == "cpu":
        text = with_flat_bits(text)
    ready: Any = _refined(text) if has_symbolic_sizes(text) else with_guarded_divisions(text)
    # Importing the parser takes as long as parsing saves in a dozen programs.
    backend = source.devices[0].client
    is_parsed = host_calls or _compile_total[0] >= _UNPARSED or not client.is_attached(source.devices[0])
    module_of = bindings.parsed(ready) if is_parsed else contextlib.nullcontext(ready)
    with module_of as module, shown(source.name, lambda: text):
        devices = client.device_list(source.devices)
        executable = backend_compile_and_load(backend, module, devices, source.options, host_calls)
    with _count_lock:
        _compile_total[0] += 1
    return executable


def compile_uncached(text: str, name: str, devices: tuple, options: dict[str, Any], is_open: Open) -> "Loaded":
    """Compiles a module without caches: the executable is neither shared with other programs nor stored on disk."""
    return Loaded(_build(Source(text, devices, options, name, is_open=is_open), text), devices, name)


def load_or_build(
    source: Source, located: Callable[[], Located], host_calls: Sequence[Any] = (), watchers: Sequence[Any] = ()
) -> "Loaded":
    """Loads a program from disk, or compiles it and stores it there."""
    devices = source.devices
    built = []

    def build():
        built.append(_build(source, located().text, host_calls))
        return built[-1]

    # Host functions do not outlive the process, and no client reads back what was compiled for absent devices.
    if host_calls or watchers or hlo_transforms.is_any() or not client.is_attached(devices[0]):
        loaded = Loaded(build(), devices, source.name)
        for watcher in watchers:
            watcher.raise_error()
        return loaded
    names = lambda: located().names  # noqa: E731
    own, executable = disk_cache.load_or_compile(source.name, names, source.hashes, devices, source.options, build)
    return Loaded(executable, devices, source.name, own, None if executable in built else b"")


def load_stored(source: Source, located: Callable[[], Located]) -> "Loaded | None":
    """Loads a program from disk; None if it is not there."""
    names = lambda: located().names  # noqa: E731
    found = disk_cache.load_stored(source.name, names, source.hashes, source.devices, source.options)
    return None if found is None else Loaded(found[1], source.devices, source.name, found[0], b"")


def compile_text(
    text: str,
    *,
    name: str = "",
    devices: Sequence[Any] | None = None,
    options: dict[str, Any] | None = None,
    host_calls: Sequence[Any] = (),
    watchers: Sequence[Any] = (),
    located: Callable[[], Located] | None = None,
    own_names: bool = False,
    is_open: Open = CLOSED,
    load: Callable[[Source, Callable[[], Located]], "Loaded"] = load_or_build,
) -> "Loaded":
    """Compiles a module, or returns the executable of an equal one; modules with host callbacks share none.

    `watchers` are functions that XLA calls during compilation (`host_calls.Inspection`).

    `located()` is the module with locations, which XLA compiles: in profiles an executable has the operation names of
    the first program it was compiled for, or, with `own_names`, those of this one. `load` makes a program that no
    other one shares. Raises JaxRuntimeError if XLA
    rejects the program or an option.
    """
    devices = (client.default_device(),) if devices is None else tuple(devices)
    source = Source(text, devices, options, name, is_open=is_open)
    module_with_locations = functools.cache(located or (lambda: Located(text, hash_of(text))))
    if host_calls or watchers:
        return load_or_build(source, module_with_locations, host_calls, watchers)
    loaded = _loaded.once(source, lambda: load(source, module_with_locations))
    loaded.users += 1
    # A program loaded from disk may have the operation names of an earlier version, as in jax.
    if not own_names or loaded.users == 1 or loaded.names == (names := module_with_locations().names):
        return loaded
    source = Source(text, devices, options, name, names, is_open)
    return _loaded.once(source, lambda: load(source, module_with_locations))


def load_serialized(data: bytes, devices: tuple, name: str) -> "Loaded":
    """Loads a program that jaxlib has serialized. Raises JaxRuntimeError if it calls unregistered functions."""
    ensure_custom_calls(data.decode("latin-1"))
    options, where = make_options(devices), client.device_list(devices)
    return Loaded(devices[0].client.deserialize_executable(data, where, options, []), devices, name, stored=data)


def is_compiled(text: str, devices: tuple) -> bool:
    """Returns whether the executable of an equal module is in the cache."""
    return Source(text, devices) in _loaded


class Loaded:
    """A program that XLA has compiled and loaded, the devices on which it runs, and its name.

    `names` is a hash of the names of its operations, and `users` the number of equal programs that use it. `stored` are
    the bytes from which it was loaded (b"" if not kept), since jaxlib cannot serialize a loaded program again.
    """

    __slots__ = ("executable", "devices", "name", "names", "users", "stored", "__weakref__")

    def __init__(
        self, executable: Any, devices: tuple, name: str = "", names: bytes = b"", stored: bytes | None = None
    ):
        self.executable, self.devices, self.name, self.names, self.stored = executable, devices, name, names, stored
        self.users = 0

    def serialized(self) -> bytes | None:
        """The serialized program; None if it was loaded from disk and its bytes were not kept."""
        return self.executable.serialize() if self.stored is None else self.stored or None

    def __repr__(self):
        return f"Loaded({self.name!r}, devices={list(self.devices)})"

    def as_text(self) -> str:
        """The optimized HLO."""
        return "\n\n".join(module.to_string() for module in self.executable.hlo_modules())

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimate of the cost of one run; None if the platform gives none."""
        try:
            return self.executable.cost_analysis()
        except JaxRuntimeError as error:
            if not str(error).startswith("UNIMPLEMENTED"):
                raise
            return None

    @property
    def execute(self) -> Callable:
        """jaxlib's function that runs the program; one that raises JaxRuntimeError if its devices are not attached."""
        return getattr(self.executable, "execute_sharded", self._refuse)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise JaxRuntimeError(
            f"UNIMPLEMENTED: {self.name} was compiled for {self.devices[0]}, which is not attached: it cannot be run"
        )

    def memory_analysis(self) -> Any:
        """The sizes of arguments, outputs, temporaries and code."""
        return self.executable.get_compiled_memory_stats()


def hlo_computation(text: str) -> Any:
    """A module as unoptimized HLO."""
    return _jax.mlir.mlir_module_to_xla_computation(text)


def hlo_text(computation: Any, metadata: bool = False) -> str:
    """HLO as text with complete constants; with `metadata`, includes the names and locations of operations."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_metadata = metadata
    return computation.get_hlo_module().to_string(options)


def module_cost(text: str) -> dict[str, float]:
    """XLA's estimate of the cost of one run of an unoptimized module."""
    backend = client.default_device().client
    return _jax.hlo_module_cost_analysis(backend, hlo_computation(text).get_hlo_module())
