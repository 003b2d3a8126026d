"""Call "why": what keeps a kernel from its ceiling, and do the sanitizers of the toolkit find anything?"""
import csv
import json
import os
import re

from fast import kernel_rows
from stage import Failed, Skipped, find_tool

# Every n-th kernel test, and a small step of each model: sanitizers make kernels 10 to 100 times slower.
SHARDS = {"memcheck": 24, "racecheck": 48, "synccheck": 24}
SMALL_STEPS = (
    ["--model", "gpt2", "--batch", "2", "--tokens", "48", "--layers", "1", "--width", "64", "--heads", "1",
     "--vocabulary", "257", "--precision", "fp16"],
    ["--model", "resnet50", "--batch", "2", "--image", "64", "--blocks", "1,1,1,1", "--width", "8", "--precision", "fp16"])
HOTTEST = 12
METRICS = ("Duration", "Compute (SM) Throughput", "Memory Throughput", "DRAM Throughput", "L2 Hit Rate",
           "Achieved Occupancy", "Registers Per Thread", "Executed Ipc Active")


def ceilings(stage):
    result = json.loads(stage.run(stage.programs.command("gpu_ceilings") + ["--json"]).strip().splitlines()[-1])
    stage.figures["ceilings"] = result["ceilings"]
    stage.detail = ", ".join(f"{row['name']} {row['per_clock']:g} {row['unit']}/clock" for row in result["ceilings"]
                             if row["per_clock"])
    if not result["hardware"]:
        stage.detail += " (of the host: they say nothing of a GPU)"


def sanitized_commands(stage, tool):
    shards = {"GTEST_TOTAL_SHARDS": str(SHARDS[tool]), "GTEST_SHARD_INDEX": "0"}
    try:
        tests = stage.programs.tests("kernels", ["kernels_on_device"])
    except Skipped:
        tests = stage.programs.tests("kernels", ["kernels_*_test"])
    step = stage.programs.command("step_bench") + ["--device", stage.options.device, "--samples", "1", "--steps", "1",
                                                   "--warmup", "1"]
    return ([(stage.programs.command("cuda_conformance"), {})] + [(step + flags, {}) for flags in SMALL_STEPS]
            + [(command, shards) for command in tests])


def sanitizer(stage, tool):
    program = find_tool("compute-sanitizer")
    if not program:
        raise Skipped(f"no compute-sanitizer here: {tool} was not done")
    wrong, done, late = [], 0, 0
    for command, environment in sanitized_commands(stage, tool):
        if stage.left() < 5:
            late += 1
            continue
        try:
            text = stage.run([program, "--tool", tool, "--error-exitcode", "9", "--print-limit", "20", *command],
                             environment, check=False)
        except Failed:  # out of time: earlier findings still count
            late += 1
            continue
        found = re.search(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", text)
        count = int(found.group(1) or found.group(2)) if found else None
        if count is None:
            wrong.append(f"{os.path.basename(command[-1])}: no summary: {text.strip()[-120:]}")
        elif count:
            wrong.append(f"{' '.join(command[1:3])}: {count} errors")
        done += 1
    stage.figures["programs"] = done
    stage.detail = f"{done} programs" + (f", {late} not to their end for lack of time" if late else "")
    if wrong:
        raise Failed("; ".join(wrong)[:400])


def memcheck(stage):
    sanitizer(stage, "memcheck")


def racecheck(stage):
    sanitizer(stage, "racecheck")


def synccheck(stage):
    sanitizer(stage, "synccheck")


def hottest(out):
    """The cases that take most of the two steps: as call "fast" measured them, else in the order of kernels.txt."""
    used = [case for case in kernel_rows(False) if case["calls"]]
    try:
        with open(os.path.join(out, "fast.json")) as file:
            stages = json.load(file)["stages"]
        rows = [row for stage in stages for row in stage["figures"].get("kernels", []) if row["dtype"] == "f16"]
        used = sorted((row for row in rows if row["ms_per_step"]), key=lambda row: -row["ms_per_step"]) or used
    except (OSError, ValueError, KeyError):
        pass
    return used[:HOTTEST]


def parse_profile(text):
    """Parses `ncu --csv --page details`: one row per launch, with METRICS."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    launches = {}
    for row in csv.DictReader(line for line in lines[begin:] if line.startswith('"')):
        one = launches.setdefault(row["ID"], {"launched": row["Kernel Name"][:60]})
        if row["Metric Name"] in METRICS:
            one[row["Metric Name"]] = f"{row['Metric Value']} {row['Metric Unit']}".strip()
    return list(launches.values())


def profile(stage):
    program = find_tool("ncu")
    if not program:
        raise Skipped("no ncu here: the hottest kernels were not profiled")
    rows, wrong, late = stage.figures.setdefault("profile", []), [], 0
    for case in hottest(stage.options.out):
        if stage.left() < 5:
            late += 1
            continue
        command = stage.programs.command("kernel_bench") + [
            case["kernel"], "--rows", str(case["rows"]), "--cols", str(case["cols"]), "--dtype", "f16", "--provider",
            "own", "--device", stage.options.device]
        try:
            # The first launches draw the operands, so they are skipped.
            text = stage.run([program, "--clock-control", "none", "--csv", "--page", "details", "--launch-skip", "12",
                              "--launch-count", "3", "--kill", "yes", "--section", "SpeedOfLight", "--section",
                              "MemoryWorkloadAnalysis", "--section", "Occupancy", "--section", "LaunchStats",
                              "--section", "ComputeWorkloadAnalysis", *command], check=False, seconds=60)
        except Failed as error:
            wrong.append(f"{case['kernel']}: {error}")
            continue
        found = {row["launched"]: row for row in parse_profile(text)}
        if not found:
            wrong.append(f"{case['kernel']}: {(text.strip().splitlines() or ['no output'])[-1][:120]}")
        for row in found.values():
            rows.append({"case": f"{case['kernel']} {case['rows']} x {case['cols']}", "launched": row["launched"],
                         **{metric: row.get(metric, "") for metric in METRICS}})
    stage.detail = f"{len(rows)} kernels" + (f", {late} cases left out for lack of time" if late else "")
    if wrong:
        stage.detail += f"; not profiled: {'; '.join(wrong)}"[:400]
    if not rows:
        raise Skipped(stage.detail)
