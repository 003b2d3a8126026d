// Rows of the pooling ops.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <limits>

namespace binade::op_table {
namespace {

int64_t output_size(const Pool2dOptions& g, int i, int64_t in) {
  const int64_t reach = in + 2 * g.padding[i] - g.dilation[i] * (g.kernel[i] - 1) - 1;
  int64_t out = (reach + (g.ceil_mode ? g.stride[i] - 1 : 0)) / g.stride[i] + 1;
  if (g.ceil_mode && (out - 1) * g.stride[i] >= in + g.padding[i]) {
    --out;
  }
  return out;
}

Dims output_sizes(const Pool2dOptions& g, const Array& x) {
  return {x.sizes[0], x.sizes[1], output_size(g, 0, x.sizes[2]), output_size(g, 1, x.sizes[3])};
}

bool inside(const Array& x, int64_t row, int64_t col) {
  return row >= 0 && row < x.sizes[2] && col >= 0 && col < x.sizes[3];
}

Array max_pool_of(const Array& x, const Pool2dOptions& g) {
  return generate(output_sizes(g, x), [&](const Dims& y) {
    double top = -std::numeric_limits<double>::infinity();
    for_each({g.kernel[0], g.kernel[1]}, [&](const Dims& k) {
      const int64_t row = y[2] * g.stride[0] - g.padding[0] + k[0] * g.dilation[0];
      const int64_t col = y[3] * g.stride[1] - g.padding[1] + k[1] * g.dilation[1];
      if (inside(x, row, col)) {
        top = std::max(top, x.at({y[0], y[1], row, col}));
      }
    });
    return top;
  });
}

Array avg_pool_of(const Array& x, const Pool2dOptions& g) {
  return generate(output_sizes(g, x), [&](const Dims& y) {
    double sum = 0;
    int64_t hit = 0, padded = 0;
    for_each({g.kernel[0], g.kernel[1]}, [&](const Dims& k) {
      const int64_t row = y[2] * g.stride[0] - g.padding[0] + k[0];
      const int64_t col = y[3] * g.stride[1] - g.padding[1] + k[1];
      padded += row < x.sizes[2] + g.padding[0] && col < x.sizes[3] + g.padding[1];
      if (inside(x, row, col)) {
        sum += x.at({y[0], y[1], row, col});
        ++hit;
      }
    });
    return sum / double(g.count_include_pad ? padded : hit);
  });
}

Array adaptive_of(const Array& x, int64_t height, int64_t width) {
  const int64_t h = x.sizes[2], w = x.sizes[3];
  return generate({x.sizes[0], x.sizes[1], height, width}, [&](const Dims& y) {
    const int64_t top = y[2] * h / height, bottom = ((y[2] + 1) * h + height - 1) / height;
    const int64_t left = y[3] * w / width, right = ((y[3] + 1) * w + width - 1) / width;
    double sum = 0;
    for_each({bottom - top, right - left}, [&](const Dims& k) {
      sum += x.at({y[0], y[1], top + k[0], left + k[1]});
    });
    return sum / double((bottom - top) * (right - left));
  });
}

using Pool = Tensor (*)(const Tensor&, const Pool2dOptions&);

std::vector<ErrorCase> window_errors(Pool pool) {
  const auto with = [pool](const Dims& x, const Pool2dOptions& g, DType dtype = DType::f32) {
    return [=] { pool(zeros(x, dtype), g); };
  };
  const Pool2dOptions three{.kernel = {3, 3}};
  return {
      {"padding above half the kernel", with({1, 2, 5, 5}, {.kernel = {3, 3}, .padding = {2, 2}})},
      {"kernel larger than the input", with({1, 2, 2, 5}, three)},
      {"input of two dimensions", with({5, 5}, three)},
      {"zero stride", with({1, 2, 5, 5}, {.kernel = {3, 3}, .stride = {0, 1}})},
      {"zero kernel", with({1, 2, 5, 5}, {.kernel = {0, 3}})},
      {"negative padding", with({1, 2, 5, 5}, {.kernel = {3, 3}, .padding = {-1, 0}})},
      {"kernel near 2^63", with({1, 2, 5, 5}, {.kernel = {INT64_MAX, 3}})},
      {"integer input", with({1, 2, 5, 5}, three, DType::i64)},
      {"undefined input", [=] { pool(Tensor(), three); }},
  };
}

// The options with the op's default stride: the kernel, as in PyTorch.
Pool2dOptions with_stride(Pool2dOptions g) {
  for (int i = 0; i < 2; ++i) {
    g.stride[i] = g.stride[i] == Pool2dOptions::kSameAsKernel ? g.kernel[i] : g.stride[i];
  }
  return g;
}

OpRow pool_row(const char* name, const std::string& attributes, const Pool2dOptions& g,
               const std::vector<Shapes>& shapes) {
  const bool is_max = name[0] == 'm';
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  row.shapes = shapes;
  row.domains = {{.distinct = is_max}};
  row.accuracy = is_max ? Accuracy::exact : Accuracy::sums;
  row.function = [=](const Tensors& x) {
    return Tensors{is_max ? max_pool2d(x[0], g) : avg_pool2d(x[0], g)};
  };
  row.reference = [is_max, g = with_stride(g)](const Arrays& x) {
    return Arrays{is_max ? max_pool_of(x[0], g) : avg_pool_of(x[0], g)};
  };
  row.large = {{4, 17, 33, 31}};
  row.timed = {{8, 32, 64, 64}};
  return row;
}

void append_windows(std::vector<OpRow>& rows, const char* name) {
  const std::vector<Shapes> images = {
      {{2, 3, 6, 4}}, {{1, 1, 3, 3}}, {{0, 2, 4, 4}}, {{2, 0, 4, 4}}};
  const std::vector<Shapes> wide = {{{1, 2, 7, 8}}, {{2, 1, 6, 5}}};
  rows.push_back(pool_row(name, "2x2", {.kernel = {2, 2}, .stride = {2, 2}}, images));
  rows.push_back(pool_row(name, "3x2 stride not given", {.kernel = {3, 2}}, images));
  rows.push_back(pool_row(name, "3x2 overlapping", {.kernel = {3, 2}, .stride = {1, 1}}, images));
  rows.push_back(pool_row(name, "3x3 padding 1 stride 2, 3",
                          {.kernel = {3, 3}, .stride = {2, 3}, .padding = {1, 1}}, wide));
  rows.push_back(
      pool_row(name, "ceil mode",
               {.kernel = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .ceil_mode = true}, wide));
}

}  // namespace

std::vector<OpRow> pool_rows() {
  std::vector<OpRow> rows;
  append_windows(rows, "max_pool2d");
  rows.back().errors = window_errors(max_pool2d);
  rows.push_back(pool_row("max_pool2d", "dilation 2, 3",
                          {.kernel = {2, 2}, .stride = {1, 1}, .dilation = {2, 3}},
                          {{{1, 2, 7, 8}}}));
  append_windows(rows, "avg_pool2d");
  rows.back().errors = window_errors(avg_pool2d);
  rows.back().errors.push_back(
      {"dilation", [] {
         avg_pool2d(ones({1, 2, 7, 8}), {.kernel = {2, 2}, .dilation = {2, 2}});
       }});
  rows.push_back(pool_row("avg_pool2d", "padding not counted",
                          {.kernel = {3, 3},
                           .stride = {2, 2},
                           .padding = {1, 1},
                           .ceil_mode = true,
                           .count_include_pad = false},
                          {{{1, 2, 7, 8}}, {{2, 1, 6, 5}}}));
  for (const auto& [height, width] : {std::pair{1, 1}, {2, 3}, {7, 5}}) {
    OpRow row;
    row.name = "adaptive_avg_pool2d";
    row.attributes = text(height, "x", width);
    row.shapes = {{{2, 3, 7, 5}}, {{1, 2, 4, 6}}, {{0, 2, 4, 4}}};
    row.function = [h = height, w = width](const Tensors& x) {
      return Tensors{adaptive_avg_pool2d(x[0], h, w)};
    };
    row.reference = [h = height, w = width](const Arrays& x) {
      return Arrays{adaptive_of(x[0], h, w)};
    };
    row.accuracy = Accuracy::sums;
    row.large = {{4, 17, 33, 31}};
    row.timed = {{8, 32, 64, 64}};
    row.errors = {
        {"no output rows",
         [] {
           adaptive_avg_pool2d(ones({1, 2, 4, 4}), 0, 2);
         }},
        {"negative size",
         [] {
           adaptive_avg_pool2d(ones({1, 2, 4, 4}), 2, -1);
         }},
        {"input of two dimensions",
         [] {
           adaptive_avg_pool2d(ones({4, 4}), 2, 2);
         }},
        {"size near 2^63",
         [] {
           adaptive_avg_pool2d(ones({1, 2, 4, 4}), INT64_MAX, 2);
         }},
        {"undefined input", [] { adaptive_avg_pool2d(Tensor(), 2, 2); }},
    };
    rows.push_back(row);
  }
  return rows;
}

}  // namespace binade::op_table
