// The command line of binade as plain options. parse_command_line() has no effects: it gives one
// value or one error. Each command acts in its run() (commands.h).
#pragma once
#include <binade/dist/collective/ring_lens.h>
#include <binade/dist/job/launch.h>
#include <binade/dist/job/slurm_submit.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace binade::tool {

struct HelpOptions {
  std::string text;  // the text that --help prints for the command
};
struct VersionOptions {};

struct DoctorOptions {
  bool security = false;
  bool providers = false;
  std::string run = {};  // the run directory to examine; empty: none
};

struct LensOptions {
  std::string run = {};                  // a run, or its lens.jsonl
  std::vector<std::string> others = {};  // further runs on the page
  std::string page = {};                 // empty: text on stdout
};

struct ReplayOptions {
  std::string run = {};  // a run, or its scaler.jsonl
  std::string phase = {};
  std::vector<std::string> policies = {};
};

struct BlackBoxOptions {
  std::string file = {};       // or the run directory
  std::string device = "cpu";  // device on which the step runs again
  int threads = 0;             // 0: all cores
  bool show = false;           // only print the contents of the file
};

struct LaunchOptions {
  std::vector<std::string> program = {};  // the program and its arguments
  dist::LaunchOptions processes = {};
};

struct SlurmSubmitOptions {
  dist::SlurmJob job = {};
  bool dry_run = false;
};

struct RingLensOptions {
  std::string file = {}, name = {};  // both or none; none: random numbers
  int64_t elements = 16384;
  double deviation = 1e-3;
  bool json = false;
  dist::RingLensOptions lens = {};
};

struct ChecksumOptions {
  std::string folder = {};
  bool verify = false, update = false;
};

struct PackOptions {
  std::string source = {}, store = {};
  int height = 0, width = 0;  // 0: not resized; `height` alone: length of the short side
  bool raw = false, jpeg = false, append = false, skip_bad = false;
  int quality = 95;
  int64_t shard_mebibytes = 1024, context = 0;
  std::string tokens = {};  // "u16" or "u32": the source is a file of token ids
};

struct InspectOptions {
  std::string path = {};
  bool verify = false;
};

struct ReportOptions {
  std::vector<std::string> runs = {};
  std::string page = {};  // empty: RUN/report.html for one run, else report.html
};

struct DiffOptions {
  std::string a = {}, b = {};  // runs
};

struct RunsOptions {
  std::string folder = "runs";
};

struct WatchOptions {
  std::string run = {};
  double interval = 1;  // seconds
  bool once = false;
};

struct TraceOptions {
  std::string path = {};   // a trace, or a run directory
  std::string flame = {};  // where the flame graph is written; empty: nowhere
  int64_t rows = 20;       // of each table
};

struct BottleneckOptions {
  std::vector<std::string> program = {};  // the program and its arguments
  int64_t steps = 20, warmup = 5;
  bool no_trial = false;
};

struct DecodeOptions {
  std::string file = {};
  std::string output = {};  // empty: stdout, unless it is a terminal
  bool facts_only = false;
  bool keep_orientation = false;
};

struct VerifyDatasetOptions {
  std::string folder = {};
  std::string report = {};  // file for the JSON report; empty: none
  bool json = false;        // print the JSON report on stdout
  uint64_t seed = 0;        // for the split of a folder without train and test
};

struct BenchOptions {
  std::vector<std::string> words = {};  // cases, or diff OLD NEW
  std::vector<std::string> cases = {};  // cases that diff compares
  std::vector<std::string> dtypes = {"f32"};
  std::string device = "auto", provider = {}, json = {}, svg = {};
  int samples = 0, threads = 0, rounds = 0;  // 0: the default
  double minimum = 0;                        // in percent; 0: the default
  double plant = 1;
  bool warm = false, list = false, all = false, check_only = false, serve = false;
};

struct FormatOptions {
  std::string format = {};
  std::vector<double> values = {};   // numbers to round
  std::vector<uint64_t> codes = {};  // codes to decode
  std::string rounding = "nearest";
  uint32_t random = 0;  // bits for stochastic rounding
};

struct KernelOptions {
  std::string file = {};             // the CUDA C++ source
  std::string case_and_shape = {};   // "softmax", "softmax:4096x1024", "my_case.json"
  std::string json = {}, page = {};  // output files; empty: none
  std::string compiler = {};         // empty: searched for
  bool strict = false, watch = false, no_counts = false, no_nvcc = false;
};

struct OpClassesOptions {};

using Command = std::variant<HelpOptions, VersionOptions, DoctorOptions, LensOptions, ReplayOptions,
                             BlackBoxOptions, LaunchOptions, SlurmSubmitOptions, RingLensOptions,
                             ChecksumOptions, PackOptions, InspectOptions, ReportOptions,
                             DiffOptions, RunsOptions, WatchOptions, TraceOptions,
                             BottleneckOptions, DecodeOptions, VerifyDatasetOptions, KernelOptions,
                             BenchOptions, FormatOptions, OpClassesOptions>;

// `words` are the arguments of main() without the program's name. Throws an Error with one line of
// bounded length for an unknown command or flag, a repeated flag, a value that is missing or out of
// range, and flags that have no effect together.
Command parse_command_line(const std::vector<std::string>& words);

}  // namespace binade::tool
