#include <binade/core/autograd/autograd.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/init.h>

#include <algorithm>
#include <cmath>

namespace binade::nn::init {
namespace {

constexpr const char* kNames[] = {"linear", "conv2d", "sigmoid",   "tanh",
                                  "relu",   "selu",   "leaky_relu"};
constexpr Nonlinearity kValues[] = {
    Nonlinearity::linear, Nonlinearity::conv2d, Nonlinearity::sigmoid,   Nonlinearity::tanh,
    Nonlinearity::relu,   Nonlinearity::selu,   Nonlinearity::leaky_relu};

Statistics with_std(Statistics statistics, double std) {
  statistics.std = std;
  statistics.bound = std::sqrt(3.0) * std;
  return statistics;
}

Statistics fans(const Dims& shape, double gain) {
  check(shape.size() >= 2, "init: got shape ", shape, ", expected at least [out, in]");
  int64_t field = 1;
  for (int i = 2; i < shape.size(); ++i) {
    field *= shape[i];
  }
  return {.fan_in = shape[1] * field,
          .fan_out = shape[0] * field,
          .gain = gain,
          .mean = 0,
          .std = 0,
          .bound = 0};
}

}  // namespace

Nonlinearity parse_nonlinearity(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) {
      return kValues[i];
    }
  }
  fail("init: got nonlinearity '", name,
       "', expected linear, conv2d, sigmoid, tanh, relu, leaky_relu or selu");
}

double gain(Nonlinearity nonlinearity, double a) {
  switch (nonlinearity) {
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::sqrt(2.0);
    case Nonlinearity::leaky_relu: return std::sqrt(2.0 / (1 + a * a));
    case Nonlinearity::selu: return 0.75;
    default: return 1;
  }
}

Statistics xavier_statistics(const Dims& shape, double gain) {
  const Statistics fan = fans(shape, gain);
  const auto sum = static_cast<double>(fan.fan_in + fan.fan_out);
  return with_std(fan, sum > 0 ? gain * std::sqrt(2.0 / sum) : 0);
}

Statistics kaiming_statistics(const Dims& shape, const KaimingOptions& options) {
  const Statistics fan = fans(shape, gain(options.nonlinearity, options.a));
  const auto count =
      static_cast<double>(options.mode == FanMode::fan_in ? fan.fan_in : fan.fan_out);
  return with_std(fan, count > 0 ? fan.gain / std::sqrt(count) : 0);
}

void uniform(const Tensor& w, double low, double high) { fill_uniform(w, low, high); }
void normal(const Tensor& w, double mean, double std) { fill_normal(w, mean, std); }

void xavier_uniform(const Tensor& w, double gain) {
  const double bound = xavier_statistics(w.sizes(), gain).bound;
  uniform(w, -bound, bound);
}

void xavier_normal(const Tensor& w, double gain) {
  normal(w, 0, xavier_statistics(w.sizes(), gain).std);
}

void kaiming_uniform(const Tensor& w, const KaimingOptions& options) {
  const double bound = kaiming_statistics(w.sizes(), options).bound;
  uniform(w, -bound, bound);
}

void kaiming_normal(const Tensor& w, const KaimingOptions& options) {
  normal(w, 0, kaiming_statistics(w.sizes(), options).std);
}

// The q of a normal matrix, its columns with the signs of diag(r), is uniform (Mezzadri, 2007).
void orthogonal(const Tensor& w, double gain) {
  check(w.defined() && w.dim() >= 2, "orthogonal: got shape ",
        w.defined() ? to_string(w.sizes()) : "of an undefined tensor",
        ", expected at least two dimensions");
  check(is_floating(w.dtype()), "orthogonal: got dtype ", w.dtype(), ", expected a floating dtype");
  const NoGradGuard guard;
  const PrecisionScope full(Precision::full());
  if (w.numel() == 0) {
    return;
  }
  const int64_t rows = w.size(0), columns = w.numel() / rows;
  const int64_t longer = std::max(rows, columns), shorter = std::min(rows, columns);
  const linalg::QR factors =
      linalg::qr(randn({longer, shorter}, compute_dtype(w.dtype()), w.device()));
  const Tensor r = diagonal(factors.r);
  const Tensor q = mul(factors.q, add(mul(cast(ge(r, 0), r.dtype()), 2), -1));
  w.copy_(reshape(mul(rows < columns ? transpose(q, 0, 1) : q, gain), w.sizes()));
}

void constant(const Tensor& w, double value) {
  const NoGradGuard guard;
  w.fill_(value);
}
void zeros(const Tensor& w) { constant(w, 0); }
void ones(const Tensor& w) { constant(w, 1); }

void default_weight(const Tensor& w) { kaiming_uniform(w, {.a = std::sqrt(5.0)}); }

void default_bias(const Tensor& b, const Dims& weight_shape) {
  const auto fan_in = static_cast<double>(fans(weight_shape, 1).fan_in);
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  uniform(b, -bound, bound);
}

}  // namespace binade::nn::init
