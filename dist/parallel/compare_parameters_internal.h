// Checks that all ranks hold the same parameters (internal to dist/).
#pragma once
#include <binade/core/tensor/parameter.h>
#include <binade/dist/collective/communicator.h>

namespace binade::dist {

// Collective: compares names, sizes, dtypes and checksums of the values. Throws Error with the rank
// that differs from most and the first parameter in which it differs. `reductions`, for the text,
// is how often gradients were averaged before.
void compare_over_ranks(Communicator& group, const std::vector<Parameter>& parameters,
                        int64_t reductions);

}  // namespace binade::dist
