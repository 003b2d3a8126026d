#!/usr/bin/env python3
"""precompiled-check.py BUILD SOURCE...: what only a build with precompiled headers compiles.

Runs the command of every precompiled header of the Ninja build BUILD, then the front end alone over those of
the given sources that BUILD compiles, with their commands: a program then also reads the headers that its
precompiled header holds. Warnings are errors if BUILD has BINADE_WERROR.
"""
import concurrent.futures
import os
import re
import subprocess
import sys


def run(build, command):
    done = subprocess.run(command, shell=True, cwd=build, capture_output=True, text=True, check=False)
    return command, done.returncode, done.stdout + done.stderr


def front_end(command, source):
    """The command without its object: nothing is generated, and no launcher looks for an object."""
    command = re.sub(r"^sh '[^']*drop_patch_entries\.sh' ", "", command)
    command = re.sub(r" -MD -MT \S+ -MF \S+", "", command)
    return re.sub(r" -o \S+ -c \S+.*$", f" -fsyntax-only {source}", command)


def main():
    build, sources = sys.argv[1], {os.path.abspath(source) for source in sys.argv[2:]}
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "all"], capture_output=True, text=True,
                              check=True).stdout.splitlines()
    headers, programs = [], {}
    for command in commands:
        if match := re.search(r" -o (\S+) -c (\S+)", command):
            if match[1].endswith(".gch"):
                os.makedirs(os.path.join(build, os.path.dirname(match[1])), exist_ok=True)
                headers.append(command)
            elif match[2] in sources:
                programs.setdefault(match[2], front_end(command, match[2]))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in headers, programs.values():
            for command, status, output in pool.map(lambda c: run(build, c), batch):
                if status:
                    failed += 1
                    print(f"{command}\n{output}")
    print(f"precompiled-check: {len(headers)} headers, {len(programs)} sources, {failed} with errors")
    return 1 if failed or not headers else 0


sys.exit(main())
