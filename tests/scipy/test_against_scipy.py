"""jax.scipy in double precision, against SciPy itself: an oracle that shares no algorithm with jax.

A row is an expression of the operands below and of a module, called `special`, `stats`, …; where SciPy says it in
another way, that follows behind `==`. A group's rows are one program. A row with a larger tolerance than RTOL has the reason.
"""

import importlib
import re

import compare
import numpy as np
import pytest

pytest.importorskip("scipy")

RTOL, ATOL = 2e-13, 1e-15
WAVE = np.sin(np.arange(64) * 0.7) + np.arange(64) / 16
MATRIX = np.array([[4, -1, 0.5, 1], [1, 3, 0, -2], [0.25, 1, 5, 0], [-1, 0.5, 2, 4]])
OPERANDS = {
    "u": np.array([0.01, 0.1, 0.3, 0.5, 0.77, 0.95, 0.999]),  # probabilities
    "p": np.array([1e-3, 0.05, 0.4, 0.9, 1.3, 2.6, 7.5]),
    "q": np.array([0.3, 2.2, 0.7, 1.5, 5.0, 0.05, 12.0]),
    "z": np.array([-7.3, -2.5, -0.6, -1e-3, 0.2, 1.7, 6.1]),
    "w": np.array([-35.0, -12.25, -1.5, 0.0, 3.25, 20.5, 60.0]),
    "b": np.array([12.5, 30.25, 75.0, 150.5]),  # large
    "k": np.array([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0]),  # counts
    "m": np.array([0, 1, -1, 2, -3, 4]),
    "n": np.array([0, 1, 2, 2, 5, 9]),
    "a": np.array([0.1, 0.5, 1.1, 1.9, 2.5, 3.0]),  # angles
    "c": np.array([0.5 + 0.25j, -1.5 - 2j, 3 - 1j, -0.25 + 4j, 8 + 0.5j]),
    "M": MATRIX,
    "D": MATRIX @ MATRIX.T,
    "H": (MATRIX + 1j * MATRIX.T) @ (MATRIX + 1j * MATRIX.T).conj().T,
    "B": MATRIX[:, :2] + 0.5,
    "W": WAVE,
    "V": WAVE[:48].reshape(6, 8),
    "F": np.array([0.25, 1, 0.5, -0.125]),
    "P": np.array([[0.5, 1.25, 3.9, 4.25, 0.75], [1, 2.5, 5.5, 6.75, 3.5]]),
}
SPECIAL = """
logit(u); expit(w); xlogy(p, q); xlog1py(p, q); entr(p); rel_entr(p, q); kl_div(p, q); boxcox(p, q); boxcox1p(p, q)
gammaln(p); gammaln(z); gammaln(b); loggamma(p); loggamma(c); gammasgn(z); gamma(p); gamma(z); gamma(c); factorial(k)
digamma(p); digamma(z); polygamma(1, p); polygamma(3, q); poch(p, q); multigammaln(b, 3); comb(k, 2.0); comb(k, k / 2)
gammainc(p, q); gammainc(b, b + 3); gammaincc(p, q); gammaincc(b, b - 3); betainc(p, q, u); betaln(p, q); beta(p, q)
betaln(b, p[:4]); i0(z); i0e(w); i1(z); i1e(w); bessel_jn(p, v=3) == jv(np.arange(4)[:, None], p)
softmax(w); log_softmax(w); logsumexp(w); logsumexp(z, b=p)
ndtr(z); ndtr(w); ndtri(u); log_ndtr(z); log_ndtr(w); erf(z); erfc(z); erfinv(u); erfcx(z); dawsn(w) == dawsn(w)
wofz(c); zeta(p + 1.5, q); zeta(q + 1.1, 1.0); bernoulli(9); expi(z); expi(w[:3]); expi(w[4:6]); exp1(p); expn(2, p)
expn(3, q); spence(p); sici(z); sici(b); fresnel(z); owens_t(z, p); owens_t(p, z)
hyp1f1(p, q, z); hyp1f1(1.5, 2.5, w); hyp2f1(p[:5], q[:5], 2.3, u[:5] - 0.5); hyp2f1(-3.0, 1.5, 2.25, z[:5])
hyp2f1(1.25, 0.5, 2.25, u); hyp2f1(1.5, 2.5, 2.5, -p); hyp2f1(1.0, 2.0, 4.5, 1.0); hyp2f1(2.0, 3.0, 1.5, u[:5])
hyp2f1(1.0, 2.0, 4.0, u)
sph_harm_y(n, m, a, 2 * a, n_max=9) == sph_harm_y(n, m, a, 2 * a)
lpmn_values(4, 4, u, False) == np.swapaxes(assoc_legendre_p_all(4, 4, u)[0], 0, 1)[:5]
lpmn(4, 4, -u)[1] == np.swapaxes(assoc_legendre_p_all(4, 4, -u, diff_n=1)[1], 0, 1)[:5]
lpmn_values(5, 5, jnp.cos(a), True) == np.swapaxes(sph_legendre_p_all(5, 5, a)[0], 0, 1)[:6]
"""
STATS = """
norm.pdf(z, 0.5, 2.0); norm.logpdf(w); norm.cdf(z); norm.logcdf(w); norm.sf(z); norm.logsf(w); norm.ppf(u); norm.isf(u)
cauchy.pdf(z); cauchy.cdf(z); cauchy.logcdf(z); cauchy.sf(z); cauchy.logsf(z); cauchy.ppf(u, 1.0, 2.0); cauchy.isf(u)
expon.pdf(p, 0.0, 2.0); expon.cdf(p); expon.sf(p); expon.logcdf(p); expon.logsf(p); expon.ppf(u)
laplace.pdf(z); laplace.cdf(z, 0.5, 2.0); logistic.pdf(z); logistic.cdf(z); logistic.sf(w); logistic.ppf(u)
logistic.isf(u); uniform.pdf(u); uniform.cdf(u, 0.1, 2.0); uniform.ppf(u, 1.0, 3.0)
gumbel_l.pdf(z); gumbel_l.cdf(z); gumbel_l.logcdf(z[3:]); gumbel_l.ppf(u); gumbel_l.sf(z[:5]); gumbel_l.logsf(z)
gumbel_r.pdf(z); gumbel_r.cdf(z); gumbel_r.logcdf(z); gumbel_r.ppf(u); gumbel_r.sf(z); gumbel_r.logsf(z)
gamma.pdf(p, q); gamma.logpdf(b, 3.0, 1.0, 2.0); gamma.cdf(p, q); gamma.sf(p, q); gamma.logcdf(p, q); gamma.logsf(p, q)
chi2.pdf(p, q); chi2.cdf(p, q); chi2.sf(p, q); chi2.logcdf(p, q); chi2.logsf(p, q); chi2.logpdf(b, 5.0)
beta.pdf(u, p, q); beta.logpdf(u, q, p); beta.cdf(u, p, q); beta.sf(u, p, q); beta.logcdf(u, p, q)
gennorm.pdf(z, 1.5); gennorm.logpdf(z, 0.5); gennorm.cdf(z, 1.5)
pareto.pdf(p + 1, q); pareto.cdf(p + 1, q); pareto.sf(p + 1, q); pareto.logcdf(p + 1, q); pareto.ppf(u, 2.5)
t.pdf(z, 3.5); t.logpdf(w, q); vonmises.pdf(a, 2.5); vonmises.logpdf(a, 0.5); wrapcauchy.pdf(a, 0.4)
truncnorm.pdf(u, -1.0, 2.0); truncnorm.logcdf(u, -1.0, 2.0); truncnorm.cdf(u, 0.0, 4.0); truncnorm.sf(u, -3.0, 2.0)
bernoulli.pmf(k, 0.3); bernoulli.logpmf(k[:2], u[:2]); bernoulli.cdf(k, 0.3); bernoulli.ppf(u, 0.4)
geom.pmf(k, 0.3); geom.logpmf(k[1:], 0.6); nbinom.pmf(k, 3.0, 0.4); nbinom.logpmf(k, 2.5, 0.7)
binom.pmf(k[:5], 9.0, 0.3); binom.logpmf(k, 25.0, 0.6); poisson.pmf(k, 3.5); poisson.logpmf(k, q); poisson.cdf(k, 2.5)
poisson.entropy(q); betabinom.pmf(k[:5], 9.0, 1.5, 2.5); betabinom.logpmf(k, 25.0, 0.5, 3.0)
multinomial.pmf(n[1:4], 5, u[1:4] / 0.9); multinomial.logpmf(n[:3], 3, u[1:4] / 0.9)
dirichlet.pdf(u[1:4] / 0.9, p[2:5]); dirichlet.logpdf(u[1:4] / 0.9, q[:3])
multivariate_normal.pdf(V[:, :4], F, D); multivariate_normal.logpdf(V[:, :4], F, D)
sem(V, axis=0) == sem(V, axis=0); rankdata(V.round(1)); rankdata(V.round(1), 'min', axis=1)
mode(V.round(0), axis=1).mode == mode(V.round(0), axis=1).mode
gaussian_kde(W)(z); gaussian_kde(V[:2], weights=V[2] + 3, bw_method='silverman')(V[:2, :3])
"""
LINALG = """
cholesky(D); cholesky(H, lower=True); cho_solve((cholesky(D), False), B); solve(M, B); solve(D, B, assume_a='pos')
solve_triangular(M, B); solve_triangular(M, B, trans=1, lower=True, unit_diagonal=True); inv(M); inv(H); det(M); det(H)
lu(M); lu(H); lu(B); qr(M); qr(B, mode='economic'); qr(H); svd(B, compute_uv=False); svd(H, compute_uv=False)
eigh(D, eigvals_only=True); eigh(H, eigvals_only=True); eigh_tridiagonal(W[:9], W[9:17], eigvals_only=True)
expm(M); expm(-2 * M); expm(M * 1e-3); expm(H / 40); expm_frechet(M, D); sqrtm(M); funm(D, jnp.cos) == cosm(D)
solve_sylvester(M, D, H.real); polar(M)[0]; polar(M)[1]; schur(D)[0]; hessenberg(M)
toeplitz(F, W[:3]); hankel(F, W[:4]); circulant(F); companion(F); fiedler(F); fiedler_companion(F); leslie(F, W[:3])
convolution_matrix(F, 5); block_diag(B, F); dft(5); dft(4, 'sqrtn'); hadamard(8); helmert(5); hilbert(6); invhilbert(6)
pascal(6); invpascal(5)
"""
SIGNAL = """
convolve(W, F); convolve(W, F, 'same'); convolve(W, F, 'valid', 'fft'); convolve(V, B); correlate(W, F); correlate(c, F)
correlate(V, B, 'same'); convolve2d(V, B, 'same'); correlate2d(V, B, 'valid'); fftconvolve(V, B, 'same')
fftconvolve(V, V[:, :3], 'full', axes=1); detrend(W); detrend(V, axis=0, type='constant'); detrend(W, bp=20)
stft(W, nperseg=16); stft(W, fs=2.0, window='hamming', nperseg=10, noverlap=3, nfft=12, boundary='even')
csd(W, W[::-1], nperseg=16); welch(W, nperseg=16); welch(W, nperseg=16, average='median', scaling='spectrum')
istft(W.reshape(8, 8) + 1j * W.reshape(8, 8).T)
"""
FFT = """
dct(W); dct(V, axis=0, norm='ortho'); dct(W, n=50); dct(W, n=70, norm='ortho'); idct(W); idct(V, axis=0, norm='ortho')
idct(W, n=41); dctn(V); dctn(V, norm='ortho'); dctn(V, s=(4, 9)); idctn(V); idctn(V, axes=(1,), norm='ortho')
"""
NDIMAGE = """
map_coordinates(V, 2 * P - 3, order=1, cval=-1.5) == map_coordinates(V, 2 * P - 3, None, 1, 'grid-constant', -1.5)
map_coordinates(V, 2 * P - 3, order=1, mode='nearest'); map_coordinates(V, 2 * P - 3, order=1, mode='mirror')
map_coordinates(V, 2 * P - 3, order=1, mode='reflect')
map_coordinates(V, 2 * P - 3, order=1, mode='wrap') == map_coordinates(V, 2 * P - 3, order=1, mode='grid-wrap')
"""
INTERPOLATE = """
RegularGridInterpolator((k[:6], w), V[:, :7])(P.T); RegularGridInterpolator((k[:6], w), V[:, :7], 'nearest')(P.T)
RegularGridInterpolator((k[:6], w), V[:, :7], bounds_error=False)(3 * P.T)
RegularGridInterpolator((k[:6], w), V[:, :7], bounds_error=False, fill_value=None)(9 * P.T)
RegularGridInterpolator((k,), z * 1j)(P[0])
"""
TABLES = {
    "special": SPECIAL, "stats": STATS, "linalg": LINALG, "signal": SIGNAL, "fft": FFT, "ndimage": NDIMAGE,
    "interpolate": INTERPOLATE,
}  # fmt: skip
JITTED = ("special", "stats", "linalg")  # others want grids and sizes that are known
# How far rows may be from SciPy's, by how they begin, and why.
LOOSE: dict[str, tuple[float, str]] = {
    "betaln(": (3e-8, "jax's series for large arguments ends early"),
    "beta(p": (3e-7, "the exponential of betaln"),
    "beta.logpdf(": (1e-8, "betaln"),
    "betabinom.": (1e-6, "betaln"),
    "norm.logsf(": (2e-11, "jax's asymptotic series has three terms"),
    "poisson.entropy(": (2e-9, "jax's asymptotic series, from a rate of 10 on"),
    "bernoulli(": (3e-6, "jax's table is of single precision"),
    "hyp1f1(1.5, 2.5, w": (0.09, "jax's series alternates, and cancels, down to -100"),
    "hyp2f1(1.25, 0.5, 2.25, u": (0.016, "jax's series has 250 terms, too few next to 1"),
    "pascal(": (1.2e-6, "jax's matrix is of single precision, the exponential of logarithms"),
    "dct(": (1e-11, "next to nothing where waves cancel"),
}


def rows(module: str) -> list[tuple[str, str]]:
    texts = [text.strip() for text in re.split(r"[;\n]", TABLES[module]) if text.strip()]
    return [(text.partition(" == ")[0], text.partition(" == ")[2] or text) for text in texts]


def evaluated(text: str, module: object, jnp: object, operands: dict) -> object:
    names = re.findall(r"(?<![\w.'])([A-Za-z]\w*)(?=[(.])", text)
    functions = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return eval(text, {"jnp": jnp, "np": np, **operands, **functions})


def apart(text: str, ours: object, theirs: object) -> list[str]:
    """The row, if its values are further apart than they may be: from their size, or from a matrix's."""
    rtol = next((rtol for start, (rtol, _) in LOOSE.items() if text.startswith(start)), RTOL)
    ours, theirs = ([*x] if isinstance(x, tuple | list) else [x] for x in (ours, theirs))
    compare.require(len(ours) == len(theirs), text, len(ours), len(theirs))
    for x, y in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
        compare.require(x.shape == y.shape, text, x.shape, y.shape)
        size = np.max(np.abs(y), initial=0, where=np.isfinite(y)) if y.ndim > 1 else np.abs(y)
        near = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= rtol * size + ATOL)
        if not near.all():
            return [f"{text}: ours {x[~near][:3]}, SciPy's {y[~near][:3]}"]
    return []


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Input data is complex", "ignore:jax.scipy.special.lpmn")
@pytest.mark.parametrize("module", TABLES)
def test_values_are_scipy_s(module):
    jax, theirs = compare.ours(), importlib.import_module(f"scipy.{module}")
    ours = importlib.import_module(f"minijax.scipy.{module}")

    def program(operands):
        return [evaluated(text, ours, jax.numpy, operands) for text, _ in rows(module)]

    with jax.enable_x64(True):
        values = (jax.jit(program) if module in JITTED else program)(OPERANDS)
    pairs = zip(rows(module), values, strict=True)
    wrong = [line for (text, said), x in pairs for line in apart(text, x, evaluated(said, theirs, np, OPERANDS))]
    assert not wrong, "\n".join(wrong)
