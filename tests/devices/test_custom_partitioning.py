"""`custom_partitioning`: what each device computes is the user's to say."""

import importlib
import re

import pytest
from mesh_language import same, same_errors, side

pytestmark = pytest.mark.oracle


def module(s):
    return importlib.import_module(f"{s.jax.__name__}.experimental.custom_partitioning")


def kept(s):
    """A rule that keeps the shardings that the compiler has chosen; `notes` has what it was given."""

    def keeping(function, notes):
        def partition(*given):
            *static, mesh, args, result = given
            notes.append((given[: len(static)], str(mesh), str(args), str(result)))
            layout = lambda tree: s.jax.tree.map(lambda x: x.sharding, tree)  # noqa: E731
            return mesh, lambda *parts: function(*static, *parts), layout(result), layout(args)

        return partition

    return keeping


def call(s):
    """(function, what one device computes) -> the partitioned function, with its notes."""

    def make(whole, part=None, static=(), notes=None, partition=None, **how):
        f = module(s).custom_partitioning(whole, static_argnums=static)
        f.notes = [] if notes is None else notes
        f.def_partition(partition or kept(s)(part or whole, f.notes), **{"sharding_rule": "i j -> i j", **how})
        return f

    return make


def noted(s):
    """The value of a jitted call, and what the user's function was given."""

    def run(f, *args, **how):
        return s.jax.jit(f, **how)(*args), [*f.notes], f.notes.clear()

    return run


def text(s):
    def lowered(f, *args):
        found = re.sub(r'backend_config = "\d+"', "config", s.text(f, *args))
        return found.replace("MinijaxSPMDPartitioning", "CustomSPMDPartitioning").replace("@jit__un", "@jit_un")

    return lowered


def returning(s):
    """A rule whose result is made of (mesh, arguments, result)."""
    return lambda make: lambda mesh, args, result: make(mesh, args, result)


GIVEN = {
    "call": call,
    "dotted": lambda s: lambda x, y: x @ y,
    "noted": noted,
    "text": text,
    "cp": module,
    "returning": returning,
}


def test_values_shardings_and_what_the_rule_is_given():
    same("""
        noted(call(lambda x: x * 2, lambda x: x * 3), a)
        noted(call(lambda x: x * 2, lambda x: x + lax.axis_index('x')), a)
        noted(call(lambda x: x * 2), jnp.ones((8, 8)))
        noted(call(lambda x: x * 2), numbers(8, 8), in_shardings=on('x', 'y'))
        noted(call(lambda x: x * 2), jnp.ones((8, 8)), out_shardings=on('x', 'y'))
        noted(call(lambda x: x * 2), put(numbers(8, 8), 'i', mesh=m8))
        noted(call(lambda x: x * 2), put(numbers(8, 8), 'x', mesh=back))
        noted(call(lambda x: x * 2), a.astype('bfloat16'))
        noted(call(lambda x: x * 2), put(numbers(8, 8), 'x', 'y', mesh=explicit))
        noted(call(lambda x: (x, x[:, 0] * 2), sharding_rule='i j -> i j, i'), put(numbers(8, 8), 'x'))
        noted(call(lambda x: (x,)), a)
        noted(call(lambda t: {'o': t['p'] + t['q'][0]}, sharding_rule='i j, i j -> i j'), {'p': a, 'q': [a]})
        noted(call(lambda n, x: x * n, static=(0,)), 3, a, static_argnums=0)
        noted(call(lambda x, n: x * n, lambda n, x: x * n, static=(1,)), a, 3, static_argnums=1)
        noted(call(lambda x: x * 2, decode_shardings=False), a)
    """, **GIVEN)  # fmt: skip


def test_calls_in_other_programs():
    same("""
        call(lambda x: x * 2, lambda x: x * 3)(a)
        call(lambda x, y=2: x * y, sharding_rule='i j, -> i j')(a), call(lambda x: x * 2)(jnp.ones((8, 8)))
        jax.jit(lambda x: lax.scan(lambda c, _: (call(lambda x: x * 2)(c), None), x, None, length=2)[0])(a)
        jax.jit(lambda x: call(jnp.sin)(call(jnp.cos)(x)))(a)
        jax.jit(jax.shard_map(call(jnp.sin), mesh=m, in_specs=P('x'), out_specs=P('x'), check_vma=False))(a)
        jax.jit(call(lambda x: x @ x, lambda x: x @ x, sharding_rule='b i j -> b i j'))(put(numbers(8, 2, 2), 'x'))
        jax.jit(call(lambda x: jnp.linalg.inv(x), sharding_rule='b i j -> b i j', need_replication_factors=('i', 'j')))(
            put(np.stack([np.eye(2, dtype=np.float32)] * 8), 'x'))
    """.replace("(\n            put", "(put"), **GIVEN)  # fmt: skip


def test_a_device_may_take_other_parts():
    everywhere = "lambda mesh, args, result: (mesh, lambda x: x * 5, NS(mesh, P()), (NS(mesh, P()),))"
    cut = "lambda mesh, args, r: (mesh, lambda x: x[:2, :4], r.sharding, (NS(mesh, P()),))"
    total = "lambda mesh, args, r: (mesh, lambda x: lax.psum(x, 'x'), NS(mesh, P(None, 'y')), (NS(mesh, P('x', 'y')),))"
    same(f"""
        jax.jit(call(lambda x: x * 2, partition=returning({everywhere})))(a)
        jax.jit(call(lambda x: x * 2, partition=returning({cut})))(a)
        jax.jit(call(lambda x: x.reshape(4, 2, 8).sum(0), partition=returning({total}), sharding_rule='i j -> k j'))(a)
    """, **GIVEN)  # fmt: skip


def test_jaxprs_and_texts():
    rule = "cp.SdyShardingRule((cp.ArrayMapping('i', cp.CompoundFactor('j', 'k')),), (cp.ArrayMapping('i', 'l'),), j=2, k=4)"
    same(f"""
        jaxpr(call(lambda x: x * 2), a), jaxpr(lambda x: call(lambda n, x: x * n, static=(0,))(3, x), a)
        jaxpr(call(lambda t: {{'o': t['p']}}), {{'p': a}}), jaxpr(call(lambda x, y=1: x * y), a)
        text(call(lambda x: x * 2), a), text(call(lambda x: x * 2), jnp.ones((8, 8)))
        text(call(dotted, sharding_rule='i j, j k -> i k'), a, a)
        text(call(dotted, sharding_rule='... i j, ... j k -> ... i k'), put(numbers(8, 2, 2), 'x'), numbers(8, 2, 2))
        text(call(dotted, sharding_rule='i j, j k -> i k', need_replication_factors=('j',)), a, a)
        text(call(dotted, sharding_rule='i j, j k -> i k', reduction_factors=('j',), permutation_factors=('k',)), a, a)
        text(call(lambda x: x.reshape(2, 4, 8), sharding_rule='(i j) k -> i j k'), a)
        text(call(lambda x: x.T, sharding_rule='(i j) k -> k (i j)', i=4, j=2), a)
        text(call(lambda x: x, sharding_rule={rule}), a), text(call(lambda x: x.sum(), sharding_rule='i j ->'), a)
        text(call(lambda x: x, sharding_rule=lambda mesh, ins, outs: ' '.join(f'f{{i}}' for i in range(ins[0].rank)) + '->i j'), a)
        text(call(lambda x: x, sharding_rule=None), a)
    """, **GIVEN)  # fmt: skip


def test_what_is_refused():
    never = "lambda *args: None"
    same_errors([
        ("text(call(lambda x: x, sharding_rule='i -> i'), a)", "has rank 1, but the operation"),
        ("text(call(lambda x: x, sharding_rule='i j k -> i j k'), a)", "has rank 3, but the operation"),
        ("text(call(lambda x: x, sharding_rule='i j, i -> i j'), a)", "has 2 operands, but the operation has 1"),
        ("text(call(lambda x: x, sharding_rule='i j -> i, i'), a)", "has 2 results, but the operation has 1"),
        ("text(call(lambda x: x, sharding_rule='(i j) k -> i j', i=3), a)", "do not specify its size"),
        ("text(call(lambda x: x, sharding_rule='(i j) k -> (i j) k', i=3, j=3), a)", "doesn't match the size 9"),
        ("text(call(lambda x: x, sharding_rule='i i -> i i'), a)", "cannot reuse factors for the same tensor value"),
        ("text(call(lambda x: x.reshape(4, 16), sharding_rule='... i -> ... i'), a)", "corresponds to two sizes"),
        ("text(call(lambda x: x, sharding_rule=lambda *args: 3), a)", "must produce either an SdyShardingRule"),
        (f"text(call(lambda x: x, sharding_rule=None, infer_sharding_from_operands={never}), a)", "Need to provide"),
        (f"text(call(lambda x: x, sharding_rule=None, propagate_user_sharding={never}), a)", "Need to provide"),
        ("cp.custom_partitioning(lambda x: x)(a)", ""),
        ("jax.jit(lambda x: call(lambda y: x * y)(a))(a)", ""),
        ("jax.jit(call(lambda n, x: x, static=(0,)))(3, a)", ""),
        ("jax.vmap(call(jnp.sin))(a)", "not implemented"),
        ("jax.grad(lambda x: call(jnp.sin)(x).sum())(a)", "not implemented"),
        ("jax.jit(call(jnp.sin, partition=lambda *args: 1 / 0))(a)", "division by zero"),
        ("jax.jit(call(jnp.sin, partition=lambda *args: None))(a)", "cannot unpack"),
        ("jax.jit(call(jnp.sin, lambda x: x[:1]))(a)", "Mismatch in result shapes"),
        ("jax.jit(call(jnp.sin, lambda x: (x, x)))(a)", "Mismatch in result shapes"),
        ("jax.jit(call(jnp.sin, partition=lambda m, a, r: (m, jnp.sin, P(), (P(),))))(a)", "must return Sharding"),
        ("jax.jit(call(jnp.sin, partition=lambda m, a, r: (m, jnp.sin, r.sharding, ())))(a)", "Tuple arity mismatch"),
        ("jax.jit(call(jnp.sin, lambda x: lax.psum(x, 'z')))(a)", ""),
    ], **GIVEN)  # fmt: skip


def test_what_one_device_computes_calls_no_host():
    s = side("minijax")
    f = call(s)(s.jnp.sin, lambda x: s.jax.pure_callback(lambda x: x, x, x))
    with pytest.raises(s.jax.errors.JaxRuntimeError, match="cannot call functions of the host"):
        s.jax.jit(f)(s.a)


@pytest.mark.parametrize("wrong", ["mesh", "shardings", "nothing"])
def test_a_rule_for_other_devices_is_refused(wrong):
    s = side("minijax")

    def partition(mesh, args, result):
        few = s.NS(s.m4, s.P("x"))
        mesh = {"mesh": s.m4, "nothing": None}.get(wrong, mesh)
        return mesh, s.jnp.sin, *((few, (few,)) if wrong == "shardings" else (result.sharding, (args[0].sharding,)))

    with pytest.raises(s.jax.errors.JaxRuntimeError, match="custom_partitioning: a rule return"):
        s.jax.jit(call(s)(s.jnp.sin, partition=partition))(s.a)


def test_the_rule_runs_under_the_options_of_its_program():
    s, seen = side("minijax"), []
    f = call(s)(lambda x: x * 2, lambda x: seen.append(s.jnp.ones(1).dtype) or x * 2)
    with s.jax.enable_x64(True):
        s.jax.jit(f)(s.a)
    assert seen == ["float64"]


def test_it_is_partitioned_anew_for_each_program_and_once():
    s = side("minijax")
    f = call(s)(lambda x: x * 2)
    run = s.jax.jit(f)
    run(s.a), run(s.a), run(s.a.T)
    assert len(f.notes) == 2
    s.jax.jit(lambda x: f(x))(s.a)
    assert len(f.notes) == 3
