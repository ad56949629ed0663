"""Indexing against jax: every form of index, updates, and seeded random indices."""

import random
import warnings

import numpy as np
import pytest
from compare import (
    EITHER,
    check_eager,
    expression_case,
    ours,
    same,
    same_misuse,
    same_refusal,
    sweep,
    theirs,
    wide_numbers,
)

import minijax
import minijax.numpy as jnp

pytestmark = pytest.mark.oracle

VALUES = {
    "x": np.arange(12, dtype=np.float32).reshape(3, 4),
    "v": np.arange(5, dtype=np.float32),
    "t": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "n": np.arange(12, dtype=np.int32).reshape(3, 4),
    "s": np.float32(1.5),
    "e": np.zeros((0, 3), np.float32),
    "i": np.int32(1),
    "j": np.uint8(0),
    "a": np.array([0, 1], np.int32),
    "b": np.array([[1], [0], [1]], np.int32),
    "c": np.array([-1, 0], np.int16),
    "u": np.array([1, 0, 1], np.uint32),
}


READS = """
x[0]; x[-1]; x[:,0]; x[0,1]; x[1:]; x[:-1,::2]; x[::-1]; x[2:0:-1]; x[5:1]; x[::-2,1]; x[None]; x[...,None];
x[None,0]; x[0,None,:]; x[...]; x[()]; t[...,0]; t[0,...,1]; x[i]; x[i,i]; x[i,0]; x[i,1:]; x[i,::-1]; x[:,i];
x[i,None]; x[j]; x[a]; x[u]; x[b]; x[:,a]; x[a,a]; x[b,a[:,None].T]; x[a,0]; x[0,a]; t[a,:,a]; t[:,a,a]; t[a,:,0];
t[0,:,a]; t[a,1:,0]; t[a,::-1]; t[a,1:2,0:2]; t[a,None,0]; t[None,a]; t[a,...,0]; t[a,i]; x[np.array([0,-1])];
e[0,np.array([],int)]; e.at[0,a].add(3); e.at[-1,None,a].set(1); e.T[np.array([],int),0]; x[[0,1],]; x[(0,1),]; x[((0,1),(1,2))]; x[...,True]; x[0,:,True]; x[True,...,0]; x[0,True,1]; x[np.ones((3,4),bool),True]; x[True,a]; x[:,True,a]; x[False,0]; x[True,1:,None,i]; x[np.array([True,False,True])]; x[np.array([True,False,True]),0]; x[True];
x[False]; x[10]; x[-4]; x[2,-5]; x[np.int64(-1)]; x[c]; x[c,0]; x[j,::2]; t[i,::2,0]; t[1,::2,a]; t[::2,a,::-1];
t[i,::2,::-1]; t[i,a,:2]; t[i,0,a]; x[a,10]; x[a,-1]; x[5:,a]; x[0:0]; x[i,2:1]; x[None,a,None,:]; t[None,a,:,a];
t[:,a,...,a]; x[np.ones((3,4),bool)]; v[-10:2]; v[10:]; v[i]; s[()]; s[None]; x[2:-1:-2,None]; x[[True,False,True],]
"""
UPDATES = """
x.at[0].set(1.); x.at[i].set(1); x.at[a].set(1.); x.at[a].add(2.); x.at[a].subtract(1.); x.at[a].multiply(2.);
x.at[a].min(2.); x.at[a].max(x[:2]); x.at[a].apply(jnp.sin); x.at[1:].set(1.); x.at[1:,2:].set(x[1:,2:]);
x.at[::2].set(1.); x.at[::-1].set(x); x.at[:,0].add(v[:3]); x.at[...].set(1.); x.at[None].set(1.); x.at[0,1].set(s);
x.at[:,None].set(x[:,None]); x.at[i,i].add(1.); x.at[i,1:].add(1.); x.at[a,a].add(1.); t.at[a,:,a].set(1.);
t.at[:,a,a].set(1.); t.at[a,1:].set(1.); t.at[a,None,0].add(1.); s.at[()].set(2.); s.at[...].add(2.); x.at[u].set(1.);
v.at[-1].add(s); n.at[a].add(2); x.at[a].set(n[:2]); x.at[0].set(True); x.at[0:0].set(1.); x.at[c].mul(3.);
x.at[a].divide(2.); x.at[a].power(2.); x.at[10].set(1.); x.at[np.array([True,False,True])].set(0.);
x.at[a].get(mode='clip'); x.at[a].get(mode='fill',fill_value=3); x.at[i].get(mode='fill'); x.at[0].get(mode='fill');
n.at[10].get(mode='fill'); (x>1).at[10].get(mode='fill'); x.at[a].get(wrap_negative_indices=False);
x.at[a].get(indices_are_sorted=True,unique_indices=True); x.at[-1].set(1.,wrap_negative_indices=False);
x.at[a].set(1.,mode='clip',indices_are_sorted=True,unique_indices=True); x.at[a].set(1.,mode='promise_in_bounds')
"""
TAKING = """
jnp.take(x,a,axis=0); jnp.take(x,a); jnp.take(x,i,axis=1); jnp.take(x,-1); jnp.take(x,b,axis=1,mode='clip');
jnp.take(x,b,axis=1,mode='wrap'); jnp.take(x,b,axis=1,mode='fill',fill_value=0); jnp.take(n,a,axis=0);
jnp.take_along_axis(x,n,axis=0); jnp.take_along_axis(x,n,axis=-1); jnp.take_along_axis(x,n[:1],axis=1);
jnp.take_along_axis(x,n,axis=1,mode='clip'); jnp.take_along_axis(v,a,axis=None); jnp.ix_(a,u);
jnp.put_along_axis(x,n%3,s,axis=0,inplace=False); jnp.nonzero(x,size=3); jnp.nonzero(v,size=6,fill_value=7);
jnp.argwhere(x,size=3); jnp.flatnonzero(v,size=2); jnp.diag(v); jnp.diag(v,1); jnp.diag(x,-1); jnp.diagflat(x);
jnp.diagonal(t,1,0,2); jnp.diagonal(x); jnp.delete(v,1); jnp.take(x,a,axis=0,unique_indices=True)
"""

DYNAMIC = """
x[jax.ds(1,2)]; x[jax.ds(i,2)]; x[0,jax.ds(i,2)]; x[jax.ds(i,2),jax.ds(i,2)]; x[jax.ds(0,2)]; x[jax.ds(i,2),a]; x[a,jax.ds(i,2)];
x[jax.ds(i,2),i]; x[None,jax.ds(1,2),...,0:2]; x[jax.ds(i,2),::2]; t[a,jax.ds(i,1),a]; x[jax.ds(j,1)]; x[jax.ds(1,0)]; x[jax.ds(None)];
x[jax.ds(2)]; v[jax.ds(0,3,2)]; x[jax.ds(0,2,2),jax.ds(1,2,2)]; x[jax.ds(2,2)]; x[jax.ds(-1,1)]; x[jax.ds(np.int64(1),2)];
x.at[jax.ds(i,2)].set(1.); x.at[0,jax.ds(i,2)].add(1.); x.at[jax.ds(2,2)].set(7.); x.at[jax.ds(i,2),a].set(3.);
jax.grad(lambda x, i: (x[jax.ds(i,2)]**2).sum())(x, i); x.at[jax.ds(0,2,2)].add(1.)
"""  # noqa: E501


def table(text):
    return [expression_case(VALUES, part.strip()) for part in text.replace("\n", " ").split(";")]


@pytest.mark.parametrize("cases", [READS, UPDATES, TAKING, DYNAMIC], ids=["reads", "updates", "taking", "dynamic"])
def test_jaxprs_texts_and_values_are_those_of_jax(cases):
    sweep(table(cases))


def test_gradients_of_reads_and_updates_are_those_of_jax():
    reads = ["x[0]", "x[i]", "x[a]", "x[a,:2]", "x[::-2,1]", "x[:,i]", "x[a].at[0].set(s)", "x.at[a].add(v[:4])"]
    sweep([expression_case(VALUES, f"jax.grad(lambda x: jnp.sin({read}).sum())(x)") for read in reads])


def random_item(rng, size):
    kind = rng.random()
    if kind < 0.15:
        return str(rng.randrange(-size, size))
    if kind < 0.25:
        return rng.choice("ij")
    if kind < 0.55:
        start, stop = (rng.choice(["", str(rng.randrange(-size - 1, size + 2))]) for _ in range(2))
        step = rng.choice(["", "", "", "1", "2", "-1", "-2"])
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return rng.choice(["a", "a", "b", "c", "np.array([0,-1])", ":"])


def random_index(rng, shape=(2, 3, 4)):
    items = [random_item(rng, size) for size in shape[: rng.randrange(len(shape) + 1)]]
    if rng.random() < 0.3:
        items.insert(rng.randrange(len(items) + 1), "None")
    if len(items) < len(shape) and rng.random() < 0.3:
        items.append("...")
    return ",".join(items) + "," if items else "()"


def random_expression(rng):
    index = random_index(rng)
    forms = ["t[{0}]"] * 5 + ["t.at[{0}].set(2.)", "t.at[{0}].add(t[{0}])", "t.at[{0}].get(mode='fill')"]
    return rng.choice(forms).format(index)


def test_random_indices_give_the_jaxprs_of_jax():
    rng = random.Random(20)
    sweep([expression_case(VALUES, random_expression(rng)) for _ in range(120)])


def test_gradients_by_random_indices_are_those_of_jax():
    rng = random.Random(22)
    cases = [
        expression_case(VALUES, f"jax.grad(lambda t: jnp.sin({random_expression(rng)}).sum())(t)") for _ in range(60)
    ]
    sweep(cases)


def test_random_indices_outside_jit_give_the_values_of_jax():
    rng = random.Random(21)
    for _ in range(40):
        check_eager(expression_case(VALUES, random_expression(rng)))


MISUSES = {
    "x[[0, 1]]": "Using a non-tuple sequence for multidimensional indexing is not allowed",
    "x['a']": "JAX does not support string indexing",
    "x[1.0]": "Indexer must have integer or boolean type, got indexer with type float64",
    "x[x]": "Indexer must have integer or boolean type",
    "x[0,0,0]": "Too many indices: array is 2-dimensional, but 3 were indexed",
    "x[...,...]": "an index can only have a single ellipsis",
    "x[object()]": "only integers, slices",
    "x[np.ones(2,bool)]": "boolean index did not match shape of indexed array in index 0: got (2,), expected [3]",
    "x[::0]": "slice step cannot be zero",
    "jnp.zeros((0,3))[0]": "index is out of bounds for axis 0 with size 0",
    "jnp.zeros((0,3))[0,:]": "index is out of bounds for axis 0 with size 0",
    "jnp.zeros((0,3))[0,a]": "gather",
    "x.at[a].get(mode='wrap')": 'Unknown gather mode "wrap"',
    "x.at[0].foo": "'_IndexUpdateRef' object has no attribute 'foo'",
    "x.at[a].set(v)": "Incompatible types for broadcasting",
    "jnp.take(x,s)": "indices must have an integer type",
    "jnp.take_along_axis(x,a,axis=1)": "indices and arr must have the same number of dimensions",
    "jax.jit(lambda x, m: x[m])(x, x > 1)": "Array boolean indices must be concrete",
    "jax.jit(lambda x, i: x[i:])(x, i)": "Slice entries must be static integers",
    "jax.jit(jnp.nonzero)(x)": "The size argument of jnp.nonzero must be statically specified",
}


@pytest.mark.parametrize("text", MISUSES)
def test_misuse_raises_the_error_of_jax(text):
    same_misuse(text, VALUES, MISUSES[text])


def test_masks_select_outside_jit():
    for text in ("x[x > 3]", "x.at[x > 3].set(0.)", "x[x[:, 0] > 3, 1]", "jnp.nonzero(x)", "jnp.unique(x % 3)"):
        check_eager(expression_case(VALUES, text))
    same(lambda jnp: jnp.unique(jnp.array([2, 1, 2]), True, True, True))


def test_a_value_that_does_not_fit_the_dtype_warns():
    with pytest.warns(FutureWarning, match="scatter inputs have incompatible types"):
        found = jnp.zeros(3, int).at[0].set(1.5)
    with warnings.catch_warnings(action="ignore"):
        same(lambda jnp: jnp.zeros(3, int).at[0].set(1.5))
    assert found.dtype == np.int32


def test_the_repr_of_at_shows_array_and_index():
    same(lambda jnp: repr(jnp.arange(3).at[1:, None]))
    same(lambda jnp: repr(jnp.arange(3).at))


def compiles(call):
    """How many programs XLA compiles for a call."""
    before = minijax.run.programs.compile.compile_count()
    call()
    return minijax.run.programs.compile.compile_count() - before


def test_eager_reads_and_updates_equal_jitted_ones():
    cases = table(READS + "; " + UPDATES)
    args = {name: jnp.asarray(value) for name, value in VALUES.items()}
    texts = [case.name for case in cases]
    with warnings.catch_warnings(action="ignore"):
        programs = [eval(f"lambda {', '.join(args)}: {t}", {"jnp": jnp, "np": np}) for t in texts]
        wanted = minijax.jit(lambda *xs: [program(*xs) for program in programs])(*args.values())
        for text, program, want in zip(texts, programs, wanted, strict=True):
            for found in (program(*args.values()), program(*args.values())):
                assert found.aval == want.aval, text
                assert found.tobytes() == want.tobytes(), text


def test_ints_share_one_program():
    x, m = jnp.arange(7.0), jnp.ones((5, 6))
    assert float(x[2]) == 2
    before = minijax.run.programs.compile.compile_count()
    assert [float(x[i]) for i in (0, 3, -1, np.int64(-7))] == [0, 3, 6, 0]
    assert minijax.run.programs.compile.compile_count() == before
    assert [float(x.at[i].set(9.0)[i]) for i in (1, -2)] == [9, 9]
    assert minijax.run.programs.compile.compile_count() - before <= 1
    assert compiles(lambda: [m[i, -j] for i in range(5) for j in range(1, 6)]) <= 1
    assert compiles(lambda: [m[:, j] for j in range(6)]) <= 1
    assert compiles(lambda: [m.at[i, 2:].add(float(i)) for i in range(5)]) <= 1


def test_slices_of_one_size_share_one_program():
    x, m = jnp.arange(20.0), jnp.arange(40.0).reshape(10, 4)
    assert compiles(lambda: [x[i : i + 3] for i in range(16)]) <= 1
    assert compiles(lambda: [m[i : i + 2, j] for i in range(7) for j in range(4)]) <= 1
    assert compiles(lambda: [m.at[i : i + 2].set(1.0) for i in range(7)]) <= 1
    assert x[17:20].tolist() == [17, 18, 19] and x[-3:-1].tolist() == [17, 18]
    assert m[2:4, 1].tolist() == [9, 13]
    assert m.at[8:10].set(0.0)[7:].tolist() == [[28, 29, 30, 31], [0] * 4, [0] * 4]


def test_arrays_and_masks_of_one_shape_share_one_program():
    x = jnp.arange(7.0)
    assert compiles(lambda: [x[jnp.array([i, 2])] for i in range(4)]) <= 1
    assert compiles(lambda: [x[np.array([i, -2])] for i in range(4)]) <= 0
    assert compiles(lambda: [x.at[jnp.array([i, 2])].set(i) for i in range(4)]) <= 1
    masks = [np.isin(np.arange(7), kept) for kept in ([0, 2], [1, 6], [3, 4])]
    assert [x[mask].tolist() for mask in masks] == [[0, 2], [1, 6], [3, 4]]
    assert compiles(lambda: [x[jnp.asarray(mask)] for mask in masks]) <= 0


def test_signed_zeros_and_kinds_of_fill_values_are_kept_apart():
    x = jnp.arange(3.0)
    fills = [x.at[jnp.array([5])].get(mode="fill", fill_value=v) for v in (0.0, -0.0, 1, True)]
    assert [str(f[0]) for f in fills] == ["0.0", "-0.0", "1.0", "1.0"]


def test_indexing_a_deleted_array_raises():
    x = jnp.arange(5.0)
    x[1], x[2:4]
    x.delete()
    for call in (lambda: x[1], lambda: x[2:4], lambda: x.at[0].set(1.0)):
        with pytest.raises(RuntimeError, match="deleted"):
            call()


def test_arrays_iterate_over_their_first_axis():
    same(lambda jnp: list(jnp.arange(6).reshape(3, 2)))
    assert len(list(jnp.zeros(250))) == 250
    same_refusal(lambda jnp: lambda: list(jnp.float32(1)), phrases=["iteration over a 0-d array"])


@pytest.mark.oracle
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_indices_of_every_width_are_taken_as_by_jax(dtype, x64):
    values = {"x": np.ones((2, 3), np.float32), "i": np.array([0, 1], dtype), "k": np.array([[0], [1]], dtype)}
    texts = ("jnp.take(x, i, axis=0)", "jnp.take(x, i, axis=1, mode='clip')", "jnp.take_along_axis(x, k, axis=1)")
    with minijax.enable_x64(x64), pytest.importorskip("jax").enable_x64(x64):
        sweep([expression_case(values, text) for text in texts])


@pytest.mark.oracle
def test_nothing_is_taken_as_by_jax():
    values = {
        "x": np.ones((2, 3), np.float32),
        "e": np.ones((0, 3), np.float32),
        "i": np.zeros(0, np.int32),
        "k": np.zeros((0, 2), np.int32),
        "j": np.zeros((2, 3), np.int32),
    }
    texts = [f"jnp.take({x}, {i}, axis={a})" for x in "xe" for i in ("i", "i[:, None]") for a in (0, 1)]
    texts += [
        "jnp.take_along_axis(e, j, 0)",
        "jnp.take_along_axis(e, k, 1)",
        "jnp.take_along_axis(e, e.astype(int), 0)",
    ]
    sweep([expression_case(values, text) for text in texts])


def test_dynamic_slices_outside_jit_give_the_values_of_jax():
    for case in table(DYNAMIC):
        check_eager(case)


def test_dynamic_slices_are_jax_s():
    def program(jax):
        made = [
            jax.ds(None),
            jax.ds(3),
            jax.ds(1, 2, 3),
            jax.ds(1, 2, 0),
            jax.ds(None, 2),
            jax.ds(1, None, 2),
            jax.ds(-1, 2),
        ]
        one = jax.ds(np.int32(1), 2)
        found = type(one).from_slice(slice(1, None, 2), 5)
        return (
            [str(x) for x in made],
            str(found),
            one.is_dynamic_start,
            one.is_dynamic_size,
            found.is_dynamic_start,
            jax.ds(1, 2) == jax.ds(1, 2),
            len(jax.tree.leaves([jax.ds(1, 2), one])),
        )

    same(program)
    same_refusal(lambda jax: lambda: jax.ds(0, 1, -1), ["must be >= 0"])
    for text in ("x[jax.ds(0,5)]", "x[jax.ds(0,-1)]"):
        same_misuse(text, VALUES, "slice_sizes")


LARGE = (2**31 - 1, 2**31, 2**40, -(2**31), -(2**31) - 1, 2**63, 2**70)


def large_index(x, n, jax):
    return [
        lambda: x[n],
        lambda: x[None, n],
        lambda: x[n:],
        lambda: x[: -abs(n)],
        lambda: jax.jit(lambda x: x[n])(x),
        lambda: x.at[n].get(mode="promise_in_bounds"),
        lambda: jax.lax.index_in_dim(x, n),
    ]


@pytest.mark.parametrize("wide", [False, True])
def test_static_indices_may_be_beyond_their_dtype(wide):
    with wide_numbers(wide):
        for n in LARGE:
            for k in range(7):
                same(lambda jax, n=n, k=k: large_index(jax.numpy.arange(5.0), n, jax)[k](), raises=EITHER)


def test_updates_and_reads_out_of_bounds_by_large_ints_change_and_find_nothing():
    # jax wraps these ints, so that 2**40 is element 0.
    x = jnp.arange(5.0)
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        x.at[2**40].set(9)
    with minijax.enable_x64(True):
        assert x.at[2**40].set(9).tolist() == x.at[-(2**40)].add(9).tolist() == [0, 1, 2, 3, 4]
        assert np.isnan(x.at[2**40].get(mode="fill"))
        assert x[np.int64(2**40)] == x.at[2**40].get(mode="clip") == 4
    assert x[:: 2**63].tolist() == [0]


def test_unsigned_arrays_take_every_int_that_they_hold():
    def update(name, n):
        return lambda jax: getattr(jax.numpy.arange(3, dtype="uint32").at[1], name)(n)

    for n in (2**31, 2**32 - 1, 2**32, -1, -(2**31) - 1):
        for name in ("set", "add", "multiply", "max", "divide"):
            same(update(name, n), raises=not -(2**31) <= n < 2**32)


def test_a_slice_of_a_traced_array_does_not_use_the_eager_path():
    jnp.ones(3).at[:1].set(0)
    assert minijax.jit(lambda: jnp.ones(3).at[:1].set(0))().tolist() == [0, 1, 1]


EMPTY_MASKS = [((3,), (0,)), ((3, 4), (0,)), ((3, 4), (0, 4)), ((3, 4), (3, 0)), ((3, 4, 5), (3, 0)), ((3, 4), (0, 5))]


@pytest.mark.parametrize(("shape", "mask"), EMPTY_MASKS)
def test_masks_without_elements_name_nothing(shape, mask):
    def program(jnp):
        x, empty = jnp.ones(shape), np.empty(mask, bool)
        return x[empty], x.at[empty].set(2)

    same(program, raises=EITHER)


OUTSIDE = [((2,), -4), ((2,), 4), ((2, 3), np.index_exp[..., -4]), ((2, 3, 5), np.index_exp[:, [1, 2], 6])]


@pytest.mark.parametrize(("shape", "index"), OUTSIDE)
def test_ints_out_of_bounds_are_refused_if_the_option_is_set(shape, index):
    for side in (ours(), theirs()):
        x = side.numpy.ones(shape)
        side.config.update("jax_check_static_indices", True)
        try:
            for read in (lambda x: x[index], side.jit(lambda x: x[index]), lambda x: x.at[index].get()):
                with pytest.raises(IndexError, match="out of bounds for axis . with size"):
                    read(x)
            x.at[index].set(0)
            x.at[index].get(mode="clip")
        finally:
            side.config.update("jax_check_static_indices", False)


def test_a_cotangent_of_another_dtype_goes_back_through_a_gather():
    def program(jax, jnp):
        with_batch_dim = jax.custom_vjp(lambda x: x)
        with_batch_dim.defvjp(lambda x: (x, ()), lambda _, ct: (ct.astype("bfloat16"),))
        x = jnp.arange(8, dtype="float8_e4m3fn")
        return jax.vjp(lambda x: with_batch_dim(x[jnp.argsort(x)]), x)[1](jnp.ones(8, "float8_e4m3fn"))

    same(program)


@pytest.mark.parametrize(
    "call",
    [
        lambda jnp, x: jnp.ravel(x)[jnp.zeros(2, int)],
        lambda jnp, x: jnp.unique(x, size=3),
        lambda jnp, x: jnp.sort(jnp.ravel(x)),
    ],
)
def test_gradients_through_indexed_elements_are_strongly_typed(call):
    def program(jax, jnp):
        g = jax.grad(lambda x: jnp.sum(call(jnp, x)))(-0.25)
        return g, jax.typeof(g).weak_type

    same(program)
