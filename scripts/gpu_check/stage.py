"""The stages of a check: where the programs are, and what a stage runs within its time."""
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import subprocess
import threading
import time

NOT_ON_DEVICE = "*Isas*:*ThreadCount*"  # tests about the CPU
KERNEL_TESTS_OF_CPU = ("kernels_half_test", "kernels_parallel_test", "kernels_strided_test")
TOOL_FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/nvidia/nsight-compute/*")


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class Programs:
    """Finds the programs: one file in a bundle, one file each in a build tree."""

    def __init__(self, build):
        one = os.path.join(build, "gpu-programs")
        self.bundle = one if os.path.exists(one) else None
        self.bin = os.path.join(build, "bin")

    def command(self, name):
        if self.bundle:
            return [self.bundle, name]
        path = os.path.join(self.bin, name)
        if not os.path.exists(path):
            raise Skipped(f"{name} is not built in {self.bin}")
        return [path]

    def tests(self, group, names):
        """The commands for the tests of a folder; `names` are the programs in a build tree."""
        if self.bundle:
            return [[self.bundle, "tests", group, "--gtest_brief=1"]]
        found = [path for name in names for path in sorted(glob.glob(os.path.join(self.bin, name)))
                 if os.path.basename(path) not in KERNEL_TESTS_OF_CPU]
        if not found:
            raise Skipped(f"no test program of {group} in {self.bin}")
        return [[path, "--gtest_brief=1", f"--gtest_filter=-{NOT_ON_DEVICE}"] for path in found]


def find_tool(name):
    """The path of a program of the toolkit, or None. An empty GPU_CHECK_TOOLS hides all of them."""
    folders = os.environ.get("GPU_CHECK_TOOLS")
    if folders is not None:
        return shutil.which(name, path=folders) if folders else None
    homes = [os.path.join(os.environ[key], "bin") for key in ("CUDA_HOME", "CUDA_PATH") if key in os.environ]
    patterns = homes + list(TOOL_FOLDERS)
    more = [folder for pattern in patterns for folder in sorted(glob.glob(pattern), reverse=True)]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(more))


def device_line(device):
    """A pattern for the doctor's line about this device; the number 0 may be left out."""
    kind, _, number = device.partition(":")
    return rf"^{kind}{'(?::0)?' if number in ('', '0') else ':' + number}\s+(.*compute capability.*)$"


def base_environment(options):
    environment = dict(os.environ)
    environment["BINADE_TEST_DEVICE"] = options.device
    environment["BINADE_TEST_MEMORY"] = "device"
    return environment


def parse_tests(text):
    """Returns (number passed, names of failed tests) from the output of a GoogleTest program."""
    count = re.findall(r"\[  PASSED  \] (\d+) test", text)
    failed = sorted({name for name in re.findall(r"\[  FAILED  \] ([\w/.]+)", text) if "." in name})
    failed += [f"{name} crashed" for name in re.findall(r"^crashed in (\S+)", text, re.M)]
    return (int(count[-1]) if count else None), failed


def ended(process):
    """Ends a process and all that it started, and returns its output. On SIGABRT a test program says where it was."""
    for number, seconds in ((signal.SIGABRT, 2), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            return process.communicate(timeout=seconds)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            continue


class Stage:
    """The time, log and figures of a stage."""

    def __init__(self, name, options, programs, end):
        self.name, self.options, self.programs = name, options, programs
        self.emulated = options.device == "emulated"
        self.end = end  # in terms of time.monotonic()
        self.figures = {}
        self.detail = ""
        self.lock = threading.Lock()
        self.log = open(os.path.join(options.out, f"{name}.log"), "w", errors="replace")

    def left(self):
        return self.end - time.monotonic()

    def write(self, text):
        with self.lock:
            self.log.write(text)
            self.log.flush()

    def run(self, command, environment=None, check=True, seconds=None):
        """Returns the output of a command; raises Failed with its last line if it fails or runs out of time."""
        left = min(self.left(), seconds or self.left())
        if left <= 0:
            raise Failed(f"no time left for {' '.join(command[-4:])}")
        # A process group of its own: everything that the command starts ends with it.
        process = subprocess.Popen(command, env={**base_environment(self.options), **(environment or {})},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            text = process.communicate(timeout=left)[0].decode(errors="replace")
            late = False
        except subprocess.TimeoutExpired:
            text, late = ended(process), True
        self.write(f"$ {' '.join(command)}\n{text}[{'stopped' if late else f'exit {process.returncode}'}]\n")
        if late:
            where = re.search(r"^crashed in (\S+)", text, re.M)
            raise Failed(f"stopped after {left:.0f} s{' in ' + where.group(1) if where else ''}: {' '.join(command[-4:])}")
        if check and process.returncode != 0:
            last = [line for line in text.strip().splitlines() if line.strip()][-1:]
            raise Failed(f"exit {process.returncode}: {last[0] if last else 'no output'}"[:300])
        return text

    def run_all(self, works):
        """Runs (command, environment) pairs, --jobs at a time, and returns outputs; Failed if one fails."""
        def one(work):
            try:
                return self.run(work[0], work[1], check=False)
            except Failed as error:
                return error
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return list(pool.map(one, works))

    def run_tests(self, commands, environment=None, jobs=None):
        """Runs test programs, each in so many shards; --jobs unless given."""
        jobs = min(jobs or self.options.jobs, self.options.jobs)
        shards = [{"GTEST_TOTAL_SHARDS": str(jobs), "GTEST_SHARD_INDEX": str(i)} for i in range(jobs)]
        works = [(command, shard) for command in commands for shard in shards]
        passed, failures = self.figures.get("tests_passed", 0), []
        run = [(command, {**(environment or {}), **shard}) for command, shard in works]
        for (command, shard), text in zip(works, self.run_all(run)):
            what = f"{' '.join(os.path.basename(word) for word in command[:3])}, shard {shard['GTEST_SHARD_INDEX']}"
            if isinstance(text, Failed):
                failures.append(f"{what}: {text}")
                continue
            count, failed = parse_tests(text)
            passed += count or 0
            failures += failed
            if count is None and not failed:
                failures.append(f"{what} ended early")
        self.figures["tests_passed"] = passed
        self.detail = f"{passed} tests in {jobs} shards"
        if failures:
            self.figures["tests_failed"] = failures
            raise Failed(f"{passed} passed, {len(failures)} failed: {', '.join(failures[:5])}")
