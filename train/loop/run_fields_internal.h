// The numbers of a run as text, in the manifest of a checkpoint. Internal to train.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/train/loop/run_parts_internal.h>
#include <binade/train/run_state_internal.h>

#include <map>
#include <string>

namespace binade::train {

using RunFields = std::map<std::string, std::string>;

// The state, and the scalars of all parts and of the calling thread's generator.
RunFields fields_of(const RunState& state, const RunParts& parts, int ranks);
// The state. Checks all fields, and throws before anything is changed.
RunState state_of(const RunFields& fields, const RunParts& parts, int ranks);

// A count of the manifest, at least `low`. Throws if it is no such number, as the others.
int64_t count_of(const RunFields& fields, const std::string& name, int64_t low = 0);
Generator random_of(const RunFields& fields);
// The numbers whose names begin with the prefix, without it.
optim::NamedScalars scalars_of(const RunFields& fields, const std::string& prefix);

}  // namespace binade::train
