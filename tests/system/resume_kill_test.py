#!/usr/bin/env python3
"""A run killed with SIGKILL several times in mid-epoch and resumed ends like one that was not. A kill costs at
most half the interval between checkpoints and 30 s (the test S6, goodput)."""
import random
import signal
import subprocess
import time

from classifier_runs import (PROGRAM, make_glyphs, metrics, newest_manifest, run,
                             temporary_directory, train)

KILLS, EVERY = 4, 5  # EVERY: steps between checkpoints
SETTINGS = ("--model", "cnn", "--precision", "fp16", "--augment", "crop-flip", "--epochs", 4,
            "--batch", 10, "--accumulate", 2, "--checkpoint-every", EVERY, "--seed", 3)


def kill_in_mid_epoch(arguments, directory, steps, delay):
    """Starts a run and kills it after more than `steps` new steps, `delay` seconds after it was
    seen with a checkpoint within an epoch. False if it ended before."""
    before = newest_manifest(directory)
    first_step = before["step"] if before else 0
    with open("killed.log", "wb") as log:
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while process.poll() is None:
            assert time.monotonic() < deadline, "no checkpoint within two minutes"
            manifest = newest_manifest(directory)
            if (manifest and manifest["step"] > first_step + steps
                    and int(manifest["fields"]["batch"]) > 0):
                time.sleep(delay)
                break
            time.sleep(0.005)
        process.kill()
        return process.wait() == -signal.SIGKILL


def resume_and_kill(arguments, directory, moments):
    """Returns how many of the kills left a checkpoint within an epoch as the newest one. Every other run
    saves asynchronously."""
    in_mid_epoch = 0
    for i in range(KILLS):
        flags = (*arguments, "--async-save") if i % 2 else arguments
        assert kill_in_mid_epoch(flags, directory, moments.randint(0, 20),
                                 moments.uniform(0, 0.1)), "the run ended before it was killed"
        in_mid_epoch += int(newest_manifest(directory)["fields"]["batch"]) > 0
    return in_mid_epoch


def check_finished_run(arguments, directory, accuracy):
    before = metrics(directory, without=())
    output = train(*arguments)
    assert accuracy in output, f"a finished run, resumed, printed {output}"
    after = metrics(directory, without=())
    assert before == after, f"resuming a finished run changed its metrics: {before} -> {after}"


def check_other_settings(arguments, directory):
    result = run(*arguments, "--lr", 0.002)
    assert result.returncode == 1 and "lr = 0.002" in result.stderr, result.stderr
    assert metrics(directory), "the metrics are gone"


def main():
    moments = random.Random(20)
    with temporary_directory():
        data = make_glyphs("glyphs")
        settings = ("--data", data, *SETTINGS)
        begun = time.monotonic()
        whole = train(*settings, "--run", "whole", "--resume")
        assert "nothing to resume: starting fresh" in whole, whole
        accuracy = [line for line in whole.splitlines() if line.startswith("test accuracy")][0]

        whole_seconds, begun, kills = time.monotonic() - begun, time.monotonic(), KILLS
        arguments = (*settings, "--run", "killed", "--resume")
        in_mid_epoch = resume_and_kill(arguments, "killed", moments)
        assert in_mid_epoch >= 1, "every kill fell on the end of an epoch"
        while int(newest_manifest("killed")["fields"]["batch"]) == 0:
            assert kill_in_mid_epoch(arguments, "killed", 0, 0), "the run ended"
            kills += 1
        fields = newest_manifest("killed")["fields"]
        output = train(*arguments)
        lost = (time.monotonic() - begun - whole_seconds) / kills
        interval = whole_seconds * EVERY / metrics("whole")[-1]["step"]
        assert lost <= interval / 2 + 30, f"a kill cost {lost:.1f} s"
        place = f"resumed in epoch {int(fields['epoch']) + 1} after step {fields['steps']}"
        assert place in output, f"expected '{place}' in {output}"
        epochs = output.count("\nepoch ")
        assert epochs == 4 - int(fields["epoch"]), f"{epochs} epochs after {place}"

        expected, got = metrics("whole"), metrics("killed")
        assert len(expected) == 4 and got == expected, f"resumed: {got}\nin one go: {expected}"
        assert accuracy in output, f"expected {accuracy} in {output}"
        check_finished_run(arguments, "killed", accuracy)
        check_other_settings(arguments, "killed")
    print(f"{in_mid_epoch} of {KILLS} kills in mid-epoch, {lost:.2f} s lost per kill, the last run {place}:",
          expected[-1]["state_hash"])


main()
