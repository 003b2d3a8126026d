#include <binade/core/create.h>
#include <binade/kernels/gradient_values.h>
#include <binade/kernels/optimizer.h>
#include <binade/kernels/step_words.h>
#include <binade/optim/clip.h>
#include <binade/optim/device_words.h>
#include <binade/optim/gradients.h>

#include <cmath>

namespace binade::optim {
namespace {

// All elements of a gradient, in memory order.
View flat_gradient(const Parameter& parameter, const Leaf& leaf) {
  View flat = leaf.buffer;
  check(is_dense(flat.sizes, flat.strides), "clip: the gradient of ", parameter.name,
        " is not dense");
  flat.sizes = {flat.numel};
  flat.strides = {1};
  flat.contiguous = true;
  return flat;
}

template <class F>
void for_each_gradient(const ParameterList& parameters, F f) {  // f(leaf, flat)
  for (const Parameter& parameter : parameters) {
    if (Leaf* leaf = leaf_with_gradient(parameter)) {
      f(*leaf, flat_gradient(parameter, *leaf));
    }
  }
}

Device device_of(const ParameterList& parameters) {
  return parameters.arena() ? parameters.arena()->device() : Device{};
}

// The sum of p-th powers, or the largest magnitude.
double combined(const ParameterList& parameters, double p) {
  const Tensor result = zeros({1}, DType::f64, device_of(parameters));
  for_each_gradient(parameters, [&](const Leaf& leaf, const View& flat) {
    kernels::gradient_norm(
        {.grad = flat, .scale = leaf.scale, .tag = leaf.scale_word, .p = p, .result = result});
  });
  return result.item();
}

double power_norm(const ParameterList& parameters, double p) {
  return std::pow(combined(parameters, p), 1 / p);
}

double euclidean_norm(const ParameterList& parameters) {
  kernels::OptimizerWords words;
  if (device_of(parameters).is_cpu()) {
    for_each_gradient(parameters, [&](const Leaf& leaf, const View& flat) {
      const Squares part = squares(flat);
      words.squares += part.sum / (leaf.scale * leaf.scale);
      words.non_finite += static_cast<double>(part.non_finite);
    });
  } else {  // one wait for all of them
    const Tensor own = make_words(words, device_of(parameters));
    for_each_gradient(parameters, [&](const Leaf& leaf, const View& flat) {
      kernels::step_stats({.grad = flat,
                           .scale = leaf.scale,
                           .tag = leaf.scale_word,
                           .position = 0,
                           .first = false,
                           .words = own});
    });
    words = read_words<kernels::OptimizerWords>(own);
  }
  return words.non_finite != 0 ? power_norm(parameters, 2) : std::sqrt(words.squares);
}

}  // namespace

Squares squares(const View& flat) {
  const Tensor result = empty({2}, DType::f64, flat.device);
  kernels::gradient_stats({.grad = flat, .result = result});
  const Tensor host = result.to(Device{});
  return {host.at(0), static_cast<int64_t>(host.at(1))};
}

double grad_norm(const ParameterList& parameters, double norm_type) {
  check(norm_type > 0, "grad_norm: got norm_type = ", norm_type,
        ", expected a positive number or kInfinityNorm");
  if (norm_type == 2) {
    return euclidean_norm(parameters);
  }
  return norm_type == kInfinityNorm ? combined(parameters, norm_type)
                                    : power_norm(parameters, norm_type);
}

double clip_grad_norm(const ParameterList& parameters, double max_norm, double norm_type,
                      bool error_if_nonfinite) {
  check(max_norm >= 0, "clip_grad_norm: got max_norm = ", max_norm, ", expected a number >= 0");
  const double norm = grad_norm(parameters, norm_type);
  check(!error_if_nonfinite || std::isfinite(norm), "clip_grad_norm: got gradients of norm ", norm,
        ", expected a finite one, which error_if_nonfinite insists on; nothing was clipped");
  const double factor = max_norm / (norm + kernels::kClipEpsilon);
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
  for_each_gradient(parameters, [&](const Leaf& leaf, const View& flat) {
    kernels::clamp_gradient(
        {.grad = flat, .scale = leaf.scale, .tag = leaf.scale_word, .limit = limit});
  });
}

void replace_non_finite(const ParameterList& parameters) {
  for_each_gradient(parameters, [](const Leaf&, const View& flat) {
    kernels::replace_non_finite({.grad = flat});
  });
}

}  // namespace binade::optim
