// The mode limits the algorithms of kernels in this process: BINADE_MODE=fast|precise until set.
//
//   fast      also allows algorithms that round differently from the plain sum: Winograd for 3 x 3
//             convolutions on the CPU (kernels/conv/winograd_internal.h), 2 to 4 times the error of
//             an f32 sum, which for f16 and bf16 is far less than the rounding of the result; and
//             products of bf16 by AVX512-BF16 or AMX if the processor has it. They sum in f32 too,
//             but two elements at a time, and treat subnormal numbers as 0
//             (kernels/gemm/gemm_pairs_internal.h)
//   precise   every result is the sum that the formula says, exact wherever the sum is. f64 and
//             GPUs always compute so
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
// Throws Error unless the name is fast or precise; `source` names the caller in the message.
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
