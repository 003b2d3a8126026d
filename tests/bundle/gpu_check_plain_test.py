#!/usr/bin/env python3
"""gpu_check_plain_test.py SCRIPTS: scripts/gpu-check on a machine without Python, on programs that only pretend."""
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
import pretended  # noqa: E402


class WithoutPythonTest(pretended.Test):
    # Without Python, and without the tools of the toolkit.
    def run_plain(self, bundle, *words, without=(), tools=""):
        folder = self.folder()
        for name in ("sh", "dirname", "tail", "grep", "sed", "tee", "tr", "cat", "head", "nproc", "timeout", "mkdir", "tar",
                     "gzip", "wc", "sleep", "ls", "date", "rm"):
            path = shutil.which(name)
            if path and name not in without:
                os.symlink(path, os.path.join(folder, name))
        status, output = bundle.run(*words, path=folder, tools=tools)
        return status, output

    def test_without_python(self):
        bundle = self.bundle()
        status, output = self.run_plain(bundle)
        self.assertEqual(status, 0, output)
        for text in ("no python3 here", "no nvcc here", "no compute-sanitizer here: no memcheck"):
            self.assertIn(text, output)
        self.assertRegex(output, r"passed +kernels +[0-9]+ tests in")
        self.assertRegex(output, r"skipped +memcheck +no compute-sanitizer")
        self.assertRegex(output, r"skipped +profile +no python3")
        self.assertRegex(output, r"passed +step-resnet50-fp32--graph")
        for stage, provider in (("kernels", "own"), ("op-table", "own"), ("runtime-cuda", "default")):
            with open(os.path.join(bundle.out, f"{stage}-gpu-programs-0.log")) as file:
                self.assertIn(f"provider {provider}", file.read())
        with open(os.path.join(bundle.folder, "fail"), "w"):
            status, output = self.run_plain(bundle, "right")
        self.assertEqual(status, 1 if int(subprocess.run(["nproc"], stdout=subprocess.PIPE).stdout) > 1 else 0, output)

    def test_without_python_calls_with_one_folder_keep_each_others_results(self):
        bundle = self.bundle()
        for call in ("right", "why"):
            self.assertEqual(self.run_plain(bundle, call)[0], 0)
        with open(os.path.join(bundle.out, "gpu-check.txt")) as file:
            result = file.read()
        for text in (r"(?s)call right\nno python3 here.*call why\nno python3 here", r"passed +kernels",
                     r"skipped +racecheck +no compute-sanitizer"):
            self.assertRegex(result, text)

    def test_without_python_a_call_has_an_end(self):
        bundle = self.bundle("hang")
        begin = time.monotonic()
        status, output = self.run_plain(bundle, "right", "--seconds", "3")
        self.assertEqual(status, 1, output)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertRegex(output, r"failed +kernels +.*stopped after [123] s")
        self.assertRegex(output, r"failed +runtime-cuda +no time left")

    def test_without_python_and_timeout(self):
        status, output = self.run_plain(self.bundle(), "why", without=("timeout",))
        self.assertEqual(status, 0, output)
        self.assertIn("no timeout here", output)

    def test_without_python_wrong_arguments_and_a_missing_build_are_errors(self):
        bundle = self.bundle()
        for words, status, text in ((["--device", "gpu"], 2, "expected cuda, cuda:N or emulated"),
                                    (["--seconds", "soon"], 2, "expected a positive whole number"),
                                    (["quick"], 2, "got 'quick'"), (["--out"], 2, "--out needs a value"),
                                    (["--build", "/no/build"], 1, "binade is not there"),
                                    (["--device", "cuda"], 77, "skipped: no device cuda: pretended"),
                                    (["--device", "cuda:3"], 77, "skipped: no device cuda:3")):
            self.assertEqual(self.run_plain(bundle, *words)[0], status, words)
            self.assertIn(text, self.run_plain(bundle, *words)[1])

    def test_without_python_the_sanitizer_runs_on_the_conformance_checks(self):
        tools = self.folder()
        path = os.path.join(tools, "compute-sanitizer")
        with open(path, "w") as file:
            file.write('#!/bin/sh\ncase $2 in racecheck) echo "1 hazard"; exit 9 ;; esac\necho "$*"\n')
        os.chmod(path, 0o755)
        status, output = self.run_plain(self.bundle(), "why", tools=tools)
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"passed +memcheck +--tool memcheck --error-exitcode 9 .*/gpu-programs cuda_conformance")
        self.assertRegex(output, r"failed +racecheck +exit 9: 1 hazard")
        self.assertNotIn("no compute-sanitizer here", output)

    def test_without_python_a_folder_may_have_spaces(self):
        bundle = self.bundle()
        moved = os.path.join(bundle.folder, "a folder")
        os.mkdir(moved)
        for name in ("gpu-check", "gpu_check", "gpu-programs"):
            shutil.move(os.path.join(bundle.folder, name), moved)
        self.addCleanup(setattr, bundle, "folder", bundle.folder)
        bundle.folder, bundle.out = moved, os.path.join(moved, "my results")
        status, output = self.run_plain(bundle, "right")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"passed +conformance")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
