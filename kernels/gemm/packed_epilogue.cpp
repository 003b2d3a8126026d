#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/packed_epilogue_internal.h>

namespace binade::kernels {
namespace {

int64_t padded(const View& vector) { return vector ? vector.size(0) + kMaxTileWidth : 0; }
size_t padded_bytes(const View& vector) {
  return static_cast<size_t>(padded(vector)) * size_of(compute_dtype(vector.dtype));
}

// Packs a vector [columns] of any stride; null if it is undefined.
const std::byte* pack(const View& vector, std::byte* target) {
  if (!vector) {
    return nullptr;
  }
  copy_strided_best(StridedCopy{.source = vector.data,
                                .from = vector.dtype,
                                .to = compute_dtype(vector.dtype),
                                .source_strides = {0, 0, vector.strides[0]},
                                .target = target,
                                .target_strides = {0, padded(vector), 1},
                                .sizes = {1, 1, vector.size(0)},
                                .padded_columns = padded(vector)});
  return target;
}

// The matrix operand of the epilogue; an epilogue has at most one.
const View& operand_of(const Epilogue& e) {
  return e.residual ? e.residual : e.factor ? e.factor : e.slope;
}

}  // namespace

PackedEpilogue::PackedEpilogue(const Epilogue& e)
    : workspace_(padded_bytes(e.bias) + padded_bytes(e.scale)),
      tile_{.scale = pack(e.scale, workspace_.as<std::byte>() + padded_bytes(e.bias)),
            .bias = pack(e.bias, workspace_.as<std::byte>()),
            .operand = operand_of(e).data,
            .use = e.residual ? TileOperand::residual
                   : e.factor ? TileOperand::factor
                              : TileOperand::prefetch,
            .accumulate = e.accumulate,
            .relu = e.activation == Activation::relu} {}

}  // namespace binade::kernels
