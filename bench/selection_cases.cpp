// Cases of the kernels that select, interpolate and compare with a number.
#include <bench/kernel_cases.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/pointwise/ternary.h>

namespace binade::bench {
namespace {

// A mask that is true where a random number is positive.
const View& random_mask(const Shared& o, const Dims& sizes) {
  const View &x = o->random(DType::f32, sizes), &mask = o->empty(DType::boolean, sizes);
  kernels::compare_forward(
      {.op = kernels::Compare::gt, .a = x, .b = kNoView, .y = mask, .number = 0});
  return mask;
}

Prepared where(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &mask = random_mask(o, {rows, cols}), &a = o->random(dtype, {rows, cols}),
             &b = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::where_forward({.condition = mask, .a = a, .b = b, .y = y}); },
          bytes_of(mask, a, b, y), 0};
}

Prepared masked_fill(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &mask = random_mask(o, {rows, cols}), &x = o->random(dtype, {rows, cols}),
             &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::where_forward({.condition = mask, .a = kNoView, .b = x, .y = y}); },
          bytes_of(mask, x, y), 0};
}

Prepared lerp(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &a = o->random(dtype, {rows, cols}), &b = o->random(dtype, {rows, cols}),
             &weight = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::lerp_forward({.a = a, .b = b, .weight = weight, .y = y}); },
          bytes_of(a, b, weight, y), 0};
}

Prepared compare_number(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(DType::boolean, {rows, cols});
  return {o,
          [&] {
            kernels::compare_forward(
                {.op = kernels::Compare::gt, .a = x, .b = kNoView, .y = y, .number = 0});
          },
          bytes_of(x, y), 0};
}

}  // namespace

std::vector<KernelCase> selection_cases() {
  return {{"where", kMatrix, where},
          {"masked_fill", kMatrix, masked_fill},
          {"lerp", kMatrix, lerp},
          {"compare_number", kMatrix, compare_number}};
}

}  // namespace binade::bench
