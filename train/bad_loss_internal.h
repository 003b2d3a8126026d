// Errors for a step that gives no loss, or a loss that is not finite. Internal to train.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/train/trainer.h>

namespace binade::train {

// True if no element is infinite or not a number. Reads memory once. Waits for a device.
bool is_finite(const Tensor& t);
// The number of elements that are infinite or not a number.
int64_t count_not_finite(const Tensor& t);
// The sum of the squares of the finite elements, in f64.
double sum_of_squares(const Tensor& t);
// The name of the first tensor that is not finite; empty if there is none.
std::string first_not_finite(const NamedTensors& tensors);
// Describes the first parameter or buffer that is not finite; empty if there is none.
std::string first_bad_tensor(const nn::Module& model);
// For a step whose loss is not finite: describes the first tensor that is not finite, in the batch,
// the model or the results of the step's ops. The ops run again under an AnomalyGuard with the same
// random numbers.
std::string explain_bad_loss(nn::Module& model, const TrainingStep& step, const data::Batch& batch,
                             const Generator& random);
// Throws an error that names `where` unless a step gave the mean loss: one floating number.
void check_mean_loss(const char* where, const Tensor& loss);
// Throws Diverged. `cause` is the text of one of the functions above.
[[noreturn]] void fail_of_bad_loss(double loss, const std::string& where, const std::string& cause);

}  // namespace binade::train
