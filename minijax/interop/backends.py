"""The clients of platforms, and registration of platforms by libraries."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base.cache import clear_caches, on_clear
from minijax.run.clients import client
from minijax.run.programs import compile


def backends() -> dict[str, Any]:
    """Returns the clients by platform; the first call starts them."""
    return dict(client.clients())


def backends_are_initialized() -> bool:
    """Returns whether a client has been started."""
    return bool(client._clients)


def get_backend(platform: Any = None) -> Any:
    """Returns the client of a platform, by default that of the default backend. Raises RuntimeError for another one."""
    return client.get_client(platform)


def backend_xla_version(platform: Any = None) -> int | None:
    """Returns the version of XLA that a platform uses, or None if its client does not report it."""
    return getattr(get_backend(platform), "xla_version", None)


def clear_backends(_crash: bool = False) -> None:
    """Drops the clients; existing arrays and programs are unusable afterwards."""
    client.clear_backends()


def clear_in_memory_compilation_cache() -> None:
    """Clears the cache of compiled programs."""
    clear_caches()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Registers a cache of the caller that is cleared along with the library's."""
    on_clear(cache.cache_clear)


def register_backend_factory(
    name: str,
    factory: Callable[[], Any],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Callable | None = None,
    c_api: Any = None,
) -> None:
    """Registers a platform: `factory` creates its client, and `make_topology` its topology descriptions."""
    client.register_platform(name, factory, priority, make_topology)


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """Returns XLA's compile options for this many replicas and partitions, with the settings of `jax.config`.

    `device_assignment` has a row of devices, or of their ids, for each replica. Raises ValueError for another shape.
    """
    options = compile.base_options(
        num_replicas, num_partitions, _checked(device_assignment, num_replicas, num_partitions)
    )
    if env_options_overrides:
        options.env_option_overrides = list(env_options_overrides.items())
    if fdo_profile is not None:
        options.executable_build_options.fdo_profile = fdo_profile
    options.executable_build_options.debug_options.xla_detailed_logging = detailed_logging
    return options


def _checked(assignment: Any, replicas: int, partitions: int) -> np.ndarray | None:
    """Returns the device ids, a row for each replica."""
    if assignment is None:
        return None
    ids = np.vectorize(lambda device: getattr(device, "id", device), otypes=[np.int64])(np.array(assignment, object))
    ids = ids.reshape(-1, 1) if ids.ndim == 1 and partitions == 1 else ids
    for i, (name, count) in enumerate((("num_replicas", replicas), ("num_partitions", partitions))):
        if ids.ndim != 2 or ids.shape[i] != count:
            raise ValueError(f"device_assignment does not match {name}: {ids} vs {count}.")
    return ids
