#pragma once
#include <binade/kernels/base/host_device.h>

#include <cstdint>

namespace binade::kernels {

// a / b rounded up; a >= 0, b > 0.
BINADE_HD constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace binade::kernels
