"""The devices of TPUs are arranged in meshes as by jax, of which the order depends on kinds and coordinates alone."""

import importlib
import itertools
import math

import pytest
from compare import same, same_refusal

pytestmark = pytest.mark.oracle


class Chip:
    """A device of a TPU that is not there, or one of its cores."""

    platform, process_index, client = "tpu", 0, None

    def __init__(self, number, coords, kind, core=0, granule=0):
        self.id, self.coords, self.device_kind, self.core_on_chip = number, list(coords), kind, core
        self.slice_index = granule

    def __repr__(self):
        return f"chip {self.id}"


# Kind, size of the torus, devices on a chip.
MACHINES = [
    *[("TPU v5 lite", size, 1) for size in ((2, 2, 1), (2, 4, 1), (1, 4, 1), (4, 4, 1), (4, 8, 1), (8, 8, 1))],
    *[("TPU v6 lite", size, 1) for size in ((2, 2, 1), (2, 4, 1), (4, 4, 1), (8, 8, 1))],
    *[("TPU v5", size, 1) for size in ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4), (4, 4, 8), (4, 8, 8))],
    *[("TPU v5p", (2, 2, 2), 1), ("TPU v4", (2, 2, 4), 1), ("TPU v4", (4, 4, 4), 1), ("TPU v4", (2, 2, 1), 2)],
    *[("TPU7x", size, 2) for size in ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 2))],
    *[("TPU v2", (2, 2, 1), 2), ("TPU v3", (4, 4, 1), 2), ("TPU v3", (2, 2, 1), 2), ("TPU v4", (6, 4, 1), 1)],
]


def machine(kind, size, cores=1, offset=(0, 0, 0), granule=0):
    """The devices of a torus, by z, y, x and core; their ids in another order than their coordinates."""
    places = [place[::-1] for place in itertools.product(*map(range, size[::-1]))]
    listed = [(place, core) for place in places for core in range(cores)]
    start = granule * len(listed)
    moved = [([a + b for a, b in zip(place, offset, strict=True)], core) for place, core in listed]
    return [Chip(start + i, place, kind, core, granule) for i, (place, core) in enumerate(moved)]


def factored(number, axes):
    if axes == 1:
        return [(number,)]
    divisors = [n for n in range(1, number + 1) if number % n == 0]
    return [(n, *rest) for n in divisors for rest in factored(number // n, axes - 1)]


def shapes_of(count):
    """Shapes with up to three axes, a share of them for large machines, and one with many axes."""
    shapes = [shape for axes in (1, 2, 3) for shape in factored(count, axes)]
    return [*shapes[:: 1 + len(shapes) // 30], (2,) * int(math.log2(count))]


def ids_or_error(make):
    """The devices' ids in order, or the class of the error."""
    try:
        return [device.id for device in make().ravel()]
    except (ValueError, NotImplementedError, AssertionError) as error:
        return type(error).__name__


@pytest.mark.parametrize("kind, size, cores", MACHINES)
@pytest.mark.parametrize("contiguous", [False, True])
def test_devices_are_arranged_as_by_jax(kind, size, cores, contiguous):
    def program(jax):
        utils = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils")
        devices = machine(kind, size, cores)
        return [
            ids_or_error(
                lambda shape=shape, split=split: utils.create_device_mesh(
                    shape, devices, contiguous_submeshes=contiguous, allow_split_physical_axes=split
                )
            )
            for shape in shapes_of(len(devices))
            for split in (False, True)
        ]

    same(program)


@pytest.mark.parametrize("kind, size, cores", MACHINES)
def test_meshes_are_of_devices_in_the_order_of_jax(kind, size, cores):
    def program(jax):
        devices = machine(kind, size, cores)
        made = lambda shape: jax.make_mesh(shape, tuple("abcdefghi"[: len(shape)]), devices=devices).devices  # noqa: E731
        shapes = [*shapes_of(len(devices)), (2,), (len(devices) // 2,)]
        return [ids_or_error(lambda shape=shape: made(shape)) for shape in shapes]

    same(program)


@pytest.mark.parametrize("kind", ["TPU v5 lite", "TPU v5", "TPU v5p", "TPU7x", "TPU v3"])
def test_the_order_of_the_list_and_the_place_of_the_machine(kind):
    def program(jax):
        utils = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils")
        found = []
        # The kinds of two dimensions have no cubes.
        for size, offset in (((2, 2, 1), (2, 0, 0)), ((2, 4, 1), (0, 4, 0)), ((2, 2, 2), (2, 2, 2)), ((4, 4, 1),) * 2):
            if kind == "TPU v5 lite" and size[2] > 1:
                continue
            devices = machine(kind, size, offset=offset)
            for listed in (devices, devices[::-1]):
                found.append(ids_or_error(lambda listed=listed: utils.create_device_mesh((len(listed),), listed)))
        return found

    same(program)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("mesh, slices", [((4, 4), (2, 1)), ((16, 1), (1, 2)), ((2, 8), (2, 1)), ((4, 4), (3, 1))])
def test_meshes_over_slices(mesh, slices, split):
    def program(jax):
        utils = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils")
        devices = [chip for granule in (1, 0) for chip in machine("TPU v6 lite", (4, 4, 1), granule=granule)]
        make = lambda: utils.create_hybrid_device_mesh(mesh, slices, devices, allow_split_physical_axes=split)  # noqa: E731
        return ids_or_error(make)

    same(program)


def test_gpus_are_sorted_by_id_and_cpus_are_not():
    def program(jax):
        utils, found = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils"), []
        for platform in ("gpu", "cpu"):
            devices = machine("H100", (4, 2, 1))[::-1]
            for device in devices:
                device.platform = platform
            found.append(ids_or_error(lambda devices=devices: utils.create_device_mesh((8,), devices)))
        return found

    assert same(program) == [[0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0]]


ERRORS = {
    "no such axes": (("TPU v5", (4, 4, 1)), (2, 8), {}, "Failed to find assignment for logical_axis_index 1 of size 8"),
    "hosts": (("TPU v5", (2, 2, 1)), (4,), dict(contiguous_submeshes=True), "Available mesh_shapes: [(2, 2)]"),
    "no hosts": (("TPU v5", (4, 4, 1)), (16,), dict(contiguous_submeshes=True), "physical mesh topology (4, 4, 1)"),
    "cores": (("TPU v4", (2, 2, 1), 2), (8,), {}, 'requires one device per chip ("megacore" mode)'),
    "number": (("TPU v4", (2, 2, 1)), (8,), {}, "Number of devices 4 must equal the product of mesh_shape (8,)"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_arranged_is_refused(name):
    arguments, shape, options, phrase = ERRORS[name]

    def program(jax):
        utils = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils")
        return lambda: utils.create_device_mesh(shape, machine(*arguments), **options)

    same_refusal(program, [phrase])


def test_devices_that_leave_gaps_are_refused():
    def program(jax):
        utils = importlib.import_module(f"{jax.__name__}.experimental.mesh_utils")
        return lambda: utils.create_device_mesh((3,), machine("TPU v5", (2, 2, 1))[:3])

    same_refusal(program, ["dims=(2, 2, 1) cores_per_chip=1"])
