// CPU pointwise kernels: checks, one flat loop if all operands are row-major with the same sizes,
// else a coalesced strided loop. The bodies are in unary_isa.cpp and binary_isa.cpp.
#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/pointwise/pointwise_internal.h>
#include <binade/kernels/pointwise/pointwise_isa_internal.h>

namespace binade::kernels::cpu {
namespace {

StridedTile flat_tile(const View& y, const View& a, const View& b) {
  const auto width = static_cast<int64_t>(size_of(a.dtype));
  return {{y.data, a.data, b.data, nullptr},
          {static_cast<int64_t>(size_of(y.dtype)), width, width, 0},
          {0, 0, 0, 0},
          1,
          0};
}

// Arithmetic on a few elements: the path to the vector loops would cost more than the work. It is
// one IEEE operation per element, so the bits are the same.
constexpr int64_t kFewElements = 16;

template <class T>
bool few_elements(const BinaryForward& a) {
  const T *x = a.a.as<T>(), *z = a.b.as<T>();
  T* y = a.y.as<T>();
  const int64_t n = a.y.numel;
  switch (a.op) {
    case Binary::add:
      for (int64_t i = 0; i < n; ++i)
        y[i] = x[i] + z[i];
      return true;
    case Binary::sub:
      for (int64_t i = 0; i < n; ++i)
        y[i] = x[i] - z[i];
      return true;
    case Binary::mul:
      for (int64_t i = 0; i < n; ++i)
        y[i] = x[i] * z[i];
      return true;
    case Binary::div:
      for (int64_t i = 0; i < n; ++i)
        y[i] = x[i] / z[i];
      return true;
    default: return false;
  }
}

[[gnu::noinline]] void binary_forward_tiles(const BinaryForward& a, bool plain) {
  if (!plain) {
    check_arguments(a);
  }
  const auto body = [&](const StridedTile& tile) {
    binary_forward_tile_best(a.op, a.y.dtype, tile);
  };
  if (plain || all_flat(a.y, a.a, a.b)) {
    return run_flat(flat_tile(a.y, a.a, a.b), a.y.numel, body);
  }
  StridedLoop("binary_forward", {&a.y, &a.a, &a.b}).run(body);
}

}  // namespace

void unary_forward(const UnaryForward& a) {
  const Unary op = simplified(a.op, a.alpha);
  const auto body = [&](const StridedTile& tile) {
    unary_forward_tile_best(op, a.y.dtype, a.alpha, a.beta, tile);
  };
  if (is_plain(a.y, a.x)) [[likely]] {
    return run_flat(flat_tile(a.y, a.x, a.x), a.y.numel, body);
  }
  check_arguments(a);
  StridedLoop("unary_forward", {&a.y, &a.x}).run(body);
}

void unary_forward_slope(const UnaryForwardSlope& a) {
  check(has_slope(a.op) && a.y.dtype == DType::f32 && all_flat(a.y, a.x, a.slope) &&
            a.x.dtype == DType::f32 && a.slope.dtype == DType::f32,
        "unary_forward_slope: got ", to_string(a.op), " of ", a.x.dtype, " ", a.x.sizes, " to ",
        a.y.dtype, " ", a.y.sizes, " and ", a.slope.dtype, " ", a.slope.sizes,
        ", expected gelu or gelu_tanh of row-major f32 views of one size");
  run_flat(flat_tile(a.y, a.x, a.slope), a.y.numel,
           [&](const StridedTile& tile) { unary_slope_tile_best(a.op, tile); });
}

void unary_backward(const UnaryBackward& a) {
  const Unary op = simplified(a.op, a.alpha);
  const auto body = [&](const StridedTile& tile) {
    unary_backward_tile_best(op, a.dx.dtype, a.alpha, a.beta, tile);
  };
  if (is_plain(a.dx, a.saved, a.dy)) [[likely]] {
    return run_flat(flat_tile(a.dx, a.saved, a.dy), a.dx.numel, body);
  }
  check_arguments(a);
  StridedLoop("unary_backward", {&a.dx, &a.saved, &a.dy}).run(body);
}

void binary_forward(const BinaryForward& a) {
  const DType dtype = a.y.dtype;
  const bool plain = is_plain(a.y, a.a, a.b);
  if (plain && a.y.numel <= kFewElements &&
      ((dtype == DType::f32 && few_elements<float>(a)) ||
       (dtype == DType::f64 && few_elements<double>(a)))) {
    return;
  }
  binary_forward_tiles(a, plain);
}

void binary_backward(const BinaryBackward& a) {
  const BinarySaved saved = checked_operands(a);
  const View* wanted[2] = {&a.da, &a.db};
  for (int which = 0; which < 2; ++which) {
    const View& out = *wanted[which];
    if (!out) {
      continue;
    }
    StridedLoop("binary_backward", {&out, &saved.a, &saved.b, &a.dy})
        .run([&](const StridedTile& tile) {
          binary_backward_tile_best(a.op, which, a.dy.dtype, tile);
        });
  }
}

void compare_forward(const CompareForward& a) {
  check_arguments(a);
  uint64_t bits = bits_of(a.a.dtype, a.number);
  const View number = view_of(&bits, a.a.dtype, {});
  const View& b = is_absent(a.b) ? number : a.b;
  const auto body = [&](const StridedTile& tile) { compare_tile_best(a.op, a.a.dtype, tile); };
  if (all_flat(a.y, a.a, b)) {
    return run_flat(flat_tile(a.y, a.a, b), a.y.numel, body);
  }
  StridedLoop("compare_forward", {&a.y, &a.a, &b}).run(body);
}

}  // namespace binade::kernels::cpu
