#include <binade/core/observe/observer.h>
#include <binade/kernels/copy/copy.h>
#include <binade/train/precision/shadow_errors_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::train {

Tensor on_host_f64(const Tensor& t, double scale) {
  if (!t.defined()) {
    return {};
  }
  const UnobservedGuard unobserved;
  const Tensor wide = empty(t.sizes(), DType::f64, t.device());
  kernels::copy({.x = t, .y = wide});
  const Tensor host = wide.device().is_cpu() ? wide : wide.to(Device{});
  if (scale != 1) {
    double* values = host.data<double>();
    for (int64_t i = 0; i < host.numel(); ++i) {
      values[i] /= scale;
    }
  }
  return host;
}

void write_from_host(const Tensor& values, const Tensor& to) {
  const UnobservedGuard unobserved;
  const Tensor there = to.device().is_cpu() ? values : values.to(to.device());
  kernels::copy({.x = there, .y = to});
}

double ulp_of(double value, DType dtype) {
  const int digits = dtype == DType::f16    ? 10
                     : dtype == DType::bf16 ? 7
                     : dtype == DType::f32  ? 23
                                            : 52;
  const int least = dtype == DType::f16 ? -14 : dtype == DType::f64 ? -1022 : -126;
  int exponent = least;
  if (value != 0) {
    (void)std::frexp(value, &exponent);
    exponent = std::max(exponent - 1, least);
  }
  return std::ldexp(1.0, exponent - digits);
}

double norm_squared(const Tensor& host) {
  const double* values = host.data<double>();
  double sum = 0;
  for (int64_t i = 0; i < host.numel(); ++i) {
    sum += std::isfinite(values[i]) ? values[i] * values[i] : 0;
  }
  return sum;
}

double dot(const Tensor& host_a, const Tensor& host_b) {
  const double *a = host_a.data<double>(), *b = host_b.data<double>();
  double sum = 0;
  for (int64_t i = 0; i < host_a.numel(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

double ShadowSums::add(const ShadowValue& value) {
  const double *low = value.low.data<double>(), *introduced = value.introduced.data<double>(),
               *exact = value.exact.data<double>();
  double inherited_now = 0, exact_now = 0, total_now = 0;
  for (int64_t i = 0; i < value.low.numel(); ++i) {
    if (!std::isfinite(low[i]) || !std::isfinite(introduced[i]) || !std::isfinite(exact[i])) {
      ++not_finite_;
      continue;
    }
    const double of_op = low[i] - introduced[i], inherited = of_op - exact[i],
                 total = low[i] - exact[i];
    const double ulps = std::abs(introduced[i]) / ulp_of(of_op, value.stored);
    op_ += of_op * of_op;
    low_ += low[i] * low[i];
    dot_ += low[i] * exact[i];
    exact_now += exact[i] * exact[i];
    introduced_ += introduced[i] * introduced[i];
    inherited_now += inherited * inherited;
    total_now += total * total;
    ulp_ += ulps;
    worst_ulp_ = std::max(worst_ulp_, ulps);
    signed_ += introduced[i];
    magnitude_ += std::abs(introduced[i]);
    ++elements_;
  }
  exact_ += exact_now;
  inherited_ += inherited_now;
  total_ += total_now;
  if (exact_now > 0 && value.inputs > 0) {
    grown_ += inherited_now / exact_now;
    given_ += value.inputs;
  }
  return exact_now > 0 ? total_now / exact_now : 0;
}

void ShadowSums::merge(const ShadowSums& other) {
  elements_ += other.elements_;
  not_finite_ += other.not_finite_;
  for (double ShadowSums::*sum :
       {&ShadowSums::op_, &ShadowSums::exact_, &ShadowSums::low_, &ShadowSums::introduced_,
        &ShadowSums::inherited_, &ShadowSums::total_, &ShadowSums::ulp_, &ShadowSums::signed_,
        &ShadowSums::magnitude_, &ShadowSums::dot_, &ShadowSums::grown_, &ShadowSums::given_}) {
    this->*sum += other.*sum;
  }
  worst_ulp_ = std::max(worst_ulp_, other.worst_ulp_);
}

ShadowErrors ShadowSums::errors() const {
  const auto relative = [](double error, double size) {
    return size > 0 ? std::sqrt(error / size) : 0;
  };
  return {.elements = elements_,
          .not_finite = not_finite_,
          .introduced = relative(introduced_, op_),
          .inherited = relative(inherited_, exact_),
          .total = relative(total_, exact_),
          .amplification = relative(grown_, given_),
          .ulp = elements_ > 0 ? ulp_ / static_cast<double>(elements_) : 0,
          .worst_ulp = worst_ulp_,
          .bias = magnitude_ > 0 ? signed_ / magnitude_ : 0,
          .cosine = low_ > 0 && exact_ > 0 ? dot_ / std::sqrt(low_ * exact_) : 1};
}

}  // namespace binade::train
