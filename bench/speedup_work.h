// One training, or one evaluation, of bench/speedups.cpp: a plain program with a set of measures
// applied, on drawn JPEGs.
#pragma once
#include <binade/dist/job/world.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade::bench {

// The ways to a faster step, in the order of kMeasures and of the table.
enum class Measure : uint8_t {
  workers,
  packed,
  pinned,
  batch,
  accumulate,
  no_item,
  precision,
  channels_last,
  fused,
  graph,
  ddp,
  zero,
  evaluation
};
struct MeasureText {
  const char *name, *without, *with;
};
inline constexpr MeasureText kMeasures[] = {
    {"workers", "the loop decodes", "loader threads: the cores, at most 4"},
    {"packed", "JPEG files of 160 x 160", "a packed store of raw pixels, resized"},
    {"pinned", "Batch::to(device)", "LoaderOptions::device: pinned, on a stream of its own"},
    {"batch", "8 samples", "64 samples"},
    {"accumulate", "an update per batch", "an update per 4 batches"},
    {"no_item", "loss.item() in each step", "losses stay on the device"},
    {"precision", "fp32", "mixed: bf16 on a CPU, fp16 on a GPU"},
    {"channels_last", "images in [N, C, H, W]", "channels last"},
    {"fused", "ops run apart", "fused passes"},
    {"graph", "a launch per kernel", "the step as one CUDA graph"},
    {"ddp", "one process", "2 processes, gradients averaged"},
    {"zero", "each rank has all moments", "moments sharded over the ranks (ZeRO-1)"},
    {"evaluation", "with gradients, the training's batch", "NoGradGuard, 4 x the batch"}};
inline constexpr size_t kMeasureCount = std::size(kMeasures);

using MeasureSet = std::vector<bool>;  // [kMeasureCount]
inline bool has(const MeasureSet& set, Measure one) { return set[static_cast<size_t>(one)]; }

struct SpeedupSettings {
  std::string model = "cnn";  // a name for nn::make_model
  int64_t samples = 256;      // number timed, over all ranks
  int64_t edge = 64;          // image edge that the model gets
  int64_t files = 512;
};

// The reason why a measure has no effect here, or empty. `gpus`: number in the machine.
std::string why_not(Measure one, Device device, int gpus);

// Writes the images to folder/jpeg and folder/store.
void prepare_images(const std::string& folder, const SpeedupSettings& settings);

// Samples per second of all ranks: warms up, then trains on `settings.samples` or evaluates them.
double samples_per_second(const SpeedupSettings& settings, const MeasureSet& on, bool evaluates,
                          const std::string& folder, Device device, dist::World& world);

}  // namespace binade::bench
