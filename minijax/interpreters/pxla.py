"""jax.interpreters.pxla: what remains of jax's former interface for parallel programs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {},
    deprecated={
        "jax.interpreters.pxla.{0} is deprecated as of JAX v0.8.2.": """
minijax.interop.introspection: ArrayMapping Index
minijax.partition.shardings: _UNSPECIFIED=UNSPECIFIED
""",
        "jax.interpreters.pxla.{0} is deprecated as of JAX v0.8.2. Use jax.sharding.Mesh axis names directly.": {
            "minijax.interop.introspection": "MeshAxisName=Value"
        },
        "jax.interpreters.pxla.{0} is deprecated as of JAX v0.8.2. Please switch to using `with jax.set_mesh(mesh)` "
        "instead of `with mesh:` and then use `jax.sharding.get_abstract_mesh()` to get the current mesh.": {
            "minijax.interop.introspection": "thread_resources"
        },
    },
    removed={
        "jax.interpreters.pxla.{0} was removed in JAX v0.10.0.": """
        MapTracer PmapExecutable parallel_callable shard_args
    """,
        "jax.interpreters.pxla.{0} was removed in JAX v0.10.0. Please use `jax.shard_map` instead of "
        "`jax.pmap`.": "Chunked NoSharding Replicated ShardedAxis ShardingSpec Unstacked spec_to_indices",
    },
)
