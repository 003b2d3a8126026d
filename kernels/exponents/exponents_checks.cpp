#include <binade/kernels/exponents/exponents.h>

namespace binade::kernels {
namespace {

void check_counts(const char* op, const View& result, int64_t length) {
  check(result.dtype == DType::i64 && result.dim() == 1 && result.contiguous &&
            result.numel == length,
        op, ": got result ", result.dtype, " ", result.sizes, ", expected a contiguous i64 [",
        length, "]");
}

}  // namespace

void check_arguments(const CountExponents& a) {
  check(is_floating(a.x.dtype) && a.x.contiguous, "count_exponents: got x ", a.x.dtype, " ",
        a.x.sizes, a.x.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous tensor of a floating dtype");
  check_counts("count_exponents", a.result, kExponentCounters);
}

void check_arguments(const CountLostUpdates& a) {
  check(a.before.dtype == DType::f32 && a.before.contiguous, "count_lost_updates: got before ",
        a.before.dtype, " ", a.before.sizes, a.before.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous f32 tensor");
  check(a.after.dtype == DType::f32 && a.after.contiguous && a.after.sizes == a.before.sizes,
        "count_lost_updates: got after ", a.after.dtype, " ", a.after.sizes,
        a.after.contiguous ? "" : " (not contiguous)", ", expected f32 like before ",
        a.before.sizes);
  check_counts("count_lost_updates", a.result, 3);
}

}  // namespace binade::kernels
