"""`jax.distributed`: connects the processes of a multi-process program."""

import os
from collections.abc import Sequence

from minijax.base import config
from minijax.run.clients import client, clusters, distributed
from minijax.run.clients.clusters import Cluster


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Connects this process to the others, before its first array; omitted arguments come from the cluster's scheduler.

    Raises RuntimeError for a second call, after the first array, and if no coordinator answers within
    `initialization_timeout` seconds; ValueError if an omitted argument is unknown. A process is terminated if it waits
    here in vain, or if another one sends no heartbeat for `heartbeat_timeout_seconds`.

    Example:
        >>> import subprocess, sys
        >>> program = "import minijax as jax; jax.distributed.initialize('localhost:18932', 1, 0); "
        >>> program += "print(jax.process_count())"
        >>> print(subprocess.check_output([sys.executable, "-c", program], text=True))
        1
    """
    if client.is_started():
        raise RuntimeError(
            "jax.distributed.initialize() must be called before any JAX calls that might initialise the XLA backend, "
            "as every computation does, and jax.devices() and jax.device_put() too."
        )
    if distributed.state.client is not None:
        raise RuntimeError("distributed.initialize should only be called once: this process is initialized already")
    coordinator_address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    given = (coordinator_address, num_processes, process_id, _device_ids(local_device_ids))
    if cluster_detection_method != "deactivate" and None in given:
        given = _completed(*given, _cluster(cluster_detection_method))
    coordinator_address, num_processes, process_id, device_ids = given
    if not coordinator_address:
        raise ValueError("initialize: coordinator_address should be defined, and no cluster provides it")
    if num_processes is None:
        raise ValueError("initialize: Number of processes must be defined, and no cluster provides it")
    if process_id is None:
        raise ValueError(
            "initialize: The process id of the current process must be defined, and no cluster provides it"
        )
    if not 0 <= process_id < num_processes:
        raise ValueError(
            "initialize: process_id and num_processes must be nonnegative, with process_id < num_processes. "
            f"Got process_id={process_id}, num_processes={num_processes}."
        )
    if device_ids is not None:
        for platform in ("cuda", "rocm", "oneapi"):
            config.option(f"{platform}_visible_devices").set(",".join(map(str, device_ids)))
    _warn_of_proxies()
    client.quieten()
    distributed.connect(
        coordinator_address,
        num_processes,
        process_id,
        init_timeout=initialization_timeout,
        heartbeat_timeout=heartbeat_timeout_seconds,
        shutdown_timeout=shutdown_timeout_seconds,
        bind_address=coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS"),
        partition_index=_partition(partition_index, slice_index),
    )


def _device_ids(ids: int | Sequence[int] | None) -> list[int] | None:
    if ids is None and (text := os.environ.get("JAX_LOCAL_DEVICE_IDS")):
        return [int(part) for part in text.split(",")]
    return [ids] if isinstance(ids, int) else None if ids is None else list(ids)


def _partition(*indices: int | None) -> int | None:
    texts = (os.environ.get(f"JAX_{name}_INDEX") for name in ("PARTITION", "SLICE"))
    return next((int(index) for index in (*indices, *texts) if index is not None), None)


def _cluster(name: str | None) -> Cluster | None:
    """Returns the cluster of that name; for None the one that started this process, or None."""
    if name is None:
        return clusters.present()
    cluster = next((c for c in clusters.CLUSTERS if c.name == name), None)
    if cluster is None:
        distributed.logger.warning("initialize: a cluster_detection_method %r is not supported", name)
    elif not cluster.is_present():
        distributed.logger.warning(
            "initialize: cluster_detection_method %r does not work here: there is no such cluster", name
        )
    return cluster


def _completed(
    address: str | None, count: int | None, index: int | None, ids: list[int] | None, cluster: Cluster | None
):
    if cluster is None:
        return address, count, index, ids
    address = address or cluster.coordinator_address(os.environ.get("JAX_COORDINATOR_PORT"))
    count = cluster.process_count() if count is None else count
    index = cluster.process_id() if index is None else index
    if ids is None and (local := cluster.local_process_id()) is not None:
        ids = [local]
    return address, count, index, ids


def _warn_of_proxies() -> None:
    if config.check_proxy_envs.value:
        proxies = [name for name in os.environ if name.lower().endswith("_proxy") and name.lower() != "no_proxy"]
        if proxies:
            distributed.logger.warning(
                "initialize: the environment sets proxies (%s), through which processes may fail to connect to each "
                "other; unset them if initialization hangs",
                " ".join(proxies),
            )


def is_initialized() -> bool:
    """Returns whether `initialize` was called in this process.

    Example:
        >>> jax.distributed.is_initialized()
        False
    """
    return distributed.state.client is not None


def shutdown() -> None:
    """Waits for the other processes to shut down, and disconnects; does nothing in a program of one process.

    Example:
        >>> jax.distributed.shutdown()
    """
    distributed.disconnect()
