// StepUndo: undoes the effects of a step that runs once more. Internal to train.
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/nn/format_histories.h>
#include <binade/train/precision/overflow_cause.h>

#include <utility>
#include <vector>

namespace binade::train {

// Puts the model's buffers, delayed scales and the generator back, and clears the gradients.
class StepUndo {
 public:
  explicit StepUndo(const StepToDiagnose& step)
      : model_(step.model),
        parameters_(step.parameters),
        buffers_(step.model.named_buffers()),
        scales_(nn::format_histories(step.model)),
        before_(generator()) {
    const NoGradGuard guard;
    for (const auto& [name, buffer] : buffers_) {
      copies_.push_back(buffer.clone());
    }
    if (step.scales.has_value()) {
      nn::load_format_histories(model_, *step.scales);
    }
  }
  ~StepUndo() {
    generator() = before_;
    try {
      const NoGradGuard guard;
      for (size_t i = 0; i < copies_.size(); ++i) {
        buffers_[i].second.copy_(copies_[i]);
      }
      nn::load_format_histories(model_, scales_);
      clear(parameters_);
    } catch (const std::exception&) {  // out of memory: the buffers stay as the step left them
    }
  }
  StepUndo(const StepUndo&) = delete;
  StepUndo& operator=(const StepUndo&) = delete;
  static void clear(const ParameterList& parameters) {
    for (const Parameter& parameter : parameters) {
      if (parameter.value.requires_grad()) {
        parameter.value.zero_grad();
      }
    }
  }

 private:
  nn::Module& model_;
  ParameterList parameters_;
  NamedTensors buffers_, scales_;
  std::vector<Tensor> copies_;
  Generator before_;
};

}  // namespace binade::train
