// Which implementation of gemm runs on GPUs: process-wide, from BINADE_GEMM until set. On the CPU
// there is one.
//
//   own            our kernels; which one follows from shape, dtype and device, never from timing
//   own:VARIANT    one step of the ladder: naive, tiled, simt, simt_64, simt_128 (register tiles of
//                  64 or 128 squared, or the one that fits), tensor, tensor_64, tensor_128. Tensor
//                  cores take f16 and bf16 (before sm_80 f16); other dtypes run the simt variant.
//   library        cuBLASLt; what it does not do (strides in both dimensions) runs as own
//   auto           the fastest of them, timed once per problem (kernels/base/tuning.h)
#pragma once
#include <cstdint>
#include <string_view>

namespace binade::kernels {

enum class GemmVariant : uint8_t {
  fitting,
  timed,
  naive,
  tiled,
  simt,
  simt_64,
  simt_128,
  tensor,
  tensor_64,
  tensor_128,
  library,
};

// Throws Error, with the valid names, for any other.
void set_gemm_provider(std::string_view name);
std::string_view gemm_provider();
GemmVariant gemm_variant();  // what the provider's name means

}  // namespace binade::kernels
