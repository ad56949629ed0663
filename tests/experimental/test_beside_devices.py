"""`colocated_python`, whose functions run beside devices, and `transfer`, which moves arrays between processes."""

import importlib
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

import minijax

pytestmark = pytest.mark.oracle


def module(name):
    return lambda s: importlib.import_module(f"{s.jax.__name__}.experimental.{name}")


def counter(s):
    library = s.jax.__name__  # jax pickles the class, with what it captures

    @module("colocated_python")(s).colocated_python_class
    class Counter:
        """Counts."""

        step = 2

        def __init__(self, start=0):
            self.count = start

        def add(self, x):
            self.count += self.step
            return x + self.count

        def get(self):
            return importlib.import_module(f"{library}.numpy").asarray(self.count)

        @staticmethod
        def same(x):
            return x

        def fail(self, x):
            raise KeyError("beside")

    return Counter


def broken(s):
    return module("colocated_python")(s).colocated_python_class(
        type("Broken", (), {"__init__": lambda self: 1 / 0, "run": lambda self, x: x})
    )()


def divided(s):
    def divide(x):
        """Divides."""
        return 1 / 0

    return module("colocated_python")(s).colocated_python(divide)


GIVEN = dict(
    cp=module("colocated_python"),
    run=lambda s: module("colocated_python")(s).colocated_python,
    x=lambda s: s.jax.device_put(np.arange(4, dtype=np.float32), s.d[1]),
    y=lambda s: s.jax.device_put(np.arange(4, dtype=np.float32), s.d[2]),
    cut=lambda s: s.put(numbers(8), "x"),
    counted=counter,
    divided=divided,
    broken=broken,
    info=lambda s: importlib.import_module(f"{s.jax.__name__}.experimental.colocated_python.func"),
    lists=lambda s: importlib.import_module(f"{s.jax.__name__}.experimental.colocated_python.serialization"),
)


def test_functions_and_objects_run_beside_their_arrays():
    same(
        """
        cp.colocated_cpu_devices(d) == d, cp.colocated_cpu_devices(tuple(d[:2])), cp.colocated_cpu_devices(m) == m
        run(lambda x: x + 1)(x), run(lambda x: x + 1)(cut), run(lambda x: x * 2)(jnp.arange(3))
        run(lambda a, *, b: {"s": a + b, "t": (a,)})(x, b=x), run(lambda x: None)(x)
        run(lambda: jnp.ones(3)).specialize(devices=d[:1])(), run(lambda: jnp.ones(3)).specialize(devices=d[:1])()
        run(lambda x: x).specialize(out_specs_fn=lambda x: x)(x), run(lambda x: x).specialize(devices=d[:1])(x).devices()
        run(lambda x: x).specialize(in_specs=((SDS((4,), "float32", sharding=x.sharding),), {}))(x)
        run(lambda x: x).specialize(in_specs=((x,), {})).specialize(out_specs_fn=lambda x: x).specialize(devices=d[1:2])(x)
        divided.__name__, divided.__doc__, hasattr(divided, "specialize")
        jax.random.key_data(run(jax.random.split)(jax.device_put(jax.random.key(0), d[1])))
        (lambda c: (c.add(x), c.add(y), c.get.specialize(devices=d[1:2])(), c.same(x)))(counted(3))
        hasattr(counted(), "count"), hasattr(counted(), "step"), callable(counted()), counted.__name__
        info.Specialization(), info.Specialization().update(devices=d[:2]), info.FunctionInfo(max, None, None)
        [info.is_prng_key_dtype(t) for t in (None, jnp.dtype("float32"), jax.random.key(0).dtype)]
        info.make_callable(lambda x: x + 1, None, None)(x), lists.DeviceList.__name__
        """,
        **GIVEN,
    )


def test_unsupported_combinations_with_devices_raise_with_a_reason():
    same_errors(
        [
            ("run(lambda x, y: x)(x, y)", "All arguments must use the same device list"),
            ("run(lambda: jnp.ones(3))()", "No devices found"),
            ("(lambda c: c.get())(counted())", "No devices found"),
            ("run(lambda x: 1)(x)", "only supports jax.Array as input and output"),
            ("run(lambda x: np.asarray(x))(x)", "only supports jax.Array as input and output"),
            ("run(lambda x: x)(np.arange(3))", "has no attribute 'sharding'"),
            ("divided(x)", "division by zero"),
            ("(lambda c: c.fail(x))(counted())", "beside"),
            ("broken.run(x)", "division by zero"),
            ("run(lambda x: x).specialize(devices=d).specialize(devices=d)", "devices already specified"),
            ("run(max).specialize(out_specs_fn=max).specialize(out_specs_fn=max)", "out_specs_fn already specified"),
            ("run(max).specialize(in_specs=((x,), {})).specialize(in_specs=((x,), {}))", "in_specs already specified"),
            ("run(max).specialize(other=1)", "unexpected keyword argument 'other'"),
            ("jax.jit(run(lambda x: x))(x)", "'sharding' attribute is not available"),
            ("jax.grad(lambda x: run(lambda x: x)(x).sum())(x)", "'sharding' attribute is not available"),
            ("cp.colocated_cpu_devices(3)", "not iterable"),
        ],
        **GIVEN,
    )


# Transfers

SERVED = dict(tr=module("transfer"), served=lambda s: _Served(s, module("transfer")(s)), **GIVEN)


class _Served:
    """A server on the loopback interface with a connection to itself."""

    def __init__(self, s, transfer):
        self.s, self.numbers = s, itertools.count()
        self.server = transfer.start_transfer_server(s.d[0].client, "127.0.0.1:0", ["127.0.0.1:0"])
        self.connection = self.server.connect(self.server.address())

    def __call__(self, arrays, wanted=None):
        number = next(self.numbers)
        self.server.await_pull(number, arrays)
        like = lambda x: self.s.SDS(x.shape, x.dtype, sharding=x.sharding)  # noqa: E731
        return self.connection.pull(number, self.s.jax.tree.map(like, arrays) if wanted is None else wanted)


def test_arrays_are_pulled():
    same(
        """
        served([jnp.arange(4)]), served({"a": x, "b": (cut, jnp.asarray(1.0))}), served([jnp.ones((2, 3), "bfloat16")])
        served([x], [SDS((4,), "float32", sharding=One(d[3]))])
        """,
        **SERVED,
    )
    same_errors(
        [
            ("served([x], [SDS((4,), 'float32')])", ""),
            ("served.server.await_pull(1, [np.ones(3)])", ""),
            ("served.server.connect('nonsense')", "missing colon for port"),
            ("np.asarray(served([x], [SDS((2,), 'float32', sharding=x.sharding)])[0])", "Invalid slicing of buffer"),
            ("tr.make_error_array(SDS((4,), 'float32', sharding=x.sharding), 'broken').block_until_ready()", "broken"),
            ("np.asarray(tr.make_error_array(SDS((4,), 'float32', sharding=x.sharding), 'broken') + 1)", "broken"),
        ],
        **SERVED,
    )


PEER = """
import sys
import numpy as np
import minijax as jax
from minijax.experimental import transfer

server = transfer.start_transfer_server(jax.devices()[0].client, "127.0.0.1:0", ["127.0.0.1:0"])
wanted = jax.ShapeDtypeStruct((3,), "int32", sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]))
print(server.connect(sys.argv[1]).pull(1, {"a": wanted})["a"].tolist(), flush=True)
"""


def test_another_process_pulls_arrays():
    server = importlib.import_module("minijax.experimental.transfer").start_transfer_server(
        minijax.devices()[0].client, "127.0.0.1:0", ["127.0.0.1:0"]
    )
    server.await_pull(1, {"a": minijax.numpy.arange(3, dtype="int32") + 5})
    command = [sys.executable, "-c", PEER, server.address()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2])
    assert done.stdout == "[5, 6, 7]\n", done.stderr
