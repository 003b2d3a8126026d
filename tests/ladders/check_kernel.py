#!/usr/bin/env python3
"""Checks a kernel in plain CUDA C++ without a GPU: check_kernel.py FILE.cu --case CASE[:SHAPE] [--strict].

Rewrites the file (host_cuda.py), compiles it for the race detector and runs it (check_library.cpp).
Exit 0: right; 1: wrong, or refused by --strict; 2: wrong use, or a file that does not compile.
"""
import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--case", required=True)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    # From the build: the compiler with the flags of kernels, and the program that runs them.
    compiler, runner = os.environ["BINADE_CHECK_COMPILER"], os.environ["BINADE_CHECK_RUNNER"]
    with tempfile.TemporaryDirectory() as folder:
        source, item, library = (f"{folder}/kernel.{suffix}" for suffix in ("cpp", "o", "so"))
        file = str(options.file.resolve())
        steps = [
            [sys.executable, "-B", str(HERE / "host_cuda.py"), source, f"{options.case.split(':')[0]}={file}"],
            [*shlex.split(compiler), "-c", source, "-o", item],
            [shlex.split(compiler)[0], "-shared", item, "-o", library],
        ]
        for step in steps:
            if subprocess.run(step, check=False).returncode:
                return 2
        strict = ["--strict"] if options.strict else []
        return subprocess.run([runner, library, file, options.case, *strict], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
