"""`jit` and `pjit` with a mesh that is set, or entered by `with mesh:`: devices of programs, and shardings of None."""

import importlib
import warnings

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle

CALLS = {
    "plain": lambda s: s.j(s.double)(s.x),
    "None for results": lambda s: s.j(s.double, out_shardings=None)(s.x),
    "None for arguments": lambda s: s.j(s.double, in_shardings=None)(s.x),
    "None for both, sharded": lambda s: s.j(s.double, in_shardings=None, out_shardings=None)(s.sharded),
    "None for results, sharded": lambda s: s.j(s.double, out_shardings=None)(s.sharded),
    "sharded": lambda s: s.j(s.double)(s.sharded),
    "elsewhere": lambda s: s.j(s.double)(s.on_another_device),
    "on some": lambda s: s.j(s.double)(s.on_some),
    "a spec": lambda s: s.j(s.double, in_shardings=s.P("x"), out_shardings=None)(s.x),
    "a spec among None": lambda s: s.j(lambda a: (a * 2, a), out_shardings=(None, s.P("x")))(s.x)[0],
    "a constant": lambda s: s.j(lambda: 1)(),
    "NumPy": lambda s: s.j(s.double)(s.numpy),
    "a device": lambda s: s.j(s.double, device=s.jax.devices()[1])(s.x),
    "a backend": lambda s: s.j(s.double, backend="cpu")(s.x),
    "shardings elsewhere": lambda s: s.j(s.double, in_shardings=s.jax.NamedSharding(s.some, s.P("x")))(s.x),
    "nested": lambda s: s.j(lambda a: s.jax.jit(s.double, in_shardings=s.jax.NamedSharding(s.mesh, s.P("y")))(a))(s.x),
    "an operation elsewhere": lambda s: s.on_another_device + 1,
    "an index elsewhere": lambda s: s.on_another_device[0],
}


class Side:
    """The names that the calls read, on one side; `double` is new each time, since jax caches by function."""

    def __init__(self, jax, np, how):
        self.jax, self.P, auto = jax, jax.P, jax.sharding.AxisType.Auto
        self.mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(auto, auto))
        self.some = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
        self.numpy = np.ones((8, 8), np.float32)
        self.x = jax.numpy.ones((8, 8))
        self.sharded = jax.device_put(self.numpy, jax.NamedSharding(self.mesh, jax.P("x")))
        self.on_some = jax.device_put(self.numpy, jax.NamedSharding(self.some, jax.P("x")))
        self.on_another_device = jax.device_put(self.numpy, jax.devices()[1])
        self.j = how

    double = property(lambda self: lambda a: a * 2)


def _ended(side, call):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return str(call(side).sharding)
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("how", ["jit", "pjit"])
@pytest.mark.parametrize("context", ["no mesh", "entered", "set"])
def test_programs_run_where_jax_runs_them(context, how):
    def outcomes(jax, numpy):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pjit = importlib.import_module(f"{jax.__name__}.experimental.pjit").pjit
            side = Side(jax, numpy, jax.jit if how == "jit" else pjit)
            if context == "no mesh":
                return {name: _ended(side, call) for name, call in CALLS.items()}
            with side.mesh if context == "entered" else jax.set_mesh(side.mesh):
                return {name: _ended(side, call) for name, call in CALLS.items()}

    same(lambda jax: outcomes(jax, np))


def test_older_programs_find_the_mesh_that_was_entered():
    def meshes(jax):
        resources = importlib.import_module(f"{jax.__name__}.interpreters.pxla").thread_resources
        side = Side(jax, np, jax.jit)
        mesh = side.mesh
        shown = [repr(resources.env), resources.env.physical_mesh.empty]
        with side.some, mesh:
            shown += [repr(resources.env), resources.env.physical_mesh is mesh]
        with jax.set_mesh(mesh):
            return [*shown, repr(resources.env)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        same(meshes)
