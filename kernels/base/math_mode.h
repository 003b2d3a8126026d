// Which algorithms kernels may choose: process-wide, from BINADE_MODE=fast|precise until set.
//
//   fast      also those whose rounding differs from that of the plain sum: Winograd for 3 x 3
//             convolutions on the CPU (kernels/conv/winograd_internal.h), 2 to 4 times the error of
//             an f32 sum, which for f16 and bf16 is far less than the rounding of the result; and
//             products of bf16 by AVX512-BF16 or AMX where the processor has it, which sum in f32
//             as well, but two elements at a time, and take subnormal numbers for 0
//             (kernels/gemm/gemm_pairs_internal.h)
//   precise   every result is the sum that the formula says, exact wherever the sum is. What f64
//             always does, and GPUs
//
// In both modes the choice follows from shapes, never from timing or threads: results repeat
// bit for bit.
#pragma once
#include <cstdint>
#include <string_view>

namespace binade::kernels {

enum class MathMode : uint8_t { fast, precise };

MathMode math_mode();
void set_math_mode(MathMode mode);

const char* to_string(MathMode mode);
// Throws Error unless the name is fast or precise; `source` names who asks.
MathMode parse_math_mode(std::string_view name, const char* source);

// Sets a mode until the end of a scope.
class MathModeGuard {
 public:
  explicit MathModeGuard(MathMode mode) : before_(math_mode()) { set_math_mode(mode); }
  ~MathModeGuard() { set_math_mode(before_); }
  MathModeGuard(const MathModeGuard&) = delete;
  MathModeGuard& operator=(const MathModeGuard&) = delete;

 private:
  MathMode before_;
};

}  // namespace binade::kernels
