// Rows of grid_sample and affine_grid: every mode and padding, with and without align_corners.
#include <tests/op_table/move_row.h>

#include <binade/core/ops/image.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {
namespace {

// The position along an axis of n elements, folded back into it by steps.
double place(double g, int64_t n, const GridSampleOptions& options) {
  const double last = double(n - 1);
  double at = options.align_corners ? (g + 1) / 2 * last : ((g + 1) * double(n) - 1) / 2;
  if (options.padding == GridPadding::reflection) {
    const double low = options.align_corners ? 0 : -0.5,
                 high = options.align_corners ? last : last + 0.5;
    while (low < high && (at < low || at > high)) {
      at = at < low ? 2 * low - at : 2 * high - at;
    }
    at = low < high ? at : 0;
  }
  if (options.padding != GridPadding::zeros) {
    at = std::clamp(at, 0.0, last);
  }
  return options.mode == Interpolation::nearest ? std::nearbyint(at) : at;
}

Array sampled(const Array& x, const Array& grid, const GridSampleOptions& options) {
  const int64_t h = x.sizes[2], w = x.sizes[3];
  return generate({x.sizes[0], x.sizes[1], grid.sizes[1], grid.sizes[2]}, [&](const Dims& y) {
    const double row = place(grid.at({y[0], y[2], y[3], 1}), h, options),
                 col = place(grid.at({y[0], y[2], y[3], 0}), w, options);
    double sum = 0;
    for (int64_t i = 0; i < h; ++i) {
      for (int64_t j = 0; j < w; ++j) {
        sum += std::max(0.0, 1 - std::fabs(row - double(i))) *
               std::max(0.0, 1 - std::fabs(col - double(j))) * x.at({y[0], y[1], i, j});
      }
    }
    return sum;
  });
}

// Sizes whose kinks are multiples of 1/8, from which the drawn coordinates stay away.
OpRow grid_sample_row(const std::string& attributes, const GridSampleOptions& options) {
  OpRow row;
  row.name = "grid_sample";
  row.attributes = attributes;
  const int64_t more = options.align_corners ? 1 : 0;
  row.shapes = {{{2, 3, 4 + more, 8 + more}, {2, 3, 5, 2}},
                {{1, 17, 2 + more, 4 + more}, {1, 4, 7, 2}},
                {{1, 1, 1, 1}, {1, 1, 1, 2}},
                {{2, 2, 1, 8 + more}, {2, 9, 1, 2}},
                {{2, 0, 2 + more, 1}, {2, 2, 2, 2}},
                {{0, 2, 1, 1}, {0, 3, 3, 2}},
                {{1, 2, 4 + more, 1}, {1, 0, 3, 2}}};
  Domain coordinates{.low = -1.7, .high = 1.7, .gap = 0.02};
  for (int i = -14; i <= 14; ++i) {
    coordinates.avoid.push_back(i / 8.0);
  }
  row.domains = {{}, coordinates};
  row.accuracy = options.mode == Interpolation::nearest ? Accuracy::exact : Accuracy::sums;
  row.function = [=](const Tensors& x) { return Tensors{grid_sample(x[0], x[1], options)}; };
  row.reference = [=](const Arrays& x) { return Arrays{sampled(x[0], x[1], options)}; };
  row.many_zeros = true;
  row.large = {{2, 3, 8 + more, 8 + more}, {2, 65, 70, 2}};
  row.timed = {{16, 32, 32, 32}, {16, 32, 32, 2}};
  row.errors = {
      {"three dims",
       [=] {
         grid_sample(ones({2, 4, 4}), ones({2, 3, 3, 2}), options);
       }},
      {"a grid of three coordinates",
       [=] {
         grid_sample(ones({2, 1, 4, 4}), ones({2, 3, 3, 3}), options);
       }},
      {"a grid of another batch",
       [=] {
         grid_sample(ones({2, 1, 4, 4}), ones({1, 3, 3, 2}), options);
       }},
      {"a grid of three dims",
       [=] {
         grid_sample(ones({2, 1, 4, 4}), ones({2, 3, 2}), options);
       }},
      {"an empty image",
       [=] {
         grid_sample(ones({2, 1, 0, 4}), ones({2, 3, 3, 2}), options);
       }},
      {"dtypes that differ",
       [=] {
         grid_sample(ones({2, 1, 4, 4}), ones({2, 3, 3, 2}, DType::f64), options);
       }},
      {"integers",
       [=] {
         grid_sample(ones({2, 1, 4, 4}, DType::i64), ones({2, 3, 3, 2}, DType::i64), options);
       }},
      {"undefined image",
       [=] {
         grid_sample(Tensor(), ones({2, 3, 3, 2}), options);
       }},
      {"undefined grid", [=] {
         grid_sample(ones({2, 1, 4, 4}), Tensor(), options);
       }}};
  return row;
}

OpRow affine_grid_row(int64_t height, int64_t width, bool align_corners) {
  OpRow row = move_row(
      "affine_grid", text(height, " x ", width, align_corners ? ", corners" : ""),
      {{{2, 2, 3}}, {{1, 2, 3}}, {{0, 2, 3}}},
      [=](const Tensor& theta) { return affine_grid(theta, height, width, align_corners); },
      [=](const Array& theta) {
        return generate({theta.sizes[0], height, width, 2}, [&](const Dims& y) {
          const auto along = [&](int64_t i, int64_t n) {
            const double whole = align_corners ? double(n - 1) : double(n);
            return n == 1 ? 0 : (align_corners ? 2 * double(i) : 2 * double(i) + 1) / whole - 1;
          };
          return theta.at({y[0], y[3], 0}) * along(y[2], width) +
                 theta.at({y[0], y[3], 1}) * along(y[1], height) + theta.at({y[0], y[3], 2});
        });
      });
  row.any_dtype = false;
  row.accuracy = Accuracy::sums;
  row.timed = {{int64_t{1} << 14, 2, 3}};
  add_errors(row, {fails("an empty grid",
                         [=] {
                           affine_grid(ones({1, 2, 3}), 0, 3, align_corners);
                         }),
                   fails("another matrix",
                         [=] {
                           affine_grid(ones({1, 3, 4}), 3, 3, align_corners);
                         }),
                   fails("no batch",
                         [=] {
                           affine_grid(ones({2, 3}), 3, 3, align_corners);
                         }),
                   fails("integers",
                         [=] {
                           affine_grid(ones({1, 2, 3}, DType::i64), 3, 3, align_corners);
                         }),
                   fails("more elements than memory", [=] {
                     affine_grid(ones({1, 2, 3}), INT64_MAX, 3, align_corners);
                   })});
  return row;
}

}  // namespace

std::vector<OpRow> grid_sample_rows() {
  std::vector<OpRow> rows;
  for (bool corners : {false, true}) {
    for (const auto& [mode, mode_name] : {std::pair(Interpolation::bilinear, "bilinear"),
                                          std::pair(Interpolation::nearest, "nearest")}) {
      for (const auto& [padding, padding_name] :
           {std::pair(GridPadding::zeros, "zeros"), std::pair(GridPadding::border, "border"),
            std::pair(GridPadding::reflection, "reflection")}) {
        rows.push_back(
            grid_sample_row(text(mode_name, ", ", padding_name, corners ? ", corners" : ""),
                            {mode, padding, corners}));
      }
    }
    rows.push_back(affine_grid_row(5, 7, corners));
    rows.push_back(affine_grid_row(1, 4, corners));
  }
  return rows;
}

}  // namespace binade::op_table
