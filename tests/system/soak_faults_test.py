#!/usr/bin/env python3
"""A long run with a fault every few seconds ends with the weights of a run without faults (the test S2).

soak_faults_test.py PROGRAM [MINUTES [SECONDS]]: a run of about MINUTES (2) without faults, then the same with a
  fault every SECONDS (4) on average, in turn: killed, stopped for a while, no room for files, no memory, a picture
  cut short on disk. A run that ended is resumed. Its loss scale grows every ten steps, so that gradients overflow
  all along. The data are ../shared/data/cifar10/images, or drawn ones without it. Before a release: 480 300."""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

from classifier_runs import PROGRAM, SOURCE, make_glyphs, metrics, newest_manifest, temporary_directory, train

SETTINGS = ("--model", "cnn", "--image-size", 32, "--precision", "fp16", "--augment", "crop-flip", "--batch", 20,
            "--checkpoint-every", 10, "--growth-interval", 10, "--seed", 3, "--workers", 2, "--async-save")


def copy_data(directory):
    """Its own copy of up to 100 pictures of each class, because faults change them. Returns the path."""
    source = pathlib.Path(os.environ.get("BINADE_SHARED", SOURCE.parent / "shared"), "data/cifar10/images")
    if not source.exists():
        return make_glyphs(directory)
    for part in ("train", "test"):
        for folder in sorted((source / part).iterdir()):
            target = pathlib.Path(directory, part, folder.name)
            target.mkdir(parents=True)
            for path in sorted(folder.iterdir())[:100]:
                shutil.copyfile(path, target / path.name)
    return pathlib.Path(directory)


class Run:
    """The run with faults: a process, or none after a fault that ended it."""

    def __init__(self, arguments, directory, pictures, moments):
        self.command = [PROGRAM, *map(str, arguments)]
        self.directory, self.pictures, self.moments = directory, pictures, moments
        self.process, self.log = None, open("faults.log", "ab")
        self.newest, self.starts, self.faults = 0, 0, {}
        self.start()

    def start(self):
        """Goes on from the newest checkpoint, which is never older than one that was seen before."""
        manifest = newest_manifest(self.directory)
        step = manifest["step"] if manifest else 0
        assert step >= self.newest, f"the newest checkpoint was of step {self.newest}, is of {step}"
        self.newest, self.starts = step, self.starts + 1
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def ended(self, seconds=0.0):
        """The exit status if the process ends within so many seconds, else None."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def killed(self):
        self.process.kill()
        self.process.wait()

    def stopped(self):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(self.moments.uniform(0.5, 2))
        self.process.send_signal(signal.SIGCONT)

    def limited(self, kind, bytes_left):
        """Under a limit until the process ends with an error, for at most 5 seconds."""
        try:
            before = resource.prlimit(self.process.pid, kind, (bytes_left, resource.RLIM_INFINITY))
            self.ended(5)
            if self.process.poll() is None:
                resource.prlimit(self.process.pid, kind, before)
        except ProcessLookupError:
            pass

    def without_room(self):
        self.limited(resource.RLIMIT_FSIZE, self.moments.choice((0, 100, 10_000, 200_000)))

    def without_memory(self):
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[0])
        self.limited(resource.RLIMIT_AS, pages * resource.getpagesize())

    def cut_picture(self):
        path = self.moments.choice(self.pictures)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 3])
        self.ended(5)
        path.write_bytes(whole)

    def fault(self, kind):
        """Plants a fault. False if the run had ended well before."""
        if self.process.poll() is not None:
            return self.process.returncode != 0
        kind(self)
        self.faults[kind.__name__] = self.faults.get(kind.__name__, 0) + 1
        return True

    def until_the_end(self, seconds):
        """Faults every so many seconds, in turn, until the run has ended well."""
        kinds = (Run.killed, Run.stopped, Run.without_room, Run.without_memory, Run.cut_picture)
        turn = 0
        while True:
            status = self.ended(self.moments.uniform(0.5, 1.5) * seconds)
            if status is None and self.fault(kinds[turn % len(kinds)]):
                turn += 1
                status = self.process.poll()
            if status == 0:
                return
            if status is not None:
                assert status in (1, -signal.SIGKILL), f"status {status}, see {os.getcwd()}/faults.log"
                self.start()


def main():
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 2
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 4
    moments = random.Random(int(os.environ.get("BINADE_SOAK_SEED", "1")))
    with temporary_directory():
        data = copy_data("pictures")
        pictures = sorted(path for path in data.glob("train/*/*") if path.is_file())
        settings = ("--data", data, *SETTINGS)
        begun = time.monotonic()
        train(*settings, "--epochs", 1, "--run", "first")
        epochs = max(2, round(60 * minutes / (time.monotonic() - begun)))
        settings += ("--epochs", epochs, "--patience", epochs)
        train(*settings, "--run", "whole", timeout=None)
        run = Run((*settings, "--run", "faults", "--resume"), "faults", pictures, moments)
        try:
            run.until_the_end(seconds)
        finally:
            run.killed()
        expected, got = metrics("whole"), metrics("faults")
        assert got == expected, f"with faults: {got}\nwithout: {expected}"
        left = sorted(str(path) for path in pathlib.Path("faults").rglob("*.tmp"))
        assert not left, f"left behind: {left}"
        print(f"{epochs} epochs, {run.starts} starts, faults: {json.dumps(run.faults)}, state {got[-1]['state_hash']}")


main()
