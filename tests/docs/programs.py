#!/usr/bin/env python3
"""The programs of README.md and docs/*.md: what a user copies must compile and run.

programs.py PAGE... --into DIR [--fixtures DIR] [--cmake]

Writes every ```cpp block of the pages to DIR/PAGE/:
- A block whose first line is "// NAME.h" or "// NAME.cpp" becomes that file.
- Another block with a main() becomes the program of the page's name, or PAGE-2 and so on.
- Another block is a fragment. If FIXTURES/PAGE_page.h exists, all fragments of the page become the tests
  of fragments.cpp, TEST_F(Page, line_N), where N is the line in the page. A line <!-- test: CODE -->
  after a block is added to its end: what the page need not show. Without a fixture each fragment becomes
  the body of main() of fragment-N.cpp.
- The Binade column of tables whose first columns are PyTorch and Binade becomes names.cpp: a name is
  declared by `using`, an expression is compiled with the variables of PREAMBLE, none is run.

Prints "PAGE/FILE", without .cpp, in the order of the page. --cmake also writes DIR/CMakeLists.txt, which
builds each against an installed Binade. A file that has not changed is left alone."""
import argparse
import dataclasses
import pathlib
import re
import sys

NAMED = re.compile(r"// (\w+)\.(h|cpp)\n")
CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w:]*$")
TEST = "<!-- test: "

# The variables that the expressions in the tables use.
PREAMBLE = """#include <binade/binade.h>

#include <iostream>
using namespace binade;

[[maybe_unused]] static void names(Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b, const Tensor& ids,
                                   const Tensor& mask, Tensor& loss, nn::Sequential& model,
                                   nn::Sequential& other, optim::Optimizer& optimizer,
                                   optim::LossScaler& scaler, Device device) {
"""
UNUSED = "  (void)x, (void)y, (void)w, (void)b, (void)ids, (void)mask, (void)loss, (void)model, (void)other;\n" \
         "  (void)optimizer, (void)scaler, (void)device;\n"


@dataclasses.dataclass
class Block:
    line: int  # of the first line of code in the page
    code: str
    tests: str = ""


def blocks_of(page):
    """The blocks of C++ of a page, with the test lines behind them."""
    blocks, begin, body = [], 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        if begin == 0 and line.strip() == "```cpp":
            begin, body = number + 1, []
        elif begin and line.strip() == "```":
            blocks.append(Block(begin, "".join(body)))
            begin = 0
        elif begin:
            body.append(line)
        elif line.startswith(TEST) and line.rstrip().endswith("-->"):
            if not blocks:
                sys.exit(f"{page}:{number}: a test line before the first block")
            blocks[-1].tests += line.strip()[len(TEST):-len("-->")] + "\n"
    if begin:
        sys.exit(f"{page}:{begin}: the block has no end")
    return blocks


def fragment_tests(page, fixture, fragments):
    out = f'#include "{fixture}"\n'
    for block in fragments:
        out += f'\nTEST_F(Page, line_{block.line}) {{\n#line {block.line} "{page}"\n{block.code}{block.tests}}}\n'
    return out


def table_entries(text):
    """The codes of the second column of the tables whose first two columns are PyTorch and Binade."""
    entries, wanted = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            wanted = False
        elif cells[:2] == ["PyTorch", "Binade"]:
            wanted = True
        elif wanted and not cells[0].startswith("---"):
            entries += CODE.findall(cells[1])
    return entries


def names_program(page, entries):
    lines = []
    for entry in entries:
        if NAME.match(entry):
            lines.append(f"  {{ using ::binade::{entry}; }}\n")
        else:
            lines.append(f"  (void)[&] {{ (void)({entry}); }};\n")
    if len(lines) < 100:
        sys.exit(f"{page}: got {len(lines)} names in the tables, expected 100 or more")
    return PREAMBLE + UNUSED + "".join(lines) + "}\n\nint main() {}\n"


def files_of(page, fixture):
    """The files of one page: name -> text, in the order of the page."""
    files, fragments, mains = {}, [], 0

    def add(name, text, line):
        if name in files:
            sys.exit(f"{page}:{line}: a second block is {name}")
        files[name] = text

    for block in blocks_of(page):
        named = NAMED.match(block.code)
        is_program = named or "int main(" in block.code
        if is_program and block.tests:
            sys.exit(f"{page}:{block.line}: a test line behind a program, expected one behind a fragment")
        if named:
            add(f"{named[1]}.{named[2]}", block.code, block.line)
        elif is_program:
            mains += 1
            add(page.stem + (f"-{mains}" if mains > 1 else "") + ".cpp", block.code, block.line)
        elif fixture.exists():
            fragments.append(block)
        elif block.tests:
            sys.exit(f"{page}:{block.line}: a test line in a page without {fixture}")
        else:
            body = f"#include <binade/binade.h>\n\n#include <iostream>\n\nint main() {{\n{block.code}}}\n"
            add(f"fragment-{block.line}.cpp", body, block.line)
    if fixture.exists():
        if not fragments:
            sys.exit(f"{page}: got no block for {fixture}")
        add("fragments.cpp", fragment_tests(page, fixture, fragments), fragments[0].line)
    entries = table_entries(page.read_text(encoding="utf-8"))
    if entries:
        files["names.cpp"] = names_program(page, entries)
    if not files:
        sys.exit(f"{page}: got no block of C++")
    return files


def cmake_of(programs):
    out = "cmake_minimum_required(VERSION 3.25)\nproject(DocPrograms LANGUAGES CXX)\nfind_package(Binade REQUIRED)\n"
    for name in programs:
        target = name.replace("/", "_").replace("-", "_")
        out += (f"add_executable({target} {name}.cpp)\n"
                f"target_link_libraries({target} PRIVATE binade::binade)\n")
    return out


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, required=True)
    parser.add_argument("--fixtures", type=pathlib.Path, default=pathlib.Path("no fixtures"))
    parser.add_argument("--cmake", action="store_true")
    options = parser.parse_args()
    programs = []
    for page in options.pages:
        for name, text in files_of(page, options.fixtures / f"{page.stem}_page.h").items():
            write(options.into / page.stem / name, text)
            programs += [f"{page.stem}/{name[:-4]}"] if name.endswith(".cpp") else []
    if options.cmake:
        write(options.into / "CMakeLists.txt", cmake_of(programs))
    print("\n".join(programs))


if __name__ == "__main__":
    main()
