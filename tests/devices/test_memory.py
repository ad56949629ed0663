"""Values in the memory of the host: placing them, types that tell it, programs, offloaded residuals, against jax."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle

SPACES = {
    "space": lambda s: s.jax.memory.Space,
    "Host": lambda s: s.jax.memory.Space.Host,
    "Dev": lambda s: s.jax.memory.Space.Device,
    "host": lambda s: s.One(s.d[0], memory_kind="pinned_host"),
    "unpinned": lambda s: s.One(s.d[0], memory_kind="unpinned_host"),
    "dev": lambda s: s.One(s.d[0]),
    "onhost": lambda s: lambda *spec, mesh=s.m: s.on(*spec, mesh=mesh).with_memory_kind("pinned_host"),
    "one": lambda s: s.grid((1,), ("x",)),
    "x": lambda s: s.jnp.asarray(numbers(4)),
    "h": lambda s: s.jax.device_put(numbers(4), s.jax.memory.Space.Host),
    "hm": lambda s: s.jax.device_put(numbers(4, 4), s.jax.memory.Space.Host),
    "hi": lambda s: s.jax.device_put(np.arange(4), s.jax.memory.Space.Host),
    "hs": lambda s: s.jax.device_put(np.float32(2), s.jax.memory.Space.Host),
    "hv": lambda s: s.jax.device_put(numbers(8), s.on("x").with_memory_kind("pinned_host")),
    "run": lambda s: lambda f, *a: (s.jaxpr(f, *a), s.text(f, *a), s.jax.jit(f)(*a), s.jax.jit(f)(*a).aval),
    "put": lambda s: s.jax.device_put,
    "there": lambda s: lambda a: s.jax.device_put(a, s.jax.memory.Space.Host, src=s.jax.memory.Space.Device),
    "back": lambda s: lambda a: s.jax.device_put(a, s.jax.memory.Space.Device, src=s.jax.memory.Space.Host),
}


def test_memories_of_devices_and_shardings():
    same(
        """
        [(m.kind, str(m)) for m in d[1].addressable_memories()], d[1].default_memory().kind, repr(d[1].memory('pinned_host'))
        host, dev, unpinned, onhost('x'), [s.memory_kind for s in (host, dev, on('x'), onhost())]
        dev.with_memory_kind('pinned_host') == host, host == dev, hash(dev) == hash(dev.with_memory_kind('device'))
        onhost('x').with_memory_kind('device') == on('x'), on('x').is_equivalent_to(onhost('x'), 1)
        list(space), str(Host), space.Host is Host
    """,
        **SPACES,
    )
    same_errors(
        [
            ("on().with_memory_kind('slow')", "can address the following memory kinds"),
            ("One(d[0], memory_kind='slow')", "Got memory kind: slow"),
        ],
        **SPACES,
    )


def test_eager_values_are_put_into_memories():
    same(
        """
        [put(v, Host) for v in (x, 3.0, True, np.int8(3), numbers(2, 2), jnp.float32(2), put(x, d[2]))]
        [put(v, s) for v in (x, h) for s in (Host, Dev, host, dev, unpinned, None, onhost('x'), on('x'), One(d[1]), onhost())]
        [put(v, s) for v in (hv, put(numbers(8), on('x'))) for s in (Host, Dev, on(('x', 'y')), onhost('y'), on(), host, d[3])]
        put({'a': x, 'b': 1.0}, Host), put((x, x), (Host, Dev)), put(h, may_alias=False), put(x, Host, donate=True)
        [put(v, s).aval for v in (x, h) for s in (Host, Dev, host, unpinned, onhost('x'))]
        [jax.typeof(v).memory_space for v in (x, h, hv, put(x, unpinned))], jax.typeof(h), jax.typeof(h) == jax.typeof(x)
        [jax.typeof(h).update(memory_space=s) for s in space], jax.typeof(h).str_short(True), jax.typeof(h).to_tangent_aval()
        jax.core.ShapedArray((3,), jnp.float32, memory_space=Host, weak_type=True)
        put(jax.random.key(0), Host), jaxpr(lambda k: put(k, Host), jax.random.key(0))
        [lax.with_sharding_constraint(v, s) for v in (x, hv, put(numbers(8), on('x'))) for s in (on('x'), onhost('x'), onhost())]
        h.addressable_shards[0].data, hv.addressable_shards[1].data, h.addressable_data(0), h.copy(), jnp.array(h), jnp.asarray(h)
        repr(h), str(h), h.tolist(), float(h[1]), np.asarray(hv), h.devices(), list(h)[1], h.format
        jnp.asarray(numbers(3), device=host), jax.make_array_from_callback((4,), host, lambda i: numbers(4)[i])
        jax.make_array_from_single_device_arrays((4,), host, [h]), h.to_device(dev), jax.device_get(put([x], Host))
    """,
        **SPACES,
    )


def test_operations_keep_values_in_their_memory():
    same(
        """
        [(f(h), f(h).aval) for f in (jnp.sin, lambda a: a + 1, lambda a: 2 - a, jnp.sum, lambda a: a[0], lambda a: a[1:])]
        [(f(hm), f(hm).aval) for f in (jnp.transpose, jnp.ravel, jnp.sort, jnp.cumsum, lambda a: a @ a, lambda a: a > 0)]
        [jaxpr(f, h) for f in (jnp.exp, lambda a: a * jnp.float32(2), lambda a: lax.clamp(0., a, 1.), jnp.argmax, jnp.mean)]
        [jaxpr(f, hs) for f in (jnp.sin, lambda a: a + 1, jnp.copy, lambda a: lax.broadcast(a, (2,)), lambda a: lax.add(a, x[0]))]
        [jaxpr(f, hm) for f in (lambda a: a.reshape(2, 8), lambda a: lax.pad(a, 0., ((1, 0, 1),) * 2), jnp.argsort, lambda a: jnp.tile(a, 2))]
        [jaxpr(f, hm) for f in (lambda a: lax.split(a, (1, 3)), lambda a: jnp.concatenate([a, a]), lambda a: jnp.stack([a, a]))]
        [jaxpr(f, hm) for f in (lambda a: lax.top_k(a, 2), lambda a: lax.rev(a, (0,)), lambda a: a.astype(int), lambda a: a.sum(0))]
        [jaxpr(f, h) for f in (lambda a: lax.sort((a, x)), lambda a: lax.optimization_barrier((a, x)), lambda a: a[hi])]
        [jaxpr(f, h) for f in (lambda a: a.at[0].set(1.), lambda a: a.at[jnp.arange(4)].add(x), lambda a: a.at[hi].mul(2.))]
        [jaxpr(f, h, 1) for f in (lambda a, i: a[i], lambda a, i: lax.dynamic_update_slice(a, h[:2], (i,)))]
        [jaxpr(f, h) for f in (jnp.fft.fft, jnp.zeros_like, lambda a: lax.reduce_precision(a, 8, 3), jnp.var, jax.nn.relu)]
        [jaxpr(f, hm) for f in (lambda a: lax.linalg.qr(a), lambda a: lax.linalg.triangular_solve(a, a))]
        [f(hm) for f in (jax.vmap(jnp.sum), jax.vmap(lambda a: a * 2), lambda a: jax.vmap(jnp.add, (0, None))(a, a[0]))]
        hv + 1, hv * hv, hv.sum(), jnp.sin(hv), hv.reshape(2, 4)
        jax.vjp(lambda a: jnp.sin(a) * a, h)[1](h), jax.jvp(jnp.sin, (h,), (h,)), jax.linearize(jnp.sin, h)[1](h)
        jaxpr(lambda a: jax.vjp(lambda b: b[:2] * 3, a)[1](a[:2]), h)
        jaxpr(lambda a: jax.vjp(jax.checkpoint(lambda b: jnp.sin(jnp.sin(b))), a)[1](a), h)
        jaxpr(lambda a: jax.vjp(jax.jit(lambda b: jnp.sin(b)), a)[1](a), h)
        jaxpr(lambda a: jax.vjp(lambda b: lax.cond(True, jnp.sin, jnp.cos, b), a)[1](a), h)
        [f(h) for f in (lambda a: lax.scan(lambda c, b: (c, b * 2), x, a), lambda a: lax.fori_loop(0, 3, lambda i, c: c * 2, a))]
        jaxpr(lambda a: lax.scan(lambda c, b: (c, b * 2), a, hm), h), jaxpr(lambda a: lax.map(jnp.sum, a), hm)
        lax.while_loop(lambda c: c.sum() < 100, lambda c: c + 2, h), lax.cond(True, jnp.sin, jnp.cos, h), bent(h), custom(h)
        [jax.vjp(f, h)[1](h) for f in (custom, bent)], jaxpr(lambda a: jax.vjp(bent, a)[1](a), h)
    """,
        **SPACES,
    )


def test_what_is_in_two_memories_does_not_mix():
    same_errors(
        [
            ("h + x", "memory_space of all inputs passed to `add` must be the same"),
            ("jaxpr(lambda a: a + put(a, Host), x)", "float32[4] and another operand with type: float32<host>[4]"),
            ("jnp.dot(h, x)", "memory_space"),
            ("h[jnp.arange(2)]", "memory_space"),
            ("jnp.stack([h, x])", "`stack`"),
            ("jnp.where(x > 0, h, x)", "memory_space"),
            ("lax.dynamic_update_slice(h, x[:2], (0,))", "memory_space"),
            ("jax.vjp(jnp.sin, h)[1](x)", "expected float32<host>[4]"),
            ("jax.grad(lambda a: jnp.sin(a).sum())(h)", "expected float32<host>[]"),
            ("jax.linearize(jnp.sin, h)[1](x)", "inconsistent with the original primal"),
            ("lax.cond(True, lambda a: put(a, Host), lambda a: a, x)", "float32<host>[4]"),
            ("lax.scan(lambda c, a: (put(c, Host), a), x, x)", "float32<host>[4]"),
            ("lax.fori_loop(0, 3, lambda i, c: put(c, Dev), h)", "float32<host>[4]"),
            ("jax.jit(lambda a: a, in_shardings=dev)(h)", "Memory kinds passed to jax.jit does not match memory kind"),
            ("jax.jit(lambda a: a, in_shardings=host)(put(x, d[0]))", "arg memory kind: device"),
            ("jax.jit(lambda a: a).lower(x).compile()(h)", "Required sharding: SingleDeviceSharding"),
            ("jax.jit(lambda a: a, out_shardings=Host)(x)", "Host"),
        ],
        **SPACES,
    )


def test_programs_put_values_into_memories():
    same(
        """
        [run(lambda a: put(a * 2, s), x) for s in (Host, Dev, host, dev, unpinned, d[0])]
        [run(lambda a: put(a, s) * 2, h) for s in (Host, Dev, host, dev, unpinned, None)]
        [run(f, h) for f in (lambda a: a, lambda a: a * 2, lambda a: put(put(a, Dev) * 2, Host))]
        run(lambda a: put(put(a * 2, Host), Dev), x), run(lambda a: a * 2, put(x, unpinned)), run(lambda a: put(jnp.zeros(4), Host), x)
        [text(lambda a, b: (put(a, Dev) + b, b * 2, a * 2), h, x), jax.jit(lambda a, b: (put(a, Dev) + b, b * 2, a * 2))(h, x)]
        [(text(f, h), f(h)) for f in [jax.jit(lambda a: a * 2, out_shardings=s) for s in (host, dev)]]
        [(text(f, x), f(x)) for f in [jax.jit(lambda a: (a * 2, a), out_shardings=s) for s in ((host, None), (host, dev))]]
        [(text(f, h, x), f(h, x)) for f in [jax.jit(lambda a, b: (a * 2, b), in_shardings=(host, dev))]]
        [run(lambda a: put(a * 2, s), x) for s in (onhost('x'), onhost('x', mesh=one))]
        [text(lambda a: put(a, s) * 2, hv) for s in (Dev, Host, on('x'))], [jax.jit(lambda a: put(a, s) * 2)(hv) for s in (Dev, Host)]
        [(text(f, put(numbers(8), on('x'))), f(put(numbers(8), on('x')))) for f in [jax.jit(lambda a: a * 2, out_shardings=onhost('x'))]]
        [(text(f, hv, put(x, on())), f(hv, put(x, on()))) for f in [jax.jit(lambda a, b: (a, b * 2), in_shardings=(onhost('x'), on()))]]
        jax.jit(jax.jit(lambda a: put(a, Host)))(x), text(jax.jit(lambda a: jax.jit(lambda b: put(b, Host))(a)), x)
        [jax.jit(f)(x) for f in (jax.vmap(lambda a: put(a, Host)), lambda a: lax.scan(lambda c, b: (c, put(b, Host)), 0., a))]
        jaxpr(lambda a: lax.scan(lambda c, b: (c, put(b, Dev) * 2), 0., a), h), jax.jit(lambda a: lax.scan(lambda c, b: (c, put(b, Dev) * 2), 0., a))(h)
        jaxpr(lambda a: lax.cond(True, there, there, a), x), jax.jit(lambda a: lax.cond(a[0] > 0, there, there, a))(x)
        jax.jit(lambda a: a * 2, donate_argnums=0)(put(x, Host)), text(jax.jit(lambda a: a * 2, donate_argnums=0), h)
        [jax.jit(lambda a: a * 2)(v) for v in (x, h, x, hv, h, put(x, unpinned))], jax.jit(lambda *, k: k * 2)(k=h)
        jax.jit(lambda a: jax.shard_map(lambda b: put(b * 2, Host), mesh=m8, in_specs=P('i'), out_specs=P('i'))(a))(jnp.arange(8.))
        jaxpr(lambda a: jax.shard_map(lambda b: b * 2, mesh=m, in_specs=P('x'), out_specs=P('x'))(a), hv)
        jax.jit(lambda a: put(np.arange(1000.), Host))(x), jax.jit(lambda a: put(h, Dev) + a)(x), jaxpr(lambda a: put(h, Dev) + a, x)
        jaxpr(lambda a: put((a, a), (Host, space.Any)), x), jaxpr(lambda a: put(a, Host, donate=True), x)
    """,
        **SPACES,
    )


def test_stages_and_shapes_tell_memories():
    same(
        """
        jax.jit(lambda a: put(a, Host)).lower(x).compile().output_shardings, jax.jit(lambda a: put(a, Host)).lower(x).compile()(x)
        [jax.jit(lambda a: a * 2).lower(v).compile().input_shardings for v in (h, hv)], jax.jit(lambda a: a * 2).lower(h).compile()(h)
        jax.jit(lambda a: a * 2).lower(SDS((8,), jnp.float32, sharding=onhost('x'))).compile()(hv), SDS((4,), jnp.float32, sharding=host)
        jaxpr(lambda a: put(a, Dev), SDS((8,), jnp.float32, sharding=onhost('x'))), jax.eval_shape(lambda a: put(a, Host), x)
        jax.eval_shape(lambda a: a, h), jax.jit(lambda a: a).trace(h).out_info, jax.jit(lambda a: a * 2, in_shardings=host)(numbers(4))
        jax.eval_shape(lambda a: a, SDS((4,), jnp.float32, sharding=host))
    """,
        **SPACES,
    )


def test_derivatives_pass_through_memories():
    same(
        """
        jaxpr(lambda a: jax.jvp(lambda b: put(b * 2, Host), (a,), (a,)), x), jax.jvp(lambda b: put(b * 2, Host), (x,), (x,))
        jaxpr(jax.grad(lambda a: back(there(a * 2)).sum()), x), jax.grad(lambda a: back(there(a * 2)).sum())(x)
        jaxpr(jax.grad(lambda a: put(jnp.sin(a).sum(), Dev)), h), jax.grad(lambda a: put(jnp.sin(a).sum(), Dev))(h)
        jaxpr(jax.grad(lambda a: jnp.sin(put(a, Dev)).sum()), h), jax.jit(jax.grad(lambda a: jnp.sin(put(a, Dev)).sum()))(h)
        jaxpr(jax.grad(lambda a: put(put(a, host, src=dev), dev, src=host).sum()), x)
        jax.hessian(lambda a: back(there(a ** 3)).sum())(x), jax.grad(lambda a: put(put(jnp.sin(a), Host), Dev).sum())(x)
        jaxpr(jax.vmap(lambda a: there(a) * 2), x), jaxpr(jax.grad(lambda a: put(jnp.sin(a), Dev).sum()), x)
    """,
        **SPACES,
    )


def test_gradients_bring_cotangents_back_by_themselves():
    import minijax as jax  # jax raises here, of a cotangent in the wrong memory

    def f(x):
        space = jax.memory.Space
        return jax.device_put(jax.device_put(jax.numpy.sin(x), space.Host), space.Device).sum()

    for gradient in (jax.grad(f), jax.jit(jax.grad(f)), jax.jit(jax.vmap(jax.grad(lambda x: f(x[None]))))):
        found = gradient(numbers(4))
        assert found.sharding.memory_kind == "device"
        np.testing.assert_allclose(found, np.cos(numbers(4)), rtol=1e-6)


def _offloaded(s):
    """Functions whose residuals are kept, brought to the host, or computed again."""
    jax, jnp = s.jax, s.jnp
    name = importlib.import_module(f"{jax.__name__}.ad_checkpoint").checkpoint_name
    policies = jax.checkpoint_policies
    offloadable = importlib.import_module(f"{jax.__name__}.ad_checkpoint").Offloadable("device", "pinned_host")

    def named(x):
        return jnp.sin(name(jnp.sin(name(jnp.sin(x), "kept")), "away"))

    def dots(x):
        w = jnp.sin(jnp.arange(16.0).reshape(4, 4))
        return jnp.sin(jnp.sin(x @ w) @ w)

    def policy(kept=("kept",), away=("away",), src="device", dst="pinned_host"):
        return policies.save_and_offload_only_these_names(
            names_which_can_be_saved=kept, names_which_can_be_offloaded=away, offload_src=src, offload_dst=dst
        )

    def total(f=named, rule=None, **more):
        inner = jax.checkpoint(f, policy=policy() if rule is None else rule, **more)
        return lambda x: inner(x).sum()

    def looped(f, rule=None):
        inner = f if rule is None else jax.checkpoint(f, policy=rule)
        return lambda x: s.lax.scan(lambda c, _: (inner(c), None), x, None, length=3)[0]

    products = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    return SimpleNamespace(**locals())


def test_residuals_are_offloaded():
    same(
        """
        jaxpr(jax.grad(o.total()), x), jax.grad(o.total())(x), text(jax.grad(o.total()), x), jax.jit(jax.grad(o.total()))(x)
        jaxpr(jax.grad(o.total(o.dots, o.products)), x), jax.jit(jax.grad(o.total(o.dots, o.products)))(x)
        text(jax.grad(o.total(o.dots, o.products)), x), jaxpr(jax.grad(o.total(o.dots, o.products, prevent_cse=False)), x)
        [jaxpr(jax.grad(o.total(rule=o.policy((), ('away', 'kept'), a, b))), x) for a, b in (('device', 'device'), ('device', 'unpinned_host'), (Dev, Host), ('a', 'b'))]
        jaxpr(jax.vmap(jax.grad(o.total())), numbers(2, 4)), jax.jit(jax.vmap(jax.grad(o.total())))(numbers(2, 4))
        jaxpr(jax.grad(lambda a: jax.vmap(o.total())(a).sum()), numbers(2, 4))
        jaxpr(lambda a: jax.linearize(o.total(), a)[1](a), x), jaxpr(lambda a: jax.vjp(o.total(), a)[0], x)
        jaxpr(lambda a: jax.jvp(o.total(), (a,), (a,)), x), jax.jvp(o.total(), (x,), (x,))
        jaxpr(jax.grad(lambda a: o.looped(o.named, o.policy())(a).sum()), x), jax.jit(jax.grad(lambda a: o.looped(o.named, o.policy())(a).sum()))(x)
        text(jax.grad(lambda a: o.looped(o.named, o.policy())(a).sum()), x), text(jax.grad(lambda a: o.looped(o.dots, o.products)(a).sum()), x)
        jax.grad(o.total(o.looped(o.named)))(x), jax.jit(jax.grad(o.total(o.looped(o.named))))(x)
        jaxpr(jax.grad(o.total(lambda a: jax.checkpoint(o.named, policy=o.policy())(a) * 2)), x)
        jaxpr(jax.grad(o.total(lambda a: jax.checkpoint(o.named, policy=o.policy())(a) * 2, o.policies.nothing_saveable)), x)
        jaxpr(jax.grad(o.total(rule=lambda *_, **__: o.offloadable)), x), text(jax.grad(o.total(jax.jit(o.named))), x)
        jax.grad(o.total(jax.jit(o.named)))(x), text(jax.grad(o.total(lambda a: o.named(a[0]) + a[1])), numbers(2, 4))
        jax.jit(jax.grad(o.total()))(put(numbers(8), on('x'))), text(jax.grad(o.total()), put(numbers(8), on('x')))
        jax.jit(jax.grad(lambda a: jax.shard_map(jax.checkpoint(o.named, policy=o.policy()), mesh=m, in_specs=P('x'), out_specs=P('x'))(a).sum()))(numbers(8))
    """,
        o=_offloaded,
        **SPACES,
    )


def test_saved_residuals_tell_their_memory(capsys):
    found = []
    for package in ("minijax", "jax"):
        s = side(package)
        o = _offloaded(s)
        importlib.import_module(f"{package}.ad_checkpoint").print_saved_residuals(o.total(), numbers(4))
        found.append([line.split(" from ")[0] for line in capsys.readouterr().out.splitlines()])
    assert found[0] == found[1]
