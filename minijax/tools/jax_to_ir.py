"""jax.tools.jax_to_ir: a script (`python -m`) that writes a function as HLO."""

from minijax.interop.to_ir import (
    jax_to_hlo as jax_to_hlo,
    jax_to_ir as jax_to_ir,
    jax_to_tf as jax_to_tf,
    main as main,
    parse_shape_str as parse_shape_str,
)

if __name__ == "__main__":
    main()
