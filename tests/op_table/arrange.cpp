// Rows of the ops that choose by values, and of those that arrange: diagonals, grids and repeats.
#include <tests/op_table/move_row.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace binade::op_table {
namespace {

// A mask of x's sizes: two of three elements are true.
bool chosen(int64_t i) { return i % 3 != 1; }
Tensor mask_for(const Tensor& x) {
  std::vector<double> values;
  const Dims sizes = x.defined() ? x.sizes() : Dims{1};
  for (int64_t i = 0; i < element_count(sizes); ++i) {
    values.push_back(chosen(i));
  }
  return from_values(values, sizes, DType::boolean, x.defined() ? x.device() : Device{});
}

OpRow masked_scatter_row() {
  OpRow row;
  row.name = "masked_scatter";
  row.shapes = {{{4, 6}, {30}}, {{2, 3, 4}, {4, 5}}, {{}, {1}}, {{0, 3}, {2}}};
  row.function = [](const Tensors& x) {
    return Tensors{masked_scatter(x[0], mask_for(x[0]), x[1])};
  };
  row.reference = [](const Arrays& x) {
    Array y = x[0];
    size_t next = 0;
    for (int64_t i = 0; i < y.numel(); ++i) {
      if (chosen(i)) {
        y.values[size_t(i)] = x[1].values[next++];
      }
    }
    return Arrays{y};
  };
  row.any_dtype = true;
  row.large = row.shapes[0];
  row.timed = {{512, 512}, {512, 512}};
  row.errors = {
      fails("too few elements", [] { masked_scatter(ones({6}), mask_for(ones({6})), ones({3})); }),
      fails("mask of another shape",
            [] { masked_scatter(ones({6}), mask_for(ones({5})), ones({6})); }),
      fails("undefined operand", [] { masked_scatter(Tensor(), mask_for(ones({6})), ones({6})); })};
  return row;
}

OpRow nonzero_row() {
  OpRow row = move_row(
      "nonzero", "", {{{4, 6}}, {{2, 3, 4}}, {{}}, {{0, 3}}, {{3, 700}}},
      [](const Tensor& x) { return nonzero(x); },
      [](const Array& x) {
        Array y{{0, x.dim()}, {}};
        for_each(x.sizes, [&](const Dims& at) {
          if (x.at(at) != 0) {
            ++y.sizes[0];
            y.values.insert(y.values.end(), at.begin(), at.end());
          }
        });
        return y;
      });
  row.domains = {{.whole = true}};
  row.output_dtype = DType::i64;
  row.differentiable = false;
  row.many_zeros = true;
  return row;
}

OpRow unique_row() {
  OpRow row;
  row.name = "unique";
  row.shapes = {{{4, 6}}, {{2, 3, 4}}, {{}}, {{0, 3}}, {{2, 1500}}};
  row.domains = {{.whole = true}};
  row.function = [](const Tensors& x) {
    const UniqueResult y = unique(x[0]);
    return Tensors{y.values, y.inverse, y.counts};
  };
  row.reference = [](const Arrays& x) {
    std::map<double, double> counts;
    for (double value : x[0].values) {
      ++counts[value];
    }
    Arrays y(3);
    for (const auto& [value, count] : counts) {
      y[0].values.push_back(value);
      y[2].values.push_back(count);
    }
    y[0].sizes = y[2].sizes = {y[0].numel()};
    y[1] = map(x[0], [&](double value) {
      return double(std::distance(counts.begin(), counts.find(value)));
    });
    return y;
  };
  row.any_dtype = true;
  row.differentiable = false;
  row.many_zeros = true;
  row.large = {{2, 1500}};
  row.timed = {{256, 256}};
  row.errors = {fails("undefined operand", [] { unique(Tensor()); })};
  return row;
}

OpRow bincount_row(bool weighted) {
  OpRow row;
  row.name = "bincount";
  row.attributes = weighted ? "weights" : "";
  row.shapes = {{{30}, {30}}, {{7}, {7}}, {{0}, {0}}, {{1}, {1}}};
  row.domains = {{.classes = 5}, {}};
  for (Shapes& shapes : row.shapes) {
    shapes.resize(weighted ? 2 : 1);
  }
  row.function = [=](const Tensors& x) {
    return Tensors{bincount(x[0], weighted ? x[1] : Tensor(), 4)};
  };
  row.reference = [=](const Arrays& x) {
    int64_t size = 4;
    for (double value : x[0].values) {
      size = std::max(size, int64_t(value) + 1);
    }
    Array y{{size}, std::vector<double>(size_t(size), 0.0)};
    for (size_t i = 0; i < x[0].values.size(); ++i) {
      y.values[size_t(x[0].values[i])] += weighted ? x[1].values[i] : 1;
    }
    return Arrays{y};
  };
  row.output_dtype = weighted ? std::nullopt : std::optional(DType::i64);
  row.differentiable = weighted;
  row.accuracy = weighted ? Accuracy::sums : Accuracy::exact;
  row.many_zeros = true;
  row.large = row.shapes[0];
  row.timed = {{1 << 16}, {1 << 16}};
  row.timed.resize(weighted ? 2 : 1);
  const auto numbers = [](double a) { return from_values({a, 1}, {2}, DType::i64); };
  row.errors = {fails("negative number", [=] { bincount(numbers(-1)); }),
                fails("float numbers", [] { bincount(ones({3})); }),
                fails("fewer weights than numbers", [=] { bincount(numbers(1), ones({1})); }),
                fails("undefined operand", [] { bincount(Tensor()); })};
  return row;
}

void add_repeats(std::vector<OpRow>& rows) {
  rows.push_back(move_row(
      "repeat_interleave", "3 times, dim 1", {{{3, 4}}, {{2, 1, 5}}, {{0, 2}}},
      [](const Tensor& x) { return repeat_interleave(x, 3, 1); },
      [](const Array& x) {
        Dims sizes = x.sizes;
        sizes[1] *= 3;
        return generate(sizes, [&](Dims y) {
          y[1] /= 3;
          return x.at(y);
        });
      }));
  add_errors(rows.back(), {fails("negative repeats", [] { repeat_interleave(ones({3}), -1); }),
                           fails("dim out of range", [] { repeat_interleave(ones({3}), 2, 1); })});
  OpRow row;
  row.name = "repeat_interleave";
  row.attributes = "of each row";
  row.shapes = {{{3, 4}, {4}}, {{2, 5, 3}, {5}}, {{3, 0}, {0}}};
  row.domains = {{}, {.classes = 4}};
  row.function = [](const Tensors& x) { return Tensors{repeat_interleave(x[0], x[1], 1)}; };
  row.reference = [](const Arrays& x) {
    std::vector<int64_t> from;
    for (int64_t i = 0; i < x[1].numel(); ++i) {
      from.insert(from.end(), size_t(x[1].values[size_t(i)]), i);
    }
    Dims sizes = x[0].sizes;
    sizes[1] = int64_t(from.size());
    return Arrays{generate(sizes, [&](Dims y) {
      y[1] = from[size_t(y[1])];
      return x[0].at(y);
    })};
  };
  row.any_dtype = true;
  row.large = row.shapes[0];
  row.timed = {{256, 256}, {256}};
  row.errors = {fails("negative repeats",
                      [] {
                        repeat_interleave(ones({2}), from_values({1, -1}, {2}, DType::i64));
                      }),
                fails("repeats of another size",
                      [] { repeat_interleave(ones({2}), from_values({1}, {1}, DType::i64)); }),
                fails("undefined repeats", [] { repeat_interleave(ones({2}), Tensor()); })};
  rows.push_back(row);
}

void add_joins(std::vector<OpRow>& rows) {
  OpRow row;
  row.name = "unbind";
  row.attributes = "dim 1";
  row.shapes = {{{3, 5}}, {{2, 3, 4}}, {{3, 1}}};
  row.function = [](const Tensors& x) { return unbind(x[0], 1); };
  row.reference = [](const Arrays& x) {
    Arrays parts;
    for (int64_t i = 0; i < x[0].sizes[1]; ++i) {
      Dims sizes = {x[0].sizes[0]};
      for (int d = 2; d < x[0].dim(); ++d) {
        sizes.push_back(x[0].sizes[d]);
      }
      parts.push_back(generate(sizes, [&](const Dims& y) {
        Dims at = {y[0], i};
        for (int d = 1; d < y.size(); ++d) {
          at.push_back(y[d]);
        }
        return x[0].at(at);
      }));
    }
    return parts;
  };
  row.any_dtype = true;
  row.large = row.shapes[0];
  row.timed = {{16384, 8}};
  row.errors = {fails("a scalar", [] { unbind(ones({})); }),
                fails("dim out of range", [] { unbind(ones({3}), 1); }),
                fails("undefined operand", [] { unbind(Tensor()); })};
  rows.push_back(row);
  for (const char* indexing : {"ij", "xy"}) {
    const bool swapped = indexing[0] == 'x';
    row.name = "meshgrid";
    row.attributes = indexing;
    row.shapes = {{{5}, {3}}, {{1}, {4}}, {{4}, {2}, {3}}};
    row.function = [=](const Tensors& x) { return meshgrid(x, indexing); };
    row.reference = [=](const Arrays& x) {
      const auto place = [=](size_t i) { return int(swapped && i < 2 ? 1 - i : i); };
      Dims sizes = Dims::of(int(x.size()));
      for (size_t i = 0; i < x.size(); ++i) {
        sizes[place(i)] = x[i].numel();
      }
      Arrays y;
      for (size_t i = 0; i < x.size(); ++i) {
        y.push_back(
            generate(sizes, [&](const Dims& at) { return x[i].values[size_t(at[place(i)])]; }));
      }
      return y;
    };
    row.large = row.shapes[0];
    row.timed = {{512}, {512}};
    row.flops = [](const Shapes& x) { return double(x[0][0] * x[1][0]); };
    row.errors = {fails("no tensors", [] { meshgrid({}); }),
                  fails("a matrix",
                        [] {
                          meshgrid({ones({3, 3})});
                        }),
                  fails("another indexing", [] { meshgrid({ones({3})}, "yx"); }),
                  fails("undefined tensor", [] { meshgrid({Tensor()}); })};
    rows.push_back(row);
  }
}

void add_diagonals(std::vector<OpRow>& rows) {
  for (int64_t offset : {0, 1, -2}) {
    rows.push_back(move_row(
        "diagonal", text("offset ", offset), {{{4, 5}}, {{3, 3, 2}}, {{1, 4}}, {{5, 0}}},
        [=](const Tensor& x) { return diagonal(x, offset); },
        [=](const Array& x) {
          const int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
          const int64_t length =
              std::max<int64_t>(0, std::min(x.sizes[0] - down, x.sizes[1] - right));
          Dims sizes;
          for (int d = 2; d < x.dim(); ++d) {
            sizes.push_back(x.sizes[d]);
          }
          sizes.push_back(length);
          return generate(sizes, [&](const Dims& y) {
            Dims at = {y.back() + down, y.back() + right};
            for (int d = 2; d < x.dim(); ++d) {
              at.push_back(y[d - 2]);
            }
            return x.at(at);
          });
        }));
    rows.push_back(move_row(
        "diag_embed", text("offset ", offset), {{{4}}, {{2, 3}}, {{2, 0}}},
        [=](const Tensor& x) { return diag_embed(x, offset); },
        [=](const Array& x) {
          const int64_t n = x.sizes.back() + std::abs(offset);
          Dims sizes = x.sizes;
          sizes[x.dim() - 1] = n;
          sizes.push_back(n);
          return generate(sizes, [&](Dims y) {
            const int64_t i = y[x.dim() - 1], j = y.back();
            y[x.dim() - 1] = std::min(i, j);
            return j - i == offset ? x.at(Dims(std::span(y.begin(), size_t(x.dim())))) : 0.0;
          });
        }));
    rows.back().many_zeros = true;
  }
  add_errors(rows[rows.size() - 2],
             {fails("a vector", [] { diagonal(ones({3})); }), fails("one dimension twice", [] {
                diagonal(ones({3, 3}), 0, 1, -1);
              })});
  add_errors(rows.back(), {fails("a scalar", [] { diag_embed(ones({})); })});
  rows.push_back(move_row(
      "diag", "", {{{5, 4}}, {{1, 3}}}, [](const Tensor& x) { return diag(x, 1); },
      [](const Array& x) {
        return generate({std::min(x.sizes[0], x.sizes[1] - 1)}, [&](const Dims& y) {
          return x.at({y[0], y[0] + 1});
        });
      }));
  add_errors(rows.back(), {fails("three dimensions", [] { diag(ones({2, 2, 2})); })});
  rows.push_back(move_row(
      "movedim", "0 to -1", {{{3, 4}}, {{2, 3, 4}}, {{5}}, {{0, 3, 2}}},
      [](const Tensor& x) { return movedim(x, 0, -1); },
      [](const Array& x) {
        Dims sizes(std::span(x.sizes.begin() + 1, size_t(x.dim() - 1)));
        sizes.push_back(x.sizes[0]);
        return generate(sizes, [&](const Dims& y) {
          Dims at = {y.back()};
          for (int d = 0; d + 1 < y.size(); ++d) {
            at.push_back(y[d]);
          }
          return x.at(at);
        });
      }));
  add_errors(rows.back(), {fails("dim out of range",
                                 [] {
                                   movedim(ones({3, 4}), 2, 0);
                                 }),
                           fails("one dim twice",
                                 [] {
                                   movedim(ones({3, 4}), {0, 0}, {0, 1});
                                 }),
                           fails("fewer destinations", [] {
                             movedim(ones({3, 4}), {0, 1}, {0});
                           })});
}

}  // namespace

std::vector<OpRow> arrange_rows() {
  std::vector<OpRow> rows = {masked_scatter_row(), nonzero_row(), unique_row(), bincount_row(false),
                             bincount_row(true)};
  add_repeats(rows);
  add_joins(rows);
  add_diagonals(rows);
  return rows;
}

}  // namespace binade::op_table
