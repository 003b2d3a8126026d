// Shared by tests of distributed training: rows of a batch, a small model, its values.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/communicator.h>
#include <binade/nn/models.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace binade::dist {

inline constexpr int64_t kFeatures = 5, kClasses = 3;

struct Rows {
  Tensor x, labels;
};

// Makes rows [first, first + count) of the batch of a step.
inline Rows rows_of(int64_t step, int64_t first, int64_t count, DType dtype) {
  std::vector<double> x, labels;
  for (int64_t i = first; i < first + count; ++i) {
    for (int64_t j = 0; j < kFeatures; ++j) {
      x.push_back(std::sin(static_cast<double>(31 * step + 7 * i + 3 * j)));
    }
    labels.push_back(static_cast<double>((step + i) % kClasses));
  }
  return {from_values(std::span<const double>(x), {count, kFeatures}, dtype),
          from_values(std::span<const double>(labels), {count}, DType::i64)};
}

// Has equal values wherever it is created. The shards of three ranks split its second weight.
struct SmallModel : nn::MLP {
  SmallModel() : MLP(seeded()) {}
  explicit SmallModel(DType dtype) : SmallModel() { to(dtype); }
  static nn::MLPOptions seeded() {
    manual_seed(5);
    return {.in = kFeatures, .hidden = {40, 24}, .classes = kClasses};
  }
};

inline std::vector<double> values_of(const NamedTensors& tensors) {
  std::vector<double> values;
  for (const auto& [name, tensor] : tensors) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      values.push_back(tensor.detach().at(i));
    }
  }
  return values;
}

// Compares relative to the number if it is above 1.
inline void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                        double tolerance) {
  check(got.size() == expected.size(), got.size(), " values, expected ", expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    check(got[i] == expected[i] ||
              std::abs(got[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])),
          "value ", i, " is ", got[i], ", expected ", expected[i]);
  }
}

}  // namespace binade::dist
