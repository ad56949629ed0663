"""Options of the simulator, and how it is chosen for all kernels."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

import numpy as np

from minijax.base import config
from minijax.composed.refs import checks_bounds


class LoggingMode(enum.Flag):
    """Says which events are printed while a kernel is simulated.

    Members:
      BARRIER: signals and waits of barrier semaphores.
      SEMAPHORE: those of other semaphores.
      SHARED_MEMORY: reads and writes.
    """

    BARRIER = enum.auto()
    SEMAPHORE = enum.auto()
    SHARED_MEMORY = enum.auto()


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """Runs a kernel on a simulated TPU, given as `interpret` of `pl.pallas_call`, `pl.kernel` or `pl.core_map`.

    The simulator keeps the kernel's memories, copies and semaphores for each device and core.

    Args:
      detect_races: whether to raise RuntimeError for two accesses to one place that nothing orders.
      out_of_bounds_reads: "raise", or "uninitialized" to read values as of memory that was not written.
      skip_floating_point_ops: whether operations that yield floats yield infinity instead.
      uninitialized_memory: "nan" fills new memory with NaN, and with the largest integer; "zero" with zeros.
      num_cores_or_threads: among how many cores the steps on `parallel` axes are divided.
      vector_clock_size: is accepted, since clocks have the size they need.
      logging_mode: `LoggingMode`s of events to print.
      dma_execution_mode: "on_wait" copies when something waits for the copy, "eager" when it starts.
      random_seed: seed of the order of steps on `parallel` axes.
      grid_point_recorder: function of (a token, the numbers of a step, the core), called before each step.
      allow_hbm_allocation_in_run_scoped: whether `pl.run_scoped` may allocate HBM, which the cores then share.
      buffer_bounds: "logical", or "padded" to allow indices up to the end of the last tile.

    Example:
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = 2 * x_ref[...]
        >>> f = pl.pallas_call(double, jax.ShapeDtypeStruct((4,), jnp.float32), interpret=pltpu.InterpretParams())
        >>> f(jnp.arange(4.0))
        Array([0., 2., 4., 6.], dtype=float32)
    """

    detect_races: bool = False
    out_of_bounds_reads: Literal["raise", "uninitialized"] = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: Literal["nan", "zero"] = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: LoggingMode | None = None
    dma_execution_mode: Literal["eager", "on_wait"] = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[[Any, tuple[np.int32, ...], np.int32], Any] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: Literal["logical", "padded"] = "logical"

    def __post_init__(self):
        for what, n in (("Number of cores or threads", self.num_cores_or_threads), (_CLOCK, self.vector_clock_size)):
            if n is not None or what is not _CLOCK:
                _check_positive(what, n)

    def get_vector_clock_size(self, num_devices: int) -> int:
        """The length of vector clocks, for programs that depend on it. Raises ValueError for one that is too short."""
        count = num_devices * self.num_cores_or_threads
        if self.vector_clock_size is None:
            return 2 * count
        if count >= self.vector_clock_size:
            raise ValueError(
                f"{_CLOCK} ({self.vector_clock_size}) must be greater than the total number of cores/threads ({count})."
            )
        return self.vector_clock_size

    @property
    def num_cores_per_device(self) -> int:
        """The number of simulated cores of a device."""
        return self.num_cores_or_threads


_CLOCK = "Vector clock size"


def _check_positive(what: str, n: Any) -> None:
    if n < 1:
        raise ValueError(f"{what} must be at least 1, but got {n}.")


_CHOICES = {
    "out_of_bounds_reads": ("raise", "uninitialized"),
    "dma_execution_mode": ("eager", "on_wait"),
    "buffer_bounds": ("logical", "padded"),
}


def check_options(params: InterpretParams) -> None:
    """Raises ValueError, or NotImplementedError, for an option that has no such value."""
    if params.uninitialized_memory not in ("nan", "zero"):
        raise NotImplementedError(
            f"InterpretParams: uninitialized_memory must be 'nan' or 'zero', got {params.uninitialized_memory!r}"
        )
    for name, values in _CHOICES.items():
        if getattr(params, name) not in values:
            raise ValueError(f"InterpretParams: {name} must be one of {values}, got {getattr(params, name)!r}")


def _checked(name: str, params: Any) -> Any:
    if params is not None and not isinstance(params, InterpretParams):
        raise TypeError(f"{name}: params must be an InterpretParams or None, got {params!r}")
    return params


_forced = config.make_user_context()


def chosen(interpret: Any) -> Any:
    """The argument `interpret` of a kernel that is being traced, or the options that are forced."""
    forced = _forced.value
    return interpret if forced is None else forced


@contextmanager
def traced_for(interpret: Any) -> Iterator[None]:
    """Context manager: traces a kernel. The indices of one that is simulated are checked when it runs."""
    token = checks_bounds.set(not isinstance(chosen(interpret), InterpretParams))
    try:
        yield
    finally:
        checks_bounds.reset(token)


def force_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> AbstractContextManager[None]:
    """Runs the kernels that are traced in this context on a simulated TPU.

    Args:
      params: options of the simulator; None leaves kernels as they are.

    Raises TypeError for another object.

    Example:
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = 2 * x_ref[...]
        >>> with pltpu.force_tpu_interpret_mode():
        ...     print(pl.pallas_call(double, jax.ShapeDtypeStruct((2,), jnp.int32))(jnp.arange(2)))
        [0 2]
    """
    return _forced(_checked("force_tpu_interpret_mode", params))


def set_tpu_interpret_mode(params: InterpretParams | None = InterpretParams()) -> None:
    """Lets all kernels that are traced from now on run on a simulated TPU. None ends it.

    Args:
      params: options of the simulator.

    Raises TypeError for another object.

    Example:
        >>> pltpu.set_tpu_interpret_mode()
        >>> pl.pallas_call(lambda o: o.set(jnp.ones(2)), jax.ShapeDtypeStruct((2,), jnp.float32))()
        Array([1., 1.], dtype=float32)
        >>> pltpu.set_tpu_interpret_mode(None)
    """
    _forced.set_global(_checked("set_tpu_interpret_mode", params))


def reset_tpu_interpret_mode_state() -> None:
    """Forgets what an interrupted simulation left behind. Each simulation has a state of its own, so nothing is left.

    Programs call it after an error, as jax requires.

    Example:
        >>> pltpu.reset_tpu_interpret_mode_state()
    """
