"""Calls that XLA must fuse, with operands in any memory, compared with jax."""

import importlib

import mesh_language


def _fused(s):
    return importlib.import_module(f"{s.jax.__name__}.experimental.fused").fused


def both(s):
    """The sum, which is in host memory, and the product."""
    return _fused(s)(out_spaces=(s.jax.memory.Space.Host, s.jax.memory.Space.Device))(lambda x, y: (x + y, x * y))


GIVEN = {"both": both, "fused": _fused, "Device": lambda s: s.jax.memory.Space.Device}
GIVEN["x"] = lambda s: s.jax.device_put(s.numbers(3), s.jax.memory.Space.Host)

LINES = """
jaxpr(both, x, numbers(3))
canonical(jax.jit(both).trace(x, numbers(3)).lower(lowering_platforms=("cuda",)).as_text()).replace("jit_wrapped", "")
jaxpr(jax.vmap(both), x, numbers(3))
jaxpr(lambda x, y: jax.jvp(both, (x, y), (x, y)), x, numbers(3))
jaxpr(jax.grad(lambda x, y: both(x, y)[1].sum()), x, numbers(3))
"""
GIVEN["canonical"] = lambda s: mesh_language.canonical


def test_fused_calls():
    mesh_language.same(LINES, **GIVEN)


def test_refused_calls():
    mesh_language.same_errors(
        [("both(x, numbers(3))", "MLIR translation rule for primitive 'fused_call' not found for platform cpu")],
        **GIVEN,
    )


def test_one_memory_may_be_said_for_all_results():
    """jax takes a tuple of them alone."""
    s = mesh_language.side("minijax")
    spaces = s.jax.make_jaxpr(_fused(s)(out_spaces=s.jax.memory.Space.Device)(lambda x: (x, x * 2)))(s.numbers(3))
    assert spaces.eqns[0].params["out_spaces"] == (s.jax.memory.Space.Device,) * 2
