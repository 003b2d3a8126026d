#include <binade/kernels/formats/formats.h>

namespace binade::kernels {
namespace {

void check_floating_rows(const char* op, const char* name, const View& view) {
  check(is_floating(view.dtype) && view.contiguous, op, ": got ", name, " ", view.dtype, " ",
        view.sizes, view.contiguous ? "" : " (not contiguous)",
        ", expected a contiguous tensor of a floating dtype");
}

void check_like(const char* op, const View& y, const View& x) {
  check(y.dtype == x.dtype && y.contiguous && y.sizes == x.sizes, op, ": got y ", y.dtype, " ",
        y.sizes, y.contiguous ? "" : " (not contiguous)", ", expected ", x.dtype, " ", x.sizes);
}

void check_one(const char* op, const char* name, const View& view, DType dtype) {
  check(!view || (view.dtype == dtype && view.numel == 1), op, ": got ", name, " ", view.dtype, " ",
        view.sizes, ", expected one ", dtype);
}

}  // namespace

void check_arguments(const RoundToFormat& a) {
  constexpr const char* kOp = "round_to_format";
  check_floating_rows(kOp, "x", a.x);
  check_like(kOp, a.y, a.x);
  check_one(kOp, "advance", a.advance, DType::i64);
  check_one(kOp, "scale", a.scale, DType::f32);
}

void check_arguments(const RoundBlocks& a) {
  constexpr const char* kOp = "round_blocks";
  check_floating_rows(kOp, "x", a.x);
  check_like(kOp, a.y, a.x);
  check_one(kOp, "advance", a.advance, DType::i64);
  check_one(kOp, "scale", a.scale, DType::f32);
  check(a.block > 0, kOp, ": got a block of ", a.block, ", expected a positive number");
  const bool divides = a.length > 0 && a.inner > 0 && a.x.numel % (a.length * a.inner) == 0;
  check(a.x.numel == 0 || divides, kOp, ": got ", a.x.numel, " elements as [outer, ", a.length,
        ", ", a.inner, "], expected a multiple of their product");
}

void check_arguments(const AccumulateMatmul& a) {
  constexpr const char* kOp = "accumulate_matmul";
  check_floating_rows(kOp, "a", a.a);
  check_floating_rows(kOp, "b", a.b);
  check(a.a.dim() == 2 && a.b.dim() == 2 && a.a.size(1) == a.b.size(0) && a.a.dtype == a.b.dtype,
        kOp, ": got a ", a.a.dtype, " ", a.a.sizes, " and b ", a.b.dtype, " ", a.b.sizes,
        ", expected [m, k] and [k, n] of one dtype");
  check(a.y.dtype == a.a.dtype && a.y.contiguous && a.y.sizes == Dims({a.a.size(0), a.b.size(1)}),
        kOp, ": got y ", a.y.dtype, " ", a.y.sizes, ", expected ", a.a.dtype, " [", a.a.size(0),
        ", ", a.b.size(1), "]");
  check(a.chunk > 0, kOp, ": got a chunk of ", a.chunk, ", expected a positive number");
  check_one(kOp, "advance", a.advance, DType::i64);
}

}  // namespace binade::kernels
