"""The clients of platforms, for libraries that bring a platform of their own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base.cache import clear_caches, on_clear
from minijax.run import client, compile


def backends() -> dict[str, Any]:
    """The clients by platform, started at the first call."""
    return dict(client.clients())


def get_backend(platform: Any = None) -> Any:
    """The client of a platform; the default one for None. Raises RuntimeError if there is none."""
    return client.get_client(platform)


def backend_xla_version(platform: Any = None) -> int | None:
    """The version of XLA behind a platform, where its client tells."""
    return getattr(get_backend(platform), "xla_version", None)


def clear_backends(_crash: bool = False) -> None:
    """Forgets the clients; arrays and programs made before are unusable afterwards."""
    client.clear_backends()


def clear_in_memory_compilation_cache() -> None:
    """Forgets the compiled programs."""
    clear_caches()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Has a cache of the caller's emptied along with the library's."""
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
    """Adds a platform whose client `factory` makes, and for which `make_topology` describes machines."""
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
    """XLA's options for a program of so many replicas and partitions, as `jax.config` has them.

    `device_assignment` has a row of devices, or of their numbers, for each replica. Raises ValueError for others.
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
    """The numbers of devices, a row a replica."""
    if assignment is None:
        return None
    ids = np.vectorize(lambda device: getattr(device, "id", device), otypes=[np.int64])(np.array(assignment, object))
    ids = ids.reshape(-1, 1) if ids.ndim == 1 and partitions == 1 else ids
    for i, (name, count) in enumerate((("num_replicas", replicas), ("num_partitions", partitions))):
        if ids.ndim != 2 or ids.shape[i] != count:
            raise ValueError(f"device_assignment does not match {name}: {ids} vs {count}.")
    return ids
