"""Functions of lax, scipy, random and linalg by the form of an argument: dtype and shape, or the class of the error."""

import numpy as np
import pytest
from compare import same, wide_numbers

pytestmark = pytest.mark.oracle

CALLS = """
    lax.stack(m) | lax.stack(m, 1) | lax.stack(iter([v, v])) | lax.stack(s) | lax.concatenate(m, 0) | lax.concatenate(s, 0)
    lax.concatenate([v, v], 'abc') | lax.concatenate([v, v], s)
    lax.broadcast(v, np.array([0])) | lax.broadcast(v, np.array([2, 3])) | lax.broadcast(v, None) | lax.broadcast(v, 3)
    lax.expand_dims(v, np.array([0])) | lax.expand_dims(v, np.array([0, 1])) | lax.expand_dims(v, None) | lax.expand_dims(v, 0)
    lax.reshape(v, 2) | lax.reshape(m, 4) | lax.empty(3, 'float32') | lax.rng_bit_generator(jnp.zeros(4, 'uint32'), 3)
    lax.dynamic_slice(v, (jnp.int4(1),), (1,)) | lax.dynamic_slice(v, jnp.array([1], 'uint4'), (1,))
    lax.dynamic_update_slice(v, v[:1], (jnp.int4(1),)) | lax.dynamic_index_in_dim(v, jnp.uint4(1))
    lax.iota(None, 3) | lax.broadcasted_iota(None, (3,), 0) | lax.bitcast_convert_type(v, None)
    sp.entr(c) | sp.exp1(c) | sp.expi(c) | sp.expn(2, c) | sp.kl_div(c, v) | sp.rel_entr(v, c) | sp.poch(v, c)
    sp.betainc(v, v, c) | sp.polygamma(1, c) | sp.expi(h) | sp.exp1(h) | sp.expn(2, h) | sp.wofz(j) | sp.entr(v)
    st.uniform.ppf(c) | st.expon.ppf(c) | st.pareto.ppf(c, 2.0) | st.uniform.ppf(v, c) | st.norm.ppf(v) | st.norm.isf(v, 1)
    jnp.digitize(c, c) | jnp.digitize(v, c) | random.geometric(k, 1) | random.geometric(k, jnp.array([1, 1]))
    random.geometric(k, v) | linalg.svdvals(j) | linalg.trace(j) | linalg.diagonal(j) | linalg.matrix_norm(j)
    linalg.lstsq(j, v) | sl.leslie(v, jnp.array([2])) | sl.leslie(c, v[:1]) | sl.leslie(jnp.array([1, 2]), v[:1])
    linalg.pinv(w) | linalg.pinv(w, hermitian=True) | sp.factorial(3) | st.poisson.logpmf(i, 0.5)
    st.poisson.pmf(2, 0.5) | st.binom.logpmf(i, 3, 0.5) | st.binom.pmf(2, 3, 0.5) | st.nbinom.logpmf(i, 3, 0.5)
    st.bernoulli.logpmf(1, 0.5) | st.geom.logpmf(i, 0.5) | st.betabinom.logpmf(i, 3, 0.5, 0.5) | st.norm.logpdf(w) | st.t.logpdf(w, 2)
    fft.idct(h) | fft.dct(h) | fft.idctn(h) | fft.idct(m) | fft.dct(v, n=5) | fft.dct(j)
    fft.dct(0.5) | fft.dct(None) | fft.dct([1.0, 2.0]) | fft.dctn(m, s=3) | fft.dctn(m, s=[3, 4]) | fft.dctn(m, s=[3])
    fft.dctn(m, axes=0) | fft.dctn(m, axes=[0, 0]) | fft.dctn(m, axes=np.int64(1)) | fft.dctn(m, s=[3, 4, 5]) | fft.dct(i)
    jnp.fft.ihfft([1.0, 2.0]) | jnp.fft.ihfft(j) | jnp.fft.ihfft(None) | random.rademacher(k, (3,), 'float32')
    random.double_sided_maxwell(k, 0.0, 1.0, (3,)) | random.double_sided_maxwell(k, v, w[0]) | random.key(HasArray(i[0]))
    st.mode(jnp.zeros((0, 3))) | st.mode(jnp.zeros((3, 0))) | st.multinomial.logpmf(HasArray(i), 1, v * 8 / 5)
    st.gaussian_kde(i).dataset | st.gaussian_kde(v, s).factor | st.gaussian_kde(v, np.float32(1)).factor
    jax.image.resize(m, [3, 3], 'linear') | jax.image.resize(m, np.array([3, 3]), 'linear') | jax.image.resize(m, 3, 'linear')
    jax.image.scale_and_translate(m, (3, 3), (0, 1), 1.0, v, 'linear') | sp.bessel_jn(j, v=1) | sp.bessel_jn([1.0], v=1)
    signal.welch(m.ravel(), nperseg=np.int64(2)) | signal.welch(m.ravel(), nperseg=jnp.asarray(2)) | signal.welch(v, nperseg=2.0)
    lax.broadcast_to_rank(m, 1) | lax.broadcast_to_rank(v, 2) | sl.hadamard(np.int64(4)) | jax.nn.initializers.zeros(k, (2,), k.dtype)
"""


class HasArray:
    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


def outcome(jax, text, names) -> str:
    try:
        result = eval(text, names)
    except Exception as error:
        return "TypeError" if isinstance(error, TypeError) else type(error).__name__
    return str([(str(x.dtype), getattr(x, "weak_type", False), x.shape) for x in jax.tree.leaves(result)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wide", [False, True])
def test_other_modules_take_arguments_of_every_form_as_jax_does(wide):
    def program(jax, jnp, lax):
        m = jnp.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
        names = dict(
            jnp=jnp, lax=lax, np=np, sp=jax.scipy.special, st=jax.scipy.stats, random=jax.random, linalg=jnp.linalg,
            sl=jax.scipy.linalg, fft=jax.scipy.fft, signal=jax.scipy.signal, jax=jax, HasArray=HasArray, m=m, v=m[0] / 8, s=m[0, 0], c=m[0] + 1j, h=m[0].astype(jnp.bfloat16), j=HasArray(m), i=jnp.arange(2),
            w=jnp.broadcast_to(jnp.asarray(0.5), (2, 2)), k=jax.random.key(0),
        )  # fmt: skip
        texts = filter(None, map(str.strip, CALLS.replace("\n", "|").split("|")))
        return "\n".join(f"{text}: {outcome(jax, text, dict(names))}" for text in texts)

    with wide_numbers(wide):
        assert "ValueError" in same(program)


def test_an_array_is_stacked_by_the_operations_of_jax():
    def program(jax, jnp, lax):
        return "\n".join(str(jax.make_jaxpr(f)(jnp.ones((2, 3)))) for f in (lax.stack, lambda x: lax.concatenate(x, 0)))

    assert "squeeze" in same(program)
