"""A bundle whose programs only pretend, for the tests of scripts/gpu-check, which get the folder scripts/ as their first
argument."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest


def scripts():
    return os.path.abspath(sys.argv[1])


# A bundle's programs: what they print follows from their arguments and from files beside them.
PROGRAMS = r"""#!/bin/sh
here=$(dirname "$0")
case $1 in
  binade) [ "$2" = doctor ] && echo "mode           pretended" && echo "emulated:0     a card, compute capability 9.0" ;;
  cuda_conformance)
    [ "$2" = --json ] && echo '{"passed": 3, "failed": 0, "skipped": 1, "checks": []}' >"$3"
    echo "3 passed, 0 failed, 1 skipped" ;;
  tests)
    echo "provider ${BINADE_GEMM:-default}"
    [ -e "$here/hang" ] && exec sleep 60
    if [ -e "$here/fail" ] && [ "$GTEST_SHARD_INDEX" = 1 ]; then
      echo "[  FAILED  ] Gemm.IsRight (3 ms)"; echo "[  PASSED  ] 4 tests."; exit 1
    fi
    [ -e "$here/crash" ] && { echo "crashed in Conv.IsRight"; kill -SEGV $$; }
    echo "[  PASSED  ] 5 tests." ;;
  parity_runner) echo "7 passed, 0 failed" ;;
  gpu_ceilings) echo '{"processors": 4, "hardware": false, "ceilings": [{"name": "mma", "unit": "FLOP", "per_clock": 2, "per_second": 3, "gigahertz": 1}]}' ;;
  kernel_bench)
    case " $* " in
      *" --serve "*)
        while read -r verb key kernel rest; do
          case $verb in
            prepare) case "$kernel $key" in
              sort*) echo '{"error": "no sort today"}' ;;
              *library) echo '{"error": "no library here"}' ;;
              *) echo "{\"key\": \"$key\", \"bytes\": 800, \"flops\": 10, \"calls\": 1}" ;;
              esac ;;
            sample) [ "$key" = copy ] && echo '{"seconds": 0.5}' || echo '{"seconds": 1}' ;;
            drop) echo '{"dropped": 2}' ;;
          esac
        done ;;
      *) echo '{"kernel": "x"}' ;;
    esac ;;
  step_bench)
    case " $* " in
      *" --train "*) echo '{"losses": [4.5, 1.5], "mean_loss": 1.25, "skipped_steps": 0}' ;;
      *" --serve "*)
        echo '{"ready": true}'
        milliseconds=40; case " $* " in *" fp16 "*) milliseconds=20 ;; esac
        while read -r verb; do echo "{\"milliseconds\": $milliseconds}"; done
        echo '{"peak_bytes": 3000000, "reserved_bytes": 4000000, "graph_replays": 2}' ;;
      *) echo '{"milliseconds": 1}' ;;
    esac ;;
  *) echo "no program $1" >&2; exit 2 ;;
esac
"""


class Bundle:
    """A folder with gpu-check and pretended programs."""

    def __init__(self, *facts):
        self.folder = tempfile.mkdtemp()
        shutil.copy(os.path.join(scripts(), "gpu-check"), self.folder)
        shutil.copytree(os.path.join(scripts(), "gpu_check"), os.path.join(self.folder, "gpu_check"),
                        ignore=shutil.ignore_patterns("__pycache__"))
        path = os.path.join(self.folder, "gpu-programs")
        with open(path, "w") as file:
            file.write(PROGRAMS)
        os.chmod(path, 0o755)
        for name in facts:
            open(os.path.join(self.folder, name), "w").close()
        self.out = os.path.join(self.folder, "results")

    def run(self, *words, path=None, tools=""):
        environment = dict(os.environ, GPU_CHECK_TOOLS=tools, **({"PATH": path} if path else {}))
        done = subprocess.run([os.path.join(self.folder, "gpu-check"), "--device", "emulated", "--out", self.out, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                              env=environment, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout

    def result(self, name):
        with open(os.path.join(self.out, name)) as file:
            return json.load(file)

    def close(self):
        shutil.rmtree(self.folder)


class Test(unittest.TestCase):
    def bundle(self, *facts):
        made = Bundle(*facts)
        self.addCleanup(made.close)
        return made

    def folder(self):
        made = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, made)
        return made
