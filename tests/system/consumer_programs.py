#!/usr/bin/env python3
"""The programs of docs/*.md: what a user copies must compile and run.

consumer_programs.py extract PAGE... --into DIR
Writes every ```cpp block of the pages. A block whose first line is "// NAME.h" or "// NAME.cpp" becomes
that file of DIR/PAGE/; another block becomes the body of main() of a program of its own. The Binade
column of the tables of coming-from-pytorch.md becomes names.cpp: a name is declared by `using`, an
expression is compiled with the variables of PREAMBLE, none is run. Writes DIR/CMakeLists.txt with one
program per .cpp file, and prints "PAGE/PROGRAM" in the order of the page.
"""
import argparse
import pathlib
import re

BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"// (\w+\.(?:h|cpp))\n")
ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w:]*$")

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


def program(body):
    return f"#include <binade/binade.h>\n\n#include <iostream>\n\nint main() {{\n{body}}}\n"


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


def names_program(text):
    lines = []
    for entry in table_entries(text):
        if NAME.match(entry):
            lines.append(f"  {{ using ::binade::{entry}; }}\n")
        else:
            lines.append(f"  (void)[&] {{ (void)({entry}); }};\n")
    if len(lines) < 100:
        raise SystemExit(f"consumer_programs: found {len(lines)} names in the tables, expected 100 or more")
    return PREAMBLE + UNUSED + "".join(lines) + "}\n\nint main() {}\n"


def extract(page, folder):
    """Writes the files of one page; returns the names of its programs."""
    text, programs = page.read_text(), []
    out = folder / page.stem
    out.mkdir(parents=True)
    for index, block in enumerate(BLOCK.findall(text)):
        named = NAMED.match(block)
        name = named[1] if named else f"block{index}.cpp"
        (out / name).write_text(block if named else program(block))
        programs += [name[:-4]] if name.endswith(".cpp") else []
    if table_entries(text):
        (out / "names.cpp").write_text(names_program(text))
        programs.append("names")
    if not programs:
        raise SystemExit(f"consumer_programs: {page} has no program")
    return [f"{page.stem}/{name}" for name in programs]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["extract"])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--into", type=pathlib.Path, required=True)
    options = parser.parse_args()
    programs = [name for page in options.pages for name in extract(page, options.into)]
    cmake = "cmake_minimum_required(VERSION 3.25)\nproject(DocPrograms LANGUAGES CXX)\nfind_package(Binade REQUIRED)\n"
    for name in programs:
        target = name.replace("/", "_").replace("-", "_")
        cmake += (f"add_executable({target} {name}.cpp)\n"
                  f"target_link_libraries({target} PRIVATE binade::binade)\n")
    (options.into / "CMakeLists.txt").write_text(cmake)
    print("\n".join(programs))


if __name__ == "__main__":
    main()
