#include <binade/core/observe/anomaly.h>
#include <binade/core/ops.h>
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/train/bad_loss_internal.h>

#include <cmath>
#include <utility>

namespace binade::train {
namespace {

// All elements, in any order.
Tensor flat(const Tensor& t) {
  const Tensor x = t.detach();
  return is_dense(x.sizes(), x.strides()) ? make_view(x, {x.numel()}, {1}) : reshape(x, {-1});
}

// On the CPU: the sum of the squares of finite elements, and the number of others.
Tensor stats_of(const Tensor& t) {
  const NoGradGuard guard;
  if (t.numel() == 0) {
    return zeros({2}, DType::f64);
  }
  const Tensor result = empty({2}, DType::f64, t.device());
  kernels::gradient_stats({.grad = flat(t), .result = result});
  return result.to(Device{});
}

}  // namespace

bool is_finite(const Tensor& t) {
  return !t.defined() || !is_floating(t.dtype()) || count_not_finite(t) == 0;
}

int64_t count_not_finite(const Tensor& t) { return static_cast<int64_t>(stats_of(t).at(1)); }

double sum_of_squares(const Tensor& t) { return stats_of(t).at(0); }

std::string first_not_finite(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!is_finite(tensor)) {
      return name;
    }
  }
  return {};
}

std::string first_bad_tensor(const nn::Module& model) {
  const std::string name = first_not_finite(model.state());
  return name.empty() ? name : text("the parameter or buffer ", name, " is not finite");
}

std::string explain_bad_loss(nn::Module& model, const TrainingStep& step, const data::Batch& batch,
                             const Generator& random) {
  for (const std::string& name : batch.names()) {
    if (!is_finite(batch[name])) {
      return text("the field ", name, " of the batch is not finite");
    }
  }
  std::string cause = first_bad_tensor(model);
  if (!cause.empty()) {
    return cause;
  }
  const Generator after = std::exchange(generator(), random);
  AnomalyGuard guard({.throws = false});
  try {
    (void)step(model, batch);
  } catch (const Error& error) {
    cause = text("run again, the step failed: ", error.what());
  }
  generator() = after;
  if (guard.found()) {
    return guard.found()->text;
  }
  return cause.empty() ? "run again, the step gave finite results: it does not repeat" : cause;
}

void check_mean_loss(const char* where, const Tensor& loss) {
  check(loss.defined() && loss.numel() == 1 && is_floating(loss.dtype()), where, ": got ",
        !loss.defined()             ? "no tensor"
        : is_floating(loss.dtype()) ? text("shape ", loss.sizes())
                                    : text("dtype ", loss.dtype()),
        " from TrainerOptions::step, expected the mean loss over the batch, one floating number; "
        "the model's is_training() tells training from validation, or give validation_step");
}

void fail_of_bad_loss(double loss, const std::string& where, const std::string& cause) {
  throw Diverged(
      text("trainer: got a loss of ", std::isnan(loss) ? std::abs(loss) : loss, " ", where,
           ", expected a finite one: ", cause,
           "; lower the learning rate, clip the gradients or mend the data, or choose what the run "
           "does with TrainerOptions::on_nan"));
}

}  // namespace binade::train
