"""Kernels for TPUs that run on cores of a mesh, as those of `mosaic_kernels.py`."""

from pallas.mosaic_kernels import F, kernel
from pallas.mosaic_keys import KERNELS

X = ((16, 128), F)
__all__ = ["KERNELS"]


def mesh(m, num_cores=2):
    return m.pltpu.create_tensorcore_mesh("c", num_cores=num_cores)


def copy_part(m):
    """A body that copies half of an array on each core."""

    def body(x, o, *scratch):
        part = m.pl.ds(m.lax.axis_index("c") * 8, 8)
        m.pltpu.sync_copy(x.at[part], o.at[part])

    return body


def mapped(m, body, num_cores=2, **options):
    """A function that runs `body(source, result, *scratch)` by `core_map`."""

    def f(x):
        source, result = m.jax.new_ref(x), m.jax.new_ref(m.jnp.zeros_like(x))
        m.pl.core_map(mesh(m, num_cores), **options)(lambda *scratch: body(source, result, *scratch))
        return result[...]

    return f, X


@kernel
def cores_kernel(m):
    scratch = [m.pltpu.VMEM((8, 128), m.jnp.float32)]
    return m.pl.kernel(copy_part(m), m.jax.ShapeDtypeStruct(*X), mesh=mesh(m), scratch_types=scratch), X


@kernel
def cores_kernel_named(m):
    options = dict(compiler_params=m.pltpu.CompilerParams(vmem_limit_bytes=2**20), metadata={"a": "b"}, name="own")
    return m.pl.kernel(copy_part(m), m.pltpu.HBM((16, 128), m.jnp.float32), mesh=mesh(m, 1), **options), X


@kernel
def cores_kernel_of_a_batch_of_one(m):
    return m.jax.vmap(m.pl.kernel(copy_part(m), m.jax.ShapeDtypeStruct(*X), mesh=mesh(m))), ((1, 16, 128), F)


@kernel
def core_map(m):
    return mapped(m, copy_part(m))


@kernel
def core_map_with_a_barrier(m):
    def body(source, result, semaphore):
        m.pltpu.core_barrier(semaphore, core_axis_name="c")
        copy_part(m)(source, result)

    return mapped(m, body, scratch_shapes=[m.pltpu.SemaphoreType.REGULAR])


@kernel
def core_map_on_the_first_core(m):
    return mapped(m, lambda x, o: m.pltpu.run_on_first_core("c")(lambda: m.pltpu.sync_copy(x, o)))


def on_cores(m, body, *scratch):
    """A function that runs `body(source, result, *scratch)` on two cores."""
    return m.pl.kernel(body, m.jax.ShapeDtypeStruct(*X), mesh=mesh(m), scratch_types=scratch), X


@kernel
def cores_signal_each_other(m):
    def body(x, o, semaphore):
        m.pl.semaphore_signal(semaphore, 2, device_id={"c": 1 - m.lax.axis_index("c")})
        m.pl.semaphore_wait(semaphore, 2)
        copy_part(m)(x, o)

    return on_cores(m, body, m.pltpu.SemaphoreType.REGULAR)


@kernel
def cores_copy_to_each_other(m):
    def body(x, o, a, b, sent, arrived):
        other = {"c": 1 - m.lax.axis_index("c")}
        m.pltpu.sync_copy(x.at[m.pl.ds(0, 8)], a)
        m.pltpu.make_async_remote_copy(a, b, sent, arrived, device_id=other).start()

    memory = m.pltpu.VMEM((8, 128), m.jnp.float32)
    return on_cores(m, body, memory, memory, m.pltpu.SemaphoreType.DMA, m.pltpu.SemaphoreType.DMA)


@kernel
def cores_copy_a_row(m):
    def body(x, o, rows):
        m.pltpu.sync_copy(x.at[m.pl.ds(0, 8)], rows.at[1])
        m.pltpu.sync_copy(rows.at[1], o.at[m.pl.ds(0, 8)])

    return on_cores(m, body, m.pltpu.VMEM((2, 8, 128), m.jnp.float32))


@kernel
def cores_in_scopes(m):
    def body(x, o, rows, signals, done):
        with m.jax.named_scope("one"):
            rows[0] = rows[1]
        with m.jax.named_scope("two"):
            m.pl.semaphore_signal(signals.at[1], 1)
        with m.jax.named_scope("three"):
            m.pltpu.async_copy(rows.at[0], rows.at[1], done.at[0]).wait()
        with m.jax.named_scope("four"):
            m.pl.semaphore_wait(signals.at[1], 1)

    memory = m.pltpu.VMEM((2, 8, 128), m.jnp.float32)
    return on_cores(m, body, memory, m.pltpu.SemaphoreType.REGULAR((2,)), m.pltpu.SemaphoreType.DMA((2,)))
