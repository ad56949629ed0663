"""The checks of exported programs that a user may disable."""

_PLATFORM, _CUSTOM_CALL = "platform", "custom_call:"


class DisabledSafetyCheck:
    """Names a check that is skipped when a program is exported or called.

    Example:
        >>> f = jax.jit(lambda x: x, keep_unused=True)
        >>> check = jax.export.DisabledSafetyCheck.platform()
        >>> jax.export.export(f, platforms=["tpu"], disabled_checks=[check])(1.0).call(1.0)
        Array(1., dtype=float32, weak_type=True)
    """

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def platform(cls) -> "DisabledSafetyCheck":
        """The check that the program runs on a platform that it was exported for."""
        return cls(_PLATFORM)

    @classmethod
    def custom_call(cls, target_name: str) -> "DisabledSafetyCheck":
        """The check that later versions have this target of custom calls too."""
        return cls(f"{_CUSTOM_CALL}{target_name}")

    def is_platform(self) -> bool:
        """Returns whether it is the check of the platform."""
        return self._impl == _PLATFORM

    def is_custom_call(self) -> str | None:
        """The target of custom calls that is not checked; None for another check."""
        return self._impl.removeprefix(_CUSTOM_CALL) if self._impl.startswith(_CUSTOM_CALL) else None

    def __str__(self):
        return self._impl

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self):
        return hash(self._impl)
