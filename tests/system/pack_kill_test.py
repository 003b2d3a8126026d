#!/usr/bin/env python3
"""An append to a store of two parts, killed at every system call that touches files: both parts have their new
samples or none has, and the next append goes on from there.

pack_kill_test.py PROGRAM BINADE. strace counts the calls, and kills.
"""
import collections
import pathlib
import shutil
import subprocess
import sys

from classifier_runs import make_idx, skip, temporary_directory

BINADE = str(pathlib.Path(sys.argv[2]).resolve())
CALLS = "openat,write,fsync,renameat,renameat2,rename,unlinkat,unlink"
PACK = (BINADE, "pack", "data", "store")


def traced(*options):
    return subprocess.run(["strace", "-f", "-o", "trace.log", "-e", f"trace={CALLS}", *options, *PACK, "--append"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)


def samples(part):
    """As a reader of the part counts them."""
    shutil.rmtree("copy", ignore_errors=True)
    result = subprocess.run([BINADE, "pack", f"store/{part}", "copy"], capture_output=True, text=True, timeout=240,
                            check=False)
    assert result.returncode == 0, result.stderr + result.stdout
    return int(result.stdout.split(" samples")[0].split()[-1])


def files(part):
    return sorted(path.name for path in pathlib.Path("store", part).iterdir())


def main():
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False) \
        if shutil.which("strace") else None
    if probe is None or probe.returncode != 0:
        skip("strace cannot be used here")
    with temporary_directory():
        make_idx("data")
        subprocess.run(PACK, check=True, capture_output=True)
        shutil.copytree("store", "before")
        sizes = samples("train"), samples("test")
        result = traced()
        assert result.returncode == 0, result.stderr
        assert (samples("train"), samples("test")) == tuple(2 * size for size in sizes)
        counts, calls = collections.Counter(), []
        for line in pathlib.Path("trace.log").read_text(encoding="utf-8", errors="replace").splitlines():
            call = line.partition(" ")[2].strip()
            if not call.startswith(("+++", "---", "<...")):
                counts[call.split("(")[0]] += 1
                calls.append((call.split("(")[0], counts[call.split("(")[0]], call))
        first = next(i for i, (_, _, call) in enumerate(calls) if '"store/' in call)
        seen = collections.Counter()
        for name, count, call in calls[first:]:
            shutil.rmtree("store")
            shutil.copytree("before", "store")
            traced("-e", f"inject={name}:signal=SIGKILL:when={count}")
            now = samples("train") // sizes[0], samples("test") // sizes[1]
            assert now in ((1, 1), (2, 2)), f"killed at {call[:90]}: {now} times the samples"
            seen[now[0]] += 1
            result = subprocess.run([*PACK, "--append"], capture_output=True, text=True, timeout=240, check=False)
            assert result.returncode == 0, f"killed at {call[:90]}: {result.stderr}"
            after = samples("train") // sizes[0], samples("test") // sizes[1]
            assert after == (now[0] + 1, now[0] + 1), f"killed at {call[:90]}: {after} after the next append"
            for part in ("train", "test"):
                expected = [f"{i:05}.bin" for i in range(after[0])] + ["binade-store.txt"]
                assert files(part) == expected, f"killed at {call[:90]}: {part} has {files(part)}"
            assert not pathlib.Path("store/binade-append.txt").exists(), call
        assert min(seen[1], seen[2]) > 0, seen
    print(f"killed at {sum(seen.values())} calls: {seen[1]} times before the append took effect")


main()
