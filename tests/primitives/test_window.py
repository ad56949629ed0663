"""Sums and extrema of windows, and their derivatives, against jax: programs, texts and values."""

import re

import ml_dtypes
import numpy as np
import pytest
from compare import Case, canonical, ours, run_on, same, same_error, same_refusal, sweep, theirs, wide_numbers
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

INF = np.inf
TRANSFORMS = ("plain", "jvp", "vjp", "vmap", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad", "vmap_of_vmap")
DTYPES = (bool, np.int8, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32, np.complex64, ml_dtypes.float8_e4m3fn)
# (shape, window, strides, padding, base dilation, window dilation)
WINDOWS = [
    ((4, 5), (2, 2)),
    ((4, 5), (2, 3), (1, 2), "SAME"),
    ((4, 5), (2, 3), (2, 2), "SAME_LOWER"),
    ((5, 6), [2, 3], [2, 2], [(0, 1), [2, 1]]),
    ((4, 5), (2, 2), (1, 2), ((0, 1), (1, 0)), (2, 1)),
    ((4, 5), (2, 3), (2, 2), "SAME", (2, 3)),
    ((4, 5), (2, 2), (1, 2), ((0, 1), (1, 1)), (2, 1), (1, 2)),
    ((2, 5, 5, 2), (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    ((7,), (3,), None, "VALID", None, (2,)),
    ((5,), (1,), (3,), ((2, 0),)),
    ((), ()),
    ((0, 3), (2, 2)),
    ((1, 3), (2, 2)),
    ((3, 3), (4, 2), (1, 1), ((0, 0), (0, 0))),
]
CROPPED = ((6, 5), (2, 2), (1, 2), ((0, -1), (-1, 1)))
SAME_DIMS = ((4, 5), (2, 2), (2, 2), ((0, 0), (0, 1)))


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).randn(*sizes) * 3
    return np.asarray(values > 0 if dtype is bool else values).astype(dtype)


def starts(dtype):
    """The values that change nothing, by computation."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        low, high = np.bool_(False), np.bool_(True)
    elif dtype.kind in "iu":
        low, high = (dtype.type(getattr(np.iinfo(dtype), n)) for n in ("min", "max"))
    elif dtype.name == "float8_e4m3fn":
        low, high = (dtype.type(getattr(ml_dtypes.finfo(dtype), n)) for n in ("min", "max"))
    else:
        low, high = dtype.type(-INF), dtype.type(INF)
    return {"add": dtype.type(0), "max": low, "min": high}


def pooled(name, window, dtype=np.float32):
    start = starts(dtype)[name]
    return lambda lax: lambda x: lax.reduce_window(x, start, getattr(lax, name), *window)


def winning(primitive, select="ge", dims=(2, 2), strides=(2, 2), padding=((0, 0), (0, 1)), **more):
    def program(lax):
        return lambda t, x: getattr(lax, primitive).bind(
            t,
            x,
            select_prim=getattr(lax, f"{select}_p"),
            window_dimensions=dims,
            window_strides=strides,
            padding=padding,
            **more,
        )

    return program


SCATTER = Case("scatter", winning("select_and_scatter_add_p"), (array(2, 3), array(4, 5)))
DILATIONS = dict(base_dilation=(1, 1), window_dilation=(1, 1))
GATHER = Case("gather", winning("select_and_gather_add_p", **DILATIONS), (array(4, 5), array(4, 5)))
LEAST = Case(
    "least",
    winning("select_and_gather_add_p", "le", base_dilation=(2, 1), window_dilation=(1, 1)),
    (array(4, 5), array(4, 5)),
)


@pytest.mark.parametrize("name", ["add", "max", "min"])
def test_windows_under_every_transform_equal_jax_s(name):
    cases = [Case(f"{name}-{shape}-{window}", pooled(name, window), (array(*shape),)) for shape, *window in WINDOWS]
    # Of rank 0, jax's gradient of an extremum aborts the process.
    sweep([transformed(c, t) for c in cases for t in TRANSFORMS if c.args[0].ndim or t == "plain" or name == "add"])


def test_windows_of_every_dtype_equal_jax_s():
    window = (2, 2), (1, 2), "SAME"
    for name in ("add", "max", "min"):
        sweep([Case(f"{name}-{np.dtype(d)}", pooled(name, window, d), (array(3, 4, dtype=d),),
                    raises=d is bool and name == "add") for d in DTYPES])  # fmt: skip
        cases = [
            Case(f"{name}-{np.dtype(d)}", pooled(name, window, d), (array(3, 4, dtype=d),))
            for d in (np.float16, ml_dtypes.bfloat16, np.complex64)
        ]
        sweep([transformed(c, t) for c in cases for t in ("jvp", "vjp")])


def test_windows_at_double_precision_equal_jax_s():
    cases = [
        Case(n, pooled(n, ((2, 2), (1, 2), "SAME"), np.float64), (array(3, 4, dtype=np.float64),))
        for n in ("add", "max", "min")
    ]
    with wide_numbers():
        sweep([transformed(c, t) for c in cases for t in ("plain", "jvp", "vjp", "jvp_of_grad")])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_windows_are_batched_along_every_axis_as_in_jax(axis):
    def batched(name):
        return lambda jax: jax.vmap(run_on(jax, pooled(name, ((2, 3), (1, 2), "SAME"))), in_axes=axis)

    def graded(name):
        def program(jax):
            f = run_on(jax, pooled(name, ((2, 3), (1, 2), "SAME")))
            return jax.vmap(jax.grad(lambda x: f(x).sum()), in_axes=axis, out_axes=axis)

        return program

    sweep(
        [
            Case(f"{n}-{make.__name__}", make(n), (array(4, 5, 6),))
            for n in ("add", "max", "min")
            for make in (batched, graded)
        ]
    )


def mapped(program, axes):
    return lambda jax: jax.vmap(run_on(jax, program), in_axes=axes)


@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 2), (2, 1)])
def test_winners_are_batched_along_every_axis_as_in_jax(axes):
    cases = []
    for case in (SCATTER, GATHER, LEAST):
        args = [
            x if a is None else np.moveaxis(np.stack([x, 2 * x]), 0, a) for x, a in zip(case.args, axes, strict=True)
        ]
        cases.append(Case(f"{case.name}-{axes}", mapped(case.program, axes), tuple(args)))
    sweep(cases)


def test_winners_under_every_transform_equal_jax_s():
    sweep(
        [
            transformed(c, t)
            for c in (SCATTER, GATHER, LEAST)
            for t in ("plain", "jvp", "vjp", "grad", "vmap_of_grad", "jvp_of_grad", "hessian")
        ]
    )


def test_derivatives_with_respect_to_one_operand_equal_jax_s():
    def of(argnum):
        def program(jax):
            f = run_on(jax, GATHER.program)
            return jax.grad(lambda t, x: (f(t, x) ** 2).sum(), argnum)

        return program

    sweep([Case(str(i), of(i), GATHER.args) for i in (0, 1)])


def test_winners_of_other_dtypes_equal_jax_s():
    sweep(
        [
            Case(f"{c.name}-{np.dtype(d)}", c.program, tuple(x.astype(d) for x in c.args), raises=d is np.complex64)
            for c in (SCATTER, GATHER)
            for d in (np.float16, np.complex64)
        ]
    )
    scatters = [np.int32, np.uint8, bool]
    sweep([Case(f"{np.dtype(d)}", SCATTER.program, tuple(x.astype(d) for x in SCATTER.args)) for d in scatters])


def test_ties_go_to_jax_s_winner():
    flat = np.zeros((4, 4), np.float32)
    special = np.array([[1, np.nan, 0.0, -0.0], [-0.0, 0.0, INF, INF], [-INF, -INF, 2, 2]], np.float32)
    sweep(
        [
            transformed(Case(f"{n}-{i}", pooled(n, ((2, 2), (1, 1), "SAME")), (x,)), t)
            for n in ("max", "min")
            for i, x in enumerate((flat, special))
            for t in ("jvp", "vjp")
        ],
        tier="full",
    )


def test_gradients_of_cropped_windows_are_those_of_windows_over_a_slice():
    jax, shape, window = ours(), CROPPED[0], CROPPED[1:]
    inner = (*window[:2], ((0, 0), (0, 1)))
    x = array(*shape)
    for name in ("add", "max", "min"):
        f, g = (run_on(jax, pooled(name, w)) for w in (window, inner))
        cropped = jax.grad(lambda x, g=g: (g(x[:-1, 1:]) ** 2).sum())(x)
        np.testing.assert_array_equal(jax.grad(lambda x, f=f: (f(x) ** 2).sum())(x), cropped)


def test_an_extremum_of_rank_0_has_a_derivative():
    jax = ours()
    assert jax.jit(jax.value_and_grad(run_on(jax, pooled("max", ((), ())))))(2.0) == (2.0, 1.0)


def test_gathering_integers_takes_those_at_the_winners():
    x = np.arange(20, dtype=np.int32).reshape(4, 5)
    found = run_on(ours(), GATHER.program)(x + 100, x)
    np.testing.assert_array_equal(found, [[106, 108, 109], [116, 118, 119]])


def test_select_and_scatter_by_functions_equals_jax_s():
    def program(jax, lax):
        def scalars(f):
            return jax.make_jaxpr(f)(np.float32(0), np.float32(0)).jaxpr

        return lambda x, s: lax.select_and_scatter_p.bind(
            x, s, np.float32(2), select_jaxpr=scalars(lax.ge), select_consts=(), scatter_consts=(),
            scatter_jaxpr=scalars(lambda a, b: a * b + 1), window_dimensions=(2, 2), window_strides=(2, 2),
            padding=((0, 0), (0, 1)))  # fmt: skip

    case = Case("select_and_scatter", program, (array(4, 5), array(2, 3)))
    sweep([transformed(case, t) for t in ("plain", "jit", "grad", "vmap")])


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER", "same", "Valid", "same_lower"])
def test_padding_names_mean_jax_s_pairs(padding):
    shapes = [((5, 6), (2, 3), (2, 1)), ((0, 6), (2, 3), (2, 1)), ((5, 6), (9, 1), (4, 7)), ((), (), ())]
    same(lambda lax: [lax.padtype_to_pads(*map(np.array, s), padding) for s in shapes])
    same(lambda lax: [lax.padtype_to_pads(*s, padding) for s in shapes])


def test_window_counts_equal_jax_s():
    windows = [
        ((4, 5), (2, 2), (1, 2), ((0, 1), (1, 0))),
        ((4, 5), (9, 2), (1, 2), ((0, 0), (0, 0))),
        ((4, 5), (2, 2), (1, 2), ((0, 1), (1, 0)), (2, 1), (1, 2)),
        ((0, 5), (1, 2), (1, 2), ((0, 0), (0, 0)), (2, 2)),
        ((4, 5), (2, 2), (1, 2), ((0, -9), (0, 0)), None, (1, 2)),
    ]
    same(lambda lax: [lax.reduce_window_shape_tuple(*w) for w in windows])


def window(*args, x=(4, 5), init=0.0):
    return lambda lax: lax.reduce_window(array(*x), init, lax.add, *args)


ERRORS = {
    "rank": window((2,), (2, 2)),
    "strides": window((2, 2), (2,)),
    "base dilation": window((2, 2), (1, 1), "VALID", (1,)),
    "window dilation": window((2, 2), (1, 1), "VALID", (1, 1), (1,)),
    "no pairs": window((2, 2), (1, 1), ((1, 1),)),
    "an int": window((2, 2), (1, 1), 1),
    "ints": window((2, 2), (1, 1), ((1, 1), 1)),
    "unknown padding": window((2, 2), (1, 1), "FOO"),
    "empty window": window((2, 0)),
    "negative window": window((2, -1)),
    "no stride": window((2, 2), (2, 0)),
    "no base dilation": window((2, 2), (1, 1), "VALID", (0, 1)),
    "no window dilation": window((2, 2), (1, 1), "VALID", (1, 1), (0, 1)),
    "initial array": window((2, 2), init=np.zeros(1, np.float32)),
    "gathered shapes": lambda lax: run_on_gather(lax, array(2, 3)),
    "unknown dilated gradient": lambda jax, lax: jax.grad(
        lambda x: lax.reduce_window(x, -INF, lax.max, (2,), (1,), "VALID", (1,), (2,)).sum()
    )(array(5)),
}


def run_on_gather(lax, tangents):
    return winning("select_and_gather_add_p", **DILATIONS)(lax)(tangents, array(4, 5))


@pytest.mark.parametrize("name", ERRORS)
def test_windows_that_do_not_fit_are_rejected(name):
    same_error(lambda: run_on(ours(), ERRORS[name]), lambda: run_on(theirs(), ERRORS[name]))


def pushed(name, dtype):
    f = pooled(name, ((2, 3), (1, 2), "SAME"), dtype)
    return lambda jax: lambda x, t: jax.jvp(run_on(jax, f), (x,), (t,))[1]


ON_GPUS = pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])


@ON_GPUS
@pytest.mark.filterwarnings("ignore:Using reduced precision")
def test_tangents_of_extrema_on_gpus_are_made_by_jax_s_operations(dtype):
    def operations(jax):
        traced = jax.jit(pushed("min", dtype)(jax)).trace(*(array(4, 5, dtype=dtype),) * 2)
        text = canonical(traced.lower(lowering_platforms=("cuda",)).as_text())
        lines = [re.sub(r"%\w+", "%", line).strip() for line in text.splitlines()]
        idle = re.compile(r"dims = \[\] : \((tensor<ui\d+>)\) -> \1$")
        return sorted(line for line in lines if not idle.search(line))

    with wide_numbers():
        assert operations(ours()) == operations(theirs())


@ON_GPUS
@pytest.mark.filterwarnings("ignore:Using reduced precision")
def test_tangents_of_extrema_on_gpus_are_those_on_cpus(dtype, monkeypatch):
    jax = ours()
    x, t = array(4, 5, dtype=dtype), array(5, 4, dtype=dtype).T
    with jax.enable_x64(True):
        for name in ("max", "min"):
            wanted = np.asarray(jax.jit(pushed(name, dtype)(jax))(x, t), np.float64)
            with monkeypatch.context() as patch:
                patch.setattr("minijax.primitives.window._GPUS", ("cpu",))
                found = np.asarray(jax.jit(pushed(name, dtype)(jax))(x, t), np.float64)
            # Of 52 bits of mantissa 20 are kept.
            assert (found != wanted).any() == (dtype is np.float64)
            np.testing.assert_allclose(found, wanted, rtol=2.0**-20 if dtype is np.float64 else 0)


def test_maximal_windows_on_tpu_need_no_padding():
    def text(jax):
        f = run_on(jax, pooled("max", ((2, 2), (1, 2), "SAME")))
        graded = jax.jit(jax.grad(lambda x: f(x).sum())).trace(array(4, 5))
        return graded.lower(lowering_platforms=("tpu",)).as_text()

    mine, other = text(ours()), text(theirs())
    for word in ("stablehlo.pad", "stablehlo.slice", "padding = dense<[[0, 1], [0, 1]]>"):
        assert (word in mine) == (word in other)


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID", "same"])
def test_kinds_of_padding_give_jax_s_pairs(padding):
    for shape, window, strides in [
        ((7, 5), (3, 2), (1, 1)),
        ((7, 5), (3, 2), (2, 3)),
        ((0, 5), (3, 2), (2, 3)),
        ((), (), ()),
        (np.array([7]), np.array([9]), np.array([4])),
    ]:
        same(lambda lax, given=(shape, window, strides): lax.padtype_to_pads(*given, padding))


@pytest.mark.parametrize("padding, phrase", [("foo", "Unrecognized padding type"), (3, "Unknown padding type"),
                                             (None, "Unknown padding type"), (((0, 1),), "Unknown padding")])  # fmt: skip
def test_other_paddings_are_rejected(padding, phrase):
    same_refusal(lambda lax: lambda: lax.padtype_to_pads((7,), (3,), (1,), padding), phrases=[phrase])
