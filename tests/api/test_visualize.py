"""Pictures of shardings: those of jax, in colour too, and the same as text if rich is not installed."""

import numpy as np
import pytest
from mesh_language import side

import minijax
import minijax.numpy as jnp
from minijax.api import visualize

PICTURES = {
    ("P('a', 'b')", (8, 4)): ["┌───────┬───────┐", "│ CPU 0 │ CPU 1 │", "├───────┼───────┤", "│ CPU 2 │ CPU 3 │",
                               "├───────┼───────┤", "│ CPU 4 │ CPU 5 │", "├───────┼───────┤", "│ CPU 6 │ CPU 7 │",
                               "└───────┴───────┘"],
    ("P('a')", (8,)): ["┌───────┬───────┬───────┬───────┐", "│CPU 0,1│CPU 2,3│CPU 4,5│CPU 6,7│",
                        "└───────┴───────┴───────┴───────┘"],
    ("P()", (8, 4)): ["┌───────────────────┐", *["│" + " " * 19 + "│"] * 4, "│CPU 0,1,2,3,4,5,6,7│",
                      *["│" + " " * 19 + "│"] * 4, "└───────────────────┘"],
}  # fmt: skip


@pytest.mark.parametrize("spec, shape", PICTURES)
@pytest.mark.parametrize("has_rich", [True, False])
def test_pictures_with_and_without_rich(spec, shape, has_rich, capsys, monkeypatch):
    if has_rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setattr(visualize, "_is_installed", lambda package: False)
    mesh = minijax.make_mesh((4, 2), ("a", "b"))
    sharding = minijax.NamedSharding(mesh, eval(spec, {"P": minijax.P}))
    minijax.debug.visualize_array_sharding(minijax.device_put(jnp.ones(shape), sharding))
    printed = capsys.readouterr().out.splitlines()
    assert printed == PICTURES[spec, shape]
    seen = []
    minijax.debug.inspect_array_sharding({"k": minijax.device_put(jnp.ones(shape), sharding)}, callback=seen.append)
    assert seen == [sharding]
    with pytest.raises(ValueError, match="only works for shapes with 1 and 2 dimensions"):
        minijax.debug.visualize_array_sharding(jnp.ones((2, 2, 2)))


CALLS = [
    "(8, 4), on('x', 'y')", "(8, 4), on('y', 'x')", "(8, 4), on()", "(8,), on('x')", "(8,), on(('x', 'y'))",
    "(16, 8), on(('x', 'y'))", "(8, 400), on(None, ('x', 'y'))", "(64, 8), on('x', 'y')", "(8, 4), One(d[3])",
    "(8, 4), on('x', 'y'), use_color=False", "(8, 4), on('x', 'y'), scale=2.0", "(8,), on('x'), scale=0.5",
    "(8, 4), on('x', 'y'), min_width=20, max_width=30", "(8, 4), on('x', 'y'), min_width=3",
    "(8, 4), on('x', 'y'), color_map=colors", "(8, 4), on('x'), color_map=colors", "(8,), on('y'), color_map=colors",
    "(8, 4), on(), color_map=lambda x: (1, 1, 1)", "(8, 4), on('x', 'y'), color_map=colors, use_color=False",
    "(6, 4), on('x', mesh=grid((3,), ('x',))), color_map=colors", "(8, 4), on('y', 'x'), color_map=bright",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("terminal", [{}, {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}])
def test_pictures_are_those_of_jax(terminal, capsys, monkeypatch):
    pytest.importorskip("rich")
    for name in ("FORCE_COLOR", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in terminal.items():
        monkeypatch.setenv(name, value)
    colors = dict(colors=lambda x: (x, 0.2, 1 - x, 1.0), bright=lambda x: np.array([x, 0.9, 0.7 + 0.3 * x, 0.5]))
    for call in CALLS:
        printed = []
        for s in (side("minijax"), side("jax")):
            eval(f"jax.debug.visualize_sharding({call})", {**vars(s), **colors})
            printed.append(capsys.readouterr().out)
        assert printed[0] == printed[1], call
        assert terminal or "\x1b[" not in printed[0], call


@pytest.mark.oracle
def test_arrays_are_pictured_as_in_jax(capsys):
    printed = []
    for s in (side("minijax"), side("jax")):
        s.jax.debug.visualize_array_sharding(s.a)
        s.jax.jit(lambda x, s=s: s.jax.debug.visualize_array_sharding(x, scale=0.5) or x + 1)(s.a)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and printed[0].count("CPU 7") == 2
