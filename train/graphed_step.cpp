#include <binade/core/autograd/autograd.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/train/graphed_step.h>

namespace binade::train {

GraphedStep::GraphedStep(Device device, Step step, int plain_calls)
    : device_(device), step_(std::move(step)), plain_calls_(plain_calls) {
  check(plain_calls >= 0, "graphed step: got ", plain_calls, " plain calls, expected 0 or more");
}

bool GraphedStep::fits(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != inputs_.size() || generator().seed != seed_) {
    return false;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(inputs[i].sizes() == inputs_[i].sizes()) || inputs[i].dtype() != inputs_[i].dtype()) {
      return false;
    }
  }
  return true;
}

std::vector<Tensor> GraphedStep::operator()(std::vector<Tensor> inputs) {
  const bool plain = device_.is_cpu() || plain_calls_ > 0;
  if (!plain && !graph_) {
    record(inputs);
  }
  if (plain || !fits(inputs)) {
    plain_calls_ -= plain_calls_ > 0;
    for (Tensor& input : inputs) {
      input = input.to(device_);
    }
    FollowedArenas followed;
    std::vector<Tensor> results = step_(inputs);
    if (!graph_) {
      arenas_ = followed.take();
    }
    return results;
  }
  const NoGradGuard guard;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs_[i].copy_(inputs[i]);
  }
  replay();
  return results_;
}

// Weights may have been changed in place since the last step. Their masters take the new values
// before a graph that reads them is recorded or replayed.
void GraphedStep::follow_weights() const {
  for (const auto& arena : arenas_) {
    if (const auto alive = arena.lock()) {
      alive->follow_values();
    }
  }
}

void GraphedStep::record(const std::vector<Tensor>& inputs) {
  follow_weights();
  Generator& source = generator();
  seed_ = source.seed;
  offset_ = next_offset_ = source.offset;
  inputs_.clear();
  for (const Tensor& input : inputs) {
    inputs_.push_back(empty_strided(input.sizes(), input.strides(), input.dtype(), device_));
  }
  advance_ = zeros({1}, DType::i64, device_);
  const Tensor drawn = zeros({1}, DType::i64, device_);
  auto graph = std::make_unique<Graph>(device_);
  FollowedArenas followed;
  source.advance = advance_;
  try {
    graph->capture([&] {
      results_ = step_(inputs_);
      drawn_ = source.offset - offset_;
      // The next replay's random numbers begin where this one's end.
      kernels::fill({.y = drawn, .value = static_cast<double>(drawn_)});
      kernels::binary_forward(
          {.op = kernels::Binary::add, .a = advance_, .b = drawn, .y = advance_});
    });
  } catch (...) {
    source.advance = {};
    source.offset = offset_;
    throw;
  }
  source.advance = {};
  source.offset = offset_;  // nothing was drawn yet
  drawn_word_ = drawn;
  arenas_ = followed.take();
  graph_ = std::move(graph);
}

void GraphedStep::replay() {
  Generator& source = generator();
  if (source.offset != next_offset_) {  // other code drew numbers in between
    kernels::fill({.y = advance_,
                   .value = static_cast<double>(static_cast<int64_t>(source.offset - offset_))});
  }
  follow_weights();
  graph_->replay();
  source.offset += drawn_;
  next_offset_ = source.offset;
  ++replays_;
}

}  // namespace binade::train
