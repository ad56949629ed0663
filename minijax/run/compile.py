"""StableHLO text to programs: compiling once, running, and asking about what was compiled."""

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client as xc

from minijax.base import config
from minijax.base.cache import WeakValues, cache, key
from minijax.base.lazy import defer
from minijax.run import bindings, client, host, watch
from minijax.run.array import ArrayImpl, Signature, collect_garbage, signature

hashlib = defer("hashlib")
lapack = defer("jaxlib.cpu._lapack")
sparse = defer("jaxlib.cpu._sparse")
JaxRuntimeError = _jax.JaxRuntimeError

# ---- counting ---------------------------------------------------------------------------------------

_compile_total = [0]
_count_lock = threading.Lock()


def compile_count() -> int:
    """How many times XLA has compiled a program in this process."""
    return _compile_total[0]


# ---- options ----------------------------------------------------------------------------------------

# Options of jax's that are not fields of XLA's debug options.
_BUILD_OPTIONS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "optimization_level",
    "memory_fitting_level",
)
_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}
_UNOPTIMIZED = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def make_options(devices: Sequence[Any], options: dict[str, Any] | None = None, replicas: int = 1) -> xc.CompileOptions:
    """XLA's options for a program on these devices; `options` are jax's `compiler_options`."""
    made = xc.CompileOptions()
    build = made.executable_build_options
    partitions = len(devices) // replicas
    made.num_replicas = build.num_replicas = replicas
    made.num_partitions = build.num_partitions = partitions
    ids = np.array([device.id for device in devices]).reshape(replicas, partitions)
    made.device_assignment = xc.DeviceAssignment.create(ids)
    build.use_spmd_partitioning = partitions > 1 or replicas == 1
    build.use_shardy_partitioner = config.state().use_shardy_partitioner
    _set_effort(build)
    overrides = dict(_UNOPTIMIZED) if config.disable_most_optimizations.value else {}
    for name, value in (options or {}).items():
        if name in _BUILD_OPTIONS:
            setattr(build, name, value)
        else:
            hash(value)
            overrides[name] = value
    if overrides:
        made.env_option_overrides = list(overrides.items())
    return made


def _set_effort(build):
    if effort := config.exec_time_optimization_effort.value:
        build.exec_time_optimization_effort = effort
    if effort := config.memory_fitting_effort.value:
        build.memory_fitting_effort = effort
    if level := _LEVELS.get(str(config.optimization_level.value), 0):
        build.optimization_level = level
    if (level := config.memory_fitting_level.value) != "O2" and str(level) in _LEVELS:
        build.memory_fitting_level = _LEVELS[str(level)]


# ---- custom calls -----------------------------------------------------------------------------------

_LAPACK_TARGET = re.compile(r"@(?:lapack_\w+|tridiagonal_solve_perturbed_ffi)\b")
_SPARSE_TARGET = "@cpu_csr_sparse_dense_ffi"
_registered: set[str] = set()
_register_lock = threading.Lock()


def ensure_custom_calls(text: str) -> None:
    """Registers the CPU libraries that a program calls; without it a call ends the process."""
    if "lapack" not in _registered and _LAPACK_TARGET.search(text):
        with _register_lock:
            _register(lapack)
            lapack.initialize()
            _registered.add("lapack")
    if "sparse" not in _registered and _SPARSE_TARGET in text:
        with _register_lock:
            _register(sparse)
            _registered.add("sparse")


def _register(library):
    for name, capsule in library.registrations().items():
        xc.register_custom_call_target(name, capsule, platform="cpu", api_version=1)


# ---- compiling --------------------------------------------------------------------------------------

_UNPARSED = 12  # so many programs go to XLA as text

_STRINGS_AND_LOCATIONS = re.compile(
    r'("(?:[^"\\]|\\.)*")|\s*\bloc\((?:[^()"]|"(?:[^"\\]|\\.)*"|\((?:[^()"]|"(?:[^"\\]|\\.)*"|'
    r'\((?:[^()"]|"(?:[^"\\]|\\.)*")*\))*\))*\)'
)
_LOCATION_ALIAS = re.compile(r"^#loc\w*\s*=.*$\n?", re.MULTILINE)


def strip_locations(text: str) -> str:
    """A program's text without the source positions, which say nothing about what it computes."""
    if "loc(" in text:
        text = _STRINGS_AND_LOCATIONS.sub(lambda m: m.group(1) or "", _LOCATION_ALIAS.sub("", text))
    return text.strip()


def digest(text: str) -> bytes:
    """The hash of what a program computes."""
    return hashlib.sha256(strip_locations(text).encode()).digest()


@cache(maxsize=256)
def _prepared_options(devices, options, key, replicas, state, unoptimized) -> tuple[Any, bytes]:
    """The options of a compilation and their bytes; `key` tells equal values of different kinds apart."""
    made = make_options(devices, dict(options), replicas)
    return made, made.SerializeAsString()


class _Source:
    """A program to compile: equal if the text without locations, the devices and the options are."""

    __slots__ = ("key", "text", "devices", "options", "name")

    def __init__(self, text, devices, options=None, replicas=1, name=""):
        given = tuple((options or {}).items())
        self.options, serialized = _prepared_options(
            devices, given, key(given), replicas, config.state(), config.disable_most_optimizations.value
        )
        self.key = (digest(text), devices, serialized)
        self.text, self.devices, self.name = text, devices, name

    def __eq__(self, other):
        return self.key == other.key

    def __hash__(self):
        return hash(self.key)


# Weak, since an executable takes 200 KB or more; some dead ones are kept, for programs that make functions
# anew again and again.
_programs = WeakValues(kept=64)


def _load(source: _Source) -> "Program":
    text, source.text = source.text, None  # the cache keeps the source, and need not keep the text
    ensure_custom_calls(text)
    devices = source.devices
    # To import what parses takes as long as is saved with a dozen programs.
    module = bindings.parsed(text) if _compile_total[0] >= _UNPARSED else text
    executable = devices[0].client.compile_and_load(module, client.device_list(devices), source.options)
    with _count_lock:
        _compile_total[0] += 1
    return Program(executable, devices, source.name)


def compile_text(
    text: str,
    *,
    name: str = "",
    device: Any = None,
    devices: Sequence[Any] | None = None,
    options: dict[str, Any] | None = None,
    replicas: int = 1,
) -> "Program":
    """Compiles a module, or finds the executable of an equal one.

    Raises JaxRuntimeError if XLA rejects the program or an option.
    """
    if devices is None:
        devices = (client.default_device() if device is None else device,)
    devices = tuple(devices)
    source = _Source(text, devices, options, replicas, name)
    return _programs.once(source, lambda: _load(source))


def is_compiled(text: str, devices: tuple) -> bool:
    """Whether the executable of an equal module is at hand."""
    return _Source(text, devices) in _programs


def load_serialized(data: bytes, devices: Sequence[Any], name: str = "", text: str = "") -> "Program":
    """The program that `Program.serialize` wrote; `text`, if known, tells which libraries it calls."""
    ensure_custom_calls(text)
    devices = tuple(devices)
    executable = devices[0].client.deserialize_executable(data, client.device_list(devices), make_options(devices))
    return Program(executable, devices, name)


class Program:
    """A loaded executable and the devices it runs on."""

    __slots__ = ("executable", "devices", "name", "__weakref__")

    def __init__(self, executable: Any, devices: tuple, name: str = ""):
        self.executable, self.devices, self.name = executable, devices, name

    def __repr__(self):
        return f"Program({self.name!r}, devices={list(self.devices)})"

    # -- running

    def execute(self, raws: Sequence[Any]) -> list[Any]:
        """Runs on raw arrays and returns raw arrays, typed as the executable says; single device only."""
        handlers = [
            _jax.array_result_handler(
                host.WideType(tuple(shape.dimensions()), shape.numpy_dtype()),
                client.native_sharding(client.single_device_sharding(self.devices[0]), len(shape.dimensions())),
                committed=False,
                _skip_checks=True,
            )
            for shape in self._output_shapes()
        ]
        return self.executable.execute_sharded(list(raws)).consume_with_handlers(handlers)

    def _output_shapes(self):
        shape = xc.XlaComputation(self.executable.hlo_modules()[0].as_serialized_hlo_module_proto()).program_shape()
        result = shape.result_shape()
        return result.tuple_shapes() if result.is_tuple() else [result]

    def bind_outputs(
        self, avals: Sequence[Any], shardings: Sequence[Any], committed: bool | Sequence[bool] = False, label: str = ""
    ) -> Callable[[list], list[ArrayImpl]]:
        """A function from raw inputs to arrays of the given types and shardings; messages name `label`."""
        flags = [committed] * len(avals) if isinstance(committed, bool) else committed
        signatures = [signature(*fields) for fields in zip(avals, shardings, flags, strict=True)]
        run = watch.watched(_bind(self.executable.execute_sharded, signatures), label or self.name)
        run.program = self  # as long as somebody can run it, the cache finds it
        return run

    def bind_call(
        self,
        avals: Sequence[Any],
        shardings: Sequence[Any],
        committed: bool,
        places: Sequence[int],
        rebuild: Callable | None,
    ) -> Callable[[Sequence], Any]:
        """A function of values, the inputs those at `places`, to what `rebuild` makes of the results.

        Without that there is one result.
        """
        signatures = [signature(*laid, committed) for laid in zip(avals, shardings, strict=True)]
        execute = self.executable.execute_sharded
        if rebuild:
            call = _bind_rebuilt(execute, signatures, places, rebuild)
        else:
            call = _bind_call(execute, *signatures, places)
            call.result = signatures[0] if len(places) == 1 else None
        call.program = self
        return call

    # -- views

    def as_text(self) -> str:
        """The optimized HLO."""
        return "\n\n".join(module.to_string() for module in self.executable.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of what one run costs."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """The sizes of arguments, outputs, temporaries and code."""
        return self.executable.get_compiled_memory_stats()

    def serialize(self) -> bytes:
        """The executable as bytes, for `load_serialized`."""
        return self.devices[0].client.serialize_executable(self.executable)


def result_handler(sig: Signature) -> Any:
    """What makes jaxlib wrap an output as a raw array of this signature."""
    return _jax.array_result_handler(sig, sig.native, committed=sig.committed, _skip_checks=True)


def _bind_call(execute, sig, places):
    # Written out for one and two inputs: to call a function takes as long as all else that is done here.
    handlers, wrap = [result_handler(sig)], sig.wrap
    i, j = (*places, 0, 0)[:2]

    def of_none(values):
        collect_garbage()
        return wrap(execute([]).consume_with_handlers(handlers)[0], sig)

    def of_one(values):
        collect_garbage()
        raws = [values[i]._raw]
        try:
            return wrap(execute(raws).consume_with_handlers(handlers)[0], sig)
        except JaxRuntimeError:
            check_alive(raws)
            raise

    def of_two(values):
        collect_garbage()
        raws = [values[i]._raw, values[j]._raw]
        try:
            return wrap(execute(raws).consume_with_handlers(handlers)[0], sig)
        except JaxRuntimeError:
            check_alive(raws)
            raise

    def of_several(values):
        collect_garbage()
        raws = [values[k]._raw for k in places]
        try:
            return wrap(execute(raws).consume_with_handlers(handlers)[0], sig)
        except JaxRuntimeError:
            check_alive(raws)
            raise

    return {0: of_none, 1: of_one, 2: of_two}.get(len(places), of_several)


def _bind_rebuilt(execute, signatures, places, rebuild):
    handlers, raws_of = [result_handler(sig) for sig in signatures], raws_at(places)
    wrap = _wrapper(signatures)

    def call(values):
        collect_garbage()
        raws = raws_of(values)
        try:
            return rebuild(map(wrap, execute(raws).consume_with_handlers(handlers), signatures))
        except JaxRuntimeError:
            check_alive(raws)
            raise

    return call


def raws_at(places: Sequence[int]) -> Callable[[Sequence], list]:
    """A function of values that gives the raw arrays of those at `places`."""
    if len(places) == 1:
        (i,) = places
        return lambda values: [values[i]._raw]
    if len(places) == 2:
        i, j = places
        return lambda values: [values[i]._raw, values[j]._raw]
    return lambda values: [values[i]._raw for i in places]


def _wrapper(signatures):
    if all(sig.wrap is ArrayImpl for sig in signatures):
        return ArrayImpl
    return lambda raw, sig: sig.wrap(raw, sig)


def _bind(execute, signatures):
    handlers = [result_handler(sig) for sig in signatures]
    wrap = _wrapper(signatures)

    def run(raws):
        collect_garbage()
        try:
            outputs = execute(raws).consume_with_handlers(handlers)
        except JaxRuntimeError:
            check_alive(raws)
            raise
        return list(map(wrap, outputs, signatures))

    return run


def check_alive(raws: Sequence[Any]) -> None:
    """Raises RuntimeError, as jax does, if one of these was deleted or donated."""
    for raw in raws:
        if raw.is_deleted():
            raise RuntimeError(f"Array has been deleted with shape={_short_type(raw.aval)}.") from None


def _short_type(kind):
    return kind.aval.str_short() if type(kind) is Signature else f"{kind.dtype}{list(kind.shape)}"


def hlo_text(text: str) -> str:
    """A module as HLO, before optimization."""
    return _jax.mlir.mlir_module_to_xla_computation(text).as_hlo_text()


def module_cost(text: str) -> dict[str, float]:
    """XLA's estimate of what one run of a module costs, before optimization."""
    computation = _jax.mlir.mlir_module_to_xla_computation(text)
    backend = client.default_device().client
    return _jax.hlo_module_cost_analysis(backend, computation.get_hlo_module())
