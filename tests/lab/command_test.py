"""command_test.py BINADE FOLDER: binade kernel as a program: exit statuses, messages, JSON, page and watch."""
import json
import os
import pathlib
import re
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
        # 64 blocks of 8 warps read x and b and write y: 3 requests a warp of 4 sectors each, but for the tail.
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

    def test_no_compiler_is_one_line(self):
        self.file.write_text(SCALED)
        variables = {name: value for name, value in os.environ.items() if name != "CXX"} | {"PATH": self.folder.name}
        run = kernel(self.file, "--case", "elementwise", env=variables)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"\Akernel: no C\+\+ compiler: [^\n]*\n\Z")

    def test_strict_and_performance(self):
        file = FOLDER / "wrong" / "p02_stride.cu"
        self.assertEqual(kernel(file, "--case", "transpose").returncode, 0)
        self.assertEqual(kernel(file, "--case", "transpose", "--strict").returncode, 1)

    def test_watch_checks_again(self):
        self.file.write_text(SCALED)
        program = subprocess.Popen([BINADE, "kernel", self.file, "--case", "elementwise", "--watch", "--no-counts"],
                                   stdout=subprocess.PIPE, text=True)
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
        finally:
            program.kill()
            program.communicate()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
