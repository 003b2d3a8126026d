"""Checks Binade on the GPU of this machine; needs no compiler and no network (docs/gpu-check.md).

Three calls of at most 9 minutes: `right` (is everything computed correctly), `fast` (times, also of PyTorch if it is
installed) and `why` (sanitizers, profiles, ceilings). Without a call all of them run. Runs from the folder that the
target "bundle" makes, or from a build tree (--build). Every stage has a time limit and goes on after a failure of
another. Writes OUT/gpu-check.json and OUT/gpu-check.md, merged over the calls with the same --out, a log per stage,
and OUT.tar.gz with all of them. Exit status 1 where a stage failed, 77 where there is no GPU.
"""
import argparse
import os
import re
import subprocess
import sys
import time

import fast
import report
import right
import why
from stage import Failed, Programs, Skipped, Stage, base_environment, device_line, find_tool

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALL_SECONDS = 530  # the tar and the start of the script need the rest of 9 minutes

DOCTOR = ("doctor", right.doctor, 20)  # the first stage of "right": it says which GPU is used

# The stages of each call in order. The seconds of a stage are reserved while earlier ones run, so that no stage
# takes the time of a later one; unused time goes to the next.
PLAN = {
    "right": [DOCTOR, ("conformance", right.conformance, 30), ("kernels", right.kernels, 100),
              ("op-table", right.op_table, 80), ("library", right.library, 80), ("runtime", right.runtime, 40),
              ("huge", right.huge, 40), ("parity", right.parity, 30), ("models", right.models, 50),
              ("nccl", right.nccl, 60)],
    "fast": [("kernel-speed", fast.kernel_speed, 200), ("steps", fast.steps, 200), ("losses", fast.losses, 110)],
    "why": [("ceilings", why.ceilings, 20), ("profile", why.profile, 180), ("memcheck", why.memcheck, 120),
            ("racecheck", why.racecheck, 110), ("synccheck", why.synccheck, 80)],
}
STAGES = {name: (call, function) for call, stages in PLAN.items() for name, function, _ in stages}


def planned(calls, only):
    """Returns (call, [(stage, function, seconds)]) for the stages to run."""
    plan = [(call, [one for one in PLAN[call] if not only or one[0] in only]) for call in PLAN if call in calls]
    return [(call, stages) for call, stages in plan if stages]


def print_plan(plan, seconds):
    for call, stages in plan:
        print(f"{call}: at most {seconds} s")
        for name, _, kept in stages:
            print(f"  {name:13} {kept:4} s kept")
    for tool, what in right.NEEDS.items():
        if tool != "torch" and find_tool(tool) is None:
            print(f"no {tool} here: {what}")


def parse_options(words=None):
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="*", metavar="CALL", help="right, fast or why; without one all of them")
    parser.add_argument("--stage", action="append", choices=list(STAGES), help="this one only; may be repeated")
    parser.add_argument("--cases", help="folder of parity cases, *.safetensors; those of the bundle if not given")
    parser.add_argument("--data", help="folder of MNIST's idx files")
    parser.add_argument("--out", default="gpu-check-out", help="folder of the results (%(default)s)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N, or emulated to try this script")
    parser.add_argument("--build", help="build tree; without it the bundle, or build/cuda-all")
    parser.add_argument("--python", help="the Python that has PyTorch; without it the one that runs this")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1),
                        help="processes at a time of test programs (%(default)s)")
    parser.add_argument("--seconds", type=float, default=CALL_SECONDS, help="limit of a call (%(default)s)")
    parser.add_argument("--all-cases", action="store_true", help="every kernel on the emulated device, too")
    parser.add_argument("--plan", action="store_true", help="print what would run, and how long at most")
    options = parser.parse_args(words)
    for call in options.calls:
        if call not in PLAN:
            parser.error(f"got '{call}', expected right, fast or why")
    if not re.fullmatch(r"cuda(:\d+)?|emulated", options.device):
        parser.error(f"--device: got '{options.device}', expected cuda, cuda:N or emulated")
    if options.jobs < 1 or options.seconds <= 0:
        parser.error("--jobs and --seconds: expected positive numbers")
    if options.stage:
        calls = {STAGES[name][0] for name in options.stage}
        wrong = [name for name in options.stage if options.calls and STAGES[name][0] not in options.calls]
        if wrong:
            parser.error(f"stage {wrong[0]} is of the call {STAGES[wrong[0]][0]}, not of {' and '.join(options.calls)}")
        options.calls = options.calls or [call for call in PLAN if call in calls]
    options.calls = options.calls or list(PLAN)
    options.here = HERE
    if not options.build:
        in_bundle = os.path.exists(os.path.join(HERE, "gpu-programs"))
        preset = "emulated" if options.device == "emulated" else "cuda-all"
        options.build = HERE if in_bundle else os.path.join(HERE, "..", "build", preset)
    return options


class CannotStart(Exception):
    pass


def missing_device(options, programs):
    """The reason why there is no device to check; empty if there is one. Raises CannotStart if the program
    that looks for it does not run, since a missing library says nothing about the device."""
    try:
        command = programs.command("binade") + ["doctor"]
        done = subprocess.run(command, env=base_environment(options), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120)
    except Skipped as reason:
        sys.exit(f"gpu-check: {reason}: build it, or name another folder with --build")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotStart(str(error))
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise CannotStart(f"exit {done.returncode}: {text.strip()[-500:] or 'no output'}")
    if re.search(device_line(options.device), text, re.M):
        return ""
    mode = re.search(r"^mode\s+(.*)$", text, re.M)
    return mode.group(1) if mode else text.strip()[-300:]


def run_stage(name, options, programs, end):
    started = time.monotonic()
    stage = Stage(name, options, programs, end)
    status = "passed"
    try:
        STAGES[name][1](stage)
    except Skipped as reason:
        status, stage.detail = "skipped", str(reason)
    except Failed as reason:
        status, stage.detail = "failed", str(reason)
    except Exception as error:  # unexpected output: only this stage fails
        status, stage.detail = "failed", f"{type(error).__name__}: {error}"
    stage.log.close()
    return {"stage": name, "status": status, "seconds": round(time.monotonic() - started, 1),
            "detail": stage.detail, "figures": stage.figures}


def run_call(call, stages, options, programs):
    """Runs the stages of a call and returns their results. The file keeps other stages of the same commit."""
    started = time.monotonic()
    result = {"call": call, "date": report.now(), "commit": report.commit_of(options.build, HERE),
              "device": "unknown", "driver": "unknown", "stages": []}
    if DOCTOR not in stages:
        stages = [DOCTOR] + stages
    before = report.read_calls(options.out).get(call, {})
    if before.get("commit") == result["commit"]:
        names = [name for name, _, _ in stages]
        result["stages"] = [stage for stage in before["stages"] if stage["stage"] not in names]
    made = []
    for number, (name, _, _) in enumerate(stages):
        kept = sum(seconds for _, _, seconds in stages[number + 1:])
        scale = min(1, options.seconds / sum(seconds for _, _, seconds in stages))
        one = run_stage(name, options, programs, started + options.seconds - kept * scale)
        result["stages"].append(one)
        made.append(one)
        for key in ("device", "driver"):
            result[key] = one["figures"].get(key, result[key])
        result["seconds"] = round(time.monotonic() - started, 1)
        print(f"{one['status']:8} {name:13} {one['seconds']:7.1f} s  {one['detail']}", flush=True)
        report.write_json(os.path.join(options.out, f"{call}.json"), result)
        report.write_report(options.out)
    return made


def main():
    options = parse_options()
    plan = planned(options.calls, options.stage)
    if options.plan:
        print_plan(plan, options.seconds)
        return 0
    programs = Programs(options.build)
    try:
        reason = missing_device(options, programs)
    except CannotStart as error:
        print(f"gpu-check: failed: {' '.join(programs.command('binade'))} doctor does not run: {error}")
        return 1
    if reason:
        print(f"gpu-check: skipped: no device {options.device}: {reason}")
        return 77
    os.makedirs(options.out, exist_ok=True)
    stages = []
    for call, of_call in plan:
        stages += run_call(call, of_call, options, programs)
    print("\n" + report.table(report.write_report(options.out)))
    target, size = report.write_tar(options.out)
    print(f"{target}: {size / 1e6:.2f} MB")
    count = report.counts_of(stages)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
