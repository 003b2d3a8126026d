#!/usr/bin/env python3
"""Checks a kernel in plain CUDA C++ without a GPU: check_kernel.py FILE.cu --case CASE[:SHAPE] [--strict].

Rewrites the file (host_cuda.py), compiles it for the race detector, links it with check_main.cpp and runs it.
Exit 0: right; 1: wrong, or refused by --strict; 2: wrong use, or a file that does not compile.
"""
import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import host_cuda

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--case", required=True)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    # From the build: the compiler with the flags of kernels, and the library with main().
    compiler, library = os.environ["BINADE_CHECK_COMPILER"], os.environ["BINADE_CHECK_LIBRARY"]
    case = options.case.split(":")[0]
    if case not in host_cuda.CASES:
        parser.error(f"--case {case}: there are {', '.join(host_cuda.CASES)}")
    with tempfile.TemporaryDirectory() as folder:
        source, item, program = (f"{folder}/kernel{suffix}" for suffix in (".cpp", ".o", ""))
        file = str(options.file.resolve())
        steps = [
            [sys.executable, "-B", str(HERE / "host_cuda.py"), source, f"{case}={file}"],
            [*shlex.split(compiler), "-c", source, "-o", item],
            [shlex.split(compiler)[0], "-rdynamic", item, library, "-o", program, "-ldl", "-pthread"],
        ]
        for step in steps:
            if subprocess.run(step, check=False).returncode:
                return 2
        strict = ["--strict"] if options.strict else []
        return subprocess.run([program, file, options.case, *strict], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
