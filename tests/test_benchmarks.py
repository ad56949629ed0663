"""The benchmarks compare both sides, and fail where a row is lost, a program grows or a floor breaks."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def compare(monkeypatch):
    """benchmarks/compare.py; the tests have a module of that name too."""
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("benchmarks_compare", FOLDER / "compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(compare, *pairs):
    """Rows from pairs of sides, each a dict from names to (value, unit)."""
    made = [tuple({n: {"best": v, "unit": u} for n, (v, u) in side.items()} for side in pair) for pair in pairs]
    names = dict.fromkeys(name for pair in made for side in pair for name in side)
    return [compare.row_of(name, made) for name in names]


def passes(compare, rows, floors=False):
    return compare.report(rows, Namespace(a="jax", b="minijax", markdown=False, floors=floors))


@pytest.mark.oracle
def test_both_sides_are_measured_in_one_run():
    command = [sys.executable, str(FOLDER / "compare.py"), "--pairs", "1", "--quick", "--groups", "pytree"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("pytree/")]
    assert len(rows) == 10 and all(float(row[5]) > 0 for row in rows)


def test_an_implementation_that_dies_loses_every_row():
    command = [
        sys.executable,
        str(FOLDER / "compare.py"),
        "--a",
        "minijax",
        "--path-a",
        str(FOLDER.parent),
        "--b",
        "json",
    ]
    done = subprocess.run([*command, "--pairs", "1", "--quick", "--groups", "pytree"], capture_output=True, text=True)
    assert done.returncode == 1 and "lost by json: pytree/flatten_2" in done.stdout


def test_a_lost_row_fails_and_a_new_row_does_not(compare, capsys):
    both = {"eager/neg": (2.0, "us")}
    rows = rows_of(compare, ({**both, "eager/add": (1.0, "us")}, both))
    assert not passes(compare, rows)
    assert "lost by minijax: eager/add (absent)" in capsys.readouterr().out
    assert passes(compare, rows_of(compare, (both, {**both, "eager/add": (1.0, "us")})))


def test_more_instructions_than_the_other_side_fail(compare, capsys):
    def counted(a, b):
        return rows_of(
            compare, ({"stages/mlp/hlo_instructions": (a, "count")}, {"stages/mlp/hlo_instructions": (b, "count")})
        )

    assert passes(compare, counted(50, 50))
    assert not passes(compare, counted(50, 51))
    assert "more instructions: stages/mlp/hlo_instructions, 51 > 50" in capsys.readouterr().out


def test_floors_hold_for_means_and_for_rows(compare, capsys):
    def eager(*ratios):
        names = [f"eager/op{i}" for i in range(len(ratios))]
        return rows_of(
            compare, (dict.fromkeys(names, (1.0, "us")), {n: (1 / r, "us") for n, r in zip(names, ratios, strict=True)})
        )

    mean, row = compare.FLOORS["eager"]
    assert passes(compare, eager(mean + 0.1, mean), floors=True)
    assert passes(compare, eager(1.0, 1.0))
    assert not passes(compare, eager(mean - 0.1, mean - 0.1), floors=True)
    assert f"below the floor: eager {mean - 0.1:.2f} < {mean}" in capsys.readouterr().out
    assert not passes(compare, eager(9.0, row - 0.1), floors=True)
    assert f"below the floor: eager/op1 {row - 0.1:.2f} < {row}" in capsys.readouterr().out


def test_rates_compare_the_other_way_round_and_best_values_over_all_pairs(compare):
    pairs = [
        ({"train/x": (2.0, "1/s")}, {"train/x": (6.0, "1/s")}),
        ({"train/x": (4.0, "1/s")}, {"train/x": (4.0, "1/s")}),
    ]
    (row,) = rows_of(compare, *pairs)
    assert row.ratios == [3.0, 1.0] and row.best == 1.5
    assert compare.part_of("train/x") == compare.part_of("seed/x") == "seed and train"
    assert compare.part_of("chains/op_1000/trace") == compare.part_of("stages/mlp_step/trace") == "trace"


def test_all_rows_of_a_device_are_measured():
    command = [sys.executable, str(FOLDER / "frontend.py"), "--impl", "minijax", "--groups", "device", "--quick"]
    environment = os.environ | dict(PYTHONPATH=str(FOLDER.parent), XLA_FLAGS="--xla_force_host_platform_device_count=2")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    rows = json.loads(done.stdout)["results"]
    assert not {name: row for name, row in rows.items() if "error" in row}
    assert rows["device/count"] == dict(best=2.0, median=2.0, n=1, unit="count", kind="cpu")
    assert rows["device/product_float32"]["flops"] == 2 * 512**3 and rows["device/psum"]["sent"] == 4 * 2**16
    assert {f"device/{name}" for name in ("mlp_step", "feed_forward_fp8", "shard_map_step", "ppermute")} <= set(rows)


def test_rates_are_shares_of_what_the_device_can_do(compare, capsys):
    rows = {
        "device/count": dict(best=1.0, unit="count", kind="NVIDIA H100 80GB HBM3"),
        "device/product_bfloat16": dict(best=1e6, unit="us", flops=494.5e12, dtype="bfloat16"),
        "device/product_float8_e4m3fn": dict(best=1e6, unit="us", flops=1979e12, dtype="float8_e4m3fn"),
        "device/add_one": dict(best=2e6, unit="us", bytes=3.35e12),
        "device/host_to_device": dict(best=1e6, unit="us", bytes=1e10),
        "device/psum": dict(best=1e6, unit="us", sent=2e11),
        "device/failed": dict(error="RuntimeError"),
    }
    compare.print_reached([({}, rows)], Namespace(a="jax", b="minijax", markdown=False))
    title, _, *lines = capsys.readouterr().out.strip().splitlines()
    assert title == "NVIDIA H100 80GB HBM3: operations and bytes per second, a: jax, b: minijax"
    assert [line.split() for line in lines] == [
        ["device/product_bfloat16", "FLOP/s", "absent", "4.94e+14", "50.0%"],
        ["device/product_float8_e4m3fn", "FLOP/s", "absent", "1.98e+15", "100.0%"],
        ["device/add_one", "bytes/s", "absent", "1.68e+12", "50.0%"],
        ["device/host_to_device", "bytes/s", "absent", "1e+10"],
        ["device/psum", "bytes/s", "absent", "2e+11"],
    ]
    assert compare.limits.reached(rows, "an unknown device")[0].share is None


def test_ratios_are_drawn(compare, tmp_path):
    pytest.importorskip("matplotlib")
    compare.limits.draw({"sum": 1.5, "trace": 6.0}, ("jax", "minijax"), "a device", tmp_path / "ratios.png")
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


def test_powers_are_fitted_to_the_largest_sizes(compare):
    import exponents

    assert exponents.exponent_of([(10, 5.0), (100, 100.0), (1000, 10_000.0), (10_000, 1e6)]) == pytest.approx(2)
    assert exponents.exponent_of([(10, 5.0)]) is None
    rows = {f"growth/trace, leaves/{n}": dict(best=2.0 * n, unit="ms") for n in (10, 100)}
    rows |= {
        "growth/trace, leaves/1000": dict(error="RecursionError: too deep"),
        "eager/neg": dict(best=1.0, unit="us"),
    }
    (growth,) = exponents.growths(rows).values()
    assert (growth.size, growth.value, growth.error) == (100, 200.0, "RecursionError: too deep at 1000")
    assert growth.exponent == pytest.approx(1)
    assert exponents.lines_of({}, rows)[1] == ("trace, leaves", "-", "1.00", "-", "200 ms at 100; RecursionError")


def sample(page):
    """What compare.py and peers.py write, in small."""
    names = {
        "startup/import": "ms",
        "dispatch/one": "us",
        "pytree/map": "us",
        "eager/add": "us",
        "index/x[0]": "us",
        "stages/mlp/trace": "ms",
        "stages/mlp/lower": "ms",
        "transform/grad": "us",
        "transform/eager_cond": "us",
    }
    rows = [dict(name=name, unit=unit, a=3.0, b=1.5, best=2.0) for name, unit in names.items()]
    rows.append(dict(name="eager/slow", unit="us", a=3.0, b=6.0, best=0.5))
    growth = {f"growth/trace, leaves/{n}": dict(best=float(n), unit="ms") for n in (10, 100, 1000)}
    entry = dict(seconds=1e-4, first=0.5, results=[1.0])
    peers = {
        "minijax": dict.fromkeys(page.peers.PROGRAMS, entry),
        "NumPy": dict.fromkeys(page.peers.PROGRAMS, entry | dict(seconds=5e-5)),
        "tinygrad": dict.fromkeys(page.peers.PROGRAMS, dict(error="not installed")),
    }
    return {"rows": rows, "pairs": [(growth, growth)]}, peers


def test_the_page_is_complete(compare, tmp_path):
    import page

    compared, peers = sample(page)
    text = page.page(compared, peers, tmp_path)
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads == [
        *("Start", "Dispatch", "Eager operations", "Indexing", "Tracing", "Lowering", "Transformations"),
        *("Fresh closures", "Growth", "Other libraries", "Where jax is faster", "To run it yourself"),
    ]
    pictures = re.findall(r'(?:srcset|src)="([^"]*)"', text)
    assert len(pictures) == 2 * (1 + 10) and all((tmp_path / name).is_file() for name in pictures)
    for name in pictures:
        ElementTree.parse(tmp_path / name)
    assert "| `add` | us | 3 | 1.5 | 2.00 |" in text and "| `slow` | Eager operations | 0.50 |" in text
    assert "NumPy at MLP, training step (2.0×)" in text and "- tinygrad: not installed (all)" in text
    assert "| trace, leaves | 1.00 | 1.00 | 1000 ms at 1000 | 1000 ms at 1000 |" in text


def test_the_page_that_is_kept_has_its_pictures_and_links():
    text = (FOLDER / "README.md").read_text()
    links = re.findall(r'(?:srcset|src)="([^"]*)"', text) + re.findall(r"\]\(([^)#]*)\)", text)
    assert len(links) > 20
    assert not [link for link in links if not link.startswith("http") and not (FOLDER / link).exists()]
    assert {p.name for p in (FOLDER / "pictures").iterdir()} == {Path(n).name for n in links if n.endswith(".svg")}


def test_libraries_compute_the_same(compare):
    import peers

    found = {name: peers.run(name, sys.executable, 0.0) for name in ("minijax", "NumPy")}
    assert not peers.differing({name: peers.joined([programs]) for name, programs in found.items()})
    assert set(found["minijax"]) == set(peers.PROGRAMS)
    assert all("seconds" in found["minijax"][program] for program in peers.PROGRAMS)
    assert "seconds" in found["NumPy"]["MLP, training step"]
    wrong = {"minijax": {p: dict(results=[1.0]) for p in peers.PROGRAMS}}
    assert len(peers.differing(wrong | {"x": {p: dict(results=[2.0]) for p in peers.PROGRAMS}})) == len(peers.PROGRAMS)
