// Checks a file of plain CUDA C++ against a case, without a GPU: the kernels run on Binade's host
// executor under a race detector, sanitizers and several schedules, and their results are compared
// with a reference in double precision. docs/kernel_lab.md explains its use.
#pragma once
#include <binade/kernels/base/printable.h>
#include <binade/lab/cases/case.h>
#include <binade/lab/driver/report.h>

#include <functional>

namespace binade::lab {

struct CheckOptions {
  std::string file = {};
  // A name from case_names(), or a .json file; empty if `own` is set.
  std::string name = {};
  const Case* own = nullptr;  // a case made by the program
  std::string shape = {};     // "4096x1024": counted beside the case's own shapes
  std::string compiler = {};  // empty: CXX, g++, clang++ or c++
  std::string root = {};      // the folder of the lab's files; empty: searched for
  bool counts = true;         // count memory accesses
  int seconds = 60;           // time limit for a child process
  // Report registers, spills, occupancy and SASS counts of nvcc, if found; takes some seconds.
  bool device_code = false;
  // Called from another thread while the check runs, with one line about the first problem found.
  std::function<void(const std::string& line)> on_first = {};
  // Called with the report when everything except the device code is ready.
  std::function<void(const Report&)> on_verdict = {};
};

// Makes running and later checks fail with Error. A signal handler may call it.
void interrupt_checks();

// Thrown if there is no compiler or the lab is not installed.
class ToolchainError : public Error {
 public:
  explicit ToolchainError(const std::string& text) : Error(printable(text)) {}
};

// Translates, compiles, runs and compares. Throws SourceError for unsupported code, ToolchainError,
// and Error for a wrong case or shape or a file that does not compile.
Report check_kernel(const CheckOptions& options);

// Names the folder of the lab's files; BINADE_LAB overrides it. Returns true, so that programs that
// use find_package(Binade) can call it before main().
bool set_lab_folder(const char* folder);
#ifdef BINADE_LAB_FOLDER
[[maybe_unused]] static const bool lab_folder_is_set = set_lab_folder(BINADE_LAB_FOLDER);
#endif

}  // namespace binade::lab
