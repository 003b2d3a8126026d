"""without_libraries_test.py CHAR_GPT BINADE: programs of an emulated build where cuBLASLt, cuDNN and NCCL are missing. They
need none of the three to start, train with Binade's own kernels, and say in one line for each what they lack."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
CHAR_GPT, BINADE = map(os.path.abspath, sys.argv[1:3])
FILES = {"cuBLASLt": ("BINADE_CUBLASLT_LIBRARY", "/no/such/libcublasLt.so.13"), "cuDNN": ("BINADE_CUDNN_LIBRARY", "/no/such/libcudnn.so.9"),
         "NCCL": ("BINADE_NCCL_LIBRARY", "/no/such/libnccl.so.2")}
WITHOUT = dict(os.environ, **dict(FILES.values()))
WORK = ("--steps", "4", "--layers", "1", "--width", "16", "--heads", "2", "--context", "16", "--device", "emulated")


def run(*words, **environment):
    return subprocess.run(words, env={**WITHOUT, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True)


class WithoutLibrariesTest(unittest.TestCase):
    def test_training_runs_on_own_kernels_and_says_so_once(self):
        with tempfile.TemporaryDirectory() as folder:
            losses = []
            for provider in "auto", "own":
                families = {f"BINADE_{family}": provider for family in ("GEMM", "CONV2D", "NORM", "ATTENTION")}
                # With a table the emulated device chooses among implementations as a GPU does.
                table = os.path.join(folder, "choices.tsv")
                with open(table, "w"):
                    pass
                done = run(CHAR_GPT, *WORK, "--run", os.path.join(folder, provider), BINADE_TUNING=table, **families)
                self.assertEqual(done.returncode, 0, done.stderr)
                losses.append(float(re.findall(r"loss[^0-9]*([0-9.]+)", done.stdout)[-1]))
                lines = done.stderr.splitlines() + done.stdout.splitlines()
                for library in "cuBLASLt", "cuDNN":
                    said = [line for line in lines if f"{library} was not loaded" in line]
                    self.assertEqual(len(said), 1 if provider == "auto" else 0, done.stderr)
                    for line in said:
                        self.assertRegex(line, rf"Binade's own kernels.*{FILES[library][0]}")
                if provider == "auto":
                    with open(table) as file:
                        choices = file.read()
                    self.assertNotIn("\tlibrary", choices)
                    for problem in "gemm", "attention", "layer_norm":
                        self.assertRegex(choices, rf"(?m) {problem} .*\town[^\t]*\t.*library \(cu(BLASLt|DNN) was not loaded\)")
            self.assertAlmostEqual(*losses, places=3)

    def test_the_library_by_name_is_an_error_with_the_path(self):
        with tempfile.TemporaryDirectory() as folder:
            for family, library in ("GEMM", "cuBLASLt"), ("ATTENTION", "cuDNN"):
                variable, path = FILES[library]
                done = run(CHAR_GPT, *WORK, "--run", os.path.join(folder, family), **{f"BINADE_{family}": "library"})
                self.assertEqual(done.returncode, 1, done.stderr)
                for part in f"{library} was not loaded", path, variable, "cannot open shared object file":
                    self.assertIn(part, done.stderr)

    def test_doctor_lists_what_is_missing_and_what_runs_instead(self):
        done = run(BINADE, "doctor")
        self.assertEqual(done.returncode, 0, done.stderr)
        for library, (variable, path) in FILES.items():
            self.assertRegex(done.stdout, rf"(?m)^{library} +out: .*{re.escape(path)}.*{variable}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
