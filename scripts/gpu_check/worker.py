"""Programs that time a sample for each line of their input, so that ours and PyTorch's take turns."""
import json
import os
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

from stage import Failed, base_environment

HERE = os.path.dirname(os.path.abspath(__file__))


class Worker:
    """A process that answers each line of input with one JSON object."""

    def __init__(self, stage, command, environment=None):
        self.stage, self.command = stage, command
        self.answers = queue.Queue()
        stage.write(f"$ {' '.join(command)}\n")
        self.process = subprocess.Popen(
            command, env={**base_environment(stage.options), **(environment or {})}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        self.last = ""  # last line that was no answer
        self.threads = [threading.Thread(target=self._read, args=(pipe, pipe is self.process.stdout), daemon=True)
                        for pipe in (self.process.stdout, self.process.stderr)]
        for thread in self.threads:
            thread.start()

    def _read(self, pipe, is_output):
        for line in pipe:
            if is_output and line.startswith("{"):
                self.answers.put(line)
            elif line.strip():
                self.last = line.strip()
                self.stage.write(line)
        if is_output:
            self.answers.put(None)

    def answer(self, seconds=None):
        """Returns the next object; raises Failed if none arrives in time, or if it is an error."""
        left = min(self.stage.left(), seconds or self.stage.left())
        try:
            line = self.answers.get(timeout=max(left, 0.01))
        except queue.Empty:
            raise Failed(f"no answer in {left:.0f} s")
        if line is None:
            self.answers.put(None)
            self.threads[1].join(2)  # its stderr explains the failure
            raise Failed(f"ended: {self.last or 'no output'}"[:300])
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"][:300])
        return answer

    def ask(self, line, seconds=None):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # the end of its output explains the failure
        return self.answer(seconds)

    def finish(self, seconds=60):
        """Ends the input and returns the last object, or None."""
        last = None
        try:
            self.process.stdin.close()
            while True:
                last = self.answer(seconds)
        except (Failed, OSError):
            pass
        self.kill()
        return last

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for thread in self.threads:
            thread.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:  # the process has closed its input
                pass


def peer_command(options, *words):
    return [python_of_peer(options.python), "-B", os.path.join(HERE, "peer.py"), *words]


def peer_device(stage):
    return "cpu" if stage.emulated else stage.options.device


def python_of_peer(given):
    return given or sys.executable or shutil.which("python3")


def why_no_torch(given):
    """The reason why PyTorch cannot be used; empty if the peer's Python has it."""
    try:
        done = subprocess.run([python_of_peer(given), "-c", "import torch; print(torch.__version__)"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stdout.strip().splitlines() or ["no output"])[-1]


def take_turns(works, rounds, end):
    """Takes samples of `works`, {name: function that returns seconds}, in turn, and returns {name: list}. Failed work
    is left out of later rounds. There is at least one round, and more while there is time."""
    samples = {name: [] for name in works}
    failed = {}
    for number in range(rounds):
        if number and time.monotonic() > end:
            break
        for name, sample in works.items():
            if name in failed:
                continue
            try:
                samples[name].append(sample())
            except Failed as error:
                failed[name] = str(error)
                samples[name] = []
    return samples, failed


def median_ratio(peer, ours):
    """The median ratio of times in the same rounds: above 1, ours is faster."""
    if not peer or not ours:
        return None
    return round(statistics.median(p / o for p, o in zip(peer, ours)), 3)
