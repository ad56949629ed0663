"""Nested transforms as people write them, over arguments of any trees: each maps a function and its arguments to others.

What a wrapper chooses is drawn from its own generator of random numbers, so both sides choose alike.
"""

import importlib
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

Wrapped = tuple[Callable, tuple]
SIZE = 3  # of the axes that batching adds

POLICIES = (
    "everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable",
    "save_only_these_names('kept')", "save_anything_except_these_names('kept')", "offload_dot",
)  # fmt: skip


def is_inexact(x: Any) -> bool:
    name = str(x.dtype) if hasattr(x, "dtype") else type(x).__name__
    return name.startswith(("float", "bfloat", "complex")) and name != "float0"


def is_key(x: Any) -> bool:
    return str(getattr(x, "dtype", "")).startswith("key<")


def inexact_numbers(jax: ModuleType, args: tuple) -> tuple[int, ...]:
    """The arguments that have inexact leaves only."""
    found = [i for i, a in enumerate(args) if (x := jax.tree.leaves(a)) and all(map(is_inexact, x))]
    return tuple(found) or (0,)


def mapped(jax: ModuleType, f: Callable, *trees: Any) -> Any:
    return jax.tree.map(f, *trees)


def inexact_results(jax: ModuleType, f: Callable) -> Callable:
    """`f` with its inexact results only, as a list."""

    def inexact(*args: Any) -> list:
        return [r for r in jax.tree.leaves(f(*args)) if is_inexact(r)] or [jax.numpy.float32(0)]

    return inexact


def loss_of(jax: ModuleType, f: Callable) -> Callable:
    """The sum of the real parts of the inexact results."""

    def loss(*args: Any) -> Any:
        total = 0.0
        for r in inexact_results(jax, f)(*args):
            total = total + jax.numpy.sum(jax.numpy.real(r)).astype(np.float32)
        return total

    return loss


def tangent(jax: ModuleType, x: Any) -> Any:
    return jax.numpy.full_like(x, 0.5) if is_inexact(x) else np.zeros(np.shape(x), jax.dtypes.float0)


def part_of(f: Callable, args: tuple, numbers: tuple[int, ...]) -> Callable:
    """`f` as a function of some of its arguments."""

    def partial(*chosen: Any) -> Any:
        given = dict(zip(numbers, chosen, strict=True))
        return f(*(given.get(i, a) for i, a in enumerate(args)))

    return partial


# Calls


def jit(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    options = rng.choice([{}, {}, {"inline": True}, {"keep_unused": True}, {"donate_argnums": 0}])
    return jax.jit(f, **options), args


def jit_static(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """Python numbers become static arguments, by position or by name."""
    static = [i for i, a in enumerate(args) if isinstance(a, bool | int | float | str)]
    others = [i for i in range(len(args)) if i not in static]
    by_name = rng.random() < 0.5

    def named(*traced: Any, numbers: tuple = ()) -> Any:
        given = dict(zip(static, numbers, strict=True)) | dict(zip(others, traced, strict=True))
        return f(*(given[i] for i in range(len(args))))

    if by_name:
        jitted = jax.jit(named, static_argnames="numbers", keep_unused=rng.random() < 0.3)
        return lambda *traced: jitted(*traced, numbers=tuple(args[i] for i in static)), tuple(args[i] for i in others)
    jitted = jax.jit(f, static_argnums=tuple(static))
    return part_of(jitted, args, tuple(others)), tuple(args[i] for i in others)


def keywords(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """The arguments go by keyword, out of order."""
    names = [f"k{i}" for i in range(len(args))]
    call = jax.jit(lambda **given: f(*(given[name] for name in names)))
    order = rng.sample(names, len(names))
    return lambda *given: call(**{name: given[names.index(name)] for name in order}), args


def partial_argument(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """A `Partial` of the function and its first argument is an argument of a jitted function."""
    call = jax.jit(lambda g, *rest: g(*rest))
    return lambda first, *rest: call(jax.tree_util.Partial(f, first), *rest), args


def captured(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """The last argument is closed over."""
    if len(args) < 2:
        return jit(jax, f, args, rng)
    return jax.jit(lambda *given: f(*given, args[-1])), args[:-1]


def checkpoint(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    policies = jax.checkpoint_policies
    chosen = rng.choice(["", *POLICIES])
    policy = None
    if chosen == "offload_dot":
        policy = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    elif chosen:
        policy = eval(f"policies.{chosen}", {"policies": policies})
    options = {} if policy is None else {"policy": policy}
    return jax.checkpoint(f, prevent_cse=rng.random() < 0.6, **options), args


def closure_convert(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    def converted(*given: Any) -> Any:
        g, consts = jax.closure_convert(lambda *a: f(*a), *given)
        return g(*given, *consts)

    return converted, args


def as_jaxpr(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """The function is made a jaxpr, which is called."""

    def evaluated(*given: Any) -> Any:
        closed, shapes = jax.make_jaxpr(f, return_shape=True)(*given)
        results = jax.extend.core.jaxpr_as_fun(closed)(*jax.tree.leaves(given))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return evaluated, args


def shapes_first(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """Zeros of the shapes of the results are added."""

    def added(*given: Any) -> Any:
        shapes = jax.eval_shape(f, *given)
        start = mapped(jax, lambda s: jax.numpy.zeros(s.shape, s.dtype), shapes)
        return mapped(jax, lambda a, b: a + b, start, f(*given))

    return added, args


def in_context(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    make = rng.choice(
        [
            lambda: jax.named_scope("scope"),
            lambda: jax.default_matmul_precision("float32"),
            lambda: jax.numpy_rank_promotion("warn"),
            lambda: jax.numpy_dtype_promotion("strict"),
            lambda: jax.default_prng_impl("rbg"),
            lambda: jax.debug_nans(False),
            lambda: jax.enable_x64(True),
        ]
    )

    def within(*given: Any) -> Any:
        with make():
            return f(*given)

    return within, args


# Derivatives


def grad(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    numbers = inexact_numbers(jax, args)
    loss = loss_of(jax, f)
    transform = rng.choice([jax.grad, jax.grad, jax.value_and_grad])
    argnums = rng.choice([numbers, numbers[0]])
    if rng.random() < 0.25:
        return transform(lambda *a: (loss(*a), f(*a)), argnums, has_aux=True), args
    if rng.random() < 0.15:
        return transform(loss, tuple(range(len(args))), allow_int=True), args
    return transform(loss, argnums), args


def jvp(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    has_aux = rng.random() < 0.2

    def pushed(*given: Any) -> Any:
        tangents = mapped(jax, lambda x: tangent(jax, x), given)
        if has_aux:
            return jax.jvp(lambda *a: (f(*a), f(*a)), given, tangents, has_aux=True)
        return jax.jvp(f, given, tangents)

    return pushed, args


def vjp(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    kind = rng.choice(["plain", "plain", "aux", "jit", "twice"])

    def pulled(*given: Any) -> Any:
        if kind == "aux":
            results, pull, aux = jax.vjp(lambda *a: (f(*a), a), *given, has_aux=True)
            return results, pull(mapped(jax, lambda r: tangent(jax, r), results)), aux
        results, pull = jax.vjp(f, *given)
        cotangents = mapped(jax, lambda r: tangent(jax, r), results)
        if kind == "jit":
            return results, jax.jit(lambda p, ct: p(ct))(pull, cotangents)
        return (results, pull(cotangents), *([pull(cotangents)] if kind == "twice" else []))

    numbers = inexact_numbers(jax, args)
    if rng.random() < 0.7:

        def of_some(*given: Any) -> Any:
            results, pull = jax.vjp(part_of(f, given, numbers), *(given[i] for i in numbers))
            return results, pull(mapped(jax, lambda r: tangent(jax, r), results))

        return of_some, args
    return pulled, args


def linearize(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    kind = rng.choice(["push", "twice", "transpose", "vmap"])
    numbers = inexact_numbers(jax, args)

    def linear(*given: Any) -> Any:
        chosen = [given[i] for i in numbers]
        results, push = jax.linearize(part_of(f, given, numbers), *chosen)
        tangents = mapped(jax, lambda x: tangent(jax, x), chosen)
        if kind == "transpose":
            back = jax.linear_transpose(inexact_results(jax, push), *tangents)
            return results, back([jax.numpy.ones_like(r) for r in inexact_results(jax, push)(*tangents)])
        if kind == "vmap":
            rows = mapped(jax, lambda x: jax.numpy.stack([x] * 2), tangents)
            return results, jax.vmap(push)(*rows)
        return results, [push(*tangents) for _ in range(1 + (kind == "twice"))]

    return linear, args


def jacobian(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    numbers = inexact_numbers(jax, args)
    order = rng.choice([jax.jacfwd, jax.jacrev, jax.jacrev, jax.jacfwd])
    if rng.random() < 0.3:
        return jax.hessian(loss_of(jax, f), argnums=numbers[0]), args
    return order(inexact_results(jax, f), argnums=rng.choice([numbers, numbers[0]])), args


def custom_jvp(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    custom = jax.custom_jvp(lambda *a: f(*a))
    zeros = rng.random() < 0.2

    def rule(primals: tuple, tangents: tuple) -> Any:
        if zeros:
            tangents = mapped(
                jax,
                lambda t: t if hasattr(t, "weak_type") or not hasattr(t, "aval") else jax.numpy.zeros(t.shape, t.dtype),
                tangents,
            )
        return jax.jvp(f, primals, tangents)

    custom.defjvp(rule, symbolic_zeros=zeros)
    return custom, args


def custom_vjp(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    fixed = tuple(i for i, a in enumerate(args) if isinstance(a, bool | int | str) or a is None)
    fixed = fixed if rng.random() < 0.6 else ()
    others = tuple(i for i in range(len(args)) if i not in fixed)
    custom = jax.custom_vjp(lambda *a: f(*a), nondiff_argnums=fixed)

    def forward(*given: Any) -> Any:
        results, pull = jax.vjp(part_of(f, given, others), *(given[i] for i in others))
        return results, pull

    def backward(*given: Any) -> Any:
        *_, pull, cotangents = given
        return pull(cotangents)

    custom.defvjp(forward, backward, optimize_remat=rng.random() < 0.25)
    if not fixed:
        return custom, args
    return part_of(custom, args, others), tuple(args[i] for i in others)


# Batching


def stacked(jax: ModuleType, x: Any, axis: int | None, size: int = SIZE) -> Any:
    """Copies of an argument along an axis, each with other values."""
    if axis is None or x is None:
        return x
    if is_key(x):
        return jax.numpy.stack([x] * size, axis)
    narrow = {float: np.float32, int: np.int32, complex: np.complex64}
    value = np.asarray(x, narrow.get(type(x)))
    return np.stack([np.roll(value, i) for i in range(size)], axis)


def _is_tree(axes: Any) -> bool:
    return axes is not None and not isinstance(axes, int)


def vmap(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    axes = tuple(rng.choice([0, 0, 0, None, -1]) for _ in args)
    leaves = [jax.tree.leaves(a) for a in args]
    if rng.random() < 0.35:
        # A tree of axes for one argument that is a dict or a tuple.
        axes = tuple(
            mapped(jax, lambda _: rng.choice([0, -1]), a) if len(x) > 1 else n
            for a, x, n in zip(args, leaves, axes, strict=True)
        )
    if all(a is None or not x for a, x in zip(axes, leaves, strict=True)):
        axes = tuple(0 for _ in args)

    def rows(a: Any, axis: Any) -> Any:
        if _is_tree(axis):
            return mapped(jax, lambda x, n: stacked(jax, x, n), a, axis)
        return mapped(jax, lambda x: stacked(jax, x, axis), a)

    options: dict[str, Any] = rng.choice([{}, {}, {}, {"out_axes": -1}, {"axis_size": SIZE}, {"axis_name": "i"}])
    g = f
    if "axis_name" in options:
        name = rng.choice(["psum", "pmean", "pmax", "all_gather", "axis_index", "ppermute"])
        g = collective(jax, f, name)
    return jax.vmap(g, axes, **options), tuple(rows(a, n) for a, n in zip(args, axes, strict=True))


def collective(jax: ModuleType, f: Callable, name: str) -> Callable:
    def reduced(r: Any) -> Any:
        if name == "axis_index":
            return r + jax.lax.axis_index("i") if not is_key(r) else r
        if name == "ppermute":
            return jax.lax.ppermute(r, "i", [(i, (i + 1) % SIZE) for i in range(SIZE)])
        return getattr(jax.lax, name)(r, "i")

    return lambda *given: mapped(jax, reduced, f(*given))


def custom_vmap(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    custom = jax.custom_batching.custom_vmap(lambda *a: f(*a))

    def rule(size: int, is_batched: list, *given: Any) -> Any:
        axes = mapped(jax, lambda b: 0 if b else None, tuple(is_batched))
        results = jax.vmap(f, axes, axis_size=size)(*given)
        return results, mapped(jax, lambda _: True, results)

    custom.def_vmap(rule)
    return custom, args


# Control flow


def lax_map(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    size = rng.choice([None, None, 2])
    options = {} if size is None else {"batch_size": size}
    rows = mapped(jax, lambda x: stacked(jax, x, 0), args)
    return lambda *given: jax.lax.map(lambda a: f(*a), given, **options), rows


def scan(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    start = rng.choice([0, 0.0, np.float32(0), {"n": 0, "none": None}, (0, 1.5), True])
    options = rng.choice([{}, {}, {"reverse": True}, {"unroll": 2}, {"unroll": True}, {"_split_transpose": True}])
    number = rng.choice([None, *range(len(args))])

    def step(carry: Any, given: tuple) -> Any:
        return mapped(jax, lambda c: c if isinstance(c, bool) else c + 0, carry), f(*given)

    if number is None or len(args) < 2:
        rows = mapped(jax, lambda x: stacked(jax, x, 0), args)
        return lambda *given: jax.lax.scan(step, start, given, **options), rows

    def over(*given: Any) -> Any:
        # One argument is captured, the others are scanned over.
        others = [i for i in range(len(args)) if i != number]
        rest = tuple(given[i] for i in others)
        return jax.lax.scan(lambda c, x: step(c, _all(given, others, x)), start, rest, **options)

    rows = tuple(a if i == number else mapped(jax, lambda x: stacked(jax, x, 0), a) for i, a in enumerate(args))
    return over, rows


def _all(given: tuple, others: list[int], chosen: tuple) -> tuple:
    found = dict(zip(others, chosen, strict=True))
    return tuple(found.get(i, x) for i, x in enumerate(given))


def repeated(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """The results are carried through a loop that calls the function again."""
    kind = rng.choice(["fori", "while", "scan"])

    def loop(*given: Any) -> Any:
        def pick(i: Any, carry: Any) -> Any:
            return mapped(jax, lambda a, b: jax.numpy.where(i > 0, a, b), carry, f(*given))

        start = f(*given)
        if kind == "fori":
            return jax.lax.fori_loop(0, 2, pick, start)
        if kind == "scan":
            return jax.lax.scan(lambda c, i: (pick(i, c), None), start, jax.numpy.arange(2))[0]
        state = jax.lax.while_loop(
            lambda s: s["i"] < 2, lambda s: {"i": s["i"] + 1, "c": pick(s["i"], s["c"])}, {"i": 0, "c": start}
        )
        return state["c"]

    return loop, args


def cond(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    kind = rng.choice(["operands", "captured", "switch", "python"])

    def other(*given: Any) -> Any:
        return mapped(jax, jax.numpy.zeros_like, f(*given))

    def chosen(*given: Any) -> Any:
        first = next((x for x in jax.tree.leaves(given) if not is_key(x)), 1.0)
        test = jax.numpy.sum(jax.numpy.real(first)) > 0.5
        if kind == "operands":
            return jax.lax.cond(test, f, other, *given)
        if kind == "captured":
            return jax.lax.cond(test, lambda: f(*given), lambda: other(*given))
        if kind == "python":
            return jax.lax.cond(True, f, other, *given)
        return jax.lax.switch(test.astype(int), [f, other, f], *given)

    return chosen, args


# References and effects


def reference(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """Results go through references; in a loop, or at once."""
    kind = rng.choice(["once", "fori", "freeze"])

    def stored(*given: Any) -> Any:
        results = f(*given)
        refs = mapped(jax, lambda r: jax.new_ref(jax.numpy.zeros_like(r)), results)
        if kind == "fori":

            @jax.jit
            def fill() -> None:
                def step(i: Any, _: None) -> None:
                    mapped(jax, lambda ref, r: ref.__setitem__(..., jax.numpy.where(i > 0, ref[...], r)), refs, results)

                jax.lax.fori_loop(0, 2, step, None)

            fill()
        else:
            mapped(jax, lambda ref, r: ref.__setitem__(..., r), refs, results)
        return mapped(jax, jax.freeze if kind == "freeze" else lambda ref: ref[...], refs)

    return stored, args


def effect(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    kind = rng.choice(["debug", "ordered", "print", "pure", "io"])

    def watched(*given: Any) -> Any:
        results = f(*given)
        leaves = [r for r in jax.tree.leaves(results) if not is_key(r)]
        if kind in ("debug", "ordered"):
            jax.debug.callback(nothing, leaves, ordered=kind == "ordered")
        elif kind == "print":
            jax.debug.print("", *leaves)
        elif leaves:
            first = leaves[0]
            shape = jax.ShapeDtypeStruct(first.shape, first.dtype)
            if kind == "pure":
                return results, jax.pure_callback(same, shape, first, vmap_method=method)
            return results, jax.experimental.io_callback(same, shape, first)
        return results

    method = rng.choice(["sequential", "expand_dims", "broadcast_all"])
    return watched, args


def nothing(*values: Any) -> None:
    pass


def same(value: Any) -> Any:
    return np.asarray(value)


# Meshes


def shard_map(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    """The function on each of two devices."""
    mesh = jax.make_mesh((2,), ("m",), devices=jax.devices()[:2])
    spec = jax.P("m")
    check = rng.random() < 0.6
    if rng.random() < 0.5:
        return jax.shard_map(f, mesh=mesh, in_specs=jax.P(), out_specs=jax.P(), check_vma=check), args
    rows = mapped(jax, lambda x: stacked(jax, x, 0, 2), args)

    def on_part(*given: Any) -> Any:
        results = f(*mapped(jax, lambda x: x[0], given))
        return mapped(jax, lambda r: jax.numpy.expand_dims(r, 0), results)

    return jax.shard_map(on_part, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check), rows


def checkify(jax: ModuleType, f: Callable, args: tuple, rng: random.Random) -> Wrapped:
    module = importlib.import_module(f"{jax.__name__}.experimental.checkify")
    errors = rng.choice([module.user_checks, module.float_checks, module.index_checks])
    checked = module.checkify(f, errors=errors)
    return lambda *given: checked(*given)[1], args


WRAPPERS = {
    w.__name__: w
    for w in (
        jit, jit_static, keywords, partial_argument, captured, checkpoint, closure_convert, as_jaxpr, shapes_first,
        in_context, grad, jvp, vjp, linearize, jacobian, custom_jvp, custom_vjp, vmap, custom_vmap, lax_map, scan,
        repeated, cond, reference, effect, shard_map, checkify,
    )
}  # fmt: skip
WEIGHTS = {"jit": 3, "grad": 4, "vmap": 4, "jvp": 2, "vjp": 3, "scan": 2, "linearize": 2, "checkpoint": 2}
# Those of many directions make large programs.
LARGE = ("jacobian", "repeated", "checkify")
DERIVATIVES = ("grad", "jvp", "vjp", "linearize", "jacobian", "custom_jvp", "custom_vjp")


def drawn(rng: random.Random) -> tuple[tuple[str, int], ...]:
    """Names of wrappers, the innermost first, each with the seed of its choices."""
    names = list(WRAPPERS)
    weights = [WEIGHTS.get(name, 1) for name in names]
    count = rng.choices([1, 2, 3, 4], [3, 4, 3, 2])[0]
    chosen = rng.choices(names, weights, k=count)
    large = [name for name in chosen if name in LARGE]
    kept = [name for name in chosen if name not in large[1:]] if len(large) > 1 else chosen
    return tuple((name, rng.randrange(1000)) for name in kept)


def wrapped(jax: ModuleType, f: Callable, args: tuple, chosen: tuple[tuple[str, int], ...]) -> Wrapped:
    for name, seed in chosen:
        f, args = WRAPPERS[name](jax, f, args, random.Random(seed))
    return f, args
