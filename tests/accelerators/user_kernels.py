"""Compiles the kernels of `jax.experimental.pallas.ops` with a real compiler, and prints those that it refuses.

    python tests/accelerators/user_kernels.py cuda|tpu ["name" ...]

The compiler's packages must be on the path; no device is needed.
"""

import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-1")
os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import topologies
from minijax.experimental.pallas import ops


def typed(shape, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype)


def ints(*shape):
    return typed(shape, "int32")


def grad(f, *numbers):
    """The derivatives by some arguments, by all of the first three unless told."""
    return jax.grad(lambda *xs: f(*xs).astype(jnp.float32).sum(), numbers or (0, 1, 2))


def gpu():
    """name -> (function, types of its arguments)"""
    attention, decode, paged = (getattr(ops.gpu, n) for n in ("attention", "decode_attention", "paged_attention"))
    rows, columns = typed((4, 64, 1024), "float32"), typed((1024,), "float32")
    heads = [typed((2, 512, 4, 64), "float16")] * 3
    table = {
        "softmax": (ops.gpu.softmax.softmax, [rows]),
        "decode": (decode.gqa, [typed((2, 16, 64)), *[typed((2, 1024, 4, 64))] * 2]),
        "mqa": (decode.mqa, [typed((2, 8, 64)), *[typed((2, 1024, 64))] * 2]),
        "paged": (paged.paged_attention, [typed((2, 16, 64)), *[typed((4, 64, 16, 64))] * 2, ints(2, 32), ints(2)]),
    }
    for name, f in (("layer_norm", ops.gpu.layer_norm.layer_norm), ("rms_norm", ops.gpu.rms_norm.rms_norm)):
        table[name] = f, [rows, columns, columns]
        table[f"grad {name}"] = grad(f), [rows, columns, columns]
    for name, options in {"": {}, " causal": dict(causal=True)}.items():
        f = lambda q, k, v, o=options: attention.mha(q, k, v, None, **o)  # noqa: E731
        table[f"attention{name}"] = f, heads
        table[f"grad attention{name}"] = grad(f), heads
    segments = lambda q, k, v, ids: attention.mha(q, k, v, ids, causal=True)  # noqa: E731
    table["attention in segments"] = grad(segments), [*heads, ints(2, 512)]
    return table


def tpu():
    """name -> (function, types of its arguments)"""
    flash, splash, paged = (getattr(ops.tpu, n) for n in ("flash_attention", "splash_attention", "paged_attention"))
    square, heads = typed((512, 512)), [typed((2, 4, 512, 128))] * 3
    groups = [typed((512, 256)), typed((4, 256, 512)), ints(4)]
    table = {
        "matmul": (lambda x, y: ops.tpu.matmul.matmul(x, y, block_shape=(256, 256)), [square, square]),
        "gmm": (ops.tpu.megablox.gmm, groups),
        "grad gmm": (grad(lambda x, w, sizes: ops.tpu.megablox.gmm(x, w, sizes), 0, 1), groups),
        "flash": (flash.flash_attention, heads),
        "grad flash": (grad(lambda *xs: flash.flash_attention(*xs, causal=True)), heads),
    }
    ids = [ints(2, 512)] * 2
    table["flash in segments"] = (
        grad(lambda q, k, v, a, b: flash.flash_attention(q, k, v, None, flash.SegmentIds(a, b))), [*heads, *ids],
    )  # fmt: skip
    table["flash with added numbers"] = grad(flash.flash_attention, 0, 1, 2, 3), [*heads, typed((2, 4, 512, 512))]
    random = np.random.default_rng(0).random((512, 512)) < 0.4
    masks = {"causal": splash.CausalMask((512, 512)), "random": splash.NumpyMask(random | np.eye(512, dtype=bool))}
    rows = [typed((2, 512, 128))] * 3
    for name, mask in masks.items():
        kernel = splash.make_splash_mha_single_device(splash.MultiHeadMask([mask] * 2))
        table[f"splash {name}"] = kernel, rows
        table[f"grad splash {name}"] = grad(kernel), rows
    kernel = splash.make_splash_mha_single_device(splash.MultiHeadMask([masks["causal"]] * 2))
    in_segments = lambda q, k, v, a, b, s: kernel(q, k, v, splash.SegmentIds(a, b), s)  # noqa: E731
    table["splash in segments"] = grad(in_segments), [*rows, ints(512), ints(512), typed((2,), "float32")]
    of_pages = lambda *xs: paged.paged_attention(*xs, pages_per_compute_block=4)  # noqa: E731
    gather = ops.tpu.all_gather.all_gather
    table["all_gather"] = lambda x: gather(x, mesh=MESH, axis_name="x"), [typed((64, 128))]
    table["all_gather both ways"] = lambda x: gather(x, mesh=MESH, axis_name="x"), [typed((256, 128))]
    key = [typed((2,), "uint32")]
    table["philox"] = lambda key: ops.tpu.random.philox.philox_random_bits(key, 32, (300, 500)), key
    table["threefry"] = lambda key: ops.tpu.random.threefry.plthreefry_random_bits(key, 32, (300, 500)), key
    table["double"] = ops.tpu.example_kernel.double, [square]
    table["paged"] = of_pages, [typed((2, 16, 128)), *[typed((2, 64, 16, 128))] * 2, ints(2), ints(2, 16)]
    table["ragged"] = (
        ops.tpu.ragged_paged_attention.ragged_paged_attention,
        [typed((64, 8, 128)), typed((32, 16, 8, 128)), ints(4), ints(4, 8), ints(5), ints(1)],
    )  # fmt: skip
    return table


MESH = None
if sys.argv[1:2] == ["tpu"]:
    MESH = jax.sharding.Mesh(np.array(topologies.get_topology_desc("v5e:2x2", "tpu").devices), "x")


def main(platform: str, *names: str) -> None:
    if platform == "cuda":
        target = (Path(__file__).parent / "h100.txtpb").read_text()
        device = topologies.get_topology_desc("", "cuda", target_config=target, topology="1x1x8").devices[0]
        sharding = jax.sharding.SingleDeviceSharding(device)
    else:
        sharding = jax.sharding.SingleDeviceSharding(MESH.devices.flat[0])
    table = gpu() if platform == "cuda" else tpu()
    for name in names or table:
        f, types = table[name]
        where = jax.sharding.NamedSharding(MESH, jax.P("x")) if name.startswith("all_gather") else sharding
        try:
            jax.jit(f).lower(*[jax.ShapeDtypeStruct(t.shape, t.dtype, sharding=where) for t in types]).compile()
        except Exception as error:
            sys.stdout.write(f"{name}: {type(error).__name__}: {str(error)[:600]}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
