"""The clients of platforms, for libraries that bring a platform of their own."""

from collections.abc import Callable
from typing import Any

from minijax.base.cache import clear_caches, on_clear
from minijax.run import client


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
    """Adds a platform whose client `factory` makes."""
    client.register_platform(name, factory, priority)
