"""Functions of lax, scipy, random and linalg by the form of an argument: dtype and shape, or the class of the error."""

import importlib

import numpy as np
import pytest
from compare import ended, same, wide_numbers

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
    fft.idct(h) | fft.dct(h) | fft.idctn(h) | fft.idct(m) | fft.dct([1, 2]) | fft.dct(None) | fft.dct(m, 2, -1) | fft.dct(k, axis=3)
    fft.dctn(m, s=3, axes=(0, 1)) | fft.dctn(m, s=(3,), axes=(0, 1)) | fft.dctn(m, s=np.int8(3)) | fft.dctn(m, axes=np.int8(1))
    fft.dctn(m, s=iter((3, 4))) | fft.dctn(m, axes=(0, 0)) | fft.idctn(m, s=(3, 4), axes=0) | fft.dct(m.astype('float8_e5m2'), norm='ortho')
    jnp.fft.ihfft([1, 2]) | jnp.fft.ihfft(None) | image.resize(m, iter((4, 3)), 'linear') | image.resize(m, np.int8(4), 'linear')
    image.scale_and_translate(m, (4, 4), (0, 1), [1, 1, 1], v, 'linear') | rotation.from_quat(q).mean(jnp.array([1, 2j])).quat
    rotation.from_quat(q).mean(jnp.ones(2, 'int4')).quat | random.orthogonal(k, jnp.int32(2)) | random.ball(k, np.array(2)) | random.key(wrapped(jnp.int32(3)))
    random.rademacher(k, (2,), bool) | random.double_sided_maxwell(k, v, v, (2,), 'bfloat16') | random.double_sided_maxwell(k, 0.5, 1 + 2j)
    random.uniform(k, (), minval=v[:1]) | lax.broadcast_to_rank(m, 1) | jax.nn.initializers.zeros(k, (2,), k.dtype) | sp.factorial(w)
    sp.bessel_jn([0.5], v=2) | sl.hadamard(np.int8(4)) | st.mode(m[:, :0], 0) | st.mode(m[:, :0], 1) | st.multinomial.logpmf(wrapped(i), 1, v)
    signal.welch(x, 1.0, 'hann', jnp.int32(4), 2.0) | signal.istft(c[:, None], 1.0, 'hann', 2, 1.0) | signal.csd(x[:2], x[:5], nperseg=4)
    sparse.grad(lambda a: a.sum(), np.int8(0))(m) | sparse.grad(lambda a: a.sum(), 0.5)(m) | sparse.todense(w)
    sparse.bcoo_dot_general(b, m.astype('int4'), dimension_numbers=dn) | sparse.bcoo_dot_general(b, m.astype('float8_e5m2'), dimension_numbers=dn)
    sparse.bcoo_dot_general_sampled(m, m.astype('int4'), i[None], dimension_numbers=dn) | sparse.sparsify(jnp.multiply)(b, j).data
    checkify.check(True, 3, s) | checkify.check(True, '{} {}', s) | checkify.check(True, '{}', np.int8(1)) | checkify.check(j, '')
    kde(w).dataset | kde(m, jnp.float32(0.5)).covariance | kde(m, v).covariance
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
    return str([(str(x.dtype), getattr(x, "weak_type", None), x.shape) for x in jax.tree.leaves(result)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wide", [False, True])
def test_other_modules_take_arguments_of_every_form_as_jax_does(wide):
    def program(jax, jnp, lax, sparse, transform, image):
        m = jnp.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
        names = dict(
            jnp=jnp, lax=lax, np=np, sp=jax.scipy.special, st=jax.scipy.stats, random=jax.random, linalg=jnp.linalg,
            sl=jax.scipy.linalg, fft=jax.scipy.fft, m=m, v=m[0] / 8, s=m[0, 0], c=m[0] + 1j, h=m[0].astype(jnp.bfloat16), j=HasArray(m), i=jnp.arange(2),
            w=jnp.broadcast_to(jnp.asarray(0.5), (2, 2)), k=jax.random.key(0), jax=jax, wrapped=HasArray, signal=jax.scipy.signal,
            rotation=transform.Rotation, q=jnp.eye(4)[:2], x=jnp.arange(16.0), sparse=sparse, checkify=importlib.import_module(f"{jax.__name__}.experimental.checkify"), image=image,
            b=sparse.BCOO.fromdense(m), dn=(((1,), (0,)), ((), ())), kde=jax.scipy.stats.gaussian_kde,
        )  # fmt: skip
        texts = filter(None, map(str.strip, CALLS.replace("\n", "|").split("|")))
        return "\n".join(f"{text}: {outcome(jax, text, dict(names))}" for text in texts)

    with wide_numbers(wide):
        assert "ValueError" in same(program)


def test_an_array_is_stacked_by_the_operations_of_jax():
    def program(jax, jnp, lax):
        return "\n".join(str(jax.make_jaxpr(f)(jnp.ones((2, 3)))) for f in (lax.stack, lambda x: lax.concatenate(x, 0)))

    assert "squeeze" in same(program)


def test_references_are_no_arrays():
    def program(jax, jnp, lax):
        x = jax.new_ref(jnp.ones(2))
        calls = [
            jnp.sin, jnp.sum, jnp.sort, jnp.fft.fft, jax.nn.softmax, lambda x: jnp.add(x, 1), lambda x: jnp.reshape(x, (2, 1)),
            lambda x: jax.ops.segment_sum(x, jnp.arange(2), 2), jax.scipy.special.gamma, jax.scipy.stats.norm.pdf, jax.scipy.fft.dct,
        ]  # fmt: skip
        return [ended(lambda call=call: call(x)) for call in calls]

    assert set(same(program)) == {"raised TypeError []"}


def test_estimates_and_transforms_of_integers_and_narrow_floats_are_those_of_floats():
    def program(jax, jnp):
        kde, n = jax.scipy.stats.gaussian_kde(jnp.array([1, 2, 4])), jnp.array([[1.0, 2.0, 3.0]], jnp.bfloat16)
        return kde(jnp.array([1.0, 2.5])), jax.scipy.fft.dct(n, norm="ortho")

    same(program, rtol=1e-5, why="sums in another order")
