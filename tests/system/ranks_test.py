#!/usr/bin/env python3
"""train_classifier on two processes, under binade launch and under mpirun: as accurate as one process
with their batches together; ended by a signal to one rank, and resumed by another number of ranks.

ranks_test.py PROGRAM BINADE
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from classifier_runs import PROGRAM, make_idx, metrics, newest_manifest, temporary_directory, train

BINADE = str(pathlib.Path(sys.argv[2]).resolve())
LAUNCH = (BINADE, "launch", "-n", "2", PROGRAM)
MPIRUN = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-np", "2", PROGRAM)
EPOCHS = 30  # of the run that is stopped
SETTINGS = ("--model", "mlp", "--precision", "fp16", "--augment", "none", "--seed", 3, "--workers", 0,
            "--threads", 1)


def run_all(command, *arguments, status=0):
    """Runs a program of several processes and returns what all printed."""
    result = subprocess.run([*command, *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
                            check=False)
    assert result.returncode == status, f"{command}: {result.returncode}\n{result.stdout[-2000:]}"
    return result.stdout


def rank_one(launcher):
    """The process id of rank 1 below a launcher, or None."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == launcher and b"BINADE_RANK=1\0" in (process / "environ").read_bytes():
                return int(process.name)
        except (OSError, ValueError, IndexError):
            pass
    return None


def compare_with_one_process(settings):
    train(*settings, "--epochs", 3, "--batch", 16, "--run", "one")
    expected = metrics("one")
    hashes = []
    commands = {"launch": LAUNCH}
    if shutil.which("mpirun"):
        commands["mpirun"] = MPIRUN
    for name, command in commands.items():
        output = run_all(command, *settings, "--epochs", 3, "--batch", 8, "--run", name)
        assert "2 ranks x batch 8 = 16" in output, output
        assert output.count("test accuracy") == 1 and output.count("epoch 3/3") == 1, output
        lines = metrics(name)
        for line, alone in zip(lines, expected, strict=True):
            for field, tolerance in (("train_loss", 0.02), ("validation_loss", 0.02),
                                     ("validation_accuracy", 0.05)):
                difference = abs(line[field] - alone[field])
                assert difference < tolerance, f"{name}: {field} {line[field]}, alone {alone[field]}"
        hashes.append(lines[-1]["state_hash"])
    run_all(LAUNCH, *settings, "--epochs", 3, "--batch", 8, "--run", "zero", "--zero", 2)
    hashes.append(metrics("zero")[-1]["state_hash"])  # sums of two numbers have one order
    assert len(set(hashes)) == 1, f"the transport or the sharding changed the result: {hashes}"
    return list(commands)


def stop_one_rank(settings):
    """SIGTERM to rank 1 ends both with a checkpoint. Returns its step."""
    arguments = [*LAUNCH, *map(str, (*settings, "--batch", 8, "--checkpoint-every", 2))]
    with open("stop.log", "wb") as log, subprocess.Popen(arguments, stdout=log, stderr=log) as launcher:
        deadline = time.monotonic() + 60
        while not newest_manifest("stop"):
            assert time.monotonic() < deadline and launcher.poll() is None, open("stop.log").read()
            time.sleep(0.01)
        os.kill(rank_one(launcher.pid), signal.SIGTERM)
        status = launcher.wait(timeout=60)
    output = pathlib.Path("stop.log").read_text(encoding="utf-8")
    assert status == 128 + signal.SIGTERM, f"{status}: {output}"
    step = newest_manifest("stop")["step"]
    assert f"stopped by signal 15 after step {step}" in output, output
    return step


def main():
    with temporary_directory():
        data = make_idx("images", train_count=400)
        settings = ("--data", data, *SETTINGS)
        commands = compare_with_one_process(settings)
        settings += ("--epochs", EPOCHS, "--patience", 0, "--run", "stop")
        step = stop_one_rank(settings)
        output = run_all(LAUNCH, *settings, "--resume", "--batch", 16, status=1)
        assert "batch = 32" in output and "trained with batch = 16" in output, output
        output = train(*settings, "--resume", "--batch", 16)
        assert f"after step {step}" in output, output
        assert [line["epoch"] for line in metrics("stop")] == list(range(EPOCHS)), metrics("stop")
    print(f"as one process: {', '.join(commands)}; stopped at step {step}")


main()
