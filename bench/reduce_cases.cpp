// Cases of reductions, running sums and sorts.
#include <bench/kernel_cases.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/reduce/reduce.h>
#include <binade/kernels/sort/cumprod.h>
#include <binade/kernels/sort/cumsum.h>
#include <binade/kernels/sort/sort.h>

namespace binade::bench {
namespace {

using kernels::Reduce;

// kDim is the reduced dimension: 1 reduces rows, 0 columns.
template <Reduce kOp, int kDim>
Prepared reduce(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}),
             &y = o->empty(dtype, kDim == 1 ? Dims{rows, 1} : Dims{1, cols});
  return {o, [&] { kernels::reduce_forward({.op = kOp, .x = x, .y = y}); }, bytes_of(x, y), 0};
}

Prepared reduce_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const DType wide = compute_dtype(dtype);
  const View &x = o->random(dtype, {rows, cols}), &a = o->random(wide, {rows, 1}),
             &b = o->random(DType::f64, {rows, 1}), &dx = o->empty(dtype, {rows, cols});
  return {o,
          [&] {
            kernels::reduce_backward(
                {.op = kernels::ReduceSlope::deviation, .x = x, .a = a, .b = b, .dx = dx});
          },
          bytes_of(x, a, b, dx), 0};
}

template <int kDim>
Prepared cumsum(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::cumsum({.x = x, .y = y, .dim = kDim}); }, bytes_of(x, y), 0};
}

template <int kDim>
Prepared cumprod(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::cumprod_forward({.x = x, .y = y, .dim = kDim}); }, bytes_of(x, y), 0};
}

template <int kDim>
Prepared cumprod_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &dy = o->random(dtype, {rows, cols}),
             &dx = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::cumprod_backward({.x = x, .dy = dy, .dx = dx, .dim = kDim}); },
          bytes_of(x, dy, dx), 0};
}

Prepared sort(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &values = o->empty(dtype, {rows, cols}),
             &indices = o->empty(DType::i64, {rows, cols});
  return {o, [&] { kernels::sort({.x = x, .values = values, .indices = indices, .dim = 1}); },
          bytes_of(x, values, indices), 0};
}

Prepared topk(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const Dims few = {rows, cols < 16 ? cols : 16};
  const View &x = o->random(dtype, {rows, cols}), &values = o->empty(dtype, few),
             &indices = o->empty(DType::i64, few);
  return {o, [&] { kernels::topk({.x = x, .values = values, .indices = indices, .dim = 1}); },
          bytes_of(x, values, indices), 0};
}

Prepared scatter(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &dy = o->random(dtype, {rows, 1}), &index = o->zeros(DType::i64, {rows, 1}),
             &dx = o->empty(dtype, {rows, cols});
  return {o,
          [&] {
            kernels::fill({.y = dx, .value = 0});
            kernels::scatter(
                {.op = "bench", .index = index, .src = dy, .y = dx, .dim = 1, .distinct = true});
          },
          bytes_of(dy, index, dx), 0};
}

Prepared argmax(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(DType::i64, {rows});
  return {o, [&] { kernels::argmax({.x = x, .y = y, .dim = 1}); }, bytes_of(x, y), 0};
}

}  // namespace

std::vector<KernelCase> reduce_cases() {
  return {
      {"reduce_sum_rows", kMatrix, reduce<Reduce::sum, 1>},
      {"reduce_sum_columns", kMatrix, reduce<Reduce::sum, 0>},
      {"reduce_var_rows", kMatrix, reduce<Reduce::var, 1>},
      {"reduce_var_columns", kMatrix, reduce<Reduce::var, 0>},
      {"reduce_norm_rows", kMatrix, reduce<Reduce::norm2, 1>},
      {"reduce_logsumexp_rows", kMatrix, reduce<Reduce::logsumexp, 1>},
      {"reduce_backward", kMatrix, reduce_backward},
      {"argmax", kMatrix, argmax},
      {"cumsum_rows", kMatrix, cumsum<1>},
      {"cumsum_columns", kMatrix, cumsum<0>},
      {"cumprod_rows", kMatrix, cumprod<1>},
      {"cumprod_columns", kMatrix, cumprod<0>},
      {"cumprod_backward_rows", kMatrix, cumprod_backward<1>},
      {"cumprod_backward_columns", kMatrix, cumprod_backward<0>},
      {"sort", kMatrix, sort},
      {"topk", "the 16 largest of each row of rows x cols elements", topk},
      {"scatter", "one element into each row of rows x cols", scatter},
  };
}

}  // namespace binade::bench
