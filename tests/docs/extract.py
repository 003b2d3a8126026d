"""Writes the C++ blocks of a page of docs/ as the bodies of tests of one fixture.

usage: extract.py PAGE.md FIXTURE.h OUT.cpp

Every block that begins with ```cpp becomes TEST_F(Page, line_N), where N is its line in the page. A
line <!-- test: CODE --> after a block is added to its end: what the page need not show.
"""
import sys


def tests_of(lines):
    """Yields (number of the first line, body) of every block."""
    begin, body, done = 0, [], []
    for number, line in enumerate(lines, 1):
        if begin == 0 and line.strip() == "```cpp":
            begin, body = number + 1, []
        elif begin and line.strip() == "```":
            done.append((begin, body))
            begin = 0
        elif begin:
            body.append(line)
        elif line.startswith("<!-- test: ") and line.rstrip().endswith("-->"):
            if not done:
                raise SystemExit(f"line {number}: a test line before the first block")
            done[-1][1].append(line.strip()[len("<!-- test: "):-len("-->")] + "\n")
    if begin:
        raise SystemExit(f"line {begin}: the block has no end")
    return done


def main(page, fixture, out):
    with open(page, encoding="utf-8") as file:
        tests = tests_of(file.readlines())
    if not tests:
        raise SystemExit(f"{page}: no block of C++")
    with open(out, "w", encoding="utf-8") as file:
        file.write(f'#include "{fixture}"\n')
        for begin, body in tests:
            file.write(f'\nTEST_F(Page, line_{begin}) {{\n#line {begin} "{page}"\n{"".join(body)}}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
