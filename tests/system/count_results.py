#!/usr/bin/env python3
"""Counts test cases in JUnit files of ctest and prints "N passed, N failed, N skipped".

A GoogleTest program counts with its own cases, read from the summary at the end of its output; any
other ctest counts as one. A program that crashes before its summary is one failure, and so is one whose
filter selects no test. Exits 1 if anything failed or nothing ran.
"""
import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree

SUMMARY = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) [ ]?\] (\d+) tests?[.,]", re.MULTILINE)
NO_TEST = re.compile(r"^\[==========\] 0 tests from 0 test (suites|cases) ran", re.MULTILINE)
INTENDED_SKIP = re.compile(r"SKIP_(RETURN_CODE|REGULAR_EXPRESSION)")


def of_gtest(output):
    """Counts by result of a GoogleTest summary, empty if there is none."""
    end = output.rfind(" ran. (")
    if end < 0:
        return {}
    return {kind: int(number) for kind, number in SUMMARY.findall(output, end)}


def of_case(case):
    """(passed, failed, skipped) of one ctest."""
    status = case.get("status")
    if status == "disabled":
        return 0, 0, 1
    if status == "notrun":
        skipped = case.find("skipped")
        message = "" if skipped is None else skipped.get("message", "")
        return (0, 0, 1) if INTENDED_SKIP.search(message) else (0, 1, 0)
    output = case.findtext("system-out") or ""
    counts = of_gtest(output)
    passed, failed, skipped = (counts.get(k, 0) for k in ("PASSED", "FAILED", "SKIPPED"))
    if status != "run":
        return passed, max(failed, 1), skipped
    if NO_TEST.search(output):
        print(f"count_results: {case.get('name')}: its filter selects no test", file=sys.stderr)
        return 0, 1, 0
    return (passed, failed, skipped) if counts else (1, 0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--failed", type=int, default=0, help="failures to add")
    options = parser.parse_args()
    cases, unreadable = [], 0
    for file in options.files:
        try:
            found = list(ElementTree.parse(file).getroot().iter("testcase"))
        except (OSError, ElementTree.ParseError) as error:
            print(f"count_results: {file}: {error}", file=sys.stderr)
            found = []
        unreadable += not found
        cases += found
    passed, failed, skipped = (sum(column) for column in zip((0, 0, 0), *map(of_case, cases)))
    failed += options.failed or unreadable
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
