"""Axes that are out of range, or sequences where one axis is expected: the result's shape or the class of the error."""

import pytest
from compare import ended, same, same_refusal

pytestmark = pytest.mark.oracle

CALLS = """
    jnp.sum(x, a) | jnp.mean(x, a) | jnp.max(x, a) | jnp.argmax(x, a) | jnp.prod(x, a) | jnp.var(x, a) | jnp.cumsum(x, a)
    jnp.average(x, a) | jnp.median(x, a) | jnp.ptp(x, a) | jnp.sort(x, a) | jnp.argsort(x, a) | jnp.flip(x, a)
    jnp.split(x, 1, a) | jnp.array_split(x, 1, a) | jnp.squeeze(x, a) | jnp.expand_dims(x, a) | jnp.stack([x, x], a)
    jnp.concatenate([x, x], a) | jnp.take(x, 0, a) | jnp.delete(x, 0, a) | jnp.insert(x, 0, 1, a) | jnp.diff(x, 1, a)
    jnp.roll(x, 1, a) | jnp.repeat(x, 1, a) | jnp.moveaxis(x, a, 0) | jnp.swapaxes(x, a, 0) | jnp.rollaxis(x, a)
    jnp.append(x, x, a) | jnp.quantile(x, 0.5, a)
    jnp.linalg.norm(x, axis=a) | jnp.fft.fft(x, axis=a) | jnp.unique(x, axis=a, size=1) | jnp.nansum(x, a)
    jnp.count_nonzero(x, a) | jnp.any(x, a) | jnp.trapezoid(x, axis=a) | jnp.packbits(x > 0, a) | jnp.unstack(x, axis=a)
    lax.cumsum(x, a) | lax.argmax(x, a, 'int32') | lax.sort(x, dimension=a) | lax.concatenate([x, x], a)
    lax.slice_in_dim(x, 0, 1, axis=a) | lax.dynamic_slice_in_dim(x, 0, 1, a) | lax.dynamic_index_in_dim(x, 0, a)
    lax.dynamic_update_slice_in_dim(x, x, 0, a) | lax.dynamic_update_index_in_dim(x, x, 0, a) | lax.split(x, (1,), a)
    lax.reduce_sum(x, (a,)) | lax.expand_dims(x, (a,)) | lax.squeeze(x, (a,)) | lax.index_in_dim(x, 0, a)
    jax.nn.softmax(x, a) | jax.nn.log_softmax(x, a) | jax.nn.logsumexp(x, a) | jax.nn.one_hot(0, 3, axis=a)
    jax.nn.glu(x, a) | jax.nn.standardize(x, a)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axis", [2, -3, 1, 7, -7])
def test_axes_out_of_range_end_as_in_jax(axis):
    def program(jax, jnp, lax):
        found = []
        for x in (jnp.ones((2, 3)), jnp.ones(3), jnp.float32(2)):
            for text in filter(None, map(str.strip, CALLS.replace("\n", "|").split("|"))):
                try:
                    result = eval(text, dict(jax=jax, jnp=jnp, lax=lax, x=x, a=axis))
                    end = str([leaf.shape for leaf in jax.tree.leaves(result)])
                except Exception as error:
                    end = type(error).__name__
                found.append(f"{text} of {x.shape}: {end}")
        return repr(found)

    assert "IndexError" in same(program)


def test_samples_of_a_range_need_an_axis_that_exists():
    for axis in (2, 7, -7):
        same_refusal(lambda jnp: lambda: jnp.linspace(0.0, jnp.ones(2), 3, axis=axis))  # noqa: B023


TRACED = """
    jnp.sum(x, a) | jnp.prod(x, a) | jnp.mean(x, a) | jnp.std(x, a) | jnp.max(x, a) | jnp.any(x, a) | jnp.ptp(x, a)
    jnp.median(x, a) | jnp.nansum(x, a) | jnp.flip(x, a) | jnp.squeeze(x, a) | jnp.expand_dims(x, a) | jnp.average(x, a)
    jnp.roll(x, 1, a) | jnp.moveaxis(x, a, 0) | jnp.linalg.norm(x, axis=a) | jax.nn.softmax(x, a) | jnp.transpose(x, a)
    jnp.quantile(x, 0.5, axis=a) | jnp.fft.fftn(x, axes=a) | jnp.count_nonzero(x, a) | jnp.nanmean(x, a) | jnp.amax(x, a)
"""
TRACED_ONE = "jnp.argmax(x, a) | jnp.repeat(x, 2, axis=a) | jnp.insert(x, 0, 1, axis=a) | jnp.linspace(x, x, 2, axis=a)"


@pytest.mark.parametrize("axis", ["one", "(one, two)", "[one, two]", "jnp.array([0, 1])"])
def test_traced_axes_raise_what_they_raise_in_jax(axis):
    table = f"{TRACED} | {TRACED_ONE}" if "two" not in axis else TRACED
    texts = [text.strip() for text in table.replace("\n", "|").split("|") if text.strip()]

    def program(jax, jnp):
        x = jnp.ones((2, 3))

        def end_of(text):
            def traced(one, two):
                return eval(text, dict(jax=jax, jnp=jnp, x=x, a=eval(axis, dict(one=one, two=two, jnp=jnp))))

            return ended(lambda: jax.jit(traced)(0, 1))

        return {text: end_of(text) for text in texts}

    assert "returned" not in same(program).values()
