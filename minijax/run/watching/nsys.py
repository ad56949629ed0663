"""Converts the costs of instructions in an nsys profile to the format of XLA's latency hiding scheduler."""

import argparse
import csv
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence

_REPORTS = "nvtx_kern_sum", "nvtxkernsum"  # in newer and in older versions
_INSTRUCTION = re.compile(r":#hlo_op=([^,#]+)#")

parser = argparse.ArgumentParser(description="Tool to convert NVIDIA Nsys Profiles to the .pbtxt format")
parser.add_argument("--profile_path", required=True, help="path to nsys profile")
parser.add_argument("--post_process", action="store_true", help="keep only the largest costs; this is always done")
parser.add_argument("--pgle_output_path", required=True, help="the file to write")


def costs(rows: Iterable[Mapping[str, str]]) -> dict[str, float]:
    """The largest average time of each instruction among a report's rows, in microseconds."""
    longest: dict[str, float] = {}
    for row in rows:
        if match := _INSTRUCTION.search(row["NVTX Range"]):
            longest[match[1]] = max(longest.get(match[1], 0.0), float(row["Avg (ns)"]) / 1000)
    return longest


def _report(nsys: str) -> str:
    """The name of the report in the installed version."""
    listed = subprocess.run([nsys, "stats", "--help-reports"], capture_output=True, text=True).stdout
    return _REPORTS[0] if _REPORTS[0] in listed else _REPORTS[1]


def main(argv: Sequence[str] | None = None) -> None:
    """Converts the profile given on the command line. Raises FileNotFoundError if nsys is not installed."""
    options = parser.parse_args(argv)
    nsys = shutil.which("nsys")
    if nsys is None:
        raise FileNotFoundError("pgo_nsys_converter: there is no nsys on the path")
    target = options.pgle_output_path.removesuffix(".pbtxt") + ".pbtxt"
    report = _report(nsys)
    force = ["--force-overwrite", "true", "--force-export", "true"]
    subprocess.run([nsys, "stats", *force, "--report", report, options.profile_path, "-o", target], check=True)
    with open(f"{target}_{report}.csv", newline="") as file:
        longest = costs(csv.DictReader(file))
    with open(target, "w") as file:
        file.writelines(f'costs {{ name: "{name}" cost_us: {cost} }}\n' for name, cost in longest.items())
