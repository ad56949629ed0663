"""Phrases that programs match on in errors: each must occur in jax's message and in ours, with the same class."""

import numpy as np
import pytest
from compare import ours, run_on, same_error, theirs

pytestmark = pytest.mark.oracle


def gather(jax, shape, indices, sizes, *numbers):
    lax = jax.lax
    call = lambda x, i: lax.gather(x, i, lax.GatherDimensionNumbers(*numbers), sizes)  # noqa: E731
    return jax.eval_shape(call, jax.ShapeDtypeStruct(shape, "float32"), jax.ShapeDtypeStruct(indices, "int32"))


def scatter(jax, shape, indices, updates, *numbers):
    lax = jax.lax
    call = lambda x, i, y: lax.scatter(x, i, y, lax.ScatterDimensionNumbers(*numbers))  # noqa: E731
    types = (shape, "float32"), (indices, "int32"), (updates, "float32")
    return jax.eval_shape(call, *[jax.ShapeDtypeStruct(*t) for t in types])


FIVE, PLACES = (10, 9, 8, 7, 6), (5, 4, 3, 2, 5)
WIDE, AT, UPDATES = (50, 49, 48, 47, 46), (10, 9, 8, 7, 5), (10, 9, 8, 7, 3, 2, 4)
ALL = (0, 1, 2, 3, 4)
PHRASES = {
    "offset_dims in gather op must be sorted": lambda jax: gather(jax, (4, 5), (2, 2), (4, 5), (2, 1), (), (0, 1)),
    "offset_dims in gather op must not repeat": lambda jax: gather(jax, (4, 5), (2, 2), (4, 5), (1, 1), (), (0, 1)),
    "Offset dimension 1 in gather op is out of bounds": lambda jax: gather(
        jax, (4, 5), (2, 2), (4, 5), (1, 7), (), (0, 1)
    ),
    "in a gather op must either be a offset dimension or explicitly collapsed": lambda jax: gather(
        jax, FIVE, PLACES, FIVE, (4, 5, 6, 7, 8), (4,), ALL
    ),
    "Invalid collapsed_slice_dims set in gather op; valid range is": lambda jax: gather(
        jax, FIVE, PLACES, FIVE, (4, 5, 6, 7, 8), (0, 1, 2, 3, 19), ALL
    ),
    "Gather op has 4 elements in start_index_map and the bound": lambda jax: gather(
        jax, FIVE, PLACES, FIVE, (4, 5, 6, 7, 8), (), (0, 1, 2, 3)
    ),
    "Invalid start_index_map": lambda jax: gather(jax, FIVE, PLACES, FIVE, (4, 5, 6, 7, 8), (), (0, 1, 2, 3, 7)),
    "Slice size at index 3 in gather op is out of range": lambda jax: gather(
        jax, FIVE, PLACES, (10, 9, 8, 100, 6), (4, 5, 6, 7), (2,), ALL
    ),
    "Gather op must have one slice size for every input dimension": lambda jax: gather(
        jax, FIVE, PLACES, FIVE[:4], (4, 5, 6, 7), (), ALL
    ),
    "Gather op can only collapse slice dims with bound 1": lambda jax: gather(
        jax, FIVE, PLACES, FIVE, (4, 5, 6, 7), (1,), ALL
    ),
    "Gather op can only have operand batching dims with bound 0/1": lambda jax: gather(
        jax, FIVE, (9, 4, 3, 2, 4), FIVE, (4, 5, 6, 7), (), (0, 2, 3, 4), (1,), (0,)
    ),
    "Gather op cannot have the index vector dimension as a batching dimension": lambda jax: gather(
        jax, FIVE, PLACES, FIVE, (4, 5, 6), (0, 1), ALL, (), (0, 4)
    ),
    "Gather op requires equal numbers of operand_batching_dims and start_indices_batching_dims": lambda jax: gather(
        jax, FIVE, (5, 4, 3, 2, 4), FIVE, (4, 5, 6), (1, 2), (1, 2, 3, 4), (0,), (0, 1)
    ),
    "Bounds of the window dimensions": lambda jax: scatter(jax, (64, 48), (32, 1), (65, 32), (0,), (1,), (1,)),
    "Bounds of the scatter dimensions": lambda jax: scatter(jax, (64, 48), (32, 1), (64, 31), (1,), (0,), (1,)),
    "Updates tensor must be of rank 7; got 8.": lambda jax: scatter(
        jax, WIDE, AT, (*UPDATES, 1), (4, 5, 6), (1, 2), ALL
    ),
    "update_window_dims in scatter op must be sorted": lambda jax: scatter(
        jax, WIDE, AT, UPDATES, (4, 6, 5), (1, 2), ALL
    ),
    "Invalid inserted_window_dims set in scatter op": lambda jax: scatter(
        jax, WIDE, AT, UPDATES, (4, 5, 6), (1, 5), ALL
    ),
    "Scatter op has 4 elements in scatter_dims_to_operand_dims": lambda jax: scatter(
        jax, WIDE, AT, UPDATES, (4, 5, 6), (1, 2), (0, 1, 2, 3)
    ),
    "Invalid scatter_dims_to_operand_dims mapping": lambda jax: scatter(
        jax, WIDE, AT, UPDATES, (4, 5, 6), (1, 2), (0, 1, 2, 3, 10)
    ),
    "Scatter op has window of size 4; doesn't match operand of rank 5.": lambda jax: scatter(
        jax, WIDE, (10, 9, 8, 7, 4), UPDATES, (4, 5, 6), (1,), (0, 1, 2, 3)
    ),
    "inserted_window_dims and operand_batching_dims in scatter op must be disjoint": lambda jax: scatter(
        jax, (*WIDE, 45), AT, UPDATES, (4, 5, 6), (0, 1), (0, 1, 4), (1, 2)
    ),
    "broadcast_in_dim broadcast_dimensions must not contain duplicates": lambda lax: lax.broadcast_in_dim(
        np.ones((3, 3)), (3, 3), (0, 0)
    ),
    "target broadcast shape must have equal or higher rank": lambda lax: lax.broadcast_in_dim(
        np.ones((3, 3)), (3,), (0, 1)
    ),
    "index arguments to dynamic_slice must be integers of the same type": lambda lax: lax.dynamic_slice(
        np.ones((3, 4), np.float32), (np.int32(1), np.int16(2)), (2, 2)
    ),
    "interior padding in padding_config must be nonnegative": lambda lax: lax.pad(np.zeros(2), 0.0, [(0, 1, -1)]),
    "Dimension size after padding is not at least 0": lambda lax: lax.pad(np.zeros(2), 0.0, [(-3, 0, 0)]),
    "Sizes passed to split must be nonnegative": lambda lax: lax.split(np.arange(5), [-1]),
    "Sum of sizes 6 must be equal": lambda lax: lax.split(np.arange(5), [6]),
    "require non-empty reduced dimension": lambda lax: lax.argmax(np.ones((0, 2)), 0, np.int32),
    "Only non-negative indices are allowed": lambda lax: lax.broadcast_shapes((-1,)),
    "Shapes must be 1D sequences": lambda lax: lax.broadcast_shapes("hello"),
    "when you meant `jax.numpy.zeros((2, 3))`": lambda jnp: jnp.zeros(2, 3),
    "when you meant `jax.numpy.ones((2, 3))`": lambda jnp: jnp.ones(2, 3),
    "slice start of jnp.r_": lambda jax, jnp: jax.jit(lambda a: jnp.r_[a:3])(0),
    "slice stop of jnp.mgrid": lambda jax, jnp: jax.jit(lambda a: jnp.mgrid[:a])(3),
    "use `arr[array(seq)]`": lambda jnp: jnp.ones(3)[[0, 1]],
    "use `arr[tuple(seq)]`": lambda jnp: jnp.ones(3)[[0, None]],
    "excluded={-1} contains negative numbers": lambda jnp: jnp.vectorize(jnp.add, excluded={-1}),
    "repeated axis": lambda jnp: jnp.size(np.ones((2, 3)), (0, -2)),
    "float0s do not support any operations by design": lambda jax, jnp: jax.lax.add(
        jax.grad(lambda x: x + 0.0, allow_int=True)(1), jnp.zeros(())
    ),
    "is not a valid JAX type": lambda jax: jax.grad(lambda x: x)(np.array([1, 2], object)),
    "Output from batched function 'hello' with type <class 'str'> is not a valid JAX type": lambda jax: jax.vmap(
        lambda x: "hello"
    )(np.arange(3)),
    "axis 0 of kwargs['y'] of type int32[2]": lambda jax, jnp: jax.vmap(lambda x, y: x)(
        jnp.array([1], "int32"), y=jnp.array([1, 2], "int32")
    ),
    "had size 1: axis 0 of argument x[0] of type int32[1]": lambda jax, jnp: jax.vmap(lambda x, y: y)(
        [jnp.array([1], "int32")], y=jnp.array([1, 2], "int32")
    ),
    "`jax.typeof(x)": lambda jax, jnp: jax.jit(lambda x: x.sharding)(jnp.ones(2)),
    "a function lowered and compiled for a particular signature. Detected ": lambda jax, jnp: jax.vmap(
        jax.jit(lambda x: x).lower(1.0).compile()
    )(jnp.ones(3)),
    "A ShapeDtypeStruct does not have a value": lambda jax: jax.jit(
        lambda x: (x, jax.ShapeDtypeStruct((8,), np.int32))
    )(np.arange(8)),
    "Pred type must be either boolean or number, got <function": lambda lax: lax.cond(lambda x: x, lambda x: x, abs, 1),
    "Index type must be an integer, got <function": lambda lax: lax.switch(lambda x: x, [lambda x: x, abs], 1),
    "was created on line:": lambda jax, jnp: jax.vmap(lambda n: jnp.zeros(n))(jnp.ones(1)),
    "k must be a scalar integer": lambda jnp: jnp.eye(3, k=np.arange(2)),
}


@pytest.mark.parametrize("phrase", PHRASES)
def test_the_phrase_occurs_in_both_messages(phrase):
    same_error(lambda: run_on(ours(), PHRASES[phrase]), lambda: run_on(theirs(), PHRASES[phrase]), [phrase])


@pytest.mark.parametrize("mode", ["raise", "warn"])
def test_vectorize_reports_different_ranks(mode):
    def program(jax, jnp):
        with jax.numpy_rank_promotion(mode):
            return jnp.vectorize(jnp.add, signature="(),()->()")(np.ones((3, 3)), np.ones(3))

    words = "operands with shapes .* require rank promotion"
    for side in (ours(), theirs()):
        if mode == "raise":
            with pytest.raises(ValueError, match=words):
                run_on(side, program)
        else:
            with pytest.warns(UserWarning, match=words):
                run_on(side, program)


TRACED = {
    "TracerBoolConversionError": lambda jax: jax.jit(lambda x: 1 if x else 2)(True),
    "TracerIntegerConversionError": lambda jax: jax.jit(lambda i: [1, 2][i])(1),
    "TracerArrayConversionError": lambda jax: jax.jit(lambda x: np.sin(x))(1.0),
    "ConcretizationTypeError": lambda jax: jax.jit(lambda x: float(x))(3.0),
    "NonConcreteBooleanIndexError": lambda jax: jax.jit(lambda x: x[x > 0])(np.ones(3)),
}


@pytest.mark.parametrize("name", TRACED)
def test_messages_give_the_page_of_their_class(name):
    for side in (ours(), theirs()):
        with pytest.raises(getattr(side.errors, name)) as caught:
            run_on(side, TRACED[name])
        assert f"https://docs.jax.dev/en/latest/errors.html#jax.errors.{name}" in str(caught.value)
