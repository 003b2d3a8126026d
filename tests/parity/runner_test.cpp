// The parity runner can fail: it runs case files made here, one correct and the others with one
// planted fault each.
#include <binade/core/io/safetensors.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace binade {
namespace {

struct Finished {
  int status;
  std::string output;
};

Finished run_parity(const std::string& arguments) {
  const std::string command =
      std::string("\"") + BINADE_PARITY_RUNNER + "\" " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (pipe && fgets(buffer.data(), buffer.size(), pipe)) {
    output += buffer.data();
  }
  const int status = pipe ? pclose(pipe) : -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

std::string last_line(const std::string& output) {
  const size_t end = output.find_last_not_of('\n');
  const size_t begin = output.find_last_of('\n', end);
  return output.substr(begin + 1, end - begin);
}

// A fault planted into the file of two cases: sums of x and y, and an error case.
struct Fault {
  const char* name;
  const char* op = "add";
  float x1 = 2;            // x = [1, x1]; the results are those of [1, 2]
  double result = 5;       // second element of x + y, y = [3, 3]
  double gradient = 0.25;  // second element of dx, the upstream gradient being [0.5, 0.25]
  const char* error_shape = "bad";
  const char* counts;  // the last line
  int status;
  const char* flags = "--dtype f64";
};

class ParityRunner : public testing::TestWithParam<Fault> {};

std::string cases_json(const Fault& fault) {
  const std::string op = fault.op;
  return R"([{"name":"one","op":")" + op +
         R"(","attrs":{},"inputs":{"x":"x","y":"y"},"requires_grad":["x"],"outputs":{"out":"out"},)"
         R"("grad_outputs":{"out":"u"},"grads":{"x":"dx"},"layout":{"x":"contiguous","y":"contiguous"},)"
         R"("expect":"value","notes":"","len":1},)"
         R"({"name":"two","op":"add","attrs":{},"inputs":{"x":"x","y":")" +
         std::string(fault.error_shape) +
         R"("},"requires_grad":[],"outputs":{},"grad_outputs":{},"grads":{},)"
         R"("layout":{"x":"contiguous","y":"contiguous"},"expect":{"error":"shapes"},"notes":""}])";
}

std::string write_file(const Fault& fault) {
  const float x[2] = {1, fault.x1}, y[2] = {3, 3}, bad[3] = {1, 2, 3}, u[2] = {0.5f, 0.25f};
  const double out[2] = {4, fault.result}, dx[2] = {0.5, fault.gradient};
  const auto source = [](const char* name, DType dtype, int64_t size, const void* data) {
    const auto* bytes = static_cast<const std::byte*>(data);
    return TensorSource{
        name, dtype, {size}, std::span(bytes, static_cast<size_t>(size) * size_of(dtype)), {}};
  };
  const std::vector<TensorSource> tensors = {
      source("x", DType::f32, 2, x),     source("y", DType::f32, 2, y),
      source("bad", DType::f32, 3, bad), source("u", DType::f32, 2, u),
      source("out", DType::f64, 2, out), source("dx", DType::f64, 2, dx)};
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("binade_parity_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / (std::string(fault.name) + ".safetensors");
  write_safetensors(
      path, tensors,
      {{"format", "binade-parity-1"}, {"family", "planted"}, {"cases", cases_json(fault)}});
  return path;
}

TEST_P(ParityRunner, CountsAndExitStatus) {
  const Fault& fault = GetParam();
  const Finished run = run_parity(write_file(fault) + " " + fault.flags);
  EXPECT_EQ(last_line(run.output), fault.counts) << run.output;
  EXPECT_EQ(run.status, fault.status) << run.output;
}

INSTANTIATE_TEST_SUITE_P(
    Planted, ParityRunner,
    testing::Values(Fault{.name = "right",
                          .counts = "2 passed, 0 failed, 0 skipped, 0 not covered",
                          .status = 0},
                    Fault{.name = "all_dtypes",
                          .counts = "4 passed, 0 failed, 0 skipped, 0 not covered",
                          .status = 0,
                          .flags = ""},
                    Fault{.name = "every_second",
                          .counts = "1 passed, 0 failed, 0 skipped, 0 not covered",
                          .status = 0,
                          .flags = "--dtype f64 --every 2"},
                    Fault{.name = "wrong_input",
                          .x1 = 2.5f,
                          .counts = "1 passed, 1 failed, 0 skipped, 0 not covered",
                          .status = 1},
                    Fault{.name = "wrong_result",
                          .result = 5.0 + 1e-14,
                          .counts = "1 passed, 1 failed, 0 skipped, 0 not covered",
                          .status = 1},
                    Fault{.name = "wrong_gradient",
                          .gradient = -0.25,
                          .counts = "1 passed, 1 failed, 0 skipped, 0 not covered",
                          .status = 1},
                    Fault{.name = "no_error",
                          .error_shape = "y",
                          .counts = "1 passed, 1 failed, 0 skipped, 0 not covered",
                          .status = 1},
                    Fault{.name = "unknown_op",
                          .op = "zeta",
                          .counts = "1 passed, 0 failed, 0 skipped, 1 not covered",
                          .status = 1},
                    Fault{.name = "unknown_op_allowed",
                          .op = "zeta",
                          .counts = "1 passed, 0 failed, 0 skipped, 1 not covered",
                          .status = 0,
                          .flags = "--dtype f32 --allow-not-covered"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ParityRunnerUsage, IsRejected) {
  for (const char* arguments : {"--unknown-flag", "", "--dtype f8 file", "--device cuda file",
                                "--every 0 file", "--dtype"}) {
    const Finished run = run_parity(arguments);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_EQ(run.output.rfind("binade: error: ", 0), 0u) << run.output;
  }
  EXPECT_EQ(run_parity("/nonexistent.safetensors").status, 1);
  EXPECT_EQ(run_parity("--help").status, 0);
}

}  // namespace
}  // namespace binade
