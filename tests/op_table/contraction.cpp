// Rows of the contractions.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <cmath>

namespace binade::op_table {
namespace {

Array matmul_of(const Array& a, const Array& b) {
  const int ra = a.dim(), rb = b.dim();
  const int64_t m = a.sizes[ra - 2], k = a.sizes[ra - 1], n = b.sizes[rb - 1];
  const Dims sizes = ra == 2 ? Dims{m, n} : broadcast({a.sizes[0], m, n}, {b.sizes[0], m, n});
  return generate(sizes, [&](const Dims& index) {
    Dims left = index, right = index;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      left[ra - 1] = i;
      right[rb - 2] = i;
      sum += a.at(left) * b.at(right);
    }
    return sum;
  });
}

OpRow matmul_row() {
  OpRow row;
  row.name = "matmul";
  row.shapes = {{{3, 4}, {4, 5}},       {{1, 1}, {1, 1}}, {{2, 3, 4}, {2, 4, 5}},
                {{5, 7}, {7, 1}},       {{0, 4}, {4, 3}}, {{3, 0}, {0, 2}},
                {{0, 3, 4}, {0, 4, 2}}, {{1, 9}, {9, 3}}, {{4, 4}, {4, 4}}};
  row.function = [](const Tensors& x) { return Tensors{matmul(x[0], x[1])}; };
  row.reference = [](const Arrays& x) { return Arrays{matmul_of(x[0], x[1])}; };
  row.accuracy = Accuracy::sums;
  row.depth = [](const Shapes& shapes) { return shapes[0].back(); };
  for (int64_t m : {1, 17, 129}) {
    for (int64_t k : {1, 17, 129}) {
      for (int64_t n : {1, 17, 129}) {
        row.exact_shapes.push_back({{m, k}, {k, n}});
      }
    }
  }
  row.exact_shapes.push_back({{3, 31, 65}, {3, 65, 33}});
  row.exact_shapes.push_back({{2, 7, 300}, {2, 300, 5}});
  row.large = {{131, 257}, {257, 129}};
  row.timed = {{512, 512}, {512, 512}};
  row.errors = {
      {"inner sizes that differ",
       [] {
         matmul(ones({3, 4}), ones({5, 6}));
       }},
      {"batch sizes that differ",
       [] {
         matmul(ones({2, 3, 4}), ones({3, 4, 5}));
       }},
      {"0-d operand", [] { matmul(ones({}), ones({3})); }},
      {"dtypes that differ",
       [] {
         matmul(ones({3, 4}), ones({4, 2}, DType::f64));
       }},
      {"integer operands",
       [] {
         matmul(zeros({3, 4}, DType::i64), zeros({4, 2}, DType::i64));
       }},
      {"undefined operand",
       [] {
         matmul(ones({3, 4}), Tensor());
       }},
  };
  return row;
}

// The gradient of a batch of 1 is a sum over batches of gradients in the dtype of the operands, so
// the bounds of a single product do not hold for it.
OpRow broadcast_matmul_row() {
  OpRow row = matmul_row();
  row.attributes = "broadcast batch";
  row.shapes = {{{1, 3, 4}, {2, 4, 2}}, {{2, 3, 4}, {1, 4, 2}}, {{1, 3, 4}, {0, 4, 2}}};
  row.depth = nullptr;
  row.exact_shapes = {};
  row.large = {{7, 31, 65}, {1, 65, 33}};
  row.timed = {{8, 256, 256}, {1, 256, 256}};
  row.flops = [](const Shapes& s) { return 2.0 * double(element_count(s[0]) * s[1][2]); };
  return row;
}

Array linear_of(const Arrays& x) {
  const Array& in = x[0];
  Dims sizes = in.sizes;
  const int last = in.dim() - 1;
  sizes[last] = x[1].sizes[0];
  return generate(sizes, [&](const Dims& index) {
    Dims at = index;
    double sum = x.size() > 2 ? x[2].at({index[last]}) : 0;
    for (at[last] = 0; at[last] < in.sizes[last]; ++at[last]) {
      sum += in.at(at) * x[1].at({index[last], at[last]});
    }
    return sum;
  });
}

OpRow linear_row(bool bias) {
  OpRow row;
  row.name = "linear";
  row.attributes = bias ? "bias" : "no bias";
  const std::vector<Shapes> shapes = {{{3, 4}, {5, 4}}, {{1, 1}, {1, 1}}, {{2, 3, 4}, {2, 4}},
                                      {{4}, {3, 4}},    {{0, 4}, {3, 4}}, {{2, 1, 3, 2, 4}, {3, 4}},
                                      {{3, 0}, {2, 0}}, {{2, 7}, {0, 7}}};
  std::vector<Shapes> exact = {
      {{17, 129}, {65, 129}}, {{129, 17}, {17, 17}}, {{3, 5, 33}, {9, 33}}};
  row.large = {{131, 257}, {129, 257}};
  const auto with_bias = [bias](Shapes s) {
    if (bias) {
      s.push_back({s[1][0]});
    }
    return s;
  };
  for (const Shapes& s : shapes) {
    row.shapes.push_back(with_bias(s));
  }
  for (const Shapes& s : exact) {
    row.exact_shapes.push_back(with_bias(s));
  }
  row.large = with_bias(row.large);
  row.timed = with_bias({{512, 512}, {512, 512}});
  row.function = [](const Tensors& x) {
    return Tensors{linear(x[0], x[1], x.size() > 2 ? x[2] : Tensor())};
  };
  row.reference = [](const Arrays& x) { return Arrays{linear_of(x)}; };
  row.accuracy = Accuracy::sums;
  row.depth = [](const Shapes& s) { return s[0].back() + 1; };
  row.errors = {
      {"inner sizes that differ",
       [] {
         linear(ones({3, 4}), ones({5, 3}));
       }},
      {"bias size that differs",
       [] {
         linear(ones({3, 4}), ones({5, 4}), ones({4}));
       }},
      {"weight of one dimension",
       [] {
         linear(ones({3, 4}), ones({4}));
       }},
      {"0-d input",
       [] {
         linear(ones({}), ones({5, 4}));
       }},
      {"dtypes that differ",
       [] {
         linear(ones({3, 4}), ones({5, 4}, DType::f64));
       }},
      {"undefined weight",
       [] {
         linear(ones({3, 4}), Tensor());
       }},
  };
  return row;
}

// The same in mode fast, where bf16 may be multiplied in pairs of k: odd and even k, and more than
// one part of it.
OpRow fast(OpRow row, const std::vector<Shapes>& exact) {
  row.attributes += row.attributes.empty() ? "fast" : ", fast";
  row.fast = true;
  row.exact_shapes.insert(row.exact_shapes.end(), exact.begin(), exact.end());
  return row;
}

Array conv2d_of(const Arrays& in, const Conv2dOptions& g) {
  const Array &x = in[0], &w = in[1];
  const int64_t per_group = w.sizes[1], outputs = w.sizes[0] / g.groups;
  const auto out = [&](int i) {
    return (x.sizes[2 + i] + 2 * g.padding[i] - g.dilation[i] * (w.sizes[2 + i] - 1) - 1) /
               g.stride[i] +
           1;
  };
  return generate({x.sizes[0], w.sizes[0], out(0), out(1)}, [&](const Dims& y) {
    double sum = in.size() > 2 ? in[2].at({y[1]}) : 0;
    for_each({per_group, w.sizes[2], w.sizes[3]}, [&](const Dims& k) {
      const int64_t row = y[2] * g.stride[0] - g.padding[0] + k[1] * g.dilation[0];
      const int64_t col = y[3] * g.stride[1] - g.padding[1] + k[2] * g.dilation[1];
      if (row >= 0 && row < x.sizes[2] && col >= 0 && col < x.sizes[3]) {
        sum += x.at({y[0], y[1] / outputs * per_group + k[0], row, col}) *
               w.at({y[1], k[0], k[1], k[2]});
      }
    });
    return sum;
  });
}

// 32 channels to 32 channels if there are no groups, images of 56 x 56.
Shapes timed_conv2d(const Shapes& shapes, int64_t groups) {
  const Dims& w = shapes[1];
  const int64_t channels = 32 / groups * groups, per_group = w[1] == 1 ? 1 : channels / groups;
  Shapes timed{{4, per_group * groups, 56, 56}, {channels, per_group, w[2], w[3]}};
  if (shapes.size() > 2) {
    timed.push_back({channels});
  }
  return timed;
}

OpRow conv2d_row(const std::string& attributes, const Conv2dOptions& g,
                 const std::vector<Shapes>& shapes, const std::vector<Shapes>& exact = {},
                 const Shapes& large = {}) {
  OpRow row;
  row.name = "conv2d";
  row.attributes = attributes;
  row.shapes = shapes;
  row.exact_shapes = exact.empty() ? shapes : exact;
  row.large = large.empty() ? shapes[0] : large;
  row.timed = timed_conv2d(shapes[0], g.groups);
  row.function = [g](const Tensors& x) {
    return Tensors{conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), g)};
  };
  row.reference = [g](const Arrays& x) { return Arrays{conv2d_of(x, g)}; };
  row.accuracy = Accuracy::sums;
  row.depth = [](const Shapes& s) { return s[1][1] * s[1][2] * s[1][3] + 1; };
  return row;
}

// Winograd on odd sizes, few channels and tiles that images clip. |A^T|, |G| and |B^T| amplify the
// sum of equal magnitudes by at most 63, in every direction.
OpRow winograd_row() {
  OpRow row = conv2d_row("3x3 padding 1, 0 bias Winograd", {.padding = {1, 0}},
                         {{{2, 3, 5, 4}, {4, 3, 3, 3}, {4}},
                          {{1, 1, 1, 3}, {1, 1, 3, 3}, {1}},
                          {{0, 2, 4, 4}, {3, 2, 3, 3}, {3}}},
                         {{{2, 17, 9, 7}, {33, 17, 3, 3}, {33}},
                          {{1, 1, 17, 17}, {1, 1, 3, 3}, {1}},
                          {{1, 129, 3, 5}, {17, 129, 3, 3}, {17}},
                          {{5, 18, 17, 23}, {35, 18, 3, 3}, {35}}},
                         {{4, 40, 33, 31}, {72, 40, 3, 3}, {72}});
  row.algorithm = "own:winograd";
  row.amplification = 63;
  return row;
}

std::vector<ErrorCase> conv2d_errors() {
  const auto with = [](const Dims& x, const Dims& w, const Conv2dOptions& g) {
    return [x, w, g] { conv2d(ones(x), ones(w), Tensor(), g); };
  };
  const Dims x{2, 3, 5, 5}, w{4, 3, 3, 3};
  return {
      {"channels that differ", with(x, {4, 2, 3, 3}, {})},
      {"weight of three dimensions", with(x, {4, 3, 3}, {})},
      {"input of three dimensions", with({3, 5, 5}, w, {})},
      {"groups that do not divide the channels", with(x, {4, 1, 3, 3}, {.groups = 2})},
      {"no groups", with(x, w, {.groups = 0})},
      {"kernel larger than the input", with({2, 3, 2, 5}, w, {})},
      {"zero stride", with(x, w, {.stride = {0, 1}})},
      {"negative padding", with(x, w, {.padding = {-1, 0}})},
      {"zero dilation", with(x, w, {.dilation = {1, 0}})},
      {"padding near 2^63", with(x, w, {.padding = {INT64_MAX - 1, 0}})},
      {"bias size that differs",
       [] {
         conv2d(ones({2, 3, 5, 5}), ones({4, 3, 3, 3}), ones({3}));
       }},
      {"dtypes that differ",
       [] {
         conv2d(ones({2, 3, 5, 5}), ones({4, 3, 3, 3}, DType::f64));
       }},
      {"undefined weight",
       [] {
         conv2d(ones({2, 3, 5, 5}), Tensor());
       }},
  };
}

Array feedforward_of(const Arrays& x) {
  const bool biased = x.size() > 3;
  const auto product = [&](const Array& a, size_t weight, size_t bias) {
    return linear_of(biased ? Arrays{a, x[weight], x[bias]} : Arrays{a, x[weight]});
  };
  const Array first = product(x[0], 1, 3);
  const Array h = generate(first.sizes, [&](const Dims& index) {
    const double at = first.at(index);
    return at * 0.5 * std::erfc(-at / std::sqrt(2.0));
  });
  return product(h, 2, 4);
}

OpRow feedforward_row(bool bias) {
  OpRow row;
  row.name = "feedforward";
  row.attributes = bias ? "bias" : "no bias";
  const auto complete = [bias](Shapes s) {  // x, w1, w2, then b1 and b2
    if (bias) {
      s.push_back({s[1][0]});
      s.push_back({s[2][0]});
    }
    return s;
  };
  for (const Shapes& s : {Shapes{{3, 4}, {5, 4}, {2, 5}}, Shapes{{1, 1}, {1, 1}, {1, 1}},
                          Shapes{{2, 3, 4}, {7, 4}, {4, 7}}, Shapes{{4}, {3, 4}, {2, 3}},
                          Shapes{{0, 4}, {3, 4}, {4, 3}}}) {
    row.shapes.push_back(complete(s));
  }
  row.large = complete({{300, 33}, {130, 33}, {31, 130}});
  row.timed = complete({{2048, 128}, {512, 128}, {128, 512}});
  row.domains = {{.low = -1, .high = 1}};
  row.function = [](const Tensors& x) {
    const bool biased = x.size() > 3;
    const Tensor none;
    return Tensors{feedforward(x[0], x[1], biased ? x[3] : none, x[2], biased ? x[4] : none)};
  };
  row.reference = [](const Arrays& x) { return Arrays{feedforward_of(x)}; };
  row.accuracy = Accuracy::sums;
  row.flops = [](const Shapes& s) {
    const double rows = double(element_count(s[0])) / double(s[0].back());
    return 2.0 * rows * double(element_count(s[1]) + element_count(s[2]));
  };
  row.errors = {
      {"hidden sizes that differ",
       [] {
         feedforward(ones({3, 4}), ones({5, 4}), Tensor(), ones({2, 6}), Tensor());
       }},
      {"inner sizes that differ",
       [] {
         feedforward(ones({3, 4}), ones({5, 3}), Tensor(), ones({2, 5}), Tensor());
       }},
      {"bias size that differs",
       [] {
         feedforward(ones({3, 4}), ones({5, 4}), ones({4}), ones({2, 5}), Tensor());
       }},
      {"dtypes that differ",
       [] {
         feedforward(ones({3, 4}), ones({5, 4}), Tensor(), ones({2, 5}, DType::f64), Tensor());
       }},
      {"undefined operand",
       [] {
         feedforward(ones({3, 4}), ones({5, 4}), Tensor(), Tensor(), Tensor());
       }},
  };
  return row;
}

}  // namespace

std::vector<OpRow> contraction_rows() {
  std::vector<OpRow> rows = {matmul_row(),      broadcast_matmul_row(), linear_row(true),
                             linear_row(false), feedforward_row(true),  feedforward_row(false)};
  rows.push_back(fast(matmul_row(), {{{18, 64}, {64, 40}}, {{5, 785}, {785, 34}}}));
  rows.push_back(
      fast(linear_row(true), {{{18, 64}, {130, 64}, {130}}, {{3, 784}, {20, 784}, {20}}}));
  rows.push_back(conv2d_row("3x3 padding 1 bias", {.padding = {1, 1}},
                            {{{2, 3, 5, 4}, {4, 3, 3, 3}, {4}},
                             {{1, 1, 1, 1}, {1, 1, 3, 3}, {1}},
                             {{0, 2, 4, 4}, {3, 2, 3, 3}, {3}}},
                            {{{2, 17, 9, 7}, {33, 17, 3, 3}, {33}},
                             {{1, 1, 17, 17}, {1, 1, 3, 3}, {1}},
                             {{1, 129, 3, 5}, {17, 129, 3, 3}, {17}}},
                            {{4, 16, 33, 31}, {32, 16, 3, 3}, {32}}));
  rows.back().errors = conv2d_errors();
  rows.push_back(winograd_row());
  rows.push_back(conv2d_row("1x1", {}, {{{2, 3, 4, 3}, {4, 3, 1, 1}}},
                            {{{1, 17, 5, 3}, {129, 17, 1, 1}}}, {{4, 32, 33, 31}, {48, 32, 1, 1}}));
  rows.push_back(conv2d_row("stride 2, 1 padding 2, 0", {.stride = {2, 1}, .padding = {2, 0}},
                            {{{1, 2, 6, 5}, {3, 2, 3, 2}, {3}}}));
  rows.push_back(conv2d_row("dilation 2, 3", {.padding = {1, 2}, .dilation = {2, 3}},
                            {{{2, 2, 6, 7}, {2, 2, 3, 2}}}));
  rows.push_back(conv2d_row("groups 2", {.padding = {1, 1}, .groups = 2},
                            {{{2, 4, 4, 3}, {6, 2, 3, 3}, {6}}}));
  rows.push_back(conv2d_row("depthwise stride 2",
                            {.stride = {2, 2}, .padding = {1, 1}, .groups = 3},
                            {{{1, 3, 5, 6}, {3, 1, 3, 3}, {3}}}));
  rows.push_back(conv2d_row("depthwise 5x3 bias", {.padding = {2, 1}, .groups = 19},
                            {{{1, 19, 4, 5}, {19, 1, 5, 3}, {19}}}));
  rows.push_back(conv2d_row("depthwise, 2 outputs per channel", {.stride = {1, 2}, .groups = 5},
                            {{{2, 5, 4, 6}, {10, 1, 3, 3}, {10}}}));
  rows.push_back(conv2d_row("groups of 4 channels", {.padding = {1, 1}, .groups = 3},
                            {{{1, 12, 4, 3}, {12, 4, 3, 3}, {12}}}));
  rows.push_back(conv2d_row("5x5 padding 2 stride 3", {.stride = {3, 3}, .padding = {2, 2}},
                            {{{1, 2, 7, 8}, {3, 2, 5, 5}}}));
  return rows;
}

}  // namespace binade::op_table
