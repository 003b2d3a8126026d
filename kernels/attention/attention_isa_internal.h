// Steps of attention on one tile of scores in the compute type: rows are queries, columns adjacent
// keys. Query `i` of a causal tile sees its first visible + i columns.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

struct AttentionTile {
  DType compute = DType::f32;
  int64_t rows = 0, cols = 0, row_stride = 0;  // of scores, bias and gradients
  bool causal = false;
  int64_t visible = 0;
  const void* bias = nullptr;  // added to the scaled scores; may be null
  double scale = 1;
};

// scores: q k^T in, exp(s - max) out. Adds the tile to the running maximum and sum of each row and
// rescales the accumulated rows.
struct AttentionSoftmax {
  AttentionTile tile;
  void* scores;
  void* max;          // [rows]
  void* sum;          // [rows]
  void* accumulated;  // [rows, width]
  int64_t width;
};

// scores: q k^T in, p = exp(s - lse) out. gradients: dp = dout v^T in, ds = p (dp - delta) out.
struct AttentionGradient {
  AttentionTile tile;
  void* scores;
  void* gradients;
  const void* lse;    // [rows]
  const void* delta;  // [rows]
};

// delta = sum(dout out) of some rows, each of `width` adjacent elements; strides in elements.
struct AttentionDelta {
  DType dtype;
  const void* out;
  const void* dout;
  int64_t out_stride, dout_stride;
  int64_t rows, width;
  void* delta;  // [rows], compute type
};

BINADE_ISA_KERNEL(attention_delta, const AttentionDelta& a)
BINADE_ISA_KERNEL(attention_softmax, const AttentionSoftmax& a)
BINADE_ISA_KERNEL(attention_gradient, const AttentionGradient& a)

}  // namespace binade::kernels
