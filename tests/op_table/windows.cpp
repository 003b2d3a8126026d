// Rows of unfold and fold, pixel_shuffle and pixel_unshuffle.
#include <tests/op_table/move_row.h>

#include <binade/core/tensor/create.h>

namespace binade::op_table {
namespace {

// The geometry of windows of images of height h and width w.
struct Geometry {
  UnfoldOptions o;
  int64_t count(int i, int64_t size) const {
    return (size + 2 * o.padding[i] - o.dilation[i] * (o.kernel[i] - 1) - 1) / o.stride[i] + 1;
  }
  // The row or column of an image that element k of window p reads; it may be outside.
  int64_t pixel(int i, int64_t p, int64_t k) const {
    return p * o.stride[i] - o.padding[i] + k * o.dilation[i];
  }
};

// Calls f(column's index, pixel's index) of images [.., c, h, w] and columns [.., c kh kw,
// windows].
void for_each_pair(const Geometry& g, const Dims& image,
                   const std::function<void(const Dims&, const Dims&)>& f) {
  const int rank = image.size();
  const int64_t h = image[rank - 2], w = image[rank - 1], rows = g.count(0, h),
                columns = g.count(1, w);
  Dims each(std::span(image.begin(), size_t(rank - 2)));  // [.., c, i, j, p, q]
  for (int64_t size : {g.o.kernel[0], g.o.kernel[1], rows, columns}) {
    each.push_back(size);
  }
  for_each(each, [&](const Dims& at) {
    const int64_t* k = at.begin() + rank - 3;  // c, i, j, p, q
    Dims column(std::span(at.begin(), size_t(rank - 3))), pixel = column;
    column.push_back((k[0] * g.o.kernel[0] + k[1]) * g.o.kernel[1] + k[2]);
    column.push_back(k[3] * columns + k[4]);
    pixel.push_back(k[0]);
    pixel.push_back(g.pixel(0, k[3], k[1]));
    pixel.push_back(g.pixel(1, k[4], k[2]));
    if (pixel[rank - 2] >= 0 && pixel[rank - 2] < h && pixel[rank - 1] >= 0 &&
        pixel[rank - 1] < w) {
      f(column, pixel);
    }
  });
}

double& element(Array& y, const Dims& at) {
  int64_t flat = 0;
  for (int d = 0; d < y.dim(); ++d) {
    flat = flat * y.sizes[d] + at[d];
  }
  return y.values[size_t(flat)];
}

Dims column_sizes(const Geometry& g, const Dims& image) {
  const int rank = image.size();
  Dims sizes(std::span(image.begin(), size_t(rank - 3)));
  sizes.push_back(image[rank - 3] * g.o.kernel[0] * g.o.kernel[1]);
  sizes.push_back(g.count(0, image[rank - 2]) * g.count(1, image[rank - 1]));
  return sizes;
}

OpRow unfold_row(const char* name, const UnfoldOptions& options) {
  const Geometry g{options};
  OpRow row = move_row(
      "unfold", name, {{{2, 3, 6, 5}}, {{3, 5, 7}}, {{1, 1, 4, 4}}, {{0, 2, 5, 5}}},
      [=](const Tensor& x) { return unfold(x, options); },
      [=](const Array& x) {
        Array y = generate(column_sizes(g, x.sizes), [](const Dims&) { return 0.0; });
        for_each_pair(g, x.sizes, [&](const Dims& column, const Dims& pixel) {
          element(y, column) = x.at(pixel);
        });
        return y;
      });
  row.many_zeros = true;
  row.large = {{2, 3, 33, 21}};
  row.timed = {{8, 16, 64, 64}};
  add_errors(row, {fails("a matrix",
                         [] {
                           unfold(ones({3, 4}), {.kernel = {1, 1}});
                         }),
                   fails("a window larger than the image",
                         [] {
                           unfold(ones({1, 1, 3, 3}), {.kernel = {4, 1}});
                         }),
                   fails("a stride of 0",
                         [] {
                           unfold(ones({1, 1, 3, 3}), {.stride = {0, 1}});
                         }),
                   fails("negative padding", [] {
                     unfold(ones({1, 1, 3, 3}), {.padding = {0, -1}});
                   })});
  return row;
}

OpRow fold_row(const char* name, const UnfoldOptions& options) {
  constexpr int64_t kHeight = 6, kWidth = 5;
  const Geometry g{options};
  OpRow row;
  row.name = "fold";
  row.attributes = name;
  for (const Dims& image :
       {Dims{2, 3, kHeight, kWidth}, {2, kHeight, kWidth}, {0, 2, kHeight, kWidth}}) {
    row.shapes.push_back({column_sizes(g, image)});
  }
  row.function = [=](const Tensors& x) { return Tensors{fold(x[0], kHeight, kWidth, options)}; };
  row.reference = [=](const Arrays& x) {
    Dims image(std::span(x[0].sizes.begin(), size_t(x[0].dim() - 2)));
    image.push_back(x[0].sizes[x[0].dim() - 2] / (options.kernel[0] * options.kernel[1]));
    image.push_back(kHeight);
    image.push_back(kWidth);
    Array y = generate(image, [](const Dims&) { return 0.0; });
    for_each_pair(g, image, [&](const Dims& column, const Dims& pixel) {
      element(y, pixel) += x[0].at(column);
    });
    return Arrays{y};
  };
  row.accuracy = Accuracy::sums;
  row.many_zeros = true;
  row.large = {column_sizes(g, {90, 3, kHeight, kWidth})};
  row.timed = {column_sizes(g, {512, 16, kHeight, kWidth})};
  row.errors = {{"a vector", [] { fold(ones({3}), 3, 3, {}); }},
                {"another number of windows",
                 [] {
                   fold(ones({1, 4, 5}), 3, 3, {.kernel = {2, 2}});
                 }},
                {"channels that are no multiple",
                 [] {
                   fold(ones({1, 5, 4}), 3, 3, {.kernel = {2, 2}});
                 }},
                {"no image",
                 [] {
                   fold(ones({1, 4, 4}), 0, 3, {.kernel = {2, 2}});
                 }},
                {"integers",
                 [] {
                   fold(zeros({1, 4, 4}, DType::i64), 3, 3, {.kernel = {2, 2}});
                 }},
                {"undefined operand", [] { fold(Tensor(), 3, 3, {}); }}};
  return row;
}

void append_shuffles(std::vector<OpRow>& rows) {
  const auto sizes_of = [](const Array& x, int64_t c, int64_t h, int64_t w) {
    Dims sizes = x.sizes;
    const int first = x.dim() - 3;
    sizes[first] = c;
    sizes[first + 1] = h;
    sizes[first + 2] = w;
    return sizes;
  };
  rows.push_back(move_row(
      "pixel_shuffle", "2", {{{2, 8, 3, 2}}, {{4, 2, 3}}, {{1, 2, 4, 1, 3}}, {{2, 4, 0, 2}}},
      [](const Tensor& x) { return pixel_shuffle(x, 2); },
      [=](const Array& x) {
        const int c = x.dim() - 3, h = c + 1, w = c + 2;
        return generate(sizes_of(x, x.sizes[c] / 4, x.sizes[h] * 2, x.sizes[w] * 2), [&](Dims y) {
          y[c] = 4 * y[c] + 2 * (y[h] % 2) + y[w] % 2;
          y[h] /= 2;
          y[w] /= 2;
          return x.at(y);
        });
      }));
  add_errors(rows.back(), {fails("channels that are no multiple",
                                 [] {
                                   pixel_shuffle(ones({3, 2, 2}), 2);
                                 }),
                           fails("a matrix",
                                 [] {
                                   pixel_shuffle(ones({4, 2}), 2);
                                 }),
                           fails("a height that does not fit i64",
                                 [] {
                                   pixel_shuffle(zeros({0, int64_t{1} << 55, 0}), 1 << 20);
                                 }),
                           fails("a factor of 0", [] {
                             pixel_shuffle(ones({4, 2, 2}), 0);
                           })});
  rows.push_back(move_row(
      "pixel_unshuffle", "2", {{{2, 3, 6, 4}}, {{1, 2, 8}}, {{1, 2, 1, 4, 2}}, {{2, 0, 4, 2}}},
      [](const Tensor& x) { return pixel_unshuffle(x, 2); },
      [=](const Array& x) {
        const int c = x.dim() - 3, h = c + 1, w = c + 2;
        return generate(sizes_of(x, x.sizes[c] * 4, x.sizes[h] / 2, x.sizes[w] / 2), [&](Dims y) {
          y[h] = 2 * y[h] + y[c] / 2 % 2;
          y[w] = 2 * y[w] + y[c] % 2;
          y[c] /= 4;
          return x.at(y);
        });
      }));
  add_errors(rows.back(), {fails("a height that is no multiple",
                                 [] {
                                   pixel_unshuffle(ones({3, 3, 2}), 2);
                                 }),
                           fails("a matrix",
                                 [] {
                                   pixel_unshuffle(ones({4, 2}), 2);
                                 }),
                           fails("channels that do not fit i64",
                                 [] {
                                   pixel_unshuffle(zeros({int64_t{1} << 55, 0, 0}), 1 << 20);
                                 }),
                           fails("a negative factor", [] {
                             pixel_unshuffle(ones({4, 2, 2}), -1);
                           })});
}

}  // namespace

std::vector<OpRow> window_rows() {
  const UnfoldOptions padded = {.kernel = {2, 3}, .padding = {1, 2}, .stride = {2, 1}},
                      dilated = {.kernel = {2, 2}, .dilation = {2, 1}, .stride = {1, 3}};
  std::vector<OpRow> rows = {unfold_row("padded", padded), unfold_row("dilated", dilated),
                             fold_row("padded", padded), fold_row("dilated", dilated)};
  append_shuffles(rows);
  return rows;
}

}  // namespace binade::op_table
