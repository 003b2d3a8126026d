// Tests the translator: what it rewrites, what it keeps, and what it rejects with which line.
#include <binade/lab/source/subscript.h>
#include <binade/lab/source/translate.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace binade::lab::translate_test {
namespace {

const char* const kSolve =
    "extern \"C\" void solve(const float* x, float* y) { k<<<1, 2>>>(x, y); }\n";

std::string code_of(const std::string& source) { return translate("a.cu", source + kSolve).code; }

std::string error_of(const std::string& source) {
  try {
    translate("a.cu", source);
  } catch (const SourceError& error) {
    return error.what();
  }
  return "";
}

// The line of a marker; lines of the user's text must keep their numbers.
int line_of(const std::string& code, const std::string& marker) {
  const size_t at = code.find(marker);
  const size_t first = code.find('\n', code.find("#line 1 \"a.cu\"")) + 1;
  return at == std::string::npos
             ? -1
             : 1 + static_cast<int>(std::count(code.begin() + static_cast<ptrdiff_t>(first),
                                               code.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

TEST(Translate, SharedDeclarations) {
  const std::string code = code_of(
      "__global__ void k(const float* x, float* y) {\n"
      "  __shared__ float a[2][3], b, *c[4];\n"
      "  alignas(16) static __shared__ Pair<int, float> d[8];\n"
      "  extern __shared__ __align__(32) unsigned char e[];\n"
      "  marker();\n}\n");
  EXPECT_NE(code.find("auto& a = ::binade::lab::static_shared<float [2][3], (0)"),
            std::string::npos)
      << code;
  EXPECT_NE(code.find("auto& b = ::binade::lab::static_shared<float "), std::string::npos) << code;
  EXPECT_NE(code.find("auto& c = ::binade::lab::static_shared<float* [4]"), std::string::npos)
      << code;
  EXPECT_NE(code.find("Pair < int , float > [8], (16)"), std::string::npos) << code;
  EXPECT_NE(
      code.find(
          "unsigned char* const e = ::binade::lab::dynamic_shared<unsigned char, (32)>(\"e\")"),
      std::string::npos)
      << code;
  EXPECT_EQ(line_of(code, "marker()"), 5);
}

TEST(Translate, DynamicSharedMemoryOfTheFile) {
  const std::string code = code_of(
      "extern __shared__ float s[];\n"
      "__global__ void other() { int i = 0; }\n"
      "__global__ void k(const float* x, float* y) { s[0] = x[0]; }\n");
  const size_t declared = code.find("dynamic_shared");
  EXPECT_GT(declared, code.find("void k("));
  EXPECT_EQ(code.find("dynamic_shared", declared + 1), std::string::npos);
}

TEST(Translate, LaunchesOverLines) {
  const std::string code = code_of(
      "void start() {\n"
      "  ns::k<float, (3 > 2)>\n"
      "      <<<dim3(1, f<2>(3)),\n"
      "         64>>>(x,\n"
      "               y);\n"
      "  marker();\n}\n");
  EXPECT_NE(code.find("::binade::lab::Launch(\"ns::k<float, (3 > 2)>\""), std::string::npos)
      << code;
  EXPECT_EQ(line_of(code, "marker()"), 6);
}

TEST(Translate, LaunchesAfterDeviceFunctions) {
  code_of(
      "__device__ int n[] = {1};\n__global__ void k(int) {}\n"
      "__host__ __device__ void f() {}\nvoid g() { k<<<1, 2>>>(3); }\n");
}

TEST(Translate, CommentsAndTextsStay) {
  const std::string source =
      "// __shared__ float a; k<<<1, 1>>>();\n"
      "/* asm( */ const char* t = \"__shared__ <<< asm\"; const char* r = R\"x(<<<)\" asm)x\";\n"
      "int n = 1'000 + 0x1e+2;\n";
  const std::string code = code_of(source);
  EXPECT_NE(code.find(source), std::string::npos) << code;
}

TEST(Translate, Parameters) {
  const Translation t = translate(
      "a.cu",
      "extern \"C\" {\nvoid solve(const __half* __restrict__ x, std::size_t n, unsigned int* y,\n"
      "           float const* w, cudaStream_t s, const int m) {}\n}\n");
  ASSERT_EQ(t.parameters.size(), 6u);
  EXPECT_EQ(t.parameters[0].element, Element::f16);
  EXPECT_TRUE(t.parameters[0].is_const);
  EXPECT_EQ(t.parameters[1].element, Element::u64);
  EXPECT_EQ(t.parameters[1].passing, Passing::value);
  EXPECT_EQ(t.parameters[2].element, Element::u32);
  EXPECT_FALSE(t.parameters[2].is_const);
  EXPECT_TRUE(t.parameters[3].is_const);
  EXPECT_EQ(t.parameters[4].passing, Passing::stream);
  EXPECT_EQ(t.parameters[5].line, 3);
}

TEST(Translate, RefusesWithTheLine) {
  const auto refuses = [](const std::string& source, const std::string& begin,
                          const std::string& part) {
    const std::string error = error_of(source);
    EXPECT_EQ(error.substr(0, begin.size()), begin) << source;
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  refuses("\nvoid f() { asm(\"nop\"); }\n", "a.cu:2: ", "inline assembly");
  refuses("\n\n#define RUN(k) k<<<1, 1>>>()\n", "a.cu:3: ", "in a macro");
  refuses("void f() { k<<<1>>>(); }", "a.cu:1: ", "expected grid, block");
  refuses("void f() {\n k<<<1, 2; }", "a.cu:2: ", "no >>>(");
  refuses("__global__ void k() {\n if (true) {\n  j<<<1, 1>>>(); }\n}",
          "a.cu:3: ", "a launch by a kernel");
  refuses("__device__ int n;\n__device__ void f() {\n j<<<1, 1>>>();\n}",
          "a.cu:3: ", "a launch by a kernel");
  refuses("#include <thrust/sort.h>\n", "a.cu:1: ", "does not have this header");
  refuses("__global__ void k() {\n __shared__ int a = 3;\n}", "a.cu:2: ", "initial value");
  refuses("__global__ void k() {\n __shared__ struct { int i; } a;\n}",
          "a.cu:2: ", "type is defined");
  refuses("__shared__ float a[3];\n", "a.cu:1: ", "outside of a function");
  refuses("void f() {\n auto g = cg::this_grid();\n}", "a.cu:2: ", "larger than the block");
  refuses("void solve(float* y) {}", "a.cu:1: ", "extern \"C\"");
  refuses("extern \"C\" void solve(struct S y) {}", "a.cu:1: ", "has the type");
  refuses("extern \"C\" void solve(float* y) {}\nextern \"C\" void solve(float* y, int n) {}",
          "a.cu:2: ", "a second solve()");
  refuses("int i;\n", "a.cu:1: ", "no extern \"C\"");
}

// The base of the index that a check reports at `mark` in the line; "" for none.
std::string base_at(const std::string& line, const std::string& mark, int dimensions = 1) {
  const std::string source = "int a;\n" + line + "\n";
  const auto found = subscript_at(source, 2, static_cast<int>(line.find(mark)) + 1, dimensions);
  return found ? found->array + " " + found->base : "";
}

TEST(Subscript, OfAPlace) {
  const std::string two = "y[i] = tile[r + b[0]][c] + pair.low[k] * sums[c];";
  EXPECT_EQ(base_at(two, "] * sums"), "pair.low pair.low");  // g++ marks the closing bracket
  EXPECT_EQ(base_at(two, "][c]"), "tile tile");
  EXPECT_EQ(base_at(two, "] + pair"), "tile tile[r + b[0]]");
  EXPECT_EQ(base_at(two, "]][c]"), "b b");
  EXPECT_EQ(base_at(two, "tile", 2), "tile tile");  // clang++ marks the array
  EXPECT_EQ(base_at(two, "tile", 1), "tile tile[r + b[0]]");
  EXPECT_EQ(base_at(two, "sums"), "sums sums");
  EXPECT_EQ(base_at("this->kept[i]", "]"), "this->kept this->kept");
  EXPECT_EQ(base_at("(*p)[3] = f(x)[i];", "] = "), "");  // the base has no name
}

TEST(Subscript, WithoutAPlaceTheOnlyOne) {
  const auto only = subscript_at("f();\nkept[k] = 1;\n", 2, 0, 1);
  ASSERT_TRUE(only.has_value());
  EXPECT_EQ(only->array, "kept");
  EXPECT_FALSE(subscript_at("kept[k] = x[k];\n", 1, 0, 1).has_value());
  EXPECT_FALSE(subscript_at("", 3, 7, 1).has_value());
}

}  // namespace
}  // namespace binade::lab::translate_test
