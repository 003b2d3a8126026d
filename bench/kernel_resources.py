#!/usr/bin/env python3
"""What ptxas says of every kernel: registers and spilled bytes, per card.

  bench/kernel_resources.py [--arch sm_90a]... [--source NAME]... bench/kernel_resources.json

Compiles the *.cu of kernels/ with nvcc, device code only, and writes {card: {"KERNEL DTYPE": {"registers": N,
"spilled_bytes": N}}}; cards and kernels that are not compiled now keep what the file says. Of several
instances with one name and dtype the largest numbers count. Pointwise kernels go by the name of
their launch. `kernel_cards --table FILE` prints them beside what the kernels move.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DTYPES = {"float": "f32", "double": "f64", "binade::half": "f16", "binade::bfloat16": "bf16"}
POINTWISE = {"pointwise_unary": "unary_forward", "pointwise_unary_backward": "unary_backward",
             "pointwise_binary": "binary_forward", "pointwise_binary_backward": "binary_backward"}
ENTRY = re.compile(r"Compiling entry function '(?P<function>.*)' for '")
SPILL = re.compile(r"(\d+) bytes spill stores")
REGISTERS = re.compile(r"Used (\d+) registers")


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def name_of(source, function):
    """The launch's name and the dtype of a demangled kernel."""
    function = function.replace("(anonymous namespace)::", "")
    kernel = re.search(r"(\w+)(?=<|\()", re.sub(r"^void ", "", function).replace("binade::kernels::", "")
                       .replace("dev::", "").replace("detail::", ""))[1]
    functor = re.search(r"functor::(\w+)", function)
    if functor and source in POINTWISE:
        kernel = f"{POINTWISE[source]}_{snake(functor[1])}_kernel"
    dtype = re.search(r"<(float|double|binade::half|binade::bfloat16)\b", function)
    return kernel + (" " + DTYPES[dtype[1]] if dtype else "")


def keep_largest(found, name, used):
    largest = found.setdefault(name, dict.fromkeys(used, 0))
    for what, number in used.items():
        largest[what] = max(largest[what], number)


def resources(path, arch, include):
    source = os.path.splitext(os.path.basename(path))[0]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as out:
        done = subprocess.run(
            ["nvcc", "-std=c++20", "--expt-relaxed-constexpr", "-DBINADE_WITH_CUDA", "-I" + include, "-arch=" + arch,
             "-Wno-deprecated-gpu-targets", "-Xptxas", "-v", "-cubin", path, "-o", out.name],
            capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    lines = subprocess.run(["c++filt"], input=done.stderr, capture_output=True, text=True, check=True).stdout
    found, name, spilled = {}, None, 0
    for line in lines.splitlines():
        if entry := ENTRY.search(line):
            name, spilled = name_of(source, entry["function"]), 0
        elif spill := SPILL.search(line):
            spilled = int(spill[1])
        elif (used := REGISTERS.search(line)) and name:
            keep_largest(found, name, {"registers": int(used[1]), "spilled_bytes": spilled})
            name = None
    return found


def write(path, result):
    with open(path, "w", encoding="utf-8") as file:
        file.write("{" + ",".join(f"\n{json.dumps(arch)}: {{" + ",".join(
            f"\n {json.dumps(name)}: {json.dumps(kernels[name])}" for name in sorted(kernels)) + "\n}"
            for arch, kernels in sorted(result.items())) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append")
    parser.add_argument("--source", action="append")
    parser.add_argument("file")
    options = parser.parse_args()
    result = {}
    if os.path.exists(options.file):
        with open(options.file, encoding="utf-8") as file:
            result = json.load(file)
    sources = {os.path.splitext(os.path.basename(s))[0]: s
               for s in sorted(glob.glob(os.path.join(ROOT, "kernels", "**", "*.cu"), recursive=True))}
    if unknown := [name for name in [*(options.source or []), *POINTWISE] if name not in sources]:
        sys.exit(f"kernel_resources: there is no {unknown[0]}.cu below kernels/")
    sources = [sources[name] for name in options.source or sources]
    with tempfile.TemporaryDirectory() as include, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        os.mkdir(os.path.join(include, "binade"))
        for folder in "kernels", "core":
            os.symlink(os.path.join(ROOT, folder), os.path.join(include, "binade", folder))
        with open(os.path.join(include, "binade", "build_config.h"), "w", encoding="utf-8") as config:
            config.write("#define BINADE_WITH_CUDA 1\n")
        for arch in options.arch or ["sm_90a"]:
            compiled = {}
            for found in pool.map(lambda path, arch=arch: resources(path, arch, include), sources):
                for name, used in found.items():
                    keep_largest(compiled, name, used)
            result.setdefault(arch, {}).update(compiled)
            write(options.file, result)
    for arch, kernels in result.items():
        spills = {name: k for name, k in kernels.items() if k["spilled_bytes"]}
        print(f"{arch}: {len(kernels)} kernels, {len(spills)} spill", *sorted(spills))


if __name__ == "__main__":
    main()
