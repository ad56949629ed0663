"""Effects: what a program does besides computing results, and where each is allowed."""


class Effect:
    """A kind of side effect; instances are compared by class unless a subclass overrides `__eq__`."""

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def __lt__(self, other):
        return str(self) < str(other)

    def __repr__(self):
        return type(self).__name__


Effects = frozenset


class EffectSet:
    """A registry of effect classes with one property."""

    def __init__(self):
        self.classes: set[type] = set()

    def add_type(self, cls: type) -> None:
        self.classes.add(cls)

    def contains(self, effect: Effect) -> bool:
        return any(isinstance(effect, cls) for cls in self.classes)

    def filter_not_in(self, effects) -> list[Effect]:
        return [e for e in effects if not self.contains(e)]

    def filter_in(self, effects) -> list[Effect]:
        return [e for e in effects if self.contains(e)]


def registered_types() -> set[type]:
    """The classes of effects that programs may have."""
    return lowerable_effects.classes | ordered_effects.classes


ordered_effects = EffectSet()
lowerable_effects = EffectSet()
control_flow_allowed_effects = EffectSet()
custom_derivatives_allowed_effects = EffectSet()
remat_allowed_effects = EffectSet()
shardable_ordered_effects = EffectSet()  # ordered effects allowed on several devices
io_effects = EffectSet()


class NamedAxisEffect(Effect):
    """Reads the position along, or communicates over, a named axis."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return type(other) is NamedAxisEffect and self.name == other.name

    def __hash__(self):
        return hash((NamedAxisEffect, self.name))

    def __repr__(self):
        return f"NamedAxis({self.name})"


class IOEffect(Effect):
    """Reads or writes something outside of the program."""

    def __repr__(self):
        return "IO"


class OrderedIOEffect(Effect):
    """As `IOEffect`, in the order of the program."""

    def __repr__(self):
        return "OrderedIO"


class DebugEffect(Effect):
    """Shows values to the user; it may happen each time that these values are computed.

    Example:
        >>> jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(1.0).effects
        frozenset({Debug})
    """

    def __repr__(self):
        return "Debug"


class OrderedDebugEffect(Effect):
    """Shows values to the user, as `DebugEffect`, in the order of the program.

    Example:
        >>> jax.make_jaxpr(lambda x: jax.debug.print("{}", x, ordered=True))(1.0).effects
        frozenset({OrderedDebug})
    """

    def __repr__(self):
        return "OrderedDebug"


class BufferCallbackEffect(Effect):
    """Passes buffers of the program to a function that reads or writes something outside of it."""

    def __repr__(self):
        return "BufferCallback"


class FfiEffect(Effect):
    """Calls a function registered with XLA, which may have any side effect."""

    def __str__(self):
        return "FFI"

    def __repr__(self):
        return "FfiEffect()"


for _effect in (IOEffect, OrderedIOEffect, DebugEffect, OrderedDebugEffect, BufferCallbackEffect, FfiEffect):
    for _registry in (lowerable_effects, control_flow_allowed_effects, custom_derivatives_allowed_effects):
        _registry.add_type(_effect)
for _effect in (OrderedIOEffect, OrderedDebugEffect):
    ordered_effects.add_type(_effect)
for _effect in (DebugEffect, OrderedDebugEffect):
    remat_allowed_effects.add_type(_effect)
for _effect in (IOEffect, OrderedIOEffect):
    io_effects.add_type(_effect)
shardable_ordered_effects.add_type(OrderedIOEffect)

for _registry in (
    lowerable_effects,
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    remat_allowed_effects,
):
    _registry.add_type(NamedAxisEffect)


def join(*sets: Effects) -> Effects:
    """The union of sets of effects."""
    present = [s for s in sets if s]
    return frozenset().union(*present) if present else frozenset()
