// The flags that training programs share, and a frame for their main().
//
//   int main(int argc, char** argv) {
//     train::Program program("vae", "Trains a VAE.", {.epochs = 10, .lr = 2e-3});
//     int64_t latent = 20;
//     program.add("--latent", latent, "size of the latent space", {1, 1000});
//     return program.run(argc, argv, [&](const train::RunFlags& flags) { ... });
//   }
//
// --help lists the flags with their defaults. An unknown flag, a value out of range and a flag
// twice are errors. Exit status: 0 success, 1 error, 2 wrong flags, 3 the run diverged
// (docs/runs.md).
#pragma once
#include <binade/core/owned.h>
#include <binade/optim/loss_scaler.h>
#include <binade/train/checkpoint/checkpoint.h>
#include <binade/train/precision/format_flags.h>
#include <binade/train/trainer.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace binade::train {

// The shared flags. Values given to a Program are its defaults.
struct RunFlags {
  std::string data = {};  // --data PATH
  int64_t epochs = 10;    // --epochs
  int64_t steps = 0;      // --steps: of the optimizer, at most; 0: as many as the epochs have
  int64_t batch = 64;     // --batch
  double lr = 1e-3;       // --lr
  std::string precision = "fp32";  // --precision fp32 | fp16 | bf16: the policy `mixed`
  uint64_t seed = 0;               // --seed
  std::string device = "auto";     // --device auto | cpu | cuda[:N] | emulated
  int threads = 0;                 // --threads; 0: all usable cores
  std::string run = {};            // --run DIR; default: the next free runs/NAME-N
  bool resume = false;             // --resume
  bool overwrite = false;          // --overwrite
  int64_t checkpoint_every = 0;    // --checkpoint-every STEPS; 0: at the end of an epoch only
  // --profile [WINDOW]: run() makes a Profiler that writes to the run directory; empty: none.
  std::string profile = {};
  // The dynamic loss scale of fp16: --init-scale, --growth-factor, --backoff-factor,
  // --growth-interval, --hysteresis.
  optim::LossScalerOptions scaler = {};
  FormatFlags formats = {};       // the format lab: --weights-format and others
  bool record_gradients = false;  // --record-gradients: for binade replay
  int64_t black_box = 0;          // --black-box MB; 0: none
  int64_t shadow = 0;             // --shadow STEPS: runs a step again in f64; 0: none

  // A resumed run must share these with the one before: a Program sets them, with its own flags.
  std::map<std::string, std::string> settings = {};

  // The flags as the library takes them. loss_scaler(): for fp16. trainer_options() has epochs,
  // steps, precision, device, the run directory, checkpoint_every, record_gradients, black_box,
  // shadow, settings and stop_on_signal; checkpoint_options() is for a loop of your own.
  Precision policy() const;
  Device target() const;  // auto: Device::best()
  std::optional<optim::LossScaler> loss_scaler() const;
  TrainerOptions trainer_options() const;
  CheckpointOptions checkpoint_options() const;
  // Steps of a run that no patience ends, for schedules.
  int64_t total_steps(const data::Loader& train) const;
  // Calls trainer.fit(). If a signal ends it, the program prints how to go on and ends with status
  // 128 + signal.
  void fit(Trainer& trainer, data::Loader& train, data::Loader* validation = nullptr) const;
};

struct FlagRange {
  double low, high;

  // Says why a flag's text is no number in the range; empty if it is one. NaN is outside of every
  // range.
  std::string mistake(const std::string& value) const;
  std::string words() const;  // for --help: "FROM 0 TO 1"
};

class Program {
 public:
  // `without`: shared flags that this program does not take ("--data").
  Program(std::string name, std::string description, RunFlags defaults = {},
          std::vector<std::string> without = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // A flag of the program itself; the value is the default. REQUIRES: it lives until run() returns.
  // Numbers must be in the range; they count as settings that a resumed run must share.
  void add(const std::string& flag, double& value, const std::string& help,
           const FlagRange& range = {-1e300, 1e300});
  void add(const std::string& flag, int64_t& value, const std::string& help,
           const FlagRange& range = {0, 1e9});
  void add(const std::string& flag, std::string& value, const std::string& help);
  void add(const std::string& flag, bool& value, const std::string& help);  // without a value
  // One or more values; a name without dashes takes what follows the flags: "FILE".
  void add(const std::string& flag, std::vector<std::string>& values, const std::string& help);

  // Parses the flags, sets the threads, seeds generator() with --seed, and calls body(flags), which
  // returns an exit status or nothing. Its error becomes one line on stderr.
  template <class F>
  int run(int argc, char** argv, F&& body) {
    return run_body(argc, argv, [&](const RunFlags& flags) -> int {
      if constexpr (std::is_void_v<decltype(body(flags))>) {
        body(flags);
        return 0;
      } else {
        return body(flags);
      }
    });
  }

 private:
  struct Parser;
  int run_body(int argc, char** argv, const std::function<int(const RunFlags&)>& body);

  RunFlags flags_;
  Owned<Parser> parser_;
};

}  // namespace binade::train
