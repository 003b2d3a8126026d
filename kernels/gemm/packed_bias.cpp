#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/packed_bias_internal.h>

namespace binade::kernels {
namespace {

int64_t padded(const View& bias) { return bias ? bias.size(0) + kMaxTileWidth : 0; }

}  // namespace

PackedBias::PackedBias(const View& bias)
    : workspace_(static_cast<size_t>(padded(bias)) * size_of(compute_dtype(bias.dtype))) {
  if (bias) {
    copy_strided_best(StridedCopy{.source = bias.data,
                                  .from = bias.dtype,
                                  .to = compute_dtype(bias.dtype),
                                  .source_strides = {0, 0, bias.strides[0]},
                                  .target = workspace_.as<std::byte>(),
                                  .target_strides = {0, padded(bias), 1},
                                  .sizes = {1, 1, bias.size(0)},
                                  .padded_columns = padded(bias)});
  }
}

}  // namespace binade::kernels
