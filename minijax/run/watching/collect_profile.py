"""Collects profiles of another process from its profiler server."""

import argparse
import gzip
import os
import tempfile
from collections.abc import Iterable
from typing import Any

from minijax.base.lazy import defer
from minijax.run.watching import profiler

xprof_convert = defer("xprof.convert.raw_to_tool_data")
xprof_plugin = defer("xprof.convert._pywrap_profiler_plugin")

DEFAULT_NUM_TRACING_ATTEMPTS = 3
_LEVELS = {"host_tracer_level": 2, "device_tracer_level": 1, "python_tracer_level": 1}

parser = argparse.ArgumentParser(
    formatter_class=argparse.RawDescriptionHelpFormatter,
    description="Profiles a program that has called `jax.profiler.start_server(<port>)`, for some time. It then\n"
    "prints a link that shows the profile, unless that is disabled.",
    epilog="Further options are the profiler's:\n" + "\n".join([f"  --{k}={v}" for k, v in _LEVELS.items()]),
)
parser.add_argument("port", type=int, help="the port of the program's server")
parser.add_argument("duration_in_ms", type=int, help="for how long to profile, in milliseconds")
parser.add_argument("--log_dir", type=str, help="the directory of the profile, by default a temporary one")
parser.add_argument("--no_perfetto_link", action="store_true", help="do not print a link to Perfetto")
parser.add_argument("--host", type=str, default="127.0.0.1", help="where the program runs, by default on this machine")


def collect_profile(
    port: int,
    duration_in_ms: int,
    host: str,
    log_dir: os.PathLike | str | None,
    no_perfetto_link: bool,
    xprof_options: dict[str, Any] | None = None,
) -> None:
    """Profiles the process whose server listens at a port, and writes the files that `jax.profiler.stop_trace` writes.

    Without `log_dir` they are in a temporary directory. Raises RuntimeError if no server answers.
    """
    folder = tempfile.mkdtemp() if log_dir is None else str(log_dir)
    options = {**_LEVELS, **(xprof_options or {})}
    xprof_plugin.trace(f"{host}:{port}", folder, "", True, duration_in_ms, DEFAULT_NUM_TRACING_ATTEMPTS, options)
    print(f"Dumped profiling information in: {folder}")
    profile = profiler.newest_profile(folder)
    text, _ = xprof_convert.xspace_to_tool_data(list(profile.glob("*.xplane.pb")), "trace_viewer", {})
    with gzip.open(profile / "remote.trace.json.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    if not no_perfetto_link:
        profiler.offer(profiler.write_perfetto_trace(profile))


def main(known_args: argparse.Namespace, unknown_flags: Iterable[str]) -> None:
    """Profiles with the arguments of a command line; unknown flags are options of the profiler.

    Raises ValueError for a positional argument among them.
    """
    options: dict[str, Any] = {}
    flags = list(unknown_flags)
    while flags:
        flag = flags.pop(0)
        if not flag.startswith("--"):
            raise ValueError(f"Unknown positional argument encountered: {flag}")
        name, is_set, value = flag[2:].partition("=")
        if not is_set:
            value = flags.pop(0) if flags and not flags[0].startswith("--") else "true"
        options[name] = _option(value)
    a = known_args
    collect_profile(a.port, a.duration_in_ms, a.host, a.log_dir, a.no_perfetto_link, options)


def _option(text: str) -> bool | int | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.removeprefix("-").isdecimal() else text
