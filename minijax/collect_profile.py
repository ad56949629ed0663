"""jax.collect_profile: run by `python -m`, profiles a program that has started the profiler's server."""

import importlib.util

from minijax.run.watching.collect_profile import (
    DEFAULT_NUM_TRACING_ATTEMPTS as DEFAULT_NUM_TRACING_ATTEMPTS,
    collect_profile as collect_profile,
    main as main,
    parser as parser,
)

if importlib.util.find_spec("xprof") is None:
    raise ImportError("This script requires `xprof` to be installed.")

if __name__ == "__main__":
    main(*parser.parse_known_args())
