"""Long-lived processes that answer commands, a line of JSON each, and what makes PyTorch fastest."""
import contextlib
import json
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184",
               "MALLOC_TOP_PAD_": "268435456"}


def environment(threads=None, preloads=()):
    """The environment in which PyTorch is fastest on the CPU: OpenBLAS chooses its own kernels and
    shares PyTorch's OpenMP pool, freed memory stays with the process (otherwise every large tensor costs page
    faults), and PyTorch 1.13 uses AVX-512, which is off by default. `preloads` are libraries. Inductor's
    compiled code is cached separately for each set of libraries, because it depends on them."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("OPENBLAS_", "ATEN_", "OMP_", "GOMP_", "LD_PRELOAD", "MKL_", "TORCHINDUCTOR_"))}
    env.update(KEEP_MEMORY)
    folder = "-".join(["inductor", *(pathlib.Path(library).name for library in preloads)])
    env["TORCHINDUCTOR_CACHE_DIR"] = str(ROOT / "build/peers" / folder)
    env["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no idle compiler processes during the measurement
    if preloads:
        env["LD_PRELOAD"] = ":".join(preloads)
    if os.path.isdir(OPENBLAS):
        env["LD_LIBRARY_PATH"] = OPENBLAS
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx512f" in file.read():
            env["ATEN_CPU_CAPABILITY"] = "avx512"
    if threads:
        env["OMP_NUM_THREADS"] = env["OPENBLAS_NUM_THREADS"] = str(threads)
    return env


class WorkerError(Exception):
    pass


class Worker:
    """A process that reads commands from stdin."""

    def __init__(self, name, command, env=None):
        self.name = name
        try:
            self.process = subprocess.Popen([str(word) for word in command], env=env, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise WorkerError(f"{name}: {error}") from error

    @property
    def pid(self):
        return self.process.pid

    def ask(self, *words):
        """Sends a command and returns the answer, a dictionary."""
        command = " ".join(str(word) for word in words)
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerError(f"{self.name}: ended with status {self.process.wait()} at '{command}'")
        try:
            answer = json.loads(line)
        except json.JSONDecodeError as error:
            raise WorkerError(f"{self.name}: answered '{line.strip()}' to '{command}'") from error
        if "error" in answer:
            raise WorkerError(f"{self.name}: {answer['error']}")
        return answer

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # the process ended without reading the last command
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def binade(program):
    return Worker("peer_work", [program])


def torch(python, threads=None, preloads=()):
    return Worker("torch_work.py", [python, "-B", "-W", "ignore", HERE / "torch_work.py"],
                  environment(threads, preloads))


def default_program():
    """The newest peer_work of the release builds."""
    found = [path for path in (ROOT / "build").glob("*/bin/peer_work") if "release" in path.parts[-3]]
    return max(found, key=os.path.getmtime, default=ROOT / "build/release/bin/peer_work")
