// What the delayed scales of simulated formats remember in a model
// (core/precision/simulated_formats.h). It is not part of Module::state(), since the weights mean
// the same without it; checkpoints have it beside the weights.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/nn/module.h>

namespace binade::nn {

// Copies, of this module and all below; empty without delayed scales.
NamedTensors format_histories(const Module& model);
// Replaces all of it: what is not named begins empty. Throws, and changes nothing, if a tensor has
// another form.
void load_format_histories(const Module& model, const NamedTensors& histories);

}  // namespace binade::nn
