#include <bench/kernel_cases.h>
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/pool2d.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/loss/cross_entropy.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/random/random.h>
#include <binade/kernels/softmax/softmax.h>

namespace binade::bench {

using kernels::Binary;
using kernels::Unary;

const View& Operands::empty(DType dtype, const Dims& sizes) {
  const auto bytes = static_cast<size_t>(element_count(sizes)) * size_of(dtype);
  memory_.emplace_back(bytes, device_);
  blocks_.push_back({memory_.back().as<void>(), bytes});
  views_.push_back(view_of(memory_.back().as<void>(), dtype, sizes));
  views_.back().device = device_;
  arrays_.push_back(&views_.back());
  return views_.back();
}

const View& Operands::zeros(DType dtype, const Dims& sizes) {
  const View& y = empty(dtype, sizes);
  kernels::fill({.y = y, .value = 0});
  return y;
}

const View& Operands::random(DType dtype, const Dims& sizes) {
  const View& y = empty(dtype, sizes);
  if (is_floating(dtype)) {
    kernels::fill_normal({.y = y, .seed = seed_++, .offset = 0});
    return y;
  }
  const View& wide = empty(DType::f32, sizes);
  kernels::fill_uniform({.y = wide, .low = 0, .high = 255.99, .seed = seed_++, .offset = 0});
  kernels::copy({.x = wide, .y = y});
  return y;
}

const View& Operands::view(const View& of, const Dims& sizes, const Dims& strides) {
  views_.push_back(of);
  View& v = views_.back();
  v.sizes = sizes;
  v.strides = strides;
  v.numel = element_count(sizes);
  v.contiguous = is_row_major(sizes, strides);
  return v;
}

const View& Operands::channels_last(const View& of) {
  return view(of, of.sizes, channels_last_strides(of.sizes));
}

namespace {

template <Unary kOp>
Prepared unary_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&x, &y] { kernels::unary_forward({.op = kOp, .x = x, .y = y}); }, bytes_of(x, y), 0};
}

template <Unary kOp>
Prepared unary_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &saved = o->random(dtype, {rows, cols}), &dy = o->random(dtype, {rows, cols}),
             &dx = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::unary_backward({.op = kOp, .saved = saved, .dy = dy, .dx = dx}); },
          bytes_of(saved, dy, dx), 0};
}

template <Binary kOp>
Prepared binary_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &a = o->random(dtype, {rows, cols}), &b = o->random(dtype, {rows, cols}),
             &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::binary_forward({.op = kOp, .a = a, .b = b, .y = y}); },
          bytes_of(a, b, y), 0};
}

template <Binary kOp>
Prepared binary_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &a = o->random(dtype, {rows, cols}), &b = o->random(dtype, {rows, cols}),
             &dy = o->random(dtype, {rows, cols}), &da = o->empty(dtype, {rows, cols}),
             &db = o->empty(dtype, {rows, cols});
  return {
      o,
      [&] { kernels::binary_backward({.op = kOp, .a = a, .b = b, .dy = dy, .da = da, .db = db}); },
      bytes_of(a, b, dy, da, db), 0};
}

Prepared binary_add_row(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &a = o->random(dtype, {rows, cols}), &b = o->random(dtype, {cols}),
             &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::binary_forward({.op = Binary::add, .a = a, .b = b, .y = y}); },
          bytes_of(a, b, y), 0};
}

Prepared cast_from_f32(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(DType::f32, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::copy({.x = x, .y = y}); }, bytes_of(x, y), 0};
}

Prepared transpose(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View& x = o->random(dtype, {cols, rows});
  const View &turned = o->view(x, {rows, cols}, {1, rows}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::copy({.x = turned, .y = y}); }, bytes_of(x, y), 0};
}

Prepared fill(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View& y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::fill({.y = y, .value = 1}); }, bytes_of(y), 0};
}

Prepared add_into(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->zeros(dtype, {rows, cols});
  return {o, [&] { kernels::add_into({.x = x, .y = y}); }, bytes_of(x, y, y), 0};
}

Prepared softmax_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::softmax_forward({.x = x, .y = y, .dim = 1}); }, bytes_of(x, y), 0};
}

Prepared softmax_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &y = o->random(dtype, {rows, cols}), &dy = o->random(dtype, {rows, cols}),
             &dx = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::softmax_backward({.y = y, .dy = dy, .dx = dx, .dim = 1}); },
          bytes_of(y, dy, dx), 0};
}

Prepared cross_entropy_forward_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const DType stat = compute_dtype(dtype);
  const View &z = o->random(dtype, {rows, cols}), &dz = o->empty(dtype, {rows, cols});
  const View& target = o->zeros(DType::i64, {rows});
  const View &loss = o->empty(stat, {rows}), &weight = o->empty(stat, {rows}),
             &lse = o->empty(stat, {rows}), &scale = o->random(stat, {rows});
  return {o,
          [&z, &dz, &target, &loss, &weight, &lse, &scale] {
            kernels::cross_entropy_forward_backward({.logits = z,
                                                     .target = target,
                                                     .weight = kNoView,
                                                     .row_scale = scale,
                                                     .row_loss = loss,
                                                     .row_weight = weight,
                                                     .lse = lse,
                                                     .dlogits = dz});
          },
          bytes_of(z, dz, target, loss, weight, lse, scale), 0};
}

constexpr kernels::Pool2dGeometry kPool{.kernel = {2, 2}, .stride = {2, 2}};

Prepared max_pool2d_forward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const Dims in{rows, cols, kImageSide, kImageSide},
      out{rows, cols, kImageSide / 2, kImageSide / 2};
  const View &x = o->channels_last(o->random(dtype, in)),
             &y = o->channels_last(o->empty(dtype, out)),
             &index = o->channels_last(o->empty(DType::u8, out));
  return {o,
          [&] { kernels::max_pool2d_forward({.x = x, .y = y, .index = index, .geometry = kPool}); },
          bytes_of(x, y, index), 0};
}

Prepared max_pool2d_backward(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const Dims in{rows, cols, kImageSide, kImageSide},
      out{rows, cols, kImageSide / 2, kImageSide / 2};
  const View &dy = o->channels_last(o->random(dtype, out)),
             &index = o->channels_last(o->zeros(DType::u8, out)),
             &dx = o->channels_last(o->empty(dtype, in));
  return {o,
          [&] {
            kernels::max_pool2d_backward({.dy = dy, .index = index, .dx = dx, .geometry = kPool});
          },
          bytes_of(dy, index, dx), 0};
}

Prepared fill_normal(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View& y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::fill_normal({.y = y, .seed = 1, .offset = 0}); }, bytes_of(y), 0};
}

Prepared dropout(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::dropout({.x = x, .y = y, .p = 0.5, .seed = 1, .offset = 0}); },
          bytes_of(x, y), 0};
}

Prepared gemm(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &a = o->random(dtype, {rows, cols}), &b = o->random(dtype, {cols, cols}),
             &y = o->empty(dtype, {rows, cols});
  return {o, [&] { kernels::gemm({.a = a, .b = b, .y = y}); }, bytes_of(a, b, y),
          2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(cols)};
}

constexpr kernels::Conv2dGeometry kConv{.padding = {1, 1}};

// 3x3 convolution with cols input and output channels on rows images of 16x16; kPass 0 is the
// forward, 1 the gradient of the input, 2 of the weight.
template <int kPass>
Prepared conv2d(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const Dims image{rows, cols, kImageSide, kImageSide};
  const View &x = o->channels_last(o->random(dtype, image)),
             &y = o->channels_last(o->random(dtype, image)),
             &w = o->channels_last(o->random(dtype, {cols, cols, 3, 3}));
  const double flops = 2.0 * 9 * static_cast<double>(x.numel) * static_cast<double>(cols);
  const auto run = [&x, &y, &w] {
    if constexpr (kPass == 0) {
      kernels::conv2d_forward({.x = x, .w = w, .y = y, .geometry = kConv});
    } else if constexpr (kPass == 1) {
      kernels::conv2d_backward_data({.dy = y, .w = w, .dx = x, .geometry = kConv});
    } else {
      kernels::conv2d_backward_weight({.x = x, .dy = y, .dw = w, .geometry = kConv});
    }
  };
  return {o, run, bytes_of(x, y, w), flops};
}

std::vector<KernelCase> all_cases() {
  std::vector<KernelCase> cases = {
      {"relu_forward", kMatrix, unary_forward<Unary::relu>},
      {"relu_backward", kMatrix, unary_backward<Unary::relu>},
      {"gelu_forward", kMatrix, unary_forward<Unary::gelu>},
      {"gelu_backward", kMatrix, unary_backward<Unary::gelu>},
      {"tanh_forward", kMatrix, unary_forward<Unary::tanh>},
      {"selu_forward", kMatrix, unary_forward<Unary::selu>},
      {"selu_backward", kMatrix, unary_backward<Unary::selu>},
      {"celu_forward", kMatrix, unary_forward<Unary::celu>},
      {"celu_backward", kMatrix, unary_backward<Unary::celu>},
      {"softsign_forward", kMatrix, unary_forward<Unary::softsign>},
      {"softsign_backward", kMatrix, unary_backward<Unary::softsign>},
      {"hardsigmoid_forward", kMatrix, unary_forward<Unary::hardsigmoid>},
      {"hardsigmoid_backward", kMatrix, unary_backward<Unary::hardsigmoid>},
      {"exp2_forward", kMatrix, unary_forward<Unary::exp2>},
      {"exp2_backward", kMatrix, unary_backward<Unary::exp2>},
      {"log2_forward", kMatrix, unary_forward<Unary::log2>},
      {"log2_backward", kMatrix, unary_backward<Unary::log2>},
      {"atan2_forward", kMatrix, binary_forward<Binary::atan2>},
      {"atan2_backward", kMatrix, binary_backward<Binary::atan2>},
      {"logaddexp_forward", kMatrix, binary_forward<Binary::logaddexp>},
      {"logaddexp_backward", kMatrix, binary_backward<Binary::logaddexp>},
      {"add", kMatrix, binary_forward<Binary::add>},
      {"add_row", "rows x cols elements and a row of cols", binary_add_row},
      {"cast_from_f32", kMatrix, cast_from_f32},
      {"transpose", kMatrix, transpose},
      {"fill", kMatrix, fill},
      {"add_into", kMatrix, add_into},
      {"softmax_forward", kMatrix, softmax_forward},
      {"softmax_backward", kMatrix, softmax_backward},
      {"cross_entropy_forward_backward", kMatrix, cross_entropy_forward_backward},
      {"max_pool2d_forward", kImages, max_pool2d_forward},
      {"max_pool2d_backward", kImages, max_pool2d_backward},
      {"fill_normal", kMatrix, fill_normal},
      {"dropout", kMatrix, dropout},
      {"gemm", "[rows, cols] x [cols, cols]", gemm},
      {"conv2d_forward", kImages, conv2d<0>},
      {"conv2d_backward_data", kImages, conv2d<1>},
      {"conv2d_backward_weight", kImages, conv2d<2>},
  };
  for (const auto& more : {selection_cases(), reduce_cases(), index_kernel_cases(), norm_cases(),
                           loss_cases(), sequence_kernel_cases(), optimizer_kernel_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

}  // namespace

const std::vector<KernelCase>& kernel_cases() {
  static const std::vector<KernelCase> cases = all_cases();
  return cases;
}

const KernelCase& find_case(const std::string& name) {
  std::string names;
  for (const auto* cases : {&kernel_cases(), &model_cases()}) {
    for (const KernelCase& one : *cases) {
      if (one.name == name) {
        return one;
      }
      names += text(names.empty() ? "" : ", ", one.name);
    }
  }
  fail("kernel: got '", name, "', expected one of ", names);
}

}  // namespace binade::bench
