#!/usr/bin/env python
"""Measures what the frontend does in one process: the same programs for `jax` or a drop-in.

    python benchmarks/frontend.py --impl jax --out jax.json
    python benchmarks/frontend.py --impl minijax --groups dispatch,eager --quick

A workload that fails becomes {"error": ...} and the run goes on; compare.py counts it as lost.
"""

import json
import os
import platform
import sys
import time
from pathlib import Path

import calls
import devices
import growth
import kernels
import measure
import programs
import starts
from floors import DEVICE_GROUPS, GROUPS
from measure import IMPORT_SECONDS, guard, jax, options, put, results

assert sorted(measure.groups) == sorted(GROUPS + DEVICE_GROUPS), (calls, devices, growth, kernels, programs, starts)


def main() -> None:
    names = GROUPS if options.groups == "all" else options.groups.split(",")
    put("startup/import_in_process", [IMPORT_SECONDS], "ms")
    for name in names:
        start = time.perf_counter()
        guard(name, measure.groups[name])
        print(f"[{options.impl}] {name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    document = dict(
        impl=options.impl,
        version=getattr(jax, "__version__", "?"),
        groups=names,
        python=platform.python_version(),
        machine=platform.machine(),
        cpus=os.cpu_count(),
        quick=options.quick,
        clock=options.clock,
        results=results,
    )
    text = json.dumps(document, indent=1)
    if options.out:
        Path(options.out).write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    main()
