// Rows of the ops that index several dimensions, and of those that write rows.
#include <tests/op_table/index_row.h>

#include <algorithm>

namespace binade::op_table {
namespace {

double& element(Array& y, const Dims& at) {
  int64_t flat = 0;
  for (int d = 0; d < y.dim(); ++d) {
    flat = flat * y.sizes[d] + at[d];
  }
  return y.values[size_t(flat)];
}

// x[i, j] with i and j side by side (as dimensions 1 and 2) or apart (0 and 2).
void add_index_rows(std::vector<OpRow>& rows) {
  OpRow row = index_row("index", "side by side",
                        {{{2, 4, 3, 2}, {2, 1}, {3}}, {{3, 4, 3}, {5}, {5}}, {{1, 7, 3}, {}, {2}}},
                        {{}, indices(4), indices(3)});
  row.timed = {{256, 16, 16}, {64}, {64}};
  row.timed_domains = {{}, indices(16), indices(16)};
  row.function = [](const Tensors& x) { return Tensors{index(x[0], {Slice{}, x[1], x[2]})}; };
  row.reference = [](const Arrays& x) {
    const Dims shape = broadcast(x[1].sizes, x[2].sizes);
    Dims sizes = {x[0].sizes[0]};
    for (int64_t n : shape) {
      sizes.push_back(n);
    }
    for (int d = 3; d < x[0].dim(); ++d) {
      sizes.push_back(x[0].sizes[d]);
    }
    return Arrays{generate(sizes, [&](const Dims& y) {
      const Dims k(std::span(y.begin() + 1, size_t(shape.size())));
      Dims at = {y[0], whole(x[1].at(k)), whole(x[2].at(k))};
      for (int d = 1 + shape.size(); d < y.size(); ++d) {
        at.push_back(y[d]);
      }
      return x[0].at(at);
    })};
  };
  row.errors = {fails("index out of range",
                      [] {
                        index(ones({3, 4}), {index_of({0, 3}, {2})});
                      }),
                fails("index below the range",
                      [] {
                        index(ones({3, 4}), {index_of({-4}, {1})});
                      }),
                fails("number out of range",
                      [] {
                        index(ones({3, 4}), {1, 4});
                      }),
                fails("too many indices",
                      [] {
                        index(ones({3}), {0, 0});
                      }),
                fails("float index",
                      [] {
                        index(ones({3, 4}), {ones({2})});
                      }),
                fails("undefined index",
                      [] {
                        index(ones({3, 4}), {Tensor()});
                      }),
                fails("two ellipses",
                      [] {
                        index(ones({3, 4}), {kEllipsis, kEllipsis});
                      }),
                fails("indices that do not broadcast",
                      [] {
                        index(ones({3, 4}), {index_of({0, 1}, {2}), index_of({0, 1, 2}, {3})});
                      }),
                fails("mask of other sizes",
                      [] {
                        index(ones({3, 4}), {ones({4}, DType::boolean)});
                      }),
                fails("negative step",
                      [] {
                        index(ones({3, 4}), {Slice{0, 3, -1}});
                      }),
                fails("undefined operand", [] { index(Tensor(), {0}); })};
  rows.push_back(row);
  row.attributes = "apart";
  row.shapes = {{{4, 2, 3}, {2, 1}, {3}}, {{5, 3, 4, 2}, {6}, {6}}};
  row.large = row.shapes[0];
  row.function = [](const Tensors& x) { return Tensors{index(x[0], {x[1], Slice{}, x[2]})}; };
  row.reference = [](const Arrays& x) {
    const Dims shape = broadcast(x[1].sizes, x[2].sizes);
    Dims sizes = shape;
    sizes.push_back(x[0].sizes[1]);
    for (int d = 3; d < x[0].dim(); ++d) {
      sizes.push_back(x[0].sizes[d]);
    }
    return Arrays{generate(sizes, [&](const Dims& y) {
      const int rank = shape.size();
      const Dims k(std::span(y.begin(), size_t(rank)));
      Dims at = {whole(x[1].at(k)), y[rank], whole(x[2].at(k))};
      for (int d = rank + 1; d < y.size(); ++d) {
        at.push_back(y[d]);
      }
      return x[0].at(at);
    })};
  };
  row.errors = {};
  rows.push_back(row);
  rows.push_back(move_row(
      "index", "no tensors", {{{3, 5, 2}}, {{2, 3, 4, 2}}, {{1, 1, 0}}},
      [](const Tensor& x) {
        return index(x, {kNewAxis, -1, Slice{1, {}, 2}, kEllipsis});
      },
      [](const Array& x) {
        Dims sizes = {1, x.sizes[1] / 2};
        for (int d = 2; d < x.dim(); ++d) {
          sizes.push_back(x.sizes[d]);
        }
        return generate(sizes, [&](const Dims& y) {
          Dims at = {x.sizes[0] - 1, 1 + 2 * y[1]};
          for (int d = 2; d < x.dim(); ++d) {
            at.push_back(y[d]);
          }
          return x.at(at);
        });
      }));
  rows.push_back(move_row(  // two of three rows
      "index", "a mask", {{{5, 3}}, {{4, 2, 3}}, {{7}}, {{0, 2}}},
      [](const Tensor& x) {
        std::vector<double> mask;
        for (int64_t i = 0; i < (x.defined() && x.dim() > 0 ? x.size(0) : 1); ++i) {
          mask.push_back(i % 3 != 1);
        }
        const Device device = x.defined() ? x.device() : Device{};
        return index(x, {from_values(mask, {int64_t(mask.size())}, DType::boolean, device)});
      },
      [](const Array& x) {
        Dims sizes = x.sizes;
        sizes[0] = (x.sizes[0] + 2) / 3 + x.sizes[0] / 3;
        return generate(sizes, [&](Dims y) {
          y[0] += (y[0] + 1) / 2;
          return x.at(y);
        });
      }));
}

// Values [3] or larger at x[i, j].
OpRow index_put_row(bool accumulate) {
  OpRow row = index_row("index_put", accumulate ? "accumulate" : "",
                        {{{4, 3, 2}, {5}, {5}, {5, 2}}, {{5, 4}, {2, 1}, {3}, {3}}},
                        {{}, indices(4), indices(3), {}});
  row.timed = {{512, 512}, {4096}, {4096}, {4096}};
  row.timed_domains = {{}, indices(512), indices(512), {}};
  row.any_dtype = !accumulate;
  row.accuracy = accumulate ? Accuracy::sums : Accuracy::exact;
  row.function = [=](const Tensors& x) {
    return Tensors{index_put(x[0], {x[1], x[2]}, x[3], accumulate)};
  };
  row.reference = [=](const Arrays& x) {
    Array y = x[0];
    Dims sizes = broadcast(x[1].sizes, x[2].sizes);
    const int rank = sizes.size();
    for (int d = 2; d < y.dim(); ++d) {
      sizes.push_back(y.sizes[d]);
    }
    for_each(sizes, [&](const Dims& i) {
      const Dims k(std::span(i.begin(), size_t(rank)));
      Dims at = {whole(x[1].at(k)), whole(x[2].at(k))};
      for (int d = rank; d < i.size(); ++d) {
        at.push_back(i[d]);
      }
      const Dims from(std::span(i.begin() + (i.size() - x[3].dim()), size_t(x[3].dim())));
      double& target = element(y, at);
      target = accumulate ? target + x[3].at(from) : x[3].at(from);
    });
    return Arrays{y};
  };
  row.errors = {
      fails("index out of range",
            [=] {
              index_put(ones({3, 4}), {index_of({3}, {1})}, ones({4}), accumulate);
            }),
      fails("values that do not broadcast",
            [=] {
              index_put(ones({3, 4}), {index_of({2}, {1})}, ones({3}), accumulate);
            }),
      fails("dtypes that differ",
            [=] { index_put(ones({3}), {index_of({2}, {1})}, ones({}, DType::f64), accumulate); }),
      fails("undefined values",
            [=] { index_put(ones({3}), {index_of({2}, {1})}, Tensor(), accumulate); }),
      fails("undefined operand", [=] { index_put(Tensor(), {0}, ones({}), accumulate); })};
  return row;
}

// Slices and numbers in place of index tensors.
OpRow index_put_part_row() {
  OpRow row = index_row("index_put", "a slice", {{{4, 5}, {2}}, {{3, 4, 2}, {2, 2}}}, {{}});
  row.timed = {{1024, 1024}, {512}};
  row.function = [](const Tensors& x) {
    return Tensors{index_put(x[0], {1, Slice{1, {}, 2}}, x[1])};
  };
  row.reference = [](const Arrays& x) {
    Array y = x[0];
    Dims sizes = y.sizes;
    sizes[0] = 1;
    sizes[1] = y.sizes[1] / 2;
    for_each(sizes, [&](const Dims& i) {
      Dims at = i, from(std::span(i.begin() + 1, size_t(i.size() - 1)));
      at[0] = 1;
      at[1] = 1 + 2 * i[1];
      element(y, at) = x[1].at(from);
    });
    return Arrays{y};
  };
  return row;
}

OpRow scatter_reduce_row(const std::string& reduce, bool include_self) {
  OpRow row = index_row("scatter_reduce", text(reduce, include_self ? "" : " without self"),
                        {{{3, 4}, {3, 6}, {3, 6}},
                         {{2, 3, 5}, {2, 4, 4}, {2, 5, 4}},
                         {{4, 3}, {3, 40}, {4, 40}},
                         {{0, 3}, {0, 2}, {0, 2}}},
                        {{.avoid = {0}, .gap = 0.4}, indices(3), {.avoid = {0}, .gap = 0.4}});
  if (reduce == "amax" || reduce == "amin") {
    row.shapes.pop_back();
    row.domains = {{}, indices(3), {}};
    row.shapes[2] = {{4, 3}, {3, 20}, {3, 20}};
  }
  row.timed = {{512, 512}, {512, 512}, {512, 512}};
  row.timed_domains = {{}, indices(512), {}};
  row.any_dtype = false;
  row.accuracy = reduce[0] == 'a' ? Accuracy::exact : Accuracy::sums;
  if (reduce == "prod") {
    row.shapes[2] = {{4, 3}, {3, 18}, {3, 18}};
  }
  row.function = [=](const Tensors& x) {
    return Tensors{scatter_reduce(x[0], 1, x[1], x[2], reduce, include_self)};
  };
  row.reference = [=](const Arrays& x) {
    Array y = x[0], count = x[0];
    std::fill(count.values.begin(), count.values.end(), include_self ? 1 : 0);
    for_each(x[1].sizes, [&](const Dims& i) {
      Dims at = i;
      at[1] = whole(x[1].at(i));
      double &to = element(y, at), &n = element(count, at), term = x[2].at(i);
      to = n == 0             ? term
           : reduce == "prod" ? to * term
           : reduce == "amax" ? std::max(to, term)
           : reduce == "amin" ? std::min(to, term)
                              : to + term;
      ++n;
    });
    for (size_t i = 0; i < y.values.size() && reduce == "mean"; ++i) {
      y.values[i] /= std::max(count.values[i], 1.0);
    }
    return Arrays{y};
  };
  row.errors = {
      fails("index out of range",
            [=] {
              scatter_reduce(ones({3, 4}), 1, index_of({4}, {1, 1}), ones({1, 1}), reduce,
                             include_self);
            }),
      fails("unknown operation",
            [] { scatter_reduce(ones({3}), 0, index_of({1}, {1}), ones({1}), "max"); }),
      fails(
          "dtypes that differ",
          [=] { scatter_reduce(ones({3}), 0, index_of({1}, {1}), ones({1}, DType::f64), reduce); }),
      fails("undefined operand",
            [=] { scatter_reduce(Tensor(), 0, index_of({1}, {1}), ones({1}), reduce); })};
  return row;
}

OpRow take_along_dim_row() {
  OpRow row = index_row("take_along_dim", "dim 1", {{{3, 4}, {1, 6}}, {{1, 3, 5}, {2, 2, 5}}},
                        {{}, indices(3)});
  row.timed = {{1024, 1024}, {1, 1024}};
  row.timed_domains = {{}, indices(1024)};
  row.function = [](const Tensors& x) { return Tensors{take_along_dim(x[0], x[1], 1)}; };
  row.reference = [](const Arrays& x) {
    Dims sizes = broadcast(x[0].sizes, x[1].sizes);
    sizes[1] = x[1].sizes[1];
    return Arrays{generate(sizes, [&](const Dims& y) {
      Dims at = y;
      at[1] = whole(x[1].at(y));
      return x[0].at(at);
    })};
  };
  row.errors = {fails("rank differs",
                      [] {
                        take_along_dim(ones({3, 4}), index_of({0}, {1}), 1);
                      }),
                fails("sizes that do not broadcast",
                      [] {
                        take_along_dim(ones({3, 4}), index_of({0, 0}, {2, 1}), 1);
                      }),
                fails("undefined operand", [] { take_along_dim(Tensor(), index_of({0}, {1})); })};
  return row;
}

// index_add, index_copy and index_fill (without x[2]) along dimension 1.
OpRow rows_row(const std::string& name, const std::function<Tensor(const Tensors&)>& op,
               const std::function<double(double, double)>& f) {
  const bool fill = name == "index_fill";
  OpRow row = index_row(name, "dim 1",
                        {{{2, 4, 3}, {6}, {2, 6, 3}}, {{3, 5}, {2}, {3, 2}}, {{5, 3}, {0}, {5, 0}}},
                        {{}, indices(3), {}});
  for (Shapes& shapes : row.shapes) {
    shapes.resize(fill ? 2 : 3);
  }
  row.large = row.shapes[0];
  row.timed = {{512, 512}, {512}, {512, 512}};
  row.timed.resize(row.large.size());
  row.timed_domains = {{}, indices(512), {}};
  row.any_dtype = name != "index_add";
  row.accuracy = row.any_dtype ? Accuracy::exact : Accuracy::sums;
  row.many_zeros = fill;
  row.function = [=](const Tensors& x) { return Tensors{op(x)}; };
  row.reference = [=](const Arrays& x) {
    Array y = x[0];
    Dims sizes = y.sizes;
    sizes[1] = x[1].numel();
    for_each(sizes, [&](const Dims& i) {
      Dims at = i;
      at[1] = whole(x[1].values[size_t(i[1])]);
      element(y, at) = f(element(y, at), x.size() > 2 ? x[2].at(i) : 0);
    });
    return Arrays{y};
  };
  const auto run = [=](const Tensor& x, const Tensor& at, const Tensor& src) { op({x, at, src}); };
  row.errors = {fails("index out of range",
                      [=] {
                        run(ones({3, 4}), index_of({4}, {1}), ones({3, 1}));
                      }),
                fails("matrix of indices",
                      [=] {
                        run(ones({3, 4}), index_of({0}, {1, 1}), ones({3, 1}));
                      }),
                fails("undefined operand", [=] {
                  run(Tensor(), index_of({0}, {1}), ones({3, 1}));
                })};
  if (!fill) {
    add_errors(row, {fails("src of another shape",
                           [=] {
                             run(ones({3, 4}), index_of({1}, {1}), ones({3, 2}));
                           }),
                     fails("src of another dtype", [=] {
                       run(ones({3, 4}), index_of({1}, {1}), ones({3, 1}, DType::f64));
                     })});
  }
  return row;
}

}  // namespace

std::vector<OpRow> advanced_index_rows() {
  std::vector<OpRow> rows;
  add_index_rows(rows);
  rows.push_back(index_put_row(false));
  rows.push_back(index_put_row(true));
  rows.push_back(index_put_part_row());
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
    rows.push_back(scatter_reduce_row(reduce, true));
    rows.push_back(scatter_reduce_row(reduce, false));
  }
  rows.push_back(take_along_dim_row());
  rows.push_back(rows_row(
      "index_add", [](const Tensors& x) { return index_add(x[0], 1, x[1], x[2], 2); },
      [](double y, double src) { return y + 2 * src; }));
  rows.push_back(rows_row(
      "index_copy", [](const Tensors& x) { return index_copy(x[0], 1, x[1], x[2]); },
      [](double, double src) { return src; }));
  rows.push_back(rows_row(
      "index_fill", [](const Tensors& x) { return index_fill(x[0], 1, x[1], 1); },
      [](double, double) { return 1; }));
  return rows;
}

}  // namespace binade::op_table
