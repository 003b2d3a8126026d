// Chooses among implementations of one operation on a device by timing (kernels/base/tuning.h).
#pragma once
#include <binade/kernels/base/device.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace binade::kernels {

// The index of the candidate for this problem on the device of the kernel call in progress: the one
// that the table names, else the one that is fastest now; 0 during a capture. run(i) starts
// candidate i on the current stream, or returns false if it cannot do this problem; it must be
// repeatable.
size_t tuned(const std::string& problem, std::span<const std::string_view> candidates,
             const std::function<bool(size_t)>& run);

}  // namespace binade::kernels
