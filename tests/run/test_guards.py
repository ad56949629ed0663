"""Transfer guards: which transfers are implicit, which explicit, and the messages of the guards."""

import contextlib
import logging
from types import SimpleNamespace

import numpy as np
import pytest
from compare import both, outcome, same_refusal
from given import given

import minijax
import minijax.numpy as jnp
from minijax.run.arrays import host
from minijax.run.clients import guards

N = np.arange(3.0)
DIRECTIONS = ["host_to_device", "device_to_device", "device_to_host"]
IMPLICIT = [
    lambda n, f: f(n), lambda f: f(1.0), lambda f: f(np.float32(1)), lambda jax, n: jax.jit(lambda t: t[0] + t[1])([n, 2.0]), lambda jnp, n: jnp.array(n),
    lambda jnp, n: jnp.asarray(n), lambda jnp: jnp.asarray([1.0, 2.0]), lambda jnp: jnp.asarray(1.0), lambda x: x + 1.0, lambda n, x: x + n, lambda lax, n: lax.sin(n),
    lambda jnp, n: jnp.sin(n), lambda x: x[0], lambda x: x[np.array([0])], lambda x: x.at[0].set(1.0), lambda jnp, x: jnp.where(x > 0, x, 0.0),
    lambda jax: jax.grad(lambda y: y * y)(1.0), lambda lax, n: lax.scan(lambda c, y: (c + y, c), 0.0, n), lambda jnp: jnp.full(3, 2.0), lambda jnp: jnp.ones(3), lambda jnp: jnp.zeros(3), lambda jnp: jnp.eye(3), lambda jnp, x: jnp.ones_like(x),
    lambda jax: jax.random.key(0), lambda jnp: jnp.linspace(0, 1, 3),
]  # fmt: skip
EXPLICIT = [
    lambda jax, n: jax.device_put(n),
    lambda jax: jax.device_put(1.0),
    lambda jax, n, d1: jax.device_put(n, d1),
    lambda jax, n, spread: jax.device_put(n[:2], spread),
]
MOVED = [
    lambda jax, x2, spread: jax.jit(lambda y: y * 2, in_shardings=spread)(x2),
    lambda jax, x2: jax.pmap(lambda y: y * 2)(x2),
]
PLACED = [lambda jax, x, d1: jax.device_put(x, d1), lambda jax, x2, spread: jax.device_put(x2, spread)]
FREE = [
    lambda x, f: f(x), lambda x, g: g(x, 2), lambda x: x + x, lambda jnp: jnp.arange(3), lambda jax, n, x: jax.jit(lambda y: y + n)(x), lambda jax, x: jax.device_get(x),
    lambda x: np.asarray(x), lambda z: float(z), lambda z: z.item(), lambda x: repr(x), lambda z: bool(z), lambda x: x.tolist(), lambda s: np.asarray(s),
]  # fmt: skip


def _program(direction, mode, call):
    def program(jax, jnp, lax):
        x = jnp.asarray(N)
        mesh = jax.make_mesh((2,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
        values = dict(jax=jax, jnp=jnp, lax=lax, n=N, x=x, z=jnp.zeros(()), d1=jax.devices()[1])
        values["f"] = jax.jit(lambda x: x * 2)
        values["g"] = jax.jit(lambda x, n: x * n, static_argnums=1)
        values["spread"] = jax.NamedSharding(mesh, jax.P("a"))
        values["s"] = jax.device_put(x[:2], values["spread"])
        values["x2"] = x[:2]
        given(call, values)  # compiles what is needed

        def run():
            with getattr(jax, f"transfer_guard{direction and '_'}{direction}")(mode):
                return given(call, values)

        return run

    return program


def _sweep(direction, mode, calls, raises):
    for number, call in enumerate(calls):
        program = _program(direction, mode, call)
        if raises:
            same_refusal(program, phrases=["INVALID_ARGUMENT: Disallowed", "transfer: aval=", "dst_sharding="])
        else:
            results = [outcome(run) for run in both(program)]
            assert not any(r.error for r in results), (number, results)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["disallow", "disallow_explicit", "allow"])
def test_transfers_from_the_host(mode):
    _sweep("host_to_device", mode, IMPLICIT, mode != "allow")
    _sweep("host_to_device", mode, EXPLICIT, mode == "disallow_explicit")
    _sweep("host_to_device", mode, FREE + MOVED + PLACED, False)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["disallow", "disallow_explicit", "allow"])
def test_transfers_between_devices(mode):
    _sweep("device_to_device", mode, MOVED, mode != "allow")
    _sweep("device_to_device", mode, PLACED, mode == "disallow_explicit")
    _sweep("device_to_device", mode, IMPLICIT[:6] + EXPLICIT + FREE, False)


@pytest.mark.oracle
def test_on_cpu_nothing_is_copied_to_the_host():
    _sweep("device_to_host", "disallow_explicit", FREE + IMPLICIT[:3], False)


@pytest.mark.oracle
def test_one_guard_is_for_all_directions():
    _sweep("", "disallow", IMPLICIT[:4] + MOVED, True)
    _sweep("", "disallow", EXPLICIT + PLACED + FREE, False)


@pytest.mark.parametrize("mode, heard", [("log", 1), ("log_explicit", 2), ("allow", 0)])
def test_logged_transfers(mode, heard, caplog):
    with caplog.at_level(logging.WARNING), minijax.transfer_guard(mode):
        minijax.device_put(N)
        jnp.asarray(N)
    told = [r for r in caplog.records if "host-to-device transfer: aval=ShapedArray(float32[3])" in r.getMessage()]
    assert len(told) == heard


def test_a_guard_is_seen_by_its_thread_alone_and_global_ones_by_all():
    with minijax.transfer_guard("disallow"), pytest.raises(minijax.errors.JaxRuntimeError):
        jnp.asarray(N)
    jnp.asarray(N)
    minijax.config.update("jax_transfer_guard", "disallow")
    try:
        assert minijax.config.jax_transfer_guard_host_to_device == "disallow"
        with pytest.raises(minijax.errors.JaxRuntimeError):
            jnp.asarray(N)
    finally:
        for name in ("", *(f"_{d}" for d in DIRECTIONS)):
            minijax.config.update(f"jax_transfer_guard{name}", None)
    jnp.asarray(N)


def test_reading_an_accelerator_s_memory_is_a_transfer():
    x, device = jnp.arange(3.0), SimpleNamespace(platform="gpu")

    def read():
        return host.read_single(x._raw, x.shape, x.dtype, device).tolist()

    assert read() == [0, 1, 2]
    for mode, is_explicit in ("disallow", False), ("disallow_explicit", True):
        with minijax.transfer_guard_device_to_host(mode), pytest.raises(Exception, match="device-to-host"):
            with guards.explicit_transfers() if is_explicit else contextlib.nullcontext():
                read()
    with minijax.transfer_guard_device_to_host("disallow"), guards.explicit_transfers():
        assert read() == [0, 1, 2]
