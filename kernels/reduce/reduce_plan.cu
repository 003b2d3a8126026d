// How the CUDA reductions split a shape; see reduce/reduce_kernels.cuh.
#include <binade/kernels/reduce/reduce_kernels.cuh>

namespace binade::kernels {

using reduction::kEnoughBlocks;
using reduction::kShortRow;
using reduction::kThreads;
using reduction::Loops;
using reduction::ReducePlan;
using reduction::Reduction;

namespace {

// True if vectors of 16 bytes along dimension 0 of `inner` are always aligned.
bool vectors_aligned(const StridedLoop& inner, const StridedLoop& outer, int64_t width) {
  const int64_t per_vector = 16 / width;
  bool aligned = inner.stride(0, 0) == width && inner.size(0) % per_vector == 0 &&
                 reinterpret_cast<uintptr_t>(inner.data(0)) % 16 == 0;
  for (int d = 1; d < inner.dims(); ++d) {
    aligned = aligned && inner.stride(0, d) % 16 == 0;
  }
  for (int d = 0; d < outer.dims() && outer.numel() > 1; ++d) {
    aligned = aligned && outer.stride(0, d) % 16 == 0;
  }
  return aligned;
}

int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

// If there are only `blocks` blocks, splits the sequence into chunks of at least `least` units.
void cut(ReducePlan& p, int64_t blocks, int64_t least) {
  p.chunks = 1;
  p.chunk = p.length;
  if (blocks >= kEnoughBlocks || p.length < 2 * least) {
    return;
  }
  const int64_t useful = p.length / least, wanted = ceil_div(kEnoughBlocks, blocks);
  constexpr int64_t kRounding = 32;  // chunks keep the alignment of the row
  p.chunk = ceil_div(ceil_div(p.length, useful < wanted ? useful : wanted), kRounding) * kRounding;
  p.chunks = ceil_div(p.length, p.chunk);
}

}  // namespace

View reduction::part_of(const Reduction& a, bool reduced) {
  View part = a.x;
  for (int d = 0; d < a.x.dim(); ++d) {
    part.sizes[d] = a.is_reduced(d) == reduced ? a.x.size(d) : 1;
  }
  part.numel = element_count(part.sizes);
  return part;
}

// True if adjacent threads take adjacent outputs; false if the sequence is innermost and long.
bool reduction::takes_columns(const Loops& loops) {
  const StridedLoop &kept = loops.kept, &reduced = loops.reduced;
  if (magnitude(kept.stride(0, 0)) < magnitude(reduced.stride(0, 0))) {
    return kept.numel() > 1 && (kept.size(0) >= 4 || reduced.size(0) < kShortRow);
  }
  return reduced.numel() < kShortRow && kept.numel() >= kShortRow;
}

ReducePlan reduction::plan_of(const Reduction& a, const Loops& loops) {
  ReducePlan p = {.kept = StridedIndex<3>(loops.kept),
                  .reduced = StridedIndex<1>(loops.reduced),
                  .units = loops.kept.numel(),
                  .length = loops.reduced.numel(),
                  .chunks = 1,
                  .chunk = loops.reduced.numel(),
                  .y_stride = loops.kept.stride(1, 0),
                  .terms = 1,
                  .columns = 1,
                  .lanes = 32,
                  .contiguous = false,
                  .out = a.y ? a.y.dtype : a.x.dtype,
                  .reading = a.reading,
                  .partial = nullptr};
  return p;
}

void reduction::plan_rows(const Loops& loops, int64_t width, ReducePlan& p) {
  const int64_t per_vector = 16 / width;
  p.contiguous = loops.reduced.dims() == 1 && loops.reduced.stride(0, 0) == width;
  if (!p.contiguous && vectors_aligned(loops.reduced, loops.kept, width)) {
    p.terms = static_cast<int32_t>(per_vector);
    p.length /= per_vector;
    p.reduced.set_size(0, loops.reduced.size(0) / per_vector);
    p.reduced.stride[0][0] *= per_vector;
  }
  const bool few = p.units * 32 < kEnoughBlocks * kThreads;  // warps would not fill the device
  p.lanes = few && loops.reduced.numel() >= reduction::kLongRow ? kThreads : 32;
  constexpr int64_t kLeastTerms = 4096;
  cut(p, ceil_div(p.units * p.lanes, kThreads), kLeastTerms / p.terms);
}

void reduction::plan_columns(const Loops& loops, int64_t width, bool vectors, ReducePlan& p) {
  if (vectors && vectors_aligned(loops.kept, loops.reduced, width)) {
    const int64_t per_vector = 16 / width;
    p.columns = static_cast<int32_t>(per_vector);
    p.units /= per_vector;
    p.kept.set_size(0, loops.kept.size(0) / per_vector);
    p.kept.stride[0][0] *= per_vector;
    p.kept.stride[1][0] *= per_vector;
  }
  p.lanes = 1;
  while (p.lanes < 32 && p.lanes < p.units) {
    p.lanes *= 2;
  }
  while (p.lanes < kThreads && kThreads / p.lanes > p.length) {
    p.lanes *= 2;
  }
  constexpr int64_t kLeastPerThread = 16;
  cut(p, ceil_div(p.units, p.lanes), kThreads / p.lanes * kLeastPerThread);
}

}  // namespace binade::kernels
