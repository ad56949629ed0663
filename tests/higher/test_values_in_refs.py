"""Values that references take: which are converted where they are written, and the weak types that come back."""

import compare
import numpy as np
import pytest
from compare import require, same

VALUES = {
    "an int": 3, "a float": 1.5, "a complex": 1j, "a bool": True, "a large int": 300, "int16": np.int16(3),
    "int64": np.int64(3), "float64": np.float64(2), "an array of ints": np.array([1, 2]), "uint8": np.uint8(3),
}  # fmt: skip
DTYPES = ("int8", "uint8", "int32", "float16", "float32", "complex64", "bool")
WRITES = ("set", "swap", "addupdate")


def written(jax, write, dtype, value):
    """The jaxpr of a write, or the class of its error."""

    def function(x):
        ref = jax.new_ref(jax.numpy.zeros(np.shape(value), dtype))
        getattr(jax.ref, write)(ref, ..., value if x is None else x)
        return ref[...]

    texts = []
    for args in ((None,), (value,)):
        made = compare.outcome(lambda args=args: str(jax.make_jaxpr(function)(*args)))
        texts.append(made.value or type(made.error).__name__)
    return texts


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_is_converted_within_integers_and_weakly_typed_floats(write):
    def texts(jax):
        table = {(d, v): written(jax, write, d, VALUES[v]) for d in DTYPES for v in VALUES}
        # Ints that their type cannot hold are refused here.
        return {k: t for k, t in table.items() if k[1] != "a large int" or k[0] == "int32"}

    same(texts)


def refilled(jax, x, kind):
    ref = jax.new_ref(x)
    if kind == "set":
        ref[...] = x
    elif kind == "added in place":
        ref[...] += x
    elif kind == "addupdate":
        jax.ref.addupdate(ref, ..., x)
    elif kind == "in jit":
        jax.jit(lambda: ref.__setitem__(..., x))()
    else:
        jax.lax.fori_loop(0, 2, lambda i, _: ref.__setitem__(..., x), None)
    return ref[...]


TRANSFORMS = {
    "jit": lambda jax, f: jax.jit(f)(2.0),
    "nested jit": lambda jax, f: jax.jit(lambda x: jax.jit(f)(x) * 1)(2.0),
    "eval_shape": lambda jax, f: jax.eval_shape(f, 2.0),
    "jvp": lambda jax, f: jax.make_jaxpr(lambda x: jax.jvp(f, (x,), (x,)))(2.0).out_avals,
    "vmap": lambda jax, f: jax.make_jaxpr(lambda x: jax.vmap(f)(jax.numpy.broadcast_to(x, (2,))))(2.0).out_avals,
    "vmap of another axis": (
        lambda jax, f: jax.make_jaxpr(lambda x: jax.vmap(lambda _: f(x))(np.ones(2)))(2.0).out_avals
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", ["set", "added in place", "addupdate", "in jit", "in a loop"])
def test_weak_types_of_what_is_read_are_those_of_jax(transform, kind):
    def weak(jax):
        found = TRANSFORMS[transform](jax, lambda x: refilled(jax, x, kind))
        return [(r.shape, str(r.dtype), r.weak_type) for r in jax.tree.leaves(found)]

    same(weak)


@pytest.mark.parametrize("shape", [(), (2,)])
def test_references_hold_tangents_of_integers(shape):
    def kept(jax):
        tangent = np.zeros(shape, jax.dtypes.float0)

        def function(x):
            ref = jax.new_ref(x)
            ref[...] = tangent
            return ref[...], jax.freeze(jax.new_ref(x))

        def filled(ref):
            ref[...] = tangent

        outer = jax.new_ref(tangent)
        jax.jit(filled)(outer)
        return function(tangent), jax.jit(function)(tangent), outer[...]

    same(kept)


def test_a_program_that_writes_a_weakly_typed_reference_says_so_of_its_results():
    def results(jax):
        call = jax.jit(lambda x: refilled(jax, x, "set"))
        return call(1), call.lower(1).compile()(1), call.lower(1).out_info.weak_type

    found = same(results)
    require(not found[0].weak_type, "weak type", found[0].weak_type, False)
