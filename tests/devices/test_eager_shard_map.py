"""Eager `shard_map`: its body runs operation by operation, so that values print and Python can read them."""

import compare
import numpy as np
import pytest
from mesh_language import numbers, same_errors

import minijax

pytestmark = pytest.mark.oracle


def both(body, capfd, args=None, specs=None, **options):
    """Requires that `body`, a function of the package, prints and returns the same on both sides."""
    sides = []
    for jax in (minijax, compare.theirs()):
        mesh = jax.make_mesh(
            (2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2, devices=jax.devices()[:4]
        )
        P = jax.sharding.PartitionSpec
        ins, outs = (specs or (lambda P: (P("x"), P("x"))))(P)
        capfd.readouterr()
        f = jax.shard_map(body(jax), mesh=mesh, in_specs=ins, out_specs=outs, **options)
        result = f(*(args or (numbers(4, 2),)))
        jax.effects_barrier()
        sides.append((capfd.readouterr().out, jax.tree.map(np.asarray, result)))
    (ours, our_result), (theirs, their_result) = sides
    assert ours == theirs
    why = "jax runs each operation by itself, where ours are one program"
    compare.same_value(our_result, their_result, rtol=1e-6, atol=1e-6, why=why)
    return ours


def test_values_print_as_in_jax(capfd):
    def body(jax):
        jnp, lax = jax.numpy, jax.lax

        def f(v):
            print(v, v.sum(), lax.axis_index("y"))
            w = jnp.sin(v)
            total = lax.psum(w, "x")
            print(total, "and", jax.jit(lambda t: t + 1)(total[0]), jnp.arange(2) + 1)
            for row in range(2):
                w = w.at[row].add(row)
            print(w, lax.all_gather(v, "x", tiled=True), f"{v[0, 0].astype(jnp.bfloat16)}")
            return w * total

        return f

    text = both(body, capfd)
    assert text.count("On cpu:3 at mesh coordinates (x, y,) = (1, 1):") == 9
    both(body, capfd, check_vma=False, specs=lambda P: (P("y"), P("y")))


def test_keys_trees_and_custom_rules(capfd):
    def body(jax):
        jnp = jax.numpy

        @jax.custom_jvp
        def bent(x):
            print("bent", x)
            return x * 2

        @jax.custom_vjp
        def turned(x):
            print("turned", x)
            return x * 3

        bent.defjvp(lambda xs, ts: (bent(*xs), ts[0]))
        turned.defvjp(lambda x: (print("forward", x) or x * 3, None), lambda _, ct: (print("back", ct) or ct,))

        def f(tree, k):
            key = jax.random.key(3) if k.shape else None
            print(key if key is None else tree["a"], jax.random.normal(jax.random.fold_in(key, 1), (2,)))
            grad = jax.grad(lambda x: turned(x).sum())(tree["a"])
            return {"a": bent(turned(tree["a"])) + grad, "b": jnp.sum(k)[None]}

        return f

    args = ({"a": numbers(4)}, np.arange(4))
    both(body, capfd, args, lambda P: ((P("x"), P("y")), {"a": P("x"), "b": P("y")}))


def test_python_may_read_replicated_values(capfd):
    def body(jax):
        def f(v):
            for _ in range(5):
                if jax.lax.psum(v.sum(), "x") > 0:
                    break
                v = v + 3
            print(jax.lax.psum(v.sum(), "x").item())
            return -v

        return f

    assert len(both(body, capfd).split()) == 1


def test_callbacks_run_once_on_each_device(capfd):
    def body(jax):
        def f(v):
            w = jax.pure_callback(lambda x: print("called") or np.sin(x), v, v)
            print(w[0])
            print(w[1] + jax.lax.psum(v, "x")[0])
            return w

        return f

    jax = minijax
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    P = jax.sharding.PartitionSpec
    f = jax.shard_map(body(jax), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    with jax.set_mesh(mesh):
        np.testing.assert_allclose(f(jax.device_put(numbers(4, 2), P("x"))), np.sin(numbers(4, 2)), rtol=1e-6)
    assert capfd.readouterr().out.count("called") == 2  # once on each device


def test_reads_of_varying_values_are_refused():
    same_errors(
        [
            (
                lambda s: s.shard_map(lambda q: 1 if q.sum() > 0 else q)(s.auto_vector),
                "Attempted boolean conversion of traced array",
            ),
            (
                lambda s: s.shard_map(lambda q: float(s.lax.psum(q.sum(), "x")) * q)(s.auto_vector),
                "The problem arose with the `float` function",
            ),
            (lambda s: s.shard_map(lambda q: np.asarray(q))(s.auto_vector), "__array__() was called on traced array"),
            (lambda s: s.shard_map(lambda q: q + s.jax.device_put(1, s.devices[0]))(s.auto_vector), "but got device"),
            (
                lambda s: [leak := [], s.shard_map(lambda q: leak.append(q) or q)(s.auto_vector), leak[0] + 1],
                "A function transformed by JAX had a side effect",
            ),
            (
                lambda s: s.jax.shard_map(lambda q: q, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P())(s.auto_vector),
                "require replication which can't be",
            ),
        ],
        shard_map=lambda s: lambda f: s.jax.shard_map(f, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")),
    )


def test_references_inside():
    jax, jnp = minijax, minijax.numpy
    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    P = jax.sharding.PartitionSpec

    def count(ref):
        ref[...] += jax.lax.axis_index("x").astype(ref.dtype)

    with jax.set_mesh(mesh):
        for how in (jax.jit, lambda f: f):
            ref = jax.new_ref(jnp.zeros(4, out_sharding=P("x")))
            how(jax.shard_map(count, out_specs=None))(ref)
            np.testing.assert_array_equal(ref[...], [0, 0, 1, 1])
        own = jax.shard_map(lambda v: (lambda r: [r.__setitem__(0, 5.0), r[...]][1])(jax.new_ref(v)), out_specs=P("x"))
        np.testing.assert_array_equal(jax.jit(own)(jnp.zeros(4, out_sharding=P("x"))), [5, 0, 5, 0])


@pytest.mark.parametrize("check_vma", [True, False])
def test_tangents_of_integers_go_through(check_vma):
    def program(jax):
        mesh, zeros = jax.make_mesh((2,), ("x",)), np.zeros((2,), jax.dtypes.float0)
        pull = lambda i, x: jax.vjp(jax.checkpoint(lambda i, x: (i, x * 2)), i, x)[1]((zeros, x))  # noqa: E731
        found = []
        for function, args in ((lambda *a: a, (zeros, 1.0)), (lambda x: (x, zeros), (1.0,)), (pull, (np.arange(2), X))):
            f = jax.shard_map(function, mesh=mesh, in_specs=jax.P(), out_specs=jax.P(), check_vma=check_vma)
            found += [f(*args), jax.jit(f)(*args)]
        return [np.asarray(x) for x in jax.tree.leaves(found)]

    compare.same(program)


X = np.arange(2, dtype=np.float32)
