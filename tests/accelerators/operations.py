"""Operations of all families and dtypes: programs for one device."""

import functools

from .registry import B, F, H, I, add, add_each

# ---- operations -------------------------------------------------------------------------------------

UNARY = """
abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 expm1
floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh sqrt square tan tanh
""".split()
BINARY = "add sub mul div rem pow max min atan2 nextafter igamma igammac zeta polygamma random_gamma_grad".split()


def _together(names, lax, count):
    """The operations of a list in one program, each on arguments of its own."""
    return lambda *xs: [getattr(lax, name)(*xs[:count]) for name in names]


for i in range(0, len(UNARY), 6):
    names = UNARY[i : i + 6]
    for dtype in (F, B):
        add(
            f"unary {names[0]} to {names[-1]} {dtype}",
            lambda jax, jnp, lax, names=names, dtype=dtype: (_together(names, lax, 1), ((7, 130), dtype)),
        )
for name in BINARY:
    add(f"binary {name}", lambda jax, jnp, lax, name=name: (getattr(lax, name), ((7, 130), F), ((7, 130), F)))
for (
    dtype
) in "int4 int8 uint8 int16 int32 uint32 int64 bool float8_e4m3fn float8_e5m2 float16 float64 complex64".split():

    def converted(jax, jnp, lax, dtype=dtype):
        return (
            (lambda x, y: (x.astype(F) if dtype != "complex64" else jnp.real(x), y.astype(dtype))),
            ((8, 128), dtype),
            ((8, 128), F),
        )

    add(f"converted {dtype}", converted)
for dtype in ("int8", "int16", "int32", "uint32"):

    def integers(jax, jnp, lax, dtype=dtype):
        return (
            lambda x, y: (x & y, x ^ y, ~x, x << 2, x >> 1, lax.population_count(x), lax.clz(x), x // 3, x % y, x * y),
            ((8, 128), dtype), ((8, 128), dtype),
        )  # fmt: skip

    add(f"integers {dtype}", integers)

for name in "sum prod max min argmax argmin any all mean var std median logsumexp".split():

    def reduced(jax, jnp, lax, name=name):
        f = jax.nn.logsumexp if name == "logsumexp" else getattr(jnp, name)
        return (lambda x: (f(x), f(x, 0), f(x, 1))), ((33, 257), F)

    add(f"reduced {name}", reduced)
for name in "cumsum cumprod cummax cumlogsumexp".split():
    add(f"cumulative {name}", lambda jax, jnp, lax, name=name: (lambda x: getattr(lax, name)(x, axis=1), ((9, 300), F)))
for name in "sort argsort flip unique_counts nonzero".split():

    def ordered(jax, jnp, lax, name=name):
        kwargs = dict(size=30) if name in ("unique_counts", "nonzero") else {}
        return (lambda x: getattr(jnp, name)(x, **kwargs)), ((300,), F)

    add(f"ordered {name}", ordered)
add("sorted pairs", lambda jax, jnp, lax: (lambda k, v: lax.sort((k, v), num_keys=1), ((20, 50), I), ((20, 50), F)))
add("top_k", lambda jax, jnp, lax: (lambda x: lax.top_k(x, 5), ((20, 500), F)))
add("approx_max_k", lambda jax, jnp, lax: (lambda x: lax.approx_max_k(x, 5), ((20, 5000), F)))
for name, f in {
    "transpose": lambda x: x.transpose(2, 0, 1),
    "reshape": lambda x: x.reshape(-1, 6),
    "slice": lambda x: x[1:, ::2, -3:],
    "gather": lambda x: x[:, [1, 0, 2], None],
    "mask": lambda x: x * (x > 0),
    "update": lambda x: x.at[0, 1].set(0.0),
    "scatter add": lambda x: x.at[[0, 1, 1]].add(1.0),
    "scatter max": lambda x: x.at[:, [0, 2]].max(2.0),
}.items():
    add(f"array {name}", lambda jax, jnp, lax, f=f: (f, ((4, 6, 10), F)))
for name, f in {
    "pad": lambda jnp, x: jnp.pad(x, ((1, 2), (0, 3)), mode="reflect"),
    "roll": lambda jnp, x: jnp.roll(x, 3, 1),
    "concatenate": lambda jnp, x: jnp.concatenate([x, x * 2], 1),
    "take_along_axis": lambda jnp, x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "where": lambda jnp, x: jnp.where(x > 0, x, -x),
    "searchsorted": lambda jnp, x: jnp.searchsorted(x[0], x[1]),
    "histogram": lambda jnp, x: jnp.histogram(x, 10),
    "interp": lambda jnp, x: jnp.interp(x[0], x[1], x[2]),
    "convolve": lambda jnp, x: jnp.convolve(x[0], x[1]),
    "fft": lambda jnp, x: jnp.fft.fft(x),
    "rfft": lambda jnp, x: jnp.fft.irfft(jnp.fft.rfft(x)),
    "fft2": lambda jnp, x: jnp.fft.fft2(x),
    "einsum": lambda jnp, x: jnp.einsum("ij,kj->ik", x, x),
    "outer": lambda jnp, x: jnp.outer(x[0], x[1]),
    "kron": lambda jnp, x: jnp.kron(x[:3, :3], x[:2, :2]),
    "tril": lambda jnp, x: jnp.tril(x) + jnp.triu(x, 1),
}.items():
    add(f"numpy {name}", lambda jax, jnp, lax, f=f: (functools.partial(f, jnp), ((12, 64), F)))

# ---- products ---------------------------------------------------------------------------------------

for a, b, out in (
    (F, F, F),
    (B, B, F),
    (B, B, B),
    (H, H, H),
    ("int8", "int8", I),
    ("float8_e4m3fn", "float8_e4m3fn", F),
):

    def product(jax, jnp, lax, a=a, b=b, out=out):
        return (lambda x, y: lax.dot(x, y, preferred_element_type=out)), ((128, 256), a), ((256, 128), b)

    add(f"product {a} {b} {out}", product)
for precision in ("default", "high", "highest"):

    def at_precision(jax, jnp, lax, precision=precision):
        return (lambda x, y: jnp.matmul(x, y, precision=precision)), ((128, 256), F), ((256, 128), F)

    add(f"product {precision}", at_precision)
add("batched product", lambda jax, jnp, lax: (jnp.matmul, ((4, 128, 64), F), ((4, 64, 32), F)))
add("ragged product", lambda jax, jnp, lax: (lax.ragged_dot, ((64, 32), F), ((4, 32, 16), F), ((4,), I)))
for name, kwargs in {
    "same": dict(window_strides=(1, 1), padding="SAME"),
    "strided": dict(window_strides=(2, 2), padding="VALID"),
    "dilated": dict(window_strides=(1, 1), padding="SAME", rhs_dilation=(2, 2)),
}.items():
    for dtype in (F, B):

        def convolution(jax, jnp, lax, kwargs=kwargs, dtype=dtype):
            return functools.partial(lax.conv_general_dilated, **kwargs), ((2, 8, 16, 16), dtype), ((8, 8, 3, 3), dtype)

        add(f"convolution {name} {dtype}", convolution)
for name in ("max", "avg"):

    def pooled(jax, jnp, lax, name=name):
        init, op = (-float("inf"), lax.max) if name == "max" else (0.0, lax.add)
        pool = lambda x: lax.reduce_window(x, init, op, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")  # noqa: E731
        return jax.grad(lambda x: (pool(x) ** 2).sum()), ((2, 8, 8, 4), F)

    add(f"gradient of pooling {name}", pooled)

# ---- linear algebra ---------------------------------------------------------------------------------

for name, f in {
    "cholesky": lambda jnp, x: jnp.linalg.cholesky(x @ x.T),
    "qr": lambda jnp, x: jnp.linalg.qr(x),
    "inv": lambda jnp, x: jnp.linalg.inv(x),
    "det": lambda jnp, x: jnp.linalg.slogdet(x),
    "solve": lambda jnp, x: jnp.linalg.solve(x, x[:, :2]),
    "eigh": lambda jnp, x: jnp.linalg.eigh(x + x.T),
    "svd": lambda jnp, x: jnp.linalg.svd(x, full_matrices=False),
    "matrix_power": lambda jnp, x: jnp.linalg.matrix_power(x, 5),
    "norm": lambda jnp, x: jnp.linalg.norm(x, axis=-1),
    "pinv": lambda jnp, x: jnp.linalg.pinv(x),
}.items():
    add(f"linalg {name}", lambda jax, jnp, lax, f=f: (functools.partial(f, jnp), ((16, 16), F)))


def _solve_triangular(jax, jnp, lax):
    solve = functools.partial(jax.scipy.linalg.solve_triangular, lower=True)
    return solve, ((16, 16), F), ((16, 3), F)


add("linalg solve_triangular", _solve_triangular)
add("linalg expm", lambda jax, jnp, lax: (jax.scipy.linalg.expm, ((8, 8), F)))
add("linalg lu", lambda jax, jnp, lax: (jax.scipy.linalg.lu, ((8, 8), F)))
add(
    "linalg tridiagonal_solve",
    lambda jax, jnp, lax: (lax.linalg.tridiagonal_solve, ((32,), F), ((32,), F), ((32,), F), ((32, 4), F)),
)

# ---- random numbers ---------------------------------------------------------------------------------

for name, kwargs in {
    "normal": {}, "uniform": {}, "bernoulli": {}, "gumbel": {}, "exponential": {}, "bits": {}, "truncated_normal": dict(lower=-1.0, upper=1.0),
    "gamma": dict(a=2.0), "poisson": dict(lam=3.0), "categorical": None, "permutation": None, "randint": dict(minval=0, maxval=9),
}.items():  # fmt: skip

    def drawn(jax, jnp, lax, name=name, kwargs=kwargs):
        f = getattr(jax.random, name)
        if kwargs is None:
            return (lambda seed: f(jax.random.key(seed), jnp.arange(32.0))), ((), "uint32")
        return (lambda seed: f(jax.random.key(seed), shape=(64, 3), **kwargs)), ((), "uint32")

    add(f"random {name}", drawn)
add(
    "random rbg",
    lambda jax, jnp, lax: (lambda s: jax.random.normal(jax.random.key(s, impl="rbg"), (64,)), ((), "uint32")),
)

# ---- more of each family ----------------------------------------------------------------------------

D, C, Z, E4, E5 = "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"


def _squares(jax, out):
    """The sum of the absolute squares of all results."""
    return sum((jax.numpy.abs(leaf) ** 2).sum() for leaf in jax.tree.leaves(out))


def _hermitian(jax, x):
    return x @ jax.numpy.conj(x.mT) + 8 * jax.numpy.eye(x.shape[-1], dtype=x.dtype)


DECOMPOSED = {
    "cholesky": lambda jax, x: jax.lax.linalg.cholesky(_hermitian(jax, x)),
    "lu": lambda jax, x: jax.lax.linalg.lu(x)[0],
    "qr": lambda jax, x: jax.lax.linalg.qr(x, full_matrices=False),
    "eigh": lambda jax, x: jax.lax.linalg.eigh(_hermitian(jax, x)),
    "svd": lambda jax, x: jax.lax.linalg.svd(x, full_matrices=False)[1],
    "triangular_solve": lambda jax, x: jax.lax.linalg.triangular_solve(x, x[..., :2, :], transpose_a=True),
    "solve": lambda jax, x: jax.numpy.linalg.solve(x, x[..., :2]),
}
for dtype in (F, D, C):
    gradients = {
        f"{name} {dtype}": lambda jax, x, f=f: jax.value_and_grad(lambda x: _squares(jax, f(jax, x)))(x)
        for name, f in DECOMPOSED.items()
        if dtype != D or name not in ("svd", "eigh")
    }
    size = 4 if dtype == D else 8  # 64 bits are emulated on TPUs: the code is long
    add_each("gradient of batched", gradients, ((3, size, size), dtype), x64=dtype == D)
add_each(
    "linalg",
    {
        "eig": lambda jax, x: jax.lax.linalg.eig(x),
        "hessenberg": lambda jax, x: jax.lax.linalg.hessenberg(x),
        "schur": lambda jax, x: jax.lax.linalg.schur(x),
        "tridiagonal": lambda jax, x: jax.lax.linalg.tridiagonal(x, lower=True),
        "householder_product": lambda jax, x: jax.lax.linalg.householder_product(x, x[0]),
        "symmetric_product": lambda jax, x: jax.lax.linalg.symmetric_product(x, x, alpha=2.0, beta=0.5),
        "cholesky_update": lambda jax, x: jax.lax.linalg.cholesky_update(x, x[0]),
        "pivoted qr": lambda jax, x: jax.scipy.linalg.qr(x, pivoting=True),
        "full svd": lambda jax, x: jax.numpy.linalg.svd(x[:, :5]),
        "polar": lambda jax, x: jax.scipy.linalg.polar(x),
        "sqrtm": lambda jax, x: jax.scipy.linalg.sqrtm(x),
        "lstsq": lambda jax, x: jax.numpy.linalg.lstsq(x, x[0]),
        "cho_solve": lambda jax, x: jax.scipy.linalg.cho_solve((x, True), x[0]),
        "lu_solve": lambda jax, x: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(x), x[0], trans=1),
        "multi_dot": lambda jax, x: jax.numpy.linalg.multi_dot([x, x[:, :3], x[:3]]),
        "block_diag": lambda jax, x: jax.scipy.linalg.block_diag(x, x[:2, :3]),
    },
    ((8, 8), F),
)


def convolution_of(lhs, rhs, dtype=F, out=None, gradient=False, **kwargs):
    def make(jax, jnp, lax):
        f = functools.partial(lax.conv_general_dilated, preferred_element_type=out, **kwargs)
        if gradient:
            return jax.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1)), (lhs, dtype), (rhs, dtype)
        return f, (lhs, dtype), (rhs, dtype)

    return make


NHWC, NWC, NDHWC = ("NHWC", "HWIO", "NHWC"), ("NWC", "WIO", "NWC"), ("NCDHW", "OIDHW", "NCDHW")
add("convolution over lines", convolution_of((4, 50, 8), (5, 8, 16), window_strides=(2,), padding="SAME", dimension_numbers=NWC))  # fmt: skip
add("convolution over volumes", convolution_of((2, 3, 8, 8, 8), (4, 3, 3, 3, 3), window_strides=(1,) * 3, padding="VALID", dimension_numbers=NDHWC))  # fmt: skip
for name, kwargs in {
    "depthwise": dict(padding="SAME", feature_group_count=8, rhs=(3, 3, 1, 16)),
    "grouped": dict(padding="SAME", feature_group_count=2, rhs=(3, 3, 4, 16)),
    "batch groups": dict(padding="SAME", batch_group_count=4, rhs=(3, 3, 8, 16)),
    "fractional": dict(padding=((2, 2), (1, 3)), lhs_dilation=(2, 2), rhs=(3, 3, 8, 16)),
    "dilated by three": dict(padding="VALID", rhs_dilation=(3, 1), rhs=(3, 3, 8, 16)),
}.items():
    rest = {key: value for key, value in kwargs.items() if key != "rhs"}
    for dtype, gradient in ((F, True), (B, False)):
        make = convolution_of((4, 8, 8, 8), kwargs["rhs"], dtype, gradient=gradient, window_strides=(1, 1), dimension_numbers=NHWC, **rest)  # fmt: skip
        add(f"convolution {name} {dtype}{' gradient' * gradient}", make)
add("convolution int8", convolution_of((4, 16, 16, 8), (3, 3, 8, 16), "int8", I, window_strides=(1, 1), padding="SAME", dimension_numbers=NHWC))  # fmt: skip
add("convolution transposed", lambda jax, jnp, lax: (functools.partial(lax.conv_transpose, strides=(2, 2), padding="SAME"), ((2, 8, 8, 4), F), ((3, 3, 4, 6), F)))  # fmt: skip

for preset in "F32_F32_F32 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 TF32_TF32_F32".split():
    add(
        f"product {preset}",
        lambda jax, jnp, lax, preset=preset: (
            (lambda x, y: lax.dot(x, y, precision=lax.DotAlgorithmPreset[preset], preferred_element_type=F)),
            ((128, 256), F),
            ((256, 128), F),
        ),
    )
for a, b, out in ((E4, E5, B), ("int4", "int4", I), ("int8", B, F), ("uint8", "uint8", I), (C, C, C), (B, F, F)):
    add(
        f"general product {a} {b} {out}",
        lambda jax, jnp, lax, a=a, b=b, out=out: (
            (lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type=out)),
            ((4, 32, 64), a),
            ((4, 64, 16), b),
        ),
    )
add("ragged product gradient", lambda jax, jnp, lax: (jax.grad(lambda x, w, n: (lax.ragged_dot(x, w, n) ** 2).sum(), (0, 1)), ((64, 32), B), ((4, 32, 16), B), ((4,), I)))  # fmt: skip
add("einsum of three", lambda jax, jnp, lax: (functools.partial(jnp.einsum, "bij,jk,bkl->bil"), ((4, 8, 16), F), ((16, 32), F), ((4, 32, 8), F)))  # fmt: skip

for mode in "clip fill drop wrap promise_in_bounds".split():
    add_each(
        f"indices {mode}",
        {
            "gather": lambda jax, x, i, mode=mode: x.at[i, 1].get(mode=mode),
            "scatter": lambda jax, x, i, mode=mode: (x.at[i].set(1.0, mode=mode), x.at[:, i].mul(2.0, mode=mode)),
        }
        if mode not in ("wrap",)
        else {"gather": lambda jax, x, i: jax.numpy.take(x, i, axis=1, mode="wrap")},
        ((16, 32), F),
        ((5,), I),
    )
for dtype in ("int8", B, "bool", C):
    add_each(
        f"indices {dtype}",
        {"all": lambda jax, x, i: (x[i], x.at[i].set(x[0]), x.at[i].max(x[0]) if x.dtype != C else x.at[i].add(x[0]))},
        ((16, 32), dtype),
        ((5,), I),
    )
add_each(
    "indexed",
    {
        "gradient": lambda jax, x, i: jax.grad(lambda x: (x[i] ** 2).sum())(x),
        "batched": lambda jax, x, i: jax.vmap(lambda row, j: row.at[j].add(row[j]))(x[:5], i),
        "slice": lambda jax, x, i: jax.lax.dynamic_slice(x, (i[0], 0), (4, 8)),
        "update": lambda jax, x, i: jax.lax.dynamic_update_slice(x, x[:2] * 2, (i[0], i[1])),
        "segment_sum": lambda jax, x, i: jax.ops.segment_sum(x[:5], i, num_segments=8),
        "segment_max": lambda jax, x, i: jax.ops.segment_max(x[:5], i, num_segments=8, indices_are_sorted=True),
        "unique indices": lambda jax, x, i: x.at[i].add(1.0, unique_indices=True, indices_are_sorted=True),
        "apply": lambda jax, x, i: x.at[i].apply(jax.numpy.sin),
        "one_hot": lambda jax, x, i: jax.nn.one_hot(i, 32) @ x.T,
    },
    ((16, 32), F),
    ((5,), I),
)
add_each(
    "ordered",
    {
        "descending": lambda jax, x: jax.numpy.sort(x, descending=True, stable=True),
        "argsort gradient": lambda jax, x: jax.grad(lambda x: (jax.numpy.sort(x, 0) * x).sum())(x),
        "bf16": lambda jax, x: jax.numpy.argsort(x.astype(B), axis=0),
        "top_k integers": lambda jax, x: jax.lax.top_k(jax.lax.bitcast_convert_type(x, I), 3),
        "top_k gradient": lambda jax, x: jax.grad(lambda x: jax.lax.top_k(x, 3)[0].sum())(x),
        "approx_min_k": lambda jax, x: jax.lax.approx_min_k(x, 4, recall_target=0.9),
        "reversed sums": lambda jax, x: jax.lax.cumsum(x, 1, reverse=True) + jax.numpy.cumsum(x.astype(B), 0),
        "gradient of products": lambda jax, x: jax.grad(lambda x: jax.numpy.cumprod(x, 1).sum())(x),
        "lexsort": lambda jax, x: jax.numpy.lexsort((x[0], x[1])),
    },
    ((8, 200), F),
)
add_each(
    "window",
    {
        "own": lambda jax, x: jax.lax.reduce_window(x, 1.0, lambda a, b: a * b + 1, (2, 3), (1, 2), "SAME"),
        "dilated": lambda jax, x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 3), (1, 1), "VALID", (2, 1), (1, 2)),
        "reduce": lambda jax, x: jax.lax.reduce(x, 1.0, lambda a, b: a * b + a, (1,)),
        "pairs": lambda jax, x: jax.lax.reduce((x, x * 2), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)),
        "precision": lambda jax, x: jax.lax.reduce_precision(x, 5, 7),
    },
    ((16, 40), F),
)

for algorithm in ("RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"):
    for dtype in ("uint8", "uint32"):
        add_each(
            f"bits {algorithm}",
            {
                dtype: lambda jax, k, algorithm=algorithm, dtype=dtype: jax.lax.rng_bit_generator(
                    k, (8, 128), dtype, getattr(jax.lax.RandomAlgorithm, algorithm)
                )
            },
            ((4,), "uint32"),
        )
DISTRIBUTIONS = {
    "beta": (2.0, 3.0), "binomial": (9, 0.3), "cauchy": (), "chisquare": (3.0,), "double_sided_maxwell": (0.0, 1.0), "f": (2.0, 3.0),
    "geometric": (0.4,), "laplace": (), "loggamma": (2.0,), "logistic": (), "lognormal": (0.5,), "maxwell": (), "pareto": (2.0,),
    "rademacher": (), "rayleigh": (1.0,), "t": (3.0,), "triangular": (0.0, 0.5, 1.0), "wald": (1.0,), "weibull_min": (1.0, 2.0),
}  # fmt: skip


def _drawn(jax, seed, name, args, impl=None):
    return getattr(jax.random, name)(jax.random.key(seed, impl=impl), *args, shape=(64, 3))


add_each("random", {n: functools.partial(_drawn, name=n, args=a) for n, a in DISTRIBUTIONS.items()}, ((), "uint32"))
add_each("random rbg", {n: functools.partial(_drawn, name=n, args=(), impl="rbg") for n in ("uniform", "gumbel")}, ((), "uint32"))  # fmt: skip
add_each(
    "random",
    {
        "dirichlet": lambda jax, s: jax.random.dirichlet(jax.random.key(s), jax.numpy.ones(4), (8,)),
        "multivariate_normal": lambda jax, s: jax.random.multivariate_normal(jax.random.key(s), jax.numpy.zeros(3), jax.numpy.eye(3), (8,)),
        "orthogonal": lambda jax, s: jax.random.orthogonal(jax.random.key(s), 4),
        "ball": lambda jax, s: jax.random.ball(jax.random.key(s), 3, shape=(8,)),
        "choice": lambda jax, s: jax.random.choice(jax.random.key(s), 50, (8,), replace=False),
        "multinomial": lambda jax, s: jax.random.multinomial(jax.random.key(s), 9.0, jax.numpy.ones(4) / 4),
        "split": lambda jax, s: jax.random.key_data(jax.vmap(jax.random.fold_in)(jax.random.split(jax.random.key(s), 4), jax.numpy.arange(4))),
        "unsafe_rbg": lambda jax, s: jax.vmap(jax.random.normal)(jax.random.split(jax.random.key(s, impl="unsafe_rbg"), 4)),
        "bits16": lambda jax, s: jax.random.bits(jax.random.key(s), (7, 9), "uint16"),
        "bf16": lambda jax, s: jax.random.normal(jax.random.PRNGKey(s), (64, 3), B),
        "complex": lambda jax, s: jax.random.normal(jax.random.key(s), (64, 3), C),
    },
    ((), "uint32"),
)  # fmt: skip
add_each(
    "fft",
    {
        "three axes": lambda jax, x: jax.numpy.fft.ifftn(jax.numpy.fft.fftn(x.reshape(4, 3, 64))).real,
        "hermitian": lambda jax, x: jax.numpy.fft.ihfft(jax.numpy.fft.hfft(x + 1j * x, norm="ortho")),
        "gradient": lambda jax, x: jax.grad(lambda x: (jax.numpy.abs(jax.numpy.fft.rfft2(x)) ** 2).sum())(x),
        "prime": lambda jax, x: jax.numpy.fft.fft(x[:, :61], 67),
        "fftconvolve": lambda jax, x: jax.scipy.signal.fftconvolve(x[0], x[1], mode="same"),
        "stft": lambda jax, x: jax.scipy.signal.stft(x.ravel(), nperseg=64)[2],
    },
    ((12, 64), F),
)

NUMPY = {
    "quantile": lambda np, x: (np.quantile(x, np.array([0.1, 0.9]), axis=1), np.percentile(x, 50, method="nearest")),
    "nan functions": lambda np, x: (np.nanmedian(x, 0), np.nanmean(x, 1), np.nanstd(x), np.nanargmax(x, 1), np.nansum(x)),
    "unique": lambda np, x: np.unique(x[0].astype(I), size=9, fill_value=-1, return_inverse=True, return_counts=True),
    "sets": lambda np, x: (np.isin(x[0], x[1]), np.setdiff1d(x[0], x[1], size=8), np.union1d(x[0], x[1], size=20)),
    "bincount": lambda np, x: (np.bincount(x[0].astype(I), length=9), np.digitize(x[0], np.linspace(0, 1, 5))),
    "histogram2d": lambda np, x: np.histogram2d(x[0], x[1], bins=5),
    "statistics": lambda np, x: (np.cov(x), np.corrcoef(x), np.average(x, 1, weights=x[0]), np.ptp(x, 0)),
    "differences": lambda np, x: (np.gradient(x, axis=1), np.diff(x, 2, axis=0), np.trapezoid(x, dx=0.1), np.ediff1d(x[0])),
    "polynomials": lambda np, x: (np.polyval(x[0, :4], x[1]), np.polyfit(x[0], x[1], 2), np.vander(x[0, :5], 3)),
    "products": lambda np, x: (np.tensordot(x, x, ((1,), (1,))), np.inner(x, x), np.vdot(x, x), np.cross(x[:, :3], x[:, 3:6])),
    "rearranged": lambda np, x: (np.rot90(x), np.tile(x, (2, 1)), np.repeat(x, 3, 0), np.moveaxis(x, 0, 1), np.flipud(x)),
    "joined": lambda np, x: (np.stack([x, x]), np.block([[x, x], [x, x]]), np.append(x, x), np.column_stack([x, x]), np.split(x, 3)),
    "edited": lambda np, x: (np.insert(x, 2, 0.0, axis=0), np.delete(x, 1, axis=1), np.pad(x, 2, mode="wrap"), np.pad(x, 1, mode="edge")),
    "chosen": lambda np, x: (np.select([x > 1, x > 0], [x, -x], 0.0), np.piecewise(x, [x < 0, x > 1], [np.sin, 1.0, np.cos]), np.clip(x, -1, 1)),
    "bits": lambda np, x: (np.packbits(x > 0, axis=1), np.unpackbits(x.astype("uint8"), axis=1), np.bitwise_count(x.astype(I))),
    "parts": lambda np, x: (*np.frexp(x), *np.modf(x), *np.divmod(x, 0.3), np.ldexp(x, 3), np.float_power(x, 2), np.signbit(x)),
    "special": lambda np, x: (np.sinc(x), np.i0(x), np.unwrap(x), np.logaddexp(x, 1.0), np.hypot(x, x), np.exp2(x), np.heaviside(x, 0.5)),
    "integers": lambda np, x: (np.gcd(x.astype(I), 12), np.lcm(x.astype(I), 4), np.floor_divide(x.astype(I), 5), x.astype(I) % -3),
    "comparisons": lambda np, x: (np.isclose(x, x[0]), np.allclose(x, 0), np.array_equal(x, x), np.nan_to_num(x), np.isposinf(x)),
    "grids": lambda np, x: (np.meshgrid(x[0], x[1]), np.indices((3, 4)), np.linspace(0, x[0, 0], 9), np.logspace(0, 2, 5), np.tri(4)),
    "partition": lambda np, x: (np.partition(x, 5, axis=1), np.argpartition(x, 5, axis=1), np.median(x.astype(B), 0)),
    "correlate": lambda np, x: (np.correlate(x[0], x[1], "full"), np.apply_along_axis(np.cumsum, 1, x), np.cumulative_sum(x, axis=1)),
}  # fmt: skip
add_each("numpy", {name: lambda jax, x, f=f: f(jax.numpy, x) for name, f in NUMPY.items()}, ((12, 64), F))
SCIPY = {
    "gamma functions": lambda jax, x: (f := jax.scipy.special) and (f.gammaln(x), f.betainc(1.0, 2.0, x), f.gammainc(2.0, x), f.factorial(x)),
    "normal functions": lambda jax, x: (f := jax.scipy.special) and (f.ndtr(x), f.ndtri(x), f.log_ndtr(x), f.erfcx(x) if hasattr(f, "erfcx") else x),
    "integrals": lambda jax, x: (f := jax.scipy.special) and (f.expi(x), f.exp1(x), f.expn(2, x), f.spence(x), f.i0(x), f.i1e(x)),
    "entropies": lambda jax, x: (f := jax.scipy.special) and (f.entr(x), f.xlogy(x, x), f.kl_div(x, x), f.rel_entr(x, x), f.logit(x)),
    "densities": lambda jax, x: (f := jax.scipy.stats) and (f.norm.logpdf(x), f.t.logpdf(x, 3.0), f.beta.pdf(x, 2.0, 3.0), f.poisson.logpmf(x, 2.0)),
    "kde": lambda jax, x: jax.scipy.stats.gaussian_kde(x[0])(x[1]),
    "map_coordinates": lambda jax, x: jax.scipy.ndimage.map_coordinates(x, [x[0], x[1]], order=1, mode="nearest"),
    "signal": lambda jax, x: (jax.scipy.signal.convolve2d(x, x[:3, :3], mode="same"), jax.scipy.signal.detrend(x)),
    "cg": lambda jax, x: jax.scipy.sparse.linalg.cg(lambda v: x @ (x.T @ v) + v, x[:, 0])[0],
    "minimize": lambda jax, x: jax.scipy.optimize.minimize(lambda v: ((v - 1) ** 4).sum(), x[0, :4], method="BFGS").x,
    "image": lambda jax, x: (jax.image.resize(x, (24, 32), "cubic"), jax.image.scale_and_translate(x, (6, 6), (0, 1), *x[:2, :2], "linear")),
}  # fmt: skip
add_each("scipy", SCIPY, ((12, 64), F))
NN = {
    "activations": lambda jax, x: [getattr(jax.nn, name)(x) for name in "gelu silu elu selu celu glu mish softplus".split()],
    "more activations": lambda jax, x: [getattr(jax.nn, n)(x) for n in "relu6 hard_swish log_sigmoid leaky_relu squareplus hard_tanh".split()],
    "softmax": lambda jax, x: (jax.nn.softmax(x), jax.nn.log_softmax(x, 0), jax.nn.standardize(x), jax.nn.softmax(x, where=x > 0)),
    "softmax gradient": lambda jax, x: jax.grad(lambda x: (jax.nn.softmax(x.astype(B)) ** 2).sum())(x),
    "cross entropy": lambda jax, x: jax.grad(lambda x: -jax.numpy.take_along_axis(jax.nn.log_softmax(x), jax.numpy.arange(12)[:, None], 1).mean())(x),
}  # fmt: skip
add_each("nn", NN, ((12, 64), F))
for name, kwargs in {"bias": dict(bias=((2, 4, 16, 16), B)), "mask": dict(mask=((2, 4, 16, 16), "bool")), "lengths": dict(key_value_seq_lengths=((2,), I))}.items():  # fmt: skip
    (keyword, type_), kv = *kwargs.items(), ((2, 16, 2, 32), B)
    add_each("attention with", {name: lambda jax, q, k, v, m, keyword=keyword: jax.nn.dot_product_attention(q, k, v, **{keyword: m})}, ((2, 16, 4, 32), B), kv, kv, type_)  # fmt: skip
add_each("attention", {"gradient": lambda jax, q, k, v: jax.grad(lambda *a: jax.nn.dot_product_attention(*a, local_window_size=4, implementation="xla").astype(F).sum(), (0, 1, 2))(q, k, v)}, *[((2, 16, 4, 32), B)] * 3)  # fmt: skip
add_each("nn", {"scaled_matmul": lambda jax, a, b, s, t: jax.nn.scaled_matmul(a, b, s, t)}, ((1, 64, 128), E4), ((1, 64, 128), E4), ((1, 64, 4), "float8_e8m0fnu"), ((1, 64, 4), "float8_e8m0fnu"))  # fmt: skip
