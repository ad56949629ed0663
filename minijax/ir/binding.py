"""Binds operations to traces, and the rules that users set in jax's form."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from minijax.base.source import hide_frames
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr
from minijax.ir.result_types import has_mesh, result_types
from minijax.ir.rules import no_rule
from minijax.ir.types import Aval, is_value, typeof
from minijax.partition.meshes import abstract_context, explicit_meshes

_MAX_MEMO = 4096
# The attributes that jax's primitives have: completion shows them and not those of rules.
_SHOWN = frozenset(
    "abstract_eval bind bind_with_trace call_primitive def_abstract_eval def_effectful_abstract_eval def_impl "
    "get_bind_params impl multiple_results name skip_canonicalization".split()
)


def programs_in(values: Iterable) -> Iterator[Any]:
    """The jaxprs and functions among parameters, which may keep alive the values that a user's function captured."""
    for value in values:
        if isinstance(value, tuple):
            yield from programs_in(value)
        elif isinstance(value, (Jaxpr, ClosedJaxpr)) or callable(value):
            yield value


class Binding:
    """The base class of primitives: binds, types and evaluates the operation, and takes users' rules in jax's form."""

    name: str
    multiple_results: bool
    auto_pvary: bool
    defaults_to_context_mesh: bool
    caches_types: bool
    infer: Any
    effects: Any
    at_once: Any
    implied: Mapping[str, Any] = {}  # parameters that jax's operation always has, for traces of users

    def __dir__(self):
        *users, root = [c for c in type(self).__mro__ if c.__module__.partition(".")[0] not in ("minijax", "jax")]
        owners = [root, *users, self] if users else [root]
        return sorted({name for owner in owners for name in vars(owner)} | _SHOWN)

    def __init__(self, name: str | None = None):
        if name is not None:
            self.name = name
            if type(self).impl is Binding.impl:
                self.impl = self._no_evaluation

    def _no_evaluation(self, *operands, **params):
        no_rule(self, "impl")

    def listed(self, results: Any) -> list:
        """The results of a user's rule, one or several, as a list."""
        return list(results) if self.multiple_results else [results]

    def processed_by(self, trace: Any, operands: Sequence, params: dict) -> list:
        """Processes the operation by a trace that a user defined."""
        self._refuse(operands)
        return self.listed(trace.process_primitive(self, operands, {**self.implied, **params}))

    def _listed_types(self, types: Any) -> list:
        if isinstance(types, list | tuple) != self.multiple_results:
            raise ValueError(
                f"{self}.abstract_eval() method should return a tuple or a list if and only if "
                f"{self}.multiple_results, which is {self.multiple_results}. It returned {types}."
            )
        return self.listed(types)

    @property
    def impl(self) -> Callable:
        """The function that evaluates the operation: (*operands, **params) -> the result, or results. It can be set."""
        return self.__dict__.get("_impl", self._computed)

    @impl.setter
    def impl(self, impl: Callable) -> None:
        self._impl, self.at_once = impl, self._evaluated

    def def_impl(self, impl: Callable) -> Callable:
        """Sets the function that evaluates the operation."""
        self.impl = impl
        return impl

    def _computed(self, *operands, **params):
        """Evaluates the operation by its own rule, also if `impl` was set."""
        at_once = type(self).at_once
        if at_once is None:
            results = state.eval_trace[0].compute(self, operands, params)
        else:
            results = at_once(self, *operands, **params)
        return results if self.multiple_results else results[0]

    def _evaluated(self, *operands, **params):
        return self.evaluate(operands, params)

    def def_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """Sets the typing rule: (*operand types, **params) -> the result's type, or types."""
        self.infer = lambda *avals, **params: self._listed_types(abstract_eval(*avals, **params))
        self.__dict__.pop("effects", None)
        self._memo = {}
        return abstract_eval

    def def_effectful_abstract_eval(self, effectful_abstract_eval: Callable) -> Callable:
        """As `def_abstract_eval`, for a rule that returns the types and a set of effects."""
        rule = effectful_abstract_eval
        self.infer = lambda *avals, **params: self._listed_types(rule(*avals, **params)[0])
        self.effects = lambda *avals, **params: frozenset(rule(*avals, **params)[1])
        self._memo = {}
        return effectful_abstract_eval

    @property
    def abstract_eval(self) -> Callable:
        """(*operand types, **params) -> the result's type, or types, and the effects. It can be set, or be a method."""
        return self._abstract_eval

    @abstract_eval.setter
    def abstract_eval(self, rule: Callable) -> None:
        self.def_effectful_abstract_eval(rule)

    def _abstract_eval(self, *args: Aval, **params: Any) -> tuple[Any, frozenset]:
        avals, effects = self.typed(args, params)
        return (avals if self.multiple_results else avals[0]), effects

    def __init_subclass__(cls, **options: Any):
        """Takes a subclass's methods `impl` and `abstract_eval`, which are in jax's form, as its rules."""
        super().__init_subclass__(**options)
        if "impl" in cls.__dict__:
            cls.at_once = cls._evaluated
        if "abstract_eval" in cls.__dict__ and "infer" not in cls.__dict__:
            cls.infer = lambda self, *avals, **params: self._listed_types(self.abstract_eval(*avals, **params)[0])
            cls.effects = lambda self, *avals, **params: frozenset(self.abstract_eval(*avals, **params)[1])

    def get_bind_params(self, params: dict) -> dict:
        """The parameters of `bind` for those of an equation."""
        return params

    def bind_with_trace(self, trace: Any, args: Sequence, avals: Sequence, params: dict, /) -> Any:
        """As `bind`, by an interpreter that need not be the current one."""
        results = self.rebind(trace, args, params)
        return results if self.multiple_results else results[0]

    def evaluate(self, operands: Sequence, params: dict) -> list:
        """Calls the function that `impl` was set to."""
        for x in operands:
            if not is_value(x):
                self._refuse(operands)
        return self.listed(self.impl(*operands, **params))

    def _refuse(self, operands: Sequence) -> None:
        """Raises TypeError for an operand that is not a value."""
        for i, x in enumerate(operands):
            try:
                typeof(x)
            except TypeError as error:
                raise TypeError(
                    f"Error interpreting argument to {self} as a JAX value. The problematic value is of type "
                    f"{type(x)} and was passed to {self} at position {i}. {error}"
                ) from None

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Evaluates or records the operation; returns the result, or a list if `multiple_results`."""
        if state.thread.manual and self.auto_pvary:
            operands = state.thread.manual.unite(operands)
        try:
            try:
                results = (state.thread.trace or state.eval_trace[0]).process(self, operands, params)
            except TypeError:
                self._refuse(operands)
                raise
        except Exception as error:
            hide_frames(error)
            raise
        return results if self.multiple_results else results[0]

    def bind_all(self, operands: Sequence, params: dict) -> list:
        """As `bind`; returns a list."""
        if state.thread.manual and self.auto_pvary:
            operands = state.thread.manual.unite(operands)
        return (state.thread.trace or state.eval_trace[0]).process(self, operands, params)

    def rebind(self, trace: Any, operands: Sequence, params: dict) -> list:
        """Processes a recorded equation again, by a trace."""
        if state.thread.manual and self.auto_pvary:
            operands = state.thread.manual.unite(operands)
        return trace.process(self, operands, params)

    def typed(self, avals: Sequence[Aval], params: dict) -> tuple[list[Aval], frozenset]:
        """Result types and effects, cached by operand types and parameters."""
        try:
            typed = self._memo.get((*avals, *params.items()) if params else (*avals,))
            if typed is not None and not explicit_meshes:
                return typed
        except (TypeError, AttributeError):  # a parameter without a hash; no types yet
            pass
        return self._typed_anew(avals, params)

    def _typed_anew(self, avals: Sequence[Aval], params: dict) -> tuple[list[Aval], frozenset]:
        if not self.caches_types:
            return result_types(self, avals, params)
        try:
            key = (*avals, *params.items())
            if explicit_meshes and self.defaults_to_context_mesh:
                key = (abstract_context(), *key)
            typed = self._memo.get(key)
        except TypeError:
            return result_types(self, avals, params)
        except AttributeError:
            self._memo = {}
            typed = None
        if typed is None and has_mesh(avals):
            key = (abstract_context(), *key)  # the mesh in the types must be the context mesh
            typed = self._memo.get(key)
        if typed is None:
            typed = result_types(self, avals, params)
            if len(self._memo) >= _MAX_MEMO:
                self._memo.clear()
            if next(programs_in(params.values()), None) is None:
                self._memo[key] = typed
        return typed
