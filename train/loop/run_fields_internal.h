// The numbers of a run as text, in the manifest of a checkpoint. Internal to train.
#pragma once
#include <binade/train/checkpoint/fields_internal.h>
#include <binade/train/loop/run_parts_internal.h>
#include <binade/train/run_state_internal.h>

namespace binade::train {

using RunFields = manifest::Fields;
inline constexpr const char* kRandom = "random_";  // the prefix of the generator's fields

// The state, and the scalars of all parts and of the calling thread's generator.
RunFields fields_of(const RunState& state, const RunParts& parts, int ranks);
// The state. Checks all fields, and throws before anything is changed.
RunState state_of(const RunFields& fields, const RunParts& parts, int ranks);

}  // namespace binade::train
