#!/usr/bin/env python3
"""train_classifier on two processes, under binade launch and under mpirun: as accurate as one process
with their batches together; ended by a signal to one rank, and resumed by another number of ranks.

ranks_test.py PROGRAM BINADE [mnist]: on a small data set, or on MNIST.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from classifier_runs import (PROGRAM, make_idx, metrics, newest_manifest, shared, temporary_directory,
                             train)

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


def launchers():
    commands = {"launch": LAUNCH}
    if shutil.which("mpirun"):
        commands["mpirun"] = MPIRUN
    return commands


def compare_with_one_process(settings):
    train(*settings, "--epochs", 3, "--batch", 16, "--run", "one")
    expected = metrics("one")
    hashes = []
    commands = launchers()
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


def stop_one_rank(arguments, after=1):
    """SIGTERM to rank 1 (or to the only one), once there is a checkpoint of step `after` or later,
    ends all of run "stop" with a checkpoint. Returns its step."""
    with open("stop.log", "wb") as log, subprocess.Popen(arguments, stdout=log, stderr=log) as launcher:
        deadline = time.monotonic() + 200
        while (newest_manifest("stop") or {"step": 0})["step"] < after:
            assert time.monotonic() < deadline and launcher.poll() is None, open("stop.log").read()
            time.sleep(0.01)
        os.kill(rank_one(launcher.pid) or launcher.pid, signal.SIGTERM)
        status = launcher.wait(timeout=60)
    output = pathlib.Path("stop.log").read_text(encoding="utf-8")
    assert status == 128 + signal.SIGTERM, f"{status}: {output}"
    step = newest_manifest("stop")["step"]
    assert f"stopped by signal 15 after step {step}" in output, output
    return step


def on_ranks(count):
    return (PROGRAM,) if count == 1 else (BINADE, "launch", "-n", str(count), PROGRAM)


def mnist():
    """The accuracy of one process, at the same batch of all ranks; and from 2 to 4 to 1 to 2 ranks."""
    epochs, batch = 2, 64
    data = shared("data", "mnist")
    settings = ("--data", data, *SETTINGS, "--epochs", epochs)
    train(*settings, "--batch", batch, "--run", "one")
    alone = metrics("one")[-1]
    results = {}
    for name, command in launchers().items():
        run_all(command, *settings, "--batch", batch // 2, "--run", name)
        results[name] = metrics(name)[-1]
    steps = newest_manifest("one")["step"]
    settings += ("--run", "stop", "--checkpoint-every", 25)
    at = []
    for i, count in enumerate((2, 4, 1)):
        resume = ("--resume",) if i > 0 else ()
        arguments = (*on_ranks(count), *settings, *resume, "--batch", batch // count)
        at.append(stop_one_rank([str(a) for a in arguments], (at[-1] if at else 0) + 100))
    run_all(LAUNCH, *settings, "--resume", "--batch", batch // 2)
    # Every sample once per epoch: the same number of steps, and the same mean loss over all
    # samples.
    assert newest_manifest("stop")["step"] == steps, (newest_manifest("stop"), steps)
    assert at == sorted(set(at)) and at[-1] < steps, at
    results["resumed"] = metrics("stop")[-1]
    for name, result in results.items():
        print(f"{name}: test accuracy {100 * result['test_accuracy']:.2f}%, alone "
              f"{100 * alone['test_accuracy']:.2f}%; training loss {result['train_loss']:.4f}, alone "
              f"{alone['train_loss']:.4f}")
        assert abs(result["test_accuracy"] - alone["test_accuracy"]) <= 0.003, (name, result, alone)
        assert abs(result["train_loss"] - alone["train_loss"]) <= 0.005, (name, result, alone)
    assert alone["test_accuracy"] >= 0.97, alone
    print(f"stopped and resumed on 2, 4, 1 and 2 ranks after steps {at} of {steps}")


def main():
    with temporary_directory():
        data = make_idx("images", train_count=400)
        settings = ("--data", data, *SETTINGS)
        commands = compare_with_one_process(settings)
        settings += ("--epochs", EPOCHS, "--patience", 0, "--run", "stop")
        step = stop_one_rank([*LAUNCH, *map(str, settings), "--batch", "8", "--checkpoint-every", "2"])
        output = run_all(LAUNCH, *settings, "--resume", "--batch", 16, status=1)
        assert "batch = 32" in output and "trained with batch = 16" in output, output
        output = train(*settings, "--resume", "--batch", 16)
        assert f"after step {step}" in output, output
        assert [line["epoch"] for line in metrics("stop")] == list(range(EPOCHS)), metrics("stop")
    print(f"as one process: {', '.join(commands)}; stopped at step {step}")


if "mnist" in sys.argv[3:]:
    with temporary_directory():
        mnist()
else:
    main()
