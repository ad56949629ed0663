"""Connects the processes of a program: jaxlib's service, run by the first process, and a client in each."""

import atexit
import logging
import os
import time
from dataclasses import dataclass
from typing import Any

from jaxlib import _jax

from minijax.base import config
from minijax.base.lazy import defer

socket = defer("socket")

logger = logging.getLogger("jax._src.distributed")  # the same name as in jax, by which programs silence it

_PROBE_SECONDS, _PAUSE_SECONDS = 5, 0.1


@dataclass
class State:
    """The connection of this process to the others; `client` is None in a single-process program."""

    process_id: int = 0
    num_processes: int = 1
    service: Any = None
    client: Any = None
    preemption_sync_manager: Any = None
    coordinator_address: str | None = None
    partition_index: int | None = None


state = State()


def connect(
    address: str,
    count: int,
    index: int,
    *,
    init_timeout: int,
    heartbeat_timeout: int,
    shutdown_timeout: int,
    bind_address: str | None = None,
    partition_index: int | None = None,
) -> None:
    """Makes this process number `index` of `count`, and waits for the others.

    Raises JaxRuntimeError if the service does not start, or does not answer at its address within `init_timeout`
    seconds. If a process does not connect within that time, jaxlib ends all processes that wait.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"initialize: coordinator_address {address!r} is not of the form host:port")
    service = None
    if index == 0:
        if bind_address is not None:
            _check_own(bind_address)
        bind_address = bind_address or f"[::]:{port}"
        logger.info("Starting JAX distributed service on %s", bind_address)
        service = _jax.get_distributed_runtime_service(
            bind_address,
            count,
            heartbeat_timeout=heartbeat_timeout,
            shutdown_timeout=shutdown_timeout,
            recoverable=config.enable_recoverability.value,
        )
    else:
        _await_coordinator(host.strip("[]"), int(port), index, init_timeout)
    client = _jax.get_distributed_runtime_client(
        address,
        index,
        init_timeout=init_timeout,
        heartbeat_timeout=heartbeat_timeout,
        shutdown_timeout=shutdown_timeout,
        use_compression=True,
    )
    logger.info("Connecting to JAX distributed service on %s", address)
    client.connect()
    state.service, state.client = service, client
    state.process_id, state.num_processes, state.coordinator_address = index, count, address
    state.partition_index = partition_index
    if config.enable_preemption_service.value:
        state.preemption_sync_manager = _jax.create_preemption_sync_manager()
        state.preemption_sync_manager.initialize(client)


def _check_own(bind_address: str) -> None:
    """Raises JaxRuntimeError for an address that this machine does not have, since jaxlib would crash."""
    host = bind_address.rpartition(":")[0].strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as error:
        raise _jax.JaxRuntimeError(
            f"INVALID_ARGUMENT: initialize: nobody can listen at coordinator_bind_address {bind_address!r}: {error}"
        ) from error


def _await_coordinator(host: str, port: int, index: int, timeout: float) -> None:
    """Waits until the coordinator listens at an address: jaxlib would end the process if it does not."""
    end = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection((host, port), timeout=min(timeout, _PROBE_SECONDS)).close()
            return
        except OSError as error:
            if time.monotonic() + _PAUSE_SECONDS > end:
                raise _jax.JaxRuntimeError(
                    f"DEADLINE_EXCEEDED: initialize: process {index} found no coordinator at {host}:{port} within "
                    f"{timeout} seconds: {error}"
                ) from error
        time.sleep(_PAUSE_SECONDS)


def disconnect() -> None:
    """Waits for the other processes to disconnect, and disconnects."""
    manager, client, service = state.preemption_sync_manager, state.client, state.service
    state.preemption_sync_manager = state.client = state.service = None
    for part in (manager, client, service):  # the service last: clients that lose it end their process
        if part is not None:
            part.shutdown()


# Registered before the handler of `run.tokens`, which waits for running programs and therefore runs first.
atexit.register(disconnect)


# ---- clients of several processes -------------------------------------------------------------------

# The variable names the library with MPI's collectives; without a library, MPI ends the process.
_MPI_LIBRARY = "MPITRAMPOLINE_LIB"


def cpu_options() -> dict[str, Any]:
    """The options of the CPU client for several processes. Raises RuntimeError if the collectives are unavailable."""
    options: dict[str, Any] = dict(
        get_local_topology_timeout_minutes=config.cpu_get_local_topology_timeout_minutes.value,
        get_global_topology_timeout_minutes=config.cpu_get_global_topology_timeout_minutes.value,
    )
    if state.client is None:
        return options
    kind, collectives = config.cpu_collectives_implementation.value, None
    if kind == "gloo":
        collectives = _jax.make_gloo_tcp_collectives(distributed_client=state.client)
    elif kind == "mpi":
        if _MPI_LIBRARY not in os.environ:
            raise RuntimeError(
                f"jax_cpu_collectives_implementation is 'mpi', but {_MPI_LIBRARY} names no library that wraps MPI"
            )
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        atexit.register(collectives.Finalize)
    elif kind is not None:
        raise RuntimeError(f"jax_cpu_collectives_implementation: jaxlib has no {kind!r} collectives for CPU")
    return options | dict(
        distributed_client=state.client,
        node_id=state.process_id,
        num_nodes=state.num_processes,
        collectives=collectives,
    )
