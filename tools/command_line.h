// The command line of binade as plain options: parse_command_line() acts on nothing, so that every
// command line is either one value or one error. Each command acts in run() (commands.h).
#pragma once
#include <binade/dist/collective/ring_lens.h>
#include <binade/dist/job/launch.h>
#include <binade/dist/job/slurm_submit.h>

#include <string>
#include <variant>
#include <vector>

namespace binade::tool {

struct HelpOptions {
  std::string text;  // of the command that --help follows
};
struct VersionOptions {};

struct DoctorOptions {
  bool security = false;
  std::string run = {};  // the run directory to look at; empty: none
};

struct LensOptions {
  std::string run = {};   // a run, or its lens.jsonl
  std::string page = {};  // empty: text on stdout
};

struct ReplayOptions {
  std::string run = {};  // a run, or its scaler.jsonl
  std::string phase = {};
  std::vector<std::string> policies = {};
};

struct BlackBoxOptions {
  std::string file = {};       // or the run
  std::string device = "cpu";  // where the step runs again
  int threads = 0;             // 0: all cores
  bool show = false;           // only what the file says
};

struct LaunchOptions {
  std::vector<std::string> program = {};  // and its arguments
  dist::LaunchOptions processes = {};
};

struct SlurmSubmitOptions {
  dist::SlurmJob job = {};
  bool dry_run = false;
};

struct RingLensOptions {
  std::string file = {}, name = {};  // both or none; none: numbers are drawn
  int64_t elements = 16384;
  double deviation = 1e-3;
  bool json = false;
  dist::RingLensOptions lens = {};
};

struct ChecksumOptions {
  std::string folder = {};
  bool verify = false, update = false;
};

struct InspectOptions {
  std::string path = {};
  bool verify = false;
};

struct OpClassesOptions {};

using Command = std::variant<HelpOptions, VersionOptions, DoctorOptions, LensOptions, ReplayOptions,
                             BlackBoxOptions, LaunchOptions, SlurmSubmitOptions, RingLensOptions,
                             ChecksumOptions, InspectOptions, OpClassesOptions>;

// `words`: the arguments of main() without the name of the program. Throws Error with one line, of
// bounded length, for an unknown command or flag, a flag twice, a value that is missing or out of
// range, and flags that have no effect together.
Command parse_command_line(const std::vector<std::string>& words);

}  // namespace binade::tool
