"""The base class of kernels' operations on references, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.base import tree
from minijax.composed.refs import (
    RefOperation,
    TransformedRef,
    parts_of,
    read_view,
    type_of_elements,
    updated_view,
    view_text,
    write,
)
from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.primitive import Primitive
from minijax.ir.refs import AbstractRef, Ref
from minijax.ir.rules import no_rule
from minijax.ir.types import ShapedArray, Zero, is_value, typeof
from minijax.kernels.operations.selection import SelectedRef
from minijax.primitives.elementwise import eq, select_n
from minijax.primitives.families import scalar_like
from minijax.primitives.moving import as_array_or_constant
from minijax.primitives.zeros import zeros_like_aval


class KernelOperation(RefOperation):
    """An operation on references and views of them. Its operands are the leaves of a tuple of the tree `args_tree`."""

    multiple_results = True
    tree_param = "args_tree"

    def call(self, *args: Any, **params: Any) -> list:
        """Binds the operation to references, views and arrays."""
        leaves, args_tree = tree.flatten(tuple([_plain(x) if type(x) is TransformedRef else x for x in args]))
        return self.bind_all(list(map(_operand, leaves)), {self.tree_param: args_tree, **params})

    def arguments(self, operands: Any, params: dict) -> tuple:
        """The arguments, whose leaves are the operands."""
        return params[self.tree_param].unflatten(operands)

    def perform(self, *operands, **params):
        args = self.arguments(operands, params)
        return self.performed(*args, **{k: v for k, v in params.items() if k != self.tree_param})

    def performed(self, *args: Any, **params: Any) -> list:
        """Changes the values of the references and returns the results."""
        raise NotImplementedError(f"{self.name} cannot be interpreted")

    def jvp(self, primals, tangents, **params):
        pushed = self.pushed(self.arguments(primals, params), self.arguments(tangents, params))
        others = {k: v for k, v in params.items() if k != self.tree_param}
        results = self.bind_all(primals, params)
        if pushed is None:
            return results, [Zero.from_primal_value(r) for r in results]
        return results, self.call(*pushed, **others)

    def pushed(self, args: tuple, tangents: tuple) -> tuple | None:
        """The arguments of the operation on tangents, or None if all are zero."""
        no_rule(self, "jvp")

    def infer(self, *avals, **params):
        args = self.arguments(avals, params)
        return self.result_types(*args, **{k: v for k, v in params.items() if k != self.tree_param})

    def result_types(self, *args: Any, **params: Any) -> list:
        """The types of the results."""
        return []

    def elements_of_view(self, view, *args, **params):
        """As `result_types`: one result, of the type of the elements that the first argument shows."""
        return [type_of(view).update(weak_type=False)]

    def shown_arguments(self, eqn: JaxprEqn, name: Callable) -> list[str]:
        """The arguments as jaxprs print them."""
        return [text_of(arg, name) for arg in self.arguments(eqn.invars, eqn.params)]


def _plain(view: TransformedRef) -> TransformedRef:
    """The view whose leaves are the operands of an operation in this trace: its numbers stay numbers."""
    return TransformedRef(*parts_of(view))


def _operand(x: Any) -> Any:
    return x if isinstance(x, Ref) else as_array_or_constant(x)


def text_of(arg: Any, name: Callable) -> str:
    """An argument, a reference, a view, a device's coordinates or an atom, as jaxprs print it."""
    if arg is None:
        return ""
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {text_of(v, name)}" for k, v in arg.items()) + "}"
    if isinstance(arg, list | tuple):
        return "(" + ", ".join(text_of(a, name) for a in arg) + ")"
    if type(arg) is SelectedRef:
        return f"{text_of(arg.refs, name)}{{select({name(arg.index, False)})}}"
    if is_view(arg) or hasattr(getattr(arg, "aval", None), "inner_aval"):
        ref, path, arrays = parts_of(arg)
        return view_text(ref, path, arrays, name)
    return name(arg, False)


def view_of_tangent(view: Any, tangent: Any) -> Any:
    """The view of the reference to tangents that corresponds to a view; None if the reference has no tangents."""
    ref = tangent.ref if is_view(tangent) else tangent
    if type(ref) is Zero:
        return None
    _, path, arrays = parts_of(view)
    return TransformedRef(ref, path, arrays) if path else ref


def is_view(x: Any) -> bool:
    """Returns whether this is a view of a reference."""
    return type(x) in (TransformedRef, SelectedRef)


def is_reference(x: Any) -> bool:
    """Returns whether this is a reference or a view of one."""
    return is_view(x) or isinstance(x, Ref)


def check_reference(x: Any, message: str, primitive: str) -> None:
    """Raises ValueError with a message unless `x` is a reference or a view, TypeError for what JAX has no type of."""
    if is_reference(x):
        return
    if all(map(is_value, tree.tree_leaves(x))):
        raise ValueError(message)
    raise TypeError(
        f"Error interpreting argument to {primitive} as a JAX value. The problematic value is of type {type(x)}. "
        f"{message}"
    )


def value_of(view: Any) -> Any:
    """The value of a reference, or of a view of one."""
    if type(view) is SelectedRef:
        return select_n(view.index, *map(value_of, view.refs))
    ref, path, arrays = parts_of(view)
    return read_view(ref._value, path, arrays)


def store(primitive: Primitive, view: Any, value: Any, how: str = "set") -> None:
    """Sets a reference, or the elements that a view selects, to a value; with `how` "add", adds it."""
    if type(view) is SelectedRef:
        for i, each in enumerate(view.refs):
            other = value_of(each) if how == "set" else zeros_like_aval(typeof(value))
            store(primitive, each, select_n(eq(view.index, scalar_like(view.index, i)), other, value), how)
        return
    ref, path, arrays = parts_of(view)
    write(primitive, ref, updated_view(ref._value, path, arrays, value, how))


def type_of(view: Any) -> Any:
    """The type of the value of a reference, or of the elements that a view selects."""
    if type(view) is SelectedRef:
        return type_of(view.refs[0])
    ref, path, arrays = parts_of(view)
    aval = ref if type(ref) is AbstractRef else typeof(ref)
    return type_of_elements(aval, path, [a if type(a) is ShapedArray else typeof(a) for a in arrays])
