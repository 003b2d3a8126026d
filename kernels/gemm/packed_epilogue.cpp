#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/packed_epilogue_internal.h>

namespace binade::kernels {
namespace {

int64_t padded(const View& vector) { return vector ? vector.size(0) + kMaxTileWidth : 0; }

// The matrix beside the result; an epilogue has at most one.
const View& operand_of(const Epilogue& e) {
  return e.residual ? e.residual : e.factor ? e.factor : e.slope;
}

}  // namespace

PackedVector::PackedVector(const View& vector)
    : workspace_(static_cast<size_t>(padded(vector)) * size_of(compute_dtype(vector.dtype))) {
  if (vector) {
    copy_strided_best(StridedCopy{.source = vector.data,
                                  .from = vector.dtype,
                                  .to = compute_dtype(vector.dtype),
                                  .source_strides = {0, 0, vector.strides[0]},
                                  .target = workspace_.as<std::byte>(),
                                  .target_strides = {0, padded(vector), 1},
                                  .sizes = {1, 1, vector.size(0)},
                                  .padded_columns = padded(vector)});
  }
}

PackedEpilogue::PackedEpilogue(const Epilogue& epilogue)
    : scale_(epilogue.scale), bias_(epilogue.bias) {
  const View& operand = operand_of(epilogue);
  tile_ = {.scale = scale_.data(),
           .bias = bias_.data(),
           .operand = operand.data,
           .use = epilogue.residual ? TileOperand::residual
                  : epilogue.factor ? TileOperand::factor
                                    : TileOperand::prefetch,
           .accumulate = epilogue.accumulate,
           .relu = epilogue.activation == Activation::relu};
}

}  // namespace binade::kernels
