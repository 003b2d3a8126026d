"""command_test.py BINADE FOLDER: binade kernel as a program: exit statuses, messages, JSON, page and watch."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BINADE, FOLDER = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
SCALED = """__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + b[i];
}
extern "C" void solve(const float* x, const float* b, float* y, int n, float alpha) {
  scaled<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);
}
"""


def kernel(*words, **options):
    return subprocess.run([BINADE, "kernel", *map(str, words)], capture_output=True, text=True, timeout=200, **options)


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self.folder.name) / "own.cu"

    def tearDown(self):
        self.folder.cleanup()

    def refused(self, source, line, text):
        self.file.write_text(source)
        run = kernel(self.file, "--case", "elementwise")
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assertIn(f"own.cu:{line}:", run.stderr)
        self.assertIn(text, run.stderr)

    def test_right_kernel_has_counts_and_a_page(self):
        self.file.write_text(SCALED)
        report, page = self.file.with_suffix(".json"), self.file.with_suffix(".html")
        run = kernel(self.file, "--case", "elementwise:100000", "--json", report, "--page", page, "--strict")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("RIGHT", run.stdout)
        counts = json.loads(report.read_text())["counts"]
        self.assertEqual((counts["shape"], counts["blocks"], counts["counted_blocks"]), ("100000", 391, 64))
        self.assertEqual(counts["compulsory_bytes"], 3 * 4 * 100000)
        # 64 blocks of 8 warps read x and b and write y: 4 sectors a request, except in the tail.
        rows = {(row["access"]): row for row in counts["lines"] if row["line"] == 3}
        self.assertEqual(rows["read"]["requests"] // 2, rows["write"]["requests"])
        self.assertEqual(rows["read"]["sectors"], rows["read"]["ideal_sectors"])
        text = page.read_text()
        self.assertIn("scaled", text)
        self.assertNotRegex(text, r"""(src|href)=["']?http""")

    def test_what_cannot_be_checked(self):
        self.refused("// nothing\n", 1, "no extern")
        self.refused(SCALED.replace("const int i", 'asm("nop");\n  const int i'), 2, "inline assembly")
        self.refused("#include <cub/cub.cuh>\n" + SCALED, 1, "does not have this header")
        self.refused(SCALED.replace("int n, float alpha) {\n  scaled", "int count, float alpha) {\n  int n = count; scaled"),
                     5, "is none of the case")
        self.refused(SCALED.replace("alpha * x[i]", "alphabet * x[i]"), 3, "alphabet")
        self.assertEqual(kernel(self.file, "--case", "nothing").returncode, 2)
        self.assertEqual(kernel(self.file, "--case", "elementwise:3x4").returncode, 2)
        self.assertEqual(kernel("/no/such/file.cu", "--case", "softmax").returncode, 2)
        self.assertEqual(kernel(self.file).returncode, 2)

    def test_wrong_uses_are_refused_before_any_work(self):
        self.file.write_text(SCALED)
        folder = pathlib.Path(self.folder.name)
        empty, binary = folder / "empty.cu", folder / "binary.cu"
        empty.write_text("")
        binary.write_bytes(b"\x7fELF\0\0" + bytes(range(256)))
        (folder / "taken").write_text("kept")
        (folder / "two.cu").write_text(SCALED + SCALED[SCALED.index("extern"):])
        cases = [
            ((self.file, "--json", folder / "no/such/r.json"), "there is no folder"),
            ((self.file, "--page", folder / "no/such/r.html"), "there is no folder"),
            ((self.file, "--json", folder / "taken/r.json"), "there is no folder"),
            ((self.file, "--json", folder), "names the folder"),
            ((self.file, "--page", self.file), "would overwrite"),
            ((self.file, "--json", folder / "r", "--page", f"{folder}/./r"), "name one file"),
            ((self.file, "--json", "/proc/none.json"), "cannot write"),
            ((folder,), "folder|directory|regular"),
            ((empty,), "no extern"),
            ((binary,), "zero byte"),
            ((folder / "two.cu",), r"two.cu:8: a second solve"),
            ((self.file, "--compiler", "/no/such/compiler"), "no C.. compiler"),
            ((self.file, "--compiler", "true"), "compile"),
            ((self.file, "--frobnicate"), "frobnicate"),
            ((self.file, self.file), "own.cu"),
        ]
        for words, text in cases:
            begin = time.time()
            run = kernel(*words[:1], "--case", "elementwise", *words[1:])
            self.assertEqual(run.returncode, 2, (words, run.stdout, run.stderr))
            self.assertRegex(run.stderr, text)
            self.assertEqual(run.stdout, "", words)
            self.assertLess(time.time() - begin, 20, words)
        for case, text in (("elementwise:", "expected a shape"), (":33", "got the case"), ("elementwise:0", "got the shape"),
                           ("elementwise:99999999999", "got the shape"), ("nothing.json", "nothing.json"),
                           (str(self.file), "got the case")):
            run = kernel(self.file, "--case", case)
            self.assertEqual(run.returncode, 2, (case, run.stdout, run.stderr))
            self.assertRegex(run.stderr, text)
        self.assertEqual((folder / "taken").read_text(), "kept")
        self.assertFalse((folder / "r").exists())

    def test_malformed_cases_name_the_file(self):
        self.file.write_text(SCALED)
        path = self.file.with_suffix(".json")
        (path.parent / "reference.cpp").write_text(
            'extern "C" void reference(const double* x, const double* b, double* y, long n, double alpha) {'
            "for (long i = 0; i < n; ++i) y[i] = alpha * x[i] + b[i]; }")
        array = {"name": "x", "role": "input", "extents": ["n"]}
        right = {"name": "own", "sizes": ["n"], "shapes": ["1", "33"], "inputs": ["normal"],
                 "arrays": [array, array | {"name": "b"}, {"name": "y", "role": "output", "extents": ["n"]}],
                 "scalars": [{"name": "alpha", "value": "1.5"}], "reference": "reference.cpp"}
        path.write_text(json.dumps(right))
        run = kernel(self.file, "--case", path, "--no-nvcc")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        wrong = [right | {key: value} for key, value in [
            ("name", 3), ("summary", []), ("sizes", []), ("sizes", "n"), ("sizes", ["1n"]), ("sizes", ["n", "n"]),
            ("shapes", []), ("shapes", ["0"]), ("shapes", ["1x1"]), ("shapes", ["x"]), ("inputs", []), ("inputs", ["odd"]),
            ("reference", ""), ("reference", 1), ("reference", "none.cpp"), ("reference", "own.json"), ("flops", "n*q"),
            ("flops", 2), ("units", "16"), ("units", -1), ("arrays", []), ("arrays", {}), ("scalars", [{"name": "alpha"}, {"name": "alpha"}]),
            ("scalars", [{"name": "alpha", "value": 1.5}]), ("scalars", [{"name": "alpha", "value": "much"}]), ("colour", "red")]]
        for key, value in [("name", ""), ("name", "x y"), ("role", "both"), ("domain", "complex"), ("extents", []),
                           ("extents", ["q"]), ("extents", ["n+"]), ("extents", ["0"]), ("range", "wide"), ("large", 3),
                           ("shade", "blue")]:
            wrong.append(right | {"arrays": [array | {key: value}, *right["arrays"][1:]]})
        texts = [json.dumps(case) for case in wrong] + ["", "[]", "{", '{"name": "own"}', "\0", json.dumps(right) + "}"]
        for text in texts:
            path.write_text(text)
            run = kernel(self.file, "--case", path)
            self.assertEqual(run.returncode, 2, (text, run.stdout, run.stderr))
            self.assertRegex(run.stderr, r"own\.json|reference|none\.cpp", text)

    def test_no_compiler_is_one_line(self):
        self.file.write_text(SCALED)
        variables = {name: value for name, value in os.environ.items() if name != "CXX"} | {"PATH": self.folder.name}
        run = kernel(self.file, "--case", "elementwise", env=variables)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"\Akernel: no C\+\+ compiler: [^\n]*\n\Z")

    def test_first_finding_and_device_code(self):
        file = FOLDER / "wrong" / "r02_reuse.cu"
        case = re.search(r"// case: (\S+)", file.read_text())[1]
        report = self.file.with_suffix(".json")
        tools = pathlib.Path(self.folder.name) / "bin"
        tools.mkdir()
        # Stands in for nvcc: it prints what ptxas says about one kernel.
        nvcc = tools / "nvcc"
        nvcc.write_text("#!/bin/sh\necho \"ptxas info    : Compiling entry function 'k' for 'sm_90'\"\n"
                        "echo 'ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem'\n")
        nvcc.chmod(0o755)
        path = {"PATH": f"{tools}:{os.environ['PATH']}"}
        run = kernel(file, "--case", case, "--json", report, env=os.environ | path)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"(?m)^first, after \d+\.\d s: (UNSAFE|WRONG)  ")
        kernels = json.loads(report.read_text())["device"]
        self.assertEqual([(k["kernel"], k["registers"], k["shared_bytes"]) for k in kernels], [("k", 40, 512)] * 4)
        self.assertEqual({k["gpu"] for k in kernels}, {"H100 SXM", "A100 SXM 80 GB", "RTX 4090", "T4"})
        nvcc.write_text("#!/bin/sh\necho 'own.cu(3): error: no'; exit 1\n")
        run = kernel(file, "--case", case, env=os.environ | path)
        self.assertRegex(run.stdout, r"device code nvcc -arch=sm_\d+ does not compile the file: own.cu\(3\): error: no")
        self.assertNotIn("device code", kernel(file, "--case", case, "--no-nvcc").stdout)

    def test_strict_and_performance(self):
        file = FOLDER / "wrong" / "p02_stride.cu"
        self.assertEqual(kernel(file, "--case", "transpose").returncode, 0)
        self.assertEqual(kernel(file, "--case", "transpose", "--strict").returncode, 1)

    def test_watch_checks_again(self):
        self.file.write_text(SCALED)
        scratch = pathlib.Path(self.folder.name) / "scratch"
        scratch.mkdir()
        program = subprocess.Popen([BINADE, "kernel", self.file, "--case", "elementwise", "--watch", "--no-counts"],
                                   stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(scratch)})
        try:
            def wait_for(pattern):
                for line in program.stdout:
                    if re.search(pattern, line):
                        return
                self.fail(f"no {pattern}")
            wait_for("exit 0 after")
            self.file.write_text(SCALED.replace("i < n", "i <= n"))
            os.utime(self.file, (time.time() + 2, time.time() + 2))
            wait_for("out of bounds")
            wait_for("exit 1 after")
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.wait(60), 1)
            self.assertEqual(os.listdir(scratch), [], "temporary files are left")
        finally:
            program.kill()
            program.communicate()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
