// Rows of convolution over sequences and of transposed convolution. A sequence is checked as an
// image of height 1.
#include <binade/core/ops/conv.h>
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

namespace binade::op_table {
namespace {

// Both spatial axes; sequences use the second one.
struct Geometry {
  int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1}, groups = 1, extra[2] = {};
};

Array as_image(const Array& x) {
  return x.dim() == 3 ? Array{{x.sizes[0], x.sizes[1], 1, x.sizes[2]}, x.values} : x;
}

Array like(const Array& y, const Array& x) {
  return x.dim() == 3 ? Array{{y.sizes[0], y.sizes[1], y.sizes[3]}, y.values} : y;
}

// The pixel that a tap of pixel `out` reads, or in the transpose writes.
int64_t tapped(const Geometry& g, int axis, int64_t out, int64_t tap) {
  return out * g.stride[axis] - g.padding[axis] + tap * g.dilation[axis];
}

Array conv_of(const Arrays& in, const Geometry& g) {
  const Array x = as_image(in[0]), w = as_image(in[1]);
  const int64_t per_group = w.sizes[1], outputs = w.sizes[0] / g.groups;
  Dims sizes{x.sizes[0], w.sizes[0], 1, 1};
  for (int i = 0; i < 2; ++i) {
    const int64_t reach = g.dilation[i] * (w.sizes[2 + i] - 1) + 1;
    sizes[2 + i] = (x.sizes[2 + i] + 2 * g.padding[i] - reach) / g.stride[i] + 1;
  }
  const Array y = generate(sizes, [&](const Dims& at) {
    double sum = in.size() > 2 ? in[2].at({at[1]}) : 0;
    for_each({per_group, w.sizes[2], w.sizes[3]}, [&](const Dims& k) {
      const int64_t row = tapped(g, 0, at[2], k[1]), col = tapped(g, 1, at[3], k[2]);
      if (row >= 0 && row < x.sizes[2] && col >= 0 && col < x.sizes[3]) {
        sum += x.at({at[0], at[1] / outputs * per_group + k[0], row, col}) *
               w.at({at[1], k[0], k[1], k[2]});
      }
    });
    return sum;
  });
  return like(y, in[0]);
}

Array conv_transpose_of(const Arrays& in, const Geometry& g) {
  const Array x = as_image(in[0]), w = as_image(in[1]);
  const int64_t inputs = w.sizes[0] / g.groups, per_group = w.sizes[1];
  Dims sizes{x.sizes[0], per_group * g.groups, 1, 1};
  for (int i = 0; i < 2; ++i) {
    sizes[2 + i] = (x.sizes[2 + i] - 1) * g.stride[i] - 2 * g.padding[i] +
                   g.dilation[i] * (w.sizes[2 + i] - 1) + g.extra[i] + 1;
  }
  Array y = generate(sizes, [&](const Dims& at) { return in.size() > 2 ? in[2].at({at[1]}) : 0; });
  for_each(x.sizes, [&](const Dims& at) {  // every input element is scattered
    for_each({per_group, w.sizes[2], w.sizes[3]}, [&](const Dims& k) {
      const int64_t row = tapped(g, 0, at[2], k[1]), col = tapped(g, 1, at[3], k[2]);
      if (row >= 0 && row < sizes[2] && col >= 0 && col < sizes[3]) {
        const int64_t channel = at[1] / inputs * per_group + k[0];
        const int64_t i = ((at[0] * sizes[1] + channel) * sizes[2] + row) * sizes[3] + col;
        y.values[static_cast<size_t>(i)] += x.at(at) * w.at({at[1], k[0], k[1], k[2]});
      }
    });
  });
  return like(y, in[0]);
}

Tensor bias_of(const Tensors& x) { return x.size() > 2 ? x[2] : Tensor(); }

OpRow conv1d_row(const std::string& attributes, const Geometry& g,
                 const std::vector<Shapes>& shapes, const Shapes& large) {
  OpRow row;
  row.name = "conv1d";
  row.attributes = attributes;
  row.shapes = row.exact_shapes = shapes;
  row.large = large;
  row.timed = large;  // the batch longer
  row.timed[0][0] = 16;
  const Conv1dOptions options{g.stride[1], g.padding[1], g.dilation[1], g.groups};
  row.function = [=](const Tensors& x) { return Tensors{conv1d(x[0], x[1], bias_of(x), options)}; };
  row.reference = [g](const Arrays& x) { return Arrays{conv_of(x, g)}; };
  row.accuracy = Accuracy::sums;
  row.depth = [](const Shapes& s) { return s[1][1] * s[1][2] + 1; };
  return row;
}

OpRow transpose1d_row(const std::string& attributes, const Geometry& g,
                      const std::vector<Shapes>& shapes, const Shapes& large) {
  OpRow row = conv1d_row(attributes, g, shapes, large);
  row.name = "conv_transpose1d";
  const ConvTranspose1dOptions options{g.stride[1], g.padding[1], g.dilation[1], g.groups,
                                       g.extra[1]};
  row.function = [=](const Tensors& x) {
    return Tensors{conv_transpose1d(x[0], x[1], bias_of(x), options)};
  };
  row.reference = [g](const Arrays& x) { return Arrays{conv_transpose_of(x, g)}; };
  row.depth = [g](const Shapes& s) { return s[1][0] / g.groups * s[1][2] + 1; };
  row.flops = [](const Shapes& s) {  // depth is that of an element that all of the kernel reaches
    return 2.0 * double(element_count(s[0])) * double(element_count(s[1]) / s[1][0]);
  };
  return row;
}

OpRow transpose2d_row(const std::string& attributes, const Geometry& g,
                      const std::vector<Shapes>& shapes, const Shapes& large) {
  OpRow row = transpose1d_row(attributes, g, shapes, large);
  row.name = "conv_transpose2d";
  const ConvTranspose2dOptions options{.stride = {g.stride[0], g.stride[1]},
                                       .padding = {g.padding[0], g.padding[1]},
                                       .dilation = {g.dilation[0], g.dilation[1]},
                                       .groups = g.groups,
                                       .output_padding = {g.extra[0], g.extra[1]}};
  row.function = [=](const Tensors& x) {
    return Tensors{conv_transpose2d(x[0], x[1], bias_of(x), options)};
  };
  row.depth = [g](const Shapes& s) { return s[1][0] / g.groups * s[1][2] * s[1][3] + 1; };
  return row;
}

std::vector<ErrorCase> conv1d_errors() {
  const auto with = [](const Dims& x, const Dims& w, const Conv1dOptions& options) {
    return [=] { conv1d(ones(x), ones(w), Tensor(), options); };
  };
  const Dims x{2, 3, 7}, w{4, 3, 3};
  return {
      {"channels that differ", with(x, {4, 2, 3}, {})},
      {"an image", with({2, 3, 7, 7}, w, {})},
      {"weight of four dimensions", with(x, {4, 3, 3, 3}, {})},
      {"groups that do not divide the channels", with(x, {4, 1, 3}, {.groups = 2})},
      {"kernel larger than the input", with({2, 3, 2}, w, {})},
      {"empty kernel", with(x, {4, 3, 0}, {})},
      {"zero stride", with(x, w, {.stride = 0})},
      {"negative padding", with(x, w, {.padding = -1})},
      {"zero dilation", with(x, w, {.dilation = 0})},
      {"padding near 2^63", with(x, w, {.padding = INT64_MAX - 1})},
      {"bias size that differs",
       [] {
         conv1d(ones({2, 3, 7}), ones({4, 3, 3}), ones({3}));
       }},
      {"integer input",
       [] {
         conv1d(zeros({2, 3, 7}, DType::i64), zeros({4, 3, 3}, DType::i64));
       }},
      {"undefined weight",
       [] {
         conv1d(ones({2, 3, 7}), Tensor());
       }},
  };
}

std::vector<ErrorCase> transpose1d_errors() {
  const auto with = [](const Dims& x, const Dims& w, const ConvTranspose1dOptions& options) {
    return [=] { conv_transpose1d(ones(x), ones(w), Tensor(), options); };
  };
  const Dims x{2, 4, 7}, w{4, 3, 3};
  return {
      {"channels that differ", with(x, {3, 2, 3}, {})},
      {"an image", with({2, 4, 7, 7}, w, {})},
      {"output padding of the stride", with(x, w, {.stride = 2, .output_padding = 2})},
      {"empty input", with({2, 4, 0}, w, {})},
      {"undefined input",
       [] {
         conv_transpose1d(Tensor(), ones({4, 3, 3}));
       }},
  };
}

std::vector<ErrorCase> transpose2d_errors() {
  const auto with = [](const Dims& x, const Dims& w, const ConvTranspose2dOptions& options) {
    return [=] { conv_transpose2d(ones(x), ones(w), Tensor(), options); };
  };
  const Dims x{2, 4, 5, 5}, w{4, 3, 3, 3};
  return {
      {"channels that differ", with(x, {3, 3, 3, 3}, {})},
      {"input of three dimensions", with({4, 5, 5}, w, {})},
      {"groups that do not divide the channels", with(x, w, {.groups = 3})},
      {"no groups", with(x, w, {.groups = 0})},
      {"zero stride", with(x, w, {.stride = {0, 1}})},
      {"negative padding", with(x, w, {.padding = {0, -1}})},
      {"padding that leaves nothing", with(x, w, {.padding = {4, 4}})},
      {"negative output padding", with(x, w, {.output_padding = {-1, 0}})},
      {"output padding of the stride", with(x, w, {.output_padding = {0, 1}})},
      {"stride near 2^63", with(x, w, {.stride = {INT64_MAX - 1, 1}})},
      {"result beyond memory", with({2, 4, 5, 5}, w, {.stride = {INT32_MAX, INT32_MAX}})},
      {"bias size that differs", [=] { conv_transpose2d(ones(x), ones(w), ones({4})); }},
      {"dtypes that differ", [=] { conv_transpose2d(ones(x), ones(w, DType::f64)); }},
      {"undefined weight",
       [] {
         conv_transpose2d(ones({2, 4, 5, 5}), Tensor());
       }},
  };
}

void add_conv1d(std::vector<OpRow>& rows) {
  const Shapes large{{4, 16, 700}, {32, 16, 5}, {32}};
  rows.push_back(conv1d_row(
      "3 padding 1 bias", {.padding = {0, 1}},
      {{{2, 3, 7}, {4, 3, 3}, {4}}, {{1, 1, 1}, {1, 1, 3}, {1}}, {{0, 2, 4}, {3, 2, 3}, {3}}},
      large));
  rows.back().exact_shapes.push_back({{3, 17, 33}, {9, 17, 3}, {9}});
  rows.back().errors = conv1d_errors();
  rows.push_back(conv1d_row("stride 2 dilation 3 groups 2",
                            {.stride = {1, 2}, .padding = {0, 2}, .dilation = {1, 3}, .groups = 2},
                            {{{2, 4, 9}, {4, 2, 3}}}, {{4, 32, 700}, {32, 16, 5}}));
}

void add_transposed(std::vector<OpRow>& rows) {
  rows.push_back(transpose1d_row("stride 2 padding 1 bias",
                                 {.stride = {1, 2}, .padding = {0, 1}, .extra = {0, 1}},
                                 {{{2, 2, 5}, {2, 3, 3}, {3}}, {{0, 3, 5}, {3, 4, 3}, {4}}},
                                 {{4, 32, 300}, {32, 16, 5}, {16}}));
  rows.back().errors = transpose1d_errors();
  const Shapes large{{4, 24, 15, 17}, {24, 20, 3, 3}, {20}};
  rows.push_back(transpose2d_row("stride 2 padding 1 bias",
                                 {.stride = {2, 2}, .padding = {1, 1}, .extra = {1, 1}},
                                 {{{2, 2, 3, 4}, {2, 3, 3, 3}, {3}},
                                  {{1, 1, 1, 1}, {1, 1, 2, 2}, {1}},
                                  {{0, 2, 3, 3}, {2, 3, 3, 3}, {3}}},
                                 large));
  rows.back().exact_shapes.push_back({{1, 17, 4, 3}, {17, 9, 4, 4}, {9}});
  rows.back().errors = transpose2d_errors();
  rows.push_back(transpose2d_row("plain", {}, {{{2, 3, 4, 3}, {3, 2, 3, 2}}},
                                 {{4, 24, 15, 17}, {24, 20, 3, 3}}));
  rows.push_back(transpose2d_row("stride beyond the kernel", {.stride = {4, 3}, .extra = {3, 1}},
                                 {{{2, 2, 3, 2}, {2, 3, 2, 2}, {3}}}, large));
  rows.push_back(transpose2d_row(
      "groups 2 dilation 2, 3", {.padding = {1, 2}, .dilation = {2, 3}, .groups = 2},
      {{{1, 4, 4, 3}, {4, 3, 3, 2}, {6}}}, {{4, 24, 15, 17}, {24, 20, 3, 3}, {40}}));
  // Output padding of the stride and more, up to the dilation.
  rows.push_back(transpose2d_row("output padding below the dilation",
                                 {.padding = {1, 1}, .dilation = {3, 2}, .extra = {2, 1}},
                                 {{{2, 2, 3, 4}, {2, 3, 2, 3}, {3}}}, large));
}

}  // namespace

std::vector<OpRow> conv_rows() {
  std::vector<OpRow> rows;
  add_conv1d(rows);
  add_transposed(rows);
  return rows;
}

}  // namespace binade::op_table
