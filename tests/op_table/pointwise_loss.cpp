// Rows of the losses that compare input and target element by element.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {
namespace {

using Value = std::function<double(double x, double t, double p)>;

Array reduced(const Array& each, Reduction reduction) {
  double sum = 0;
  for (double value : each.values) {
    sum += value;
  }
  switch (reduction) {
    case Reduction::none: return each;
    case Reduction::mean: return {{}, {sum / double(each.numel())}};
    case Reduction::batch_mean: return {{}, {sum / double(each.sizes[0])}};
    default: return {{}, {sum}};
  }
}

struct LossRow {
  std::string name, attributes;
  Reduction reduction;
  Value value;
  std::function<Tensor(const Tensor&, const Tensor&, const Tensor& weight, const Tensor& pos)> op;
  Domain x = {}, t = {};
  int weights = 0;  // inputs beside x and t: weight, pos_weight
  bool broadcasts = true;
};

OpRow row_of(const LossRow& loss) {
  OpRow row;
  row.name = loss.name;
  row.attributes = loss.attributes;
  std::vector<std::pair<Dims, Dims>> shapes = {
      {{4, 5}, {4, 5}}, {{1}, {1}}, {{2, 1, 3, 2, 2}, {2, 1, 3, 2, 2}}};
  if (loss.reduction != Reduction::batch_mean) {
    shapes.push_back({{}, {}});
  }
  if (loss.reduction == Reduction::none || loss.reduction == Reduction::sum) {
    shapes.push_back({{0, 3}, {0, 3}});
  }
  if (loss.broadcasts) {
    shapes.push_back({{3, 1}, {1, 4}});
    shapes.push_back({{2, 2, 3}, {3}});
  }
  shapes.push_back({{1033, 9}, {1033, 9}});
  for (const auto& [x, t] : shapes) {
    if (loss.weights > 0 && x.size() < 2) {
      continue;  // a weight of the input's sizes would be the input in some tests, but is fixed
    }
    Shapes all = {x, t};
    const int64_t cols = x.empty() ? 1 : x.back();
    if (loss.weights > 0) {
      all.push_back(x.empty() ? Dims{} : Dims{cols});
    }
    if (loss.weights > 1) {
      all.push_back(x);
    }
    row.shapes.push_back(all);
  }
  row.large = row.shapes.back();
  row.shapes.pop_back();
  row.timed = {{1024, 1024}, {1024, 1024}, {1024}, {1024, 1024}};
  row.timed.resize(row.large.size());
  const Domain weight = {.low = 0.5, .high = 2, .fixed = true};
  row.domains = {loss.x, loss.t, weight, weight};
  row.function = [loss](const Tensors& in) {
    return Tensors{loss.op(in[0], in[1], loss.weights > 0 ? in[2].detach() : Tensor(),
                           loss.weights > 1 ? in[3].detach() : Tensor())};
  };
  row.reference = [loss](const Arrays& in) {
    const Array each = generate(broadcast(in[0].sizes, in[1].sizes), [&](const Dims& i) {
      const auto at = [&](const Array& a) {
        return a.at(Dims(std::span(i.begin() + (i.size() - a.dim()), size_t(a.dim()))));
      };
      const double weight = loss.weights > 0 ? at(in[2]) : 1;
      return weight * loss.value(at(in[0]), at(in[1]), loss.weights > 1 ? at(in[3]) : 1);
    });
    return Arrays{reduced(each, loss.reduction)};
  };
  row.accuracy = Accuracy::sums;
  row.wide_output = true;
  return row;
}

double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

std::vector<ErrorCase> common_errors(const std::function<void(const Tensor&, const Tensor&)>& op) {
  return {
      {"shapes that do not broadcast", [op] { op(ones({3}), ones({4})); }},
      {"integer input", [op] { op(zeros({3}, DType::i64), ones({3})); }},
      {"integer target", [op] { op(ones({3}), zeros({3}, DType::i64)); }},
      {"undefined target", [op] { op(ones({3}), Tensor()); }},
      {"undefined input", [op] { op(Tensor(), ones({3})); }},
  };
}

// x is a multiple of 1, t of 1 plus 1/2, so that differences stay away from kinks at 0 and 1.
const Domain kWhole = {.low = -3, .high = 3, .whole = true};
const Domain kBetween = {.low = -3, .high = 3, .whole = true, .shift = 0.5};

void add_differences(std::vector<OpRow>& rows) {
  const auto names = {"mean", "sum", "none", "batchmean"};
  for (const char* name : names) {
    const Reduction r = parse_reduction(name);
    rows.push_back(
        row_of({"mse_loss", name, r, [](double x, double t, double) { return (x - t) * (x - t); },
                [r](const Tensor& x, const Tensor& t, const Tensor&, const Tensor&) {
                  return mse_loss(x, t, r);
                }}));
  }
  rows.back().errors = common_errors([](const Tensor& x, const Tensor& t) { mse_loss(x, t); });
  rows.back().errors.push_back({"a reduction that is none",
                                [] { mse_loss(ones({3}), ones({3}), static_cast<Reduction>(9)); }});
  rows.back().errors.push_back(
      {"samples of a scalar", [] { mse_loss(ones({}), ones({}), Reduction::batch_mean); }});
  for (const char* name : {"mean", "none"}) {
    const Reduction r = parse_reduction(name);
    rows.push_back(
        row_of({"l1_loss", name, r, [](double x, double t, double) { return std::fabs(x - t); },
                [r](const Tensor& x, const Tensor& t, const Tensor&, const Tensor&) {
                  return l1_loss(x, t, r);
                },
                kWhole, kBetween}));
  }
  rows.back().errors = common_errors([](const Tensor& x, const Tensor& t) { l1_loss(x, t); });
  for (const double beta : {1.0, 0.75, 0.0}) {
    const Reduction r = beta == 1 ? Reduction::mean : Reduction::none;
    rows.push_back(row_of({"smooth_l1_loss", text("beta ", beta), r,
                           [beta](double x, double t, double) {
                             const double d = std::fabs(x - t);
                             return d < beta ? d * d / (2 * beta) : d - beta / 2;
                           },
                           [r, beta](const Tensor& x, const Tensor& t, const Tensor&,
                                     const Tensor&) { return smooth_l1_loss(x, t, beta, r); },
                           kWhole, kBetween}));
  }
  rows.back().errors =
      common_errors([](const Tensor& x, const Tensor& t) { smooth_l1_loss(x, t); });
  rows.back().errors.push_back({"negative beta", [] { smooth_l1_loss(ones({3}), ones({3}), -1); }});
  for (const double delta : {1.0, 1.75}) {
    const Reduction r = delta == 1 ? Reduction::sum : Reduction::none;
    rows.push_back(row_of({"huber_loss", text("delta ", delta), r,
                           [delta](double x, double t, double) {
                             const double d = std::fabs(x - t);
                             return d <= delta ? d * d / 2 : delta * (d - delta / 2);
                           },
                           [r, delta](const Tensor& x, const Tensor& t, const Tensor&,
                                      const Tensor&) { return huber_loss(x, t, delta, r); },
                           kWhole, kBetween}));
  }
  rows.back().errors = common_errors([](const Tensor& x, const Tensor& t) { huber_loss(x, t); });
  rows.back().errors.push_back({"zero delta", [] { huber_loss(ones({3}), ones({3}), 0); }});
}

void add_entropies(std::vector<OpRow>& rows) {
  const Domain unit = {.low = 0.1, .high = 0.9};
  for (const int weights : {0, 1}) {
    const Reduction r = weights ? Reduction::none : Reduction::mean;
    rows.push_back(row_of(
        {"bce", weights ? "none weight" : "mean", r,
         [](double x, double t, double) { return -(t * std::log(x) + (1 - t) * std::log1p(-x)); },
         [r](const Tensor& x, const Tensor& t, const Tensor& w, const Tensor&) {
           return bce(x, t, {.reduction = r, .weight = w});
         },
         unit, unit, weights, false}));
  }
  const auto plain = [](const Tensor& x, const Tensor& t) { bce(x, t); };
  rows.back().errors = common_errors(plain);
  rows.back().errors.push_back({"input above one", [] { bce(full({3}, 1.5), ones({3})); }});
  rows.back().errors.push_back({"input below zero", [] { bce(full({3}, -0.5), ones({3})); }});
  rows.back().errors.push_back({"sizes that broadcast", [] { bce(ones({3, 1}), ones({3, 4})); }});
  rows.back().errors.push_back(
      {"weight size that differs", [] { bce(ones({3}), ones({3}), {.weight = ones({4})}); }});
  rows.back().errors.push_back(
      {"a pos_weight", [] { bce(ones({3}), ones({3}), {.pos_weight = ones({3})}); }});
  for (const int weights : {0, 1, 2}) {
    const Reduction r = weights == 0   ? Reduction::mean
                        : weights == 1 ? Reduction::none
                                       : Reduction::sum;
    rows.push_back(row_of({"bce_with_logits",
                           text(weights, " weights"),
                           r,
                           [](double x, double t, double p) {
                             return (1 - t) * softplus_of(x) + p * t * softplus_of(-x);
                           },
                           [r](const Tensor& x, const Tensor& t, const Tensor& w, const Tensor& p) {
                             return bce_with_logits(x, t,
                                                    {.reduction = r, .weight = w, .pos_weight = p});
                           },
                           {},
                           unit,
                           weights,
                           false}));
  }
  rows.back().errors =
      common_errors([](const Tensor& x, const Tensor& t) { bce_with_logits(x, t); });
  rows.back().errors.push_back({"pos_weight size that differs", [] {
                                  bce_with_logits(ones({3}), ones({3}), {.pos_weight = ones({2})});
                                }});
  for (const bool log : {false, true}) {
    const Reduction r = log ? Reduction::batch_mean : Reduction::none;
    rows.push_back(
        row_of({"kl_div",
                log ? "batchmean log target" : "none",
                r,
                [log](double x, double t, double) {
                  return log ? std::exp(t) * (t - x) : t * (std::log(t) - x);
                },
                [r, log](const Tensor& x, const Tensor& t, const Tensor&, const Tensor&) {
                  return kl_div(x, t, {.reduction = r, .log_target = log});
                },
                {.low = 0.1, .high = 2},
                log ? Domain{} : Domain{.low = 0.1, .high = 2}}));
  }
  rows.back().errors = common_errors([](const Tensor& x, const Tensor& t) { kl_div(x, t); });
}

}  // namespace

std::vector<OpRow> pointwise_loss_rows() {
  std::vector<OpRow> rows;
  add_differences(rows);
  add_entropies(rows);
  return rows;
}

}  // namespace binade::op_table
