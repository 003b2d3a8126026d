// Rows of the ops along one dimension: max and min with indices, argmax and argmin, sort, topk,
// cumsum and cumprod.
#include <tests/op_table/op_table.h>

#include <binade/core/ops/sort.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace binade::op_table {
namespace {

using Line = std::vector<double>;
// Maps each line along a dimension to one sequence per output.
using LineFunction = std::function<std::vector<Line>(const Line&)>;

// Outputs with the dimension as long as the sequences are, or without it.
Arrays along(const Array& x_, int dim_, bool keepdim, const LineFunction& f) {
  const Array x = x_.dim() > 0 ? x_ : Array{{1}, x_.values};
  const int dim = dim_ < 0 ? dim_ + x.dim() : dim_;
  Arrays outputs;
  for (const Line& result : f(Line(size_t(x.sizes[dim]), 0.0))) {
    Dims sizes = x.sizes;
    sizes[dim] = int64_t(result.size());
    outputs.push_back(generate(sizes, [](const Dims&) { return 0.0; }));
  }
  Dims first = x.sizes;
  first[dim] = 1;
  for_each(first, [&](const Dims& start) {
    Line line;
    for (Dims at = start; at[dim] < x.sizes[dim]; ++at[dim]) {
      line.push_back(x.at(at));
    }
    const std::vector<Line> results = f(line);
    for (size_t k = 0; k < results.size(); ++k) {
      Array& y = outputs[k];
      for (Dims at = start; at[dim] < y.sizes[dim]; ++at[dim]) {
        int64_t flat = 0;
        for (int d = 0; d < y.dim(); ++d) {
          flat = flat * y.sizes[d] + at[d];
        }
        y.values[size_t(flat)] = results[k][size_t(at[dim])];
      }
    }
  });
  for (Array& y : outputs) {
    Dims sizes;
    for (int d = 0; d < x.dim(); ++d) {
      if (x_.dim() > 0 && (keepdim || d != dim)) {
        sizes.push_back(y.sizes[d]);
      }
    }
    y.sizes = sizes;
  }
  return outputs;
}

// The first k elements of a stably sorted line, and their indices.
std::vector<Line> sorted(const Line& line, size_t k, bool descending) {
  std::vector<size_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return descending ? line[a] > line[b] : line[a] < line[b];
  });
  std::vector<Line> results(2);
  for (size_t i = 0; i < k; ++i) {
    results[0].push_back(line[order[i]]);
    results[1].push_back(double(order[i]));
  }
  return results;
}

using DimOp = std::function<Tensors(const Tensor&, int)>;

OpRow line_row(const std::string& name, const std::string& attributes, int dim, bool keepdim,
               const DimOp& op, const LineFunction& reference) {
  OpRow row;
  row.name = name;
  row.attributes = text(attributes, " dim ", dim);
  row.shapes = dim == 1 ? std::vector<Shapes>{{{2, 9, 2, 2}}, {{4, 6}}, {{3, 1}}}
                        : std::vector<Shapes>{{{5, 6}}, {{7}}, {{33}}, {{2, 1, 3, 2, 2}}, {{}}};
  row.domains = {{.distinct = true}};
  row.function = [=](const Tensors& x) { return op(x[0], dim); };
  row.reference = [=](const Arrays& x) { return along(x[0], dim, keepdim, reference); };
  row.outputs_with_gradient = 1;
  row.many_zeros = true;
  row.large = {{257, 301}};
  row.timed = {{1024, 1024}};
  row.errors = {{"dim out of range",
                 [op] {
                   op(ones({3, 4}), 2);
                 }},
                {"negative dim out of range",
                 [op] {
                   op(ones({3, 4}), -3);
                 }},
                {"undefined operand", [op] { op(Tensor(), 0); }}};
  return row;
}

void append_extremes(std::vector<OpRow>& rows, bool smallest) {
  const LineFunction first = [=](const Line& line) { return sorted(line, 1, !smallest); };
  const LineFunction index = [=](const Line& line) {
    return std::vector<Line>{sorted(line, 1, !smallest)[1]};
  };
  for (int dim : {-1, 0, 1}) {
    const bool keepdim = dim == 0;
    rows.push_back(line_row(
        smallest ? "min" : "max", keepdim ? "keepdim" : "", dim, keepdim,
        [=](const Tensor& x, int d) {
          const ValuesIndices y = smallest ? min(x, d, keepdim) : max(x, d, keepdim);
          return Tensors{y.values, y.indices};
        },
        first));
    rows.push_back(line_row(
        smallest ? "argmin" : "argmax", keepdim ? "keepdim" : "", dim, keepdim,
        [=](const Tensor& x, int d) {
          return Tensors{smallest ? argmin(x, d, keepdim) : argmax(x, d, keepdim)};
        },
        index));
    rows.back().differentiable = false;
    rows.back().output_dtype = DType::i64;
    for (size_t i = rows.size() - 2; i < rows.size(); ++i) {
      rows[i].errors.push_back(
          {"nothing to reduce", [op = rows[i].function, dim] {
             op({zeros(dim == 1 ? Dims{3, 0} : dim == 0 ? Dims{0, 3} : Dims{3, 0})});
           }});
    }
  }
  rows.push_back(rows.back());  // of all elements
  OpRow& row = rows.back();
  row.attributes = "all elements";
  row.shapes = {{{4, 6}}, {{}}, {{33}}, {{2, 3, 2, 2}}};
  row.function = [=](const Tensors& x) { return Tensors{smallest ? argmin(x[0]) : argmax(x[0])}; };
  row.reference = [=](const Arrays& x) {
    return along({{x[0].numel()}, x[0].values}, 0, false, index);
  };
  row.errors = {{"nothing to reduce", [=] { smallest ? argmin(zeros({0})) : argmax(zeros({0})); }}};
}

void append_sorts(std::vector<OpRow>& rows) {
  for (bool descending : {false, true}) {
    for (int dim : {-1, 0, 1}) {
      rows.push_back(line_row(
          "sort", descending ? "descending" : "", dim, true,
          [=](const Tensor& x, int d) {
            const ValuesIndices y = sort(x, d, descending);
            return Tensors{y.values, y.indices};
          },
          [=](const Line& line) { return sorted(line, line.size(), descending); }));
      rows.back().shapes.push_back({{3, 0}});
      rows.back().any_dtype = true;
      rows.push_back(line_row(
          "topk", text("one", descending ? " largest" : ""), dim, true,
          [=](const Tensor& x, int d) {
            const ValuesIndices y = topk(x, 1, d, descending);
            return Tensors{y.values, y.indices};
          },
          [=](const Line& line) { return sorted(line, 1, descending); }));
    }
    rows.push_back(line_row(
        "topk", text("three", descending ? " largest" : ""), 1, true,
        [=](const Tensor& x, int d) {
          const ValuesIndices y = topk(x, 3, d, descending);
          return Tensors{y.values, y.indices};
        },
        [=](const Line& line) { return sorted(line, 3, descending); }));
    rows.back().shapes = {{{5, 6}}, {{2, 3, 2}}, {{3, 33}}};
    rows.back().errors.push_back({"k above the size", [] { topk(ones({3, 4}), 5, 1); }});
    rows.back().errors.push_back({"negative k", [] { topk(ones({3, 4}), -1, 1); }});
  }
}

// The lower of the two elements in the middle.
std::vector<Line> median_of(const Line& line) {
  const std::vector<Line> all = sorted(line, line.size(), false);
  const size_t middle = (line.size() - 1) / 2;
  return {{all[0][middle]}, {all[1][middle]}};
}

Line quantile_of(const Line& line, double q) {
  const Line values = sorted(line, line.size(), false)[0];
  const double place = q * double(line.size() - 1);
  const auto low = size_t(place);
  const double above = values[std::min(low + 1, line.size() - 1)];
  return {values[low] + (place - double(low)) * (above - values[low])};
}

void append_order_statistics(std::vector<OpRow>& rows) {
  for (int dim : {-1, 0, 1}) {
    rows.push_back(line_row(
        "argsort", "", dim, true, [](const Tensor& x, int d) { return Tensors{argsort(x, d)}; },
        [](const Line& line) { return std::vector<Line>{sorted(line, line.size(), false)[1]}; }));
    rows.back().differentiable = false;
    rows.back().output_dtype = DType::i64;
    rows.back().any_dtype = true;
    rows.push_back(line_row(
        "median", dim == 0 ? "keepdim" : "", dim, dim == 0,
        [=](const Tensor& x, int d) {
          const ValuesIndices y = median(x, d, dim == 0);
          return Tensors{y.values, y.indices};
        },
        median_of));
    rows.back().any_dtype = true;
    rows.push_back(line_row(
        "quantile", dim == 0 ? "keepdim" : "", dim, dim == 0,
        [=](const Tensor& x, int d) { return Tensors{quantile(x, 0.3, d, dim == 0)}; },
        [](const Line& line) { return std::vector<Line>{quantile_of(line, 0.3)}; }));
    rows.back().number = true;
    rows.back().accuracy = Accuracy::sums;
    rows.back().errors.push_back({"q above 1", [=] { quantile(ones({3, 3}), 1.5, dim); }});
    for (size_t i = rows.size() - 2; i < rows.size(); ++i) {
      rows[i].errors.push_back({"nothing to choose from", [op = rows[i].function, dim] {
                                  op({zeros(dim == 0 ? Dims{0, 3} : Dims{3, 0})});
                                }});
    }
    rows.push_back(line_row(
        "diff", "twice", dim, true, [](const Tensor& x, int d) { return Tensors{diff(x, 2, d)}; },
        [](const Line& line) {
          Line y;
          for (size_t i = 2; i < line.size(); ++i) {
            y.push_back(line[i] - 2 * line[i - 1] + line[i - 2]);
          }
          return std::vector<Line>{y};
        }));
    rows.back().shapes = dim == 1 ? std::vector<Shapes>{{{2, 9, 2, 2}}, {{4, 6}}, {{3, 1}}}
                                  : std::vector<Shapes>{{{5, 6}}, {{7}}, {{2, 1}}};
    rows.back().errors.push_back({"negative n", [=] { diff(ones({3, 3}), -1, dim); }});
  }
  const Line at = {0.25, 1};
  rows.push_back(rows[rows.size() - 2]);
  OpRow& row = rows.back();
  row.number = false;
  row.attributes = "two quantiles of all elements";
  row.shapes = {{{4, 6}}, {{}}, {{7}}};
  row.function = [=](const Tensors& x) {
    return Tensors{quantile(x[0], from_values(at, {2}, DType::f64))};
  };
  row.reference = [=](const Arrays& x) {
    return Arrays{{{2}, {quantile_of(x[0].values, at[0])[0], quantile_of(x[0].values, at[1])[0]}}};
  };
  row.errors = {{"q below 0", [] { quantile(ones({3}), from_values({-0.5}, {1})); }},
                {"q of two dimensions",
                 [] {
                   quantile(ones({3}), ones({1, 1}));
                 }},
                {"undefined operand", [] { quantile(Tensor(), ones({1})); }}};
}

void append_cumsums(std::vector<OpRow>& rows) {
  for (int dim : {-1, 0, 1}) {
    rows.push_back(line_row(
        "cumsum", "", dim, true, [](const Tensor& x, int d) { return Tensors{cumsum(x, d)}; },
        [](const Line& line) {
          std::vector<Line> y = {line};
          std::partial_sum(line.begin(), line.end(), y[0].begin());
          return y;
        }));
    rows.back().domains = {{}};
    rows.back().accuracy = Accuracy::sums;
    rows.back().shapes.push_back({{3, 0}});
  }
}

void append_cumprods(std::vector<OpRow>& rows) {
  for (int dim : {-1, 0, 1}) {
    for (const Domain& domain : {Domain{}, Domain{.low = -1.5, .high = 1.5, .whole = true}}) {
      rows.push_back(line_row(
          "cumprod", domain.whole ? "with zeros" : "", dim, true,
          [](const Tensor& x, int d) { return Tensors{cumprod(x, d)}; },
          [](const Line& line) {
            std::vector<Line> y = {line};
            std::partial_sum(line.begin(), line.end(), y[0].begin(), std::multiplies<>());
            return y;
          }));
      rows.back().domains = {domain};
      rows.back().accuracy = Accuracy::sums;
      rows.back().shapes.push_back({{3, 0}});
      rows.back().errors.push_back({"bool operand", [=] {
                                      cumprod(zeros({3, 3}, DType::boolean), dim);
                                    }});
    }
  }
}

// The largest or smallest of the elements so far and its index: of equal ones the last.
std::vector<Line> running_extreme(const Line& line, bool smallest) {
  std::vector<Line> y(2);
  for (size_t i = 0; i < line.size(); ++i) {
    const size_t best = i == 0 ? 0 : size_t(y[1].back());
    const size_t at = (smallest ? line[i] <= line[best] : line[i] >= line[best]) ? i : best;
    y[0].push_back(line[at]);
    y[1].push_back(double(at));
  }
  return y;
}

Line running_log_sum(const Line& line) {
  Line y;
  double largest = -INFINITY, sum = 0;
  for (double x : line) {
    const double top = std::max(largest, x);
    sum = (largest == top ? sum : sum * std::exp(largest - top)) + std::exp(x - top);
    largest = top;
    y.push_back(top + std::log(sum));
  }
  return y;
}

void append_log_sums(std::vector<OpRow>& rows) {
  for (int dim : {-1, 0, 1}) {
    for (double high : {2.0, 60.0}) {
      rows.push_back(line_row(
          "logcumsumexp", high > 2 ? "wide" : "", dim, true,
          [](const Tensor& x, int d) { return Tensors{logcumsumexp(x, d)}; },
          [](const Line& line) { return std::vector<Line>{running_log_sum(line)}; }));
      OpRow& row = rows.back();
      row.domains = {{.low = -high, .high = high}};
      row.accuracy = Accuracy::sums;
      row.shapes.push_back({{3, 0}});
      row.errors.push_back({"integers", [=] { logcumsumexp(zeros({3, 3}, DType::i64), dim); }});
    }
  }
}

void append_running_extremes(std::vector<OpRow>& rows) {
  for (bool smallest : {false, true}) {
    for (int dim : {-1, 0, 1}) {
      for (const bool ties : {false, true}) {
        rows.push_back(line_row(
            smallest ? "cummin" : "cummax", ties ? "with ties" : "", dim, true,
            [=](const Tensor& x, int d) {
              const ValuesIndices y = smallest ? cummin(x, d) : cummax(x, d);
              return Tensors{y.values, y.indices};
            },
            [=](const Line& line) { return running_extreme(line, smallest); }));
        OpRow& row = rows.back();
        row.any_dtype = true;
        row.shapes.push_back({{3, 0}});
        if (ties) {
          row.domains = {{.low = -1.5, .high = 1.5, .whole = true}};
          row.differentiable = false;
        }
      }
    }
  }
}

}  // namespace

std::vector<OpRow> sort_rows() {
  std::vector<OpRow> rows;
  append_extremes(rows, false);
  append_extremes(rows, true);
  append_sorts(rows);
  append_order_statistics(rows);
  append_cumsums(rows);
  append_cumprods(rows);
  append_log_sums(rows);
  append_running_extremes(rows);
  return rows;
}

}  // namespace binade::op_table
