#include <binade/core/create.h>
#include <binade/kernels/optimizer.h>
#include <binade/optim/clip.h>
#include <binade/optim/gradients.h>

#include <algorithm>
#include <cmath>

namespace binade::optim {
namespace {

constexpr double kClipEpsilon = 1e-6;

// Calls f(leaf, pointer, count) with the elements of each gradient, in memory order.
template <class F>
void for_each_gradient(const ParameterList& parameters, F f) {
  for (const Parameter& parameter : parameters) {
    if (Leaf* leaf = leaf_with_gradient(parameter)) {
      const View& g = leaf->buffer;
      check(is_dense(g.sizes, g.strides), "clip: the gradient of ", parameter.name,
            " is not dense");
      dispatch_floating("clip", g.dtype, [&]<class T>(Type<T>) { f(*leaf, g.as<T>(), g.numel); });
    }
  }
}

double largest_magnitude(const ParameterList& parameters) {
  double largest = 0;
  for_each_gradient(parameters, [&](const Leaf& leaf, const auto* g, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double magnitude = std::abs(static_cast<double>(g[i])) / leaf.scale;
      largest = magnitude > largest || std::isnan(magnitude) ? magnitude : largest;
    }
  });
  return largest;
}

double power_norm(const ParameterList& parameters, double p) {
  double sum = 0;
  for_each_gradient(parameters, [&](const Leaf& leaf, const auto* g, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      sum += std::pow(std::abs(static_cast<double>(g[i])) / leaf.scale, p);
    }
  });
  return std::pow(sum, 1 / p);
}

double euclidean_norm(const ParameterList& parameters) {
  double sum = 0;
  int64_t non_finite = 0;
  for (const Parameter& parameter : parameters) {
    if (const Leaf* leaf = leaf_with_gradient(parameter)) {
      const View& g = leaf->buffer;
      check(is_dense(g.sizes, g.strides), "clip: the gradient of ", parameter.name,
            " is not dense");
      View flat = g;
      flat.sizes = {g.numel};
      flat.strides = {1};
      flat.contiguous = true;
      const Squares part = squares(flat);
      sum += part.sum / (leaf->scale * leaf->scale);
      non_finite += part.non_finite;
    }
  }
  return non_finite ? power_norm(parameters, 2) : std::sqrt(sum);
}

}  // namespace

Squares squares(const View& flat) {
  const Tensor result = empty({2}, DType::f64, flat.device);
  kernels::gradient_stats({.grad = flat, .result = result});
  return {result.at(0), static_cast<int64_t>(result.at(1))};
}

double grad_norm(const ParameterList& parameters, double norm_type) {
  check(norm_type > 0, "grad_norm: got norm_type = ", norm_type,
        ", expected a positive number or kInfinityNorm");
  if (norm_type == 2) {
    return euclidean_norm(parameters);
  }
  return norm_type == kInfinityNorm ? largest_magnitude(parameters)
                                    : power_norm(parameters, norm_type);
}

double clip_grad_norm(const ParameterList& parameters, double max_norm, double norm_type) {
  check(max_norm >= 0, "clip_grad_norm: got max_norm = ", max_norm, ", expected a number >= 0");
  const double norm = grad_norm(parameters, norm_type);
  const double factor = max_norm / (norm + kClipEpsilon);
  if (!std::isfinite(norm) || factor >= 1) {
    return norm;
  }
  for (const Parameter& parameter : parameters) {
    if (Leaf* leaf = leaf_with_gradient(parameter)) {
      if (factor > 0) {
        leaf->scale /= factor;
      } else {
        leaf->buffer.fill_(0);
      }
    }
  }
  return norm;
}

void clip_grad_value(const ParameterList& parameters, double limit) {
  check(limit >= 0, "clip_grad_value: got limit = ", limit, ", expected a number >= 0");
  for_each_gradient(parameters, [&]<class T>(const Leaf& leaf, T* g, int64_t count) {
    const double bound = limit * leaf.scale;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(g[i]);
      if (std::isfinite(value) && std::abs(value) > bound) {
        g[i] = static_cast<T>(static_cast<Compute<T>>(std::copysign(bound, value)));
      }
    }
  });
}

void replace_non_finite(const ParameterList& parameters) {
  for_each_gradient(parameters, [&]<class T>(const Leaf& leaf, T* g, int64_t count) {
    const double largest = leaf.dtype == DType::f16    ? 65504
                           : leaf.dtype == DType::bf16 ? 0x1.fep127
                           : leaf.dtype == DType::f32  ? std::numeric_limits<float>::max()
                                                       : std::numeric_limits<double>::max();
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(g[i]);
      if (!std::isfinite(value)) {
        const double replacement = std::isnan(value) ? 0 : std::copysign(largest, value);
        g[i] = static_cast<T>(static_cast<Compute<T>>(replacement));
      }
    }
  });
}

}  // namespace binade::optim
