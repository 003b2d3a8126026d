// Rows of attention.
#include <binade/core/ops/attention.h>
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::op_table {
namespace {

const Domain kOperand{.low = -1, .high = 1};

struct AttentionVariant {
  std::string name;
  bool add = false, keep = false, causal = false;
  std::optional<double> scale = {};
  double dropout = 0;
  bool grouped = false;
};

constexpr uint64_t kDropoutSeed = 11;

Dims lead(const Dims& sizes) {
  Dims out;
  for (int i = 0; i + 2 < sizes.size(); ++i) {
    out.push_back(sizes[i]);
  }
  return out;
}

// The result of the op dropout on a matrix of ones.
Tensor kept_weights(const Dims& sizes, double p) {
  if (p == 0) {
    return {};
  }
  manual_seed(kDropoutSeed);
  return dropout(ones(sizes, DType::f64), p);
}
double value_at(const Tensor& t, const Dims& index) {
  int64_t at = 0;
  for (int i = 0; i < index.size(); ++i) {
    at = at * t.sizes()[i] + index[i];
  }
  return t.data<double>()[at];
}

// softmax(q k^T scale + mask) v; recomputes the weights of a query for every element.
Array attention_of(const Arrays& in, const AttentionVariant& variant) {
  const Array &q = in[0], &k = in[1], &v = in[2];
  Dims sizes = broadcast(broadcast(lead(q.sizes), lead(k.sizes)), lead(v.sizes));
  if (in.size() > 3) {
    sizes = broadcast(sizes, lead(in[3].sizes));
  }
  const int rank = sizes.size() + 2;
  sizes.push_back(q.sizes[q.dim() - 2]);
  sizes.push_back(v.sizes[v.dim() - 1]);
  const int64_t size = q.sizes[q.dim() - 1], keys = k.sizes[k.dim() - 2];
  const double scale = variant.scale.value_or(1 / std::sqrt(double(size)));
  Dims weights = sizes;
  weights[rank - 1] = keys;
  const Tensor kept = kept_weights(weights, variant.dropout);
  return generate(sizes, [&](const Dims& index) {
    std::vector<double> scores(static_cast<size_t>(keys), 0.0);
    const auto at = [&](const Array& x, int64_t row, int64_t column) {
      Dims place = index;
      place[rank - 2] = row;
      place[rank - 1] = column;
      Dims own;
      for (int i = rank - x.dim(); i < rank; ++i) {
        own.push_back(place[i]);
      }
      return x.at(own);
    };
    const int64_t query = index[rank - 2];
    double top = -std::numeric_limits<double>::infinity(), sum = 0, out = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double& s = scores[size_t(j)];
      for (int64_t d = 0; d < size; ++d) {
        s += scale * at(q, query, d) * at(k, j, d);
      }
      const double m = in.size() > 3 ? at(in[3], query, j) : 0;
      s += variant.add ? m : 0;
      if ((variant.keep && m == 0) || (variant.causal && j > query)) {
        s = -std::numeric_limits<double>::infinity();
      }
      top = std::max(top, s);
    }
    for (double& s : scores) {
      s = std::isinf(top) ? 0 : std::exp(s - top);
      sum += s;
    }
    for (int64_t j = 0; j < keys; ++j) {
      Dims place = index;
      place[rank - 1] = j;
      const double factor = variant.dropout > 0 ? value_at(kept, place) : 1;
      out += sum == 0 ? 0 : factor * scores[size_t(j)] / sum * at(v, j, index[rank - 1]);
    }
    return out;
  });
}

// Every head of keys or values once for each head of its group.
Array heads_repeated(const Array& x, int64_t heads) {
  const int at = x.dim() - 3;
  Dims sizes = x.sizes;
  sizes[at] = heads;
  return generate(sizes, [&](Dims index) {
    index[at] /= heads / x.sizes[at];
    return x.at(index);
  });
}

OpRow attention_row(const AttentionVariant& variant, std::vector<Shapes> shapes,
                    const Shapes& large) {
  OpRow row;
  row.name = "scaled_dot_product_attention";
  row.attributes = variant.name;
  row.shapes = std::move(shapes);
  row.large = large;
  row.timed = {{2, 8, 256, 64}, {2, 8, 256, 64}, {2, 8, 256, 64}};
  if (large.size() > 3) {
    row.timed.push_back({256, 256});
  }
  row.flops = [causal = variant.causal](const Shapes& s) {
    return (causal ? 2.0 : 4.0) * double(element_count(s[0]) * s[1][2]);
  };
  row.domains = {kOperand};
  if (variant.keep) {
    row.domains = {kOperand, kOperand, kOperand, {.classes = 7}};  // 0: not seen
  }
  row.function = [variant](const Tensors& x) {
    AttentionOptions options{.is_causal = variant.causal,
                             .scale = variant.scale,
                             .dropout = variant.dropout,
                             .enable_gqa = variant.grouped};
    manual_seed(kDropoutSeed);
    if (x.size() > 3) {
      options.mask = variant.keep ? ne(x[3], zeros({}, DType::i64, x[3].device())) : x[3];
    }
    return Tensors{scaled_dot_product_attention(x[0], x[1], x[2], options)};
  };
  row.reference = [variant](Arrays x) {
    for (size_t i = 1; i < 3 && variant.grouped; ++i) {
      x[i] = heads_repeated(x[i], x[0].sizes[x[0].dim() - 3]);
    }
    return Arrays{attention_of(x, variant)};
  };
  row.accuracy = Accuracy::sums;
  return row;
}

std::vector<ErrorCase> attention_errors() {
  const auto dropping = [](double p) {
    return [p] {
      const Tensor x = ones({2, 3});
      scaled_dot_product_attention(x, x, x, {.dropout = p});
    };
  };
  const auto with = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {}) {
    return [=] { scaled_dot_product_attention(q, k, v, {.mask = mask}); };
  };
  const auto grouped = [](int64_t heads, int64_t keys, int64_t values) {
    return [=] {
      scaled_dot_product_attention(ones({heads, 2, 3}), ones({keys, 2, 3}), ones({values, 2, 3}),
                                   {.enable_gqa = true});
    };
  };
  const Tensor q = ones({2, 5, 4}), k = ones({2, 6, 4});
  return {
      {"head sizes that differ", with(q, ones({2, 6, 3}), k)},
      {"key and value lengths that differ", with(q, k, ones({2, 7, 4}))},
      {"leading sizes that differ", with(q, ones({3, 6, 4}), ones({3, 6, 4}))},
      {"mask that does not broadcast", with(q, k, k, ones({4, 6}))},
      {"mask of another dtype", with(q, k, k, ones({5, 6}, DType::f64))},
      {"integer mask", with(q, k, k, ones({5, 6}, DType::i64))},
      {"vectors", with(ones({4}), ones({4}), ones({4}))},
      {"no features", with(ones({2, 5, 0}), ones({2, 6, 0}), k)},
      {"dtypes that differ", with(q, ones({2, 6, 4}, DType::f64), k)},
      {"integer operands",
       with(ones({5, 4}, DType::i64), ones({5, 4}, DType::i64), ones({5, 4}, DType::i64))},
      {"undefined operand", with(q, Tensor(), k)},
      {"heads that groups do not divide", grouped(3, 2, 2)},
      {"groups of keys and values that differ", grouped(4, 2, 1)},
      {"groups without heads",
       [] {
         const Tensor x = ones({2, 3});
         scaled_dot_product_attention(x, x, x, {.enable_gqa = true});
       }},
      {"dropout above one", dropping(1.5)},
      {"negative dropout", dropping(-0.1)},
  };
}

}  // namespace

std::vector<OpRow> attention_rows() {
  const Shapes large{{3, 4, 140, 16}, {3, 4, 150, 16}, {3, 4, 150, 16}};
  const auto masked = [&](const Dims& mask) {
    Shapes shapes = large;
    shapes.push_back(mask);
    return shapes;
  };
  std::vector<OpRow> rows;
  rows.push_back(attention_row({"plain"},
                               {{{2, 3, 2}, {2, 4, 2}, {2, 4, 3}},
                                {{3, 2}, {3, 2}, {3, 2}},
                                {{2, 2, 2, 1}, {1, 2, 3, 1}, {2, 1, 3, 2}},
                                {{2, 1, 2, 2, 1}, {2, 1, 2, 2, 1}, {1, 2, 2, 2, 1}},
                                {{0, 2, 3, 4}, {0, 2, 5, 4}, {0, 2, 5, 4}},
                                {{2, 3, 4}, {2, 0, 4}, {2, 0, 2}},
                                {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
                                {{3, 2}, {200, 2}, {200, 1}}},  // beyond a tile of keys
                               large));
  rows.back().errors = attention_errors();
  rows.push_back(attention_row({.name = "causal scale 0.3", .causal = true, .scale = 0.3},
                               {{{2, 3, 2}, {2, 3, 2}, {2, 3, 2}},
                                {{3, 2}, {5, 2}, {5, 3}},
                                {{1, 2, 4, 1}, {1, 2, 3, 1}, {1, 2, 3, 2}}},
                               large));
  rows.push_back(
      attention_row({.name = "added mask", .add = true},
                    {{{2, 2, 2, 2}, {2, 2, 3, 2}, {2, 2, 3, 1}, {2, 3}},
                     {{2, 2, 2, 1}, {2, 2, 2, 1}, {2, 2, 2, 1}, {2, 1, 2, 2}},
                     {{2, 1}, {3, 1}, {3, 2}, {2, 2, 3}},
                     {{2, 1, 2, 1, 1}, {2, 1, 2, 2, 1}, {2, 1, 2, 2, 1}, {2, 1, 1, 1, 2}}},
                    masked({1, 4, 140, 150})));
  rows.push_back(attention_row(
      {.name = "kept causal", .keep = true, .causal = true},
      {{{2, 2, 3, 1}, {2, 2, 3, 1}, {2, 2, 3, 2}, {2, 1, 1, 3}}, {{3, 2}, {5, 2}, {5, 2}, {3, 5}}},
      masked({140, 150})));
  rows.push_back(
      attention_row({.name = "added mask dropout 0.4", .add = true, .dropout = 0.4},
                    {{{2, 3, 2}, {2, 5, 2}, {2, 5, 3}, {3, 5}}, {{3, 1}, {2, 1}, {2, 2}, {1, 2}}},
                    masked({1, 4, 140, 150})));
  rows.push_back(attention_row({.name = "grouped causal", .causal = true, .grouped = true},
                               {{{2, 4, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 1}},
                                {{3, 2, 1}, {1, 4, 1}, {1, 4, 2}},
                                {{4, 2, 1}, {2, 2, 3, 1}, {1, 2, 3, 2}}},
                               {{3, 4, 140, 16}, {3, 2, 150, 16}, {3, 2, 150, 16}}));
  return rows;
}

}  // namespace binade::op_table
