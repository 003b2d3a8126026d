// Finds scores that are probabilities where logits are expected: a softmax of them gives a wrong
// number without any other sign. Internal to train.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string>

namespace binade::train {

// i64 [2]: of the first positions of scores [N, C, ...], how many have numbers from 0 to 1 with the
// sum 1, and how many were looked at. Does not wait for a device.
Tensor probability_rows(const Tensor& scores);

// Throws if all positions that were checked look like probabilities.
void check_logits(const std::string& metric, int64_t like_probabilities, int64_t looked_at,
                  const char* advice);

}  // namespace binade::train
