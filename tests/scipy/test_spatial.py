"""jax.scipy.spatial.transform: methods of Rotation and Slerp, against jax and scipy."""

import importlib

import compare
import numpy as np
import pytest
from compare import Case
from scipy_calls import CLOSE, TRANSFORMS
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

_RANDOM = np.random.default_rng(0)
_QUATS = (_RANDOM.normal(size=(3, 4)) * [1, -1, 1, 1]).astype(np.float32)
_VECTORS = _RANDOM.normal(size=(3, 3)).astype(np.float32)
_MATRICES = np.linalg.qr(_RANDOM.normal(size=(3, 3, 3)))[0].astype(np.float32)
_TIMES = np.array([0, 1, 3], np.float32)
# Calls of a rotation, some with vectors; the first table is compared with SciPy too.
_METHODS = {
    "matrix": lambda r, v: r.as_matrix(),
    "mrp": lambda r, v: r.as_mrp(),
    "rotvec": lambda r, v: r.as_rotvec(),
    "rotvec in degrees": lambda r, v: r.as_rotvec(degrees=True),
    "euler xyz": lambda r, v: r.as_euler("xyz"),
    "euler ZYX in degrees": lambda r, v: r.as_euler("ZYX", True),
    "euler zxz": lambda r, v: r.as_euler("zxz"),
    "magnitude": lambda r, v: r.magnitude(),
    "apply": lambda r, v: r.apply(v),
    "apply inverse": lambda r, v: r.apply(v, inverse=True),
}
_OTHERS = {
    "quat": lambda r, v: r.as_quat(),
    "canonical quat": lambda r, v: r.as_quat(True),
    "quat, scalar first": lambda r, v: r.as_quat(True, scalar_first=True),
    "inv": lambda r, v: r.inv(),
}
_ALL = _METHODS | _OTHERS
_CONSTRUCTORS = [
    ("from_quat", _QUATS),
    ("from_quat", np.arange(4)),
    ("from_quat", _QUATS.astype(np.float16)),
    ("from_rotvec", _VECTORS),
    ("from_rotvec", 1e-4 * _VECTORS),
    ("from_mrp", _VECTORS),
    ("from_matrix", _MATRICES),
    ("from_matrix", np.diag([1, -1, -1]).astype(np.float32)),
]


def _method(name, q, v):
    def program(transform):
        return lambda q, v: _ALL[name](transform.Rotation.from_quat(q), v)

    return Case(f"{name} {q.shape} {v.shape}", program, (q, v), tolerance=CLOSE)


def _constructor(name, x):
    def program(transform):
        return lambda x: getattr(transform.Rotation, name)(x).quat

    return Case(f"{name} {x.dtype}{x.shape}", program, (x,), tolerance=CLOSE)


def _euler(seq, shape):
    def program(transform):
        return lambda a: transform.Rotation.from_euler(seq, a, degrees=True).quat

    return Case(f"from_euler {seq}", program, (_RANDOM.normal(size=shape).astype(np.float32) * 90,), tolerance=CLOSE)


SINGLE = [_method(name, _QUATS[0], _VECTORS[0]) for name in _ALL]
MANY = [_method(name, _QUATS, _VECTORS) for name in _ALL]
MIXED = [_method("apply", _QUATS, _VECTORS[0]), _method("apply", _QUATS[0], _VECTORS)]
NEW = [_constructor(*row) for row in _CONSTRUCTORS]
EULER = [_euler("x", ()), _euler("xy", (2,)), _euler("XYZ", (2, 3)), _euler("zxz", (0, 3))]


def _is_shared(case):
    # The operations of batched Euler angles are jax's, but fewer bodies are printed twice.
    return case in MANY and case.name.startswith("euler")


def test_methods_agree(tier):
    cases = [*SINGLE, *MANY, *MIXED, *NEW, *EULER]
    compare.sweep([case for case in cases if not _is_shared(case)], tier)
    compare.sweep([case for case in cases if _is_shared(case)], tier, jaxpr=False)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_agree(transform, tier):
    cases = [
        transformed(case, transform)
        for case in [*SINGLE, NEW[0], NEW[3], NEW[5], NEW[6]]
        if not case.name.startswith("inv ")
    ]
    compare.sweep([c for c in cases if tier == "full" or compare.sampled(c.name, 4, transform)], tier, jaxpr=False)


def _program(function):
    def program(transform, jnp):
        return function(transform, jnp, jnp.asarray)

    return program


_GROUPS = {
    "product": lambda t, jnp, a: (t.Rotation.from_quat(a(_QUATS)) * t.Rotation.from_quat(a(_QUATS[1]))).quat,
    "mean": lambda t, jnp, a: t.Rotation.from_quat(a(_QUATS)).mean().quat,
    "weighted mean": lambda t, jnp, a: t.Rotation.from_quat(a(_QUATS)).mean([1.0, 2.0, 0.5]).quat,
    "item": lambda t, jnp, a: t.Rotation.from_quat(a(_QUATS))[1].quat,
    "slice": lambda t, jnp, a: t.Rotation.from_quat(a(_QUATS))[-2:].quat,
    "concatenation": lambda t, jnp, a: t.Rotation.concatenate([t.Rotation(a(_QUATS))] * 2).quat,
    "identity": lambda t, jnp, a: t.Rotation.identity(dtype=jnp.float16).quat,
    "length": lambda t, jnp, a: len(t.Rotation(a(_QUATS))),
    "single": lambda t, jnp, a: (t.Rotation(a(_QUATS)).single, t.Rotation(a(_QUATS[0])).single),
    "repr": lambda t, jnp, a: repr(t.Rotation.identity()),
    "slerp": lambda t, jnp, a: tuple(t.Slerp.init(a(_TIMES), t.Rotation.from_quat(a(_QUATS)))),
    "slerp at a time": lambda t, jnp, a: t.Slerp.init(_TIMES, t.Rotation.from_quat(a(_QUATS)))(0.25).quat,
    "slerp at times": lambda t, jnp, a: (
        t.Slerp.init([0, 1, 3], t.Rotation.from_quat(a(_QUATS)))(a([-1, 0, 0.5, 2.5, 3, 4])).quat
    ),
}


@pytest.mark.parametrize("name", _GROUPS)
def test_groups_and_interpolation_agree(name):
    compare.same(_program(_GROUPS[name]), **CLOSE)


def test_rotations_are_trees():
    def program(jax, jnp, transform):
        slerp = transform.Slerp.init(jnp.asarray(_TIMES), transform.Rotation.from_quat(jnp.asarray(_QUATS)))
        doubled = jax.jit(jax.vmap(lambda r: r * r))(slerp.rotations)
        at = jax.vmap(lambda t: slerp(t).as_rotvec())(jnp.array([0.5, 2.0]))
        slope = jax.grad(lambda t: slerp(t).as_rotvec().sum())(2.0)
        return len(jax.tree.leaves(slerp)), type(doubled).__name__, doubled.quat, at, slope

    compare.same(program, rtol=2e-5, atol=1e-6, why="XLA fuses in another way")


def test_values_are_those_of_scipy():
    scipy = pytest.importorskip("scipy.spatial.transform")
    transform = importlib.import_module("minijax.scipy.spatial.transform")
    ours, theirs = transform.Rotation.from_quat(_QUATS), scipy.Rotation.from_quat(_QUATS)
    for name, method in _METHODS.items():
        np.testing.assert_allclose(method(ours, _VECTORS), method(theirs, _VECTORS), 1e-4, 1e-4, err_msg=name)
    at = [0.25, 1.0, 2.5]
    expected = scipy.Slerp(_TIMES, theirs)(at).as_matrix()
    np.testing.assert_allclose(transform.Slerp.init(_TIMES, ours)(at).as_matrix(), expected, atol=1e-5)


MISUSES = [
    (lambda jax, jnp, transform, q: transform.Rotation.from_euler("", 1.0), "upto 3 characters"),
    (lambda jax, jnp, transform, q: transform.Rotation.from_euler("xY", jnp.ones(2)), "Expected axes from `seq`"),
    (
        lambda jax, jnp, transform, q: transform.Rotation.from_euler("xx", jnp.ones(2)),
        "consecutive axes to be different",
    ),
    (lambda jax, jnp, transform, q: transform.Rotation.from_euler("x", jnp.ones(2)), "inconsistent size"),
    (lambda jax, jnp, transform, q: transform.Rotation(q).as_euler("xy"), "Expected 3 axes"),
    (lambda jax, jnp, transform, q: transform.Rotation(q).as_euler("abc"), "Expected axes from `seq`"),
    (lambda jax, jnp, transform, q: transform.Rotation(q).as_euler("xxy"), "consecutive axes to be different"),
    (lambda jax, jnp, transform, q: len(transform.Rotation(q[0])), "Single rotation has no len"),
    (lambda jax, jnp, transform, q: transform.Rotation(q[0])[0], "Single rotation is not subscriptable"),
    (lambda jax, jnp, transform, q: transform.Rotation(q[0]).mean(), "Single rotation has no len"),
    (
        lambda jax, jnp, transform, q: transform.Rotation(q).mean(jnp.ones(2)),
        "number of values equal to number of rotations",
    ),
    (lambda jax, jnp, transform, q: transform.Rotation(q).mean(jnp.ones((3, 1))), "1 dimensional"),
    (lambda jax, jnp, transform, q: transform.Rotation.identity(2), ""),
    (lambda jax, jnp, transform, q: transform.Rotation.random(jax.random.key(0)), ""),
    (lambda jax, jnp, transform, q: transform.Slerp.init(jnp.ones(3), q), "must be a `Rotation` instance"),
    (
        lambda jax, jnp, transform, q: transform.Slerp.init(jnp.ones(1), transform.Rotation(q[:1])),
        "at least 2 rotations",
    ),
    (
        lambda jax, jnp, transform, q: transform.Slerp.init(jnp.ones(2), transform.Rotation(q)),
        "equal to number of timestamps",
    ),
    (
        lambda jax, jnp, transform, q: transform.Slerp.init(jnp.ones((3, 1)), transform.Rotation(q)),
        "1 dimensional array",
    ),
    (
        lambda jax, jnp, transform, q: transform.Slerp.init(jnp.arange(3.0), transform.Rotation(q))(jnp.ones((1, 1))),
        "at most 1-dimensional",
    ),
]


@pytest.mark.parametrize("call, phrase", MISUSES)
def test_misuse_is_named(call, phrase):
    def program(jax, jnp, transform):
        return lambda: call(jax, jnp, transform, jnp.asarray(_QUATS))

    compare.same_refusal(program, phrases=[phrase])


def test_euler_angles_promote_no_ranks():
    def program(jax, transform):
        with jax.numpy_rank_promotion("raise"):
            return transform.Rotation.from_quat(_QUATS).as_euler("zxz")

    compare.same(program, **CLOSE)
