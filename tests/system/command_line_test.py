#!/usr/bin/env python3
"""Command lines of binade, right and wrong: command_line_test.py BINADE [COUNT [SEED]].

Wrong ones end with status 2 and one line; COUNT random ones (100) of SEED (1) end with status 0, 1 or 2, with
one clear message, and print no control characters.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

BINADE = os.path.abspath(sys.argv[1])
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 100
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ODD = "a\n\x1b[2J\r\x7f"
COMMANDS = ["doctor", "lens", "launch", "slurm", "ring-lens", "checksum", "inspect", "op-classes", "report", "diff", "runs", "watch", "format", "kernel"]
FLAGS = {"doctor": ["--security", "--run"], "lens": ["--html"], "launch": ["-n", "--grace", "--link-delay"],
         "slurm": ["--nodes", "--gpus", "--tasks", "--cpus", "--name", "--time", "--partition", "--array", "--output", "--requeue",
                   "--sbatch", "--dry-run"],
         "ring-lens": ["--ranks", "--elements", "--deviation", "--seed", "--json"], "checksum": ["--verify", "--update"],
         "inspect": ["--verify"], "op-classes": [], "format": ["--value", "--decode", "--rounding", "--random"], "report": ["--html"], "diff": [], "runs": [], "watch": ["--interval", "--once"],
         "kernel": ["--case", "--json", "--page", "--compiler", "--strict", "--no-counts", "--no-nvcc"]}
VALUES = ["1", "2", "3", "0", "-1", "010", "0x10", "1e3", "nan", "inf", "99999999999999999999", "", " ", "x", ODD, "\udcff", "=", "2,3", "2,,3", "[2,3]",
          "{array}", "a;b", "--mem=64G", "x" * 5000]
PATHS = ["data", "run", "file", "nothing", "model.safetensors", "lens.jsonl", "", ".", "/dev/null", "/dev/full", "file/below", "fifo", ODD, "odd\nname",
         "x" * 300, "loop", "++"]
PROGRAMS = ["true", "false"]


def make_folder(path):
    """What the commands find: a fresh copy for each of them."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(os.path.join(path, "data"))
    os.makedirs(os.path.join(path, "run", "checkpoint", "step-00000001"))
    os.makedirs(os.path.join(path, "bin"))
    header = b'{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"a\\nb":{"dtype":"I64","shape":[1],"data_offsets":[16,24]}}'
    contents = {"file": b"text\n", "data/a.png": b"x", "odd\nname": b"y", "lens.jsonl": b"{}\n", "run/checkpoint/step-00000001/manifest.json": b"{",
                "model.safetensors": len(header).to_bytes(8, "little") + header + bytes(24)}
    for name, data in contents.items():
        with open(os.path.join(path, name), "wb") as file:
            file.write(data)
    os.mkfifo(os.path.join(path, "fifo"))
    os.symlink("loop", os.path.join(path, "loop"))
    for program in PROGRAMS:
        os.symlink(shutil.which(program), os.path.join(path, "bin", program))


def run(folder, words):
    # No program but these two: slurm submit finds no sbatch.
    environment = {"PATH": os.path.join(folder, "bin"), "OMP_NUM_THREADS": "1"} | {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    return subprocess.run([BINADE, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def fault_of(words, result):
    """Why the result is not one that a user may get, or None."""
    out, err = result.stdout.decode(errors="surrogateescape"), result.stderr.decode(errors="surrogateescape")
    for stream in (out, err):
        if odd := re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\udc80-\udcff]", stream):
            return f"prints a control character or a byte that is no text: {odd.group()!r}"
    lines = err.splitlines()
    errors = [line for line in lines if line.startswith("binade: error: ")]
    launched = any(line.startswith("binade launch: rank ") for line in lines)
    if result.returncode == 127 and words[0] == "launch" and launched:
        return None  # the status of the program's own process: it does not exist
    if result.returncode not in (0, 1, 2):
        return f"status {result.returncode}"
    if result.returncode == 2 and words[:1] == ["kernel"] and lines and not errors and not out:
        return None  # a file that cannot be checked
    if result.returncode == 2 and (len(lines) != 1 or len(errors) != 1 or out):
        return "status 2, expected nothing but one line 'binade: error: ...'"
    if result.returncode == 2 and not re.search("; see binade .*--help$", err.rstrip()):
        return "a wrong command line, expected a hint at the help"
    if result.returncode == 1 and not errors and not launched and "UNSAFE" not in out:
        return "status 1 without an error"
    if result.returncode == 1 and len(errors) > 1 and words[0] != "inspect":
        return "more than one error"
    if result.returncode == 0 and (errors or not (out or lines) and words[0] not in ("launch", "lens")):
        return "status 0, expected output and no error"
    return None


def random_line(rng):
    command = rng.choice(COMMANDS + ["nope", "", ODD, "--help", "--version", "--", "-n"])
    words = [command] + (["submit"] if command == "slurm" and rng.random() < 0.9 else [])
    flags = FLAGS.get(command, ["--verify"])
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        kind = rng.random()
        flag = rng.choice(flags) if flags else "--nope"
        if kind < 0.45:
            words += [flag, rng.choice(VALUES + PATHS)] if rng.random() < 0.8 else [flag]
        elif kind < 0.55:
            words.append(flag + "=" + rng.choice(VALUES))
        elif kind < 0.85:
            words.append(rng.choice(PATHS))
        else:
            words.append(rng.choice(["--help", "-h", "--nope", "--", "++", "-", "-x", "---", ODD, "\udcff", "doctor", "--" + ODD]))
    if command == "ring-lens" and "--elements" not in words:
        words[1:1] = ["--elements", "8"]
    if command in ("launch", "slurm") and rng.random() < 0.7:
        words += ["--"] * (rng.random() < 0.5) + [rng.choice(PROGRAMS)]
    return words


WRONG = [[], ["nope"], [ODD], ["--", "doctor"], ["doctor", ODD], ["doctor", "--run", "run"], ["doctor", "--security", "--security"], ["lens"], ["lens", ""],
         ["lens", "run", "--html"], ["launch"], ["launch", "-n"], ["launch", "-n", ODD, "true"], ["launch", "-n", "0", "true"], ["launch", "-n", "5000", "true"],
         ["launch", "-n", "2", "-n", "2", "true"], ["launch", "--" + ODD, "true"], ["slurm"], ["slurm", ODD], ["slurm", "submit", "--nodes", "0", "true"],
         ["slurm", "submit", "--name", ODD, "true"], ["ring-lens", "--seed", "-1"], ["ring-lens", "--ranks", "1"], ["ring-lens", "file"],
         ["checksum", "data", "--verify", "--update"], ["checksum"], ["inspect"], ["inspect", "file", "--verify", "--verify"], ["kernel"], ["kernel", "file"], ["kernel", "file", "--case", ODD], ["op-classes", "x"],
         ["x" * 100000]]


def main():
    rng = random.Random(SEED)
    faults, statuses = 0, {}
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "folder")
        make_folder(folder)
        listing = sorted(os.listdir(folder)), sorted(os.listdir(os.path.join(folder, "data")))
        for words in WRONG:
            result = run(folder, words)
            fault = fault_of(words, result) or (None if result.returncode == 2 else f"status {result.returncode}, expected 2")
            if fault:
                print(f"{words!r:.300}: {fault}\n{result.stderr[-500:]!r}")
                faults += 1
        if (sorted(os.listdir(folder)), sorted(os.listdir(os.path.join(folder, "data")))) != listing:
            print("a wrong command line changed files")
            faults += 1
        for _ in range(COUNT):
            words = random_line(rng)
            make_folder(folder)
            try:
                result = run(folder, words)
                fault = fault_of(words, result)
                statuses[result.returncode] = statuses.get(result.returncode, 0) + 1
            except subprocess.TimeoutExpired:
                result, fault = None, "does not end"
            if fault:
                print(f"{words!r:.300}: {fault}\n{result and result.stdout[-300:]!r}\n{result and result.stderr[-500:]!r}")
                faults += 1
    if COUNT >= 100 and set(statuses) < {0, 1, 2}:
        print(f"the random command lines reach the statuses {statuses} only")
        faults += 1
    print(f"{len(WRONG)} wrong and {COUNT} random command lines, statuses {dict(sorted(statuses.items()))}: {faults} faults")
    return 1 if faults else 0


sys.exit(main())
