"""Functions in C++ that the tests of `jax.ffi` register with XLA; compiled once, where there is g++."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType

import jaxlib
import pytest

SOURCE = Path(__file__).parents[1] / "composed" / "ffi_handlers.cc"
TYPED = ("axpy", "memory", "row_sums", "attributes", "tell", "add_one", "pass_token")
STAGED = {"instantiate": "make_state", "execute": "count_up"}
without_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compile handlers with")


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled functions."""
    include = os.path.join(os.path.dirname(jaxlib.__file__), "include")
    name = hashlib.sha256(SOURCE.read_bytes() + jaxlib.__version__.encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"minijax-ffi-{name}.so"
    if not path.exists():
        handle, own = tempfile.mkstemp(suffix=".so", dir=path.parent)
        os.close(handle)
        options = ["-std=c++17", "-O1", "-fPIC", "-shared", "-w", f"-I{include}"]
        subprocess.run(["g++", *options, str(SOURCE), "-o", own], check=True)
        os.replace(own, path)
    return ctypes.CDLL(str(path))


def register(ffi: ModuleType) -> None:
    """Registers all of them, through the `ffi` of a package; existing registrations stay."""
    functions = library()
    for name in TYPED:
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(functions, name)))
    stages = {stage: ffi.pycapsule(getattr(functions, name)) for stage, name in STAGED.items()}
    for name in ("state_id", "state_info"):
        getattr(functions, name).restype = ctypes.c_void_p
    kind = {"type_id": ffi.pycapsule(functions.state_id()), "type_info": ffi.pycapsule(functions.state_info())}
    ffi.register_ffi_type("test_state", kind)
    ffi.register_ffi_target("test_count_up", stages)
    for name in ("original", "configured"):
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(functions, name)), api_version=0)
    ffi.register_ffi_target_as_batch_partitionable("test_row_sums")
