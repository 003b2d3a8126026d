#!/usr/bin/env python3
"""Each rule of lint.py finds what it should, and only that; count_results.py reads what ctest writes."""
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import count_results  # noqa: E402
import lint  # noqa: E402
import op_headers  # noqa: E402


class LintTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def findings(self, rule, path, text):
        root = pathlib.Path(self.folder.name)
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        found = list(rule(root))
        file.unlink()
        return len(found)

    def test_layers(self):
        includes = lint.lint_includes
        self.assertEqual(self.findings(includes, "core/a.cpp", "#include <binade/kernels/base/b.h>\n"), 0)
        self.assertEqual(self.findings(includes, "kernels/copy/a.cpp", "#include <binade/core/b.h>\n"), 1)
        self.assertEqual(self.findings(includes, "optim/a.cpp", "#include <binade/nn/b.h>\n"), 1)
        self.assertEqual(self.findings(includes, "train/a.cpp", "#include <binade/nn/b.h>\n"), 0)
        self.assertEqual(self.findings(includes, "nn/a.cpp", "#include <binade/binade.h>\n"), 1)

    def test_families(self):
        includes = lint.lint_includes
        for path, name, count in (("copy/a.cu", "base/b.h", 0), ("copy/a.cu", "cuda/b.cuh", 0),
                                  ("copy/a.cu", "copy/b.h", 0), ("copy/a.cu", "pointwise/b.h", 0),
                                  ("pointwise/a.cu", "copy/b.h", 1), ("base/a.h", "gemm/b.h", 1),
                                  ("copy/a.cu", "b.h", 1), ("cuda/a.cuh", "host/b.h", 0)):
            text = f"#include <binade/kernels/{name}>\n"
            self.assertEqual(self.findings(includes, f"kernels/{path}", text), count, (path, name))
        for path in ("kernels/a.cpp", "kernels/new/a.cpp", "kernels/copy/more/a.cpp"):
            self.assertEqual(self.findings(includes, path, ""), 1, path)

    def test_rooms(self):
        root = pathlib.Path(self.folder.name)
        (root / "nn").mkdir()
        for number in range(60):
            (root / f"nn/a{number}.cpp").write_text("")
        self.assertEqual(self.findings(lint.lint_sources, "data/a.cpp", ""), 0)
        self.assertEqual(self.findings(lint.lint_sources, "nn/a.cpp", ""), 1)

    def test_types_of_one_name(self):
        root = pathlib.Path(self.folder.name)
        (root / "nn").mkdir()
        (root / "nn/a.h").write_text("#pragma once\nnamespace binade {\nstruct Tile {\n};\n}  // namespace binade\n")
        for namespaces, type_, count in ((["binade"], "class Tile {", 1), (["binade"], "enum class Tile : int {", 1),
                                         (["binade"], "struct Tile;", 0), (["binade", "nn"], "struct Tile {", 0),
                                         (["binade", ""], "struct Tile {", 0), (["binade"], "struct Tiles {", 0)):
            text = "".join(f"namespace {name} {{\n".replace("  ", " ") for name in namespaces) + type_ + "\n"
            self.assertEqual(self.findings(lint.lint_sources, "data/a.cpp", text), count, (namespaces, type_))

    def test_rooms_of_core_and_dist(self):
        for path, count in (("core/tensor/a.cpp", 0), ("core/ops/detail/a.cpp", 0), ("core/device/cuda/a.cpp", 0),
                            ("core/ops.h", 0), ("dist/job/a.cpp", 0), ("core/a.cpp", 1), ("core/misc/a.cpp", 1),
                            ("dist/a.cpp", 1), ("core/ops/more/a.cpp", 1), ("dist/job/more/a.cpp", 1)):
            text = "#pragma once\n" if path.endswith(".h") else ""
            self.assertEqual(self.findings(lint.lint_sources, path, text), count, path)

    def test_rooms_include_the_rooms_listed(self):
        for path, name, count in (("core/io/a.cpp", "core/tensor/b.h", 0), ("core/io/a.cpp", "core/io/b.h", 0),
                                  ("core/io/a.cpp", "core/autograd/b.h", 1), ("core/tensor/a.h", "core/ops/b.h", 1),
                                  ("core/io/a.cpp", "kernels/base/b.h", 0), ("dist/transport/a.cpp", "dist/job/b.h", 1),
                                  ("dist/job/a.cpp", "core/autograd/b.h", 0)):
            text = f"#include <binade/{name}>\n"
            self.assertEqual(self.findings(lint.lint_includes, path, text), count, (path, name))

    def test_no_source_escapes_by_its_suffix(self):
        for suffix, count in (("cc", 1), ("hpp", 1), ("inc", 1), ("cpp", 0), ("txt", 0)):
            self.assertEqual(self.findings(lint.lint_sources, f"nn/a.{suffix}", ""), count, suffix)

    def test_no_include_escapes(self):
        includes = lint.lint_includes
        for text in ("#include <binade/core/../nn/b.h>\n", "#include_next <binade/nn/b.h>\n",
                     "#include HEADER\n"):
            self.assertEqual(self.findings(includes, "core/tensor/a.cpp", text), 1, text)
        self.assertEqual(self.findings(includes, "binade.h", "#include <binade/nn/b_internal.h>\n"), 1)
        self.assertEqual(self.findings(includes, "binade.h", "#include <binade/nn/b.h>\n"), 0)

    def test_form_of_includes(self):
        includes = lint.lint_includes
        self.assertEqual(self.findings(includes, "core/a.cpp", '#include "b.h"\n'), 1)
        self.assertEqual(self.findings(includes, "core/a.cpp", "#  include <core/b.h>\n"), 1)
        self.assertEqual(self.findings(includes, "samples/a.cpp", "#include <core/b.h>\n"), 1)
        self.assertEqual(self.findings(includes, "samples/a.cpp", "#include <CLI/CLI.hpp>\n"), 0)

    def test_public_headers_are_plain(self):
        includes = lint.lint_includes
        for name in ("jpeglib.h", "nlohmann/json.hpp", "cuda_runtime.h", "omp.h"):
            text = f"#include <{name}>\n"
            self.assertEqual(self.findings(includes, "data/a.h", text), 1, name)
            self.assertEqual(self.findings(includes, "data/a_internal.h", text), 0, name)
            self.assertEqual(self.findings(includes, "data/a.cpp", text), 0, name)
        self.assertEqual(self.findings(includes, "data/a.h", "#include <vector>\n"), 0)
        text = "#include <binade/data/b_internal.h>\n"
        self.assertEqual(self.findings(includes, "data/a.h", text), 1)
        self.assertEqual(self.findings(includes, "data/a_internal.h", text), 0)
        self.assertEqual(self.findings(includes, "data/a.cpp", text), 0)

    def test_umbrella_stays_light(self):
        root = pathlib.Path(self.folder.name)
        (root / "binade.h").write_text("#include <binade/data/a.h>\n")
        (root / "data").mkdir()
        (root / "data/a.h").write_text("#include <binade/data/b.h>\n#include <vector>\n")
        self.assertEqual(self.findings(lint.lint_includes, "data/b.h", "#include <filesystem>\n"), 1)
        self.assertEqual(self.findings(lint.lint_includes, "data/b.h", "#include <string>\n"), 0)
        self.assertEqual(self.findings(lint.lint_includes, "data/unused.h", "#include <thread>\n"), 0)

    def test_wall_clock(self):
        for text, count in (("auto t = std::chrono::system_clock::now();\n", 1), ("auto t = std::time(nullptr);\n", 1),
                            ("clock_gettime(CLOCK_REALTIME, &t);\n", 1), ("// no system_clock here\n", 0),
                            ("auto t = std::chrono::steady_clock::now();\n", 0), ("x.time(0);\n", 0)):
            self.assertEqual(self.findings(lint.lint_sources, "data/a.cpp", text), count, text)
            self.assertEqual(self.findings(lint.lint_sources, "tests/a.cpp", text), 0, text)

    def test_sources(self):
        sources = lint.lint_sources
        self.assertEqual(self.findings(sources, "nn/a.cpp", "int a;\n" * 400), 0)
        self.assertEqual(self.findings(sources, "nn/a.cpp", "int a;\n" * 401), 1)
        self.assertEqual(self.findings(sources, "nn/a.h", "int a;\n"), 1)
        self.assertEqual(self.findings(sources, "nn/a.h", "#pragma once\n"), 0)
        self.assertEqual(self.findings(sources, "nn/a.cpp", "// TO" "DO: more\n"), 1)
        self.assertEqual(self.findings(sources, "kernels/copy/a.cu", "f<<<1, 2>>>(x);\n"), 1)
        self.assertEqual(self.findings(sources, "kernels/copy/a.cu", "// f<<<1, 2>>>(x) is not used\n"), 0)

    def test_names_of_grouped_tests(self):
        own = "namespace binade::nn::a_test {\nnamespace {\nTEST(A, B) {}\n}\n}\n"
        self.assertEqual(self.findings(lint.lint_sources, "tests/nn/a_test.cpp", own), 0)
        for text in (own.replace("::a_test", ""), own.replace("a_test", "b_test"), "TEST(A, C) {}\n" + own):
            self.assertEqual(self.findings(lint.lint_sources, "tests/nn/a_test.cpp", text), 1, text)
            self.assertEqual(self.findings(lint.lint_sources, "tests/system/a_test.cpp", text), 0, text)
        with tempfile.TemporaryDirectory() as root:
            for name in ("a_test", "b_test"):
                path = pathlib.Path(root) / "tests/nn" / f"{name}.cpp"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(own.replace("a_test", name))
            self.assertEqual(len(list(lint.lint_sources(pathlib.Path(root)))), 1)

    def test_lengths_of_functions(self):
        sources = lint.lint_sources
        for head in ("void f() {", "int C::f(int a) const noexcept {", "template <class T, int k = 3>\nauto f(T a) -> T {",
                     "C::C(int a)\n    : a_{a}, b_(a) {", "bool operator<(const C& a) {", "void operator()(int a) {",
                     "struct C {\n  C f() {", "namespace a {\nnamespace {\n[[nodiscard]] C f(int a) {",
                     "__global__ void __launch_bounds__(256)\n    f(int n) {", "int table[] = {1, 2};\nvoid f() {",
                     'extern "C" {\nvoid f(void) {', "#define F(a) { a\nvoid f(char a = '{') {"):
            end = "}\n" * (2 if head.startswith(("struct", "extern")) else 3 if head.startswith("name") else 1)
            for lines, count in ((60, 0), (61, 1)):
                text = f"{head}\n" + "  if (a) { b(); }\n" * (lines - 2) + end
                self.assertEqual(self.findings(sources, "nn/a.cpp", text), count, (head, lines))
                self.assertEqual(self.findings(sources, "tests/a.cpp", text), 0, head)
        table = "const int table[] = {\n" + "    f(1),\n" * 100 + "};\n"
        many = "namespace a {\nclass C {\n public:\n" + "  int f() { return 1; }\n" * 100 + "};\n}\n"
        macro = "#define F(a) \\\n" + "  f(a); \\\n" * 100 + "  g()\n"
        comment = "// void f() {\n" + "int a;\n" * 100
        for text in (table, many, macro, comment):
            self.assertEqual(self.findings(sources, "nn/a.cpp", text), 0, text[:20])

    def test_parameters_of_functions(self):
        sources = lint.lint_sources
        six = "int a, std::map<int, int> b, int (*c)(int, int), int d = g(1, 2), int e = {}, int"
        for form in ("void f({});", "void f({}) {{}}", "class C {{\n  explicit C({}) : a_(a) {{}}\n}};",
                     "template <class T, class U>\n__device__ __forceinline__ T f({}) {{ return a; }}",
                     "namespace a {{\ninline bool operator()({}) const;\n}}", "alignas(16) C f({});",
                     "struct C {{\n public:\n  virtual int f({}) const = 0;\n}};"):
            self.assertEqual(self.findings(sources, "nn/a.cpp", form.format(six) + "\n"), 0, form)
            self.assertEqual(self.findings(sources, "nn/a.cpp", form.format(six + ", int g") + "\n"), 1, form)
        seven = six + ", int g"
        self.assertEqual(self.findings(sources, "kernels/copy/a.cu", f"__global__ void f({seven}) {{}}\n"), 0)
        self.assertEqual(self.findings(sources, "kernels/copy/a.cu", f"__device__ void f({seven}) {{}}\n"), 1)
        self.assertEqual(self.findings(sources, "kernels/host/primitives.h",
                                       f"#pragma once\nvoid f({seven}) {{}}\n"), 0)
        self.assertEqual(self.findings(sources, "tests/a.cpp", f"void f({seven}) {{}}\n"), 0)
        for text in ("BINADE_LIST(a, b, c, d, e, f, g)\n", "int a = f(a, b, c, d, e, f, g);\n",
                     "void f() { g(a, b, c, d, e, f, g); }\n", f"// void f({seven});\n",
                     f"#define F void f({seven});\n", "enum class E { a, b, c, d, e, f, g };\n"):
            self.assertEqual(self.findings(sources, "nn/a.cpp", text), 0, text)

    def test_cuda_sources(self):
        sources = lint.lint_sources
        self.assertEqual(self.findings(sources, "kernels/copy/a.cu", "int a;\n" * 401), 1)
        self.assertEqual(self.findings(sources, "kernels/cuda/a.cuh", "#pragma once\n" * 401), 1)
        self.assertEqual(self.findings(sources, "kernels/cuda/a.cuh", "int a;\n"), 1)
        for name in ("cudaLaunchKernelExC(c, k, a)", "cudaLaunchKernel(k, g, b, a, 0, s)",
                     "cuLaunchKernel(f)"):
            text = f"status = {name};\n"
            self.assertEqual(self.findings(sources, "kernels/copy/a.cu", text), 1, name)
            self.assertEqual(self.findings(sources, "core/tensor/a.cpp", text), 1, name)
            self.assertEqual(self.findings(sources, "kernels/cuda/launch.cu", text), 0, name)
            self.assertEqual(self.findings(sources, "kernels/copy/a.cu", f'call("{name}");\n'), 0, name)
        for text in ('asm volatile("nanosleep.u32 1;");\n', '  __asm__("");\n'):
            self.assertEqual(self.findings(sources, "kernels/copy/a.cu", text), 1, text)
            self.assertEqual(self.findings(sources, "kernels/cuda/vector.cpp", text), 1, text)
            self.assertEqual(self.findings(sources, "kernels/cuda/primitives.cuh",
                                           f"#pragma once\n{text}"), 0, text)
            self.assertEqual(self.findings(sources, "kernels/host/fiber.cpp", text), 0, text)
        text = "extern __shared__ float s[];\n"
        self.assertEqual(self.findings(sources, "kernels/copy/a.cu", text), 1)
        self.assertEqual(self.findings(sources, "kernels/host/a.cpp", text), 1)
        self.assertEqual(self.findings(sources, "kernels/copy/a.cu", f"// no {text}"), 0)
        self.assertEqual(self.findings(sources, "kernels/cuda/primitives.cuh",
                                       f"#pragma once\n{text}"), 0)

    def test_host_execution_is_private(self):
        includes = lint.lint_includes
        text = "#include <binade/kernels/host/executor.h>\n"
        for path, count in (("kernels/cuda/a.cpp", 0), ("kernels/cuda/a.cuh", 0), ("kernels/copy/a.cpp", 1), ("tests/host/a.cpp", 0),
                            ("core/tensor/a.cpp", 1), ("train/a.h", 1), ("samples/a.cpp", 1)):
            self.assertEqual(self.findings(includes, path, text), count, path)
        text = "#include <ucontext.h>\n"
        self.assertEqual(self.findings(includes, "kernels/host/a.h", text), 0)
        self.assertEqual(self.findings(includes, "kernels/copy/a.h", text), 1)

    def test_users_write_no_name_of_the_kernels(self):
        sources = lint.lint_sources
        for path, count in (("samples/a.cpp", 1), ("samples/study/a.h", 1), ("samples/raw_pointers.cpp", 0), ("nn/a.cpp", 0)):
            for text in ("int n = kernels::threads();  // kernels::isa()", "using namespace binade::kernels;"):
                self.assertEqual(self.findings(sources, path, f"#pragma once\n{text}\n"), count, (path, text))

    def test_process_ends(self):
        sources = lint.lint_sources
        for call in ("abort()", "std::abort()", "::exit(1)", "std::terminate ( )"):
            self.assertEqual(self.findings(sources, "core/tensor/a.cpp", f"void f() {{ {call}; }}\n"), 1, call)
        for text in ("loop.exit(1);", 'g("abort() called");', "// never abort()", "on_exit(g);"):
            self.assertEqual(self.findings(sources, "core/tensor/a.cpp", f"{text}\n"), 0, text)
        self.assertEqual(self.findings(sources, "samples/a.cpp", "int main() { exit(1); }\n"), 0)
        self.assertEqual(self.findings(sources, "dist/job/process_exit.cpp", "void f() { ::_exit(1); }\n"), 0)
        self.assertEqual(self.findings(sources, "dist/job/launch.cpp", "void f() { ::_exit(1); }\n"), 1)


    def test_selections(self):
        selections = lint.lint_selections
        root = pathlib.Path(self.folder.name)
        (root / "tests/core").mkdir(parents=True)
        (root / "tests/core/a_test.cpp").write_text("TEST(Suite, Name) {}\nTEST_P(Cases, Each) {}\n")
        for text, count in (("--gtest_filter=Suite.*", 0), ("--gtest_filter=-*Name*:Suite.Name", 0),
                            ("--gtest_filter=*/Cases.Each/*", 0), ("--gtest_filter=Gone.*", 1),
                            ("--gtest_filter=Suite.*:Gone.*", 1), ("core_a_test", 0), ("core_gone_test", 1),
                            ("dist_${stem}_test", 0), ("ctest -V -R '^a$'", 1),
                            ("ctest --no-tests=error -R '^a$'", 0)):
            self.assertEqual(self.findings(selections, "tests/CMakeLists.txt", text + "\n"), count, text)


IN_BINADE = "namespace binade {{\n{}\n}}  // namespace binade\n"
HEADER = """#pragma once
struct Options { int64_t stride[2] = {1, 1}; };
enum class Kind : uint8_t { a, b };
using Alias = kernels::Thing;
Tensor one(const Tensor& x);  // Tensor not_this(const Tensor& x);
Tensor two(const Tensor& x, const Dims& dims = {}, std::optional<double> high = {},
           Kind kind = Kind::a);
Tensor two(const Tensor& x, double value);
std::pair<Tensor, int> three(const std::vector<Tensor>& parts, const int64_t (&padding)[2]);
inline Tensor operator+(const Tensor& a, const Tensor& b) { return two(a, {b}); }
bool operator==(const Tensor& a, double b);
"""
INTERNAL = "namespace detail {\nDims kept(const Tensor& x);\nDims other(const Tensor& x);\n}"
SOURCE = """#include <binade/core/autograd/op.h>
#define UNARY(name, number)                \\
  Tensor name(const Tensor& x) {           \\
    return run(#name, number##f, x);       \\
  }
#define ALL(F) F(one, 1)
namespace {
constexpr Op kOp{"two", OpClass::pointwise};
Tensor hidden(const Tensor& x) { return x; }
struct Pad { Pad(int a) : a_{a} {} int a_; };
}  // namespace
ALL(UNARY)
#undef UNARY
static int also_hidden() { return 1; }
Dims detail::kept(const Tensor& x) { return {}; }
namespace detail { Dims other(const Tensor& x) { return {}; } }
Tensor two(const Tensor& x_, const Dims& dims, std::optional<double> high, Kind kind) {
  const auto f = [](int a) { return a; };
  if (f(1)) { return two(x_, 1.0); }
  return "}" + x_;
}
Tensor two(const Tensor& x, double) { return x; }
std::pair<Tensor, int> three(const std::vector<Tensor>& parts, const int64_t (&given)[2]) { return {}; }
bool operator==(const Tensor& a, double b) { return false; }
"""


class OpHeadersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "core/ops").mkdir(parents=True)
        (self.root / "core/ops/own_internal.h").write_text(IN_BINADE.format(INTERNAL))

    def faults(self, header=HEADER, source=SOURCE, **others):
        for name, text in (("a.h", header), ("a.cpp", source), *others.items()):
            if text is not None:
                (self.root / "core/ops" / name.replace("_DOT_", ".")).write_text(IN_BINADE.format(text))
        return [fault for _, _, fault in op_headers.faults(self.root)]

    def test_a_header_that_matches(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(len(op_headers.declared(self.root / "core/ops/a.h")), 5)

    def test_what_is_declared_elsewhere(self):
        for more in ("Tensor four(const Tensor& x);", "Tensor\nfour(const Tensor& x =\n{});",
                     "Tensor two(const Tensor& x, int64_t value);", "Tensor two(Tensor& x, double value);"):
            self.assertEqual(len(self.faults(header=HEADER + more)), 1, more)

    def test_what_no_header_declares(self):
        for more in ("Tensor four(const Tensor& x) { return x; }", "Tensor two(const Tensor& x) {\n return x;\n}",
                     "UNARY(four, 4)"):
            found = self.faults(source=SOURCE.replace("#undef UNARY\n", "") + more)
            self.assertEqual(len(found), 1, more)
        self.assertEqual(len(self.faults(header=HEADER.replace("bool operator==", "Tensor operator!="))), 2)

    def test_results_and_details(self):
        header = HEADER.replace("Tensor two(const Tensor& x, double value);", "Dims two(const Tensor& x, double value);")
        self.assertEqual(len(self.faults(header=header)), 2)  # neither is the other
        for more in ("namespace detail { Dims third(const Tensor& x) { return {}; } }",
                     "Dims detail::kept(const Tensor& x, int dim) { return {}; }"):
            self.assertEqual(len(self.faults(source=SOURCE + more)), 1, more)

    def test_missing_files(self):
        self.assertEqual(len(self.faults(source=None)), 1)
        (self.root / "core/ops/a.h").unlink()
        self.assertEqual(len(self.faults(header=None)), 5)  # one for each definition

    def test_internal_headers_declare_too(self):
        more = "Tensor shared(const Tensor& x) { return x; }"
        self.assertEqual(len(self.faults(source=SOURCE + more)), 1)
        self.assertEqual(self.faults(source=SOURCE + more, b_internal_DOT_h="Tensor shared(const Tensor& y);"), [])

    def test_macros_of_other_headers(self):
        (self.root / "kernels").mkdir()
        (self.root / "kernels/list.h").write_text("#define MORE(F) \\\n  F(five, 5) \\\n  F(six, 6)\n")
        source = "#include <binade/kernels/list.h>\n" + SOURCE.replace("ALL(UNARY)", "ALL(UNARY)\nMORE(UNARY)")
        self.assertEqual(len(self.faults(source=source)), 2)
        header = HEADER + "Tensor five(const Tensor& x);\nTensor six(const Tensor& x);"
        self.assertEqual(self.faults(header=header, source=source), [])

    def test_a_macro_that_is_defined_twice(self):
        source = SOURCE + """#define UNARY(name) Tensor name(const Tensor& x, double value) { return x; }
}
UNARY(binade::five)
namespace binade {
"""
        self.assertEqual(len(self.faults(source=source)), 1)
        self.assertEqual(self.faults(header=HEADER + "Tensor five(const Tensor& x, double value);", source=source), [])

    def test_the_umbrella_only_includes(self):
        for text, count in (("// Ops.\n#pragma once\n#include <binade/core/ops/a.h>\n", 0),
                            ("#include <binade/core/ops/a.h>\nTensor f(const Tensor& x);\n", 1),
                            ("#include <binade/core/ops/a.h>\n#define A\n", 1), ("", 1)):
            (self.root / "core/ops.h").write_text(text)
            self.assertEqual(len(self.faults()), count, text)


class CountTest(unittest.TestCase):
    def count(self, status, output="", skipped=""):
        case = ElementTree.Element("testcase", status=status)
        ElementTree.SubElement(case, "system-out").text = output
        if skipped:
            ElementTree.SubElement(case, "skipped", message=skipped)
        return count_results.of_case(case)

    def test_plain(self):
        self.assertEqual(self.count("run"), (1, 0, 0))
        self.assertEqual(self.count("fail"), (0, 1, 0))
        self.assertEqual(self.count("disabled"), (0, 0, 1))
        self.assertEqual(self.count("notrun", skipped="Unable to find executable: x"), (0, 1, 0))
        self.assertEqual(self.count("notrun", skipped="SKIP_RETURN_CODE=77"), (0, 0, 1))

    def test_gtest(self):
        ran = "[==========] 6 tests from 2 test suites ran. (5 ms total)\n"
        output = (f"[  PASSED  ] noise 9 tests.\n{ran}[  PASSED  ] 3 tests.\n"
                  "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.b\n"
                  "[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.c\n")
        self.assertEqual(self.count("fail", output), (3, 2, 1))
        self.assertEqual(self.count("run", f"{ran}[  PASSED  ] 6 tests.\n"), (6, 0, 0))
        self.assertEqual(self.count("fail", f"{ran}[  PASSED  ] 6 tests.\nleak\n"), (6, 1, 0))

    def test_a_filter_that_selects_nothing_has_failed(self):
        output = "[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n"
        self.assertEqual(self.count("run", output), (0, 1, 0))


if __name__ == "__main__":
    unittest.main()
