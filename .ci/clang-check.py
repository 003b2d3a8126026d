#!/usr/bin/env python3
"""clang-check.py BUILD: clang++'s front end over every source in BUILD/compile_commands.json.

Warnings are errors; no code is generated. Sources that the build itself writes are left out. A file
that is compiled once per instruction set is read once.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys


def check(entry):
    command = shlex.split(entry["command"])
    del command[command.index("-o") : command.index("-o") + 2]
    done = subprocess.run(command + ["-fsyntax-only", "-Werror"], cwd=entry["directory"],
                          capture_output=True, text=True, check=False)
    return entry["file"], done.returncode, done.stderr


def main():
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as file:
        entries = {entry["file"]: entry for entry in json.load(file)}
    written = os.path.abspath(sys.argv[1]) + os.sep
    entries = [e for e in entries.values()
               if re.search(r"clang\+\+", e["command"]) and not e["file"].startswith(written)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, errors in pool.map(check, entries):
            if status:
                failed += 1
                print(f"{file}\n{errors}")
    print(f"clang-check: {len(entries)} files, {failed} with errors")
    return 1 if failed or not entries else 0


sys.exit(main())
