"""jax.extend.backend: the clients of platforms."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.interop.backends: backend_xla_version backends clear_backends clear_in_memory_compilation_cache get_backend
    get_compile_options register_backend_cache register_backend_factory
minijax.run.clients.client: get_default_device=default_device ifrt_proxy
""",
)
