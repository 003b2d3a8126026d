#!/usr/bin/env python3
"""gpu_check_start_test.py GPU-CHECK: a program that cannot start is a failure, no device is none."""
import os
import shutil
import subprocess
import sys
import tempfile

LOADER = "error while loading shared libraries: libcublasLt.so.13: cannot open shared object file"


def check(script, program):
    """Exit status and output of gpu-check beside a gpu-programs that consists of this shell script."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(script, folder)
        shutil.copytree(os.path.join(os.path.dirname(script), "gpu_check"), os.path.join(folder, "gpu_check"))
        path = os.path.join(folder, "gpu-programs")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + program)
        os.chmod(path, 0o755)
        done = subprocess.run([os.path.join(folder, "gpu-check"), "--out", os.path.join(folder, "out")],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout


def main():
    script = sys.argv[1]
    failures = []

    def expect(what, got, status, *parts):
        if got[0] != status or not all(part in got[1] for part in parts):
            failures.append(f"{what}: got status {got[0]} and {got[1]!r}, expected {status} and {parts}")

    expect("a missing library", check(script, f"echo 'gpu-programs: {LOADER}' >&2; exit 127\n"), 1,
           "failed", LOADER)
    expect("a crash", check(script, "kill -SEGV $$\n"), 1, "failed", "no output")
    expect("no device", check(script, "echo 'mode           CUDA build on a machine without a GPU'\n"), 77,
           "skipped: no device", "without a GPU")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
