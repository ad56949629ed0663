"""jax.experimental.compilation_cache.compilation_cache: the directory of the persistent cache."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {"minijax.run.programs.disk_cache": "reset_cache set_cache_dir"})
