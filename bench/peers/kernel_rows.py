"""Rows of tables that compare one kernel with PyTorch: a benchmark of a Google Benchmark program against a call.

In every round each side runs a slice of the same length; slices.py rejects slices that other processes disturbed. The
figures are medians over the rounds, the ratio is that of the medians, against PyTorch's best form. On a busy
machine --cpu-time accepts disturbed slices and counts processor time instead of the clock, which says little about
more than one thread. PyTorch runs in its strongest form."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

import processes
import slices
import strongest

SLICE = 0.15  # seconds


def restart_strongest():
    """Restarts the program with the environment in which PyTorch is fastest."""
    if os.environ.get("BINADE_PEER") != "set":
        libraries, _ = strongest.preloads({"mkl": True})  # no harm to a PyTorch without MKL
        env = {**processes.environment(preloads=libraries), "BINADE_PEER": "set"}
        os.execve(sys.executable, [sys.executable] + sys.argv, env)


def import_torch():
    """PyTorch in its fastest configuration; ends the program if there is no PyTorch."""
    restart_strongest()
    try:
        import torch
    except ImportError:
        sys.exit(f"{os.path.basename(sys.argv[0])}: no PyTorch for this Python; apt install python3-torch "
                 "libopenblas0-openmp, then use /usr/bin/python3")
    return torch


def parse_flags(description, program, filtered, dtypes=()):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help=program)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--filter", default="", help=f"regular expression on {filtered}")
    parser.add_argument("--cpu-time", action="store_true", help="processor time in place of the clock")
    if dtypes:
        parser.add_argument("--dtype", choices=dtypes, default=dtypes[0])
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def binade_slice(flags, name):
    """Milliseconds per call of one benchmark of a Google Benchmark program."""
    command = [flags.program, f"--benchmark_filter=^{re.escape(name)}$", f"--benchmark_min_time={SLICE}",
               "--benchmark_format=json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)["benchmarks"][0]["cpu_time" if flags.cpu_time else "real_time"]


def torch_slice(flags, call):
    """Milliseconds per call."""
    clock = time.process_time if flags.cpu_time else time.perf_counter
    call()
    start, calls = clock(), 0
    while clock() - start < SLICE:
        call()
        calls += 1
    return 1e3 * (clock() - start) / calls


def measure(torch, flags, work, name, forms, threads):
    """One row: benchmark `name` against the calls `forms` of PyTorch, {form: call}."""
    torch.set_num_threads(threads)
    work_of = {"binade": lambda: binade_slice(flags, name)}
    work_of.update({form: lambda call=call: torch_slice(flags, call) for form, call in forms.items()})
    contest = slices.Contest()
    for _ in range(flags.rounds):
        for key, slice_of in work_of.items():
            contest.add(key, *slices.take(slices.Machine(), slice_of, accept=flags.cpu_time))
    median = {key: contest.median(key) for key in work_of}
    best = contest.best(tuple(forms))
    return {"work": work, "threads": threads, "binade_ms": median["binade"], "peer_ms": median[best],
            "peer": f"torch {torch.__version__} {best}", "ratio": median[best] / median["binade"],
            "foreign": statistics.median(contest.shares)}


def print_header(torch, work):
    print(f"load average {os.getloadavg()[0]:.1f}; {os.cpu_count()} processors; torch {torch.__version__}")
    print(f"| {work} | threads | Binade ms | GFLOP/s | PyTorch ms | ratio | others' use |\n|---|---|---|---|---|---|---|")


def print_row(row, flops):
    print(f"| {row['work']} | {row['threads']} | {row['binade_ms']:.3g} | {flops / row['binade_ms'] * 1e-6:.0f} | "
          f"{row['peer_ms']:.3g} ({row['peer'].split()[-1]}) | {row['ratio']:.2f} | {100 * row['foreign']:.0f}% |", flush=True)


def write_json(flags, results):
    if flags.json:
        with open(flags.json, "w") as file:
            json.dump(results, file, indent=1)
