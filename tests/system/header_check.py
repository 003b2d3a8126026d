#!/usr/bin/env python3
"""Compiles each public header alone, and times <binade/binade.h>.

header_check.py --root SOURCES --include DIR --compiler CXX
A header passes if an empty program that includes it twice compiles without a warning. The umbrella
header should take less than two seconds; more is reported, but is no failure.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

import lint


def compile_header(name, options):
    """The compiler's messages, empty if the header is fine."""
    command = [options.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
               f"-I{options.include}", "-x", "c++", "-"]
    source = f"#include <binade/{name}>\n" * 2 + "int main() {}\n"
    return subprocess.run(command, input=source, text=True, capture_output=True).stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--compiler", required=True)
    options = parser.parse_args()

    names = [str(path.relative_to(options.root)) for _, path in lint.files(options.root, lint.LAYERS)
             if lint.is_public(path)]
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        messages = dict(zip(names, pool.map(lambda name: compile_header(name, options), names)))
    start = time.monotonic()
    messages["binade.h"] = compile_header("binade.h", options)
    seconds = time.monotonic() - start

    faulty = {name: text for name, text in messages.items() if text}
    for name, text in faulty.items():
        print(f"<binade/{name}> does not compile alone:\n{text}")
    print(f"{len(messages) - len(faulty)} of {len(messages)} headers compile alone; "
          f"<binade/binade.h> takes {seconds:.2f} s (aim: less than 2 s)")
    return 1 if faulty or not names else 0


if __name__ == "__main__":
    sys.exit(main())
