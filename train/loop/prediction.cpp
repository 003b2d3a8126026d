#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/loop/prediction_internal.h>

#include <algorithm>
#include <numeric>

namespace binade::train {
namespace {

constexpr const char* kIndices = "indices";

NamedTensors outputs_of(const StepOutput& output) {
  NamedTensors all;
  if (output.output.defined()) {
    all.emplace_back("output", output.output);
  }
  all.insert(all.end(), output.outputs.begin(), output.outputs.end());
  check(!all.empty(),
        "predict: the step gives no outputs, expected StepOutput::output or outputs; or give "
        "TrainerOptions::predict_step");
  return all;
}

Tensor int_tensor(const std::vector<int64_t>& values) {
  Tensor all = empty({static_cast<int64_t>(values.size())}, DType::i64);
  std::copy(values.begin(), values.end(), all.data<int64_t>());
  return all;
}

}  // namespace

void Prediction::add(const StepOutput& output, const data::Batch& batch) {
  const NamedTensors all = outputs_of(output);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : all) {
    check(name != kIndices && std::find(names.begin(), names.end(), name) == names.end(),
          "predict: got two outputs named ", name, ", expected different names; ", kIndices,
          " is the position in the data set");
    check(tensor.defined() && tensor.dim() >= 1 && tensor.size(0) == batch.size, "predict: output ",
          name, " has shape ", tensor.defined() ? to_string(tensor.sizes()) : "of no tensor",
          ", expected a row for each of the ", batch.size, " samples of the batch");
    names.push_back(name);
  }
  if (names_.empty()) {
    names_ = names;
    parts_.resize(names.size());
  }
  check(names == names_, "predict: got other outputs in this batch than in the first, which has ",
        list_names(names_));
  for (size_t i = 0; i < all.size(); ++i) {
    const Tensor& row = parts_[i].empty() ? all[i].second : parts_[i][0];
    Dims sizes = row.sizes();
    sizes[0] = batch.size;
    check(all[i].second.sizes() == sizes, "predict: output ", names_[i], " has rows of shape ",
          all[i].second.sizes(), " in this batch, expected ", sizes, ", as in the first");
    parts_[i].push_back(all[i].second.detach().to(Device{}));
  }
  indices_.insert(indices_.end(), batch.indices.begin(), batch.indices.end());
}

NamedTensors Prediction::join() const {
  check(!names_.empty(), "predict: got a loader without samples");
  std::vector<int64_t> order(indices_.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) {
    return indices_[static_cast<size_t>(a)] < indices_[static_cast<size_t>(b)];
  });
  const NoGradGuard guard;
  const Tensor rows = int_tensor(order);
  const bool sorted = std::is_sorted(order.begin(), order.end());
  NamedTensors all;
  for (size_t i = 0; i < names_.size(); ++i) {
    const Tensor joined = cat(parts_[i], 0);
    all.emplace_back(names_[i], sorted ? joined : index_select(joined, 0, rows));
  }
  const Tensor indices = int_tensor(indices_);
  all.emplace_back(kIndices, sorted ? indices : index_select(indices, 0, rows));
  return all;
}

}  // namespace binade::train
