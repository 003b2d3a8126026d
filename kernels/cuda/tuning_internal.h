// Choosing by time among implementations of one operation on a device (kernels/base/tuning.h).
#pragma once
#include <binade/kernels/base/device.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace binade::kernels {

// The index of the candidate for this problem on the device of the kernel call in progress: what
// the table says, else the fastest one now; 0 during a capture. run(i) starts candidate i on the
// current stream and returns false if it does not do this problem; it must be repeatable.
size_t tuned(const std::string& problem, std::span<const std::string_view> candidates,
             const std::function<bool(size_t)>& run);

}  // namespace binade::kernels
