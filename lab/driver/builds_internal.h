// Compiling and running the builds of one file.
#pragma once
#include <binade/lab/driver/check.h>
#include <binade/lab/driver/numbers_internal.h>
#include <binade/lab/driver/process_internal.h>
#include <binade/lab/driver/toolchain_internal.h>

namespace binade::lab {

// The records of one build, and what its processes said when they died.
struct BuildResult {
  Build build = Build::plain;
  CompiledBuild times = {};
  std::string warnings = {};  // of the compiler
  std::vector<Record> records = {};
  struct Death {
    uint32_t run = 0;
    std::string reason = {};  // one line
    bool late = false;
  };
  std::vector<Death> deaths = {};
  std::string output = {};  // what kernels printed
};

struct BuildJob {
  const Toolchain& toolchain;
  const ScratchFolder& scratch;
  std::string source = {};  // a file
  Build build = Build::plain;
  Problem problem = {};
  int seconds = 60;
  // Called with each record soon after a child wrote it.
  std::function<void(const Record&)> on_record = {};
};
// Throws Error with the compiler's text if the source does not compile.
BuildResult run_build(const BuildJob& job);

// Issues from all builds, merged and sorted.
struct Evidence {
  const Case& of;
  const Translation& translation;
  const std::vector<Sizes>& shapes_of_runs;  // of the plain build's runs
  const std::vector<PreparedRun>& runs;      // of the plain build
  const std::vector<BuildResult>& builds;
  const std::vector<Problem>& problems;  // of each build
};
void add_findings(Report& report, const Evidence& evidence);
void add_numbers(Report& report, const Evidence& evidence);
void add_compiler_warnings(Report& report, const BuildResult& build);
// Counts of the run that counted, in the race build.
void add_counts(Report& report, const Evidence& evidence, const Sizes& sizes);

// "softmax.cu:25  race (write after read) on part[7]"
std::string headline_of(const Found& found);
// "numbers: y[0] = 3, expected 4" if the outputs of a record are wrong.
std::string wrong_numbers_of(const Case& of, const PreparedRun& prepared, const Sizes& sizes,
                             const Record& record);

// "softmax.cu:25": the name of the file alone, and the line.
std::string place_text(const std::string& file, int line);
void sort_issues(Report& report);

}  // namespace binade::lab
