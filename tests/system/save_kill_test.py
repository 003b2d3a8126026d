#!/usr/bin/env python3
"""A run killed at every system call that touches files, from its first checkpoint to its end, and
resumed: it ends like one that was not killed, and leaves nothing behind.

save_kill_test.py PROGRAM BINADE [RANKS [EVERY [async] [other]]]: rank 0 of RANKS (1) dies at every EVERY-th
call (1); with "async" a thread of its own saves; with "other" the last rank dies while rank 0, which saves,
is at that call. strace counts the calls, and kills or stops.
"""
import collections
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from classifier_runs import PROGRAM, make_idx, metrics, run, skip, temporary_directory, train

BINADE = str(pathlib.Path(sys.argv[2]).resolve())
RANKS = int(sys.argv[3]) if len(sys.argv) > 3 else 1
EVERY = int(sys.argv[4]) if len(sys.argv) > 4 else 1
CALLS = "openat,mkdirat,write,fsync,renameat,renameat2,linkat,unlinkat,utimensat"
SETTINGS = ("--model", "mlp", "--precision", "fp16", "--augment", "none", "--seed", 3, "--workers", 0,
            "--threads", 1, "--epochs", 2, "--batch", 20 // RANKS, "--lr", 0.01,
            *(["--async-save"] if "async" in sys.argv else []))


def traced_command(arguments, *options):
    """The program on RANKS processes, rank 0 under strace with the options."""
    strace = ["strace", "-f", "-o", "trace.log", *options, PROGRAM, *map(str, arguments)]
    if RANKS > 1:
        choose = 'if [ "$BINADE_RANK" = 0 ]; then exec "$@"; fi; while [ "$1" != "$0" ]; do shift; done; exec "$@"'
        strace = [BINADE, "launch", "-n", str(RANKS), "sh", "-c", choose, PROGRAM, *strace]
    return strace


def traced(arguments, *options):
    return subprocess.run(traced_command(arguments, *options), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=240, check=False)


def processes_of(rank):
    """The program's processes of this test that are this rank."""
    here, found = os.getcwd(), []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "environ").read_bytes().split(b"\0")
            if (f"BINADE_RANK={rank}".encode() in words and os.readlink(process / "cwd") == here
                    and os.readlink(process / "exe") == PROGRAM):
                found.append(int(process.name))
        except OSError:
            pass
    return found


def killed_beside(arguments, name, count):
    """Rank 0 stops at a call, the last rank is killed, and rank 0 goes on."""
    log = pathlib.Path("trace.log")
    log.unlink()
    stop = traced_command(arguments, "-e", f"trace={CALLS}", "-e", f"inject={name}:signal=SIGSTOP:when={count}")
    with subprocess.Popen(stop, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        for _ in range(6000):
            if process.poll() is not None or (log.exists() and b"stopped by SIGSTOP" in log.read_bytes()):
                break
            time.sleep(0.01)
        for victim, number in ((RANKS - 1, signal.SIGKILL), (0, signal.SIGCONT)):
            for pid in processes_of(victim):
                os.kill(pid, number)
        output, error = process.communicate(timeout=240)
    return subprocess.CompletedProcess(stop, process.returncode, output, error)


def traced_calls():
    """The traced calls of all threads in order, as (name, how often that thread made it so far, text)."""
    counts, calls = collections.Counter(), []
    for line in pathlib.Path("trace.log").read_text(encoding="utf-8", errors="replace").splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if not call.startswith(("+++", "---", "<...")):
            name = call.split("(")[0]
            counts[thread, name] += 1
            calls.append((name, counts[thread, name], call))
    return calls


def resume_alone_or_together(arguments):
    if RANKS == 1:
        return run(*arguments)
    return subprocess.run([BINADE, "launch", "-n", str(RANKS), PROGRAM, *map(str, arguments)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
                          check=False)


def check_after(arguments, expected, place):
    result = resume_alone_or_together([*arguments, "--resume"])
    assert result.returncode == 0, f"{place}: {result.returncode}: {result.stderr[-1500:]}"
    assert metrics("run") == expected, f"{place}: {metrics('run')}, expected {expected}"
    left = [str(p) for p in pathlib.Path("run").rglob("*")
            if p.suffix in (".tmp", ".old", ".damaged") or p.name.startswith("lock")
            or p.name == "files.json"]
    assert not left, f"{place}: left {left}"


def main():
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False) \
        if shutil.which("strace") else None
    if probe is None or probe.returncode != 0:
        skip("strace cannot be used here")
    with temporary_directory():
        data = make_idx("data")
        arguments = ("--data", data, *SETTINGS, "--run", "run")
        result = traced(arguments, "-e", f"trace={CALLS}")
        assert result.returncode == 0, result.stderr
        expected = metrics("run")
        calls = traced_calls()
        first = next(i for i, (_, _, call) in enumerate(calls) if '"run' in call)
        kinds = collections.Counter()
        kills = 0
        for at in range(first, len(calls), EVERY):
            shutil.rmtree("run")
            name, count, call = calls[at]
            if "other" in sys.argv:
                result = killed_beside(arguments, name, count)
            else:
                result = traced(arguments, "-e", f"trace={CALLS}", "-e", f"inject={name}:signal=SIGKILL:when={count}")
            place = f"killed at call {at - first} of {len(calls) - first}, {call[:80]}"
            if not pathlib.Path("run").exists():  # before it was made
                pathlib.Path("run").mkdir()
            kills += result.returncode != 0
            kinds[name] += 1
            check_after(arguments, expected, place)
        assert kills >= 0.9 * sum(kinds.values()), f"only {kills} of {sum(kinds.values())} were kills"
    print(f"{RANKS} ranks: {kills} kills at {len(calls) - first} calls: {dict(kinds)}")


main()
