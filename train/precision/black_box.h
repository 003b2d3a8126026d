// The black box: a file with a step whose loss or gradients are not finite, to run it again.
//
//   train::Trainer trainer(parts, {.run = "runs/1", .black_box = {.bytes = 256 << 20}});
//   binade blackbox runs/1/blackbox.safetensors        # models that train_classifier trains
//
//   const train::BlackBox box = train::read_black_box("runs/1/blackbox.safetensors");
//   std::puts(train::to_text(box, train::replay(box, make_net, my_step)).c_str());  // your own
//
// A file holds weights as they are stored and their masters, buffers, the micro-batches, the random
// numbers, the loss scale, delayed scales of simulated formats, the policy and the modes of the
// modules. On the CPU the replay has the bits of the recorded step, at any number of threads.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/train/precision/overflow_cause.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace binade::train {

struct BlackBoxOptions {
  // The largest file that is written; 0: none. A step that needs more gives a warning instead.
  int64_t bytes = 0;
  // Says how to make the model, for programs that run the step again.
  std::map<std::string, std::string> description = {};
};

struct BlackBox {
  int64_t step = 0;
  double scale = 1, loss = 0;
  Precision precision = {};
  std::vector<bool> modes = {};          // Module::training_modes()
  NamedTensors stored = {}, exact = {};  // Module::state() and exact_state(), on the CPU
  NamedTensors scales = {};              // nn::format_histories() before the step
  std::vector<StepBatch> batches = {};
  std::vector<std::string> stale = {};
  std::string gradients = {};  // state_hash() of the step's gradients, as they were stored
  std::string device = {};     // where the step ran
  std::string cause = {};      // what the run found, as text
  std::string first = {};      // the first bad element and its inputs, as text
  std::map<std::string, std::string> description = {};
};

// Writes durably. Returns the bytes of the tensors; if they are more than `limit`, nothing is
// written.
int64_t write_black_box(const std::string& path, const BlackBox& box, int64_t limit,
                        FileSystem& files = file_system());
// Throws if the file cannot be read, is damaged or is no black box.
BlackBox read_black_box(const std::string& path, FileSystem& files = file_system());

// The step in another precision, or with a change that may cure it.
struct BlackBoxRun {
  std::string what;  // "in f64", "linear in module fc1 in f32"
  bool is_finite = false;
  double loss = 0;
  std::string first = {};  // if it is not finite: the first bad element in one sentence
};

struct BlackBoxReplay {
  OverflowReport report;
  bool bit_equal = false;  // loss and gradients have the recorded bits
  double loss_error = 0;   // |loss - recorded| / |recorded|; 0 if both are equal or not finite
  std::vector<BlackBoxRun> wider;  // in f32 and in f64, without a loss scale
  std::vector<BlackBoxRun> cures;
};

using MakeModel = std::function<std::unique_ptr<nn::Module>()>;

// Runs the step again on the device. `make` returns the model's structure with any weights.
BlackBoxReplay replay(const BlackBox& box, const MakeModel& make, const TrainingStep& step,
                      Device device = {});

std::string to_text(const BlackBox& box);
std::string to_text(const BlackBox& box, const BlackBoxReplay& replay);

}  // namespace binade::train
