// Rows of the reductions and softmax.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::op_table {
namespace {

int wrap(int64_t dim, int rank) { return static_cast<int>(dim < 0 ? dim + rank : dim); }

std::vector<bool> reduced_dims(const Dims& dims, int rank) {
  std::vector<bool> reduced(static_cast<size_t>(rank), dims.empty());
  for (int64_t dim : dims) {
    reduced[static_cast<size_t>(wrap(dim, rank))] = true;
  }
  return reduced;
}

// Sums over dims (empty: all), times scale(count).
Array sum_of(const Array& x, const Dims& dims, bool keepdim, bool mean) {
  const std::vector<bool> reduced = reduced_dims(dims, x.dim());
  Dims kept, sizes;
  int64_t count = 1;
  for (int i = 0; i < x.dim(); ++i) {
    const bool gone = reduced[static_cast<size_t>(i)];
    count *= gone ? x.sizes[i] : 1;
    kept.push_back(gone ? 1 : x.sizes[i]);
    if (!gone || keepdim) {
      sizes.push_back(gone ? 1 : x.sizes[i]);
    }
  }
  Array y = generate(kept, [](const Dims&) { return 0.0; });
  for_each(x.sizes, [&](const Dims& index) {
    int64_t flat = 0;
    for (int i = 0; i < x.dim(); ++i) {
      flat = flat * kept[i] + (kept[i] == 1 ? 0 : index[i]);
    }
    y.values[static_cast<size_t>(flat)] += x.at(index);
  });
  y.sizes = sizes;
  return mean ? map(y, [count](double v) { return v / double(count); }) : y;
}

using Sum = Tensor (*)(const Tensor&, const Dims&, bool);

OpRow sum_row(const char* name, Sum op, bool mean, const Dims& dims, bool keepdim,
              const std::vector<Shapes>& shapes) {
  OpRow row;
  row.name = name;
  row.attributes = text("dims ", dims, keepdim ? " keepdim" : "");
  row.shapes = shapes;
  row.function = [=](const Tensors& x) { return Tensors{op(x[0], dims, keepdim)}; };
  row.reference = [=](const Arrays& x) { return Arrays{sum_of(x[0], dims, keepdim, mean)}; };
  row.accuracy = Accuracy::sums;
  row.large = shapes[0][0].size() == 2 ? Shapes{{257, 301}} : Shapes{{16, 9, 21, 23}};
  row.timed = shapes[0][0].size() == 2 ? Shapes{{1024, 1024}} : Shapes{{32, 32, 32, 32}};
  row.errors = {
      {"dim out of range",
       [op] {
         op(ones({3, 4}), {2}, false);
       }},
      {"negative dim out of range",
       [op] {
         op(ones({3, 4}), {-3}, false);
       }},
      {"repeated dim",
       [op] {
         op(ones({3, 4}), {0, -2}, false);
       }},
      {"undefined operand", [op] { op(Tensor(), {}, false); }},
  };
  if (mean) {
    row.errors.push_back({"integer operand", [op] { op(zeros({3}, DType::i64), {}, false); }});
  }
  return row;
}

Array softmax_of(const Array& x, int64_t dim_, bool logarithm) {
  if (x.dim() == 0) {
    return Array{{}, {logarithm ? 0.0 : 1.0}};
  }
  const int dim = wrap(dim_, x.dim());
  return generate(x.sizes, [&](const Dims& index) {
    Dims at = index;
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    for (at[dim] = 0; at[dim] < x.sizes[dim]; ++at[dim]) {
      top = std::max(top, x.at(at));
    }
    for (at[dim] = 0; at[dim] < x.sizes[dim]; ++at[dim]) {
      total += std::exp(x.at(at) - top);
    }
    const double z = x.at(index) - top - std::log(total);
    return logarithm ? z : std::exp(z);
  });
}

using Softmax = Tensor (*)(const Tensor&, int);

OpRow softmax_row(const char* name, Softmax op, bool logarithm, int dim,
                  const std::vector<Shapes>& shapes, const Shapes& large) {
  OpRow row;
  row.name = name;
  row.attributes = text("dim ", dim);
  row.shapes = shapes;
  row.function = [=](const Tensors& x) { return Tensors{op(x[0], dim)}; };
  row.reference = [=](const Arrays& x) { return Arrays{softmax_of(x[0], dim, logarithm)}; };
  row.accuracy = Accuracy::sums;
  row.large = large;
  row.timed = shapes[0][0].size() <= 2 ? Shapes{{1024, 1024}} : lengthened(large);
  row.errors = {
      {"dim out of range",
       [op] {
         op(ones({3, 4}), 2);
       }},
      {"negative dim out of range",
       [op] {
         op(ones({3, 4}), -3);
       }},
      {"integer operand",
       [op] {
         op(zeros({3, 4}, DType::i64), 1);
       }},
      {"undefined operand", [op] { op(Tensor(), 0); }},
  };
  return row;
}

Array argmax_of(const Array& x, int64_t dim_) {
  const int dim = wrap(dim_, x.dim());
  Dims sizes;
  for (int i = 0; i < x.dim(); ++i) {
    if (i != dim) {
      sizes.push_back(x.sizes[i]);
    }
  }
  return generate(sizes, [&](const Dims& index) {
    Dims at;
    for (int i = 0, j = 0; i < x.dim(); ++i) {
      at.push_back(i == dim ? 0 : index[j++]);
    }
    int64_t best = 0;
    double top = x.at(at);
    for (at[dim] = 1; at[dim] < x.sizes[dim]; ++at[dim]) {
      if (x.at(at) > top) {
        top = x.at(at);
        best = at[dim];
      }
    }
    return static_cast<double>(best);
  });
}

OpRow argmax_row(int dim, const std::vector<Shapes>& shapes) {
  OpRow row;
  row.name = "argmax";
  row.attributes = text("dim ", dim);
  row.shapes = shapes;
  row.domains = {{.low = -3, .high = 3, .whole = true}};
  row.function = [dim](const Tensors& x) { return Tensors{argmax(x[0], dim)}; };
  row.reference = [dim](const Arrays& x) { return Arrays{argmax_of(x[0], dim)}; };
  row.differentiable = false;
  row.many_zeros = true;
  row.output_dtype = DType::i64;
  row.large = {{257, 301}};
  row.timed = {{1024, 1024}};
  row.errors = {
      {"dim out of range",
       [] {
         argmax(ones({3, 4}), 2);
       }},
      {"empty reduction",
       [] {
         argmax(ones({0, 3}), 0);
       }},
      {"undefined operand", [] { argmax(Tensor(), 0); }},
  };
  return row;
}

}  // namespace

std::vector<OpRow> reduce_rows() {
  const std::vector<Shapes> any = {{{4, 6}},          {{}},   {{1}},         {{7}}, {{1, 5, 1}},
                                   {{2, 1, 3, 2, 2}}, {{33}}, {{2, 3, 2, 2}}};
  const std::vector<Shapes> with_empty = {{{4, 6}},          {{}},   {{7}},    {{1, 5, 1}},
                                          {{2, 1, 3, 2, 2}}, {{33}}, {{0, 3}}, {{0}},
                                          {{2, 3, 2, 2}}};
  const std::vector<Shapes> matrices = {{{5, 6}},          {{2, 3, 4}}, {{1, 4, 1}},
                                        {{2, 1, 3, 2, 2}}, {{3, 1}},    {{2, 3, 2, 2}}};
  const std::vector<Shapes> images = {{{2, 3, 4, 2}}, {{1, 1, 1, 1}}, {{2, 0, 3, 2}}};
  std::vector<OpRow> rows;
  for (bool mean : {false, true}) {
    const char* name = mean ? "mean" : "sum";
    const Sum op = mean ? Sum(binade::mean) : Sum(sum);
    rows.push_back(sum_row(name, op, mean, {}, false, mean ? any : with_empty));
    rows.push_back(sum_row(name, op, mean, {}, true, any));
    rows.push_back(sum_row(name, op, mean, {0}, false, matrices));
    rows.push_back(sum_row(name, op, mean, {-1}, false, matrices));
    rows.push_back(sum_row(name, op, mean, {-1}, true, matrices));
    rows.push_back(sum_row(name, op, mean, {2, 3}, false, images));
    rows.push_back(sum_row(name, op, mean, {0, 2, 3}, true, {{{2, 3, 4, 2}}, {{1, 1, 1, 1}}}));
  }
  const std::vector<Shapes> lines = {{{4, 6}},          {{1}},    {{7}},    {{1, 5, 1}},
                                     {{2, 1, 3, 2, 2}}, {{33}},   {{0, 3}}, {{2, 0}},
                                     {{2, 3, 2, 2}},    {{5, 1}}, {{40, 3}}};
  rows.push_back(softmax_row("softmax", softmax, false, -1, lines, {{61, 1025}}));
  rows.push_back(softmax_row("softmax", softmax, false, 0, lines, {{61, 1025}}));
  rows.push_back(softmax_row("softmax", softmax, false, 1, images, {{16, 9, 21, 23}}));
  rows.push_back(softmax_row("log_softmax", log_softmax, true, -1, lines, {{61, 1025}}));
  rows.push_back(softmax_row("log_softmax", log_softmax, true, 0, lines, {{61, 1025}}));
  rows.push_back(softmax_row("log_softmax", log_softmax, true, 1, images, {{16, 9, 21, 23}}));
  rows.push_back(argmax_row(-1, {{{4, 6}}, {{1}}, {{33}}, {{2, 1, 3, 2, 2}}, {{0, 3}}}));
  rows.push_back(argmax_row(0, {{{4, 6}}, {{7}}, {{2, 3, 2, 2}}, {{3, 0}}}));
  rows.push_back(argmax_row(1, {{{2, 9, 2, 2}}}));
  return rows;
}

}  // namespace binade::op_table
