// Rows of the ops that rearrange elements: exact in every dtype.
#include <tests/op_table/move_row.h>

#include <binade/core/ops/rearrange.h>
#include <binade/core/tensor/create.h>

#include <algorithm>

namespace binade::op_table {
namespace {

// y[index] = x[f(index)], or 0 where f's result is not an index of x.
Array moved(const Array& x, const Dims& sizes, const std::function<Dims(Dims)>& f,
            double outside = 0) {
  return generate(sizes, [&](const Dims& y) {
    const Dims at = f(y);
    for (int d = 0; d < x.dim(); ++d) {
      if (at[d] < 0 || at[d] >= x.sizes[d]) {
        return outside;
      }
    }
    return x.at(at);
  });
}

int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }

void append_flips_and_rolls(std::vector<OpRow>& rows) {
  const std::vector<Shapes> solids = {{{2, 3, 4}}, {{1, 5, 1}}, {{0, 3, 2}}, {{3, 2, 7}}};
  rows.push_back(move_row(
      "flip", "0, -1", solids,
      [](const Tensor& x) {
        return flip(x, {0, -1});
      },
      [](const Array& x) {
        return moved(x, x.sizes, [&](Dims y) {
          y[0] = x.sizes[0] - 1 - y[0];
          y[2] = x.sizes[2] - 1 - y[2];
          return y;
        });
      }));
  add_errors(rows.back(), {fails("repeated dim",
                                 [] {
                                   flip(ones({3, 4}), {0, -2});
                                 }),
                           fails("dim out of range", [] {
                             flip(ones({3, 4}), {2});
                           })});
  rows.push_back(move_row(
      "roll", "2 and -4 of 0 and 2", solids,
      [](const Tensor& x) {
        return roll(x, {2, -4}, {0, 2});
      },
      [](const Array& x) {
        return moved(x, x.sizes, [&](Dims y) {
          y[0] = modulo(y[0] - 2, x.sizes[0]);
          y[2] = modulo(y[2] + 4, x.sizes[2]);
          return y;
        });
      }));
  add_errors(rows.back(), {fails("shifts and dims differ",
                                 [] {
                                   roll(ones({3, 4}), {1, 2}, {0});
                                 }),
                           fails("no dims for two shifts",
                                 [] {
                                   roll(ones({3, 4}), {1, 2});
                                 }),
                           fails("a dim of a scalar", [] { roll(ones({}), {1}, {0}); }),
                           fails("dim out of range", [] {
                             roll(ones({3, 4}), {1}, {2});
                           })});
  rows.push_back(move_row(
      "roll", "3 of all", {{{4, 3}}, {{7}}, {{}}, {{0, 2}}},
      [](const Tensor& x) { return roll(x, {3}); },
      [](const Array& x) {
        Array y = x;
        for (int64_t i = 0; i < x.numel(); ++i) {
          y.values[size_t(modulo(i + 3, x.numel()))] = x.values[size_t(i)];
        }
        return y;
      }));
}

void append_repeats(std::vector<OpRow>& rows) {
  const auto tiled = [](const Array& x, const Dims& repeats) {
    Dims sizes = repeats;
    const int lead = repeats.size() - x.dim();
    for (int d = 0; d < x.dim(); ++d) {
      sizes[d + lead] *= x.sizes[d];
    }
    return generate(sizes, [&](const Dims& y) {
      Dims at;
      for (int d = 0; d < x.dim(); ++d) {
        at.push_back(y[d + lead] % x.sizes[d]);
      }
      return x.at(at);
    });
  };
  const std::vector<Shapes> flat = {{{2, 3}}, {{3}}, {{}}, {{0, 2}}};
  rows.push_back(move_row(
      "repeat", "2, 1, 3", {{{2, 3}}, {{3}}, {{}}, {{0, 2}}, {{2, 1, 2}}},
      [](const Tensor& x) {
        return repeat(x, {2, 1, 3});
      },
      [=](const Array& x) {
        return tiled(x, {2, 1, 3});
      }));
  add_errors(rows.back(), {fails("too few repeats",
                                 [] {
                                   repeat(ones({3, 4}), {2});
                                 }),
                           fails("negative repeats", [] {
                             repeat(ones({3, 4}), {2, -1});
                           })});
  rows.push_back(move_row(
      "repeat", "of five dims", {{{2, 1, 3, 2, 2}}, {{2, 3}}},
      [](const Tensor& x) {
        return repeat(x, {2, 1, 1, 3, 2});
      },
      [=](const Array& x) {
        return tiled(x, {2, 1, 1, 3, 2});
      }));
  rows.push_back(move_row(
      "repeat", "0, 2", flat,
      [](const Tensor& x) {
        return repeat(x, {0, 2});
      },
      [=](const Array& x) {
        return tiled(x, {0, 2});
      }));
  rows.push_back(move_row(
      "tile", "2", {{{2, 3}}, {{3}}, {{}}, {{2, 1, 2}}},
      [](const Tensor& x) { return tile(x, {2}); },
      [=](const Array& x) {
        Dims repeats = Dims::of(std::max(x.dim(), 1), 1);
        repeats[repeats.size() - 1] = 2;
        return tiled(x, repeats);
      }));
  add_errors(rows.back(), {fails("negative repeats", [] { tile(ones({3, 4}), {-1}); })});
}

void append_pads(std::vector<OpRow>& rows) {
  rows.push_back(move_row(
      "pad", "1, 2, 0, 3 with 5", {{{2, 3}}, {{2, 3, 4}}, {{0, 3}}, {{2, 2, 1, 3}}},
      [](const Tensor& x) {
        return pad(x, {1, 2, 0, 3}, {.value = 5});
      },
      [](const Array& x) {
        const int last = x.dim() - 1;
        Dims sizes = x.sizes;
        sizes[last] += 3;
        sizes[last - 1] += 3;
        return moved(
            x, sizes,
            [&](Dims y) {
              y[last] -= 1;
              return y;
            },
            5);
      }));
  rows.back().any_dtype = false;  // 5 is no bool
  rows.push_back(move_row(
      "pad", "-1, 2, 3, -2", {{{4, 3}}, {{2, 3, 4}}, {{0, 2, 1}}},
      [](const Tensor& x) {
        return pad(x, {-1, 2, 3, -2});
      },
      [](const Array& x) {
        const int last = x.dim() - 1;
        Dims sizes = x.sizes;
        sizes[last] += 1;
        sizes[last - 1] += 1;
        return moved(x, sizes, [&](Dims y) {
          y[last] += 1;
          y[last - 1] -= 3;
          return y;
        });
      }));
  rows.back().many_zeros = true;
  add_errors(rows.back(), {fails("odd list",
                                 [] {
                                   pad(ones({3, 4}), {1});
                                 }),
                           fails("too many pads",
                                 [] {
                                   pad(ones({3}), {1, 1, 1, 1});
                                 }),
                           fails("cuts off more than there is",
                                 [] {
                                   pad(ones({3}), {-2, -2});
                                 }),
                           fails("size beyond 64 bits", [] {
                             pad(ones({3}), {INT64_MAX, INT64_MAX});
                           })});
  rows.push_back(move_row(
      "pad", "reflect 2, 1, 0, 3", {{{4, 3}}, {{2, 5, 4}}, {{0, 4, 3}}},
      [](const Tensor& x) {
        return pad(x, {2, 1, 0, 3}, {.mode = PadMode::reflect});
      },
      [](const Array& x) {
        const int last = x.dim() - 1;
        const auto mirrored = [](int64_t i, int64_t n) {
          return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
        };
        Dims sizes = x.sizes;
        sizes[last] += 3;
        sizes[last - 1] += 3;
        return moved(x, sizes, [&](Dims y) {
          y[last] = mirrored(y[last] - 2, x.sizes[last]);
          y[last - 1] = mirrored(y[last - 1], x.sizes[last - 1]);
          return y;
        });
      }));
  const PadOptions reflect{.mode = PadMode::reflect};
  add_errors(rows.back(), {fails("reflection longer than the input",
                                 [=] {
                                   pad(ones({3, 4}), {4, 0}, reflect);
                                 }),
                           fails("negative reflection",
                                 [=] {
                                   pad(ones({3, 4}), {-1, 0}, reflect);
                                 }),
                           fails("reflection of nothing", [=] {
                             pad(ones({0}), {1, 0}, reflect);
                           })});
}

void append_triangles(std::vector<OpRow>& rows) {
  const std::vector<Shapes> matrices = {
      {{5, 7}}, {{7, 5}}, {{2, 4, 4}}, {{0, 3, 3}}, {{1, 2, 3, 2}}};
  for (const int64_t diagonal : {0, 1, -9}) {
    for (const bool upper : {false, true}) {
      rows.push_back(move_row(
          upper ? "triu" : "tril", text("diagonal ", diagonal), matrices,
          [=](const Tensor& x) { return upper ? triu(x, diagonal) : tril(x, diagonal); },
          [=](const Array& x) {
            const int last = x.dim() - 1;
            return generate(x.sizes, [&](const Dims& y) {
              const int64_t beyond = y[last] - y[last - 1] - diagonal;
              return (upper ? beyond >= 0 : beyond <= 0) ? x.at(y) : 0;
            });
          }));
      rows.back().many_zeros = true;
      add_errors(rows.back(), {fails("one dim", [=] {
                   upper ? triu(ones({4}), diagonal) : tril(ones({4}), diagonal);
                 })});
    }
  }
}

Array narrowed(const Array& x, int dim, int64_t start, int64_t length) {
  Dims sizes = x.sizes;
  sizes[dim] = length;
  return moved(x, sizes, [&](Dims y) {
    y[dim] += start;
    return y;
  });
}

OpRow pieces_row(const std::string& name, const std::string& attributes,
                 const std::vector<Shapes>& shapes,
                 const std::function<std::vector<Tensor>(const Tensor&)>& op,
                 const std::function<std::vector<int64_t>(int64_t)>& lengths) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  row.shapes = shapes;
  row.function = [op](const Tensors& x) { return op(x[0]); };
  row.reference = [lengths](const Arrays& x) {
    Arrays parts;
    int64_t at = 0;
    for (int64_t length : lengths(x[0].sizes[1])) {
      parts.push_back(narrowed(x[0], 1, at, length));
      at += length;
    }
    return parts;
  };
  row.any_dtype = true;
  row.large = shapes[0];
  row.timed = lengthened(shapes[0]);
  row.errors = {fails("undefined operand", [op] { op(Tensor()); })};
  return row;
}

void append_parts(std::vector<OpRow>& rows) {
  rows.push_back(move_row(
      "narrow", "2 of dim 1 from -3", {{{3, 6}}, {{2, 5, 2}}, {{0, 3}}},
      [](const Tensor& x) { return narrow(x, 1, -3, 2); },
      [](const Array& x) { return narrowed(x, 1, x.sizes[1] - 3, 2); }));
  add_errors(rows.back(), {fails("past the end",
                                 [] {
                                   narrow(ones({3, 4}), 1, 2, 3);
                                 }),
                           fails("negative length",
                                 [] {
                                   narrow(ones({3, 4}), 1, 2, -1);
                                 }),
                           fails("start past the end",
                                 [] {
                                   narrow(ones({3, 4}), 1, 5, 0);
                                 }),
                           fails("0-d operand", [] { narrow(ones({}), 0, 0, 1); }),
                           fails("dim out of range", [] {
                             narrow(ones({3, 4}), 2, 0, 1);
                           })});
  rows.push_back(move_row(
      "squeeze", "all", {{{1, 3, 1, 4}}, {{1, 1}}, {{}}, {{0, 1}}, {{2, 3}}},
      [](const Tensor& x) { return squeeze(x); },
      [](const Array& x) {
        Dims sizes;
        for (int64_t size : x.sizes) {
          if (size != 1) {
            sizes.push_back(size);
          }
        }
        return renamed(x, sizes);
      }));
  const std::vector<int64_t> sizes = {2, 0, 3, 1};
  rows.push_back(pieces_row(
      "split", "2, 0, 3, 1 of dim 1", {{{3, 6}}, {{2, 6, 2}}, {{0, 6}}},
      [=](const Tensor& x) { return split(x, sizes, 1); }, [=](int64_t) { return sizes; }));
  add_errors(rows.back(), {fails("sizes too small",
                                 [=] {
                                   split(ones({3, 7}), sizes, 1);
                                 }),
                           fails("sizes too large",
                                 [=] {
                                   split(ones({3, 5}), sizes, 1);
                                 }),
                           fails("0-d operand", [=] { split(ones({}), sizes, 0); })});
  rows.push_back(pieces_row(
      "chunk", "4 of dim 1", {{{3, 10}}, {{2, 6, 2}}, {{2, 3}}, {{2, 0}}},
      [](const Tensor& x) { return chunk(x, 4, 1); },
      [](int64_t n) {
        const int64_t size = (n + 3) / 4;
        std::vector<int64_t> lengths(n == 0 ? 4 : 0, 0);
        for (int64_t at = 0; at < n; at += size) {
          lengths.push_back(std::min(size, n - at));
        }
        return lengths;
      }));
  add_errors(rows.back(),
             {fails("no chunks",
                    [] {
                      chunk(ones({3, 4}), 0);
                    }),
              fails("0-d operand", [] { chunk(ones({}), 2); }), fails("dim out of range", [] {
                chunk(ones({3, 4}), 2, 2);
              })});
}

}  // namespace

std::vector<OpRow> rearrange_rows() {
  std::vector<OpRow> rows;
  append_flips_and_rolls(rows);
  append_repeats(rows);
  append_pads(rows);
  append_triangles(rows);
  append_parts(rows);
  return rows;
}

}  // namespace binade::op_table
