#!/usr/bin/env python3
"""Plants the mutants of mutants.txt in a copy of the sources, and runs them.

  mutate.py plant SOURCE COPY [N...]
                                  copies the tree, each mutant (or those named) as (mutant(N) ? (wrong) : (right))
  mutate.py check SOURCE [BUILD]  says of which mutants the text is not in the sources, or a program not
                                  among the targets of the build
  mutate.py programs LIST [N...]  the programs that the mutants (or those named) need
  mutate.py run LIST BIN [N...]   runs the tests of every mutant (or of those named); the last line is
                                  "N killed, N survived"

A mutant is killed if one of its tests fails, crashes or runs out of time; before that all tests must pass
without a mutant. The time is that of the test without a mutant, times 20, and at least 30 seconds.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time

LIST = "tests/mutants/mutants.txt"
FILES = ("CMakeLists.txt", "CMakePresets.json", "binade.h")
HEADER = "kernels/base/mutant.h"
HEADER_TEXT = """#pragma once
#include <cstdlib>

namespace binade {
inline const int chosen_mutant = std::getenv("BINADE_MUTANT") ? std::atoi(std::getenv("BINADE_MUTANT")) : 0;
inline bool mutant(int number) { return number == chosen_mutant; }
}  // namespace binade
"""
BASELINE_SECONDS = 600  # for a test without a mutant
LEAST_SECONDS = 30  # for a test with one


@dataclasses.dataclass
class Mutant:
    number: int
    file: str
    tests: list  # of (program, filter of GoogleTest, on the device?)
    occurrence: int
    text: str  # with [[right ~> wrong]]

    def right(self):
        return re.sub(r"\[\[(.*) ~> .*\]\]", lambda m: m[1], self.text)

    def planted(self):
        return re.sub(r"\[\[(.*) ~> (.*)\]\]",
                      lambda m: f"(::binade::mutant({self.number}) ? ({m[2]}) : ({m[1]}))", self.text)

    def __str__(self):
        return f"mutant {self.number}, {self.file}: {self.text}"


def read_test(word):
    """PROGRAM:FILTER, or DRIVER/ROWS for op_table_DRIVER; on the emulated device after "device-"."""
    device, word = word.startswith("device-"), word.removeprefix("device-")
    if ":" in word:
        program, rows = word.split(":", 1)
        return program, rows, device
    driver, rows = word.split("/", 1)
    return "op_table_" + driver, "*/" + rows, device


def read_list(path):
    mutants, file = [], None
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("file "):
                file = line[5:]
                continue
            match = re.fullmatch(r"(\S+)(?: @(\d+))? : (.*\[\[.+ ~> .+\]\].*)", line)
            if not match or not file or not all("/" in t or ":" in t for t in match[1].split(",")):
                sys.exit(f"{path}:{number}: got '{line}', expected 'TESTS [@N] : text [[right ~> wrong]]'")
            tests = [read_test(test) for test in match[1].split(",")]
            mutants.append(Mutant(len(mutants) + 1, file, tests, int(match[2] or 0), match[3]))
    return mutants


class NotFound(Exception):
    pass


def plant(mutant, text):
    right = mutant.right()
    count = text.count(right)
    if count == 0 or (count > 1 and not mutant.occurrence) or mutant.occurrence > count:
        raise NotFound(f"{mutant}: the text occurs {count} times, expected one, or @N for the N-th")
    at = -1
    for _ in range(mutant.occurrence or 1):
        at = text.index(right, at + 1)
    begin = at + mutant.text.index("[[")
    if re.search(r"(\w|\.|->|::)$", text[max(0, begin - 2):begin]):
        raise NotFound(f"{mutant}: [[ begins in the middle of an operand")
    return text[:at] + mutant.planted() + text[at + len(right):]


def programs_of(mutants):
    return {program for mutant in mutants for program, _, _ in mutant.tests}


def targets_of(build):
    """With Ninja a line is "name: rule", with Make "... name"."""
    helped = subprocess.run(["cmake", "--build", build, "--target", "help"], check=True, capture_output=True, text=True)
    return {line.removeprefix("... ").split(":")[0].split(" ")[0] for line in helped.stdout.splitlines()}


def check(source, build):
    mutants, missing = read_list(os.path.join(source, LIST)), 0
    for mutant in mutants:
        with open(os.path.join(source, mutant.file), encoding="utf-8") as opened:
            try:
                plant(mutant, opened.read())
            except NotFound as error:
                missing += 1
                print(error)
    print(f"{len(mutants) - missing} of {len(mutants)} mutants have their place")
    unknown = sorted(programs_of(mutants) - targets_of(build)) if build else []
    for program in unknown:
        print(f"{program}: {build} has no such target")
    return 1 if missing or unknown else 0


def write(path, text):
    """Only where it changes, so that the next build is a small one."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def folders_of_build(source):
    with open(os.path.join(source, "CMakeLists.txt"), encoding="utf-8") as file:
        return ["cmake", "docs", *re.findall(r"(?:binade_library|add_subdirectory)\((\w+)", file.read())]


def copy_tree(source, copy, numbers):
    kept = set()
    paths, folders = list(FILES), folders_of_build(source)
    for folder in folders:
        for base, _, names in os.walk(os.path.join(source, folder)):
            paths += [os.path.relpath(os.path.join(base, name), source) for name in names]
    planted = {}
    mutants = chosen(os.path.join(source, LIST), numbers)
    for mutant in mutants:
        planted.setdefault(mutant.file, []).append(mutant)
    for path in paths:
        target = os.path.join(copy, path)
        kept.add(target)
        if path in planted:
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        old = os.stat(target) if os.path.exists(target) else None
        new = os.stat(os.path.join(source, path))
        if not old or old.st_size != new.st_size or old.st_mtime < new.st_mtime:
            shutil.copy2(os.path.join(source, path), target)
    for file, several in planted.items():
        with open(os.path.join(source, file), encoding="utf-8") as opened:
            text = opened.read()
        # Last ones first within equal texts, so that an earlier one does not move a later one.
        for mutant in sorted(several, key=lambda m: -m.occurrence):
            text = plant(mutant, text)
        if "#pragma once\n" in text:
            text = text.replace("#pragma once\n", f"#pragma once\n#include <binade/{HEADER}>\n", 1)
        else:
            text = f"#include <binade/{HEADER}>\n" + text
        write(os.path.join(copy, file), text)
    write(os.path.join(copy, HEADER), HEADER_TEXT)
    kept.add(os.path.join(copy, HEADER))
    for folder in folders:
        for base, _, names in os.walk(os.path.join(copy, folder)):
            for name in names:
                path = os.path.join(base, name)
                if path not in kept:
                    os.remove(path)
    print(f"{len(mutants)} mutants planted in {copy}")


def run_test(bin_dir, test, number, seconds):
    """Whether the test passed, and what it wrote."""
    program, rows, device = test
    environment = dict(os.environ, BINADE_MUTANT=str(number), OMP_NUM_THREADS="1")
    if device:
        environment["BINADE_TEST_DEVICE"] = "emulated"
    command = [os.path.join(bin_dir, program), f"--gtest_filter={rows}", "--gtest_fail_fast=1"]
    # A session of its own: what the test started ends with it.
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as running:
        try:
            output = running.communicate(timeout=seconds)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            output = "out of time"
        finally:
            try:
                os.killpg(running.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    return running.returncode == 0 and output != "out of time", output


def baseline(bin_dir, mutants):
    """The seconds that each test may take with a mutant; None if one fails without."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    limits, bad = {}, 0

    def timed(test):
        begin = time.monotonic()
        return *run_test(bin_dir, test, 0, BASELINE_SECONDS), time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for test, (passed, output, seconds) in zip(tests, pool.map(timed, tests)):
            limits[test] = max(LEAST_SECONDS, 20 * seconds)
            if not passed or re.search(r"\b0 tests from", output) or "[  PASSED  ] 0 tests" in output:
                bad += 1
                print(f"without a mutant {test[0]} {test[1]} " + ("runs nothing" if passed else "fails"))
    return None if bad else limits


def run(path, bin_dir, numbers):
    mutants = chosen(path, numbers)
    limits = baseline(bin_dir, mutants)
    if limits is None:
        sys.exit("mutants: the tests must pass without a mutant first")
    survived = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        killed = pool.map(lambda m: any(not run_test(bin_dir, t, m.number, limits[t])[0] for t in m.tests),
                          mutants)
        for mutant, dead in zip(mutants, killed):
            if not dead:
                survived += 1
                print(f"survived: {mutant}", flush=True)
    print(f"{len(mutants) - survived} killed, {survived} survived")
    return 1 if survived or not mutants else 0


def chosen(path, numbers):
    return [m for m in read_list(path) if not numbers or m.number in numbers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    planting = commands.add_parser("plant")
    planting.add_argument("source")
    planting.add_argument("copy")
    planting.add_argument("numbers", nargs="*", type=int)
    checking = commands.add_parser("check")
    checking.add_argument("source")
    checking.add_argument("build", nargs="?")
    for name, *arguments in (("programs", "list"), ("run", "list", "bin")):
        parser_of_command = commands.add_parser(name)
        for argument in arguments:
            parser_of_command.add_argument(argument)
        parser_of_command.add_argument("numbers", nargs="*", type=int)
    options = parser.parse_args()
    if options.command == "check":
        return check(options.source, options.build)
    if options.command == "plant":
        try:
            copy_tree(options.source, options.copy, options.numbers)
        except NotFound as error:
            sys.exit(str(error))
        return 0
    if options.command == "programs":
        print("\n".join(sorted(programs_of(chosen(options.list, options.numbers)))))
        return 0
    return run(options.list, options.bin, options.numbers)


sys.exit(main())
