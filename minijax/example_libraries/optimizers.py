"""Optimizers as triples of functions (init, update, get_params) over trees of parameters.

`init(params)` gives a state, `update(step, gradients, state)` the next one, `get_params(state)` the
parameters.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax.base import tree
from minijax.base.faces import listing
from minijax.base.tree import tree_leaves

__all__, __dir__ = listing(
    __name__,
    """
    Array InitFn JoinPoint Optimizer OptimizerState Params ParamsFn Schedule State Step UpdateFn Updates adagrad
    adam adamax clip_grads constant exponential_decay inverse_time_decay l2_norm make_schedule momentum nesterov
    optimizer pack_optimizer_state piecewise_constant polynomial_decay rmsprop rmsprop_momentum sgd sm3
    unpack_optimizer_state
""",
)

Array = Params = State = Updates = Any
Step = int
Schedule = Callable[[Step], float]


class OptimizerState(NamedTuple):
    """Holds the state's leaves by parameter, the parameters' tree, and the tree of each parameter's state.

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.sgd(0.1)
        >>> init({"w": 1.0, "b": 0.0}).tree_def
        PyTreeDef({'b': *, 'w': *})
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree.register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data),
)


InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """Groups the three functions of an optimizer.

    Example:
        >>> optimizer = jax.example_libraries.optimizers.sgd(0.1)
        >>> state = optimizer.update_fn(0, 1.0, optimizer.init_fn(3.0))
        >>> print(optimizer.params_fn(state))
        2.9
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker: Callable) -> Callable[..., Optimizer]:
    """Makes an optimizer of trees from a maker of an optimizer of arrays, as a decorator.

    Example:
        >>> @jax.example_libraries.optimizers.optimizer
        ... def halve():
        ...     return lambda x: x, lambda i, grad, x: x / 2, lambda x: x
        >>> init, update, get_params = halve()
        >>> get_params(update(0, {"w": 1.0}, init({"w": 8.0})))
        {'w': 4.0}
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args, **kwargs):
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params):
            leaves, tree_def = tree.flatten(params)
            return _packed([init(x) for x in leaves], tree_def)

        def tree_update(i, grads, state):
            leaves, tree_def = tree.flatten(grads)
            if tree_def != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter "
                    f"tree structure with which it was initialized: parameter tree {state.tree_def} and grad "
                    f"tree {tree_def}."
                )
            new = [update(i, g, s) for g, s in zip(leaves, _unpacked(state), strict=True)]
            new_state = _packed(new, tree_def)
            for old_def, new_def in zip(state.subtree_defs, new_state.subtree_defs, strict=True):
                if old_def != new_def:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match its "
                        f"input structure: input {old_def} and output {new_def}."
                    )
            return new_state

        def tree_get_params(state):
            return state.tree_def.unflatten([get_params(s) for s in _unpacked(state)])

        return Optimizer(tree_init, tree_update, tree_get_params)

    return tree_opt_maker


class JoinPoint:
    """Marks a leaf, in a tree like the parameters', that holds the state of one parameter.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> init, _, _ = optimizers.momentum(0.1, 0.9)
        >>> optimizers.unpack_optimizer_state(init({"w": 1.0}))["w"].subtree
        (1.0, Array(0., dtype=float32, weak_type=True))
    """

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Returns the state as a tree like the parameters', with a `JoinPoint` for each.

    Example:
        >>> optimizers = jax.example_libraries.optimizers
        >>> state = optimizers.sgd(0.5).init_fn({"w": jnp.array([1.0])})
        >>> optimizers.unpack_optimizer_state(state)["w"].subtree
        Array([1.], dtype=float32)
    """
    return opt_state.tree_def.unflatten(map(JoinPoint, _unpacked(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Returns the state of a tree as `unpack_optimizer_state` gives it.

    Raises AssertionError for other leaves.

    Example:
        >>> optimizers = jax.example_libraries.optimizers
        >>> state = optimizers.sgd(0.5).init_fn({"w": jnp.array([1.0])})
        >>> optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)).packed_state
        ([Array([1.], dtype=float32)],)
    """
    points, tree_def = tree.flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise AssertionError("pack_optimizer_state: all leaves must be JoinPoints")
    return _packed([point.subtree for point in points], tree_def)


def _packed(states: list, tree_def: Any) -> OptimizerState:
    pairs = [tree.flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in pairs), tree_def, tuple(d for _, d in pairs))


def _unpacked(state: OptimizerState) -> list:
    return [d.unflatten(x) for d, x in zip(state.subtree_defs, state.packed_state, strict=True)]


@optimizer
def sgd(step_size: Any) -> tuple:
    """Makes an optimizer by stochastic gradient descent.

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.sgd(0.5)
        >>> get_params(update(0, jnp.array([2.0]), init(jnp.array([1.0]))))
        Array([0.], dtype=float32)
    """
    schedule = make_schedule(step_size)
    return lambda x0: x0, lambda i, g, x: x - schedule(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> tuple:
    """Makes an optimizer by gradient descent with momentum.

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.momentum(0.5, mass=0.9)
        >>> get_params(update(0, jnp.array([2.0]), init(jnp.array([1.0]))))
        Array([0.], dtype=float32)
    """
    return _descent(step_size, mass, lambda velocity, g: velocity)


@optimizer
def nesterov(step_size: Any, mass: float) -> tuple:
    """Makes an optimizer by gradient descent with Nesterov's momentum.

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.nesterov(0.5, mass=0.9)
        >>> get_params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))).round(3)
        Array([-0.90000004], dtype=float32)
    """
    return _descent(step_size, mass, lambda velocity, g: mass * velocity + g)


def _descent(step_size: Any, mass: float, direction: Callable) -> tuple:
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * direction(velocity, g), velocity

    return lambda x0: (x0, jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> tuple:
    """Makes an optimizer by SM3 (Anil et al., 2019): Adagrad with one sum of squares for each index of each axis.

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.sm3(0.5, momentum=0.0)
        >>> get_params(update(0, jnp.full((2, 2), 4.0), init(jnp.ones((2, 2)))))
        Array([[0.5, 0.5],
               [0.5, 0.5]], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0):
        x = jnp.atleast_1d(x0)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape], jnp.shape(x0)

    def update(i, g, state):
        x, m, sums, shape = state
        ndim = jnp.ndim(x)
        along = lambda k: tuple(slice(None) if k == axis else None for axis in range(ndim))  # noqa: E731
        least = functools.reduce(jnp.minimum, [v[along(k)] for k, v in enumerate(sums)])
        squares = least + jnp.square(g)
        inverse = jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0)
        m = (1.0 - momentum) * (g * inverse) + momentum * m
        x = x - schedule(i) * m
        others = [tuple(axis for axis in range(ndim) if axis != k) for k in range(len(sums))]
        return x, m, [squares.max(axes) for axes in others], shape

    return init, update, lambda state: state[0] if state[3] else state[0].reshape(())


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> tuple:
    """Makes an optimizer by Adagrad (Duchi et al., 2011).

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.adagrad(0.5)
        >>> print(get_params(update(0, 4.0, init(1.0))))
        0.95
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares + jnp.square(g)
        inverse = jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)
        m = (1.0 - momentum) * (g * inverse) + momentum * m
        return x - schedule(i) * m, squares, m

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> tuple:
    """Makes an optimizer by RMSProp (Hinton, 2012).

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.rmsprop(0.5, gamma=0.75)
        >>> print(get_params(update(0, 4.0, init(1.0))))
        0.0
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, average = state
        average = average * gamma + jnp.square(g) * (1.0 - gamma)
        return x - schedule(i) * g / jnp.sqrt(average + eps), average

    return lambda x0: (x0, jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> tuple:
    """Makes an optimizer by RMSProp with momentum.

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.rmsprop_momentum(0.5, gamma=0.75)
        >>> print(get_params(update(0, 4.0, init(1.0))))
        0.0
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, average, mom = state
        average = average * gamma + jnp.square(g) * (1.0 - gamma)
        mom = momentum * mom + schedule(i) * g / jnp.sqrt(average + eps)
        return x - mom, average, mom

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple:
    """Makes an optimizer by Adam (Kingma & Ba, 2014).

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.adam(0.1)
        >>> get_params(update(0, jnp.array([2.0]), init(jnp.array([1.0])))).round(3)
        Array([0.90000004], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        m_hat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        v_hat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - schedule(i) * m_hat / (jnp.sqrt(v_hat) + eps), m, v

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, lambda state: state[0]


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple:
    """Makes an optimizer by AdaMax (Kingma & Ba, 2014).

    Example:
        >>> init, update, get_params = jax.example_libraries.optimizers.adamax(0.5)
        >>> print(get_params(update(0, 4.0, init(1.0))))
        0.500...
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = jnp.maximum(b2 * v, jnp.abs(g))
        return x - (schedule(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))) * m / (v + eps), m, v

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, lambda state: state[0]


def constant(step_size: Any) -> Schedule:
    """Makes the schedule that is always `step_size`.

    Example:
        >>> jax.example_libraries.optimizers.constant(0.1)(5)
        0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Makes the schedule step_size * decay_rate ** (i / decay_steps).

    Example:
        >>> jax.example_libraries.optimizers.exponential_decay(1.0, 10, 0.5)(20)
        0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Makes the schedule step_size / (1 + decay_rate * i / decay_steps), in whole steps if `staircase`.

    Example:
        >>> jax.example_libraries.optimizers.inverse_time_decay(1.0, 10, 1.0)(10)
        0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """Makes a schedule from `step_size` to `final_step_size` over `decay_steps`.

    Example:
        >>> float(jax.example_libraries.optimizers.polynomial_decay(1.0, 10, 0.5)(10))
        0.5
    """

    def schedule(i):
        i = jnp.minimum(i, decay_steps)
        return (1 - i / decay_steps) ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Makes a schedule whose value is that of the interval between boundaries that contains the step.

    Raises ValueError unless there is one more value than boundaries.

    Example:
        >>> float(jax.example_libraries.optimizers.piecewise_constant([10], [1.0, 0.5])(11))
        0.5
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Makes a number a constant schedule; returns a schedule unchanged.

    Example:
        >>> jax.example_libraries.optimizers.make_schedule(0.5)(0)
        0.5
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


def l2_norm(tree: Any) -> Any:
    """Computes the Euclidean norm of all leaves together.

    Example:
        >>> float(jax.example_libraries.optimizers.l2_norm({"w": jnp.array([3.0]), "b": jnp.array([4.0])}))
        5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scales gradients down to norm `max_norm` if theirs is larger.

    Example:
        >>> jax.example_libraries.optimizers.clip_grads(jnp.array([3.0, 4.0]), 1.0).round(3)
        Array([0.6, 0.8], dtype=float32)
    """
    norm = l2_norm(grad_tree)
    return tree.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
