// gradcheck works on leaves of its own, copies of the inputs with the same strides. The numeric
// gradient is sum(u * (f(x + h) - f(x - h))) / 2h, differences first: little cancels that way.
#include <binade/core/gradcheck.h>

#include <binade/core/autograd.h>
#include <binade/core/device_memory.h>
#include <binade/core/ops.h>
#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace binade {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// Offset, in elements, of the element with a row-major index.
int64_t element_offset(const Tensor& t, int64_t index) {
  int64_t offset = 0;
  for (int i = t.dim() - 1; i >= 0; --i) {
    offset += index % t.sizes()[i] * t.strides()[i];
    index /= t.sizes()[i];
  }
  return offset;
}

std::vector<double> values_of(const Tensor& on_any_device) {
  const Tensor t = on_any_device.detach().to(Device{});
  std::vector<double> values(static_cast<size_t>(t.numel()));
  const double* data = t.data<double>();
  for (int64_t i = 0; i < t.numel(); ++i) {
    values[static_cast<size_t>(i)] = data[element_offset(t, i)];
  }
  return values;
}

Tensor leaf_like(const Tensor& input, size_t index) {
  if (!input.requires_grad()) {
    return input;
  }
  check(input.dtype() == DType::f64, "gradcheck: input ", index, " has dtype ", input.dtype(),
        ", expected f64: other dtypes are too coarse for central differences");
  check(is_dense(input.sizes(), input.strides()) || input.numel() == 0, "gradcheck: input ", index,
        " has strides ", input.strides(), " for sizes ", input.sizes(),
        ", expected a dense tensor: slice or expand inside the function");
  Tensor leaf = empty_strided(input.sizes(), input.strides(), DType::f64, input.device());
  leaf.copy_(input.detach());
  leaf.require_grad();
  return leaf;
}

Tensor call(const Function& function, const std::vector<Tensor>& leaves) {
  Tensor y = function(leaves);
  check(y.defined(), "gradcheck: got an undefined result from the function, expected a tensor");
  check(y.dtype() == DType::f64, "gradcheck: the function's result has dtype ", y.dtype(),
        ", expected f64");
  return y;
}

// Random, of either sign, nowhere near zero.
Tensor random_upstream(const Tensor& y, uint64_t seed) {
  Tensor upstream = empty(y.sizes(), DType::f64);
  philox::Stream random(seed, 0x67726164);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const double magnitude = 0.5 + random.next_uniform();
    upstream.data<double>()[i] = random.next_below(2) == 0 ? magnitude : -magnitude;
  }
  return upstream.to(y.device());
}

// An element of a leaf, in the memory of any device.
class Element {
 public:
  Element(const Tensor& leaf, int64_t index)
      : at_(leaf.view().as<double>() + element_offset(leaf, index)), device_(leaf.device()) {}
  double get() const {
    double value = 0;
    device_.is_cpu() ? void(value = *at_)
                     : device_copy(&value, Device{}, at_, device_, sizeof value);
    return value;
  }
  void set(double value) const {
    device_.is_cpu() ? void(*at_ = value)
                     : device_copy(at_, device_, &value, Device{}, sizeof value);
  }

 private:
  double* at_;
  Device device_;
};

// The gradient of each leaf by backward; zeros where backward left none.
std::vector<std::vector<double>> analytic_gradients(const Function& function,
                                                    const std::vector<Tensor>& leaves,
                                                    uint64_t seed) {
  for (const Tensor& leaf : leaves) {
    if (leaf.requires_grad()) {
      leaf.zero_grad();
    }
  }
  const Tensor y = call(function, leaves);
  check(y.requires_grad(), "gradcheck: the function's result does not depend on any input that ",
        "requires a gradient");
  backward(y, random_upstream(y, seed));
  std::vector<std::vector<double>> gradients(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].requires_grad()) {
      continue;
    }
    const Tensor gradient = leaves[i].grad();
    check(!gradient.defined() || gradient.sizes() == leaves[i].sizes(), "gradcheck: input ", i,
          " has sizes ", leaves[i].sizes(), " but a gradient of sizes ",
          gradient.defined() ? gradient.sizes() : Dims{});
    gradients[i] = gradient.defined() ? values_of(gradient)
                                      : std::vector<double>(static_cast<size_t>(leaves[i].numel()));
  }
  return gradients;
}

double numeric_gradient(const Function& function, const std::vector<Tensor>& leaves,
                        const Element& x, const std::vector<double>& upstream, double eps) {
  const double middle = x.get(), step = eps * std::max(1.0, std::fabs(middle));
  const double above = middle + step, below = middle - step;
  x.set(above);
  const std::vector<double> high = values_of(call(function, leaves));
  x.set(below);
  const std::vector<double> low = values_of(call(function, leaves));
  x.set(middle);
  double sum = 0;
  for (size_t i = 0; i < upstream.size(); ++i) {
    sum += upstream[i] * (high[i] - low[i]);
  }
  return sum / (above - below);
}

void check_repeats(const std::vector<std::vector<double>>& first,
                   const std::vector<std::vector<double>>& second) {
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < first[i].size(); ++j) {
      check(std::bit_cast<uint64_t>(first[i][j]) == std::bit_cast<uint64_t>(second[i][j]),
            "gradcheck: input ", i, ", element ", j, ": got ", first[i][j],
            " from the first backward and ", second[i][j],
            " from the second, expected the same bits");
    }
  }
}

}  // namespace

void gradcheck(const Function& function, const std::vector<Tensor>& inputs,
               const GradcheckOptions& options) {
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    leaves.push_back(leaf_like(inputs[i], i));
  }
  check(
      std::any_of(leaves.begin(), leaves.end(), [](const Tensor& t) { return t.requires_grad(); }),
      "gradcheck: none of the ", inputs.size(), " inputs requires a gradient; call require_grad()");
  const GradGuard record;
  const auto analytic = analytic_gradients(function, leaves, options.seed);
  check_repeats(analytic, analytic_gradients(function, leaves, options.seed));

  const NoGradGuard no_grad;
  const std::vector<double> upstream =
      values_of(random_upstream(call(function, leaves), options.seed));
  for (size_t i = 0; i < leaves.size(); ++i) {
    for (size_t j = 0; j < analytic[i].size(); ++j) {
      const Element x(leaves[i], static_cast<int64_t>(j));
      const double numeric = numeric_gradient(function, leaves, x, upstream, options.eps);
      const double error = std::fabs(analytic[i][j] - numeric);
      check(error <= options.atol + options.rtol * std::fabs(numeric), "gradcheck: input ", i,
            ", element ", j, ": analytic gradient ", analytic[i][j], ", numeric ", numeric,
            ", expected a difference of at most ", options.atol, " + ", options.rtol, " |numeric|");
    }
  }
}

void gradgradcheck(const Function& function, const std::vector<Tensor>& inputs,
                   const GradcheckOptions& options) {
  std::vector<size_t> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad()) {
      wanted.push_back(i);
    }
  }
  std::vector<Tensor> all = inputs;
  {
    const NoGradGuard no_grad;
    all.push_back(random_upstream(call(function, inputs), options.seed));
  }
  all.back().require_grad();
  const auto gradients = [&](const std::vector<Tensor>& in) {
    const GradGuard record;
    const Tensor y = call(function, {in.begin(), in.end() - 1});
    check(y.requires_grad(), "gradgradcheck: the function's result does not depend on any input ",
          "that requires a gradient");
    std::vector<Tensor> leaves, flat;
    for (size_t i : wanted) {
      leaves.push_back(in[i]);
    }
    for (const Tensor& g :
         grad({y}, leaves, {.upstream = {in.back()}, .create_graph = true, .allow_unused = true})) {
      if (g.defined()) {
        flat.push_back(reshape(g, {g.numel()}));
      }
    }
    return cat(flat);
  };
  gradcheck(gradients, all, options);
}

}  // namespace binade
