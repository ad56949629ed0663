"""A pendulum, stepped by MuJoCo's physics on jax."""

import jax
import mujoco
from mujoco import mjx

PENDULUM = """
<mujoco><worldbody><body pos="0 0 1">
  <joint type="hinge" axis="1 0 0"/><geom type="capsule" size=".05 .3"/>
</body></worldbody></mujoco>
"""
model = mujoco.MjModel.from_xml_string(PENDULUM)
on_device = mjx.put_model(model)
data = mjx.make_data(model).replace(qpos=jax.numpy.array([0.7]))
step = jax.jit(mjx.step)
for _ in range(20):
    data = step(on_device, data)
print(data.qpos.round(5), data.qvel.round(5))
