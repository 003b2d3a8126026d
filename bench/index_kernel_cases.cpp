// Cases of the kernels that index, rearrange and resample.
#include <bench/kernel_cases.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/copy/triangle.h>
#include <binade/kernels/image/grid_sample.h>
#include <binade/kernels/image/interpolate.h>
#include <binade/kernels/index/embedding_bag.h>
#include <binade/kernels/index/index.h>
#include <binade/kernels/index/masked_select.h>
#include <binade/kernels/sort/cumsum.h>

#include <algorithm>

namespace binade::bench {
namespace {

constexpr int64_t kTable = 256;  // rows; random() draws integers below it
constexpr int64_t kSide = 16;

// Works on rows of a table with 256 rows: an embedding, or its gradient.
template <bool kAdd>
Prepared rows_of_table(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View& index = o->view(o->random(DType::i64, {rows}), {rows, cols}, {1, 0});
  const View &table = o->random(dtype, {kTable, cols}), &y = o->random(dtype, {rows, cols});
  // Rows of the table that no index names are neither read nor written.
  const double bytes = 8.0 * static_cast<double>(rows) + bytes_of(y);
  const auto run = [&] {
    if constexpr (kAdd) {
      kernels::scatter_add({.op = "bench", .index = index, .src = y, .y = table, .dim = 0});
    } else {
      kernels::gather({.op = "bench", .x = table, .index = index, .y = y, .dim = 0});
    }
  };
  return {o, run, bytes, 0, (kAdd ? 2 : 1) * bytes_of(table)};
}

// Bags of 8 rows of the table.
template <kernels::BagMode kMode>
Prepared bags_of_rows(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  constexpr int64_t kBag = 8;
  const View &table = o->random(dtype, {kTable, cols}),
             &index = o->random(DType::i64, {rows * kBag}), &y = o->empty(dtype, {rows, cols});
  const View& lengths = o->empty(DType::i64, {rows + 1});
  const View& offsets = o->empty(DType::i64, {rows + 1});
  kernels::fill({.y = lengths, .value = kBag});
  kernels::fill({.y = o->view(lengths, {1}, {1}), .value = 0});
  kernels::cumsum({.x = lengths, .y = offsets, .dim = 0});
  const auto run = [&] {
    kernels::embedding_bag({.op = "bench",
                            .weight = table,
                            .index = index,
                            .offsets = offsets,
                            .factors = kNoView,
                            .y = y,
                            .chosen = kNoView,
                            .mode = kMode});
  };
  // Rows of the table that no index names are not read.
  return {o, run, bytes_of(index, offsets, y), 0, bytes_of(table)};
}

Prepared one_hot(int64_t rows, int64_t, DType, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &index = o->random(DType::i64, {rows}), &y = o->empty(DType::i64, {rows, kTable});
  return {o, [&] { kernels::one_hot({.index = index, .y = y}); }, bytes_of(index) + bytes_of(y), 0};
}

Prepared triangle(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &y = o->empty(dtype, {rows, cols});
  double kept = 0;
  for (int64_t row = 0; row < rows; ++row) {
    kept += static_cast<double>(std::min(row + 1, cols));
  }
  return {o, [&] { kernels::triangle({.x = x, .y = y, .diagonal = 0, .upper = false}); },
          bytes_of(y) + kept * static_cast<double>(size_of(dtype)), 0};
}

// Selects every second element; the time includes counting them.
Prepared masked_select(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View &x = o->random(dtype, {rows, cols}), &mask = o->zeros(DType::boolean, {rows, cols});
  kernels::fill({.y = o->view(mask, {x.numel / 2}, {2}), .value = 1});
  const View& offsets = o->empty(DType::i64, {kernels::mask_offsets(x.numel)});
  const View& y = o->empty(dtype, {x.numel / 2});
  const auto run = [&] {
    kernels::mask_count({.mask = mask, .offsets = offsets});
    kernels::masked_select({.x = x, .mask = mask, .offsets = offsets, .y = y});
  };
  return {o, run, bytes_of(mask, offsets, y, y), 0};
}

template <bool kBackward>
Prepared bilinear(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const View& x = o->random(dtype, {rows, cols, kSide, kSide});
  const View& y = o->random(dtype, {rows, cols, 2 * kSide, 2 * kSide});
  const auto run = [&] {
    if constexpr (kBackward) {
      kernels::interpolate_backward({.dy = y, .dx = x, .mode = kernels::Interpolation::bilinear});
    } else {
      kernels::interpolate_forward({.x = x, .y = y, .mode = kernels::Interpolation::bilinear});
    }
  };
  return {o, run, bytes_of(x) + bytes_of(y), 0};
}

// Reads images at normally distributed positions, of which a third lie outside of their axis.
template <bool kBackward>
Prepared grid_sample(int64_t rows, int64_t cols, DType dtype, Device device) {
  const Shared o = std::make_shared<Operands>(device);
  const Dims sizes = {rows, cols, kSide, kSide};
  const View &x = o->random(dtype, sizes), &grid = o->random(dtype, {rows, kSide, kSide, 2}),
             &y = o->random(dtype, sizes);
  // Pixels that no position needs are not read.
  if constexpr (!kBackward) {
    return {o, [&] { kernels::grid_sample_forward({.x = x, .grid = grid, .y = y, .rule = {}}); },
            bytes_of(grid, y), 0, bytes_of(x)};
  }
  const View &dx = o->empty(dtype, sizes), &dgrid = o->empty(dtype, grid.sizes);
  const auto run = [&] {
    kernels::grid_sample_backward(
        {.x = x, .grid = grid, .dy = y, .dx = dx, .dgrid = dgrid, .rule = {}});
  };
  return {o, run, bytes_of(grid, y, dx, dgrid), 0, bytes_of(x)};
}

constexpr const char* kRows = "rows of cols elements from a table of 256";
constexpr const char* kBags = "rows bags of 8 rows of cols elements from a table of 256";
constexpr const char* kDoubled = "rows images of 16x16 with cols channels, to twice the size";

}  // namespace

std::vector<KernelCase> index_kernel_cases() {
  return {
      {"gather_rows", kRows, rows_of_table<false>},
      {"scatter_add_rows", kRows, rows_of_table<true>},
      {"embedding_bag_sum", kBags, bags_of_rows<kernels::BagMode::sum>},
      {"embedding_bag_max", kBags, bags_of_rows<kernels::BagMode::max>},
      {"one_hot", "rows indices of 256 classes", one_hot},
      {"triangle", "rows x cols elements", triangle},
      {"masked_select", "rows x cols elements", masked_select},
      {"bilinear_forward", kDoubled, bilinear<false>},
      {"bilinear_backward", kDoubled, bilinear<true>},
      {"grid_sample_forward", kImages, grid_sample<false>},
      {"grid_sample_backward", kImages, grid_sample<true>},
  };
}

}  // namespace binade::bench
