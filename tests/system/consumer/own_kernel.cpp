// A kernel of the user's own, checked by the installed lab, and a wrong one.
#include <binade/lab/driver/check.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "expect.h"

namespace {

std::string source(const std::string& condition) {
  return "__global__ void scaled(const float* x, const float* b, float* y, int n, float alpha) {\n"
         "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
         "  if (" +
         condition +
         ") y[i] = alpha * x[i] + b[i];\n"
         "}\n"
         "extern \"C\" void solve(const float* x, const float* b, float* y, int n, float alpha) {\n"
         "  scaled<<<(n + 255) / 256, 256>>>(x, b, y, n, alpha);\n"
         "}\n";
}

}  // namespace

int main(int, char** argv) {
  const std::string file = std::string(argv[1]) + "/scaled.cu";
  std::ofstream(file) << source("i < n");
  binade::lab::Report report = binade::lab::check_kernel({.file = file, .name = "elementwise"});
  EXPECT(report.right());
  std::ofstream(file) << source("i <= n");
  report = binade::lab::check_kernel({.file = file, .name = "elementwise"});
  EXPECT(!report.right() && report.issues[0].found.kind == "out of bounds");
  EXPECT(report.issues[0].found.first.line == 3);
  std::puts(to_text(report).c_str());
}
