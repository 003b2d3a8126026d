// Compiles and runs the builds of one file.
#pragma once
#include <binade/lab/driver/check.h>
#include <binade/lab/driver/numbers_internal.h>
#include <binade/lab/driver/process_internal.h>
#include <binade/lab/driver/toolchain_internal.h>

namespace binade::lab {

// The records of one build, and the reasons why its processes died.
struct BuildResult {
  Build build = Build::plain;
  CompiledBuild times = {};
  std::string warnings = {};  // compiler warnings
  std::vector<Record> records = {};
  struct Death {
    uint32_t run = 0;
    std::string reason = {};  // one line of text
    bool late = false;
  };
  std::vector<Death> deaths = {};
  std::string output = {};  // text printed by kernels
};

struct BuildJob {
  const Toolchain& toolchain;
  const ScratchFolder& scratch;
  std::string source = {};  // a path
  Build build = Build::plain;
  Problem problem = {};
  int seconds = 60;
  // Called with each record soon after a child wrote it.
  std::function<void(const Record&)> on_record = {};
};
// Throws an Error with the compiler's text if the source does not compile.
BuildResult run_build(const BuildJob& job);

// The runs and their results, from which the issues of all builds are made.
struct Evidence {
  const Case& of;
  const Translation& translation;
  const std::vector<Sizes>& shapes_of_runs;  // for each run of the plain build
  const std::vector<PreparedRun>& runs;      // the runs of the plain build
  const std::vector<BuildResult>& builds;
  const std::vector<Problem>& problems;  // one for each build
};
void add_findings(Report& report, const Evidence& evidence);
void add_numbers(Report& report, const Evidence& evidence);
void add_compiler_warnings(Report& report, const BuildResult& build);
// Adds the counts of the one run of the race build that counted accesses.
void add_counts(Report& report, const Evidence& evidence, const Sizes& sizes);

// For example "softmax.cu:25  race (write after read) on part[7]".
std::string headline_of(const Found& found);
// For example "numbers: y[0] = 3, expected 4"; empty if the outputs of the record are right.
std::string wrong_numbers_of(const Case& of, const PreparedRun& prepared, const Sizes& sizes,
                             const Record& record);

// For example "softmax.cu:25": the file name without its folder, and the line.
std::string place_text(const std::string& file, int line);
void sort_issues(Report& report);

}  // namespace binade::lab
