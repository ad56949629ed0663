"""jax.version: the version of jax whose API this is."""

from minijax.base.naming import VERSION as __version__, VERSION_INFO as __version_info__  # noqa: F401
