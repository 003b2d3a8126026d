#!/usr/bin/env python3
"""Checks the steps of ladders with binade kernel: ladders_test.py BINADE [--only NAME,...].

Every step is right, and its counts are those of its comment "Counted (SHAPE): global ...". --only: steps whose
path contains one of the names.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNTED = re.compile(r"// Counted \(([\dx]+)\): ((?:.|\n//)+)")


def counts_of(report, step):
    """The text of a comment: sums over the lines of the step."""
    counts = report["counts"]
    here = [row for row in counts["lines"] if row["file"] == str(step)]
    names = [row for row in counts["together"] if row["file"] == str(step)]

    def total(rows, key):
        return sum(row[key] for row in rows)

    def warps(prefix):
        return total([row for row in names if row["what"].startswith(prefix)], "warps")
    of_global, shared = ([row for row in here if row["memory"] == memory] for memory in ("global", "shared"))
    return (f"global {total(of_global, 'requests')} requests {total(of_global, 'sectors')} sectors, "
            f"shared {total(shared, 'requests')} requests {total(shared, 'passes')} passes, "
            f"{warps('__syncthreads')} barriers, {warps('__shfl')} shuffles, "
            f"{total([row for row in here if row['access'] == 'atomic'], 'lanes')} atomics, {warps('mma_sync')} products")


def fault_of(binade, step):
    found = COUNTED.search(step.read_text())
    if not found:
        return "no comment \"Counted (SHAPE): ...\""
    said = re.sub(r"\n// *", " ", found[2])
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        run = subprocess.run([binade, "kernel", step, "--case", f"{step.parent.name}:{found[1]}", "--no-nvcc",
                              "--json", report], capture_output=True, text=True, timeout=280, check=False)
        if run.returncode:
            return f"exit {run.returncode}: {run.stdout}{run.stderr}"
        counted = counts_of(json.loads(report.read_text()), step)
    return None if said == counted else f"says   {said}\n  counts {counted}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binade")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    steps = [step for step in sorted((ROOT / "lab/ladders").rglob("*.cu"))
             if any(part in str(step.relative_to(ROOT)) for part in options.only.split(","))]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for step, fault in zip(steps, pool.map(lambda step: fault_of(options.binade, step), steps)):
            failed += fault is not None
            print(f"{'FAILED' if fault else 'passed'} {step.relative_to(ROOT)}{': ' + fault if fault else ''}")
    print(f"{len(steps) - failed} passed, {failed} failed")
    return 1 if failed or not steps else 0


if __name__ == "__main__":
    sys.exit(main())
