#!/usr/bin/env python3
"""needed_libraries.py PROGRAM: fails if the program needs a library that a machine with a GPU may lack, or exports a
symbol: a library that it loads, like cuDNN, would take parts of the C++ library that is linked into the program."""
import re
import subprocess
import sys

# All of them are parts of the C library.
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}
LOADER = re.compile(r"ld-linux[-\w]*\.so\.\d+")


def needed(program):
    """The libraries that the loader must find before the program starts."""
    text = subprocess.run(["readelf", "--dynamic", "--wide", program], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    found = re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", text)
    if not found:
        sys.exit(f"needed_libraries: readelf lists no library of {program}")
    return found


def exported(program):
    text = subprocess.run(["nm", "--dynamic", "--defined-only", program], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    # A name with a version is a variable of the C library that the loader copies into the program.
    return [name for name in (line.split()[-1] for line in text.splitlines()) if "@" not in name]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: needed_libraries.py PROGRAM")
    found = needed(sys.argv[1])
    wrong = [name for name in found if name not in ALLOWED and not LOADER.fullmatch(name)]
    if wrong:
        print(f"{sys.argv[1]} needs {', '.join(wrong)}, expected only {', '.join(sorted(ALLOWED))}")
        return 1
    symbols = exported(sys.argv[1])
    if symbols:
        print(f"{sys.argv[1]} exports {len(symbols)} symbols, {symbols[0]} among them, expected none")
        return 1
    print(f"{sys.argv[1]} needs {', '.join(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
