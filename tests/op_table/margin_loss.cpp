// Rows of the losses that are made of other ops.
#include <tests/op_table/linalg_row.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace binade::op_table {
namespace {

Array reduced(const Array& each, Reduction reduction) {
  double sum = 0;
  for (double value : each.values) {
    sum += value;
  }
  return reduction == Reduction::none   ? each
         : reduction == Reduction::mean ? Array{{}, {sum / double(each.numel())}}
                                        : Array{{}, {sum}};
}

// Positive values stand for the target 1, others for -1.
Tensor signs(const Tensor& t) {
  return t.defined() ? add(mul(cast(gt(t, 0), DType::i64), 2), -1) : t;
}
double sign_of(double t) { return t > 0 ? 1 : -1; }
const Domain kSign = {.avoid = {0}, .fixed = true};

struct LossRow {
  std::string name, attributes;
  Reduction reduction;
  std::function<Tensor(const Tensors&)> op;
  std::function<Array(const Arrays&)> reference;  // of each element
  std::vector<Domain> domains;
  std::vector<Shapes> shapes;
  Shapes large, timed;
};

OpRow row_of(const LossRow& loss) {
  OpRow row;
  row.name = loss.name;
  row.attributes = loss.attributes;
  row.shapes = loss.shapes;
  row.domains = loss.domains;
  row.function = [op = loss.op](const Tensors& x) { return Tensors{op(x)}; };
  row.reference = [=](const Arrays& x) {
    return Arrays{reduced(loss.reference(x), loss.reduction)};
  };
  row.accuracy = Accuracy::sums;
  row.wide_output = true;
  row.many_zeros = true;
  row.large = loss.large;
  row.timed = loss.timed;
  return row;
}

std::vector<ErrorCase> common_errors(const std::function<void(const Tensor&, Reduction)>& op) {
  return {{"a reduction per sample",
           [op] {
             op(ones({3, 4}), Reduction::batch_mean);
           }},
          {"a reduction that is none",
           [op] {
             op(ones({3, 4}), static_cast<Reduction>(9));
           }},
          {"integer input",
           [op] {
             op(zeros({3, 4}, DType::i64), Reduction::mean);
           }},
          {"undefined input", [op] { op(Tensor(), Reduction::mean); }}};
}

// f of each row [D] of inputs that are all [N, D] or [D].
Array of_rows(const Arrays& x, const std::function<double(const std::vector<Dims>&)>& f) {
  const bool single = x[0].dim() == 1;
  return generate(single ? Dims{} : Dims{x[0].sizes[0]}, [&](const Dims& at) {
    std::vector<Dims> elements;
    for (int64_t d = 0; d < x[0].sizes.back(); ++d) {
      elements.push_back(single ? Dims{d} : Dims{at[0], d});
    }
    return f(elements);
  });
}

double distance(const Array& a, const Array& b, const std::vector<Dims>& elements, double p) {
  double sum = 0;
  for (const Dims& at : elements) {
    sum += std::pow(std::fabs(a.at(at) - b.at(at) + 0.25), p);
  }
  return std::pow(sum, 1 / p);
}

void add_triplets(std::vector<OpRow>& rows) {
  for (const auto& [name, p, swap] :
       {std::tuple("mean", 2.0, false), {"sum", 1.0, true}, {"none", 3.0, true}}) {
    const Reduction r = parse_reduction(name);
    const TripletMarginLossOptions options{r, 9, p, 0.25, swap};
    const Domain low = {.low = -3, .high = 0}, high = {.low = 1, .high = 3};
    rows.push_back(
        row_of({"triplet_margin_loss",
                text(name, " p ", p, swap ? " swap" : ""),
                r,
                [=](const Tensors& x) { return triplet_margin_loss(x[0], x[1], x[2], options); },
                [p = p, swap = swap](const Arrays& x) {
                  return of_rows(x, [&](const std::vector<Dims>& at) {
                    double away = distance(x[0], x[2], at, p);
                    away = swap ? std::min(away, distance(x[1], x[2], at, p)) : away;
                    return std::max(distance(x[0], x[1], at, p) - away + 9, 0.0);
                  });
                },
                {swap ? low : high, swap ? high : low, {.low = 4, .high = 6}},
                {{{3, 4}, {3, 4}, {3, 4}}, {{5}, {5}, {5}}, {{2, 1}, {2, 1}, {2, 1}}},
                {{33, 301}, {33, 301}, {33, 301}},
                {{512, 512}, {512, 512}, {512, 512}}}));
  }
  rows.back().errors = common_errors([](const Tensor& x, Reduction r) {
    triplet_margin_loss(x, ones({3, 4}), ones({3, 4}), {.reduction = r});
  });
  const Tensor x = ones({3, 4});
  const std::vector<ErrorCase> more = {
      {"no margin", [=] { triplet_margin_loss(x, x, x, {.margin = 0}); }},
      {"ranks that differ", [=] { triplet_margin_loss(x, x, ones({4})); }},
      {"lengths that differ", [=] {
         triplet_margin_loss(x, x, ones({3, 5}));
       }}};
  rows.back().errors.insert(rows.back().errors.end(), more.begin(), more.end());
}

void add_cosines(std::vector<OpRow>& rows) {
  for (const char* name : {"mean", "none"}) {
    const Reduction r = parse_reduction(name);
    const Domain positive = {.low = 0.5, .high = 2};
    rows.push_back(row_of(
        {"cosine_embedding_loss",
         name,
         r,
         [=](const Tensors& x) { return cosine_embedding_loss(x[0], x[1], signs(x[2]), 0.25, r); },
         [](const Arrays& x) {
           int64_t row = 0;
           return of_rows({x[0]}, [&](const std::vector<Dims>& elements) {
             double dot = 0, aa = 1e-12, bb = 1e-12;
             for (const Dims& at : elements) {
               const double a = x[0].at(at), b = x[1].at(at);
               dot += a * b;
               aa += a * a;
               bb += b * b;
             }
             const double cosine = dot / std::sqrt(aa * bb);
             return x[2].values[size_t(row++)] > 0 ? 1 - cosine : std::max(cosine - 0.25, 0.0);
           });
         },
         {positive, positive, kSign},
         {{{9, 4}, {9, 4}, {9}}, {{5}, {5}, {}}, {{2, 1}, {2, 1}, {2}}},
         {{33, 301}, {33, 301}, {33}},
         {{512, 512}, {512, 512}, {512}}}));
  }
  rows.back().errors = common_errors([](const Tensor& x, Reduction r) {
    cosine_embedding_loss(x, ones({3, 4}), ones({3}), 0, r);
  });
  const Tensor x = ones({3, 4});
  rows.back().errors.push_back({"a target per element", [=] { cosine_embedding_loss(x, x, x); }});
  rows.back().errors.push_back({"shapes that differ", [=] {
                                  cosine_embedding_loss(x, ones({3, 5}), ones({3}));
                                }});
}

using Value = std::function<double(double, double, double)>;

// f of the elements of two or three inputs that broadcast.
std::function<Array(const Arrays&)> each_of(const Value& f) {
  return [f](const Arrays& x) {
    Dims sizes = broadcast(x[0].sizes, x[1].sizes);
    sizes = x.size() > 2 ? broadcast(sizes, x[2].sizes) : sizes;
    return generate(sizes, [&](const Dims& i) {
      const auto at = [&](const Array& a) {
        return a.at(Dims(std::span(i.begin() + (i.size() - a.dim()), size_t(a.dim()))));
      };
      return f(at(x[0]), at(x[1]), x.size() > 2 ? at(x[2]) : 0);
    });
  };
}

// Away from the kinks at 0 and 1, and from that of margin 0.25 between two of them.
const Domain kWhole = {.low = -3, .high = 3, .whole = true};
const Domain kBetween = {.low = -3, .high = 3, .whole = true, .shift = 0.5};

void add_margins(std::vector<OpRow>& rows) {
  const Tensor x = ones({3, 4});
  for (const char* name : {"mean", "none"}) {
    const Reduction r = parse_reduction(name);
    rows.push_back(row_of(
        {"margin_ranking_loss",
         name,
         r,
         [=](const Tensors& x) { return margin_ranking_loss(x[0], x[1], signs(x[2]), 0.25, r); },
         each_of([](double a, double b, double t) {
           return std::max(-sign_of(t) * (a - b) + 0.25, 0.0);
         }),
         {kWhole, kBetween, kSign},
         {{{4, 9}, {4, 9}, {4, 9}}, {{}, {}, {}}, {{3, 1}, {4}, {3, 4}}},
         {{33, 301}, {33, 301}, {33, 301}},
         {{512, 512}, {512, 512}, {512, 512}}}));
  }
  rows.back().errors = common_errors([](const Tensor& x, Reduction r) {
    margin_ranking_loss(x, ones({3, 4}), ones({3, 4}), 0, r);
  });
  rows.back().errors.push_back(
      {"shapes that do not broadcast", [=] { margin_ranking_loss(x, x, ones({5})); }});
  for (const char* name : {"sum", "none"}) {
    const Reduction r = parse_reduction(name);
    rows.push_back(row_of(
        {"hinge_embedding_loss",
         name,
         r,
         [=](const Tensors& x) { return hinge_embedding_loss(x[0], signs(x[1]), 1, r); },
         each_of([](double x, double t, double) { return t > 0 ? x : std::max(1 - x, 0.0); }),
         {kBetween, kSign},
         {{{4, 9}, {4, 9}}, {{}, {}}, {{3, 1}, {4}}, {{0, 2}, {0, 2}}},
         {{33, 301}, {33, 301}},
         {{512, 512}, {512, 512}}}));
  }
  rows.back().errors = common_errors([](const Tensor& x, Reduction r) {
    hinge_embedding_loss(x, ones({3, 4}), 1, r);
  });
  rows.back().errors.push_back(
      {"shapes that do not broadcast", [=] { hinge_embedding_loss(x, ones({5})); }});
}

const double kHalfLogTwoPi = 0.5 * std::log(2 * std::numbers::pi);

void add_gaussians(std::vector<OpRow>& rows) {
  const Tensor x = ones({3, 4});
  for (const bool full : {false, true}) {
    const Reduction r = full ? Reduction::none : Reduction::mean;
    rows.push_back(row_of(
        {"gaussian_nll_loss",
         full ? "none full" : "mean",
         r,
         [=](const Tensors& x) {
           return gaussian_nll_loss(x[0], x[1], positive(x[2]), {.reduction = r, .full = full});
         },
         [=](const Arrays& x) {
           Array var = x[2];
           if (var.dim() < x[0].dim()) {
             var.sizes.push_back(1);
           }
           return each_of([=](double a, double t, double v) {
             return 0.5 * (std::log(v) + (a - t) * (a - t) / v) + (full ? kHalfLogTwoPi : 0);
           })({x[0], x[1], positive(var)});
         },
         {{}},
         {{{4, 9}, {4, 9}, {4, 9}}, {{}, {}, {}}, {{3, 4}, {4}, {3, 1}}, {{3, 4}, {3, 4}, {3}}},
         {{33, 301}, {33, 301}, {33, 301}},
         {{512, 512}, {512, 512}, {512, 512}}}));
  }
  rows.back().errors = common_errors([](const Tensor& x, Reduction r) {
    gaussian_nll_loss(x, ones({3, 4}), ones({3, 4}), {.reduction = r});
  });
  const std::vector<ErrorCase> more = {
      {"a negative variance", [=] { gaussian_nll_loss(x, x, neg(x)); }},
      {"a variance of other sizes", [=] { gaussian_nll_loss(x, x, ones({4})); }},
      {"no eps", [=] { gaussian_nll_loss(x, x, x, {.eps = 0}); }},
      {"shapes that do not broadcast", [=] { gaussian_nll_loss(x, ones({5}), x); }}};
  rows.back().errors.insert(rows.back().errors.end(), more.begin(), more.end());
}

void add_poissons(std::vector<OpRow>& rows) {
  for (const bool log : {true, false}) {
    const Reduction r = log ? Reduction::mean : Reduction::none;
    rows.push_back(
        row_of({"poisson_nll_loss",
                log ? "mean log" : "none full",
                r,
                [=](const Tensors& x) {
                  return poisson_nll_loss(
                      x[0], x[1], {.reduction = r, .log_input = log, .full = !log, .eps = 1e-3});
                },
                each_of([=](double x, double t, double) {
                  const double stirling = t * std::log(t) - t + 0.5 * std::log(t) + kHalfLogTwoPi;
                  return log     ? std::exp(x) - t * x
                         : t > 1 ? x - t * std::log(x + 1e-3) + stirling
                                 : x - t * std::log(x + 1e-3);
                }),
                {{.low = log ? -2 : 0.3}, {.low = 0.25, .high = 4, .avoid = {1}}},
                {{{4, 9}, {4, 9}}, {{}, {}}, {{3, 1}, {4}}},
                {{33, 301}, {33, 301}},
                {{512, 512}, {512, 512}}}));
  }
  rows.back().errors = common_errors([](const Tensor& x, Reduction r) {
    poisson_nll_loss(x, ones({3, 4}), {.reduction = r});
  });
  rows.back().errors.push_back(
      {"a negative eps", [] { poisson_nll_loss(ones({3}), ones({3}), {.eps = -1}); }});
  rows.back().errors.push_back(
      {"shapes that do not broadcast", [] { poisson_nll_loss(ones({3}), ones({4})); }});
}

}  // namespace

std::vector<OpRow> margin_loss_rows() {
  std::vector<OpRow> rows;
  add_triplets(rows);
  add_cosines(rows);
  add_margins(rows);
  add_gaussians(rows);
  add_poissons(rows);
  return rows;
}

}  // namespace binade::op_table
