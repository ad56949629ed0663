"""Functions that users partition: they define the program of each device and how shardings propagate."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.calls.call import Inlined
from minijax.hlo.module import lower_jaxpr
from minijax.hlo.program import plain_program
from minijax.hlo.shardy import rule_text
from minijax.hlo.spell import physical, type_of
from minijax.ir import state
from minijax.ir.body import Flat, as_consts, source_of, trace_flat
from minijax.ir.jaxpr import DebugInfo, JaxprEqn
from minijax.ir.types import ShapedArray
from minijax.partition.factors import SdyShardingRule, parse_rule
from minijax.partition.meshes import AbstractMesh, AxisType, Mesh
from minijax.partition.shardings import GSPMDSharding, NamedSharding, Sharding
from minijax.run.clients import client
from minijax.run.programs import bindings
from minijax.run.programs.compiled_shardings import named_sharding
from minijax.run.programs.partitioners import TARGET, Partitioner
from minijax.transforms.discharge import discharged


class CustomPartitioning(Inlined):
    """Runs a jaxpr. On several devices, a function of the user partitions it.

    `partition`: that function, and the constructor of the array descriptions that are its arguments.
    """

    name = "custom_partitioning"
    body_name = "call"

    def lower(self, e, ins, outs, *operands, call, sharding_rule, static_args, **params):
        if e.num_partitions == 1 or e.manual is not None:
            return super().lower(e, ins, outs, *operands, call=call)
        propagates = params["infer_sharding_from_operands"] or params["propagate_user_sharding"]
        if sharding_rule is None and propagates:
            raise NotImplementedError(
                "custom_partitioning: Shardy is used, but sharding propagation callbacks instead of sharding_rule are "
                "provided. Need to provide sharding_rule to migrate to Shardy."
            )
        if e.mesh is None:
            raise NotImplementedError("custom_partitioning: the shardings of the program have no mesh")
        mesh = e.mesh.update(axis_types=(AxisType.Auto,) * len(e.mesh.axis_names))
        rule = _sharding_rule_text(sharding_rule, static_args, mesh, ins, outs)
        function = lambda *chosen: _partitioned(e, mesh, call, static_args, chosen, **params)  # noqa: E731
        partitioner = Partitioner(function)
        e.watchers.append(partitioner)
        return e.custom_call(
            TARGET, operands, ins, outs, api_version=2, backend_config=str(partitioner.number), sharding_rule=rule
        )

    def show_params(self, eqn: JaxprEqn):
        return [(name, value[0] if name == "partition" else value) for name, value in sorted(eqn.params.items())]


custom_partitioning_p = CustomPartitioning()


def _sharding_rule_text(rule: Any, static_args: tuple, mesh: Any, ins: Sequence, outs: Sequence) -> str | None:
    if callable(rule):
        types = [[bindings.ir.Type.parse(type_of(a), bindings.context()) for a in avals] for avals in (ins, outs)]
        rule = rule(*static_args, mesh, *types)
        rule = parse_rule(rule) if isinstance(rule, str) else rule
        if not isinstance(rule, SdyShardingRule):
            raise ValueError(
                "sharding_rule callable must produce either an SdyShardingRule object or an Einsum-like notation "
                f"string. Got {rule!r}"
            )
    if rule is None:
        return None
    values, results = ([physical(a).shape for a in avals] for avals in (ins, outs))
    ins_factors, outs_factors, sizes = rule.applied(values, results)
    return rule_text(ins_factors, outs_factors, sizes, rule.special)


def _partitioned(
    e: Any, mesh: Any, call: Any, static_args: tuple, chosen: tuple[Sequence, Sequence], *,
    partition: tuple[Callable, Callable], decode_shardings: bool, in_tree: Any, out_tree: Any, **params: Any,
) -> tuple[str, list, list]:  # fmt: skip
    """Calls the user's function with the shardings chosen by the compiler. Returns the module and HLO shardings."""
    rule, description = partition
    sides = (in_tree, call.in_avals), (out_tree, call.out_avals)
    arg_descriptions = [
        treedef.unflatten([description(a, _sharding(mesh, h, a, decode_shardings)) for a, h in zip(avals, hlo)])  # noqa: B905
        for (treedef, avals), hlo in zip(sides, chosen, strict=True)
    ]
    mesh, lower_fn, result_shardings, arg_shardings = rule(*static_args, mesh, *arg_descriptions)
    shardings, parts = [], []
    for (treedef, avals), prefix in zip(sides, (arg_shardings, result_shardings), strict=True):
        leaves = treedef.flatten_up_to(prefix)
        _check_devices(mesh, leaves, e.num_partitions)
        shardings.append([client.hlo_sharding(s, a.ndim) for s, a in zip(leaves, avals, strict=True)])
        parts.append([ShapedArray(s.shard_shape(a.shape), a.dtype) for s, a in zip(leaves, avals, strict=True)])
    return (_per_device_module(e, lower_fn, mesh, in_tree, *parts), *shardings)


def _check_devices(mesh: Any, shardings: Sequence, count: int) -> None:
    """Raises ValueError for another number of devices than the program's, for which XLA would end the process."""
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"custom_partitioning: a rule returns a mesh first, got {mesh!r}")
    if not all(isinstance(s, Sharding) for s in shardings):
        raise ValueError(f"Custom Partitioning rules must return Sharding. Got {shardings}")
    for item, size in ((mesh, mesh.size), *((s, s.num_devices) for s in shardings if s.num_devices > 1)):
        if size != count:
            raise ValueError(f"custom_partitioning: a rule returned {item}, of a program on {count} devices")


def _sharding(mesh: Any, hlo: Any, aval: ShapedArray, decodes: bool) -> Sharding:
    if not decodes:
        return GSPMDSharding(mesh._flat_devices_tuple, hlo)
    sharding = named_sharding(mesh, hlo, aval.ndim)
    if isinstance(sharding, NamedSharding):
        return sharding.update(spec=sharding.spec.padded(aval.ndim))
    return sharding


def _per_device_module(
    e: Any, fun: Callable, mesh: Any, in_tree: Any, ins: list[ShapedArray], outs: list[ShapedArray]
) -> str:
    """The module of one device. The function may refer to the axes of the mesh."""
    with state.manual_axes(mesh.shape_tuple, ()):
        info = DebugInfo("custom_partitioning", source_of(fun))
        closed = discharged(trace_flat(Flat(fun, in_tree), ins, info, as_consts).closed)
        results = [ShapedArray(a.shape, a.dtype) for a in closed.out_avals]
        if results != outs:
            raise ValueError(f"custom_partitioning: Mismatch in result shapes: a device computes {results}, not {outs}")
        program = plain_program("custom_partitioning", closed, platforms=e.platforms)
        where = dict(num_partitions=e.num_partitions, devices=e.devices, mesh=mesh)
        module = lower_jaxpr(program._replace(**where, manual=(mesh, frozenset(mesh.axis_names))))
    if module.callbacks or module.ordered or module.watchers:
        raise NotImplementedError("custom_partitioning: the program of one device cannot call functions on the host")
    return module.text
