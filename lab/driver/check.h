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
  // A name of case_names(), or a file that ends in .json; empty with `own`.
  std::string name = {};
  const Case* own = nullptr;  // a case made by the program
  std::string shape = {};     // "4096x1024": counted beside the case's own shapes
  std::string compiler = {};  // empty: CXX, g++, clang++ or c++
  std::string root = {};      // the folder of the lab's files; empty: looked up
  bool counts = true;         // count accesses of memory
  int seconds = 60;           // after which a child process is ended
  // Registers, spills, occupancy and SASS counts by nvcc, if there is one; takes some seconds.
  bool device_code = false;
  // Called from another thread with a line about the first thing found wrong, while the check goes
  // on.
  std::function<void(const std::string& line)> on_first = {};
  // Called with the report when only the device code is missing.
  std::function<void(const Report&)> on_verdict = {};
};

// Ends checks that run, and those that begin later, with Error. May be called by a handler of
// signals.
void interrupt_checks();

// There is no compiler, or the lab is not installed.
class ToolchainError : public Error {
 public:
  explicit ToolchainError(const std::string& text) : Error(printable(text)) {}
};

// Translates, compiles, runs and compares. Throws SourceError for a file that is not supported,
// ToolchainError, and Error for a wrong case or shape and for a file that does not compile.
Report check_kernel(const CheckOptions& options);

// Names the folder of the lab's files; BINADE_LAB comes before it. Returns true. Programs that use
// an installation by find_package(Binade) call it before main().
bool set_lab_folder(const char* folder);
#ifdef BINADE_LAB_FOLDER
[[maybe_unused]] static const bool lab_folder_is_set = set_lab_folder(BINADE_LAB_FOLDER);
#endif

}  // namespace binade::lab
