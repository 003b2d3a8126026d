#!/usr/bin/env python3
"""What bench/peers does besides timing: disturbed slices are rejected, slow forms drop out, workers that
fail say so, tables and README are written. With peer_work as argument also one whole run, against a
stand-in for PyTorch whose times are given. Nothing here depends on how long anything takes."""
import dataclasses
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

PEERS = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"
sys.path.insert(0, str(PEERS))
import loss_curves  # noqa: E402
import processes  # noqa: E402
import rows  # noqa: E402
import slices  # noqa: E402
import strongest  # noqa: E402
import table  # noqa: E402

PEER_WORK = sys.argv.pop() if len(sys.argv) > 1 and os.path.isfile(sys.argv[-1]) else None

# Speaks the protocol of torch_work.py. The form "slow" takes thrice as long, "packed" two thirds of the time.
STAND_IN = """#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    command, *words = line.split()
    answer = {"ok": True}
    if command == "version":
        answer = {"version": "0.0"}
    elif command == "forms":
        answer = {"forms": ["eager", "slow", "impossible"] + ["packed"] * (words[1] == "strongest")}
    elif command == "prepare" and words[1] == "impossible":
        answer = {"error": "prepare: cannot"}
    elif command == "slice":
        wall = {"eager": 0.003, "slow": 0.009, "packed": 0.002}[words[0]]
        answer = {"units": 3, "wall": wall, "cpu": wall}
    elif command == "peak":
        answer = {"peak_mb": 100.0}
    print(json.dumps(answer), flush=True)
"""


def row(**changes):
    return {"work": "mlp", "threads": 1, "binade_ms": 1.0, "peer": "torch 1.13", "remark": "so.", "installed_form": "eager",
            "installed_ms": 2.0, "installed_ratio": 2.0, "form": "packed", "state": "strongest", "peer_ms": 1.5,
            "ratio": 1.5, "binade_peak_mb": 30.0, "peer_peak_mb": 240.0, "accepted_load": False,
            "clock": "wall", **changes}


class FakeMachine:
    """A clock that advances when the test sleeps or works; others use `foreign` of a processor until `until`."""

    def __init__(self, foreign, until):
        self.now = self.used = self.ours = 0.0
        self.foreign, self.until = foreign, until

    def clock(self):
        return self.now

    def busy(self):
        return self.used

    def own(self):
        return self.ours

    def pass_time(self, seconds, ours):
        disturbed = max(0.0, min(self.now + seconds, self.until) - self.now)
        self.used += ours * seconds + self.foreign * disturbed
        self.ours += ours * seconds
        self.now += seconds

    def sleep(self, seconds):
        self.pass_time(seconds, ours=0)


class SlicesTest(unittest.TestCase):
    def take(self, machine, ours=1, **options):
        self.calls = 0

        def action():
            self.calls += 1
            machine.pass_time(1.0, ours)
            return self.calls
        return slices.take(machine, action, **options)

    def test_undisturbed_slice_is_kept(self):
        result, share = self.take(FakeMachine(foreign=0, until=0))
        self.assertEqual((result, self.calls), (1, 1))
        self.assertAlmostEqual(share, 0)

    def test_own_threads_are_not_others(self):
        self.assertEqual(self.take(FakeMachine(foreign=0, until=0), ours=2)[0], 1)

    def test_disturbed_slices_are_repeated_until_it_is_quiet(self):
        machine = FakeMachine(foreign=0.5, until=5)
        result, share = self.take(machine)
        self.assertEqual(result, 2)  # the first was thrown away; then nothing ran until it was quiet
        self.assertGreater(machine.now, 6)
        self.assertAlmostEqual(share, 0)

    def test_noise_of_ticks_is_accepted(self):
        self.assertEqual(self.take(FakeMachine(foreign=0.04, until=100))[0], 1)
        with self.assertRaises(slices.Busy):
            self.take(FakeMachine(foreign=0.06, until=100))

    def test_patience_ends(self):
        with self.assertRaisesRegex(slices.Busy, "50% of a processor"):
            self.take(FakeMachine(foreign=0.5, until=1000), patience=10)

    def test_load_can_be_accepted(self):
        result, share = self.take(FakeMachine(foreign=0.5, until=1000), accept=True)
        self.assertEqual(result, 1)
        self.assertAlmostEqual(share, 0.5)

    def test_busy_seconds(self):
        ticks = os.sysconf("SC_CLK_TCK")
        line = "cpu  100 20 300 99999 88888 4 5 6 0 0\n"  # idle and waiting do not count
        self.assertAlmostEqual(slices.busy_seconds(line) * ticks, 100 + 20 + 300 + 4 + 5 + 6)
        with self.assertRaises(ValueError):
            slices.busy_seconds("intr 1 2 3 4 5 6 7 8 9")

    def test_own_seconds_include_other_processes(self):
        spin = "import time\nwhile time.process_time() < 0.3: pass\nprint(1, flush=True)\ninput()"
        with subprocess.Popen([sys.executable, "-c", spin], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            self.assertGreaterEqual(slices.process_seconds(process.pid), 0.3)
            machine = slices.Machine([process.pid])
            self.assertGreaterEqual(machine.own(), 0.3)
            self.assertGreater(machine.busy(), 0)
            process.communicate("\n")


class ContestTest(unittest.TestCase):
    def test_medians_and_slow_forms(self):
        contest, names = slices.Contest(), ["a", "b", "c"]
        for values in ((1.0, 1.1, 1.4), (3.0, 1.0, 1.3)):
            self.assertEqual(contest.remaining(names), names)  # nobody is judged by one slice
            for name, value in zip(names, values):
                contest.add(name, value, 0)
        self.assertEqual(contest.remaining(names), ["a", "b"])
        contest.add("a", 1.2, 0)
        contest.add("b", 9.0, 0)
        self.assertEqual((contest.median("a"), contest.median("b")), (1.2, 1.1))
        self.assertEqual(contest.best(names), "b")


class WorkerTest(unittest.TestCase):
    def worker(self, program):
        return processes.Worker("stand-in", [sys.executable, "-c", program])

    def test_answers_errors_and_ends(self):
        with self.worker("input(); print('{\"x\": 2}', flush=True); input(); print('{\"error\": \"why\"}', flush=True); "
                         "input(); print('no json', flush=True)") as worker:
            self.assertEqual(worker.ask("one"), {"x": 2})
            with self.assertRaisesRegex(processes.WorkerError, "stand-in: why"):
                worker.ask("two")
            with self.assertRaisesRegex(processes.WorkerError, "answered 'no json'"):
                worker.ask("three")
        with self.worker("import sys; input(); sys.exit(3)") as worker:
            with self.assertRaisesRegex(processes.WorkerError, "status 3 at 'four 5'"):
                worker.ask("four", 5)
        with self.assertRaisesRegex(processes.WorkerError, "no-such-program"):
            processes.Worker("gone", ["/no-such-program"])

    def test_environment(self):
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
        self.addCleanup(os.environ.pop, "OPENBLAS_CORETYPE")
        env = processes.environment(2)
        self.assertNotIn("OPENBLAS_CORETYPE", env)
        self.assertNotIn("LD_PRELOAD", env)
        self.assertEqual(env["OMP_NUM_THREADS"], "2")
        self.assertIn("PATH", env)
        preloaded = processes.environment(2, ["/a/libx.so", "liby.so.3"])
        self.assertEqual(preloaded["LD_PRELOAD"], "/a/libx.so:liby.so.3")
        self.assertNotEqual(preloaded["TORCHINDUCTOR_CACHE_DIR"], env["TORCHINDUCTOR_CACHE_DIR"])


class StrongestTest(unittest.TestCase):
    def preloads(self, intel=False, mkl_vendor=PEERS / "run", sleef="libsleef.so.3", **version):
        return strongest.preloads({"mkl": True, "inductor": True, **version}, intel, pathlib.Path(mkl_vendor), sleef)

    def test_what_is_preloaded_and_said(self):
        libraries, said = self.preloads()
        self.assertEqual(libraries, [str(PEERS / "run"), "libsleef.so.3"])
        self.assertEqual(said, "MKL's vendor check answered, Sleef preloaded")

    def test_what_is_absent_is_named(self):
        for changes, count, text in (({"intel": True}, 1, "needs no answer to its vendor check on Intel's"),
                                     ({"mkl_vendor": "/none/libmkl.so"}, 1, "libmkl.so is missing"),
                                     ({"sleef": ""}, 1, "Sleef is absent"),
                                     ({"mkl": False, "inductor": False}, 0, "both states have the same libraries"),
                                     ({"intel": True, "sleef": ""}, 0, "both states have the same libraries")):
            libraries, said = self.preloads(**changes)
            self.assertEqual(len(libraries), count, changes)
            self.assertIn(text, said)


class RowsTest(unittest.TestCase):
    def test_specs(self):
        self.assertEqual(rows.spec("mlp_adam"), "train:mlp:64:adam")
        self.assertEqual(rows.spec("resnet18_b4"), "infer:resnet18:4:-")
        self.assertEqual((rows.spec("gelu"), rows.spec("infer:vit:7:-")), ("gelu", "infer:vit:7:-"))
        for row in rows.ROWS.values():
            if row.has_model:
                self.assertEqual(dataclasses.replace(rows.find(rows.spec_of(row)), title=row.title), row)
        for name in ("dance", "train:mlp:64", "train:mlp:x:sgd"):
            with self.assertRaisesRegex(ValueError, f"got work '{name}', expected STEP:MODEL:BATCH:RULE or some of mlp,"):
                rows.find(name)
        titles = [row.title for row in rows.ROWS.values()]
        self.assertEqual(len(set(titles)), len(titles))


class TableTest(unittest.TestCase):
    def test_durations(self):
        for milliseconds, text in ((1500, "1.5 s"), (520, "520 ms"), (33.84, "33.8 ms"), (0.8, "800 µs"),
                                   (6e-5, "60 ns"), (4e-7, "0.4 ns")):
            self.assertEqual(table.duration(milliseconds), text)

    def test_line_and_remarks(self):
        self.assertIn("| 1 | 1 ms | 2 ms (torch 1.13 eager) | 2.00 | 1.5 ms (torch 1.13 packed) | 1.50 | 30 / 240 MB |",
                      table.line(row()))
        none = row(installed_form=None, installed_ms=None, installed_ratio=None, ratio=0.9, binade_peak_mb=None)
        self.assertIn("| 1 ms | - | - | 1.5 ms (torch 1.13 packed) | **0.90** | - |", table.line(none))
        self.assertIn("(torch 1.13 packed, as installed)", table.line(row(state="installed")))
        self.assertEqual(table.remarks([row(), row(work="vit")]), ["so."])
        self.assertEqual(len(table.remarks([row(), row(accepted_load=True, clock="cpu")])), 3)

    def test_markdown(self):
        lines = table.markdown([
            row(), row(threads=2, ratio=3.0), row(work="vit", ratio=1.2), row(work="vit", threads=2, ratio=0.75),
            row(work="vit", peer="torch 2.15", form="compile", ratio=0.96, installed_ratio=2.5),
            row(work="gelu", ratio=5.0)]).splitlines()
        self.assertIn("Cells with several figures are of 1 / 2 threads", lines[0])
        self.assertIn("transformer", lines[4])  # losers first; the fastest PyTorch counts for each number of threads
        self.assertIn("| 2.00 / 2.00 | **0.96** / **0.75** | torch 2.15 compile / torch 1.13 packed |", lines[4])
        self.assertIn("| 1.50 / 3.00 |", lines[5])
        self.assertIn("Geometric mean of the 2 rows, 1 thread: 2.00 to PyTorch as installed, 1.20 to PyTorch at its "
                      "strongest; 2 threads: 2.00 to PyTorch as installed, 1.50 to", lines[7])
        self.assertIn("gelu", lines[-1])
        self.assertIn("Single ops:", lines)
        self.assertEqual(sum(line.startswith("| transformer") for line in lines), 1)

    def test_readme(self):
        text = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"
        self.assertEqual(table.replaced(text, "new"), f"before\n{table.BEGIN}\nnew\n{table.END}\nafter\n")
        for broken in ("nothing", text + text, f"{table.END}{table.BEGIN}"):
            with self.assertRaises(ValueError):
                table.replaced(broken, "new")

    def test_markers_of_this_readme(self):
        text = (PEERS.parents[1] / "README.md").read_text(encoding="utf-8")
        self.assertIn("| new |", table.replaced(text, "| new |"))

    def test_difference_of_curves(self):
        difference, step = loss_curves.largest_difference([2.0, 1.0, 0.5], [2.0, 1.1, 0.5])
        self.assertEqual(step, 1)
        self.assertAlmostEqual(difference, 0.1 / 1.1)
        with self.assertRaises(ValueError):
            loss_curves.largest_difference([1.0], [1.0, 2.0])


@unittest.skipUnless(PEER_WORK, "no peer_work")
class RunTest(unittest.TestCase):
    def run_peers(self, *arguments):
        return subprocess.run([sys.executable, PEERS / "run", "--program", PEER_WORK, *arguments],
                              capture_output=True, text=True, check=False, timeout=280)

    def test_a_whole_run(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder, "stand-in")
            python.write_text(STAND_IN, encoding="utf-8")
            python.chmod(python.stat().st_mode | stat.S_IXUSR)
            rows = pathlib.Path(folder, "rows.json")
            done = self.run_peers("--python", python, "--work", "add,mlp", "--threads", "1", "--quick",
                                  "--accept-load", "--json", rows)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("left out: torch_work.py: prepare: cannot", done.stderr)
            found = json.loads(rows.read_text(encoding="utf-8"))
        self.assertEqual([row["work"] for row in found], ["add", "mlp"])
        for each in found:
            self.assertAlmostEqual(each["installed_ms"], 1.0)
            self.assertAlmostEqual(each["peer_ms"], 2.0 / 3)
            self.assertEqual((each["peer"], each["installed_form"], each["form"], each["state"]),
                             ("torch 0.0", "eager", "packed", "strongest"))
            self.assertGreater(each["binade_ms"], 0)
            self.assertAlmostEqual(each["ratio"], each["peer_ms"] / each["binade_ms"])
            self.assertAlmostEqual(each["installed_ratio"], each["installed_ms"] / each["binade_ms"])
            self.assertGreater(each["binade_peak_mb"], 1)
            self.assertEqual(each["peer_peak_mb"], 100)
            self.assertEqual((each["threads"], each["accepted_load"]), (1, True))
            self.assertEqual(each["allocations_in_last_slice"], 0)

    def test_parts_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder, "stand-in")
            python.write_text(STAND_IN, encoding="utf-8")
            python.chmod(python.stat().st_mode | stat.S_IXUSR)
            path = pathlib.Path(folder, "rows.json")
            done = self.run_peers("--python", python, "--only", "mlp_b1", "--threads", "1", "--rounds", "1", "--seconds",
                                  "0.01", "--accept-load", "--skip", "installed,pack", "--no-memory", "--json", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("both states have the same libraries", done.stdout)
            each, = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((each["form"], each["installed_ratio"], each["peer_peak_mb"]), ("eager", None, None))
        self.assertEqual(set(each["forms_ms"]), {"strongest eager", "strongest slow"})

    def test_resume_keeps_what_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.json")
            path.write_text(json.dumps([row()]), encoding="utf-8")
            arguments = ("--only", "mlp", "--threads", "1", "--json", path, "--resume")
            done = self.run_peers("--python", "/no-such-python", *arguments)  # nothing is left to start it for
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(path.read_text(encoding="utf-8")), [row()])

    def test_wrong_use(self):
        for arguments, message in ((("--work", "dance"), "got work 'dance'"), (("--threads", "0"), "below 1"),
                                   (("--rounds", "0"), "expected positive numbers"),
                                   (("--resume",), "--resume without --json"),
                                   (("--skip", "installed,strongest"), "--skip of both states"),
                                   (("--threads", "x"), "expected numbers")):
            done = self.run_peers(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)
        done = self.run_peers("--python", "/no-such-python", "--work", "add")
        self.assertEqual(done.returncode, 1)
        self.assertIn("bench/peers/setup", done.stderr)

    def test_peer_work_names_what_it_expects(self):
        with processes.binade(PEER_WORK) as worker:
            for words, message in ((("dance",), "expected prepare, slice, peak, start or curve"),
                                   (("prepare", "dance", "eager", 1), "got work 'dance', expected STEP"),
                                   (("prepare", "train:dance:1:sgd", "eager", 1), "got model 'dance', expected one of"),
                                   (("prepare", "jump:mlp:1:-", "eager", 1), "got step 'jump', expected train"),
                                   (("prepare", "train:mlp:1:lucky", "eager", 1), "got rule 'lucky', expected sgd"),
                                   (("prepare", "train:mlp:x:sgd", "eager", 1), "expected STEP:MODEL:BATCH:RULE"),
                                   (("prepare", "infer:gan:1:-", "eager", 1), "expected a model of one part"),
                                   (("prepare", "generate:mlp:1:-", "eager", 1), "expected a model of text"),
                                   (("prepare", "gelu", "eager", 0), "got 0 threads"),
                                   (("prepare", "gelu", "out", 1), "expected eager"),
                                   (("slice", "eager", 1), "slice before prepare"),
                                   (("curve", "infer:mlp:1:-", "x", 1, 1, 1), "expected work that trains"),
                                   (("start", "add", "x"), "got work 'add', expected STEP:MODEL:BATCH:RULE")):
                with self.assertRaisesRegex(processes.WorkerError, message):
                    worker.ask(*words)


if __name__ == "__main__":
    unittest.main()
