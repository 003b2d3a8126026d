// CPU kernels that are limited by memory traffic or visit every element, on 16 million f32 elements
// (some on 4 or 1 million), with the output already allocated: activations, norms, softmax,
// reductions, random, index and sort kernels, attention. `roof/copy` is memcpy, the reference for
// the others. Each input and output counts once in the bytes. bench/peers/elementwise.py compares
// with PyTorch.
//
//     elementwise_bench [--benchmark_filter=^gelu/]
#include <benchmark/benchmark.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/attention/attention.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/loss/cross_entropy.h>
#include <binade/kernels/norm/group_norm.h>
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/random/random.h>
#include <binade/kernels/reduce/reduce.h>
#include <binade/kernels/softmax/softmax.h>
#include <binade/kernels/sort/cumsum.h>
#include <binade/kernels/sort/sort.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>

namespace binade {
namespace {

using kernels::Binary;
using kernels::Unary;

struct Work {
  double bytes;
  std::function<void()> run;
};

double bytes_of(std::initializer_list<Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors) {
    bytes += double(t.numel()) * double(size_of(t.dtype()));
  }
  return bytes;
}

Tensor uniform(const Dims& sizes) {
  Tensor t = empty(sizes);
  fill_uniform(t, -3, 3);
  return t;
}

Tensor numbers_below(const Dims& sizes, double bound) {
  Tensor t = empty(sizes);
  fill_uniform(t, 0, bound - 0.5);
  return t.to(DType::i64);
}

const Dims kFlat{4096, 4096}, kRows{16384, 1024}, kFew{4096, 1024};

Work roof_copy() {
  const Tensor x = uniform(kFlat), y = uniform(kFlat);
  return {bytes_of({x, y}), [x, y] {
            std::memcpy(View(y).data, View(x).data, static_cast<size_t>(x.numel()) * sizeof(float));
          }};
}
Work copy() {
  const Tensor x = uniform(kFlat), y = uniform(kFlat);
  return {bytes_of({x, y}), [x, y] { kernels::copy({.x = x, .y = y}); }};
}
Work transpose() {
  const Tensor x = uniform(kFlat), y = uniform(kFlat);
  return {bytes_of({x, y}), [x = x.transpose(0, 1), y] { kernels::copy({.x = x, .y = y}); }};
}
Work unary(Unary op) {
  const Tensor x = uniform(kFlat), y = uniform(kFlat);
  return {bytes_of({x, y}), [=] { kernels::unary_forward({.op = op, .x = x, .y = y}); }};
}
Work unary_backward(Unary op) {
  const Tensor x = uniform(kFlat), dy = uniform(kFlat), dx = uniform(kFlat);
  return {bytes_of({x, dy, dx}),
          [=] { kernels::unary_backward({.op = op, .saved = x, .dy = dy, .dx = dx}); }};
}
Work binary(Binary op) {
  const Tensor a = uniform(kFlat), b = uniform(kFlat), y = uniform(kFlat);
  return {bytes_of({a, b, y}),
          [=] { kernels::binary_forward({.op = op, .a = a, .b = b, .y = y}); }};
}
Work add_in_place() {
  const Tensor x = uniform(kFlat), y = uniform(kFlat);
  return {bytes_of({x, y, y}), [=] { kernels::add_into({.x = x, .y = y}); }};
}
Work add_bias() {
  const Tensor x = uniform(kRows), b = uniform({1024}), y = uniform(kRows);
  return {bytes_of({x, y}),
          [=] { kernels::binary_forward({.op = Binary::add, .a = x, .b = b, .y = y}); }};
}

Work softmax(bool log) {
  const Tensor x = uniform(kRows), y = uniform(kRows);
  return {bytes_of({x, y}),
          [=] { kernels::softmax_forward({.x = x, .y = y, .dim = 1, .log = log}); }};
}
Work softmax_backward(bool log) {
  const Tensor y = binade::softmax(uniform(kRows), 1), dy = uniform(kRows), dx = uniform(kRows);
  return {bytes_of({y, dy, dx}),
          [=] { kernels::softmax_backward({.y = y, .dy = dy, .dx = dx, .dim = 1, .log = log}); }};
}
Work layer_norm(bool with_mean) {
  const Tensor x = uniform(kRows), y = uniform(kRows), w = uniform({1024}), b = uniform({1024}),
               mean = uniform({16384}), rstd = uniform({16384});
  return {bytes_of({x, y}), [=] {
            kernels::layer_norm_forward({.x = x,
                                         .weight = w,
                                         .bias = with_mean ? View(b) : kNoView,
                                         .y = y,
                                         .mean = with_mean ? View(mean) : kNoView,
                                         .rstd = rstd,
                                         .eps = 1e-5});
          }};
}
Work layer_norm_backward(bool with_mean) {
  const Tensor x = uniform(kRows), dy = uniform(kRows), dx = uniform(kRows), w = uniform({1024}),
               dw = uniform({1024}), db = uniform({1024}), mean = zeros({16384}),
               rstd = ones({16384});
  return {bytes_of({x, dy, dx}), [=] {
            kernels::layer_norm_backward({.x = x,
                                          .dy = dy,
                                          .weight = w,
                                          .mean = with_mean ? View(mean) : kNoView,
                                          .rstd = rstd,
                                          .dx = dx,
                                          .dweight = dw,
                                          .dbias = with_mean ? View(db) : kNoView});
          }};
}
const Dims kImages{32, 128, 64, 64};
Work group_norm() {
  const Tensor x = uniform(kImages), y = uniform(kImages), w = uniform({128}), b = uniform({128}),
               mean = uniform({32, 32}), rstd = uniform({32, 32});
  return {bytes_of({x, y}), [=] {
            kernels::group_norm_forward(
                {.x = x, .weight = w, .bias = b, .y = y, .mean = mean, .rstd = rstd, .eps = 1e-5});
          }};
}
Work group_norm_backward() {
  const Tensor x = uniform(kImages), dy = uniform(kImages), dx = uniform(kImages),
               w = uniform({128}), dw = uniform({128}), db = uniform({128}), mean = zeros({32, 32}),
               rstd = ones({32, 32});
  return {bytes_of({x, dy, dx}), [=] {
            kernels::group_norm_backward({.x = x,
                                          .dy = dy,
                                          .weight = w,
                                          .mean = mean,
                                          .rstd = rstd,
                                          .dx = dx,
                                          .dweight = dw,
                                          .dbias = db});
          }};
}
Work cross_entropy() {
  const Tensor x = uniform(kRows), target = numbers_below({16384}, 1024), loss = zeros({16384}),
               weight = zeros({16384}), lse = zeros({16384});
  return {bytes_of({x}), [=] {
            kernels::cross_entropy_forward({.logits = x,
                                            .target = target,
                                            .weight = kNoView,
                                            .row_loss = loss,
                                            .row_weight = weight,
                                            .lse = lse,
                                            .ignore_index = -100,
                                            .label_smoothing = 0});
          }};
}
Work cross_entropy_backward() {
  const Tensor x = uniform(kRows), dx = uniform(kRows), target = numbers_below({16384}, 1024),
               scale = ones({16384}), lse = full({16384}, 7);
  return {bytes_of({x, dx}), [=] {
            kernels::cross_entropy_backward({.logits = x,
                                             .target = target,
                                             .weight = kNoView,
                                             .lse = lse,
                                             .row_scale = scale,
                                             .dlogits = dx,
                                             .ignore_index = -100,
                                             .label_smoothing = 0});
          }};
}

Work reduce(kernels::Reduce op, const Dims& y_sizes) {
  const Tensor x = uniform(kRows), y = uniform(y_sizes);
  return {bytes_of({x}), [=] { kernels::reduce_forward({.op = op, .x = x, .y = y}); }};
}
Work argmax() {
  const Tensor x = uniform(kRows), y = numbers_below({16384}, 2);
  return {bytes_of({x}), [=] { kernels::argmax({.x = x, .y = y, .dim = 1}); }};
}
Work dropout() {
  const Tensor x = uniform(kFlat), y = uniform(kFlat);
  return {bytes_of({x, y}),
          [=] { kernels::dropout({.x = x, .y = y, .p = 0.1, .seed = 1, .offset = 0}); }};
}

Work gather(int dim) {
  const Tensor x = uniform(kFew), y = uniform(kFew), index = numbers_below(kFew, double(kFew[dim]));
  return {bytes_of({x, y, index}),
          [=] { kernels::gather({.op = "gather", .x = x, .index = index, .y = y, .dim = dim}); }};
}
Work scatter_add(int dim) {
  const Tensor src = uniform(kFew), y = uniform(kFew),
               index = numbers_below(kFew, double(kFew[dim]));
  return {
      bytes_of({src, y, y, index}), [=] {
        kernels::scatter_add({.op = "scatter_add", .index = index, .src = src, .y = y, .dim = dim});
      }};
}
// Copies whole rows: index_select, and the gradient of an embedding.
Work index_select() {
  const Tensor x = uniform(kFew), y = uniform(kFew), index = numbers_below({4096, 1}, 4096);
  return {bytes_of({x, y}), [=, shared = expand(index, kFew)] {
            kernels::gather({.op = "index_select", .x = x, .index = shared, .y = y, .dim = 0});
          }};
}
Work embedding_backward() {
  const Tensor src = uniform(kFew), y = uniform(kFew), index = numbers_below({4096, 1}, 4096);
  return {
      bytes_of({src, y, y}), [=, shared = expand(index, kFew)] {
        kernels::fill({.y = y, .value = 0});
        kernels::scatter_add({.op = "embedding", .index = shared, .src = src, .y = y, .dim = 0});
      }};
}
Work cumsum(int dim) {
  const Tensor x = uniform(kFew), y = uniform(kFew);
  return {bytes_of({x, y}), [=] { kernels::cumsum({.x = x, .y = y, .dim = dim}); }};
}
Work sort(const Dims& sizes) {
  const Tensor x = uniform(sizes), y = uniform(sizes), index = zeros(sizes, DType::i64);
  return {bytes_of({x, y, index}),
          [=] { kernels::sort({.x = x, .values = y, .indices = index, .dim = sizes.size() - 1}); }};
}
Work topk() {
  const Tensor x = uniform(kFew), y = uniform({4096, 32}), index = zeros({4096, 32}, DType::i64);
  return {bytes_of({x, y, index}),
          [=] { kernels::topk({.x = x, .values = y, .indices = index, .dim = 1}); }};
}

struct Heads {
  int64_t batch, heads, length, size;
};
// Makes q, k or v as in a model: columns of one [batch, length, 3 heads size] matrix.
Tensor heads_of(const Heads& n) {
  return uniform({n.batch, n.length, n.heads, n.size}).transpose(1, 2);
}
Work attention(const Heads& n) {
  const Tensor q = heads_of(n), k = heads_of(n), v = heads_of(n), out = heads_of(n),
               lse = uniform({n.batch, n.heads, n.length});
  return {bytes_of({q, k, v, out}), [=] {
            kernels::attention_forward({.q = q,
                                        .k = k,
                                        .v = v,
                                        .out = out,
                                        .lse = lse,
                                        .scale = 1 / std::sqrt(double(n.size)),
                                        .visible = {.causal = true}});
          }};
}
Work attention_backward(const Heads& n) {
  const Tensor q = heads_of(n), k = heads_of(n), v = heads_of(n), out = heads_of(n),
               dout = heads_of(n), dq = heads_of(n), dk = heads_of(n), dv = heads_of(n),
               lse = full({n.batch, n.heads, n.length}, 9);
  return {bytes_of({q, k, v, out, dout, dq, dk, dv}), [=] {
            kernels::attention_backward({.q = q,
                                         .k = k,
                                         .v = v,
                                         .out = out,
                                         .lse = lse,
                                         .dout = dout,
                                         .dq = dq,
                                         .dk = dk,
                                         .dv = dv,
                                         .dmask = kNoView,
                                         .scale = 1 / std::sqrt(double(n.size)),
                                         .visible = {.causal = true}});
          }};
}

struct Case {
  const char* name;
  Work (*make)();
};

const Case kCases[] = {
    {"roof/copy", roof_copy},
    {"copy/forward", copy},
    {"transpose/forward", transpose},
    {"add/forward", [] { return binary(Binary::add); }},
    {"add_in_place/forward", add_in_place},
    {"add_bias/forward", add_bias},
    {"mul/forward", [] { return binary(Binary::mul); }},
    {"relu/forward", [] { return unary(Unary::relu); }},
    {"relu/backward", [] { return unary_backward(Unary::relu); }},
    {"exp/forward", [] { return unary(Unary::exp); }},
    {"tanh/forward", [] { return unary(Unary::tanh); }},
    {"tanh/backward", [] { return unary_backward(Unary::tanh); }},
    {"sigmoid/forward", [] { return unary(Unary::sigmoid); }},
    {"silu/forward", [] { return unary(Unary::silu); }},
    {"gelu/forward", [] { return unary(Unary::gelu); }},
    {"gelu/backward", [] { return unary_backward(Unary::gelu); }},
    {"gelu_tanh/forward", [] { return unary(Unary::gelu_tanh); }},
    {"gelu_tanh/backward", [] { return unary_backward(Unary::gelu_tanh); }},
    {"softmax/forward", [] { return softmax(false); }},
    {"softmax/backward", [] { return softmax_backward(false); }},
    {"log_softmax/forward", [] { return softmax(true); }},
    {"log_softmax/backward", [] { return softmax_backward(true); }},
    {"layer_norm/forward", [] { return layer_norm(true); }},
    {"layer_norm/backward", [] { return layer_norm_backward(true); }},
    {"rms_norm/forward", [] { return layer_norm(false); }},
    {"rms_norm/backward", [] { return layer_norm_backward(false); }},
    {"group_norm/forward", group_norm},
    {"group_norm/backward", group_norm_backward},
    {"cross_entropy/forward", cross_entropy},
    {"cross_entropy/backward", cross_entropy_backward},
    {"sum/all",
     [] {
       return reduce(kernels::Reduce::sum, {1, 1});
     }},
    {"sum/rows",
     [] {
       return reduce(kernels::Reduce::sum, {16384, 1});
     }},
    {"sum/columns",
     [] {
       return reduce(kernels::Reduce::sum, {1, 1024});
     }},
    {"max/columns",
     [] {
       return reduce(kernels::Reduce::max, {1, 1024});
     }},
    {"argmax/rows", argmax},
    {"dropout/forward", dropout},
    {"gather/last", [] { return gather(1); }},
    {"gather/first", [] { return gather(0); }},
    {"scatter_add/last", [] { return scatter_add(1); }},
    {"scatter_add/first", [] { return scatter_add(0); }},
    {"index_select/rows", index_select},
    {"embedding/backward", embedding_backward},
    {"cumsum/last", [] { return cumsum(1); }},
    {"cumsum/first", [] { return cumsum(0); }},
    {"sort/rows", [] { return sort(kFew); }},
    {"sort/one", [] { return sort({1 << 20}); }},
    {"topk/rows", topk},
    {"attention_128/forward",
     [] {
       return attention({16, 4, 128, 32});
     }},
    {"attention_128/backward",
     [] {
       return attention_backward({16, 4, 128, 32});
     }},
    {"attention_1024/forward",
     [] {
       return attention({1, 8, 1024, 64});
     }},
    {"attention_1024/backward",
     [] {
       return attention_backward({1, 8, 1024, 64});
     }},
};

void run(benchmark::State& state, const Case& c) {
  kernels::set_threads(static_cast<int>(state.range(0)));
  const NoGradGuard guard;
  const Work work = c.make();
  work.run();
  for (auto _ : state) {
    work.run();
  }
  state.SetBytesProcessed(static_cast<int64_t>(work.bytes * double(state.iterations())));
  kernels::set_threads(0);
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark(c.name, run, c)
        ->ArgName("threads")
        ->Arg(1)
        ->Arg(2)
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace binade
