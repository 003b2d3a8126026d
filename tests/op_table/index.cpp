// Rows of the ops with indices.
#include <tests/op_table/index_row.h>

#include <binade/core/ops/index.h>

#include <algorithm>

namespace binade::op_table {
namespace {

OpRow index_select_row(int dim) {
  OpRow row = index_row("index_select", text("dim ", dim),
                        {{{3, 4}, {5}}, {{3, 3, 3, 4}, {2}}, {{5, 3}, {0}}, {{4, 7}, {40}}},
                        {{}, indices(3)});
  row.timed = {{1024, 1024}, {1024}};
  row.timed_domains = {{}, indices(1024)};
  row.function = [=](const Tensors& x) { return Tensors{index_select(x[0], dim, x[1])}; };
  row.reference = [=](const Arrays& x) {
    Dims sizes = x[0].sizes;
    sizes[dim] = x[1].numel();
    return Arrays{generate(sizes, [&](Dims y) {
      y[dim] = whole(x[1].values[size_t(y[dim])]);
      return x[0].at(y);
    })};
  };
  row.errors = {fails("index out of range",
                      [] {
                        index_select(ones({3, 4}), 0, index_of({0, 3}, {2}));
                      }),
                fails("negative index",
                      [] {
                        index_select(ones({3, 4}), 0, index_of({-1}, {1}));
                      }),
                fails("float index",
                      [] {
                        index_select(ones({3, 4}), 0, ones({2}));
                      }),
                fails("matrix of indices",
                      [] {
                        index_select(ones({3, 4}), 0, index_of({0}, {1, 1}));
                      }),
                fails("dim out of range",
                      [] {
                        index_select(ones({3, 4}), 2, index_of({0}, {1}));
                      }),
                fails("undefined operand", [] { index_select(Tensor(), 0, index_of({0}, {1})); })};
  return row;
}

OpRow gather_row() {
  OpRow row = index_row("gather", "dim 1",
                        {{{3, 4}, {2, 6}},
                         {{2, 3, 5}, {2, 1, 4}},
                         {{5, 3}, {5, 0}},
                         {{4, 3}, {3, 40}},
                         {{0, 3}, {0, 2}}},
                        {{}, indices(3)});
  row.timed = {{1024, 1024}, {1024, 1024}};
  row.timed_domains = {{}, indices(1024)};
  row.function = [](const Tensors& x) { return Tensors{gather(x[0], 1, x[1])}; };
  row.reference = [](const Arrays& x) {
    return Arrays{generate(x[1].sizes, [&](const Dims& y) {
      Dims at = y;
      at[1] = whole(x[1].at(y));
      return x[0].at(at);
    })};
  };
  row.errors = {fails("index out of range",
                      [] {
                        gather(ones({3, 4}), 1, index_of({0, 4}, {1, 2}));
                      }),
                fails("rank differs",
                      [] {
                        gather(ones({3, 4}), 1, index_of({0, 1}, {2}));
                      }),
                fails("index too large",
                      [] {
                        gather(ones({1, 4}), 1, index_of({0, 1}, {2, 1}));
                      }),
                fails("float index",
                      [] {
                        gather(ones({3, 4}), 1, ones({3, 4}));
                      }),
                fails("undefined operand", [] { gather(Tensor(), 0, index_of({0}, {1})); })};
  return row;
}

OpRow scatter_add_row() {
  OpRow row = index_row("scatter_add", "dim 1",
                        {{{3, 4}, {3, 6}, {3, 6}},
                         {{2, 3, 5}, {2, 4, 4}, {2, 5, 4}},
                         {{5, 3}, {5, 0}, {5, 2}},
                         {{4, 3}, {3, 40}, {4, 40}},
                         {{0, 3}, {0, 2}, {0, 2}}},
                        {{}, indices(3), {}});
  row.timed = {{1024, 1024}, {1024, 1024}, {1024, 1024}};
  row.timed_domains = {{}, indices(1024), {}};
  row.any_dtype = false;
  row.accuracy = Accuracy::sums;
  row.function = [](const Tensors& x) { return Tensors{scatter_add(x[0], 1, x[1], x[2])}; };
  row.reference = [](const Arrays& x) {
    Array y = x[0];
    for_each(x[1].sizes, [&](const Dims& index) {
      int64_t at = 0;
      for (int d = 0; d < index.size(); ++d) {
        at = at * y.sizes[d] + (d == 1 ? whole(x[1].at(index)) : index[d]);
      }
      y.values[size_t(at)] += x[2].at(index);
    });
    return Arrays{y};
  };
  const auto add = [](const Dims& x, const Tensor& index, const Dims& src) {
    scatter_add(ones(x), 1, index, ones(src));
  };
  row.errors = {
      fails("index out of range",
            [=] {
              add({3, 4}, index_of({0, 4}, {1, 2}), {1, 2});
            }),
      fails("index larger than src",
            [=] {
              add({3, 4}, index_of({0, 1}, {1, 2}), {1, 1});
            }),
      fails("index larger than x",
            [=] {
              add({1, 4}, index_of({0, 1}, {2, 1}), {2, 1});
            }),
      fails("rank differs",
            [=] {
              add({3, 4}, index_of({0, 1}, {2}), {2});
            }),
      fails("dtypes that differ",
            [] {
              scatter_add(ones({3, 4}), 1, index_of({0}, {1, 1}), ones({1, 1}, DType::f64));
            }),
      fails("undefined operand", [] { scatter_add(Tensor(), 0, index_of({0}, {1}), ones({1})); })};
  return row;
}

// y with x[2], or `value` if there is no x[2], at the indices of x[1] along dimension 1.
Array overwritten(const Arrays& x, double value) {
  Array y = x[0];
  for_each(x[1].sizes, [&](const Dims& index) {
    int64_t at = 0;
    for (int d = 0; d < index.size(); ++d) {
      at = at * y.sizes[d] + (d == 1 ? whole(x[1].at(index)) : index[d]);
    }
    y.values[size_t(at)] = x.size() > 2 ? x[2].at(index) : value;
  });
  return y;
}

OpRow scatter_row() {
  OpRow row = index_row("scatter", "dim 1",
                        {{{3, 4}, {3, 6}, {3, 6}},
                         {{2, 3, 5}, {2, 4, 4}, {2, 5, 4}},
                         {{5, 3}, {4, 1}, {4, 1}},
                         {{5, 3}, {5, 0}, {5, 2}},
                         {{4, 3}, {3, 40}, {4, 40}},
                         {{0, 3}, {0, 2}, {0, 2}}},
                        {{}, indices(3), {}});
  row.timed = {{1024, 1024}, {1024, 1024}, {1024, 1024}};
  row.timed_domains = {{}, indices(1024), {}};
  row.function = [](const Tensors& x) { return Tensors{scatter(x[0], 1, x[1], x[2])}; };
  row.reference = [](const Arrays& x) { return Arrays{overwritten(x, 0)}; };
  const auto write = [](const Dims& x, const Tensor& index, const Dims& src) {
    scatter(ones(x), 1, index, ones(src));
  };
  row.errors = {
      fails("index out of range",
            [=] {
              write({3, 4}, index_of({0, 4}, {1, 2}), {1, 2});
            }),
      fails("index larger than src",
            [=] {
              write({3, 4}, index_of({0, 1}, {1, 2}), {1, 1});
            }),
      fails("index larger than x",
            [=] {
              write({1, 4}, index_of({0, 1}, {2, 1}), {2, 1});
            }),
      fails("dtypes that differ",
            [] {
              scatter(ones({3, 4}), 1, index_of({0}, {1, 1}), ones({1, 1}, DType::f64));
            }),
      fails("float index",
            [=] {
              write({3, 4}, ones({3, 4}), {3, 4});
            }),
      fails("undefined operand", [] { scatter(Tensor(), 0, index_of({0}, {1}), ones({1})); })};
  return row;
}

OpRow scatter_number_row() {
  OpRow row =
      index_row("scatter", "dim 1, a number",
                {{{3, 4}, {3, 6}}, {{2, 3, 5}, {2, 4, 4}}, {{4, 3}, {3, 40}}}, {{}, indices(3)});
  row.timed = {{1024, 1024}, {1024, 1024}};
  row.timed_domains = {{}, indices(1024)};
  row.function = [](const Tensors& x) { return Tensors{scatter(x[0], 1, x[1], 1.0)}; };
  row.reference = [](const Arrays& x) { return Arrays{overwritten(x, 1)}; };
  row.errors = {fails("index out of range",
                      [] {
                        scatter(ones({3, 4}), 1, index_of({-1}, {1, 1}), 2.0);
                      }),
                fails("index larger than x",
                      [] {
                        scatter(ones({1, 4}), 1, index_of({0, 1}, {2, 1}), 2.0);
                      }),
                fails("undefined operand", [] { scatter(Tensor(), 0, index_of({0}, {1}), 2.0); })};
  return row;
}

// The mask depends on the first input's sizes: two of three elements are true.
OpRow masked_select_row() {
  const auto chosen = [](int64_t i) { return i % 3 != 1; };
  OpRow row = move_row(
      "masked_select", "", {{{4, 6}}, {{2, 3, 4}}, {{}}, {{0, 3}}, {{3, 700}}},
      [=](const Tensor& x) {
        Array mask{x.defined() ? x.sizes() : Dims{1}, {}};
        for (int64_t i = 0; i < element_count(mask.sizes); ++i) {
          mask.values.push_back(chosen(i));
        }
        return masked_select(x, from_values(mask.values, mask.sizes, DType::boolean,
                                            x.defined() ? x.device() : Device{}));
      },
      [=](const Array& x) {
        Array y;
        for (int64_t i = 0; i < x.numel(); ++i) {
          if (chosen(i)) {
            y.values.push_back(x.values[size_t(i)]);
          }
        }
        y.sizes = {y.numel()};
        return y;
      });
  add_errors(row, {fails("mask of another shape",
                         [] {
                           masked_select(ones({3, 4}), ones({3}, DType::boolean));
                         }),
                   fails("mask of numbers", [] { masked_select(ones({3}), ones({3})); })});
  return row;
}

OpRow embedding_row(std::optional<int64_t> padding) {
  OpRow row =
      index_row("embedding", padding ? text("padding ", *padding) : "",
                {{{3, 4}, {5}}, {{7, 33}, {2, 3}}, {{4, 1}, {}}, {{5, 3}, {0}}, {{3, 2}, {70}}},
                {{}, indices(3)});
  row.timed = {{8192, 256}, {4096}};
  row.timed_domains = {{}, indices(8192)};
  row.any_dtype = false;
  row.function = [=](const Tensors& x) { return Tensors{embedding(x[0], x[1], padding)}; };
  row.reference = [](const Arrays& x) {
    Dims sizes = x[1].sizes;
    sizes.push_back(x[0].sizes[1]);
    return Arrays{generate(sizes, [&](const Dims& y) {
      Dims at;
      for (int d = 0; d + 1 < y.size(); ++d) {
        at.push_back(y[d]);
      }
      return x[0].at({whole(x[1].at(at)), y.back()});
    })};
  };
  row.differentiable = !padding;  // by a rule that no difference of results shows
  row.errors = {fails("index out of range",
                      [] {
                        embedding(ones({5, 3}), index_of({0, 5}, {2}));
                      }),
                fails("negative index",
                      [] {
                        embedding(ones({5, 3}), index_of({-1}, {1}));
                      }),
                fails("float index",
                      [] {
                        embedding(ones({5, 3}), ones({2}));
                      }),
                fails("weight of one dim", [] { embedding(ones({5}), index_of({0}, {1})); }),
                fails("padding out of range",
                      [] {
                        embedding(ones({5, 3}), index_of({0}, {1}), 5);
                      }),
                fails("undefined operand", [] { embedding(Tensor(), index_of({0}, {1})); })};
  return row;
}

OpRow one_hot_row(int64_t classes) {
  OpRow row = index_row("one_hot", text(classes, " classes"), {{{5}}, {{2, 3}}, {{}}, {{70}}},
                        {indices(3)});
  row.timed = {{int64_t{1} << 18}};
  row.function = [=](const Tensors& x) { return Tensors{one_hot(x[0], classes)}; };
  row.reference = [=](const Arrays& x) {
    const double most = *std::max_element(x[0].values.begin(), x[0].values.end());
    Dims sizes = x[0].sizes;
    sizes.push_back(classes == -1 ? whole(most) + 1 : classes);
    return Arrays{generate(sizes, [&](const Dims& y) {
      Dims at;
      for (int d = 0; d + 1 < y.size(); ++d) {
        at.push_back(y[d]);
      }
      return double(whole(x[0].at(at)) == y.back());
    })};
  };
  row.output_dtype = DType::i64;
  row.many_zeros = true;
  row.differentiable = false;
  row.errors = {fails("class out of range",
                      [] {
                        one_hot(index_of({0, 4}, {2}), 4);
                      }),
                fails("negative class", [] { one_hot(index_of({-1}, {1}), 4); }),
                fails("no classes", [] { one_hot(index_of({0}, {1}), 0); }),
                fails("nothing to count", [] { one_hot(index_of({}, {0})); }),
                fails("float index", [] { one_hot(ones({2}), 4); }),
                fails("undefined operand", [] { one_hot(Tensor(), 4); })};
  return row;
}

}  // namespace

std::vector<OpRow> index_rows() {
  return {index_select_row(0), index_select_row(1),  gather_row(),        scatter_add_row(),
          scatter_row(),       scatter_number_row(), masked_select_row(), embedding_row({}),
          embedding_row(1),    embedding_row(-1),    one_hot_row(4),      one_hot_row(-1)};
}

}  // namespace binade::op_table
