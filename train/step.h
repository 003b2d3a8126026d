// The step of a training: a function of the user, from a model and a batch to a loss.
//
//   .step = [](Net& net, const data::Batch& batch) -> train::StepOutput {
//     const Tensor y = net(batch["x"]);
//     return {.loss = mse_loss(y, batch["y"]), .output = y,
//             .log = {{"mae", l1_loss(y, batch["y"])}}};
//   }
#pragma once
#include <binade/nn/module.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace binade::data {
struct Batch;
}

namespace binade::train {

// A value to log: a number, or a tensor of one element. The tensor stays on its device and is read
// only when a line is written.
class LogValue {
 public:
  LogValue(Tensor value) : tensor_(std::move(value)) {}  // NOLINT
  template <class T>
  requires std::is_arithmetic_v<T> LogValue(T value)  // NOLINT
      : number_(static_cast<double>(value)) {}

  bool is_tensor() const { return tensor_.defined(); }
  const Tensor& tensor() const { return tensor_; }                        // undefined for a number
  double item() const { return is_tensor() ? tensor_.item() : number_; }  // waits for a device

 private:
  Tensor tensor_;
  double number_ = 0;
};

// A step returns this. Only the loss is needed.
struct StepOutput {
  Tensor loss;         // the mean over the batch: one floating number, with a gradient
  Tensor output = {};  // the prediction, for metrics and predict(): [N, ...]
  // Averaged over the epoch, the validation and the ranks, under the names train_NAME and
  // validation_NAME in metrics.jsonl. Every batch logs the same names.
  std::vector<std::pair<std::string, LogValue>> log = {};
  NamedTensors outputs = {};  // further results, for metrics and predict(): [N, ...] each
  // The weight of this batch in means over batches. Set it if the loss is not a mean over samples,
  // but for example over the tokens of a padded batch. 0: the number of samples.
  double weight = 0;
};

namespace detail {

// The module class that a callable takes first, where that is not nn::Module itself.
template <class F>
struct StepModel {};
template <class R, class M>
struct StepModel<R (*)(M&, const data::Batch&)> {
  using Type = std::remove_const_t<M>;
};
template <class R, class C, class M>
struct StepModel<R (C::*)(M&, const data::Batch&)> : StepModel<R (*)(M&, const data::Batch&)> {};
template <class R, class C, class M>
struct StepModel<R (C::*)(M&, const data::Batch&) const>
    : StepModel<R (*)(M&, const data::Batch&)> {};
template <class F>
requires requires { &F::operator(); }
struct StepModel<F> : StepModel<decltype(&F::operator())> {};

template <class F>
concept StepOfModule = std::is_invocable_v<F&, nn::Module&, const data::Batch&>;
template <class F>
concept StepOfOwn = !StepOfModule<F> && requires {
  typename StepModel<F>::Type;
};
template <class F>
concept StepOfBatch = !StepOfModule<F> && std::is_invocable_v<F&, const data::Batch&>;

[[noreturn]] void refuse_model(const nn::Module& model, const std::type_info& expected);

template <class R>
StepOutput step_output(R&& result) {
  static_assert(std::is_convertible_v<R, Tensor> || std::is_convertible_v<R, StepOutput>,
                "a step returns a Tensor, the loss, or a train::StepOutput");
  if constexpr (std::is_convertible_v<R, StepOutput>) {
    return std::forward<R>(result);
  } else {
    return {.loss = std::forward<R>(result)};
  }
}

}  // namespace detail

// Any callable of (model, batch) or (batch) that returns a Tensor, the loss, or a StepOutput. The
// model is nn::Module& or a class of your own: a run with a model of another class is an error.
class TrainingStep {
 public:
  TrainingStep() = default;
  TrainingStep(std::nullptr_t) {}  // NOLINT
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, TrainingStep> &&
           (detail::StepOfModule<std::decay_t<F>> || detail::StepOfOwn<std::decay_t<F>> ||
            detail::StepOfBatch<std::decay_t<F>>)) TrainingStep(F&& f)  // NOLINT
      : call_(wrap(std::decay_t<F>(std::forward<F>(f)))) {}

  explicit operator bool() const { return call_ != nullptr; }
  // REQUIRES: it is not empty.
  StepOutput operator()(nn::Module& model, const data::Batch& batch) const {
    return call_(model, batch);
  }

 private:
  using Call = std::function<StepOutput(nn::Module&, const data::Batch&)>;

  template <class F>
  static Call wrap(F f) {
    if constexpr (requires { f == nullptr; }) {
      if (f == nullptr) {
        return nullptr;  // an empty std::function, a null function pointer
      }
    }
    return [f = std::move(f)](nn::Module& model, const data::Batch& batch) mutable {
      if constexpr (detail::StepOfModule<F>) {
        return detail::step_output(f(model, batch));
      } else if constexpr (detail::StepOfOwn<F>) {
        auto* own = dynamic_cast<typename detail::StepModel<F>::Type*>(&model);
        if (!own) {
          detail::refuse_model(model, typeid(typename detail::StepModel<F>::Type));
        }
        return detail::step_output(f(*own, batch));
      } else {
        return detail::step_output(f(batch));
      }
    };
  }

  Call call_;
};

// The default step: cross entropy of the model's logits [N, classes] for the field "labels", with
// the logits as output. The model gets the field "images". Labels that are no integers are an
// error.
StepOutput classification_step(nn::Module& model, const data::Batch& batch);

}  // namespace binade::train
