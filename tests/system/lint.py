#!/usr/bin/env python3
"""Checks the layers and the form of the sources: lint.py includes|sources|selections|ops [--root DIR].

includes: a folder includes only what ARCHITECTURE.md lets it, always as <binade/folder/file.h>; below
  kernels/ every source is in a family, which includes base, cuda and the families that FAMILIES lists;
  the rooms of core and dist include the rooms that ROOMS lists;
  public headers (all but *_internal.h and those of kernels/host) include only the standard library
  beside that, and no *_internal.h; kernels/host is for kernels and tests alone. What binade.h leads to includes no header of
  the standard library that takes long to compile: every user's source would pay for it.
sources: lengths of sources and functions, at most 6 parameters, one type of a name in a namespace, a
  namespace for each source of tests, the rooms of core and dist, suffixes, at most 60 sources in a folder,
  #pragma once, no leftovers (TODO and the like), nothing in a library that ends the process; and for CUDA: kernels start only through launch(), inline assembly only in the primitives,
  shared memory only through shared_mem(); samples write no name of the kernels.
selections: a filter of GoogleTest in a build file or a script selects a test, and a test program that is
  named there has a source; ctest -R fails where it selects nothing.
ops: core/ops/X.h declares what core/ops/X.cpp defines, with the same results, and core/ops.h only includes.
Prints one line per finding and exits 1 if there is any.
"""
import argparse
import collections
import fnmatch
import pathlib
import re
import sys

import function_forms
import op_headers

LAYERS = {
    "kernels": {"kernels"},
    "core": {"kernels", "core"},
    "nn": {"kernels", "core", "nn"},
    "optim": {"kernels", "core", "optim"},
    "data": {"kernels", "core", "data"},
    "dist": {"kernels", "core", "dist"},
    "train": {"kernels", "core", "nn", "optim", "data", "dist", "train"},
    "lab": {"kernels", "core", "train", "lab"},
}
# The families of kernels, each with the families that it includes besides base and cuda.
FAMILIES = {
    "base": set(),
    "cuda": {"host"},
    "host": set(),
    "user": set(),
    "pointwise": set(),
    "exponents": set(),
    "image": set(),
    "formats": {"random"},
    "optimizer": {"formats"},
    "random": set(),
    "copy": {"pointwise"},
    "index": {"copy"},
    "reduce": {"copy", "user"},
    "softmax": {"copy", "user"},
    "sort": {"copy"},
    "norm": {"copy", "cudnn", "pointwise", "user"},
    "loss": {"copy", "reduce"},
    "gemm": {"copy", "pointwise", "reduce", "user"},
    "cudnn": set(),
    "conv": {"copy", "cudnn", "gemm", "pointwise", "user"},
    "attention": {"copy", "cudnn", "gemm", "random", "user"},
    "rnn": {"copy", "gemm"},
}
# The rooms of the other layers that have some, each with the rooms of its layer that it includes: a source
# stands in one of them, or in one of the INNER folders. Rooms of core know each other (a tensor has a
# history, a history has tensors), so this is no order: it keeps new ties from growing unseen.
ROOMS = {
    "core": {
        "io": {"tensor"},
        "tensor": {"autograd", "device"},
        "device": {"autograd", "observe", "tensor"},
        "autograd": {"observe", "precision", "tensor"},
        "observe": {"autograd", "device", "io", "tensor"},
        "linalg": {"autograd", "device", "ops", "tensor"},
        "ops": {"autograd", "device", "observe", "precision", "tensor"},
        "precision": {"autograd", "device", "io", "observe", "ops", "tensor"},
    },
    "dist": {
        "transport": {"collective"},
        "collective": {"job", "transport"},
        "job": {"collective", "transport"},
        "parallel": {"collective", "transport"},
    },
}
INNER = {"core/ops/detail", "core/device/cuda"}
OUTSIDE_ROOMS = {"core/ops.h", "core/owned.h"}  # the ops together; a class for members of every layer
PROGRAMS = ("samples", "tools", "bench", "tests")
PRIVATE = "kernels/host"  # headers that are not installed, for kernels and tests
# The lab's child processes run kernels: these include PRIVATE, and headers that only a compiler of kernels
# reads, which are installed apart from those of the library.
LAB_PROCESS = ("lab/device/", "lab/runner/")
LAB_PROGRAM = ("lab/runner/main.cpp", "lab/driver/process.cpp")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
OTHER_SUFFIXES = {".hpp", ".hh", ".hxx", ".cc", ".cxx", ".c", ".inc", ".inl", ".ipp", ".tcc"}
MAX_LINES = 400
# Sources in which one class stands whole (CONTRIBUTING.md, style): at most this.
ONE_CLASS_LINES = 600
ONE_CLASS = {"nn/module.cpp", "optim/optimizer.cpp", "train/loop/step_runner.cpp", "train/trainer_run.cpp"}
MAX_FILES = 60
# The functions of libraries and programs; those of tests may be tables.
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
# They mirror instructions, whose operands they take.
PRIMITIVES = {"kernels/host/primitives.h", "kernels/cuda/primitives.cuh"}

# stdint.h is for the headers that are C too.
STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes
climits cmath compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint
cstdio cstdlib cstring ctime deque exception execution filesystem forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
string_view system_error thread tuple type_traits stdint.h typeindex typeinfo unordered_map unordered_set utility
valarray variant vector version immintrin.h
""".split())

# Headers that cost a user's translation unit 50 ms or more beyond what the tensors need.
HEAVY = set("""
algorithm barrier chrono codecvt complex condition_variable execution filesystem fstream future iomanip
iostream istream latch locale memory_resource mutex ostream random ranges regex semaphore shared_mutex sstream
stop_token strstream syncstream thread valarray
""".split())

# Device code may include these in addition, under __CUDACC__: no user's program needs the toolkit.
STANDARD |= {"cuda_bf16.h", "cuda_fp16.h"}

INCLUDE = re.compile(r'^\s*#\s*(?:include|include_next|import)\s*([<"])([^>"]+)[>"]')
INCLUDE_OF_MACRO = re.compile(r"^\s*#\s*include\s+(\w+)")
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
ENDS_PROCESS = re.compile(
    r"(?<![\w.>])(?:std\s*::\s*|::\s*)?(abort|exit|_exit|_Exit|quick_exit|terminate)\s*\(")
KERNELS_SAMPLE = "samples/raw_pointers.cpp"  # shows how to call kernels without tensors
ENDS_PROCESS_IN = "dist/job/process_exit.cpp"  # for ranks that nothing else can reach
# Sources as users of the lab write them.
PLAIN_CUDA = ("lab/ladders/", "lab/exercises/", "tests/lab/")
# Text that may stand in one place only: pattern, where it may (files, or folders that end in /),
# what to do.
ONE_PLACE = (
    (re.compile(r"<<<"), ("samples/user_kernel/", *PLAIN_CUDA), "a raw kernel launch; use launch()"),
    (re.compile(r"\bcu(da)?LaunchKernel"), ("kernels/cuda/launch.cu",),
     "a raw kernel launch; use launch()"),
    (re.compile(r"\b(asm|__asm|__asm__)\b"), ("kernels/cuda/primitives.cuh", "kernels/host/"),
     "inline assembly; make it a primitive"),
    (re.compile(r"\b__shared__\b"), ("kernels/cuda/primitives.cuh", *PLAIN_CUDA),
     "__shared__; use shared_mem<Struct>()"),
)


def files(root, folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield folder, path


def code_only(text):
    """The text with comments and strings blanked; line numbers stay."""
    return COMMENT_OR_STRING.sub(lambda m: "\n" * m.group().count("\n") or " ", text)


def is_public(path):
    private = (path.stem.endswith("_internal") or "/".join(path.parts[-3:-1]) == PRIVATE or
               "/lab/device/" in path.as_posix())
    return path.suffix == ".h" and not private


def include_fault(folder, path, quote, name):
    """Why this include is wrong, or None."""
    runs_kernels = any(f"/{place}" in path.as_posix() for place in LAB_PROCESS)
    if runs_kernels and not name.startswith("binade/"):
        return None
    if quote == '"':
        return f'"{name}": includes are written <binade/folder/file.h>'
    if name == "binade/build_config.h":  # written by CMake
        return None
    if ".." in name.split("/"):
        return f"<{name}>: write the path without .."
    if name.startswith("binade/"):
        target = name.split("/")[1]
        if target not in LAYERS:
            return f"<{name}>: libraries include single headers of a layer"
        if target not in LAYERS[folder]:
            return f"<{name}>: {folder} may include {', '.join(sorted(LAYERS[folder]))} only"
        if name.startswith(f"binade/{PRIVATE}/") and folder != "kernels" and not runs_kernels:
            return f"<{name}>: only kernels and tests may include {PRIVATE}"
        if is_public(path) and name.endswith("_internal.h"):
            return f"<{name}>: not installed, so a public header may not include it; declare what is needed"
        return None
    if name.split("/")[0] in LAYERS:
        return f"<{name}>: write <binade/{name}>"
    if is_public(path) and name not in STANDARD:
        return f"<{name}>: public headers include the standard library and binade only"
    return None


def family_fault(path, name):
    """Why a source of kernels/ may not stand here or include this header, or None. name is None for the place."""
    family = path.parent.name
    if path.parent.parent.name != "kernels" or family not in FAMILIES:
        return "not in a family of kernels (FAMILIES in lint.py)" if name is None else None
    parts = (name or "").split("/")
    if parts[:2] != ["binade", "kernels"]:
        return None
    allowed = {family, "base", "cuda"} | FAMILIES[family]
    if len(parts) == 4 and parts[2] in allowed:
        return None
    return f"<{name}>: the family {family} may include {', '.join(sorted(allowed - {family}))} only"


def room_fault(name, include):
    """Why a source of a layer with rooms may not stand here (include is None) or include this header, or None."""
    layer, room, *rest = name.parts
    rooms = ROOMS[layer]
    if name.as_posix() in OUTSIDE_ROOMS:
        return None
    if not rest or room not in rooms or (len(rest) > 1 and name.parent.as_posix() not in INNER):
        return None if include else f"not in a room of {layer}: {', '.join(sorted(rooms))} (ROOMS, INNER in lint.py)"
    parts = (include or "").split("/")
    if parts[:2] != ["binade", layer] or len(parts) < 4 or parts[2] in rooms[room] | {room}:
        return None
    return f"<{include}>: {layer}/{room} may include {', '.join(sorted(rooms[room]))} only (ROOMS in lint.py)"


def umbrella_includes(root):
    """(file, line, header of the standard library) for all that binade.h leads to."""
    seen, open_files = set(), [root / "binade.h"]
    while open_files:
        path = open_files.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(2).startswith("binade/"):
                open_files.append(root / match.group(2).removeprefix("binade/"))
            elif match:
                yield path, number, match.group(2)


def lint_includes(root):
    for path, number, name in umbrella_includes(root):
        if name in HEAVY:
            yield path, number, (f"<{name}>: too dear for a header that binade.h includes; declare what is "
                                 "needed and include it in the source")
    umbrella = root / "binade.h"
    for number, line in enumerate(umbrella.read_text().splitlines() if umbrella.is_file() else [], 1):
        match = INCLUDE.match(line)
        if match and match.group(2).endswith("_internal.h"):
            yield umbrella, number, f"<{match.group(2)}>: not installed, so binade.h may not include it"
    for folder, path in files(root, LAYERS):
        in_kernels = folder == "kernels"
        if in_kernels and (fault := family_fault(path, None)):
            yield path, 1, fault
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if macro := INCLUDE_OF_MACRO.match(line):
                yield path, number, f"#include {macro.group(1)}: write the header's name, so that it can be checked"
            fault = match and (include_fault(folder, path, *match.groups()) or
                               in_kernels and family_fault(path, match.group(2)) or
                               folder in ROOMS and room_fault(path.relative_to(root), match.group(2)))
            if fault:
                yield path, number, fault
    for folder, path in files(root, PROGRAMS):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1) == "<" and match.group(2).split("/")[0] in LAYERS:
                yield path, number, f"<{match.group(2)}>: write <binade/{match.group(2)}>"
            if match and match.group(2).startswith(f"binade/{PRIVATE}/") and folder != "tests":
                yield path, number, f"<{match.group(2)}>: only kernels and tests may include it"


# Waits, timeouts and durations must not see NTP or an administrator change the time.
WALL_CLOCK = re.compile(r"\b(?:system_clock|high_resolution_clock|gettimeofday|CLOCK_REALTIME|timespec_get)\b|"
                        r"(?<![\w.:>])(?:std::|::)?time\((?:nullptr|NULL|0)\)")


# Times that people read, of no importance for the program.
WALL_CLOCK_IN = "train/logging/wall_clock.cpp"


def function_faults(name, text):
    """Lines and faults of functions that are too long or take too much, but for the interfaces of kernels."""
    for function in function_forms.functions(text):
        if function.lines > MAX_FUNCTION_LINES:
            yield (function.line, f"{function.name}: {function.lines} lines, at most {MAX_FUNCTION_LINES}: "
                                  "give a step a function of its own")
        own = not name.startswith("lab/device/")  # there the functions are CUDA's
        if function.parameters > MAX_PARAMETERS and not function.kernel and name not in PRIMITIVES and own:
            yield (function.line, f"{function.name}: {function.parameters} parameters, at most "
                                  f"{MAX_PARAMETERS}: take a struct")


NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) \{")
TYPE = re.compile(r"(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;]*)?(?: \{|$)")


def named_types(text):
    """(line, qualified name) of each type that the text defines in a namespace with a name."""
    inside = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := NAMESPACE.match(line):
            inside.append(match[1])
        elif line.startswith("}  // namespace") and inside:
            inside.pop()
        elif (match := TYPE.match(line)) and "" not in inside:
            yield number, "::".join([*inside, match[1]])


def type_faults(root, folders):
    """Types of one name in one namespace, which the linker takes for one."""
    first = {}
    for _, path in files(root, folders):
        if path.relative_to(root).as_posix().startswith(PLAIN_CUDA):
            continue  # a program each
        for number, name in named_types(path.read_text()):
            if first.setdefault(name, path) != path:
                yield path, number, f"{name} is also in {first[name].relative_to(root)}: give one another name"


TEST = re.compile(r"^(?:TYPED_)?TEST(?P<kind>_F|_P)?\((?P<suite>\w+),\s*(?P<name>\w+)\)", re.MULTILINE)
GROUPED = ("kernels", "core", "nn", "optim", "data", "train", "lab")  # binade_test_group in tests/CMakeLists.txt


def grouped_test_faults(root):
    """Names that would clash in the one program for the tests of a folder."""
    for folder in GROUPED:
        first = {}
        for path in sorted((root / "tests" / folder).rglob("*_test.cpp")):
            text = path.read_text()
            own = re.search(rf"^namespace (?:\w+::)*{path.stem} \{{", text, re.MULTILINE)
            match = TEST.search(text)
            if match and not own:
                yield path, 1, f"its names are in no namespace of their own: begin with namespace binade::...::{path.stem} {{"
            elif match and match.start() < own.start():
                yield path, text.count("\n", 0, match.start()) + 1, f"a test before namespace ...::{path.stem}"
            for match in TEST.finditer(text):
                name = f"{match['suite']}.{match['name']}"
                if first.setdefault(name, path) != path:
                    line = text.count("\n", 0, match.start()) + 1
                    yield path, line, f"{name} is also in {first[name].relative_to(root)}: give one another name"


def lint_sources(root):
    yield from type_faults(root, [*LAYERS, *(f"tests/{folder}" for folder in GROUPED)])
    yield from grouped_test_faults(root)
    counts = collections.Counter(path.parent for _, path in files(root, [*LAYERS, *PROGRAMS]))
    for place, count in counts.items():
        if count > MAX_FILES:
            yield place, 1, f"{count} sources in a folder, at most {MAX_FILES}: make rooms"
    for folder in [*LAYERS, *PROGRAMS]:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in OTHER_SUFFIXES:
                yield path, 1, f"a source with the suffix {path.suffix}, which no rule reads; use .h, .cpp, .cu or .cuh"
    for _, path in files(root, ROOMS):
        if fault := room_fault(path.relative_to(root), None):
            yield path, 1, fault
    for folder, path in files(root, [*LAYERS, *PROGRAMS]):
        text = path.read_text()
        lines = text.splitlines()
        name = path.relative_to(root).as_posix()
        most = ONE_CLASS_LINES if name in ONE_CLASS else MAX_LINES
        if len(lines) > most:
            yield path, len(lines), f"{len(lines)} lines, at most {most}: split by idea"
        if path.suffix in {".h", ".cuh"} and "#pragma once" not in lines:
            yield path, 1, "no #pragma once"
        if folder != "tests":
            for number, fault in function_faults(name, text):
                yield path, number, fault
        for number, line in enumerate(lines, 1):
            if LEFTOVER.search(line):
                yield path, number, "a leftover; finish it or open an issue"
        for number, line in enumerate(code_only(text).splitlines(), 1):
            for pattern, places, advice in ONE_PLACE:
                if pattern.search(line) and not any(
                        name == place or (place.endswith("/") and name.startswith(place))
                        for place in places):
                    yield path, number, advice
            if folder in LAYERS and name != WALL_CLOCK_IN and WALL_CLOCK.search(line):
                yield path, number, "the wall clock, which may jump; take std::chrono::steady_clock"
            if folder == "samples" and name != KERNELS_SAMPLE and re.search(r"\bkernels\s*(::|;)", line):
                yield path, number, "kernels:: in a user's program; give the name to namespace binade"
            ends = ENDS_PROCESS.search(line)
            if ends and folder in LAYERS and name not in (ENDS_PROCESS_IN, *LAB_PROGRAM):
                yield path, number, f"{ends.group(1)}() in a library; throw binade::Error"


FILTER = re.compile(r"--gtest_filter=(-?)([\w.*?/:-]+)")
PROGRAM = re.compile(r"(?<![\w.])(?:kernels|core|nn|optim|data|dist|train|cuda)_(\w+_test)\b(?![.*])")


def test_names(root):
    for path in sorted((root / "tests").rglob("*.[ch]*")):
        for match in TEST.finditer(path.read_text()):
            name = f"{match['suite']}.{match['name']}"
            # Instances of a parametrised test: PREFIX/SUITE.NAME/PARAMETER.
            yield f"-/{name}/-" if match["kind"] == "_P" else name


def lint_selections(root):
    names = list(test_names(root))
    programs = {path.stem for path in (root / "tests").rglob("*_test.cpp")}
    sources = [path for path in root.rglob("CMakeLists.txt") if "build" not in path.relative_to(root).parts]
    sources += [*(root / "cmake").glob("*.cmake"), *(root / "scripts").glob("*"), root / ".ci/run"]
    for path in sorted(source for source in sources if source.is_file()):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in FILTER.finditer(line):
                for pattern in filter(None, re.split(r":|(?<=[*\w])-", match[2].strip("-"))):
                    instance = re.sub(r"(?<=.)/\w+$", "/*", pattern)  # a parameter's name is not in the source
                    if not any(fnmatch.fnmatchcase(name, form) for name in names for form in (pattern, instance)):
                        yield path, number, f"{pattern}: this filter selects no test"
            if re.search(r"\bctest\b.* -R ", line) and "--no-tests=error" not in line:
                yield path, number, "ctest -R passes where it selects no test: add --no-tests=error"
            for match in PROGRAM.finditer(line):
                if match[1] not in programs:
                    yield path, number, f"{match[0]}: there is no tests/.../{match[1]}.cpp"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", choices=["includes", "sources", "selections", "ops"])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    rules = {"includes": lint_includes, "sources": lint_sources, "selections": lint_selections,
             "ops": op_headers.faults}
    findings = list(rules[options.rules](options.root))
    for path, number, fault in findings:
        print(f"{path.relative_to(options.root)}:{number}: {fault}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
