"""Names machines that need not be attached: "tpu:v5e:4x4", "cuda:h100:8"."""

from typing import Any

from minijax.run.clients.client import topology_of
from minijax.run.clients.gpus import GPUS

_FORMS = '"tpu:v5e:4x4" (a topology), "cuda:h100:8" (a number of GPUs), "cuda:h100:4x8" (hosts × GPUs of a host)'
_OF_A_HOST = 8  # GPUs


def devices_of(machine: str, **options: Any) -> list[Any]:
    """Returns the devices of a machine that need not be attached, to compile for it.

    The machine's compiler must be installed: `libtpu`, or CUDA's plugin with `nvidia-cuda-nvcc` and `nvidia-nvvm`.
    Programs are lowered and compiled for these devices by types with a sharding over them. They cannot hold arrays, and
    compiled programs cannot be called.

    Args:
      machine: `"tpu:"` and the name of a topology (`"tpu:v5e:4x4"`, `"tpu:v5p:2x2x4"`); or `"cuda:"`, the name of a GPU
        (a100, b200, h100, h200, l4, l40s, rtx4090, t4) and how many there are: a number, by default 1, or hosts × GPUs
        of a host, or slices × hosts × GPUs of a host (`"cuda:h100:2x4x8"`). More than 8 are in hosts of 8.
      options: passed on to the plugin, such as `num_slices=2` for TPUs.

    Returns:
      A list of devices, as `jax.devices()` has them.

    Raises:
      ValueError: the text names no machine.
      RuntimeError: the plugin is not installed, or does not know the topology.

    Example:

        devices = minijax.devices_of("tpu:v5e:4x4")
        mesh = jax.make_mesh((4, 4), ("data", "model"), devices=devices)
        x = jax.ShapeDtypeStruct((64, 64), jnp.bfloat16, sharding=jax.NamedSharding(mesh, jax.P("data", "model")))
        jax.jit(jnp.tanh).lower(x).compile().cost_analysis()
    """
    platform, _, name = machine.partition(":") if isinstance(machine, str) else (None, "", "")
    if platform == "tpu" and name:
        topology = topology_of("tpu", name, options)
    elif platform == "cuda" and name:
        gpu, _, count = name.partition(":")
        topology = _gpus(machine, gpu, count or "1", options)
    else:
        raise ValueError(f"devices_of: machine must be of the form {_FORMS}; got {machine!r}")
    return topology._make_compile_only_devices()


def _gpus(machine: str, gpu: str, count: str, options: dict[str, Any]) -> Any:
    if gpu not in GPUS:
        raise ValueError(f"devices_of: machine must name one of the GPUs {', '.join(GPUS)}; got {machine!r}")
    sizes = count.split("x")
    if len(sizes) > 3 or not all(size.isdecimal() and int(size) for size in sizes):
        raise ValueError(f"devices_of: machine must be of the form {_FORMS}; got {machine!r}")
    grid = [1] * (3 - len(sizes)) + [int(size) for size in sizes]
    if len(sizes) == 1 and grid[-1] > _OF_A_HOST:
        hosts, rest = divmod(grid[-1], _OF_A_HOST)
        if rest:
            raise ValueError(f"devices_of: more than {_OF_A_HOST} GPUs must be hosts of {_OF_A_HOST}; got {machine!r}")
        grid = [1, hosts, _OF_A_HOST]
    topology = "x".join(map(str, grid))
    return topology_of("cuda", "", dict(target_config=GPUS[gpu].target_config(), topology=topology) | options)
