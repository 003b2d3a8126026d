// gradcheck works on leaves of its own, copies of the inputs with the same strides. The derivative
// along d is sum(u * (f(x + h d) - f(x - h d))) / 2h. The differences come first, so that few
// digits cancel. The direction of a single element is 1 at that element and 0 elsewhere.
#include <binade/core/autograd/gradcheck.h>

#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
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

// A random number of either sign with a magnitude from 0.5 to 0.5 + spread, so never near zero.
double random_number(philox::Stream& random, double spread) {
  const double magnitude = 0.5 + spread * random.next_uniform();
  return random.next_below(2) == 0 ? magnitude : -magnitude;
}

Tensor random_upstream(const Tensor& y, uint64_t seed) {
  Tensor upstream = empty(y.sizes(), DType::f64);
  philox::Stream random(seed, 0x67726164);
  for (int64_t i = 0; i < y.numel(); ++i) {
    upstream.data<double>()[i] = random_number(random, 1);
  }
  return upstream.to(y.device());
}

// The gradient of each leaf by backward; zeros if backward left none.
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

// A direction in which an input is perturbed.
struct Direction {
  std::string name;
  std::vector<double> d;  // per element, in row-major order
  double step;
};

double scale_of(double x) { return std::max(1.0, std::fabs(x)); }

Direction along_element(const std::vector<double>& x, size_t j, double eps) {
  Direction element{text("element ", j), std::vector<double>(x.size()), eps * scale_of(x[j])};
  element.d[j] = 1;
  return element;
}

Direction random_direction(const std::vector<double>& x, size_t k, double eps,
                           philox::Stream& random) {
  Direction all{text("direction ", k), x, eps};
  for (double& d : all.d) {
    d = random_number(random, 0.5) * scale_of(d);
  }
  return all;
}

void set_values(const Tensor& leaf, const std::vector<double>& values) {
  leaf.detach().copy_(from_values(values, leaf.sizes(), DType::f64, leaf.device()));
}

// The numeric side of a check: the function at leaves under one upstream gradient.
struct Probe {
  const Function& function;
  const std::vector<Tensor>& leaves;
  std::vector<double> upstream;

  std::vector<double> at(size_t input, const std::vector<double>& x, const Direction& line,
                         double distance) const {
    std::vector<double> moved = x;
    for (size_t j = 0; j < x.size(); ++j) {
      moved[j] += distance * line.d[j];
    }
    set_values(leaves[input], moved);
    return values_of(call(function, leaves));
  }

  double derivative(size_t input, const std::vector<double>& x, const Direction& line) const {
    const std::vector<double> high = at(input, x, line, line.step);
    const std::vector<double> low = at(input, x, line, -line.step);
    set_values(leaves[input], x);
    double sum = 0;
    for (size_t i = 0; i < upstream.size(); ++i) {
      sum += upstream[i] * (high[i] - low[i]);
    }
    return sum / (2 * line.step);
  }
};

void check_direction(size_t input, const Direction& line, const std::vector<double>& gradient,
                     double numeric, const GradcheckOptions& options) {
  double analytic = 0, magnitude = 0;
  for (size_t j = 0; j < gradient.size(); ++j) {
    if (line.d[j] != 0) {  // an element is compared with its own gradient only
      analytic += gradient[j] * line.d[j];
      magnitude += std::fabs(gradient[j] * line.d[j]);
    }
  }
  const double error = std::fabs(analytic - numeric);
  check(std::isfinite(error) && error <= options.atol + options.rtol * magnitude,
        "gradcheck: input ", input, ", ", line.name, ": analytic gradient ", analytic, ", numeric ",
        numeric, ", expected a difference of at most ", options.atol, " + ", options.rtol, " * ",
        magnitude);
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
  check(options.directions >= 0, "gradcheck: got ", options.directions,
        " directions, expected 0 (every element) or more");
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
  const Probe probe{function, leaves,
                    values_of(random_upstream(call(function, leaves), options.seed))};
  philox::Stream random(options.seed, 0x6c696e65);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (analytic[i].empty()) {
      continue;
    }
    const std::vector<double> x = values_of(leaves[i]);
    const bool whole = options.directions > 0;
    const size_t count = whole ? static_cast<size_t>(options.directions) : x.size();
    for (size_t k = 0; k < count; ++k) {
      const Direction line =
          whole ? random_direction(x, k, options.eps, random) : along_element(x, k, options.eps);
      check_direction(i, line, analytic[i], probe.derivative(i, x, line), options);
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
