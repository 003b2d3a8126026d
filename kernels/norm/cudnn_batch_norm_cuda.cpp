#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/cuda/user_call.h>
#include <binade/kernels/norm/cudnn_norm_graph_internal.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace binade::kernels {
namespace {

using cudnn::Graph;
using cudnn::Operand;
using cudnn::Problem;
using namespace cudnn_norm;

constexpr float kForgetAll = 1;       // running statistics become the batch's statistics
constexpr int64_t kVectorFloats = 4;  // floats in 16 bytes, the alignment of operands

// Options 2 to 4 are: there are running statistics (then the factor, both inputs and both outputs
// are operands, too), there is a residual (the last operand), and relu.
void build_batch_norm(Graph& graph, const Problem& p) {
  const bool running = p.options[2] != 0, residual = p.options[3] != 0, relu = p.options[4] != 0;
  const Operand& image = p.operands[3];
  const auto between = [&] { return graph.between(image.sizes, image.strides, cudnn::kFloat); };
  const cudnn::Descriptor y = graph.memory(3), normal = residual || relu ? between() : y;
  cudnn::Object& norm = add_forward(graph, p, normal);
  if (running) {
    norm.set(cudnn::kNormForwardFactor, graph.memory(7));
    norm.set(cudnn::kNormForwardRunningMean, graph.memory(8));
    norm.set(cudnn::kNormForwardRunningVar, graph.memory(9));
    norm.set(cudnn::kNormForwardNextMean, graph.memory(10));
    norm.set(cudnn::kNormForwardNextVar, graph.memory(11));
  }
  const cudnn::Descriptor sum = residual && relu ? between() : residual ? y : normal;
  if (residual) {
    graph.pointwise(cudnn::kAdd, normal, graph.memory(p.operands.size() - 1), sum);
  }
  if (relu) {
    graph.pointwise(cudnn::kReluForward, sum, nullptr, y);
  }
}

// Queues the batch norm; a.variance gets the variance that the library uses for running statistics.
bool start_batch_norm(const BatchNormForward& a, std::string& why) {
  const DenseInput x(a.x, Order::channels_last), residual(a.residual, Order::channels_last);
  const DenseOutput y(a.y, Order::channels_last);
  const auto eps = static_cast<float>(a.eps);
  Problem p{.name = "batch_norm",
            .device = a.y.device,
            .dtype = a.x.dtype,
            .operands = {image(x.view()), channels(a.weight), cudnn::number(eps, 4),
                         image(y.view()), channels(a.rstd), channels(a.mean), channels(a.bias)},
            .options = {cudnn::kBatchNorm, 1, int64_t{static_cast<bool>(a.variance)},
                        int64_t{static_cast<bool>(a.residual)}, int64_t{a.relu}},
            .build = build_batch_norm,
            .keeps_nan = a.relu};
  const int64_t room = ceil_div(a.mean.numel, kVectorFloats) * kVectorFloats;
  const Workspace memory(a.variance ? static_cast<size_t>(2 * room) * sizeof(float) : 0,
                         a.y.device);
  if (a.variance) {
    View before = a.mean, next_mean = a.mean;
    before.data = memory.as<std::byte>();
    next_mean.data = before.data + static_cast<size_t>(room) * sizeof(float);
    cuda::fill({.y = before, .value = 0});
    const std::vector<Operand> running{cudnn::number(kForgetAll, 4), channels(before),
                                       channels(before), channels(next_mean), channels(a.variance)};
    p.operands.insert(p.operands.end(), running.begin(), running.end());
  }
  if (a.residual) {
    p.operands.push_back(image(residual.view()));
  }
  if (!cudnn::run(p, why)) {
    return false;
  }
  y.store();
  return true;
}

// The variance from which the library computes running variances.
enum class RunningVariance : uint8_t { unknown, refused, biased, unbiased };

// Asks the library: 64 values per channel, half of them 1 and half -1, have the biased variance 1
// and the unbiased variance 64 / 63. If it is unknown or refused, `why` says why.
RunningVariance ask_running_variance(DType dtype, Device device, std::string& why) {
  constexpr int64_t kChannels = 32, kSide = 4, kImages = 4, kCount = kImages * kSide * kSide;
  const Dims sizes{kImages, kChannels, kSide, kSide};
  const auto bytes = static_cast<int64_t>(size_of(dtype)) * kChannels * kCount;
  const Workspace images(static_cast<size_t>(2 * bytes), device);
  const Workspace vectors(5 * kChannels * sizeof(float), device);
  const auto part = [&](int64_t first, const Dims& n) {
    View v = view_of(images.as<std::byte>() + first, dtype, n, channels_last_strides(n));
    v.device = device;
    v.contiguous = false;
    return v;
  };
  const auto vector = [&](int64_t i) {
    View v = view_of(vectors.as<float>() + i * kChannels, DType::f32, {kChannels});
    v.device = device;
    return v;
  };
  const View x = part(0, sizes), y = part(bytes, sizes);
  const Dims half{kImages / 2, kChannels, kSide, kSide};
  const View weight = vector(0), bias = vector(1), mean = vector(2), rstd = vector(3);
  const View variance = vector(4);
  cuda::fill({.y = part(0, half), .value = 1});
  cuda::fill({.y = part(bytes / 2, half), .value = -1});
  cuda::fill({.y = weight, .value = 1});
  cuda::fill({.y = bias, .value = 0});
  if (!start_batch_norm({.x = x,
                         .weight = weight,
                         .bias = bias,
                         .y = y,
                         .mean = mean,
                         .rstd = rstd,
                         .eps = 1e-5,
                         .variance = variance},
                        why)) {
    return RunningVariance::refused;
  }
  float got[kChannels];
  download_for_user(got, variance.data, sizeof got);
  constexpr double kUnbiased = static_cast<double>(kCount) / (kCount - 1), kNear = 1e-3;
  const auto all = [&](double wanted) {
    return std::ranges::all_of(got, [&](float v) { return std::abs(v - wanted) < kNear; });
  };
  if (!all(1) && !all(kUnbiased)) {
    why = text("cuDNN made ", got[0], " of a biased variance of 1 and an unbiased one of ",
               kUnbiased);
    return RunningVariance::refused;
  }
  return all(1) ? RunningVariance::biased : RunningVariance::unbiased;
}

RunningVariance running_variance(DType dtype, Device device, std::string& why) {
  struct Answer {
    RunningVariance variance = RunningVariance::unknown;
    std::string why;
  };
  static auto& mutex = *new std::mutex;
  static auto& answers = *new std::map<std::pair<int, DType>, Answer>;
  const std::lock_guard lock(mutex);
  Answer& answer = answers[{device.index, dtype}];
  if (answer.variance == RunningVariance::unknown) {
    if (user_call_captured()) {
      why = "a graph is captured, which cannot wait for what cuDNN makes running variances of";
      return RunningVariance::unknown;
    }
    answer.variance = ask_running_variance(dtype, device, answer.why);
  }
  why = answer.why;
  return answer.variance;
}

}  // namespace

bool cudnn_norm::library_batch_norm(const BatchNormForward& a, std::string& why) {
  if (!usable(a.x, why)) {
    return false;
  }
  if (a.mean_rest) {
    return refuse(why, "our kernel also writes what rounding left of the mean");
  }
  if (!a.weight || !a.bias || a.y.data == a.x.data || a.y.data == a.residual.data) {
    return refuse(why, "cuDNN wants weight and bias, and another y than x and the residual");
  }
  if (!a.variance) {
    return start_batch_norm(a, why);
  }
  const auto count = static_cast<double>(a.x.numel / a.x.size(1));
  if (count < 2) {
    return refuse(why, "one value has no unbiased variance");
  }
  const RunningVariance made_of = running_variance(a.x.dtype, a.x.device, why);
  if (made_of == RunningVariance::unknown || made_of == RunningVariance::refused ||
      !start_batch_norm(a, why)) {
    return false;
  }
  if (made_of == RunningVariance::unbiased) {
    scale_variance(a.variance, (count - 1) / count);
  }
  return true;
}

}  // namespace binade::kernels
