"""Writes the programs of a page of the docs to files: doc_programs.py PAGE.md FOLDER.

A program is a block of C++ whose first line is a comment with the name of its file. Prints the names. A file
that has not changed is left alone, so that it is not compiled again."""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```cpp\n// (\w+)\.cpp\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main(page, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = pathlib.Path(page).read_text()
    programs = BLOCK.findall(text)
    mains = text.count("int main(")
    if len(programs) != mains or not programs:
        sys.exit(f"{page}: {mains} programs have a main(), but {len(programs)} begin with the name of their file")
    for name, code in programs:
        file = folder / f"{name}.cpp"
        if not file.exists() or file.read_text() != code:
            file.write_text(code)
    print(";".join(name for name, _ in programs), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
