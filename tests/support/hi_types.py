"""User-defined (hijax) types and primitives, on each side: pairs, mutable boxes, primitives with each kind of rule."""

import functools
import importlib
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any

from mesh_language import Side, side


def _module(s: Side, name: str) -> Any:
    return importlib.import_module(f"{s.jax.__name__}.{name}")


@functools.cache
def _made(make: Any, package: str) -> Any:
    return make(side(package))


def once(make: Any) -> Any:
    """Returns a function that calls `make` once for each side."""
    return lambda s: _made(make, s.jax.__name__)


@once
def pairs(s: Side) -> SimpleNamespace:  # noqa: C901 (a type and its operations)
    """A pair of arrays, whose tangents are pairs."""
    hijax, typeof, jnp = _module(s, "experimental.hijax"), s.jax.typeof, s.jnp

    @dataclass(frozen=True)
    class Pair:
        a: Any
        b: Any

    @dataclass(frozen=True)
    class PairTy(hijax.HiType):
        a: Any
        b: Any
        mat = None

        def lo_ty(self):
            return [self.a, self.b]

        def lower_val(self, value):
            return [value.a, value.b]

        def raise_val(self, a, b):
            return Pair(a, b)

        def to_tangent_aval(self):
            return PairTy(self.a.to_tangent_aval(), self.b.to_tangent_aval())

        def str_short(self, short_dtypes=False, **_):
            return f"Pair[{self.a.str_short(short_dtypes)},{self.b.str_short(short_dtypes)}]"

        def vspace_zero(self):
            return make(jnp.zeros(self.a.shape, self.a.dtype), jnp.zeros(self.b.shape, self.b.dtype))

        def vspace_add(self, x, y):
            return make(self.a.vspace_add(first(x), first(y)), self.b.vspace_add(second(x), second(y)))

        def dec_rank(self, size, spec):
            return PairTy(self.a.dec_rank(size, spec.a), self.b.dec_rank(size, spec.b))

        def inc_rank(self, size, spec):
            return PairTy(self.a.inc_rank(size, spec.a), self.b.inc_rank(size, spec.b))

        def leading_axis_spec(self):
            return Pair(self.a.leading_axis_spec(), self.b.leading_axis_spec())

        def shard(self, mesh, axes, check_vma, spec):
            parts = zip((self.a, self.b), spec.specs, strict=True)
            return PairTy(*[a.shard(mesh, axes, check_vma, p) for a, p in parts])

        def unshard(self, mesh, check_vma, spec):
            return PairTy(*[a.unshard(mesh, check_vma, p) for a, p in zip((self.a, self.b), spec.specs, strict=True)])

        swapped = hijax.aval_method(lambda pair: make(second(pair), first(pair)))
        total = hijax.aval_property(lambda pair: first(pair).sum() + second(pair).sum())

        def _add(self, pair, other):
            return make(first(pair) + other, second(pair) + other)

        def _getitem(self, pair, index):
            return (first, second)[index](pair)

    @dataclass(frozen=True)
    class PairSpec(hijax.HiPspec):
        specs: tuple

        def to_lo(self):
            return self.specs

        def to_tangent_spec(self):
            return self

        to_ct_spec = to_tangent_spec

    class Make(hijax.HiPrimitive):
        def is_high(self, *avals):
            return True

        def abstract_eval(self, a, b):
            return PairTy(a, b), set()

        def to_lojax(self, a, b):
            return Pair(a, b)

        def jvp(self, primals, tangents):
            return make(*primals), make(*map(hijax.instantiate_zeros, tangents))

        def transpose(self, ct, *operands):
            return first(ct), second(ct)

    class Part(hijax.HiPrimitive):
        def abstract_eval(self, pair):
            return getattr(pair, self.name), set()

        def to_lojax(self, pair):
            return getattr(pair, self.name)

        def jvp(self, primals, tangents):
            return self.bind(*primals), self.bind(*tangents)

        def transpose(self, ct, pair):
            parts = {n: getattr(pair.aval, n) for n in "ab"}
            return (make(*[ct if n == self.name else jnp.zeros(a.shape, a.dtype) for n, a in parts.items()]),)

    make_p, first_p, second_p = Make("make"), Part("a"), Part("b")

    def make(a, b):
        return make_p.bind(a, b)

    def first(pair):
        return first_p.bind(pair)

    def second(pair):
        return second_p.bind(pair)

    hijax.register_hitype(Pair, lambda pair: PairTy(typeof(pair.a), typeof(pair.b)))
    p = Pair(jnp.arange(3.0), jnp.ones(2))
    return SimpleNamespace(Pair=Pair, PairTy=PairTy, PairSpec=PairSpec, make=make, first=first, second=second, p=p)


@once
def boxes(s: Side) -> SimpleNamespace:  # noqa: C901 (a type and its operations)
    """A mutable box that holds a tree of arrays; `set` may change the type of the tree."""
    hijax, tree, typeof = _module(s, "experimental.hijax"), s.jax.tree, s.jax.typeof
    cur_qdd = _module(s, "experimental").cur_qdd

    class BoxEffect(_module(s, "extend.core").Effect):
        __str__ = lambda self: "BoxEffect"  # noqa: E731

    effect = BoxEffect()
    hijax.control_flow_allowed_effects.add_type(BoxEffect)

    @dataclass(frozen=True)
    class State:
        types: tuple
        treedef: Any

        def to_tangent_qdd(self):
            return State(tuple(a.to_tangent_aval() for a in self.types), self.treedef)

        def normalize(self):
            return State(tuple(a.normalize() for a in self.types), self.treedef)

        def raised(self, values):
            rest = iter(values)
            return self.treedef.unflatten([a.raise_val(*islice(rest, len(a.lo_ty()))) for a in self.types])

    class Box:
        def __init__(self, value=None):
            self.value = value

        def get(self):
            return read(self)

        def set(self, value):
            write(self, value)

        def cur_qdd(self):
            leaves, treedef = tree.flatten(self.value)
            return State(tuple(map(typeof, leaves)), treedef)

    class BoxTy(hijax.MutableHiType):
        has_qdd = True

        def __hash__(self):
            return hash(BoxTy)

        def __eq__(self, other):
            return isinstance(other, BoxTy)

        def str_short(self, short_dtypes=False, **_):
            return "BoxTy"

        def lo_ty_qdd(self, state):
            return [lo for a in state.types for lo in a.lo_ty()]

        def new_from_loval(self, state, *values):
            return Box(state.raised(values))

        def read_loval(self, state, box):
            leaves = tree.leaves(read(box))
            return [lo for a, x in zip(state.types, leaves, strict=True) for lo in a.lower_val(x)]

        def update_from_loval(self, state, box, *values):
            write(box, state.raised(values))

        def to_tangent_aval(self):
            return self

        get = hijax.aval_method(lambda box: read(box))
        set = hijax.aval_method(lambda box, value: write(box, value))

    class New(hijax.HiPrimitive):
        def is_high(self, *avals, treedef):
            return True

        def abstract_eval(self, *types, treedef):
            return hijax.AvalQDD(BoxTy(), State(types, treedef)), {effect}

        def to_lojax(self, *leaves, treedef):
            return Box(treedef.unflatten(leaves))

    class Set(hijax.HiPrimitive):
        multiple_results = True

        def is_high(self, *avals, treedef):
            return True

        def abstract_eval(self, box, *types, treedef):
            box.mutable_qdd.update(State(types, treedef))
            return [], {effect}

        def to_lojax(self, box, *leaves, treedef):
            box.value = treedef.unflatten(leaves)
            return []

        def jvp(self, primals, tangents, *, treedef):
            if isinstance(tangents[0], hijax.Zero):
                raise ValueError("a box that is not differentiated gets a tangent")
            set_p.bind(*primals, treedef=treedef)
            set_p.bind(tangents[0], *map(hijax.instantiate_zeros, tangents[1:]), treedef=treedef)
            return [], []

    class Get(hijax.HiPrimitive):
        multiple_results = True

        def is_high(self, *avals, types):
            return True

        def abstract_eval(self, box, *, types):
            return list(types), {effect}

        def to_lojax(self, box, *, types):
            return tree.leaves(box.value)

        def jvp(self, primals, tangents, *, types):
            return get_p.bind(*primals, types=types), get_p.bind(*tangents, types=types)

    new_p, set_p, get_p = New("new_box"), Set("set_box"), Get("get_box")

    def new(value):
        leaves, treedef = tree.flatten(value)
        return new_p.bind(*leaves, treedef=treedef)

    def write(box, value):
        leaves, treedef = tree.flatten(value)
        set_p.bind(box, *leaves, treedef=treedef)

    def read(box):
        state = cur_qdd(box)
        return state.treedef.unflatten(get_p.bind(box, types=state.types))

    hijax.register_hitype(Box, lambda box: BoxTy())

    def after(f, value=1.0, calls=1):
        """Returns the results of calls of `f` with a box of the value, and the value of the box afterwards."""
        box = Box(value)
        return [f(box) for _ in range(calls)], box.value

    def added(box, x=2.0):
        box.set(box.get() + x)
        return x

    return SimpleNamespace(Box=Box, new=new, after=after, added=added)


@once
def rules(s: Side) -> SimpleNamespace:
    """Primitives that square, each with another kind of rule."""
    hijax, typeof = _module(s, "experimental.hijax"), s.jax.typeof

    def square(**methods):
        def init(self, *avals, **params):
            self.in_avals, self.out_aval, self.params = avals, avals[0], params
            hijax.VJPHiPrimitive.__init__(self)

        kind = type(
            "Square", (hijax.VJPHiPrimitive,), dict(__init__=init, expand=lambda self, *xs: xs[0] ** 2, **methods)
        )
        return lambda *xs, **params: kind(*map(typeof, xs), **params)(*xs)

    forward = dict(vjp_fwd=lambda self, nonzeros, *xs: (self(*xs), xs))

    def backward(self, residuals, ct, *sums):
        for x, into in zip(residuals, sums, strict=True):
            into.accum(3 * ct * x)

    return SimpleNamespace(
        square=square,
        jvp=square(jvp=lambda self, xs, ts: (self(*xs), 5 * ts[0] * xs[0])),
        vjp=square(vjp_bwd_retval=lambda self, xs, ct: tuple(3 * ct * x for x in xs), **forward),
        sums=square(vjp_bwd=backward, **forward),
        lin=square(lin=lambda self, nonzeros, x: (self(x), x), linearized=lambda self, x, t: 7 * x * t),
        batch=square(batch=lambda self, axis, xs, dims: (xs[0] ** 3, dims[0])),
        dims=square(
            batch_dim_rule=lambda self, axis, dims: dims[0],
            jvp=lambda self, xs, ts: (self(*xs), 5 * ts[0] * xs[0]),
            vjp_bwd_retval=lambda self, xs, ct: tuple(3 * ct * x for x in xs),
            **forward,
        ),
    )
