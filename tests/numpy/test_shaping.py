"""Functions that change shapes and orders, against jax: jaxprs, texts, values, errors."""

import numpy as np
import pytest
from compare import check_eager, ended, expression_case, same, same_misuse, sweep

import minijax
import minijax.numpy as jnp

pytestmark = pytest.mark.oracle

VALUES = {
    "x": np.arange(12, dtype=np.float32).reshape(3, 4),
    "v": np.arange(5, dtype=np.float32),
    "t": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "n": np.arange(3, dtype=np.int32),
    "s": np.float32(1.5),
    "i": np.int32(1),
}


SHAPES = """
jnp.reshape(x,(4,3))| jnp.reshape(x,-1)| jnp.reshape(x,(3,4))| jnp.reshape(x,(4,3),order='F')| jnp.reshape(s,-1)|
jnp.ravel(x)| jnp.ravel(v)| jnp.ravel(x,order='F')| jnp.transpose(x)| jnp.transpose(t,(-1,0,1))| jnp.matrix_transpose(t)|
jnp.permute_dims(t,(2,0,1))| jnp.swapaxes(t,0,-1)| jnp.swapaxes(t,1,1)| jnp.moveaxis(t,0,-1)| jnp.moveaxis(t,(0,1),(1,0))|
jnp.rollaxis(t,2)| jnp.rollaxis(t,0,3)| jnp.squeeze(x[None])| jnp.squeeze(x)| jnp.squeeze(x[None],0)| jnp.squeeze(x,())|
jnp.expand_dims(x,0)| jnp.expand_dims(x,(0,-1))| jnp.broadcast_to(v,(3,5))| jnp.broadcast_to(x[:,:1],(2,3,4))|
jnp.broadcast_arrays(x,s,1)| jnp.broadcast_shapes((1,2),(3,1))| jnp.atleast_1d(s)| jnp.atleast_2d(v)| jnp.atleast_3d(x)|
jnp.atleast_1d(s,v)| jnp.atleast_3d(v)
"""
JOINS = """
jnp.concatenate([x,x])| jnp.concatenate([x])| jnp.concatenate([x,x.astype(int)],axis=1)| jnp.concatenate([x,x],axis=None)|
jnp.concatenate([x,x],dtype='float16')| jnp.concatenate(x)| jnp.concatenate([v]*40)| jnp.concat([x,x])| jnp.stack([x,x])|
jnp.stack([s,1])| jnp.stack([x,x],axis=-1,dtype=int)| jnp.stack(x)| jnp.hstack([v,v])| jnp.hstack([x,x])| jnp.hstack(x)|
jnp.vstack([v,v])| jnp.vstack(x)| jnp.dstack([v,v])| jnp.dstack(x)| jnp.column_stack([v,v])| jnp.column_stack(x)|
jnp.append(x,s)| jnp.append(x,x,axis=0)| jnp.block([[x,x],[x,x]])| jnp.block([[s,1.]])| jnp.split(v,5)| jnp.split(x,[1,2])|
jnp.array_split(v,2)| jnp.array_split(v,7)| jnp.hsplit(x,2)| jnp.vsplit(x,3)| jnp.dsplit(t,2)| jnp.unstack(x)|
jnp.unstack(x,axis=1)| jnp.tile(v,2)| jnp.tile(v,(2,2))| jnp.tile(x,())| jnp.tile(s,2)| jnp.tile(x,(2,1,3))|
jnp.repeat(x,2)| jnp.repeat(x,2,axis=0)| jnp.repeat(x,0,axis=1)| jnp.repeat(s,3)| jnp.resize(x,(5,5))| jnp.resize(x,(2,2))|
jnp.resize(x,(6,4))
"""
TURNS = """
jnp.roll(x,1)| jnp.roll(x,1,axis=0)| jnp.roll(x,(1,2),axis=(0,1))| jnp.roll(x,(1,1),0)| jnp.roll(x,-1,-1)| jnp.roll(x,5,0)|
jnp.roll(x,i)| jnp.roll(x,i,axis=1)| jnp.roll(x,(i,1),(0,1))| jnp.flip(x)| jnp.flip(x,0)| jnp.flip(x,(0,-1))| jnp.fliplr(x)|
jnp.flipud(x)| jnp.rot90(x)| jnp.rot90(x,2)| jnp.rot90(x,3)| jnp.rot90(x,0)| jnp.rot90(x,-1)| jnp.rot90(t,1,(2,0))|
jnp.diff(x)| jnp.diff(x,2,axis=0)| jnp.diff(x,prepend=0,append=1)| jnp.diff(x,prepend=x[:,:1])| jnp.diff(x>5)| jnp.diff(x,0)|
jnp.diff(x,5)| jnp.ediff1d(x)| jnp.ediff1d(x,to_begin=1,to_end=2)
"""
PADS = """
jnp.pad(x,1)| jnp.pad(x,0)| jnp.pad(x,(1,2))| jnp.pad(x,((1,2),(0,1)),constant_values=3)| jnp.pad(v,1,constant_values=(1,2))|
jnp.pad(x,((1,2),(0,1)),constant_values=((1,2),(3,4)))| jnp.pad(x,1,constant_values=i)| jnp.pad(x,1,mode='edge')|
jnp.pad(x,((0,0),(1,0)),mode='edge')| jnp.pad(x,1,mode='reflect')| jnp.pad(x,5,mode='reflect')|
jnp.pad(x,1,mode='reflect',reflect_type='odd')| jnp.pad(x,1,mode='symmetric')| jnp.pad(x,1,mode='wrap')|
jnp.pad(x,((0,2),(1,0)),mode='symmetric',reflect_type='odd')| jnp.pad(x,5,mode='wrap')| jnp.pad(v,2,mode='linear_ramp',end_values=3)|
jnp.pad(x,1,mode='mean')| jnp.pad(n,1,mode='mean')| jnp.pad(x,1,mode='maximum')| jnp.pad(x,1,mode='maximum',stat_length=2)|
jnp.pad(n,1,mode='minimum')| jnp.pad(x,1,mode='empty')| jnp.pad(v,1,mode=lambda v,pw,ia,kw: v.at[0].set(3.))
"""


def table(text):
    return [expression_case(VALUES, part.strip()) for part in text.replace("\n", " ").split("|")]


@pytest.mark.parametrize("cases", [SHAPES, JOINS, TURNS, PADS], ids=["shapes", "joins", "turns", "pads"])
def test_jaxprs_texts_and_values_are_those_of_jax(cases):
    sweep(table(cases))


@pytest.mark.parametrize("function", ["jnp.flip(x, 1)", "jnp.roll(x, 1, 0)", "jnp.pad(x, 1, mode='wrap')", "jnp.repeat(x, 2, 1)",
                                      "jnp.concatenate([x, x[::-1]])", "jnp.diff(x)", "jnp.tile(x, (2, 1))"])  # fmt: skip
def test_gradients_and_batches_are_those_of_jax(function):
    sweep(
        [
            expression_case(VALUES, f"jax.grad(lambda x: jnp.sin({function}).sum())(x)"),
            expression_case(VALUES, f"jax.vmap(lambda x: {function})(t)"),
        ]
    )


# How a repetition is written differs; what comes out does not.
@pytest.mark.parametrize("text", [
    "jnp.repeat(x, np.array([1, 2, 3]), axis=0)",
    "jnp.repeat(x, np.array([2]), axis=1)",
    "jnp.repeat(v, jnp.array([1, 2, 3, 0, 1]), total_repeat_length=9)",
    "jnp.repeat(v, jnp.array([1, 2, 3, 0, 1]), total_repeat_length=4)",
])  # fmt: skip
def test_repetitions_by_counts_give_the_values_of_jax(text):
    check_eager(expression_case(VALUES, text))


MISUSES = {
    "jnp.reshape([1, 2], 2)": "reshape requires ndarray or scalar arguments, got <class 'list'> at position 0.",
    "jnp.reshape(x, (5, 3))": "cannot reshape array of shape (3, 4) (size 12) into shape (5, 3)",
    "jnp.reshape(x, (-1, -1))": "can only specify one unknown axis size with a `-1` value",
    "jnp.reshape(x, (4, 3), order='A')": "order=A is not implemented",
    "jnp.moveaxis(t, (0, 1), (1,))": "Inconsistent number of elements",
    "jnp.moveaxis(t, 0, 5)": "out of bounds for array of dimension 3",
    "jnp.squeeze(x, 1)": "",
    "jnp.expand_dims(x, (0, 0))": "repeated axis",
    "jnp.broadcast_to(x, (3,))": "Cannot broadcast to shape with fewer dimensions",
    "jnp.broadcast_to(x, (3, 5))": "Incompatible",
    "jnp.concatenate([])": "Need at least one array to concatenate.",
    "jnp.concatenate([s, s])": "Zero-dimensional arrays cannot be concatenated.",
    "jnp.concatenate(1.)": "",
    "jnp.stack([])": "Need at least one array to stack.",
    "jnp.stack([x, x[0]])": "",
    "jnp.stack(1)": "",
    "jnp.block([x, [x]])": "Mismatched list depths in jax.numpy.block",
    "jnp.split(v, 2)": "array split does not result in an equal division: rest is 1",
    "jnp.split(v, [7])": "must be nonnegative",
    "jnp.repeat(x, [2, 1, 0], axis=0)": "repeat requires ndarray or scalar arguments",
    "jnp.diff(x, -1)": "order must be non-negative but got -1",
    "jnp.rot90(v)": "rot90 requires its first argument to have ndim at least two",
    "jnp.pad(v, 1, mode='foo')": "Unimplemented padding mode 'foo' for np.pad.",
    "jnp.pad(v, 1, mode='edge', constant_values=1)": "unsupported keyword arguments for mode 'edge'",
    "jnp.pad(v, -1)": "index can't contain negative values",
    "jnp.pad(v, ((1, 2), (3, 4)))": "has unsupported shape (2, 2)",
    "jnp.pad(v, 1.5)": "must be of integral type",
    "jnp.pad(v[:0], 1, mode='edge')": "Cannot apply 'edge' padding to empty axis",
}


@pytest.mark.parametrize("text", MISUSES)
def test_misuse_raises_the_error_of_jax(text):
    same_misuse(text, VALUES, MISUSES[text])


@pytest.mark.oracle
@pytest.mark.parametrize("n", [2, 2.5, 1j])
def test_padding_keeps_a_weak_type(n):
    modes = "mean", "minimum", "linear_ramp", "empty", "edge", "wrap"
    texts = [f"jnp.pad(jnp.broadcast_to(n, (3, 2)), 2, {mode!r})" for mode in modes]
    texts += ["jnp.pad(n, 1)", "jnp.pad(jnp.expand_dims(n, 0), 1)"]
    texts += ["jnp.pad(jnp.broadcast_to(n, (2,)), 1, constant_values=(1, 3))"]
    texts += ["jnp.pad(jnp.broadcast_to(n, (3,)), 1, lambda vector, *_: vector)"]
    sweep([expression_case({"n": n}, text) for text in texts])


@pytest.mark.parametrize("dtype", ["int2", "uint2"])
def test_two_bit_integers_are_joined(dtype):
    # XLA ends the process when it compiles such a join for CPUs, jax's too; NumPy is the oracle.
    parts = [np.array([[0, 1, 1]]), np.array([[1, 0, 1], [1, 1, 0]])]
    mine = [jnp.asarray(part.astype(np.int8)).astype(dtype) for part in parts]
    wide = lambda x: np.asarray(x.astype("int8"))  # noqa: E731
    assert wide(jnp.concatenate(mine)).tolist() == np.concatenate(parts).tolist()
    assert wide(minijax.jit(lambda a, b: jnp.concatenate([a, b]) * b[:1])(*mine)).tolist() == [
        [0, 0, 1],
        [1, 0, 1],
        [1, 0, 0],
    ]
    mapped = minijax.vmap(lambda a: jnp.append(a, a[:1]))(mine[1])
    assert mapped.dtype == dtype and wide(mapped).tolist() == [[1, 0, 1, 1], [1, 1, 0, 1]]
    assert wide(jnp.stack([mine[0][0], mine[0][0]], 1)).tolist() == np.stack([parts[0][0]] * 2, 1).tolist()


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_of_zeros_nothing_is_left(trim, axis):
    same(lambda jnp: jnp.trim_zeros(np.zeros((3, 4), np.float32), trim, axis))


def test_the_shape_of_reshape_may_be_any_collection():
    same(lambda jnp: jnp.asarray(VALUES["v"]).reshape({5}))
    same(lambda jnp: jnp.asarray(VALUES["x"]).reshape(iter((2, 6))))


@pytest.mark.parametrize("args", [(2,), ((2, 2),), ((-1, 2),), ((-1, -1),), ((2, 2), "F")])
def test_numpy_arrays_are_reshaped_with_the_errors_of_numpy(args):
    same(
        lambda jax, jnp: (ended(lambda: jnp.reshape(np.ones(3), *args)), ended(lambda: jnp.reshape(jnp.ones(3), *args)))
    )


@pytest.mark.oracle
@pytest.mark.parametrize(
    "function",
    [
        lambda jnp, x: jnp.diag(x),
        lambda jnp, x: jnp.diag(x, 1),
        lambda jnp, x: jnp.diagflat(x),
        lambda jnp, x: jnp.insert(x, 1, 1.0),
        lambda jnp, x: jnp.insert(x, 1, x[:1]),
    ],
)
def test_weak_arrays_stay_weak(function):
    def weak(jax, jnp):
        found = []
        for x in (jnp.broadcast_to(jnp.asarray(0.75), (3,)), jnp.arange(3.0), jnp.broadcast_to(jnp.asarray(2), (3,))):
            f = lambda x: function(jnp, x)  # noqa: E731
            found += [(r.dtype.name, r.weak_type) for r in (f(x), jax.jit(f)(x), jax.vmap(f)(jnp.stack([x, x])))]
        return found

    same(weak)
