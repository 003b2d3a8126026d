// Hops of a reduction on the CPU: checks, then one flat loop.
#include <binade/kernels/combine_isa.h>

namespace binade::kernels {
namespace {

void check_operand(const Combine& a, const View& operand, const char* name) {
  const bool wider = is_half(a.x.dtype) && operand.dtype == DType::f32;
  check(operand.contiguous && operand.numel == a.x.numel && (operand.dtype == a.x.dtype || wider),
        "combine: got ", name, " ", operand.dtype, " of ", operand.numel, " elements",
        operand.contiguous ? "" : " (not contiguous)", ", expected ", a.x.numel,
        " contiguous elements of ", a.x.dtype, is_half(a.x.dtype) ? " or f32" : "");
}

}  // namespace

void cpu::combine(const Combine& a) {
  const DType dtype = a.x.dtype;
  const bool integer = dtype == DType::i64 || dtype == DType::i32;
  check(is_floating(dtype) || integer, "combine: got dtype ", dtype,
        ", expected f64, f32, f16, bf16, i64 or i32");
  check(a.x.contiguous, "combine: got x that is not contiguous");
  check(!integer || a.before == 1, "combine: integers are divided after the sum only");
  const bool has_received = static_cast<bool>(a.received);
  if (has_received) {
    check_operand(a, a.received, "received");
  }
  check_operand(a, a.y, "y");
  if (a.x.numel == 0) {
    return;
  }
  const CombineTile what{a.op,      dtype,    has_received ? a.received.dtype : dtype,
                         a.y.dtype, a.before, a.after};
  const auto width = [](const View& view) { return static_cast<int64_t>(size_of(view.dtype)); };
  run_flat({{a.y.data, a.x.data, a.received.data, nullptr},
            {width(a.y), width(a.x), has_received ? width(a.received) : 0, 0},
            {},
            1,
            0},
           a.x.numel, [&](const StridedTile& tile) { combine_tile_best(what, tile); });
}

}  // namespace binade::kernels
