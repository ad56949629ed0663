"""The order of devices in meshes: neighbours in a mesh are neighbours on the wires of TPUs."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]
# Rings through boards, by the number of devices: the size of the board from the origin, if it matters, and positions
# among the devices sorted by z, y, x.
_OF_SQUARES: dict[int, tuple[Shape | None, Shape]] = {
    4: ((2, 2, 1), (0, 1, 3, 2)),
    8: (None, (0, 1, 2, 3, 7, 6, 5, 4)),
    16: ((4, 4, 1), (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)),
}
_RINGS = {"TPU v5 lite": _OF_SQUARES, "TPU v6 lite": _OF_SQUARES, "TPU v5p": {8: ((2, 2, 2), (0, 1, 3, 2, 6, 7, 5, 4))}}
# A ring through a board of four chips with two devices each, in the order in which they are listed.
_RING_OF_CORES = (0, 1, 2, 3, 6, 7, 4, 5)
# For a torus, the shapes of meshes in which the devices of each host are contiguous, and the axes' order.
_CONTIGUOUS: dict[Shape, dict[Shape, Shape]] = {
    (2, 2, 1): {(2, 2): (1, 0, 2)},
    (2, 2, 4): {(4, 4): (2, 0, 1)},
    (4, 4, 4): {(16, 4): (2, 1, 0)},
    (4, 8, 8): {(64, 4): (2, 1, 0), (4, 64): (0, 2, 1)},
    (8, 8, 8): {(64, 8): (2, 1, 0)},
    (8, 16, 16): {(256, 8): (2, 1, 0), (8, 256): (0, 2, 1)},
}
_WITH_CORES = ("TPU v2", "TPU v3", "TPU7x")  # kinds that may have two devices on a chip


def arranged(shape: Shape, devices: Sequence[Any], contiguous: bool, split: bool) -> np.ndarray:
    """The devices as a grid of this shape; its last axes get the best connected devices.

    `contiguous`: the devices of each host are a contiguous part; `split`: an axis of the torus may be split between
    axes of the grid. Raises ValueError, NotImplementedError or AssertionError for TPUs that cannot be arranged so.
    """
    listed, platform = list(devices), getattr(devices[0], "platform", "")
    if platform == "gpu":
        listed.sort(key=lambda device: device.id)
    elif platform == "tpu":
        listed = _along_rings(shape, listed)
        if listed is None:
            return _on_torus(shape, _torus(devices), contiguous, split)
    return _array(listed).reshape(shape)


def for_mesh(shape: Shape, devices: Sequence[Any]) -> np.ndarray:
    """As `arranged`; the axes of a torus may be split on the kinds of TPUs on which that costs little."""
    return arranged(shape, devices, False, getattr(devices[0], "device_kind", "") in ("TPU v5 lite", "TPU v5e"))


def _array(devices: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(devices), object)
    array[:] = devices
    return array


def _along_rings(shape: Shape, devices: list[Any]) -> list[Any] | None:
    """The devices of one board, or of a few, along rings; None if those are not the best order."""
    kind, count = devices[0].device_kind, len(devices)
    if kind in ("TPU v2", "TPU v3"):
        return _board_by_board(devices) if count == 8 or shape[-1:] == (8,) else devices
    places = np.array([device.coords for device in devices])
    bounds, extents = tuple(places.max(0) + 1), tuple(np.ptp(places, 0) + 1)
    if kind == "TPU7x":
        return _board_by_board(devices) if _is_tower(extents, count) else None
    size, ring = _RINGS.get(kind, {}).get(count, (None, ()))
    is_board = bounds == size if size else extents[2] == 1
    if not ring or not is_board or count == 16 and max(shape) != 16:
        return None
    by_place = sorted(devices, key=lambda device: tuple(device.coords)[::-1])
    return [by_place[i] for i in ring]


def _is_tower(extents: Shape, count: int) -> bool:
    """Returns whether the devices are up to four boards of 2 × 2 chips, one upon the other."""
    layers = int(extents[2])
    return extents[:2] == (2, 2) and layers <= 4 and count % 8 == 0 and count in (4 * layers, 8 * layers)


def _board_by_board(devices: list[Any]) -> list[Any]:
    return [devices[first + i] for first in range(0, len(devices), 8) for i in _RING_OF_CORES]


def _torus(devices: Sequence[Any]) -> np.ndarray:
    """The devices by their coordinates, and by core if chips have several. Raises AssertionError if there are gaps."""
    kind, cores = devices[0].device_kind, 1 + max(device.core_on_chip for device in devices)
    if kind not in _WITH_CORES:
        for device in devices:
            if device.core_on_chip:
                raise AssertionError(
                    'Creating meshes for TPU >v3 requires one device per chip ("megacore" mode). Got device id '
                    f"{device.core_on_chip} for a device of kind {kind}: {device}."
                )
    places = np.array([device.coords for device in devices])
    sizes = tuple([int(n) for n in np.ptp(places, 0) + 1])
    places = np.column_stack([places - places.min(0), [device.core_on_chip for device in devices]])
    torus = np.full((*sizes, cores), None, object)
    torus[tuple(places.T)] = _array(devices)
    if torus.size != len(devices) or any(device is None for device in torus.flat):
        raise AssertionError(
            f"The devices do not fill a torus: jax_devices={list(devices)} dims={sizes} cores_per_chip={cores}"
        )
    return torus if cores > 1 else torus[..., 0]


def _on_torus(shape: Shape, torus: np.ndarray, contiguous: bool, split: bool) -> np.ndarray:
    if contiguous:
        return _contiguous(shape, torus)
    if split:
        return _with_split_axes(shape, torus)
    axes = _whole_axes(shape, torus.shape)
    used = [axis for group in axes for axis in group]
    rest = [axis for axis in range(torus.ndim) if axis not in used]
    return torus.transpose([*used, *rest]).reshape(shape)


def _contiguous(shape: Shape, torus: np.ndarray) -> np.ndarray:
    known = _CONTIGUOUS.get(torus.shape)
    if known is None:
        raise ValueError(
            f"create_device_mesh cannot create contiguous submeshes for physical mesh topology {torus.shape}"
        )
    order = known.get(tuple(n for n in shape if n != 1))
    if order is None:
        raise ValueError(
            f"create_device_mesh cannot create contiguous submeshes for mesh_shape {shape} and physical mesh topology "
            f"{torus.shape}. Available mesh_shapes: {list(known)}"
        )
    return torus.transpose(order).reshape(shape)


def _whole_axes(shape: Shape, sizes: Shape) -> list[Shape]:
    """For each axis of the grid the axes of the torus that it consists of: the last ones get as many as possible."""
    left = list(sizes)
    found: list[Shape] = [()] * len(shape)
    for i, size in reversed([*enumerate(shape)]):
        # An axis of more wires has more bandwidth.
        by_count = [itertools.combinations(range(len(sizes)), count) for count in range(len(sizes), 0, -1)]
        choices = itertools.chain.from_iterable(by_count)
        fitting = (axes for axes in choices if math.prod(left[axis] for axis in axes) == size)
        axes = () if size == 1 else next(fitting, None)
        if axes is None:
            raise NotImplementedError(
                f"Failed to find assignment for logical_axis_index {i} of size {size} with remaining assignable mesh "
                f"{left}: create_device_mesh makes each axis of the mesh of whole axes of the torus, unless "
                "`allow_split_physical_axes`"
            )
        found[i] = axes
        for axis in axes:
            left[axis] = 0
    return found


def _with_split_axes(shape: Shape, torus: np.ndarray) -> np.ndarray:
    left = list(torus.shape)
    parts: list[Shape] = [()] * len(shape)
    for i, size in reversed([*enumerate(shape)]):
        found = max(_divisors(size, left), key=lambda part: _preference(part, torus.shape), default=None)
        if found is None:
            raise NotImplementedError(
                f"Failed to find assignment for logical_axis_index {i} of size {size} with remaining assignable mesh "
                f"{left}, even with `allow_split_physical_axes`"
            )
        parts[i] = found
        left = [n // part for n, part in zip(left, found, strict=True)]
    # Each axis of the torus is cut into its parts, the last axis of the grid having the innermost.
    axes, ndim = range(torus.ndim), len(shape)
    cut = torus.reshape([parts[i][axis] for axis in axes for i in range(ndim)])
    return cut.transpose([axis * ndim + i for i in range(ndim) for axis in axes]).reshape(shape)


def _preference(part: Shape, sizes: Shape) -> tuple[int, int, Shape]:
    """The most devices along whole axes come first, then the most whole axes, then the first axes."""
    whole = [n for n, size in zip(part, sizes, strict=True) if n == size > 1]
    return math.prod(whole), len(whole), part


def _divisors(size: int, left: Sequence[int]) -> Iterator[Shape]:
    """All ways to make `size` of divisors of the numbers that are left."""
    if not left:
        yield from [()] if size == 1 else []
        return
    for part in range(1, left[0] + 1):
        if left[0] % part == 0 and size % part == 0:
            yield from ((part, *rest) for rest in _divisors(size // part, left[1:]))
