"""Transfer guards: which transfers are implicit, which explicit, and the messages of the guards."""

import contextlib
import logging
from types import SimpleNamespace

import numpy as np
import pytest
from compare import both, outcome, same_refusal

import minijax
import minijax.numpy as jnp
from minijax.run.arrays import host
from minijax.run.clients import guards

N = np.arange(3.0)
DIRECTIONS = ["host_to_device", "device_to_device", "device_to_host"]
IMPLICIT = [
    "f(n)", "f(1.0)", "f(np.float32(1))", "jax.jit(lambda t: t[0] + t[1])([n, 2.0])", "jnp.array(n)",
    "jnp.asarray(n)", "jnp.asarray([1.0, 2.0])", "jnp.asarray(1.0)", "x + 1.0", "x + n", "lax.sin(n)",
    "jnp.sin(n)", "x[0]", "x[np.array([0])]", "x.at[0].set(1.0)", "jnp.where(x > 0, x, 0.0)",
    "jax.grad(lambda y: y * y)(1.0)", "lax.scan(lambda c, y: (c + y, c), 0.0, n)", "jnp.full(3, 2.0)", "jnp.ones(3)", "jnp.zeros(3)", "jnp.eye(3)", "jnp.ones_like(x)",
    "jax.random.key(0)", "jnp.linspace(0, 1, 3)",
]  # fmt: skip
EXPLICIT = ["jax.device_put(n)", "jax.device_put(1.0)", "jax.device_put(n, d1)", "jax.device_put(n[:2], spread)"]
MOVED = ["jax.jit(lambda y: y * 2, in_shardings=spread)(x[:2])", "jax.pmap(lambda y: y * 2)(x[:2])"]
PLACED = ["jax.device_put(x, d1)", "jax.device_put(x[:2], spread)"]
FREE = [
    "f(x)", "g(x, 2)", "x + x", "jnp.arange(3)", "jax.jit(lambda y: y + n)(x)", "jax.device_get(x)",
    "np.asarray(x)", "float(z)", "z.item()", "repr(x)", "bool(z)", "x.tolist()", "np.asarray(s)",
]  # fmt: skip


def _program(direction, mode, text):
    def program(jax, jnp, lax):
        x = jnp.asarray(N)
        mesh = jax.make_mesh((2,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
        values = dict(jax=jax, jnp=jnp, lax=lax, np=np, n=N, x=x, z=jnp.zeros(()), d1=jax.devices()[1])
        values["f"] = jax.jit(lambda x: x * 2)
        values["g"] = jax.jit(lambda x, n: x * n, static_argnums=1)
        values["spread"] = jax.NamedSharding(mesh, jax.P("a"))
        values["s"] = jax.device_put(x[:2], values["spread"])
        values["x2"] = x[:2]
        expression = text.replace("x[:2]", "x2")
        eval(expression, values)  # compiles what is needed

        def run():
            with getattr(jax, f"transfer_guard{direction and '_'}{direction}")(mode):
                return eval(expression, values)

        return run

    return program


def _sweep(direction, mode, texts, raises):
    for text in texts:
        program = _program(direction, mode, text)
        if raises:
            same_refusal(program, phrases=["INVALID_ARGUMENT: Disallowed", "transfer: aval=", "dst_sharding="])
        else:
            results = [outcome(run) for run in both(program)]
            assert not any(r.error for r in results), (text, results)


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
