#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/batch.h>
#include <binade/train/metrics/expand_mask_internal.h>
#include <binade/train/metrics/target_metric.h>
#include <binade/train/step.h>

#include <algorithm>

namespace binade::train {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    all += (all.empty() ? "" : ", ") + name;
  }
  return all.empty() ? "none" : all;
}

const Tensor& output_of(const std::string& metric, const std::string& name,
                        const StepOutput& step) {
  if (name.empty()) {
    check(step.output.defined(), metric,
          ": got a step that returns no output, expected the prediction; return {.loss = loss, "
          ".output = prediction} from the step");
    return step.output;
  }
  std::vector<std::string> names;
  for (const auto& [own, tensor] : step.outputs) {
    if (own == name) {
      check(tensor.defined(), metric, ": got an undefined tensor in output '", name, "'");
      return tensor;
    }
    names.push_back(own);
  }
  fail(metric, ": got a step without output '", name, "', expected it in StepOutput::outputs; got ",
       list_of(names));
}

const Tensor& field_of(const std::string& metric, const char* what, const std::string& name,
                       const data::Batch& batch) {
  check(batch.has(name), metric, ": got a batch without field '", name, "' for the ", what,
        ", expected one of ", list_of(batch.names()), "; name it in the metric's options (.", what,
        ")");
  return batch[name];
}

// The mask (by default all true), with false for the samples that another shard has, too.
Tensor without_repeated(const Tensor& mask, const data::Batch& batch) {
  const int64_t own = batch.size - batch.repeated;
  Tensor is_own = lt(arange(batch.size), static_cast<double>(own));
  if (!mask.defined()) {
    return is_own;
  }
  Dims sizes = Dims::of(std::max(mask.dim(), 1), 1);
  sizes[0] = batch.size;
  return logical_and(mask, reshape(is_own, sizes).to(mask.device()));
}

}  // namespace

Tensor expand_mask(const std::string& metric, const Tensor& mask, const Dims& sizes) {
  bool fits = mask.dim() <= sizes.size();
  Dims own = Dims::of(sizes.size(), 1);
  for (int i = 0; fits && i < mask.dim(); ++i) {
    own[i] = mask.size(i);
    fits = own[i] == sizes[i];
  }
  check(fits, metric, ": got a mask ", mask.sizes(), " for ", sizes,
        ", expected these sizes or the first of them");
  return expand(reshape(mask, own), sizes);
}

TargetMetric::TargetMetric(std::string name, MetricFields fields)
    : Metric(std::move(name)), fields_(std::move(fields)) {}

void TargetMetric::update(const StepOutput& step, const data::Batch& batch) {
  const Tensor& output = output_of(name(), fields_.output, step);
  const Tensor& target = field_of(name(), "target", fields_.target, batch);
  Tensor mask = fields_.mask.empty() ? Tensor() : field_of(name(), "mask", fields_.mask, batch);
  if (batch.repeated > 0) {
    mask = without_repeated(mask, batch);
  }
  add(output, target, mask);
}

void TargetMetric::add(const Tensor& output, const Tensor& target, const Tensor& mask) {
  check(output.defined() && target.defined(), name(), ": got an undefined ",
        output.defined() ? "target" : "output");
  check(!mask.defined() || mask.dtype() == DType::boolean, name(), ": got a mask of ",
        mask.defined() ? mask.dtype() : DType::f32, ", expected bool");
  const NoGradGuard no_grad;
  const Device device = output.device();
  add_batch(output.detach(), target.detach().to(device),
            mask.defined() ? mask.detach().to(device) : mask);
}

}  // namespace binade::train
