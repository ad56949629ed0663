"""The exceptions that programs may want to catch.

`JaxRuntimeError` is raised by XLA's runtime, in compiling or in running a program: where memory is exhausted, where a
callback on the host raises, or where devices fail. Its message begins with a status, such as `RESOURCE_EXHAUSTED`.
Computations run in the background, hence it may be raised later, where a result is waited for.

>>> def callback(x):
...     raise ValueError("no result")
>>> f = jax.jit(lambda x: jax.pure_callback(callback, jax.ShapeDtypeStruct((), jnp.float32), x))
>>> try:
...     jax.block_until_ready(f(1.0))
... except jax.errors.JaxRuntimeError as error:
...     print(str(error).partition(": Traceback")[0])
INTERNAL: CpuCallback error calling callback

Mended, by a callback that returns an array of the shape and dtype that were declared:

>>> f = jax.jit(lambda x: jax.pure_callback(lambda x: np.float32(7), jax.ShapeDtypeStruct((), jnp.float32), x))
>>> float(f(1.0))
7.0
"""

from minijax.base.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    JAXIndexError as JAXIndexError,
    JaxprTypeError as JaxprTypeError,
    JaxRuntimeError as JaxRuntimeError,
    JAXTypeError as JAXTypeError,
    KeyReuseError as KeyReuseError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
