// Rows of variance, norms, products, logsumexp, amax and amin, any and all.
#include <tests/op_table/op_table.h>

#include <binade/core/ops/reduce.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::op_table {
namespace {

using Values = std::vector<double>;
using Statistic = std::function<double(const Values&)>;
using Reduction = std::function<Tensor(const Tensor&, const Dims&, bool)>;

// Applies f to the elements of each result.
Array reduced(const Array& x, const Dims& dims, bool keepdim, const Statistic& f) {
  std::vector<bool> gone(size_t(x.dim()), dims.empty());
  for (int64_t dim : dims) {
    gone[size_t(dim < 0 ? dim + x.dim() : dim)] = true;
  }
  Dims kept, sizes;
  for (int i = 0; i < x.dim(); ++i) {
    kept.push_back(gone[size_t(i)] ? 1 : x.sizes[i]);
    if (!gone[size_t(i)] || keepdim) {
      sizes.push_back(kept[i]);
    }
  }
  std::vector<Values> groups(size_t(element_count(kept)));
  for_each(x.sizes, [&](const Dims& index) {
    int64_t flat = 0;
    for (int i = 0; i < x.dim(); ++i) {
      flat = flat * kept[i] + (kept[i] == 1 ? 0 : index[i]);
    }
    groups[size_t(flat)].push_back(x.at(index));
  });
  Array y{sizes, {}};
  for (const Values& group : groups) {
    y.values.push_back(f(group));
  }
  return y;
}

double sum_of(const Values& x, const std::function<double(double)>& f) {
  double sum = 0;
  for (double v : x) {
    sum += f(v);
  }
  return sum;
}

double variance(const Values& x, bool unbiased) {
  const double n = double(x.size()), mean = sum_of(x, [](double v) { return v; }) / n;
  return sum_of(x, [mean](double v) { return (v - mean) * (v - mean); }) / (n - unbiased);
}

double norm_of(const Values& x, double p) {
  double largest = 0, least = std::numeric_limits<double>::infinity(), nonzero = 0;
  for (double v : x) {
    largest = std::max(largest, std::fabs(v));
    least = std::min(least, std::fabs(v));
    nonzero += v != 0;
  }
  if (p == 0 || std::isinf(p)) {
    return p == 0 ? nonzero : p > 0 ? largest : least;
  }
  return std::pow(sum_of(x, [p](double v) { return std::pow(std::fabs(v), p); }), 1 / p);
}

struct Case {
  Dims dims;
  bool keepdim;
  std::vector<Shapes> shapes;
};

struct Family {
  std::string name, attributes;
  Reduction op;
  Statistic reference;
  Accuracy accuracy = Accuracy::sums;
  Domain domain = {};
};

std::vector<ErrorCase> bad_dims(const Reduction& op) {
  return {{"dim out of range",
           [op] {
             op(ones({3, 4}), {2}, false);
           }},
          {"repeated dim",
           [op] {
             op(ones({3, 4}), {0, -2}, true);
           }},
          {"undefined operand", [op] { op(Tensor(), {}, false); }}};
}

void append(std::vector<OpRow>& rows, const Family& family, const std::vector<Case>& cases) {
  for (const auto& [dims, keepdim, shapes] : cases) {
    OpRow row;
    row.name = family.name;
    row.attributes = text(family.attributes, " dims ", dims, keepdim ? " keepdim" : "");
    row.shapes = shapes;
    row.domains = {family.domain};
    row.function = [op = family.op, dims = dims, keepdim = keepdim](const Tensors& x) {
      return Tensors{op(x[0], dims, keepdim)};
    };
    row.reference = [f = family.reference, dims = dims, keepdim = keepdim](const Arrays& x) {
      return Arrays{reduced(x[0], dims, keepdim, f)};
    };
    row.accuracy = family.accuracy;
    row.large = shapes[0][0].size() <= 2 ? Shapes{{257, 301}} : Shapes{{16, 9, 21, 23}};
    row.timed = shapes[0][0].size() <= 2 ? Shapes{{1024, 1024}} : Shapes{{32, 32, 32, 32}};
    row.errors = bad_dims(family.op);
    rows.push_back(row);
  }
}

const std::vector<Case>& plain_cases() {
  static const std::vector<Case> cases = {
      {{}, false, {{{4, 6}}, {{}}, {{7}}, {{1, 5, 1}}, {{2, 1, 3, 2, 2}}, {{33}}}},
      {{0}, false, {{{5, 6}}, {{2, 3, 4}}, {{3, 1}}, {{3, 0}}}},
      {{-1}, true, {{{5, 6}}, {{2, 3, 4}}, {{1, 4, 1}}, {{2, 3, 2, 2}}}},
      {{2, 3}, false, {{{2, 3, 4, 2}}, {{1, 1, 1, 1}}}},
      {{0, 2, 3}, true, {{{2, 3, 4, 2}}}}};
  return cases;
}

void append_spreads(std::vector<OpRow>& rows) {
  // No layout makes a line of these constant, since there std has no derivative.
  const std::vector<Case> cases = {{{}, false, {{{4, 6}}, {{2, 3, 2, 2}}, {{2, 1, 3, 2, 2}}}},
                                   {{1}, true, {{{2, 5, 3}}, {{3, 9, 2, 2}}}},
                                   {{0, 1}, false, {{{4, 3, 2}}, {{2, 3, 2, 2}}}}};
  for (bool unbiased : {true, false}) {
    const auto type = text(unbiased ? "unbiased" : "biased");
    const Family var_of = {
        "var", type,
        [=](const Tensor& x, const Dims& d, bool keep) { return var(x, d, unbiased, keep); },
        [=](const Values& x) { return variance(x, unbiased); }};
    const Family std_of = {"std", type,
                           [=](const Tensor& x, const Dims& d, bool keep) {
                             return binade::std(x, d, unbiased, keep);
                           },
                           [=](const Values& x) { return std::sqrt(variance(x, unbiased)); }};
    append(rows, var_of, cases);
    append(rows, std_of, cases);
  }
  rows.back().errors.push_back(
      {"integer operand", [] { binade::std(zeros({3}, DType::i64), {}); }});
}

void append_norms(std::vector<OpRow>& rows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (double p : {1.0, 2.0, kInfinity, 0.0, 0.5, 3.0, -1.0, -kInfinity}) {
    const Family family = {
        "norm",
        text("p ", p),
        [p](const Tensor& x, const Dims& d, bool keep) { return norm(x, p, d, keep); },
        [p](const Values& x) { return norm_of(x, p); },
        Accuracy::sums,
        Domain{.avoid = {0}, .gap = 0.1}};
    append(rows, family, plain_cases());
  }
  for (double p : {kInfinity, -kInfinity, -1.0}) {
    rows.back().errors.push_back({text("nothing, p ", p), [p] { norm(zeros({0, 3}), p, {0}); }});
  }
  rows.back().errors.push_back({"p = nan", [] { norm(ones({3}), std::nan("")); }});
  rows.back().errors.push_back({"integer operand", [] { norm(zeros({3}, DType::i64)); }});
}

void append_products(std::vector<OpRow>& rows) {
  const auto product = [](const Values& x) {
    double y = 1;
    for (double v : x) {
      y *= v;
    }
    return y;
  };
  Family family = {"prod",
                   "",
                   [](const Tensor& x, const Dims& d, bool keep) { return prod(x, d, keep); },
                   product,
                   Accuracy::sums,
                   Domain{.low = 0.6, .high = 1.4}};
  append(rows, family, plain_cases());
  family.attributes = "with zeros";
  family.domain = {.low = -2, .high = 2, .whole = true};
  append(rows, family, {{{1}, false, {{{6, 3}}, {{4, 3, 2}}, {{5, 1}}}}});
  rows.back().many_zeros = true;
  rows.back().errors.push_back({"bool operand", [] { prod(zeros({3}, DType::boolean)); }});
  const Family lse = {
      "logsumexp", "",
      [](const Tensor& x, const Dims& d, bool keep) { return logsumexp(x, d, keep); },
      [](const Values& x) {
        const double top = *std::max_element(x.begin(), x.end());
        return top + std::log(sum_of(x, [top](double v) { return std::exp(v - top); }));
      }};
  append(rows, lse, plain_cases());
  rows.back().errors.push_back({"integer operand", [] { logsumexp(zeros({3}, DType::i64)); }});
}

void append_extremes(std::vector<OpRow>& rows) {
  for (bool smallest : {false, true}) {
    const auto pick = [smallest](const Values& x) {
      return smallest ? *std::min_element(x.begin(), x.end())
                      : *std::max_element(x.begin(), x.end());
    };
    const auto op = [smallest](const Tensor& x, const Dims& d, bool keep) {
      return smallest ? amin(x, d, keep) : amax(x, d, keep);
    };
    const Family family = {smallest ? "amin" : "amax", "", op, pick, Accuracy::exact,
                           Domain{.distinct = true}};
    append(rows, family, plain_cases());
    rows.back().errors.push_back({"nothing to reduce", [op] { op(zeros({0, 3}), {0}, false); }});
    const auto whole = [smallest](const Tensor& x, const Dims&, bool) {
      return smallest ? min(x) : max(x);
    };
    const Family all_of = {smallest ? "min" : "max", "all elements",          whole, pick,
                           Accuracy::exact,          Domain{.distinct = true}};
    append(rows, all_of, {{{}, false, {{{4, 6}}, {{}}, {{33}}, {{2, 3, 2, 2}}}}});
    rows.back().errors = {{"nothing to reduce",
                           [whole] {
                             whole(zeros({0, 3}), {}, false);
                           }},
                          {"undefined operand", [whole] { whole(Tensor(), {}, false); }}};
  }
}

// The values between 1 and 2, which have a fraction, stand for NaN.
bool is_gap(double v) { return v > 1 && v != std::floor(v); }
Tensor with_gaps(const Tensor& x) {
  return x.defined() && is_floating(x.dtype())
             ? masked_fill(x, logical_and(gt(x, 1), ne(x, floor(x))), NAN)
             : x;
}

void append_nan_reductions(std::vector<OpRow>& rows) {
  const auto total = [](const Values& x) {
    return sum_of(x, [](double v) { return is_gap(v) ? 0 : v; });
  };
  const Domain domain = {.avoid = {1}};
  const Family sums = {
      "nansum",
      "",
      [](const Tensor& x, const Dims& d, bool keep) { return nansum(with_gaps(x), d, keep); },
      total,
      Accuracy::sums,
      domain};
  append(rows, sums, plain_cases());
  rows.back().many_zeros = true;
  const Family means = {
      "nanmean",
      "",
      [](const Tensor& x, const Dims& d, bool keep) { return nanmean(with_gaps(x), d, keep); },
      [total](const Values& x) {
        return total(x) / double(x.size() - size_t(std::count_if(x.begin(), x.end(), is_gap)));
      },
      Accuracy::sums,
      domain};
  // No result is the mean of NaN alone, which has no numeric gradient.
  append(rows, means,
         {{{}, false, {{{4, 6}}, {{2, 3, 2, 2}}}},
          {{0, -1}, true, {{{5, 3, 6}}, {{7, 1, 9}}}},
          {{-1, 0}, false, {{{5, 3, 6}}}}});
  rows.back().errors.push_back({"integer operand", [] { nanmean(zeros({3}, DType::i64)); }});
}

void append_truths(std::vector<OpRow>& rows) {
  for (bool every : {false, true}) {
    const Family family = {every ? "all" : "any",
                           "",
                           [every](const Tensor& x, const Dims& d, bool keep) {
                             return every ? all(x, d, keep) : any(x, d, keep);
                           },
                           [every](const Values& x) {
                             const auto zeros = std::count(x.begin(), x.end(), 0.0);
                             return double(every ? zeros == 0 : zeros != int64_t(x.size()));
                           },
                           Accuracy::exact,
                           Domain{.low = -1.4, .high = 1.4, .whole = true}};
    const size_t first = rows.size();
    append(rows, family, plain_cases());
    for (size_t i = first; i < rows.size(); ++i) {
      rows[i].differentiable = false;
      rows[i].many_zeros = true;
      rows[i].any_dtype = true;
      rows[i].output_dtype = DType::boolean;
    }
    rows[first].shapes.push_back({{0, 3}});
  }
}

}  // namespace

std::vector<OpRow> statistics_rows() {
  std::vector<OpRow> rows;
  append_spreads(rows);
  append_norms(rows);
  append_products(rows);
  append_extremes(rows);
  append_truths(rows);
  append_nan_reductions(rows);
  return rows;
}

}  // namespace binade::op_table
