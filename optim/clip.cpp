#include <binade/core/tensor/create.h>
#include <binade/kernels/optimizer/gradient_values.h>
#include <binade/kernels/optimizer/step_rule.h>
#include <binade/optim/clip.h>
#include <binade/optim/gradients_internal.h>

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
  check(!parameters.arena() || parameters.arena()->sharding() != Sharding::gradients,
        "clip: the gradients are in the shards of several ranks (ZeRO-2); let the step clip, with "
        "StepOptions::clip_norm");
  for (const Parameter& parameter : parameters) {
    if (Leaf* leaf = leaf_with_gradient(parameter)) {
      f(*leaf, flat_gradient(parameter, *leaf));
    }
  }
}

std::vector<const Parameter*> pointers_to(const ParameterList& parameters) {
  std::vector<const Parameter*> all;
  for (const Parameter& parameter : parameters) {
    all.push_back(&parameter);
  }
  return all;
}

Device device_of(const ParameterList& parameters) {
  return parameters.arena() ? parameters.arena()->device() : Device{};
}

// The sum of p-th powers, or the largest magnitude.
double combined(const ParameterList& parameters, double p) {
  const Tensor result = zeros({1}, DType::f64, device_of(parameters));
  for_each_gradient(parameters, [&](const Leaf& leaf, const View& flat) {
    kernels::gradient_norm(
        {.grad = flat, .scale = leaf.scale, .tag = leaf.device_scale, .p = p, .result = result});
  });
  return result.item();
}

double power_norm(const ParameterList& parameters, double p) {
  return std::pow(combined(parameters, p), 1 / p);
}

double euclidean_norm(const ParameterList& parameters) {
  if (!parameters.arena()) {
    return 0;
  }
  const Arena& arena = *parameters.arena();
  const Squares all = squares_of_ranks(
      arena, squares(gradient_ranges(arena, pointers_to(parameters)), device_of(parameters)));
  return all.non_finite != 0 ? power_norm(parameters, 2) : std::sqrt(all.sum);
}

}  // namespace

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
  for_each_gradient(parameters, [](Leaf& leaf, const View&) { leaf.clipped_norm = true; });
  const double factor = max_norm / (norm + kernels::kClipEpsilon);
  if (!std::isfinite(norm) || factor >= 1) {
    return norm;
  }
  for_each_gradient(parameters, [factor](Leaf& leaf, const View&) {
    if (factor > 0) {
      leaf.scale /= factor;
    } else {
      leaf.buffer.fill_(0);
    }
  });
  return norm;
}

void clip_grad_value(const ParameterList& parameters, double limit) {
  check(limit >= 0, "clip_grad_value: got limit = ", limit, ", expected a number >= 0");
  for_each_gradient(parameters, [&](Leaf& leaf, const View& flat) {
    leaf.clipped_value = true;
    kernels::clamp_gradient(
        {.grad = flat, .scale = leaf.scale, .tag = leaf.device_scale, .limit = limit});
  });
}

void replace_non_finite(const ParameterList& parameters) {
  for (const GradientRange& range : gradient_ranges(*parameters.arena(), pointers_to(parameters))) {
    kernels::replace_non_finite({.grad = range.grad});
  }
}

}  // namespace binade::optim
