// The setting of the fragments of docs/metrics-and-loggers.md: an empty working directory, and a
// classifier of three classes with its data.
#pragma once
#include <binade/binade.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "tests/support/temporary_directory.h"

using namespace binade;  // NOLINT: as in a program

class Page : public ::testing::Test {
 protected:
  Page() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory_.path());
  }
  ~Page() override { std::filesystem::current_path(before_); }

  static data::TensorDataset rows(int64_t count) {
    const Tensor x = randn({count, 3});
    return data::TensorDataset({{"images", x}, {"labels", argmax(x, 1)}});
  }

  binade::testing::TemporaryDirectory directory_;
  std::filesystem::path before_;

  nn::Linear model{{.in = 3, .out = 3}};
  optim::AdamW adam{model.parameters(), {.lr = 0.05}};
  train::TrainingStep step = [](nn::Linear& net, const data::Batch& batch) -> train::StepOutput {
    const Tensor logits = net(batch.images);
    return {.loss = cross_entropy(logits, batch.labels), .output = logits};
  };
  data::Loader train{rows(64), {.batch = 16}}, validation{rows(32), {.batch = 16}};
};
