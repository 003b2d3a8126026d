#include <binade/core/ops.h>
#include <binade/data/loader.h>
#include <binade/nn/module_walk_internal.h>
#include <binade/train/step.h>

namespace binade::train {

void detail::refuse_model(const nn::Module& model, const std::type_info& expected) {
  fail("trainer: got a model of class ", nn::class_name(model), " for a step that takes ",
       nn::class_name(expected), "; give the Trainer such a model, or the step nn::Module&");
}

StepOutput classification_step(nn::Module& model, const data::Batch& batch) {
  const Tensor& labels = batch.labels;
  if (!batch.images.defined() || !labels.defined()) {
    std::string names;
    for (const std::string& name : batch.names()) {
      names.append(names.empty() ? "" : ", ").append(name);
    }
    fail(
        "trainer: got a batch with the fields ", names,
        ", expected images and labels for the default step, a classification; rename them, or give "
        "TrainerOptions::step");
  }
  check(
      !labels.defined() || !is_floating(labels.dtype()), "trainer: got labels of dtype ",
      labels.defined() ? labels.dtype() : DType::f32,
      " for a classification, expected integers, the numbers of the classes; for another task give "
      "TrainerOptions::step");
  const Tensor logits = model(batch.images);
  return {.loss = cross_entropy(logits, labels), .output = logits};
}

}  // namespace binade::train
