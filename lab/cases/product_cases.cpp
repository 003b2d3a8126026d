// Cases of products: gemm and attention.
#include <binade/lab/cases/case_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::lab {
namespace {

CaseParameter product_size(const char* name) { return {.name = name, .role = Role::size}; }

std::map<std::string, Expected> gemm_reference(const Numbers& numbers) {
  const int64_t m = numbers.size("m"), n = numbers.size("n"), k = numbers.size("k");
  const Array &a = numbers.in("a"), &b = numbers.in("b");
  const auto count = static_cast<size_t>(m * n);
  Expected y{Array(count), Array(count)};
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t i = 0; i < k; ++i) {
      const double left = a[static_cast<size_t>(r * k + i)];
      for (int64_t c = 0; c < n; ++c) {
        const double product = left * b[static_cast<size_t>(i * n + c)];
        y.values[static_cast<size_t>(r * n + c)] += product;
        y.bounds[static_cast<size_t>(r * n + c)] += std::abs(product);
      }
    }
  }
  for (double& bound : y.bounds) {
    bound *= (static_cast<double>(k) + 4) * numbers.unit;
  }
  return {{"y", std::move(y)}};
}

// Computes one row of softmax(q k^T scale) v.
struct AttentionRow {
  const Numbers& numbers;
  int64_t seq, dim;
  const double *q, *k, *v;  // q is the row; k and v belong to its head

  void run(double* y, double* bound) const {
    const double scale = numbers.scalars.at("scale") / std::sqrt(static_cast<double>(dim));
    Array score(static_cast<size_t>(seq)), error(static_cast<size_t>(seq));
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < seq; ++j) {
      double dot = 0, sizes = 0;
      for (int64_t d = 0; d < dim; ++d) {
        dot += q[d] * k[j * dim + d];
        sizes += std::abs(q[d] * k[j * dim + d]);
      }
      score[static_cast<size_t>(j)] = dot * scale;
      error[static_cast<size_t>(j)] = sizes * scale * (static_cast<double>(dim) + 4) * numbers.unit;
      largest = std::isnan(dot) ? dot : std::max(largest, dot * scale);
    }
    const double most = *std::max_element(error.begin(), error.end());
    for (double& s : score) {
      s = std::exp(s - largest);
      sum += s;
    }
    const double units =
        2 * most + (2 * static_cast<double>(seq) + 64) * numbers.unit;  // error of each weight
    for (int64_t d = 0; d < dim; ++d) {
      double value = 0, sizes = 0;
      for (int64_t j = 0; j < seq; ++j) {
        const double term = score[static_cast<size_t>(j)] / sum * v[j * dim + d];
        value += term;
        sizes += std::abs(term);
      }
      y[d] = value;
      bound[d] = 2 * sizes * units + kTiny;
    }
  }
};

std::map<std::string, Expected> attention_reference(const Numbers& numbers) {
  const int64_t heads = numbers.size("heads"), seq = numbers.size("seq"), dim = numbers.size("dim");
  const Array &q = numbers.in("q"), &k = numbers.in("k"), &v = numbers.in("v");
  Expected y{Array(q.size()), Array(q.size())};
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t r = 0; r < seq; ++r) {
      const int64_t head = h * seq * dim, row = head + r * dim;
      AttentionRow{numbers, seq, dim, q.data() + row, k.data() + head, v.data() + head}.run(
          y.values.data() + row, y.bounds.data() + row);
    }
  }
  return {{"y", std::move(y)}};
}

CaseParameter head_array(const char* name, Role role) {
  return {.name = name, .role = role, .extents = {"heads", "seq", "dim"}};
}

}  // namespace

Case gemm_case() {
  Case c;
  c.name = "gemm";
  c.summary = "y[r][c] = sum over i of a[r][i] b[i][c]; a is m x k, b is k x n, y is m x n";
  c.parameters = {{.name = "a", .role = Role::input, .extents = {"m", "k"}},
                  {.name = "b", .role = Role::input, .extents = {"k", "n"}},
                  {.name = "y", .role = Role::output, .extents = {"m", "n"}},
                  product_size("m"),
                  product_size("n"),
                  product_size("k")};
  c.size_order = {"m", "n", "k"};
  c.shapes = {{{"m", 1}, {"n", 1}, {"k", 1}},
              {{"m", 17}, {"n", 5}, {"k", 129}},
              {{"m", 65}, {"n", 67}, {"k", 33}},
              {{"m", 128}, {"n", 128}, {"k", 64}}};
  c.inputs = {{"normal"}, {"large", false}, {"equal"}, {"nan"}};
  c.lesson = "lesson 3, \"shared memory and banks\"";
  c.fill = [](Numbers& numbers, const std::string& set) {
    CaseRandom random(numbers.seed);
    fill_array(numbers.arrays.at("a"), set, random);
    fill_array(numbers.arrays.at("b"), set == "nan" ? "normal" : set, random);
  };
  c.reference = gemm_reference;
  c.flops = [](const Sizes& s) {
    return 2.0 * static_cast<double>(s.at("m")) * static_cast<double>(s.at("n") * s.at("k"));
  };
  return c;
}

Case attention_case() {
  Case c;
  c.name = "attention";
  c.summary =
      "y = softmax(q k^T scale / sqrt(dim)) v for each head; q, k, v, y are heads x seq x dim";
  c.parameters = {
      head_array("q", Role::input), head_array("k", Role::input),
      head_array("v", Role::input), head_array("y", Role::output),
      product_size("heads"),        product_size("seq"),
      product_size("dim"),          {.name = "scale", .role = Role::scalar, .value = 1}};
  c.size_order = {"heads", "seq", "dim"};
  c.shapes = {{{"heads", 1}, {"seq", 1}, {"dim", 8}},
              {{"heads", 2}, {"seq", 33}, {"dim", 16}},
              {{"heads", 1}, {"seq", 70}, {"dim", 64}},
              {{"heads", 3}, {"seq", 64}, {"dim", 32}}};
  c.inputs = {{"normal"}, {"large"}, {"equal"}, {"nan"}};
  c.lesson = "lesson 5, \"tensor cores and FP16 numerics\"";
  c.fill = [](Numbers& numbers, const std::string& set) {
    CaseRandom random(numbers.seed);
    for (const char* name : {"q", "k", "v"}) {
      const std::string of_array = set == "nan" && std::string_view(name) != "v" ? "normal" : set;
      fill_array(numbers.arrays.at(name), of_array, random, {.range = 2, .large = 8});
    }
  };
  c.reference = attention_reference;
  c.flops = [](const Sizes& s) {
    return 4.0 * static_cast<double>(s.at("heads") * s.at("dim")) *
           static_cast<double>(s.at("seq") * s.at("seq"));
  };
  return c;
}

}  // namespace binade::lab
