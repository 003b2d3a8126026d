// Reductions by a user's kernel (kernels/base/user_kernel.h).
#include <binade/kernels/reduce/reduce_internal.h>
#include <binade/kernels/user/user_kernels_internal.h>

#include <algorithm>

namespace binade::kernels {

static_assert(BINADE_SUM == int(Reduce::sum) && BINADE_MEAN == int(Reduce::mean) &&
              BINADE_MAX == int(Reduce::max) && BINADE_MIN == int(Reduce::min) &&
              BINADE_PROD == int(Reduce::prod) && BINADE_NORM1 == int(Reduce::norm1) &&
              BINADE_NORM2 == int(Reduce::norm2) && BINADE_NORM_INF == int(Reduce::norm_inf) &&
              BINADE_LOGSUMEXP == int(Reduce::logsumexp) && BINADE_VAR == int(Reduce::var) &&
              BINADE_STD == int(Reduce::std));

namespace {

// The reduced dimensions must be adjacent: [outer, count, inner].
struct ReducedRange {
  int64_t outer = 1, count = 1, inner = 1;
  bool adjacent = true;
};

ReducedRange reduced_range(const ReduceForward& a) {
  ReducedRange range;
  bool begun = false, ended = false;
  for (int d = 0; d < a.x.dim(); ++d) {
    const int64_t size = a.x.sizes[d];
    if (is_reduced(a, d)) {
      range.adjacent = range.adjacent && !ended;
      begun = true;
      range.count *= size;
    } else if (size != 1) {
      ended = begun;
      (begun ? range.inner : range.outer) *= size;
    }
  }
  return range;
}

const char* reduce_refusal(const ReduceForward& a, const ReducedRange& range) {
  return a.aux                                ? "a reduction that keeps more for its gradient"
         : !a.x.contiguous || !a.y.contiguous ? "tensors that are not row-major"
         : !range.adjacent                    ? "reduced dimensions with others between them"
         : !is_floating(a.x.dtype) && a.x.dtype != DType::i64 ? "integers other than i64"
                                                              : nullptr;
}

}  // namespace

bool run_by_user(const ReduceForward& a) {
  if (!has_user_function(UserFunction::reduce_forward, a.y.device)) {
    return false;
  }
  check_arguments(a);
  const ReducedRange range = reduced_range(a);
  if (range.count == 0) {
    return false;
  }
  const View* outputs[] = {&a.y};
  binade_reduce_forward_call arguments{};
  arguments.x = user_tensor(a.x, {range.outer, range.count, range.inner});
  arguments.y = user_tensor(a.y, {range.outer, range.inner});
  arguments.reduction = static_cast<int32_t>(a.op);
  arguments.correction = a.correction;
  return run_user(
      {.function = UserFunction::reduce_forward,
       .decisive = a.x,
       .refused = reduce_refusal(a, range),
       .outputs = outputs,
       .own =
           [&](std::span<const View> out) {
             reduce_forward({.op = a.op, .x = a.x, .y = out[0], .correction = a.correction});
           }},
      arguments);
}

}  // namespace binade::kernels
