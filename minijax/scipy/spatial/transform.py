"""Rotations of space as unit quaternions, scalar last, and spherical interpolation between them."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.base.faces import documented

_SMALL_ANGLE = 1e-3


class Rotation(NamedTuple):
    """Represents a rotation in three dimensions, or an array of them.

    `quat` is (4,) or (rotations, 4), with the real part last.
    """

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence["Rotation"]) -> "Rotation":
        """Concatenates several `Rotation` objects."""
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> "Rotation":
        """From Euler angles (..., axes) about the axes of `seq`, up to three of "xyz" (extrinsic) or "XYZ" (intrinsic).

        Raises ValueError for other axes, or for one that is repeated.
        """
        if not 1 <= len(seq) <= 3:
            raise ValueError(
                "Rotation.from_euler: Expected axis specification to be a non-empty string of upto 3 characters, "
                f"got {seq}"
            )
        axes, is_intrinsic = _axes("Rotation.from_euler", seq)
        return cls(_quat_of_euler(axes, jnp.atleast_1d(angles), is_intrinsic, degrees))

    @classmethod
    def from_matrix(cls, matrix: Any) -> "Rotation":
        """From matrices (..., 3, 3), which must be orthogonal with determinant 1."""
        return cls(_quat_of_matrix(matrix))

    @classmethod
    def from_mrp(cls, mrp: Any) -> "Rotation":
        """From modified Rodrigues parameters (..., 3): the axis times the tangent of a quarter of the angle."""
        return cls(_quat_of_mrp(mrp))

    @classmethod
    def from_quat(cls, quat: Any) -> "Rotation":
        """From quaternions (..., 4), scalar last, of any length but zero."""
        return cls(_unit(quat))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> "Rotation":
        """From vectors (..., 3) along the axis, as long as the angle."""
        return cls(_quat_of_rotvec(rotvec, degrees))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> "Rotation":
        """The identity rotation. Raises AssertionError if `num` is given, as jax does."""
        if num is not None:
            raise AssertionError("Rotation.identity: `num` is not supported, pass None")
        return cls(jnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> "Rotation":
        """Raises NotImplementedError, as jax does."""
        raise NotImplementedError("Rotation.random: random rotations are not implemented")

    def __getitem__(self, indexer: Any) -> "Rotation":
        """The rotations at an index. Raises TypeError for a single one."""
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """The number of rotations. Raises TypeError for a single one."""
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other: "Rotation") -> "Rotation":
        """The composition: rotates by `other` first, then by this one."""
        return Rotation.from_quat(_compose(self.quat, other.quat))

    @property
    def single(self) -> bool:
        """Returns whether this is a single rotation, not an array of them."""
        return self.quat.ndim == 1

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Rotates vectors (..., 3), by the inverse rotation if `inverse`."""
        return _apply(self.as_matrix(), vectors, inverse)

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Euler angles (..., 3) about the axes of `seq`, three of "xyz" (extrinsic) or "XYZ" (intrinsic).

        In gimbal lock the angle about the last axis is zero. Raises ValueError for other axes, or for one that is
        repeated.
        """
        if len(seq) != 3:
            raise ValueError(f"Rotation.as_euler: Expected 3 axes, got {seq}.")
        axes, is_intrinsic = _axes("Rotation.as_euler", seq)
        return _euler(self.quat, axes, not is_intrinsic, degrees)

    def as_matrix(self) -> Any:
        """Matrices (..., 3, 3)."""
        return _matrix(self.quat)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters (..., 3), of length at most 1."""
        return _mrp(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Vectors (..., 3) along the axis, as long as the angle."""
        return _rotvec(self.quat, degrees)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """Quaternions (..., 4); if `canonical`, the one of q and -q whose scalar is not negative."""
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> "Rotation":
        """The inverse rotation."""
        return Rotation(_conjugate(self.quat))

    def magnitude(self) -> Any:
        """The angle in radians, from 0 to pi."""
        return _magnitude(self.quat)

    def mean(self, weights: Any = None) -> "Rotation":
        """The weighted mean rotation (Markley et al. 2007); the weights are (rotations,).

        Raises TypeError for a single rotation and ValueError for weights of another shape.
        """
        count = len(self)
        weights = jnp.ones(count, dtype=self.quat.dtype) if weights is None else jnp.asarray(weights, self.quat.dtype)
        if weights.ndim != 1:
            raise ValueError(f"Rotation.mean: Expected `weights` to be 1 dimensional, got shape {weights.shape}.")
        if weights.shape[0] != count:
            raise ValueError(
                f"Rotation.mean: Expected `weights` to have number of values equal to number of rotations, "
                f"got {weights.shape[0]} values and {count} rotations."
            )
        _, vectors = jnp.linalg.eigh(jnp.dot(weights[None, :] * self.quat.T, self.quat))
        return Rotation(vectors[:, -1])


class Slerp(NamedTuple):
    """Interpolates between rotations at given times, along great circles."""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> "Slerp":
        """From ascending times (n,) and n >= 2 rotations. Raises TypeError or ValueError for other arguments."""
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp.init: `rotations` must be a `Rotation` instance. Got: {type(rotations)}")
        if rotations.single or len(rotations) == 1:
            raise ValueError("Slerp.init: `rotations` must be a sequence of at least 2 rotations.")
        times = jnp.asarray(times, dtype=rotations.quat.dtype)
        if times.ndim != 1:
            raise ValueError(
                f"Slerp.init: Expected times to be specified in a 1 dimensional array, got {times.ndim} dimensions."
            )
        if times.shape[0] != len(rotations):
            raise ValueError(
                "Slerp.init: Expected number of rotations to be equal to number of timestamps given, "
                f"got {len(rotations)} rotations and {times.shape[0]} timestamps."
            )
        timedelta = jnp.diff(times)
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, timedelta, starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times, one or (m,). Raises ValueError for more dimensions."""
        at = jnp.asarray(times, dtype=self.times.dtype)
        if at.ndim > 1:
            raise ValueError("Slerp: `times` must be at most 1-dimensional.")
        is_single = at.ndim == 0
        at = jnp.atleast_1d(at)
        i = jnp.maximum(jnp.searchsorted(self.times, at) - 1, 0)
        share = (at - self.times[i]) / self.timedelta[i]
        result = self.rotations[i] * Rotation.from_rotvec(self.rotvecs[i] * share[:, None])
        return result[0] if is_single else result


def _axes(name: str, seq: str) -> tuple[Any, bool]:
    """(indices of the axes, whether they are intrinsic)."""
    if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"{name}: Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    if any(a == b for a, b in zip(seq, seq[1:], strict=False)):
        raise ValueError(f"{name}: Expected consecutive axes to be different, got {seq}")
    return jnp.array(["xyz".index(axis) for axis in seq.lower()]), seq.isupper()


def _norm(vector: Any) -> Any:
    return jnp.sqrt(jnp.dot(vector, vector))


def _polynomial_or(angle: Any, series: Any, quotient: Any) -> Any:
    """A quotient of an angle and a sine; its series where the angle is small."""
    return jnp.where(angle <= _SMALL_ANGLE, series, quotient)


# ---- to quaternions ----------------------------------------------------------------------------------


@functools.partial(jnp.vectorize, signature="(n)->(n)")
def _unit(quat: Any) -> Any:
    return quat / _norm(quat)


def _elementary(axis: Any, angle: Any) -> Any:
    quat = jnp.zeros(4, dtype=angle.dtype)
    return quat.at[3].set(jnp.cos(angle / 2.0)).at[axis].set(jnp.sin(angle / 2.0))


@functools.partial(jnp.vectorize, signature="(m),(m),(),()->(n)")
def _quat_of_euler(axes: Any, angles: Any, is_intrinsic: Any, degrees: Any) -> Any:
    angles = jnp.where(degrees, jnp.deg2rad(angles), angles)
    result = _elementary(axes[0], angles[0])
    for k in range(1, axes.shape[0]):
        quat = _elementary(axes[k], angles[k])
        result = jnp.where(is_intrinsic, _compose(result, quat), _compose(quat, result))
    return result


@functools.partial(jnp.vectorize, signature="(m,m)->(n)")
def _quat_of_matrix(matrix: Any) -> Any:
    trace = matrix[0, 0] + matrix[1, 1] + matrix[2, 2]
    sizes = jnp.array([matrix[0, 0], matrix[1, 1], matrix[2, 2], trace], dtype=matrix.dtype)
    i = jnp.argmax(sizes)
    j = (i + 1) % 3
    k = (j + 1) % 3
    by_axis = jnp.zeros(4, dtype=matrix.dtype)
    by_axis = by_axis.at[i].set(1 - sizes[3] + 2 * matrix[i, i])
    by_axis = by_axis.at[j].set(matrix[j, i] + matrix[i, j])
    by_axis = by_axis.at[k].set(matrix[k, i] + matrix[i, k])
    by_axis = by_axis.at[3].set(matrix[k, j] - matrix[j, k])
    by_trace = jnp.zeros(4, dtype=matrix.dtype)
    by_trace = by_trace.at[0].set(matrix[2, 1] - matrix[1, 2])
    by_trace = by_trace.at[1].set(matrix[0, 2] - matrix[2, 0])
    by_trace = by_trace.at[2].set(matrix[1, 0] - matrix[0, 1])
    by_trace = by_trace.at[3].set(1 + sizes[3])
    return _unit(jnp.where(i != 3, by_axis, by_trace))


@functools.partial(jnp.vectorize, signature="(m)->(n)")
def _quat_of_mrp(mrp: Any) -> Any:
    size = jnp.dot(mrp, mrp) + 1
    return jnp.hstack([2 * mrp, 2 - size]) / size


@functools.partial(jnp.vectorize, signature="(m),()->(n)")
def _quat_of_rotvec(rotvec: Any, degrees: Any) -> Any:
    rotvec = jnp.where(degrees, jnp.deg2rad(rotvec), rotvec)
    angle = _norm(rotvec)
    square = angle * angle
    series = 0.5 - square / 48 + square * square / 3840
    scale = _polynomial_or(angle, series, jnp.sin(angle / 2) / angle)
    return jnp.hstack([scale * rotvec, jnp.cos(angle / 2)])


# ---- of quaternions ----------------------------------------------------------------------------------


@functools.partial(jnp.vectorize, signature="(n),(n)->(n)")
def _compose(p: Any, q: Any) -> Any:
    cross = jnp.cross(p[:3], q[:3])
    return jnp.array(
        [
            p[3] * q[0] + q[3] * p[0] + cross[0],
            p[3] * q[1] + q[3] * p[1] + cross[1],
            p[3] * q[2] + q[3] * p[2] + cross[2],
            p[3] * q[3] - p[0] * q[0] - p[1] * q[1] - p[2] * q[2],
        ]
    )


@functools.partial(jnp.vectorize, signature="(n)->(n)")
def _conjugate(quat: Any) -> Any:
    return quat * jnp.array([-1, -1, -1, 1], dtype=quat.dtype)


@functools.partial(jnp.vectorize, signature="(n)->(n)")
def _canonical(quat: Any) -> Any:
    less, zero = quat < 0, quat == 0
    is_other = less[3] | (zero[3] & less[0]) | (zero[3] & zero[0] & less[1]) | (zero[3] & zero[0] & zero[1] & less[2])
    return jnp.where(is_other, -quat, quat)


@functools.partial(jnp.vectorize, signature="(n)->()")
def _magnitude(quat: Any) -> Any:
    return 2.0 * jnp.arctan2(_norm(quat[:3]), jnp.abs(quat[3]))


@functools.partial(jnp.vectorize, signature="(m,m),(m),()->(m)")
def _apply(matrix: Any, vector: Any, inverse: Any) -> Any:
    return jnp.where(inverse, matrix.T, matrix) @ vector


# ---- from quaternions --------------------------------------------------------------------------------


@functools.partial(jnp.vectorize, signature="(m)->(n,n)")
def _matrix(quat: Any) -> Any:
    x, y, z, w = quat[0], quat[1], quat[2], quat[3]
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    xy, zw, xz, yw, yz, xw = x * y, z * w, x * z, y * w, y * z, x * w
    return jnp.array(
        [
            [xx - yy - zz + ww, 2 * (xy - zw), 2 * (xz + yw)],
            [2 * (xy + zw), -xx + yy - zz + ww, 2 * (yz - xw)],
            [2 * (xz - yw), 2 * (yz + xw), -xx - yy + zz + ww],
        ]
    )


@functools.partial(jnp.vectorize, signature="(m)->(n)")
def _mrp(quat: Any) -> Any:
    sign = jnp.where(quat[3] < 0, -1.0, 1.0)
    size = 1.0 + sign * quat[3]
    return sign * quat[:3] / size


@functools.partial(jnp.vectorize, signature="(m),()->(n)")
def _rotvec(quat: Any, degrees: Any) -> Any:
    quat = jnp.where(quat[3] < 0, -quat, quat)
    angle = 2.0 * jnp.arctan2(_norm(quat[:3]), quat[3])
    square = angle * angle
    series = 2 + square / 12 + 7 * square * square / 2880
    scale = _polynomial_or(angle, series, angle / jnp.sin(angle / 2))
    scale = jnp.where(degrees, jnp.rad2deg(scale), scale)
    return scale * jnp.array(quat[:3])


@functools.partial(jnp.vectorize, signature="(m)->(n)", excluded=(1, 2, 3))
def _euler(quat: Any, axes: Any, is_extrinsic: Any, degrees: Any) -> Any:
    """Bernardes & Viollet 2022, for axes i, j, k. If i == k, k becomes the axis that is neither i nor j."""
    first = jnp.where(is_extrinsic, 0, 2)
    third = jnp.where(is_extrinsic, 2, 0)
    axes = jnp.where(is_extrinsic, axes, axes[::-1])
    i, j, k = axes[0], axes[1], axes[2]
    is_symmetric = i == k
    k = jnp.where(is_symmetric, 3 - i - j, k)
    sign = jnp.array((i - j) * (j - k) * (k - i) // 2, dtype=quat.dtype)
    a = jnp.where(is_symmetric, quat[3], quat[3] - quat[j])
    b = jnp.where(is_symmetric, quat[i], quat[i] + quat[k] * sign)
    c = jnp.where(is_symmetric, quat[j], quat[j] + quat[3])
    d = jnp.where(is_symmetric, quat[k] * sign, quat[k] * sign - quat[i])
    angles = jnp.zeros(3, dtype=quat.dtype)
    angles = angles.at[1].set(2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b)))
    lock = jnp.where(jnp.abs(angles[1] - np.pi) <= 1e-7, 2, 0)
    lock = jnp.where(jnp.abs(angles[1]) <= 1e-7, 1, lock)
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    locked = jnp.where(lock == 1, 2 * half_sum, 2 * half_difference * jnp.where(is_extrinsic, -1, 1))
    angles = angles.at[0].set(locked)
    angles = angles.at[first].set(jnp.where(lock == 0, half_sum - half_difference, angles[first]))
    angles = angles.at[third].set(jnp.where(lock == 0, half_sum + half_difference, angles[third]))
    angles = angles.at[third].set(jnp.where(is_symmetric, angles[third], angles[third] * sign))
    angles = angles.at[1].set(jnp.where(is_symmetric, angles[1], angles[1] - np.pi / 2))
    angles = (angles + np.pi) % (2 * np.pi) - np.pi
    return jnp.where(degrees, jnp.rad2deg(angles), angles)


__all__, __dir__ = documented(__name__, "Rotation Slerp")
