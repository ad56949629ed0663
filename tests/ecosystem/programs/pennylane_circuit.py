"""A circuit of pennylane, its gradient and its batch, by jax."""

import jax
import jax.numpy as jnp
import pennylane as qml

device = qml.device("default.qubit", wires=2)


@qml.qnode(device, interface="jax")
def circuit(angles):
    qml.RX(angles[0], wires=0)
    qml.RY(angles[1], wires=1)
    qml.CNOT(wires=[0, 1])
    return qml.expval(qml.PauliZ(1))


angles = jnp.array([0.4, 0.7])
print(circuit(angles).round(5), jax.grad(circuit)(angles).round(5))
print(jax.jit(circuit)(angles).round(5), jax.jit(jax.grad(circuit))(angles).round(5))
print(jax.vmap(circuit)(jnp.ones((2, 2)) * angles).round(5))
print(jax.hessian(circuit)(angles).round(5))
