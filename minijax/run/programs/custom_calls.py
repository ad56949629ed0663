"""The CPU libraries whose functions programs call: registered with XLA when a program needs them."""

import re
import threading

from jaxlib import xla_client as xc

from minijax.base.lazy import defer

lapack = defer("jaxlib.cpu._lapack")
sparse = defer("jaxlib.cpu._sparse")

# By name: a library, and a pattern for its targets.
_LIBRARIES = {
    "lapack": (lapack, re.compile(r"lapack_\w+_ffi|tridiagonal_solve_perturbed_ffi")),
    "sparse": (sparse, re.compile("cpu_csr_sparse_dense_ffi")),
}
_registered: set[str] = set()
_register_lock = threading.Lock()


def ensure_custom_calls(text: str) -> None:
    """Registers the CPU libraries whose targets a program contains; without this, a call would end the process."""
    for name, (library, targets) in _LIBRARIES.items():
        if name not in _registered and targets.search(text):
            with _register_lock:
                for target, capsule in library.registrations().items():
                    xc.register_custom_call_target(target, capsule, platform="cpu", api_version=1)
                if name == "lapack":
                    for target in lapack.registrations():
                        xc.register_custom_call_as_batch_partitionable(target)
                    lapack.initialize()
                _registered.add(name)
