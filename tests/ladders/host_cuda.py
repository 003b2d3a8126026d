#!/usr/bin/env python3
"""Rewrites plain CUDA C++ for the executor (kernels/host): host_cuda.py OUTPUT CASE=FILE.cu...

Each file becomes a namespace of OUTPUT, a C++ source that includes plain_cuda.h; `#line` keeps the lines of
the file. Rewritten are `__shared__` declarations, `<<<>>>` launches and the entry `extern "C" void solve`;
includes of the toolkit are dropped. What is not understood is refused with its line. With one file the entry
keeps its name (check_kernel.py); with several each is registered under its path.
"""
import pathlib
import re
import sys

CASES = ("softmax", "gemm", "reduce", "transpose")
TOOLKIT = {"cuda_runtime.h", "cuda_fp16.h", "mma.h", "cmath", "cstdint", "math.h"}
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
DYNAMIC = re.compile(r"\bextern\s+__shared__\s+((?:__align__\(\d+\)\s*)?)([\w:]+)\s+(\w+)\s*\[\s*\]\s*;")
STATIC = re.compile(r"\b__shared__\s+((?:(?:__align__|alignas)\(\d+\)\s*)?)([\w:]+(?:<[^;<>]*>)?)\s+([^;=]+);")
DECLARATOR = re.compile(r"\s*(\w+)\s*((?:\[[^\]]+\]\s*)*)$", re.DOTALL)
LAUNCH = re.compile(r"([A-Za-z_][\w:]*(?:<(?!<)[^<>;(]*>)?)\s*<<<")
ENTRY = re.compile(r'extern\s+"C"\s+void\s+solve\s*\(')


class Refused(Exception):
    pass


def blanked(text):
    """The text with comments and strings as spaces, so that positions stay."""
    return COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def shared(match):
    declared = []
    for part in re.split(r",(?![^\[]*\])", match[3]):
        one = DECLARATOR.match(part)
        if not one:
            raise Refused(match.start(), f"a __shared__ declaration that is not understood: {part.strip()}")
        declared.append(f'auto& {one[1]} = ::plain_cuda::shared<{match[2]} {one[2].strip()}, __COUNTER__>("{one[1]}");')
    return " ".join(declared)


def launches(text):
    """Replaces name<<<grid, block>>>(arguments) by a call of plain_cuda::start."""
    while match := LAUNCH.search(text):
        end = text.find(">>>", match.end())
        if end < 0:
            raise Refused(match.start(), "<<< without >>>")
        configuration = text[match.end():end]
        text = (f'{text[:match.start()]}::plain_cuda::start("{match[1]}", {match[1]}, {configuration})'
                f"{text[end + 3:]}")
    if "<<<" in text:
        raise Refused(text.index("<<<"), "a launch that is not understood")
    return text


def rewrite(path, keep_entry):
    source = path.read_text()
    code = blanked(source)
    for match in INCLUDE.finditer(source):
        if match[1] not in TOOLKIT:
            raise Refused(match.start(), f"<{match[1]}>: a kernel includes {', '.join(sorted(TOOLKIT))} only")
    if not (entry := ENTRY.search(source)):
        raise Refused(0, 'no extern "C" void solve(...)')
    # Launches and declarations stand outside of strings; the entry's "C" is one.
    start = entry.start()
    code = code[:start] + ('extern "C" ' if keep_entry else "") + code[source.index("void", start):]
    code = re.sub(r"^[ \t]*#[ \t]*include[^\n]*", "", code, flags=re.MULTILINE)
    code = DYNAMIC.sub(lambda m: f"{m[2]}* const {m[3]} = ::plain_cuda::dynamic_shared<{m[2]}>();", code)
    code = STATIC.sub(lambda m: shared(m) + "\n" * m.group().count("\n"), code)
    return launches(code)


def main():
    output, *named = sys.argv[1:]
    pairs = [one.split("=", 1) for one in named]
    parts = ["// Written by host_cuda.py.\n#include <tests/ladders/plain_cuda.h>\n"]
    for case, file in pairs:
        path = pathlib.Path(file)
        step = f"{path.parent.name}/{path.stem}"
        try:
            text = rewrite(path, len(pairs) == 1)
        except Refused as refused:
            line = path.read_text()[:refused.args[0]].count("\n") + 1
            sys.exit(f"{path}:{line}: {refused.args[1]}")
        if case == "gemm" and re.search(r"solve\s*\(\s*const\s+(__half|half)\b", text):
            case = "gemm_f16"  # the same case on other elements
        parts.append(f'namespace step_{re.sub(r"[^A-Za-z0-9]", "_", step)} {{\n#line 1 "{path}"\n{text}\n'
                     f"static_assert(std::is_same_v<decltype(&solve), ::plain_cuda::Solve_{case}>,\n"
                     f'              "solve() has other parameters than the case {case}");\n'
                     + (f'extern "C" const char* const plain_cuda_case = "{case}";\n' if len(pairs) == 1 else
                        f'const ::plain_cuda::Registered kRegistered("{case}", "{path}",\n'
                        "    reinterpret_cast<void*>(&solve));\n") + "}\n")
    text = "".join(parts)
    target = pathlib.Path(output)
    if not target.is_file() or target.read_text() != text:
        target.write_text(text)


if __name__ == "__main__":
    main()
