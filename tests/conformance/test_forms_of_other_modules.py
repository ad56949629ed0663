"""Functions of lax, scipy, random and linalg by the form of an argument: dtype and shape, or the class of the error."""

import importlib

import numpy as np
import pytest
from compare import ended, same, wide_numbers
from given import given

pytestmark = pytest.mark.oracle

CALLS = [
    lambda lax, m: lax.stack(m),
    lambda lax, m: lax.stack(m, 1),
    lambda lax, v: lax.stack(iter([v, v])),
    lambda lax, s: lax.stack(s),
    lambda lax, m: lax.concatenate(m, 0),
    lambda lax, s: lax.concatenate(s, 0),
    lambda lax, v: lax.concatenate([v, v], "abc"),
    lambda lax, v, s: lax.concatenate([v, v], s),
    lambda lax, v: lax.broadcast(v, np.array([0])),
    lambda lax, v: lax.broadcast(v, np.array([2, 3])),
    lambda lax, v: lax.broadcast(v, None),
    lambda lax, v: lax.broadcast(v, 3),
    lambda lax, v: lax.expand_dims(v, np.array([0])),
    lambda lax, v: lax.expand_dims(v, np.array([0, 1])),
    lambda lax, v: lax.expand_dims(v, None),
    lambda lax, v: lax.expand_dims(v, 0),
    lambda lax, v: lax.reshape(v, 2),
    lambda lax, m: lax.reshape(m, 4),
    lambda lax: lax.empty(3, "float32"),
    lambda jnp, lax: lax.rng_bit_generator(jnp.zeros(4, "uint32"), 3),
    lambda jnp, lax, v: lax.dynamic_slice(v, (jnp.int4(1),), (1,)),
    lambda jnp, lax, v: lax.dynamic_slice(v, jnp.array([1], "uint4"), (1,)),
    lambda jnp, lax, v: lax.dynamic_update_slice(v, v[:1], (jnp.int4(1),)),
    lambda jnp, lax, v: lax.dynamic_index_in_dim(v, jnp.uint4(1)),
    lambda lax: lax.iota(None, 3),
    lambda lax: lax.broadcasted_iota(None, (3,), 0),
    lambda lax, v: lax.bitcast_convert_type(v, None),
    lambda sp, c: sp.entr(c),
    lambda sp, c: sp.exp1(c),
    lambda sp, c: sp.expi(c),
    lambda sp, c: sp.expn(2, c),
    lambda sp, v, c: sp.kl_div(c, v),
    lambda sp, v, c: sp.rel_entr(v, c),
    lambda sp, v, c: sp.poch(v, c),
    lambda sp, v, c: sp.betainc(v, v, c),
    lambda sp, c: sp.polygamma(1, c),
    lambda sp, h: sp.expi(h),
    lambda sp, h: sp.exp1(h),
    lambda sp, h: sp.expn(2, h),
    lambda sp, j: sp.wofz(j),
    lambda sp, v: sp.entr(v),
    lambda st, c: st.uniform.ppf(c),
    lambda st, c: st.expon.ppf(c),
    lambda st, c: st.pareto.ppf(c, 2.0),
    lambda st, v, c: st.uniform.ppf(v, c),
    lambda st, v: st.norm.ppf(v),
    lambda st, v: st.norm.isf(v, 1),
    lambda jnp, c: jnp.digitize(c, c),
    lambda jnp, v, c: jnp.digitize(v, c),
    lambda random, k: random.geometric(k, 1),
    lambda jnp, random, k: random.geometric(k, jnp.array([1, 1])),
    lambda random, v, k: random.geometric(k, v),
    lambda linalg, j: linalg.svdvals(j),
    lambda linalg, j: linalg.trace(j),
    lambda linalg, j: linalg.diagonal(j),
    lambda linalg, j: linalg.matrix_norm(j),
    lambda linalg, v, j: linalg.lstsq(j, v),
    lambda jnp, sl, v: sl.leslie(v, jnp.array([2])),
    lambda sl, v, c: sl.leslie(c, v[:1]),
    lambda jnp, sl, v: sl.leslie(jnp.array([1, 2]), v[:1]),
    lambda linalg, w: linalg.pinv(w),
    lambda linalg, w: linalg.pinv(w, hermitian=True),
    lambda sp: sp.factorial(3),
    lambda st, i: st.poisson.logpmf(i, 0.5),
    lambda st: st.poisson.pmf(2, 0.5),
    lambda st, i: st.binom.logpmf(i, 3, 0.5),
    lambda st: st.binom.pmf(2, 3, 0.5),
    lambda st, i: st.nbinom.logpmf(i, 3, 0.5),
    lambda st: st.bernoulli.logpmf(1, 0.5),
    lambda st, i: st.geom.logpmf(i, 0.5),
    lambda st, i: st.betabinom.logpmf(i, 3, 0.5, 0.5),
    lambda st, w: st.norm.logpdf(w),
    lambda st, w: st.t.logpdf(w, 2),
    lambda fft, h: fft.idct(h),
    lambda fft, h: fft.dct(h),
    lambda fft, h: fft.idctn(h),
    lambda fft, m: fft.idct(m),
    lambda fft: fft.dct([1, 2]),
    lambda fft: fft.dct(None),
    lambda fft, m: fft.dct(m, 2, -1),
    lambda fft, k: fft.dct(k, axis=3),
    lambda fft, m: fft.dctn(m, s=3, axes=(0, 1)),
    lambda fft, m: fft.dctn(m, s=(3,), axes=(0, 1)),
    lambda fft, m: fft.dctn(m, s=np.int8(3)),
    lambda fft, m: fft.dctn(m, axes=np.int8(1)),
    lambda fft, m: fft.dctn(m, s=iter((3, 4))),
    lambda fft, m: fft.dctn(m, axes=(0, 0)),
    lambda fft, m: fft.idctn(m, s=(3, 4), axes=0),
    lambda fft, m: fft.dct(m.astype("float8_e5m2"), norm="ortho"),
    lambda jnp: jnp.fft.ihfft([1, 2]),
    lambda jnp: jnp.fft.ihfft(None),
    lambda m, image: image.resize(m, iter((4, 3)), "linear"),
    lambda m, image: image.resize(m, np.int8(4), "linear"),
    lambda m, v, image: image.scale_and_translate(m, (4, 4), (0, 1), [1, 1, 1], v, "linear"),
    lambda jnp, rotation, q: rotation.from_quat(q).mean(jnp.array([1, 2j])).quat,
    lambda jnp, rotation, q: rotation.from_quat(q).mean(jnp.ones(2, "int4")).quat,
    lambda jnp, random, k: random.orthogonal(k, jnp.int32(2)),
    lambda random, k: random.ball(k, np.array(2)),
    lambda jnp, random, wrapped: random.key(wrapped(jnp.int32(3))),
    lambda random, k: random.rademacher(k, (2,), bool),
    lambda random, v, k: random.double_sided_maxwell(k, v, v, (2,), "bfloat16"),
    lambda random, k: random.double_sided_maxwell(k, 0.5, 1 + 2j),
    lambda random, v, k: random.uniform(k, (), minval=v[:1]),
    lambda lax, m: lax.broadcast_to_rank(m, 1),
    lambda k, jax: jax.nn.initializers.zeros(k, (2,), k.dtype),
    lambda sp, w: sp.factorial(w),
    lambda sp: sp.bessel_jn([0.5], v=2),
    lambda sl: sl.hadamard(np.int8(4)),
    lambda st, m: st.mode(m[:, :0], 0),
    lambda st, m: st.mode(m[:, :0], 1),
    lambda st, v, i, wrapped: st.multinomial.logpmf(wrapped(i), 1, v),
    lambda jnp, signal, x: signal.welch(x, 1.0, "hann", jnp.int32(4), 2.0),
    lambda c, signal: signal.istft(c[:, None], 1.0, "hann", 2, 1.0),
    lambda signal, x: signal.csd(x[:2], x[:5], nperseg=4),
    lambda m, sparse: sparse.grad(lambda a: a.sum(), np.int8(0))(m),
    lambda m, sparse: sparse.grad(lambda a: a.sum(), 0.5)(m),
    lambda w, sparse: sparse.todense(w),
    lambda m, sparse, b, dn: sparse.bcoo_dot_general(b, m.astype("int4"), dimension_numbers=dn),
    lambda m, sparse, b, dn: sparse.bcoo_dot_general(b, m.astype("float8_e5m2"), dimension_numbers=dn),
    lambda m, i, sparse, dn: sparse.bcoo_dot_general_sampled(m, m.astype("int4"), i[None], dimension_numbers=dn),
    lambda jnp, j, sparse, b: sparse.sparsify(jnp.multiply)(b, j).data,
    lambda s, checkify: checkify.check(True, 3, s),
    lambda s, checkify: checkify.check(True, "{} {}", s),
    lambda checkify: checkify.check(True, "{}", np.int8(1)),
    lambda j, checkify: checkify.check(j, ""),
    lambda w, kde: kde(w).dataset,
    lambda jnp, m, kde: kde(m, jnp.float32(0.5)).covariance,
    lambda m, v, kde: kde(m, v).covariance,
]


class HasArray:
    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


def outcome(jax, call, names) -> str:
    try:
        result = given(call, names)
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
        return "\n".join(outcome(jax, call, names) for call in CALLS)

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
