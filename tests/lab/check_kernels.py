#!/usr/bin/env python3
"""Runs binade kernel on files of CUDA C++ and compares what it found with what they say.

check_kernels.py BINADE FOLDER [--only NAME]: every *.cu below the folder begins with "// case: NAME". A line that
ends in "//! KIND | ARRAY | GRAVITY" is wrong: a finding of the kind (the part "array" may be empty, gravity is
wrong unless it says warning or performance) must name it, with a block and a thread; a mark on a
line of its own is about the whole file. A file without such a line
is right: nothing may be found but hints about performance and warnings that "//? KIND" lines allow.
Prints one line per file, and "N passed, N failed" at the end; the status is 1 if one failed.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

MARK = re.compile(r"//! ([^|\n]*)(?:\|([^|\n]*))?(?:\|([^|\n]*))?$")
# Kinds that are the same to a reader: the advice beside them tells them apart.
ALIKE = [{"race", "missing barrier"}, {"deadlock", "step limit"}]
# These are about results or declarations: the line is in the text, or there is none.
WITHOUT_THREAD = {"wrong numbers", "cached output", "uninitialised variable", "bank conflict", "uncoalesced",
                  "atomic contention"}


def marks_of(text):
    for number, line in enumerate(text.splitlines(), 1):
        if match := MARK.search(line):
            kind, array, gravity = (part.strip() if part else "" for part in match.groups())
            yield 0 if line.startswith("//!") else number, kind, array, gravity or "wrong"


def alike(a, b):
    return a == b or any({a, b} <= kinds for kinds in ALIKE)


def names(issue, number, kind, array):
    """Whether the issue is the one that a mark asks for."""
    if not alike(issue["kind"], kind) or array not in issue["array"]:
        return False
    if kind == "cached output" or number == 0:
        return True
    sides = [side for side in (issue["first"], issue["second"]) if side]
    text = issue["headline"] + " " + " ".join(issue["details"])
    if kind in WITHOUT_THREAD:
        return f":{number}" in text or any(side["line"] == number for side in sides)
    return any(side["line"] == number and side["block"] and side["thread"] for side in sides)


def fault_of(binade, path):
    text = path.read_text()
    case = re.search(r"^// case: (\S+)", text, re.MULTILINE)[1]
    case = str(path.parent / case) if case.endswith(".json") else case
    allowed = set(re.findall(r"//\? (.*)$", text, re.MULTILINE))
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        run = subprocess.run([binade, "kernel", path, "--case", case, "--no-nvcc", "--json", report],
                             capture_output=True, text=True, timeout=280)
        if not report.exists():
            return f"exit {run.returncode}: {run.stderr.strip()[:500]}"
        issues = json.loads(report.read_text())["issues"]
    marks = list(marks_of(text))
    wrong = any(gravity == "wrong" for *_, gravity in marks)
    if run.returncode != (1 if wrong else 0):
        return f"exit {run.returncode}, expected {int(wrong)}: " + "; ".join(i["headline"] for i in issues)
    for number, kind, array, _ in marks:
        if not any(names(issue, number, kind, array) for issue in issues):
            found = "; ".join(i["headline"] + " " + str(i["details"]) for i in issues)
            return f"line {number}: no {kind} on {array or 'anything'}, but: {found}"
    if not marks:
        for issue in issues:
            if issue["severity"] != "performance" and issue["kind"] not in allowed:
                return f"a false alarm: {issue['headline']} {issue['details']}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binade")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="files whose name contains one of these, separated by commas")
    options = parser.parse_args()
    files = [path for path in sorted(options.folder.rglob("*.cu"))
             if any(part in path.name for part in options.only.split(","))]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, fault in zip(files, pool.map(lambda path: fault_of(options.binade, path), files)):
            failed += fault is not None
            print(f"{'FAILED' if fault else 'passed'} {path.name}{': ' + fault if fault else ''}")
    print(f"{len(files) - failed} passed, {failed} failed")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
