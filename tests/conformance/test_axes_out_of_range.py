"""Axes that are out of range, or sequences where one axis is expected: the result's shape or the class of the error."""

import pytest
from compare import ended, same, same_refusal
from given import given

pytestmark = pytest.mark.oracle

CALLS = [
    lambda jnp, x, a: jnp.sum(x, a),
    lambda jnp, x, a: jnp.mean(x, a),
    lambda jnp, x, a: jnp.max(x, a),
    lambda jnp, x, a: jnp.argmax(x, a),
    lambda jnp, x, a: jnp.prod(x, a),
    lambda jnp, x, a: jnp.var(x, a),
    lambda jnp, x, a: jnp.cumsum(x, a),
    lambda jnp, x, a: jnp.average(x, a),
    lambda jnp, x, a: jnp.median(x, a),
    lambda jnp, x, a: jnp.ptp(x, a),
    lambda jnp, x, a: jnp.sort(x, a),
    lambda jnp, x, a: jnp.argsort(x, a),
    lambda jnp, x, a: jnp.flip(x, a),
    lambda jnp, x, a: jnp.split(x, 1, a),
    lambda jnp, x, a: jnp.array_split(x, 1, a),
    lambda jnp, x, a: jnp.squeeze(x, a),
    lambda jnp, x, a: jnp.expand_dims(x, a),
    lambda jnp, x, a: jnp.stack([x, x], a),
    lambda jnp, x, a: jnp.concatenate([x, x], a),
    lambda jnp, x, a: jnp.take(x, 0, a),
    lambda jnp, x, a: jnp.delete(x, 0, a),
    lambda jnp, x, a: jnp.insert(x, 0, 1, a),
    lambda jnp, x, a: jnp.diff(x, 1, a),
    lambda jnp, x, a: jnp.roll(x, 1, a),
    lambda jnp, x, a: jnp.repeat(x, 1, a),
    lambda jnp, x, a: jnp.moveaxis(x, a, 0),
    lambda jnp, x, a: jnp.swapaxes(x, a, 0),
    lambda jnp, x, a: jnp.rollaxis(x, a),
    lambda jnp, x, a: jnp.append(x, x, a),
    lambda jnp, x, a: jnp.quantile(x, 0.5, a),
    lambda jnp, x, a: jnp.linalg.norm(x, axis=a),
    lambda jnp, x, a: jnp.fft.fft(x, axis=a),
    lambda jnp, x, a: jnp.unique(x, axis=a, size=1),
    lambda jnp, x, a: jnp.nansum(x, a),
    lambda jnp, x, a: jnp.count_nonzero(x, a),
    lambda jnp, x, a: jnp.any(x, a),
    lambda jnp, x, a: jnp.trapezoid(x, axis=a),
    lambda jnp, x, a: jnp.packbits(x > 0, a),
    lambda jnp, x, a: jnp.unstack(x, axis=a),
    lambda lax, x, a: lax.cumsum(x, a),
    lambda lax, x, a: lax.argmax(x, a, "int32"),
    lambda lax, x, a: lax.sort(x, dimension=a),
    lambda lax, x, a: lax.concatenate([x, x], a),
    lambda lax, x, a: lax.slice_in_dim(x, 0, 1, axis=a),
    lambda lax, x, a: lax.dynamic_slice_in_dim(x, 0, 1, a),
    lambda lax, x, a: lax.dynamic_index_in_dim(x, 0, a),
    lambda lax, x, a: lax.dynamic_update_slice_in_dim(x, x, 0, a),
    lambda lax, x, a: lax.dynamic_update_index_in_dim(x, x, 0, a),
    lambda lax, x, a: lax.split(x, (1,), a),
    lambda lax, x, a: lax.reduce_sum(x, (a,)),
    lambda lax, x, a: lax.expand_dims(x, (a,)),
    lambda lax, x, a: lax.squeeze(x, (a,)),
    lambda lax, x, a: lax.index_in_dim(x, 0, a),
    lambda jax, x, a: jax.nn.softmax(x, a),
    lambda jax, x, a: jax.nn.log_softmax(x, a),
    lambda jax, x, a: jax.nn.logsumexp(x, a),
    lambda jax, a: jax.nn.one_hot(0, 3, axis=a),
    lambda jax, x, a: jax.nn.glu(x, a),
    lambda jax, x, a: jax.nn.standardize(x, a),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", [2, -3, 1, 7, -7])
def test_axes_out_of_range_end_as_in_jax(axis):
    def program(jax, jnp, lax):
        found = []
        for x in (jnp.ones((2, 3)), jnp.ones(3), jnp.float32(2)):
            for number, call in enumerate(CALLS):
                try:
                    result = given(call, dict(jax=jax, jnp=jnp, lax=lax, x=x, a=axis))
                    end = str([leaf.shape for leaf in jax.tree.leaves(result)])
                except Exception as error:
                    end = type(error).__name__
                found.append(f"{number} of {x.shape}: {end}")
        return repr(found)

    assert "IndexError" in same(program)


def test_samples_of_a_range_need_an_axis_that_exists():
    for axis in (2, 7, -7):
        same_refusal(lambda jnp: lambda: jnp.linspace(0.0, jnp.ones(2), 3, axis=axis))  # noqa: B023


TRACED = [
    lambda jnp, x, a: jnp.sum(x, a),
    lambda jnp, x, a: jnp.prod(x, a),
    lambda jnp, x, a: jnp.mean(x, a),
    lambda jnp, x, a: jnp.std(x, a),
    lambda jnp, x, a: jnp.max(x, a),
    lambda jnp, x, a: jnp.any(x, a),
    lambda jnp, x, a: jnp.ptp(x, a),
    lambda jnp, x, a: jnp.median(x, a),
    lambda jnp, x, a: jnp.nansum(x, a),
    lambda jnp, x, a: jnp.flip(x, a),
    lambda jnp, x, a: jnp.squeeze(x, a),
    lambda jnp, x, a: jnp.expand_dims(x, a),
    lambda jnp, x, a: jnp.average(x, a),
    lambda jnp, x, a: jnp.roll(x, 1, a),
    lambda jnp, x, a: jnp.moveaxis(x, a, 0),
    lambda jnp, x, a: jnp.linalg.norm(x, axis=a),
    lambda jax, x, a: jax.nn.softmax(x, a),
    lambda jnp, x, a: jnp.transpose(x, a),
    lambda jnp, x, a: jnp.quantile(x, 0.5, axis=a),
    lambda jnp, x, a: jnp.fft.fftn(x, axes=a),
    lambda jnp, x, a: jnp.count_nonzero(x, a),
    lambda jnp, x, a: jnp.nanmean(x, a),
    lambda jnp, x, a: jnp.amax(x, a),
]
TRACED_ONE = [
    lambda jnp, x, a: jnp.argmax(x, a),
    lambda jnp, x, a: jnp.repeat(x, 2, axis=a),
    lambda jnp, x, a: jnp.insert(x, 0, 1, axis=a),
    lambda jnp, x, a: jnp.linspace(x, x, 2, axis=a),
]


AXES = {
    "one": lambda one: one,
    "a tuple": lambda one, two: (one, two),
    "a list": lambda one, two: [one, two],
    "an array": lambda jnp: jnp.array([0, 1]),
}


@pytest.mark.parametrize("axis", AXES)
def test_traced_axes_raise_what_they_raise_in_jax(axis):
    calls = TRACED if axis in ("a tuple", "a list") else [*TRACED, *TRACED_ONE]

    def program(jax, jnp):
        x = jnp.ones((2, 3))

        def end_of(call):
            def traced(one, two):
                return given(call, dict(jax=jax, jnp=jnp, x=x, a=given(AXES[axis], dict(one=one, two=two, jnp=jnp))))

            return ended(lambda: jax.jit(traced)(0, 1))

        return {number: end_of(call) for number, call in enumerate(calls)}

    assert "returned" not in same(program).values()
