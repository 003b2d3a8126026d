// Argument checks of cosine similarity, the same on every device.
#pragma once
#include <binade/kernels/reduce/cosine_similarity.h>

namespace binade::kernels {

void check_arguments(const CosineSimilarityForward& a);
void check_arguments(const CosineSimilarityBackward& a);

}  // namespace binade::kernels
