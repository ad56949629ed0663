"""What notebooks show: jaxprs beside their source, stages with their costs, meshes and shardings in colours."""

import re

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp


def as_html(value):
    """What a notebook shows of a value; None: its text."""
    return value._repr_mimebundle_(include=None, exclude=None).get("text/html")


def cells(shown):
    """The rows of the tables in HTML, as texts."""
    rows = re.findall(r"<tr>(.*?)</tr>", shown, re.DOTALL)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]


def test_a_jaxpr_has_its_source_beside_it():
    header, first, *equations, last = cells(as_html(jax.make_jaxpr(lambda x: jnp.cos(jnp.sin(x)) * jnp.tanh(x))(1.0)))
    assert header == ["jaxpr", "source"] and first == ["{ lambda ; a:f32[]. let", ""] and last == ["  in (e,) }", ""]
    assert [text.strip() for text, _ in equations] == [
        "b:f32[] = sin a", "c:f32[] = cos b", "d:f32[] = tanh a", "e:f32[] = mul c d"
    ]  # fmt: skip
    for _, where in equations:
        assert re.fullmatch(r"\S+test_html.py:\d+:\d+ \(.*\)", where)


def test_stages_have_costs_and_their_text_folded():
    lowered = jax.jit(lambda x: x @ x).lower(jnp.ones((8, 8)))
    shown = as_html(lowered)
    assert (
        ["flops", "1024"] in cells(shown)
        and "<summary>StableHLO</summary>" in shown
        and "func.func public @main" in shown
    )
    shown = as_html(lowered.compile())
    assert ["argument", "256 bytes"] in cells(shown) and ["devices", "cpu:0"] in cells(shown)
    assert "<summary>optimized HLO</summary>" in shown and "HloModule" in shown


def mesh():
    return jax.sharding.Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))


@pytest.mark.parametrize(
    ("spec", "shape", "held"),
    [
        (("x", "y"), (4, 4), [["0", "1"], ["2", "3"]]), (("x",), (4, 4), [["0,1"], ["2,3"]]),
        ((None, "y"), (4, 4), [["0,2", "1,3"]]), ((), (4, 4), [["0,1,2,3"]]), (("y",), (4,), [["0,2", "1,3"]]),
        ((("y", "x"),), (4,), [["0", "2", "1", "3"]]),
    ],
)  # fmt: skip
def test_an_array_on_several_devices_shows_who_holds_what(spec, shape, held):
    x = jax.device_put(jnp.zeros(shape), jax.NamedSharding(mesh(), jax.P(*spec)))
    shown = as_html(x)
    assert cells(shown) == held and "Array([" in shown
    colours = re.findall(r"background:(#\w+)", shown)
    assert len(set(colours)) == len(colours)


def test_other_arrays_are_shown_as_text():
    assert as_html(jnp.ones(3)) is None
    assert as_html(jax.device_put(jnp.zeros((2, 2, 2)), jax.NamedSharding(mesh(), jax.P("x")))) is None


def test_meshes_and_shardings_show_their_devices():
    assert cells(as_html(mesh())) == [["0", "1"], ["2", "3"]]
    sharding = jax.NamedSharding(mesh(), jax.P("x"))
    assert cells(as_html(sharding)) == [["0", "1"], ["2", "3"]] and "P(&#x27;x&#x27;,)" in as_html(sharding)
    abstract = jax.NamedSharding(jax.sharding.AbstractMesh((2,), ("x",)), jax.P("x"))
    assert cells(as_html(abstract)) == [] and "AbstractMesh" in as_html(abstract)


def test_texts_are_escaped():
    assert "&lt;lambda&gt;" in as_html(jax.jit(lambda x: jnp.sin(x)).lower(1.0).compile())
