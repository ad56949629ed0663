"""`minijax.explain` and `minijax.diff`: links between texts, costs, memory, shardings, and the pages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.explaining import explain as module
from minijax.explaining.memory import memory_of
from minijax.explaining.texts import read_hlo

HERE = Path(__file__).name
CHROMIUM = "/usr/bin/chromium"


def loss(w, x):
    h = jnp.tanh(x @ w["a"])  # the hidden layer
    y = h @ w["b"]
    return jnp.mean((y - 1) ** 2)


W, X = {"a": np.ones((8, 16), np.float32), "b": np.ones((16, 4), np.float32)}, np.ones((32, 8), np.float32)


@pytest.fixture(scope="module")
def gradient():
    return jax.explain(jax.grad(loss), W, X)


def of(program, name):
    return [e for e in program.equations if e.name == name]


def lines(column, equation):
    return [line.text for line in column if equation.number in line.equations]


def test_each_equation_of_a_gradient_is_linked_to_its_source_and_its_stablehlo(gradient):
    dead = {"integer_pow", "reduce_sum"}  # only the gradient is used, and these are pruned
    first = loss.__code__.co_firstlineno
    assert len(gradient.equations) >= 18
    for e in gradient.equations:
        sources = [line for line in lines(gradient.source, e) if f"{e.places[0][1]:4} " in line]
        assert Path(e.places[0][0]).name == HERE and first < e.places[0][1] <= first + 3 and sources
        assert lines(gradient.jaxpr, e)[0].strip() == e.text.splitlines()[0]
        is_pruned = e.name in dead or (e.name == "div" and "transpose" not in e.label)
        assert is_pruned or any(e.name.split("_")[0][:3] in line for line in lines(gradient.stablehlo, e)), e


def test_an_operation_is_linked_to_the_equation_of_its_line(gradient):
    (tanh,) = of(gradient, "tanh")
    assert any("the hidden layer" in line for line in lines(gradient.source, tanh))
    assert [line.split()[2] for line in lines(gradient.stablehlo, tanh)] == ["stablehlo.tanh"]
    assert any(" tanh(" in line for line in lines(gradient.hlo, tanh))
    linked = [line for line in gradient.stablehlo if tanh.number in line.equations]
    assert {line.how for line in linked} == {"location"}


def test_fusions_have_the_equations_that_are_in_them(gradient):
    fusions = {f.name: f for f in gradient.fusions}
    fused = [(e, name) for e in gradient.equations for name in e.fusions]
    assert "add_any" in [e.name for e, _ in fused] and all(e.number in fusions[name].equations for e, name in fused)
    assert all(f.kind in ("kLoop", "kInput", "kOutput", "kCustom") for f in fusions.values())


def test_costs_of_a_product():
    program = jax.explain(lambda a, b: a @ b, jnp.ones((8, 16)), jnp.ones((16, 4)))
    (product,) = program.equations
    assert product.flops == 2 * 8 * 16 * 4 and product.nbytes == 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert program.costs["flops"] >= 1024 and program.num_devices == 1 and program.fits


@pytest.mark.parametrize(
    ("f", "flops"),
    [
        (lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, length=5)[0], 5 * 4),
        (lambda x: jax.lax.cond(x[0] > 0, lambda x: x * 2 + 1, lambda x: x, x), 2 * 4),
        (lambda x: jnp.sum(x), 4),
        (lambda x: x[::2], 0),
    ],
    ids=["scan", "cond", "sum", "slice"],
)
def test_costs_of_bodies_sums_and_moves(f, flops):
    name = {0: "slice", 4: "reduce_sum", 20: "scan", 8: "cond"}[flops]
    assert [e.flops for e in of(jax.explain(f, jnp.ones(4)), name)][:1] == [flops]


def convolution(x, k):
    return jax.lax.conv(x, k, (1, 1), "VALID")


def test_costs_of_a_convolution():
    (conv,) = jax.explain(convolution, jnp.ones((1, 3, 8, 8)), jnp.ones((5, 3, 3, 3))).equations
    assert conv.flops == 2 * (5 * 6 * 6) * (3 * 3 * 3)


def test_the_peak_of_memory_has_its_makers(gradient):
    memory = gradient.memory
    assert memory.peak == max(memory.totals) == memory.totals[memory.peak_step]
    assert sum(b.nbytes for b in memory.at_peak) == memory.peak
    assert {b.kind for b in memory.at_peak} >= {"argument", "temporary"}
    made = [b for b in memory.at_peak if b.kind == "temporary"]
    assert all(b.sources and b.sources[0].startswith(HERE) for b in made)
    assert sum(b.nbytes for b in memory.buffers if b.kind == "argument") == gradient.xla_memory["argument"]


HLO = """\
HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

%body (p: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  %p = (f32[4]{0}, f32[4]{0}) parameter(0)
  %x = f32[4]{0} get-tuple-element(%p), index=0
  %y = f32[4]{0} add(%x, %x)
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%x, %y)
}

ENTRY %main (a: f32[4], b: f32[256]) -> (f32[4], f32[256]) {
  %a = f32[4]{0} parameter(0)
  %b = f32[256]{0} parameter(1)
  %c = bf16[256]{0} convert(%b)
  %v = f32[256]{0:T(256)S(1)} copy(%b)
  %i = (f32[4]{0}, f32[4]{0}) tuple(%a, %a)
  %w = (f32[4]{0}, f32[4]{0}) while(%i), condition=%body, body=%body
  %d = f32[4]{0} get-tuple-element(%w), index=1
  %n = f32[4]{0} negate(%d)
  %m = f32[256]{0} multiply(%c, %v), metadata={op_name="a{\\"" source_file="f.py" source_line=3}, backend_config={"x":"}"}
  ROOT %r = (f32[4]{0}, f32[256]{0}) tuple(%n, %m)
}
"""


def test_memory_of_a_schedule():
    """Arguments live throughout, a loop adds its body's buffers, other memory spaces and donated results add nothing."""
    texts, computations = read_hlo(HLO)
    memory = memory_of(computations, texts[0])
    steps = dict(zip(memory.steps, memory.totals, strict=True))
    given = 16 + 1024
    assert steps["a"] == given and steps["c"] == given + 512 and steps["w"] == given + 512 + 16
    assert steps["n"] == given + 512 and steps["m"] == given + 512 + 1024 and steps["r"] == given + 1024
    assert "  %m = f32[256]{0} multiply(%c, %v)" in texts
    (m,) = [op for c in computations for op in c.instructions if op.name == "m"]
    assert m.origins[0].place == ("f.py", 3, -1)


@pytest.mark.parametrize(
    ("text", "nbytes", "main"),
    [
        ("%s = (bf16[8]{0:T(8)S(1)}, bf16[8]{0}, u32[]{:S(2)}) copy-start(%x)", 16, [0]),
        ("%s = (f32[4]{0}, f32[16]{0}) all-gather-start(%x), dimensions={0}", 64, [64]),
        ("%s = f32[4]{0:S(1)} all-reduce(%x), to_apply=%add", 16, [0]),
        ("%s = (f32[4]{0}, pred[]) fusion(%x), kind=kLoop, calls=%f", 17, [16, 1]),
        ("%s = s4[3]{0} negate(%x)", 2, [2]),
    ],
)
def test_bytes_of_results(text, nbytes, main):
    (computation,) = read_hlo(f"ENTRY %main (x: f32[4]) -> f32[4] {{\n  {text}\n}}")[1]
    (op,) = computation.instructions
    assert op.nbytes == nbytes and op.in_main_memory == main


def scanned(w, x):
    def body(c, _):
        c = jnp.sin(c @ w)
        return c, c.sum()

    c, sums = jax.lax.scan(body, x, None, length=8)
    return jnp.where(sums.sum() > 0, c, -c)


def test_loops_and_calls_are_linked():
    program = jax.explain(scanned, np.ones((8, 8), np.float32), np.ones((4, 8), np.float32))
    (scan,), (sin,) = of(program, "scan"), of(program, "sin")
    assert any("stablehlo.while" in line for line in lines(program.stablehlo, scan))
    assert any("stablehlo.sine" in line for line in lines(program.stablehlo, sin))
    assert any("jnp.sin(c @ w)" in line for line in lines(program.source, sin))
    assert any(" while(" in line for line in lines(program.hlo, scan))
    assert scan.is_call and scan.flops >= 8 * 2 * 4 * 8 * 8


def test_jitted_functions_keywords_and_static_arguments():
    f = jax.jit(lambda x, n, *, scale: x**n * scale, static_argnums=1)
    program = jax.explain(f, jnp.ones(3), 2, scale=jnp.ones(3))
    assert [e.name for e in program.equations] == ["integer_pow", "mul"] and program.name == "<lambda>"
    assert f.cache_info()[2] == 0  # nothing was run
    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    assert jax.explain(f, shape, 2, scale=shape).costs == program.costs


def test_measure_gives_each_equation_a_time():
    program = jax.explain(lambda x: jnp.where(x > 0, jnp.sin(x), x), jnp.ones(8), measure=True)
    assert {"jit", "select_n"} <= {e.name for e in program.equations}
    assert all(e.seconds > 0 for e in program.equations) and " us (" in repr(program)
    assert all(e.seconds is None for e in jax.explain(jnp.sin, 1.0).equations)


@pytest.fixture
def mesh():
    return jax.make_mesh((4, 2), ("data", "model"))


def test_sharded_programs_show_shardings_and_collectives(mesh):
    place = lambda x, *spec: jax.device_put(x, jax.NamedSharding(mesh, jax.P(*spec)))  # noqa: E731
    program = jax.explain(lambda x, w: jnp.tanh(x @ w).sum(), place(X, "data"), place(W["a"], None, "model"))
    assert program.num_devices == 8
    assert [(name, s) for name, _, s in program.shardings] == [
        ("x", "P('data',) over data=4, model=2"), ("w", "P(None, 'model') over data=4, model=2"),
        ("result 0", "P() over data=4, model=2"),
    ]  # fmt: skip
    assert {c.kind for c in program.collectives} == {"all-reduce"}
    assert all(c.nbytes == 4 and c.sources[0].startswith(HERE) for c in program.collectives)
    assert "all-reduce" in repr(program) and "8 × cpu" in repr(program)


def test_programs_on_one_device_have_no_shardings(gradient):
    assert gradient.shardings == [] and gradient.collectives == []


def test_a_target_moves_arguments_and_meshes_to_its_devices(mesh, monkeypatch):
    devices = jax.devices()[::-1]
    monkeypatch.setattr(module, "devices_of", lambda target: devices)
    program = jax.explain(jnp.sin, jnp.ones(3), target="tpu:v5e:4x2")
    assert program.fits and program.num_devices == 1
    x = jax.device_put(X, jax.NamedSharding(mesh, jax.P("data", "model")))
    assert jax.explain(jnp.sum, x, target="tpu:v5e:4x2").num_devices == 8
    devices = devices[:2]
    with pytest.raises(ValueError, match="the arguments' mesh has 8 devices, the target 2"):
        jax.explain(jnp.sum, x, target="tpu:v5e:2x1")


def test_a_program_that_does_not_fit_says_so(monkeypatch):
    def refuse(*args):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 17G of 16G hbm")

    monkeypatch.setattr(module, "devices_of", lambda target: jax.devices())
    monkeypatch.setattr(module.Lowered, "compile", refuse)
    program = jax.explain(jnp.sin, jnp.ones(3), target="tpu:v5e:2x2")
    assert not program.fits and "does not fit: RESOURCE_EXHAUSTED: 17G of 16G hbm" in repr(program)
    assert program.hlo == [] and [e.name for e in program.equations] == ["sin"]
    assert "17G of 16G" in program.html()
    with pytest.raises(jax.errors.JaxRuntimeError):  # where no target is asked for
        jax.explain(jnp.sin, jnp.ones(3))


@pytest.mark.parametrize(("target", "package"), [("tpu:v5e:4x4", "libtpu"), ("cuda:h100", "jax-cuda13-plugin")])
def test_a_target_without_its_compiler_says_what_to_install(target, package, monkeypatch):
    def absent(target):
        raise RuntimeError("no plugin")

    monkeypatch.setattr(module, "devices_of", absent)
    with pytest.raises(RuntimeError, match=f"(?s)no plugin.*pip install {package}"):
        jax.explain(jnp.sin, 1.0, target=target)


def test_errors():
    with pytest.raises(ValueError, match="machine must be of the form"):
        jax.explain(jnp.sin, 1.0, target="mars")
    with pytest.raises(ValueError, match="measure=True runs the program"):
        jax.explain(jnp.sin, 1.0, target="tpu:v5e:2x2", measure=True)
    with pytest.raises(ValueError, match="measure=True runs the equations"):
        jax.explain(jnp.sin, jax.ShapeDtypeStruct((3,), jnp.float32), measure=True)


def test_what_is_not_known_is_shown_as_unknown():
    text = re.sub(r", metadata=\{[^}]*\}", "", HLO)
    assert all(op.origins == [] and op.how == "unknown" for c in read_hlo(text)[1] for op in c.instructions)


# ---- pages


def data_of(page):
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_contains_all_it_needs(gradient, tmp_path):
    gradient.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "http:" not in text and "https:" not in text and text.count("</script>") == 2 and "{{" not in text
    data = data_of(text)
    assert set(data["columns"]) == {"source", "jaxpr", "stablehlo", "hlo"} and data["name"] == "loss"
    assert len(data["equations"]) == len(gradient.equations) and data["memory"]["totals"] == gradient.memory.totals
    shown = gradient._repr_mimebundle_()["text/html"]
    assert shown.startswith("<iframe srcdoc=") and "<script" not in shown


def test_texts_with_markup_stay_texts():
    program = jax.explain(lambda x: x + 1, 1.0)  # </script><!--
    assert program.html().count("</script>") == 2 and "<!--" not in program.html()


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    if not os.path.exists(CHROMIUM):
        pytest.skip(f"{CHROMIUM} is not installed")
    with api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def test_a_click_on_a_line_marks_it_in_all_columns(browser, gradient, tmp_path):
    gradient.save(tmp_path / "page.html")
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(f"file://{tmp_path}/page.html")
    marked = lambda: {  # noqa: E731
        key: page.locator(f"#{key} .pinned").all_inner_texts() for key in ("source", "jaxpr", "stablehlo", "hlo")
    }
    line = page.locator("#jaxpr .line", has_text="tanh")
    line.click()
    found = marked()
    assert all(found.values()) and "stablehlo.tanh" in found["stablehlo"][0] and "jnp.tanh" in found["source"][0]
    assert any(" tanh(" in text for text in found["hlo"]) and page.locator("tr.pinned").count() >= 2
    line.click()
    assert not any(marked().values())
    page.locator("#source .line", has_text="h @ w").hover()
    assert page.locator("#jaxpr .on", has_text="dot_general").count() >= 2 and page.locator("#hlo .on").count() >= 2
    page.locator("#memory .bar").first.click()
    assert page.get_by_text("alive at step 1,").count() == 1 and errors == []


# ---- differences


def test_where_two_programs_part():
    d = jax.diff(lambda x: jnp.sin(x @ x) * 2, lambda x: jnp.cos(x @ x) * 2 + 1, jnp.ones((4, 4)))
    assert d and d.first == 1 and [e.name for e in d.equations] == ["sin", "cos"]
    changed = [(r.left.strip(), r.right.strip()) for r in d.rows["jaxpr"] if r.how == "changed"]
    assert changed[0] == ("c:f32[4,4] = sin b", "c:f32[4,4] = cos b")
    assert f"f: c:f32[4,4] = sin b ({HERE}:" in repr(d)
    assert len(d.rows["stablehlo"]) and len(d.rows["hlo"])


def test_equal_programs_do_not_differ():
    d = jax.diff(jnp.sin, lambda x: jnp.sin(x), jnp.ones(3))
    assert d.first is None and "same equations" in repr(d)
    assert all(r.how == "equal" for r in d.rows["jaxpr"])
    assert not d and not jax.diff(loss, loss, W, X)


def test_lines_that_differ_in_names_are_matched():
    d = jax.diff(lambda x: jnp.sin(x) * x, lambda x: jnp.sin(jnp.cos(x)) * x, jnp.ones(3))
    assert [(r.left.split()[2:3], r.how) for r in d.rows["jaxpr"] if "sin" in r.left] == [(["sin"], "renamed")]
    operands = jax.diff(lambda x, y: x - y, lambda x, y: y - x, 1.0, 2.0)
    assert operands.first == 0 and "renamed" in [r.how for r in operands.rows["jaxpr"]] and operands


def test_one_program_goes_on():
    d = jax.diff(lambda x: x * 2, lambda x: x * 2 + 1, 1.0)
    assert d.first == 1 and d.equations[0] is None and "f: has no further equation" in repr(d)


def test_the_page_of_a_difference(browser, tmp_path):
    jax.diff(lambda x: x * 2, lambda x: x * 2 + 1, 1.0).save(tmp_path / "diff.html")
    text = (tmp_path / "diff.html").read_text()
    assert "http:" not in text and "https:" not in text and data_of(text)["first"] == 1
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(f"file://{tmp_path}/diff.html")
    assert page.locator("#rest tr.changed").count() >= 3 and errors == []


def test_nothing_is_imported_with_the_library():
    code = "import minijax, sys; minijax.jit(lambda x: x + 1)(1); print([m for m in sys.modules if 'explaining' in m])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"
