// cuda_conformance checks the primitives of kernels/cuda/primitives.cuh and the language features
// that kernels rely on against references computed on the host by the rules of the PTX manual. If a
// kernel test fails and this passes, the kernel is wrong; if this fails, the device breaks the
// rules that kernels rely on.
//   cuda_conformance [--json FILE] [CASE...]
#include <tests/cuda/conformance.h>

#include <cstdio>
#include <fstream>
#include <tests/cuda/conformance_memory.cuh>
#include <tests/cuda/conformance_numbers.cuh>
#include <tests/cuda/conformance_warp.cuh>

namespace binade::conformance {

void Report::result(const std::string& name, bool ok, const std::string& detail) {
  lines_.push_back({ok ? "pass" : "FAIL", name, detail});
  std::printf("%s %s%s%s\n", ok ? "pass" : "FAIL", name.c_str(), detail.empty() ? "" : ": ",
              detail.c_str());
  std::fflush(stdout);
}

void Report::skip(const std::string& name, const std::string& reason) {
  lines_.push_back({"skip", name, reason});
  std::printf("skip %s: %s\n", name.c_str(), reason.c_str());
}

int Report::count(const std::string& status) const {
  return static_cast<int>(std::count_if(lines_.begin(), lines_.end(),
                                        [&](const Line& line) { return line.status == status; }));
}

namespace {

constexpr Case kCases[] = {
    {"ldmatrix", matrix_loads}, {"mma", tensor_core},      {"cp_async", async_copies},
    {"shuffle", shuffles},      {"vote", votes},           {"barrier", barriers},
    {"atomic", atomics},        {"shared", shared_memory}, {"grid", grids},
    {"argument", arguments},    {"half", conversions},     {"philox", random_numbers},
    {"function", functions},    {"bits", bit_functions},
};

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    result += c == '"' || c == '\\' ? std::string("\\") + c : c < ' ' ? " " : std::string(1, c);
  }
  return result + '"';
}

void write_json(const char* path, const Report& report) {
  std::ofstream file(path);
  file << "{\"passed\": " << report.count("pass") << ", \"failed\": " << report.count("FAIL")
       << ", \"skipped\": " << report.count("skip") << ", \"checks\": [";
  const char* separator = "\n";
  for (const Report::Line& line : report.lines()) {
    file << separator << "{\"status\": " << quoted(line.status)
         << ", \"name\": " << quoted(line.name) << ", \"detail\": " << quoted(line.detail) << "}";
    separator = ",\n";
  }
  file << "\n]}\n";
}

int run(int count, char** words) {
  const char* json = nullptr;
  std::vector<std::string> wanted;
  for (int i = 1; i < count; ++i) {
    if (std::string(words[i]) == "--json" && i + 1 < count) {
      json = words[++i];
    } else {
      wanted.emplace_back(words[i]);
    }
  }
  for (const std::string& name : wanted) {
    if (std::none_of(std::begin(kCases), std::end(kCases),
                     [&](const Case& c) { return name == c.name; })) {
      std::printf("no case %s\n", name.c_str());
      return 2;
    }
  }
  const kernels::DeviceCount& devices = kernels::cuda_devices();
  if (devices.count == 0) {
    std::printf("skipped: %s\n", devices.reason.c_str());
    return 77;
  }
  Report report;
  for (const Case& c : kCases) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), c.name) == wanted.end()) {
      continue;
    }
    try {
      c.run(report);
    } catch (const std::exception& error) {
      report.result(c.name, false, error.what());
    }
  }
  if (json) {
    write_json(json, report);
  }
  std::printf("%d passed, %d failed, %d skipped\n", report.count("pass"), report.count("FAIL"),
              report.count("skip"));
  return report.count("FAIL") > 0 || report.count("pass") == 0 ? 1 : 0;
}

}  // namespace
}  // namespace binade::conformance

int main(int count, char** words) { return binade::conformance::run(count, words); }
