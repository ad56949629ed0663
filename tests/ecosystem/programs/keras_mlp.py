"""keras with the jax backend: a network is fitted and asked."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.RandomState(0)
x = rng.randn(256, 8).astype("float32")
y = x[:, :1] * 2 - x[:, 1:2] + 0.5
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
history = model.fit(x, y, epochs=3, batch_size=32, verbose=0, shuffle=False)
print([f"{loss:.5f}" for loss in history.history["loss"]])
print([f"{v:.4f}" for v in np.asarray(model.predict(x[:3], verbose=0)).ravel()])
