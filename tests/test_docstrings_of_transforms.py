"""Docstrings of transformations, operations and libraries: first sentences, sections of the most used, and examples."""

import importlib
import inspect
import pydoc
import re

import pytest
from examples import check_examples

import minijax as jax

# The public modules whose functions are described in full sentences; those of numpy and scipy have a test of their own.
MODULES = """
minijax minijax.lax minijax.lax.linalg minijax.random minijax.nn minijax.nn.initializers minijax.tree minijax.tree_util
minijax.sharding minijax.debug minijax.image minijax.ops minijax.ad_checkpoint minijax.custom_derivatives
minijax.custom_batching minijax.dtypes minijax.export minijax.ffi minijax.profiler minijax.distributed minijax.errors minijax.stages
minijax.flatten_util minijax.dlpack minijax.monitoring minijax.memory minijax.ref minijax.test_util minijax.experimental
minijax.experimental.checkify minijax.experimental.multihost_utils minijax.experimental.mesh_utils
minijax.experimental.topologies minijax.experimental.sparse minijax.example_libraries.stax
minijax.example_libraries.optimizers minijax.experimental.ode minijax.experimental.rnn minijax.experimental.roofline
minijax.experimental.jet minijax.experimental.pallas minijax.experimental.pallas.tpu
minijax.experimental.pallas.triton minijax.kernels minijax.experimental.pallas.fuser
minijax.experimental.pallas.ops.gpu.attention minijax.experimental.pallas.ops.gpu.decode_attention
minijax.experimental.pallas.ops.gpu.layer_norm minijax.experimental.pallas.ops.gpu.paged_attention
minijax.experimental.pallas.ops.gpu.rms_norm minijax.experimental.pallas.ops.gpu.softmax
minijax.experimental.pallas.ops.tpu.ragged_paged_attention
minijax.experimental.pallas.ops.tpu.all_gather minijax.experimental.pallas.ops.tpu.flash_attention
minijax.experimental.pallas.ops.tpu.matmul minijax.experimental.pallas.ops.tpu.megablox.gmm
minijax.experimental.pallas.ops.tpu.megablox.common minijax.extend.pallas
minijax.experimental.pallas.ops.tpu.paged_attention.quantization_utils
minijax.experimental.pallas.ops.tpu.splash_attention
minijax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask
""".split()
# Most used, with an entry for each argument and an example.
FULL = """
jit vmap grad value_and_grad jvp vjp linearize jacfwd pmap shard_map checkpoint custom_jvp custom_vjp eval_shape make_jaxpr
device_put device_get block_until_ready make_mesh NamedSharding P ShapeDtypeStruct pure_callback lax.scan lax.cond lax.switch
lax.while_loop lax.fori_loop lax.map lax.associative_scan lax.psum lax.pmean lax.select lax.rsqrt lax.top_k lax.gather
lax.dot_general lax.conv_general_dilated lax.dynamic_slice lax.dynamic_update_slice lax.stop_gradient random.key
random.PRNGKey random.split random.fold_in random.normal random.uniform random.randint random.bernoulli random.choice
random.permutation random.categorical nn.relu nn.sigmoid nn.softmax nn.log_softmax nn.softplus nn.one_hot tree.map
tree.leaves tree.flatten tree.unflatten tree.structure tree.reduce tree.map_with_path tree.flatten_with_path
tree_util.register_pytree_node tree_util.register_dataclass sharding.Mesh debug.print debug.callback
flatten_util.ravel_pytree experimental.io_callback
""".split()
# Types of other libraries, and names of types.
FOREIGN = ("DotDimensionNumbers", "KeyPath", "CompilerOptions", "ErrorCategory", "Device", "JaxRuntimeError")
VERB = re.compile(r"[A-Z]\w*s\b|Alias of :func:`jax\.[\w.]+`\.$")


def public() -> dict[str, object]:
    """The public functions and classes of the modules, by dotted name."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        absent = getattr(getattr(module, "_FACE", None), "_missing", ())
        for name in filter(lambda name: name not in absent, dir(module)):
            value = None if name.startswith("_") or name.endswith("_p") else getattr(module, name, None)
            ours = str(getattr(value, "__module__", "")).startswith(("minijax", "jax."))
            if callable(value) and ours and not inspect.ismodule(value) and name not in FOREIGN:
                found[f"{module.__name__}.{name}"] = value
    return found


PUBLIC = public()
# Described with numpy's.
ELSEWHERE = ("minijax.numpy", "minijax.scipy")


def documented() -> dict[str, str]:
    """The docstrings with examples, by dotted name, those of methods and of `errors` itself included."""
    found = {"minijax.errors": jax.errors.__doc__, "minijax.Array": jax.Array.__doc__}
    for name, value in {**PUBLIC, "minijax.config": type(jax.config)}.items():
        found[name] = inspect.getdoc(value)
        if inspect.isclass(value):
            methods = {k: v for k, v in vars(value).items() if inspect.isfunction(v) and k[0] != "_"}
            found |= {f"{name}.{key}": inspect.getdoc(method) for key, method in methods.items()}
    unique = {text: name for name, text in reversed(found.items()) if text and ">>>" in text}
    return {name: text for text, name in unique.items()}


EXAMPLES = documented()
# Modules whose functions and classes all have an example.
SHOWN = """
minijax minijax.lax minijax.lax.linalg minijax.random minijax.nn minijax.nn.initializers minijax.tree minijax.tree_util
minijax.sharding minijax.debug minijax.image minijax.ops minijax.ad_checkpoint minijax.custom_derivatives
minijax.custom_batching minijax.export minijax.distributed minijax.errors minijax.stages minijax.flatten_util
minijax.dlpack minijax.memory minijax.ref minijax.test_util minijax.experimental.checkify
minijax.experimental.mesh_utils minijax.experimental.sparse minijax.example_libraries.stax
minijax.example_libraries.optimizers minijax.experimental.roofline minijax.experimental.jet minijax.dtypes
minijax.monitoring minijax.experimental.multihost_utils minijax.experimental.topologies
""".split()
SHOWN += [
    m for m in MODULES if m.startswith(("minijax.experimental.pallas", "minijax.kernels", "minijax.extend.pallas"))
]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_begins_with_what_the_function_does(name):
    value = PUBLIC[name]
    if any(name in getattr(value, "__module__", "") for name in ELSEWHERE):
        pytest.skip("tests/test_docstrings.py has it")
    first = (inspect.getdoc(value) or "").split("\n\n")[0]
    assert VERB.match(first) and first.endswith((".", ":")), first


@pytest.mark.parametrize("name", FULL)
def test_the_most_used_describe_arguments_and_have_examples(name):
    module, _, function = ("minijax." + name).rpartition(".")
    value = getattr(importlib.import_module(module), function)
    text = inspect.getdoc(value)
    assert "Example:\n    >>>" in text
    assert "Args:\n" in text or "The arguments are those of" in text


@pytest.mark.parametrize("module", SHOWN)
def test_each_function_has_an_example(module):
    texts = {name: inspect.getdoc(PUBLIC[name]) for name in PUBLIC if name.rpartition(".")[0] == module}
    assert [name for name, text in texts.items() if ">>>" not in text and not text.startswith("Alias of")] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_docstrings_run(name):
    check_examples(name, EXAMPLES[name])


def test_help_shows_the_docstring():
    assert all("Args:" in pydoc.render_doc(function) for function in (jax.jit, jax.nn.softmax, jax.nn.relu))
