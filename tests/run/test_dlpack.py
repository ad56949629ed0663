"""DLPack, `__array__` and the buffer protocol, in both directions: sharing, copies, and refused conversions."""

import ml_dtypes
import numpy as np
import pytest
from mesh_language import same, same_errors

import minijax

pytestmark = pytest.mark.oracle


def aligned(count, dtype=np.float32, offset=0):
    """Numbers at an address that programs may read, or `offset` bytes behind one."""
    size = count * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    values = memory[start : start + size].view(dtype)
    values[:] = np.arange(count)
    return values


class Asked:
    """An array that is exported with these options, or as if it were on another device."""

    def __init__(self, array, place=None, **options):
        self.array, self.place, self.options = array, place, options

    def __dlpack__(self, **_):
        return self.array.__dlpack__(**self.options)

    def __dlpack_device__(self):
        return self.place or self.array.__dlpack_device__()


A, OFF = aligned(16), aligned(16, offset=4)
GIVEN = dict(
    A=lambda s: A,
    off=lambda s: OFF,
    aligned=lambda s: aligned,
    Asked=lambda s: Asked,
    ml_dtypes=lambda s: ml_dtypes,
    x=lambda s: s.jnp.asarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    there=lambda s: s.jax.device_put(np.arange(6.0, dtype=np.float32), s.d[1]),
    cut=lambda s: s.put(np.arange(8, dtype=np.float32), "x"),
    whole=lambda s: s.put(np.arange(8, dtype=np.float32)),
    # Parts of less than 64 kB are copies, where jax's share memory: a view makes freeing the whole array slow.
    large=lambda s: s.put(np.arange(1 << 15, dtype=np.float32)),
    take=lambda s: s.jnp.from_dlpack,
    at=lambda s: lambda y: y.ctypes.data if isinstance(y, np.ndarray) else y.unsafe_buffer_pointer(),
    told=lambda s: lambda y: (str(y.dtype), y.tolist(), y.device.id, y.committed, y.weak_type),
)


def test_arrays_are_exported():
    same(
        """
        repr(x.__dlpack_device__()), repr(there.__dlpack_device__())
        np.from_dlpack(x), np.from_dlpack(there), np.from_dlpack(x).flags.writeable, at(np.from_dlpack(x)) == at(x)
        at(np.from_dlpack(x, copy=True)) == at(x), np.from_dlpack(x, copy=True).flags.writeable
        at(np.from_dlpack(x, copy=False)) == at(x), np.from_dlpack(x, device="cpu")
        [at(np.from_dlpack(Asked(x, dl_device=(1, k)))) == at(x) for k in (0, 1)]
        [at(np.from_dlpack(Asked(there, dl_device=(1, k)))) == at(there) for k in (0, 1)]
        [at(np.from_dlpack(Asked(x, dl_device=(1, 0), copy=c))) == at(x) for c in (None, False, True)]
        np.from_dlpack(Asked(there, dl_device=(1, 0))), np.from_dlpack(Asked(x, dl_device=(1, 3), copy=True))
        np.from_dlpack(Asked(x, max_version=(1, 0)))
        np.from_dlpack(jnp.zeros((0, 3))), np.from_dlpack(jnp.float32(3)), np.from_dlpack(x > 2)
        """,
        **GIVEN,
    )


def test_arrays_are_imported():
    same(
        """
        told(take(x)), at(take(x)) == at(x), at(take(x, copy=False)) == at(x), told(take(jnp.asarray(1.0)))
        told(take(there)), told(take(x, device=d[1])), told(take(there, device=d[0]))
        told(take(A)), at(take(A)) == at(A), at(take(A, copy=False)) == at(A), at(take(A, device=d[0])) == at(A)
        told(take(off)), at(take(off)) == at(off)
        told(take(A, device=d[1])), at(take(A, device=d[1])) == at(A)
        told(take(A, device=One(d[2]))), take(A, device=NS(grid((1,), ("i",)), P("i"))).sharding
        told(take(A.reshape(4, 4).T)), told(take(A.reshape(2, 4, 2).transpose(1, 2, 0)))
        [told(take(aligned(4, t))) for t in (np.float64, np.int64, np.complex128, np.uint64)]
        [told(take(aligned(4, t))) for t in (np.bool_, np.complex64, np.float16, np.int8, np.uint32)]
        told(take(aligned(4, np.float64), copy=False))
        [told(take(x.astype(t))) for t in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bool")]
        told(take(np.zeros((0, 3), np.float32))), told(take(np.array(3, np.float32)))
        told(take(Asked(A))), told(take(Asked(A, (1, 1)))), told(take(Asked(A, (1, 1)), device=d[1]))
        """,
        **GIVEN,
    )


def test_programs_that_cannot_be_exchanged_are_refused():
    same_errors(
        [
            ("np.from_dlpack(Asked(x, dl_device=(2, 0)))", "cuda"),
            ("np.from_dlpack(Asked(x, dl_device=(2, 0), copy=False))", "cuda"),
            ("np.from_dlpack(Asked(x, dl_device=(7, 0)))", "unsupported device type"),
            ("np.from_dlpack(Asked(x, dl_device=(1, 9)))", "No matching device found"),
            ("np.from_dlpack(Asked(x, dl_device='cpu'))", "too many values to unpack"),
            ("np.from_dlpack(Asked(x, dl_device=(1, 1), copy=False))", "which requires a copy since the source device"),
            ("np.from_dlpack(Asked(there, dl_device=(1, 0), copy=False))", "which requires a copy"),
            ("np.from_dlpack(Asked(x, stream=5))", "is only implemented for GPU"),
            ("cut.__dlpack__()", "can only pack a dlpack tensor from an array on a singular device"),
            ("whole.__dlpack__()", "can only pack a dlpack tensor from an array on a singular device"),
            ("cut.__dlpack_device__()", ""),
            ("x.astype('int4').__dlpack__()", "S4 has no DLPack equivalent"),
            ("np.from_dlpack(x.astype('bfloat16'))", ""),
            ("x.__cuda_array_interface__", "only defined for GPU buffers"),
            ("take(x.__dlpack__())", "must have __dlpack__ and __dlpack_device__"),
            ("take('text')", "must have __dlpack__ and __dlpack_device__"),
            ("take(np.array(['a']))", ""),
            ("take(A, device='cpu')", ""),
            ("take(A, device=on('x'))", "onto a singular device"),
            ("take(off, copy=False)", "requires a copy since the source data buffer is not aligned to 64 bytes"),
            ("take(x, device=d[1], copy=False)", "which requires a copy since the source device is CpuDevice(id=0)"),
            ("take(A, device=d[1], copy=False)", "which requires a copy since the source device is CpuDevice(id=0)"),
            ("take(Asked(A, (2, 0)))", "cuda"),
            ("take(Asked(A, (10, 0)), device=d[0])", "rocm"),
            ("take(Asked(A, (7, 0)))", "unsupported device type (DLDeviceType: 7"),
            ("take(Asked(A, (1, 9)))", "No matching device found"),
            ("jax.jit(lambda y: take(y))(x)", "must have __dlpack__"),
            ("jax.jit(lambda y: y.__dlpack__())(x)", "__dlpack__() method was called on traced array"),
        ],
        **GIVEN,
    )


def test_arrays_and_buffers():
    same(
        """
        np.asarray(x).flags.writeable, at(np.asarray(x)) == at(x), at(np.asarray(x, copy=False)) == at(x)
        at(np.array(x)) == at(x), np.array(x).flags.writeable, np.asarray(x, dtype=np.float64)
        np.asarray(cut, copy=False), at(np.asarray(large, copy=False)) == at(large.addressable_data(0))
        x.__array__(np.float16), x.__array__(dtype=None, copy=True).flags.writeable, x.__array__(np.float16, None, True)
        memoryview(x).format, memoryview(x).shape, memoryview(x).readonly, memoryview(there).strides
        memoryview(jnp.float32(2)).format, memoryview(jnp.zeros((0, 2))).shape, bytes(x), bytearray(x)
        hasattr(x, "__cuda_array_interface__"), hasattr(x, "__array_interface__")
        """,
        **GIVEN,
    )
    same_errors(
        [
            ("np.asarray(x, dtype=np.float64, copy=False)", "Unable to avoid copy"),
            ("memoryview(x.astype('bfloat16'))", "BF16 are not supported by the Python buffer protocol"),
            ("memoryview(x.astype('int4'))", "S4 are not supported by the Python buffer protocol"),
            ("memoryview(cut)", "with a single shard"),
        ],
        **GIVEN,
    )


# Where jax differs


def test_a_requested_copy_is_made():
    # jax shares aligned memory also then.
    taken = minijax.dlpack.from_dlpack(A, copy=True)
    assert taken.unsafe_buffer_pointer() != A.ctypes.data and taken.tolist() == A.tolist()


@pytest.mark.parametrize("values", [A[::2], A[::-1], np.broadcast_to(A[:2], (3, 2))])
def test_memory_that_is_not_compact_is_copied(values):
    # jax refuses it.
    assert minijax.dlpack.from_dlpack(values).tolist() == values.tolist()
    with pytest.raises(ValueError, match="requires a copy"):
        minijax.dlpack.from_dlpack(values, copy=False)


# Another library


def test_arrays_go_to_torch_and_back_without_a_copy():
    torch = pytest.importorskip("torch")
    ours = minijax.numpy.arange(6.0).reshape(2, 3)
    tensor = torch.utils.dlpack.from_dlpack(ours)
    assert tensor.tolist() == ours.tolist() and tensor.data_ptr() == ours.unsafe_buffer_pointer()
    made = torch.arange(16, dtype=torch.float32)
    back = minijax.dlpack.from_dlpack(made)
    assert back.tolist() == made.tolist()
    assert (back.unsafe_buffer_pointer() == made.data_ptr()) == (made.data_ptr() % 64 == 0)
    assert minijax.dlpack.from_dlpack(made.to(torch.bfloat16)).dtype == "bfloat16"
