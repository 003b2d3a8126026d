// Errors for what a step gives: no loss, or one that is not finite. Internal to train.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/train/trainer.h>

namespace binade::train {

// The first parameter or buffer that is not finite, as words; empty if there is none.
std::string first_bad_tensor(const nn::Module& model);
// The first tensor that is not finite of a step which gave such a loss: of the batch, the model, or
// of the step's ops, which run again under an AnomalyGuard with the random numbers of before.
std::string explain_bad_loss(nn::Module& model, const TrainingStep& step, const data::Batch& batch,
                             const Generator& random);
// An error of `where` unless a step gave the mean loss: one floating number.
void check_mean_loss(const char* where, const Tensor& loss);
// The error. `cause`: what of the above was found.
[[noreturn]] void fail_of_bad_loss(double loss, const std::string& where, const std::string& cause);

}  // namespace binade::train
