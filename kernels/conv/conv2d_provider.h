// Which implementation of conv2d runs: process-wide, from BINADE_CONV2D until set.
//
//   own            our kernels; which one follows from shape, dtype and device, never from timing;
//                  on the CPU also from the mode (math_mode.h)
//   own:VARIANT    one of them. On the CPU: direct (sums over padded images), or winograd where it
//                  can compute the call (winograd_internal.h), else direct. On GPUs: direct (one
//                  thread per output element), or implicit GEMM as simt, simt_64, simt_128
//                  (register tiles of 64 or 128 squared, or the one that fits), tensor, tensor_64,
//                  tensor_128. Tensor cores take f16 and bf16 (before sm_80 f16); other dtypes run
//                  the simt variant. Tiles that cannot index a call leave it to direct. A variant
//                  that a device does not have is own there.
//   library        cuDNN: an error, this build has none
//   auto           the fastest of them, timed once per problem (kernels/base/tuning.h)
#pragma once
#include <cstdint>
#include <string_view>

namespace binade::kernels {

enum class Conv2dVariant : uint8_t {
  fitting,
  timed,
  direct,
  winograd,
  simt,
  simt_64,
  simt_128,
  tensor,
  tensor_64,
  tensor_128,
  library,
};

// Throws Error, with the valid names, for any other.
void set_conv2d_provider(std::string_view name);
std::string_view conv2d_provider();
Conv2dVariant conv2d_variant();  // what the provider's name means

}  // namespace binade::kernels
