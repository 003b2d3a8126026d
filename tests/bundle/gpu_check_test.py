#!/usr/bin/env python3
"""gpu_check_test.py SCRIPTS: arguments, plan, shards, time limits, merging and tar of scripts/gpu-check, on programs
that only pretend."""
import json
import os
import re
import sys
import tarfile
import time
import types
import unittest

SCRIPTS = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(SCRIPTS, "gpu_check"))
sys.dont_write_bytecode = True

import pretended  # noqa: E402
import fast  # noqa: E402
import main as check  # noqa: E402
import report  # noqa: E402
import stage as stages  # noqa: E402
import why  # noqa: E402
import worker  # noqa: E402


class GpuCheckTest(pretended.Test):
    # Arguments and plan.
    def test_a_plan_fits_the_time_of_a_call(self):
        for call, of_call in check.PLAN.items():
            doctor = 0 if check.DOCTOR in of_call else check.DOCTOR[2]
            self.assertLessEqual(doctor + sum(seconds for _, _, seconds in of_call), check.CALL_SECONDS, call)
        self.assertLessEqual(check.CALL_SECONDS, 540)

    def test_calls_and_stages(self):
        def plan(*words):
            options = check.parse_options(list(words))
            return {call: [name for name, _, _ in of_call] for call, of_call in check.planned(options.calls, options.stage)}
        self.assertEqual(list(plan()), ["right", "fast", "why"])
        self.assertEqual(plan("why", "fast")["fast"], ["kernel-speed", "steps", "losses"])
        self.assertEqual(list(plan("why", "fast")), ["fast", "why"])
        self.assertEqual(plan("--stage", "nccl", "--stage", "steps"), {"right": ["nccl"], "fast": ["steps"]})

    def test_wrong_arguments_name_what_was_expected(self):
        bundle = self.bundle()
        for words, text in ((["quick"], "got 'quick', expected right, fast or why"),
                            (["--stage", "gemms"], "invalid choice: 'gemms'"),
                            (["right", "--stage", "steps"], "stage steps is of the call fast, not of right"),
                            (["--device", "gpu"], "expected cuda, cuda:N or emulated"),
                            (["--jobs", "0"], "expected positive numbers")):
            status, output = bundle.run(*words)
            self.assertEqual(status, 2, output)
            self.assertIn(text, output)

    def test_the_plan_is_printed_without_a_device(self):
        status, output = self.bundle().run("--plan", "right")
        self.assertEqual(status, 0, output)
        self.assertIn("right: at most 530", output)
        self.assertIn("kernels", output)
        self.assertIn("no ncu here", output)
        self.assertNotIn("losses", output)

    # Cases.
    def test_every_case_has_a_small_size(self):
        rows, small = fast.kernel_rows(False), fast.kernel_rows(True)
        self.assertGreater(len(rows), 70)
        for one, other in zip(rows, small):
            self.assertLessEqual(other["rows"], one["rows"])
            self.assertLessEqual(other["cols"], one["cols"])

    # The three calls.
    def test_right(self):
        bundle = self.bundle()
        status, output = bundle.run("right", "--jobs", "3")
        self.assertEqual(status, 0, output)
        result = {one["stage"]: one for one in bundle.result("right.json")["stages"]}
        self.assertEqual(result["kernels"]["figures"]["tests_passed"], 15)  # three shards
        self.assertEqual(result["runtime"]["figures"]["tests_passed"], 30)
        self.assertEqual(result["conformance"]["figures"]["skipped"], 1)
        self.assertIn("ncu", result["doctor"]["figures"]["missing"])
        self.assertEqual(result["parity"]["status"], "skipped")
        self.assertIn("call fast has not run", output)
        self.assertTrue(os.path.exists(bundle.out + ".tar.gz"))

    def test_a_failure_of_one_shard_is_named_and_other_stages_go_on(self):
        bundle = self.bundle("fail")
        status, output = bundle.run("right", "--jobs", "2")
        self.assertEqual(status, 1, output)
        result = {one["stage"]: one for one in bundle.result("right.json")["stages"]}
        self.assertEqual(result["kernels"]["figures"]["tests_failed"], ["Gemm.IsRight"])
        self.assertEqual(result["kernels"]["figures"]["tests_passed"], 9)
        self.assertEqual(result["conformance"]["status"], "passed")

    def test_a_crash_is_a_failure(self):
        bundle = self.bundle("crash")
        status, output = bundle.run("--stage", "kernels", "--jobs", "1")
        self.assertEqual(status, 1, output)
        self.assertIn("0 passed, 1 failed: Conv.IsRight crashed", output)

    def test_a_stage_that_is_run_again_keeps_the_others_of_the_commit(self):
        bundle = self.bundle("fail")
        bundle.run("right", "--jobs", "2")
        os.remove(os.path.join(bundle.folder, "fail"))
        status, output = bundle.run("--stage", "kernels", "--jobs", "2")
        self.assertEqual(status, 0, output)  # of what ran now: runtime failed before
        result = {one["stage"]: one["status"] for one in bundle.result("right.json")["stages"]}
        self.assertEqual((result["kernels"], result["runtime"], result["conformance"]), ("passed", "failed", "passed"))

    def test_a_program_that_hangs_is_stopped(self):
        bundle = self.bundle("hang")
        begin = time.monotonic()
        status, output = bundle.run("--stage", "kernels", "--stage", "op-table", "--jobs", "2", "--seconds", "4")
        self.assertEqual(status, 1, output)
        self.assertIn("stopped after", output)
        self.assertLess(time.monotonic() - begin, 30)

    def test_fast_measures_what_it_can_and_merges_with_right(self):
        bundle = self.bundle()
        bundle.run("--stage", "doctor")
        status, output = bundle.run("fast", "--all-cases", "--python", "/no/python")
        self.assertEqual(status, 1, output)  # the sort that does not run
        result = {one["stage"]: one for one in bundle.result("fast.json")["stages"]}
        self.assertIn("no sort today", result["kernel-speed"]["detail"])
        row = result["kernel-speed"]["figures"]["kernels"][0]
        self.assertEqual((row["kernel"], row["share_of_copy"], row["library/own"]), ("gemm_head", 0.5, None))
        self.assertIn("not compared with PyTorch", result["steps"]["detail"])
        whole = bundle.result("gpu-check.json")
        self.assertEqual(whole["missing_calls"], ["why"])
        half = {(row["model"], row["form"], row["precision"]): row for row in whole["half_precision"]}
        self.assertEqual(half["gpt2", "eager", "fp16"]["times_as_fast"], 2)
        self.assertEqual(half["gpt2", "eager", "fp16"]["loss"], 1.25)
        self.assertIn("16 bits against 32", output)

    def test_why_names_the_tools_that_are_absent(self):
        bundle = self.bundle()
        status, output = bundle.run("why")
        self.assertEqual(status, 0, output)
        for text in ("no compute-sanitizer here: memcheck was not done", "no ncu here", "mma 2 FLOP/clock"):
            self.assertIn(text, output)

    def test_sanitizers_and_profiles(self):
        bundle, tools = self.bundle(), self.folder()
        csv = "\\n".join(['"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"',
                          '"0","gemm_kernel","Duration","us","12.5"'])
        scripts = {"ncu": f"echo \"$*\" >>{tools}/asked; printf '{csv}\\n'",
                   "compute-sanitizer": 'case $* in *"racecheck"*resnet50*) n=2 ;; *) n=0 ;; esac\n'
                   'case $* in *racecheck*) echo "========= RACECHECK SUMMARY: $n hazards displayed" ;; '
                   '*synccheck*tests*) echo "cannot attach" ;; *) echo "========= ERROR SUMMARY: $n errors" ;; esac'}
        for name, script in scripts.items():
            path = os.path.join(tools, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n" + script + "\n")
            os.chmod(path, 0o755)
        status, output = bundle.run("why", tools=tools)
        self.assertEqual(status, 1, output)
        result = {one["stage"]: one for one in bundle.result("why.json")["stages"]}
        self.assertEqual((result["memcheck"]["status"], result["memcheck"]["figures"]), ("passed", {"programs": 4}))
        self.assertIn("2 errors", result["racecheck"]["detail"])
        self.assertIn("no summary", result["synccheck"]["detail"])
        rows = result["profile"]["figures"]["profile"]
        self.assertEqual((len(rows), rows[0]["launched"], rows[0]["Duration"]), (why.HOTTEST, "gemm_kernel", "12.5 us"))
        with open(os.path.join(tools, "asked")) as file:
            self.assertIn("--clock-control none", file.read())

    # Merging and the tar.
    def test_calls_of_two_commits_are_noted(self):
        calls = {name: {"call": name, "date": name, "commit": commit, "device": "card", "driver": "1",
                        "stages": [{"stage": "doctor", "status": "passed", "seconds": 1, "detail": "", "figures": {}}]}
                 for name, commit in (("right", "aaa"), ("fast", "bbb"))}
        whole = report.merged(calls)
        self.assertEqual(whole["notes"], ["the calls differ in their commit: aaa, bbb"])
        self.assertEqual(whole["counts"], {"passed": 2, "failed": 0, "skipped": 0})
        self.assertIn("aaa, bbb", report.table(whole))

    def test_a_broken_result_is_a_failure_of_its_call(self):
        out = self.folder()
        with open(os.path.join(out, "fast.json"), "w") as file:
            file.write('{"stages": [')
        whole = report.write_report(out)
        self.assertEqual(whole["counts"]["failed"], 1)
        self.assertIn("fast.json is no JSON", report.table(whole))

    def test_the_tar_is_small_and_keeps_both_ends_of_a_log(self):
        out = os.path.join(self.folder(), "results")
        os.makedirs(os.path.join(out, "runs", "cnn"))
        with open(os.path.join(out, "kernels.log"), "wb") as file:
            file.write(b"begin" + os.urandom(600_000) + b"end")
        for name in ("report.json", "model.safetensors"):
            with open(os.path.join(out, "runs", "cnn", name), "w") as file:
                file.write("{}")
        for limit in (report.TAR_BYTES, 50_000):
            path, size = report.write_tar(out, limit)
            self.assertLessEqual(size, limit)
            with tarfile.open(path) as tar:
                self.assertEqual(sorted(tar.getnames()), ["results/kernels.log", "results/runs/cnn/report.json"])
                log = tar.extractfile("results/kernels.log").read()
                self.assertTrue(log.startswith(b"begin") and log.endswith(b"end"))
                self.assertIn(b"bytes left out", log)

    # Parts.
    def test_the_line_of_a_device(self):
        lines = ("cuda           A, compute capability 9.0\ncuda:1         B, compute capability 8.0\n"
                 "cuda:11        C, compute capability 7.5\nauto device    cuda\n")
        for device, name in (("cuda", "A"), ("cuda:0", "A"), ("cuda:1", "B"), ("cuda:11", "C"), ("cuda:2", None),
                             ("emulated", None)):
            found = re.search(stages.device_line(device), lines, re.M)
            self.assertEqual(found and found.group(1)[0], name, device)

    def test_turns_and_ratios(self):
        calls = []

        def sample(name, value):
            calls.append(name)
            if value is None:
                raise stages.Failed("broken")
            return value
        samples, failed = worker.take_turns({name: (lambda n=name, v=value: sample(n, v)) for name, value in (
            ("own", 2.0), ("peer", 3.0), ("gone", None))}, 3, time.monotonic() + 60)
        self.assertEqual(calls, ["own", "peer", "gone", "own", "peer", "own", "peer"])
        self.assertEqual(failed, {"gone": "broken"})
        self.assertEqual(worker.median_ratio(samples["peer"], samples["own"]), 1.5)
        self.assertIsNone(worker.median_ratio(samples["gone"], samples["own"]))

    def test_a_worker_that_ends_or_says_nothing_fails(self):
        out = self.folder()
        options = types.SimpleNamespace(device="emulated", out=out, jobs=1)
        for script, text in (("echo no card >&2; exit 3", "ended: no card"), ("sleep 30", "no answer in"),
                             ("echo '{\"error\": \"no memory\"}'; sleep 30", "no memory")):
            stage = stages.Stage("part", options, None, time.monotonic() + 1.5)
            one = worker.Worker(stage, ["sh", "-c", script])
            try:
                with self.assertRaisesRegex(stages.Failed, text):
                    one.answer()
            finally:
                one.kill()
            stage.log.close()

    def test_a_profile_is_read(self):
        text = '==PROF== done\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n' + "".join(
            f'"{i}","gemm<{i}>","{name}","{unit}","{value}"\n' for i in (0, 1) for name, unit, value in (
                ("Duration", "us", "12.5"), ("DRAM Throughput", "%", "80"), ("Other", "", "1")))
        rows = why.parse_profile(text)
        self.assertEqual(rows[1], {"launched": "gemm<1>", "Duration": "12.5 us", "DRAM Throughput": "80 %"})
        self.assertEqual(why.parse_profile("==ERROR== no counters"), [])

    def test_the_hottest_kernels_are_those_that_were_measured(self):
        out = self.folder()
        self.assertEqual([row["kernel"] for row in why.hottest(out)][:2], ["gemm_head", "gemm_wide"])
        rows = [{"kernel": name, "rows": 1, "cols": 2, "dtype": "f16", "ms_per_step": ms}
                for name, ms in (("add", 1.0), ("gemm", 5.0), ("relu_forward", 0))]
        with open(os.path.join(out, "fast.json"), "w") as file:
            json.dump({"stages": [{"figures": {"kernels": rows}}]}, file)
        self.assertEqual([row["kernel"] for row in why.hottest(out)], ["gemm", "add"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
