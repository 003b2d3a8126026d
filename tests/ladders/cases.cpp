#include <binade/kernels/base/error.h>
#include <tests/ladders/cases.h>
#include <tests/ladders/guarded_buffer.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

namespace ladders {
namespace {

using plain_cuda::Half;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The same numbers in each run: values in [-1, 1) that a float holds exactly.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<int64_t>(state_ >> 40) - (1 << 23)) * 0x1p-23f;
  }

 private:
  uint64_t state_;
};

template <class T>
void fill(GuardedBuffer<T>& buffer, const std::string& inputs, uint64_t seed) {
  Numbers numbers(seed);
  for (size_t i = 0; i < buffer.size(); ++i) {
    const float x = numbers.next();
    float value = x;
    if (inputs == "large") {
      value = 90 * x;
    } else if (inputs == "equal") {
      value = 2;
    } else if (inputs == "positive") {
      value = 0.5f + 0.5f * std::abs(x);
    } else if (inputs == "-inf" && x < -0.5f) {
      value = -kInf;
    } else if (inputs == "nan" && i % 37 == 20) {
      value = kNaN;
    }
    buffer[i] = static_cast<T>(value);
  }
}

// What a run left: NaN where NaN is expected, else at most `bound` away.
struct Expected {
  std::vector<double> value, bound;
};

template <class T>
bool same_bytes(GuardedBuffer<T>& now, const std::vector<T>& before) {
  return std::memcmp(now.data(), before.data(), before.size() * sizeof(T)) == 0;
}
template <class T>
std::vector<T> copy(GuardedBuffer<T>& buffer) {
  return {buffer.data(), buffer.data() + buffer.size()};
}

std::string first_wrong(const std::vector<float>& out, const Expected& expected, int cols) {
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double value = out[i], want = expected.value[i];
    const bool right = std::isnan(want)   ? std::isnan(value)
                       : std::isinf(want) ? value == want
                                          : std::abs(value - want) <= expected.bound[i];
    first = !right && wrong++ == 0 ? i : first;
  }
  if (wrong == 0) {
    return "";
  }
  const size_t row = first / static_cast<size_t>(cols), col = first % static_cast<size_t>(cols);
  return binade::text(wrong, " of ", out.size(), " elements are wrong; first [", row, "][", col,
                      "]: got ", out[first], ", expected ", expected.value[first]);
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const binade::Error& error) {
    return error.what();
  }
  return "";
}

// Runs `call`, then compares; `inputs_hold` says whether the inputs are as they were.
template <class Call, class InputsHold>
Outcome judged(const Call& call, const InputsHold& inputs_hold, GuardedBuffer<float>& out,
               const Expected& expected, int cols) {
  Outcome outcome;
  outcome.fault = error_of(call);
  outcome.out = copy(out);
  if (outcome.fault.empty() && !out.guards_hold()) {
    outcome.fault = "the kernel wrote outside of its output";
  }
  if (outcome.fault.empty() && !inputs_hold()) {
    outcome.fault = "the kernel wrote to an input";
  }
  if (outcome.fault.empty()) {
    outcome.fault = first_wrong(outcome.out, expected, cols);
  }
  return outcome;
}

Outcome run_softmax(void* solve, const Shape& shape, const std::string& inputs) {
  const int rows = shape.size[0], cols = shape.size[1];
  const auto n = static_cast<size_t>(rows) * static_cast<size_t>(cols);
  GuardedBuffer<float> in(n), out(n);
  fill(in, inputs, 1);
  Expected expected{std::vector<double>(n), std::vector<double>(n)};
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    const float* row = in.data() + r * static_cast<size_t>(cols);
    double top = -kInf, sum = 0;
    for (int c = 0; c < cols; ++c) {
      top = std::max<double>(top, row[c]);
    }
    for (int c = 0; c < cols; ++c) {
      sum += std::exp(row[c] - top);
    }
    for (int c = 0; c < cols; ++c) {
      const size_t i = r * static_cast<size_t>(cols) + static_cast<size_t>(c);
      expected.value[i] = std::exp(row[c] - top) / sum;
      // exp() is rounded, and so is its argument, up to 180 away from 0; sums of cols terms.
      expected.bound[i] = expected.value[i] * 1e-7 * (8 + cols / 16.0) + 1e-38;
      if (expected.value[i] > 0) {
        expected.bound[i] += expected.value[i] * 6e-8 * std::abs(row[c] - top);
      }
    }
  }
  const std::vector<float> before = copy(in);
  return judged(
      [&] {
        reinterpret_cast<plain_cuda::Solve_softmax>(solve)(in.data(), out.data(), rows, cols);
      },
      [&] { return in.guards_hold() && same_bytes(in, before); }, out, expected, cols);
}

template <class T>
Outcome run_product(void* solve, const Shape& shape, const std::string& inputs) {
  const int m = shape.size[0], n = shape.size[1], k = shape.size[2];
  const auto of = [](int a, int b) { return static_cast<size_t>(a) * static_cast<size_t>(b); };
  GuardedBuffer<T> a(of(m, k)), b(of(k, n));
  GuardedBuffer<float> c(of(m, n));
  fill(a, inputs, 1);
  fill(b, inputs, 2);
  Expected expected{std::vector<double>(c.size()), std::vector<double>(c.size())};
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      double sum = 0, size = 0;
      for (int i = 0; i < k; ++i) {
        const double product = double{static_cast<float>(a[of(row, k) + static_cast<size_t>(i)])} *
                               double{static_cast<float>(b[of(i, n) + static_cast<size_t>(col)])};
        sum += product;
        size += std::abs(product);
      }
      const size_t at = of(row, n) + static_cast<size_t>(col);
      expected.value[at] = sum;
      expected.bound[at] = size * 6e-8 * (k + 1);  // k roundings of 2^-24
    }
  }
  const std::vector<T> before_a = copy(a), before_b = copy(b);
  using Solve = void (*)(const T*, const T*, float*, int, int, int);
  return judged([&] { reinterpret_cast<Solve>(solve)(a.data(), b.data(), c.data(), m, n, k); },
                [&] {
                  return a.guards_hold() && b.guards_hold() && same_bytes(a, before_a) &&
                         same_bytes(b, before_b);
                },
                c, expected, n);
}

Outcome run_reduce(void* solve, const Shape& shape, const std::string& inputs) {
  const int n = shape.size[0];
  GuardedBuffer<float> in(static_cast<size_t>(n)), out(1);
  fill(in, inputs, 1);
  double sum = 0, size = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    sum += in[i];
    size += std::abs(in[i]);
  }
  const Expected expected{{sum}, {size * 6e-8 * std::max(n, 1)}};
  const std::vector<float> before = copy(in);
  return judged(
      [&] { reinterpret_cast<plain_cuda::Solve_reduce>(solve)(in.data(), out.data(), n); },
      [&] { return in.guards_hold() && same_bytes(in, before); }, out, expected, 1);
}

Outcome run_transpose(void* solve, const Shape& shape, const std::string& inputs) {
  const int rows = shape.size[0], cols = shape.size[1];
  const auto n = static_cast<size_t>(rows) * static_cast<size_t>(cols);
  GuardedBuffer<float> in(n), out(n);
  fill(in, inputs, 1);
  Expected expected{std::vector<double>(n), std::vector<double>(n)};
  for (size_t i = 0; i < n; ++i) {
    const size_t row = i / static_cast<size_t>(cols), col = i % static_cast<size_t>(cols);
    expected.value[col * static_cast<size_t>(rows) + row] = in[i];
  }
  const std::vector<float> before = copy(in);
  return judged(
      [&] {
        reinterpret_cast<plain_cuda::Solve_transpose>(solve)(in.data(), out.data(), rows, cols);
      },
      [&] { return in.guards_hold() && same_bytes(in, before); }, out, expected, rows);
}

const std::vector<Case>& cases() {
  static const std::vector<std::string> products = {"normal", "equal"};
  static const std::vector<Shape> product_shapes = {
      {{1, 1, 1}}, {{33, 65, 17}}, {{64, 64, 64}}, {{5, 130, 40}}, {{70, 3, 9}}};
  static const std::vector<Case> all = {
      {"softmax",
       2,
       {{{1, 1}}, {{7, 33}}, {{3, 1000}}, {{65, 20}}, {{2, 2500}}},
       {{64, 256}},
       {"normal", "large", "-inf", "equal", "nan"},
       run_softmax},
      {"gemm", 3, product_shapes, {{64, 64, 64}}, products, run_product<float>},
      {"gemm_f16", 3, product_shapes, {{64, 64, 64}}, products, run_product<Half>},
      {"reduce",
       1,
       {{{1}}, {{31}}, {{1000}}, {{8193}}, {{20001}}},
       {{65536}},
       {"normal", "positive", "equal", "nan"},
       run_reduce},
      {"transpose",
       2,
       {{{1, 1}}, {{7, 33}}, {{64, 32}}, {{65, 130}}, {{36, 44}}},
       {{64, 64}},
       {"normal"},
       run_transpose},
  };
  return all;
}

}  // namespace

std::string to_string(const Shape& shape, int dimensions) {
  std::string text = std::to_string(shape.size[0]);
  for (int i = 1; i < dimensions; ++i) {
    text += "x" + std::to_string(shape.size[i]);
  }
  return text;
}

const Case* find_case(const std::string& name) {
  for (const Case& one : cases()) {
    if (one.name == name) {
      return &one;
    }
  }
  return nullptr;
}
std::string case_names() {
  std::string names;
  for (const Case& one : cases()) {
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return names;
}

const std::vector<Order>& orders() {
  using binade::kernels::host::Schedule;
  static const std::vector<Order> all = {{"forward", Schedule::forward, 1},
                                         {"reverse", Schedule::reverse, 1},
                                         {"random", Schedule::random, 1}};
  return all;
}
void set_order(const Order& order) {
  binade::kernels::host::Options& options = binade::kernels::host::options();
  options = {};
  options.schedule = order.schedule;
  options.seed = order.seed;
}

}  // namespace ladders
