// write_events DIR: writes a log for TensorBoard to DIR/tensorboard, as two processes of a run
// would, of which the first one is killed, and to DIR/expected.json what a reader must find there.
// tensorboard_test.py reads it.
#include <binade/binade.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

using namespace binade;
using nlohmann::json;

namespace {

constexpr int64_t kCrash = 20, kResumed = 12, kLast = 30;

data::Image picture(int64_t step, int channels) {
  data::Image image = data::make_image(24, 33, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<uint8_t>(i * static_cast<size_t>(step) / 7 + i % 5);
  }
  return image;
}

// The numbers of one process; `kept` says which ones are in force at the end.
void write_steps(train::TensorBoard& log, int64_t begin, int64_t end, double shift,
                 json& expected) {
  for (int64_t step = begin; step <= end; ++step) {
    const bool kept = step <= kResumed || shift > 0;
    const double loss = std::exp(-static_cast<double>(step) / 8) + shift;
    log.scalars(
        {.step = step,
         .epoch = step / 10,
         .values = {{"train_loss", loss}, {"learning_rate", 1e-3 / static_cast<double>(step)}}});
    if (kept) {
      expected["scalars"]["train_loss"].push_back({step, loss});
      expected["scalars"]["learning_rate"].push_back({step, 1e-3 / static_cast<double>(step)});
    }
    if (step % 6 == 0) {
      const Tensor weights = mul(randn({40, 25}), static_cast<double>(step) / 10);
      const data::Image grey = picture(step, 1), color = picture(step, 3);
      log.histogram(step, "weights/fc", weights);
      log.image(step, "samples", color);
      log.image(step, "grey", grey);
      log.text(step, "notes",
               text("**step** ", step, ", \"quoted\" \u00fc\n\n| a | b |\n|---|---|\n| 1 | 2 |"));
      if (kept) {
        expected["histograms"]["weights/fc"].push_back(
            {step, weights.to(DType::f64).to_vector<double>()});
        expected["images"]["samples"].push_back({step, 24, 33, 3, color.pixels});
        expected["images"]["grey"].push_back({step, 24, 33, 1, grey.pixels});
        expected["texts"]["notes"].push_back(
            {step,
             text("**step** ", step, ", \"quoted\" \u00fc\n\n| a | b |\n|---|---|\n| 1 | 2 |")});
      }
    }
  }
}

// Cuts the last record of the only event file, as a kill in the middle of a write does.
void cut_last_record(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::resize_file(entry.path(), entry.file_size() - 5);
  }
}

void write_all(const std::string& run) {
  json expected;
  manual_seed(3);
  train::TensorBoard first;
  first.start({.directory = run});
  write_steps(first, 1, kCrash, 0, expected);
  first.finish();
  cut_last_record(run + "/tensorboard");
  train::TensorBoard second;
  second.start({.directory = run, .resumed = true, .step = kResumed});
  write_steps(second, kResumed + 1, kLast, 0.25, expected);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Tensor odd = from_values({0, -0.0, 1e-30, -1e-30, 1, 1, 1e30, -1e30, INFINITY, kNaN, kNaN},
                                 {11}, DType::f64);
  second.histogram(kLast, "odd", odd);
  second.scalars({.step = kLast, .values = {{"nan", kNaN}, {"inf", INFINITY}}});
  second.finish();
  expected["histograms"]["odd"].push_back(
      {kLast, std::vector<double>{0, -0.0, 1e-30, -1e-30, 1, 1, 1e30, -1e30}});
  expected["scalars"]["odd/not_finite"].push_back({kLast, 3});
  std::ofstream(run + "/expected.json") << expected;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_events DIR\n");
    return 2;
  }
  try {
    write_all(argv[1]);
  } catch (const Error& error) {
    std::fprintf(stderr, "write_events: %s\n", error.what());
    return 1;
  }
  return 0;
}
