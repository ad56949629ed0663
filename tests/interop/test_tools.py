"""`jax.tools`, `jax.extend.xla`, `jax.extend.backend` and `jax.experimental.topologies`, compared with jax."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest
from given import given
from jaxlib import xla_client
from mesh_language import same, same_errors

import minijax
from minijax.extend import xla


def module(name):
    return lambda s: importlib.import_module(f"{s.jax.__name__}.{name}")


def axpy(a, x, y):
    return a * x + y


GIVEN = {
    "ir": module("tools.jax_to_ir"),
    "p": lambda s: importlib.import_module(f"{s.jax.__name__}.tools.jax_to_ir").parse_shape_str,
    "backend": module("extend.backend"),
    "topologies": module("experimental.topologies"),
    "lowering": module("extend.lowering"),
    "axpy": lambda s: axpy,
    "PipelineStage": lambda s: importlib.import_module(f"{s.jax.__name__}.extend.xla").PipelineStage,
    "transforms": module("extend.xla"),
}
SHAPES = "f32[] f32[1,2,3] pred[1] s1[1] s2[2] s4[1] s64[1] u1[1] u2[1] u32[3] bf16[1] f16[2] c64[1] c128[1] f64[2]"
VALUES = """
[str(p(s)) for s in SHAPES.split()], p("f32[1, 2]")
ir.jax_to_hlo(axpy, [("y", p("f32[128]")), ("a", p("f32[]")), ("x", p("f32[128]"))])[1]
ir.jax_to_hlo(lambda a, b, x: {"k": a / b * x, "l": x}, [("x", p("f32[3]"))], constants={"a": 123456, "b": 4})[1]
ir.jax_to_ir(axpy, [("y", p("f32[3]")), ("x", p("f32[3]"))], constants={"a": np.ones(3)}, format="HLO")[1]
type(ir.jax_to_hlo(axpy, [("y", p("f32[3]")), ("a", p("f32[]")), ("x", p("f32[3]"))])[0])
topologies.get_attached_topology("cpu").devices, topologies.TopologyDescription(d[:2]).devices
topologies.make_mesh(topologies.get_attached_topology(), (4, 2), ("x", "y"))
[getattr(backend.get_compile_options(2, 3), k) for k in ("num_replicas", "num_partitions", "device_assignment")]
backend.get_compile_options(1, 2, device_assignment=[[0, 1]]).device_assignment
backend.get_compile_options(1, 2, device_assignment=np.array([d[:2]])).device_assignment
backend.get_compile_options(2, 1, device_assignment=[0, 1]).device_assignment
backend.get_compile_options(1, 1, env_options_overrides={"xla_dump_to": "x"}).env_option_overrides
backend.get_compile_options(1, 1, fdo_profile=b"abc").executable_build_options.fdo_profile
[(k, v.value) for k, v in PipelineStage.__members__.items()], transforms.clear_hlo_module_transformation("nothing")
sorted(name for name in dir(backend.ifrt_proxy) if not name.startswith("_"))
[c.__name__ for c in lowering.JaxIrContext.__mro__], type(lowering.upstream_dialects).__name__
"""
ERRORS = [
    ('p("foo[]")', "Invalid shape foo[]"), ('p("f32[-1]")', "Invalid shape"), ('p("f32")', "Invalid shape"),
    ('p("f32[1,]")', ""), ("p(5)", ""),
    ('ir.jax_to_hlo(axpy, [("y", p("f32[3]"))])', "missing 2 required"),
    ('ir.jax_to_hlo(axpy, [("y", p("f32[3]"))], constants={"y": 1})', "appear in both `input_shapes` and `constants`: y"),
    ('ir.jax_to_tf(axpy, [("y", p("f32[3]"))])', "Conversion to TF graph requires TensorFlow"),
    ('topologies.get_topology_desc(platform="cpu")', "topology not implemented for cpu"),
    ('topologies.get_topology_desc("v5e:2x2")', "cannot generate TPU topology"),
    ('topologies.get_topology_desc(platform="gpu")', "gpu"), ('topologies.get_attached_topology("gpu")', "gpu"),
    ('topologies.make_mesh(topologies.get_attached_topology(), (3,), ("x",))', "must equal the product of mesh_shape"),
    ("backend.get_compile_options(1, 1, device_assignment=[[0, 1]])", "does not match num_partitions"),
    ("transforms.register_hlo_module_transformation(print, name='a', stage=0)", "stage must be a PipelineStage enum"),
    ("transforms.clear_hlo_module_transformation('a', stage=1)", "stage must be a PipelineStage enum"),
    ("transforms.register_hlo_module_transformation(print, name=4)", ""),
]  # fmt: skip


def test_values_and_programs_are_those_of_jax():
    same(VALUES, SHAPES=lambda s: SHAPES, **GIVEN)


def test_misuse_raises_as_in_jax():
    same_errors(ERRORS, **GIVEN)


def test_scripts_write_files(tmp_path):
    (tmp_path / "prog.py").write_text("def fn(x, y, z):\n    return x @ y / z\n")
    shapes = '[("y", "f32[4,2]"), ("x", "f32[3,4]")]'
    command = ["--fn", "prog.fn", "--input_shapes", shapes, "--evaled_constants", '{"z": "3.5"}']
    command += ["--ir_dest", "fn.pb", "--ir_human_dest", "fn.txt"]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = dict(cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": path})
    subprocess.run([sys.executable, "-m", "minijax.tools.jax_to_ir", *command], **run)
    assert "f32[4,2]{1,0} parameter(0)" in (tmp_path / "fn.txt").read_text()
    assert (tmp_path / "fn.pb").stat().st_size > 100


REPORT = """NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Kernel Name
TSL:Thunk:#hlo_op=fusion.1#,PushPop,1,2,3,4,5000,1250.5,1,1,1,20,a
TSL:Thunk:#hlo_op=fusion.1#,PushPop,1,2,3,4,5000,9000,1,1,1,20,b
TSL:Thunk:#hlo_op=fusion.1#,PushPop,1,2,3,4,5000,50,1,1,1,20,b
TSL:Thunk:#name=dot,hlo_op=dot.3#,PushPop,1,2,3,4,5000,3000,1,1,1,20,c
Thunk:#hlo_op=all-reduce-start.2#,PushPop,1,2,3,4,5000,2250.9,1,1,1,20,d
:other,PushPop,1,2,3,4,5000,1,1,1,1,20,e
"""
NSYS = """#!/bin/sh
for last; do :; done
case "$*" in *" -o "*) cp "$0.csv" "${last}_nvtxkernsum.csv";; esac
"""


@pytest.mark.parametrize("package", ["minijax", "jax"])
def test_profiles_of_nsys_become_costs(package, tmp_path):
    (tmp_path / "nsys").write_text(NSYS)
    (tmp_path / "nsys").chmod(0o755)
    (tmp_path / "nsys.csv").write_text(REPORT)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = ["--profile_path", "./a.nsys-rep", "--pgle_output_path", "./out.pbtxt"]
    script = f"{package}.tools.pgo_nsys_converter"
    subprocess.run(
        [sys.executable, "-m", script, *command], cwd=tmp_path, check=True, env=environment, capture_output=True
    )
    costs = 'costs { name: "fusion.1" cost_us: 9.0 }\ncosts { name: "all-reduce-start.2" cost_us: 2.2509 }\n'
    assert (tmp_path / "out.pbtxt").read_text() == costs


def test_modules_are_rewritten_while_xla_compiles_them():
    seen = []
    compile_new = lambda n: minijax.jit(lambda x: x * 3 + n)(np.ones(3)).tolist()  # noqa: E731
    xla.register_hlo_module_transformation(seen.append, name="see")
    xla.register_hlo_module_transformation(seen.append, name="after", stage=xla.PipelineStage.POST_SCHEDULER)
    assert compile_new(1) == [4] * 3 and len(seen) == 2 and all(isinstance(module, bytes) for module in seen)
    assert compile_new(1) == [4] * 3 and len(seen) == 2  # the same program
    assert xla.clear_hlo_module_transformation("see") and not xla.clear_hlo_module_transformation("see")
    assert xla.clear_hlo_module_transformation("after", xla.PipelineStage.POST_SCHEDULER)
    assert compile_new(2) == [5] * 3 and len(seen) == 2


@pytest.mark.parametrize("result", ["text", b"no module", KeyError("of mine")])
def test_an_error_of_a_rewriter_ends_the_compilation(result):
    def rewrite(module):
        if isinstance(result, Exception):
            raise result
        return result

    xla.register_hlo_module_transformation(rewrite, name="bad", platforms=["cpu", "nowhere"])
    try:
        with pytest.raises(minijax.errors.JaxRuntimeError, match="must return bytes|Failed to parse|of mine"):
            minijax.jit(lambda x: x * 3 + len(str(result)))(np.ones(3))
    finally:
        assert xla.clear_hlo_module_transformation("bad")
    with pytest.raises(TypeError, match="is not a function with a name"):
        xla.register_hlo_module_transformation(5, name="bad")


def test_a_module_is_replaced_by_another():
    modules = []
    xla.register_hlo_module_transformation(modules.append, name="see", platforms="cpu")
    minijax.jit(lambda x: x * 5 - 7)(np.ones(3))
    assert xla.clear_hlo_module_transformation("see")
    xla.register_hlo_module_transformation(lambda module: modules[0], name="other", platforms="cpu")
    try:
        assert minijax.jit(lambda x: x * 11 + 13)(np.ones(3)).tolist() == [-2] * 3
    finally:
        assert xla.clear_hlo_module_transformation("other")
    assert minijax.jit(lambda x: x * 11 + 13)(np.ones(3)).tolist() == [24] * 3


# Of devices that programs are only compiled for, which for CPUs XLA cannot do.
DESCRIBED = [
    lambda s, lowered: str(lowered(s).as_text()).count("num_partitions = 8"),
    lambda jax, devices, mesh, P, s, NamedSharding: (
        s.memory_kind,
        NamedSharding(mesh, P("x"), memory_kind="device").memory_kind,
        jax.sharding.SingleDeviceSharding(devices[0]).memory_kind,
    ),
    lambda jax, export, s: (
        export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((8,), "float32", sharding=s)).nr_devices
    ),
    lambda s, lowered: lowered(s).compile(),
    lambda jax, devices, lowered: lowered(jax.sharding.SingleDeviceSharding(devices[0])).compile(),
    lambda jax, s: jax.jit(lambda x: x * 2, in_shardings=s)(np.ones(8)),
    lambda jax, s: jax.device_put(np.ones(8), s),
    lambda jax, devices: jax.device_put(np.ones(8), devices[0]),
]


@pytest.mark.oracle
@pytest.mark.parametrize("call", DESCRIBED)
def test_devices_that_programs_are_only_compiled_for(call):
    devices = xla_client.get_topology_for_devices(list(minijax.devices()))._make_compile_only_devices()

    def outcome(package):
        jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
        mesh = jax.sharding.Mesh(np.array(devices), ("x",))
        names = dict(vars(jax.sharding), jax=jax, export=export, devices=devices, mesh=mesh, P=jax.P)
        names["s"] = jax.sharding.NamedSharding(mesh, jax.P("x"))
        describe = lambda s: jax.ShapeDtypeStruct((8,), "float32", sharding=s)  # noqa: E731
        names["lowered"] = lambda s: jax.jit(lambda x: x * 2).lower(describe(s))
        try:
            return given(call, names)
        except Exception as error:
            return type(error).__name__, str(error)

    ours, theirs = outcome("minijax"), outcome("jax")
    assert ours == theirs
