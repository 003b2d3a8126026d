// Rows of cross entropy with probabilities, nll_loss, cosine_similarity and ctc_loss.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {
namespace {

struct ClassCase {
  std::string attributes;
  Reduction reduction;
  bool weighted = false;
  double smoothing = 0;
  int64_t ignore_index = -100;
  bool fixed_target = false;
};

constexpr int64_t kClasses = 5;

// [N, C, ...] for targets [N, ...].
Dims with_classes(const Dims& target) {
  Dims x{target[0], kClasses};
  for (int i = 1; i < target.size(); ++i) {
    x.push_back(target[i]);
  }
  return x;
}

Dims at_class(const Dims& index, int64_t c) {
  Dims at{index[0], c};
  for (int i = 1; i < index.size(); ++i) {
    at.push_back(index[i]);
  }
  return at;
}

Arrays reduced(const Array& each, double weights, Reduction reduction) {
  double sum = 0;
  for (double value : each.values) {
    sum += value;
  }
  return {reduction == Reduction::none
              ? each
              : Array{{}, {reduction == Reduction::mean ? sum / weights : sum}}};
}

Array nll_of(const Arrays& in, const ClassCase& c, double& weights) {
  return generate(in[1].sizes, [&](const Dims& index) {
    const auto t = static_cast<int64_t>(in[1].at(index));
    const double weight = t == c.ignore_index ? 0 : c.weighted ? in[2].at({t}) : 1;
    weights += weight;
    return -weight * in[0].at(at_class(index, t));
  });
}

Array soft_of(const Arrays& in, const ClassCase& c, double& weights) {
  Dims rows{in[0].sizes[0]};
  for (int i = 2; i < in[0].dim(); ++i) {
    rows.push_back(in[0].sizes[i]);
  }
  return generate(rows, [&](const Dims& index) {
    double sum = 0, loss = 0;
    for (int64_t k = 0; k < kClasses; ++k) {
      sum += std::exp(in[0].at(at_class(index, k)));
    }
    for (int64_t k = 0; k < kClasses; ++k) {
      const Dims at = at_class(index, k);
      const double q = (1 - c.smoothing) * in[1].at(at) + c.smoothing / double(kClasses);
      loss += (c.weighted ? in[2].at({k}) : 1) * q * (std::log(sum) - in[0].at(at));
    }
    weights += 1;
    return loss;
  });
}

OpRow class_row(const std::string& name, const ClassCase& c, bool soft) {
  OpRow row;
  row.name = name;
  row.attributes = c.attributes;
  for (const Dims& target : {Dims{6}, {1}, {2, 3}, {2, 2, 3}, {2, 1, 2, 2}, {1033}}) {
    const Dims x = with_classes(target);
    row.shapes.push_back({x, soft ? x : target});
    if (c.weighted) {
      row.shapes.back().push_back({kClasses});
    }
  }
  row.large = row.shapes.back();
  row.shapes.pop_back();
  const Dims many{4096, 1000};
  row.timed = {many, soft ? many : Dims{4096}};
  if (c.weighted) {
    row.timed.push_back({1000});
  }
  const Domain target =
      soft ? Domain{.low = 0.05, .high = 1, .fixed = c.fixed_target} : Domain{.classes = kClasses};
  row.domains = {{}, target, {.low = 0.5, .high = 2, .statistic = true, .fixed = true}};
  row.function = [c, soft](const Tensors& in) {
    const Tensor weight = c.weighted ? in[2].detach() : Tensor();
    return Tensors{
        soft ? cross_entropy(
                   in[0], in[1],
                   {.reduction = c.reduction, .label_smoothing = c.smoothing, .weight = weight})
             : nll_loss(
                   in[0], in[1],
                   {.reduction = c.reduction, .ignore_index = c.ignore_index, .weight = weight})};
  };
  row.reference = [c, soft](const Arrays& in) {
    double weights = 0;
    const Array each = soft ? soft_of(in, c, weights) : nll_of(in, c, weights);
    return reduced(each, weights, c.reduction);
  };
  row.accuracy = Accuracy::sums;
  row.wide_output = true;
  row.many_zeros = !soft;
  return row;
}

std::vector<ErrorCase> nll_errors() {
  const auto with = [](const Dims& x, const Tensor& target, const NLLLossOptions& options = {}) {
    return [=] { nll_loss(ones(x), target, options); };
  };
  const Tensor good = zeros({4}, DType::i64);
  return {
      {"class out of range", with({4, 5}, from_values({0, 1, 5, 2}, {4}, DType::i64))},
      {"negative class", with({4, 5}, from_values({0, 1, -1, 2}, {4}, DType::i64))},
      {"batch sizes that differ", with({4, 5}, zeros({3}, DType::i64))},
      {"input of one dimension", with({4}, good)},
      {"floating target", with({4, 5}, zeros({4}))},
      {"weight size that differs", with({4, 5}, good, {.weight = ones({4})})},
      {"batchmean", with({4, 5}, good, {.reduction = Reduction::batch_mean})},
      {"undefined target", with({4, 5}, Tensor())},
  };
}

Array cosine_of(const Array& a, const Array& b, int from, double eps) {
  const Dims sizes = broadcast(a.sizes, b.sizes);
  const int dim = from < 0 ? from + sizes.size() : from;
  Dims kept;
  for (int d = 0; d < sizes.size(); ++d) {
    if (d != dim) {
      kept.push_back(sizes[d]);
    }
  }
  return generate(kept, [&](const Dims& index) {
    double product = 0, square1 = 0, square2 = 0;
    for (int64_t i = 0; i < sizes[dim]; ++i) {
      Dims at;
      for (int d = 0, k = 0; d < sizes.size(); ++d) {
        at.push_back(d == dim ? i : index[k++]);
      }
      product += a.at(at) * b.at(at);
      square1 += a.at(at) * a.at(at);
      square2 += b.at(at) * b.at(at);
    }
    return product / (std::max(std::sqrt(square1), eps) * std::max(std::sqrt(square2), eps));
  });
}

OpRow cosine_row(int dim, double eps, const std::vector<Shapes>& shapes, const Shapes& large) {
  OpRow row;
  row.name = "cosine_similarity";
  row.attributes = text("dim ", dim, " eps ", eps);
  row.shapes = shapes;
  row.large = large;
  row.timed = {{1024, 1024}, {1024, 1024}};
  row.domains = {{.avoid = {0}}};
  row.function = [=](const Tensors& x) { return Tensors{cosine_similarity(x[0], x[1], dim, eps)}; };
  row.reference = [=](const Arrays& x) { return Arrays{cosine_of(x[0], x[1], dim, eps)}; };
  row.accuracy = Accuracy::sums;
  row.wide_output = true;
  row.errors = {
      {"sizes that do not broadcast",
       [] {
         cosine_similarity(ones({3, 4}), ones({3, 5}));
       }},
      {"dim out of range",
       [] {
         cosine_similarity(ones({3, 4}), ones({3, 4}), 2);
       }},
      {"dtypes that differ",
       [] {
         cosine_similarity(ones({3, 4}), ones({3, 4}, DType::f64));
       }},
      {"zero eps",
       [] {
         cosine_similarity(ones({3, 4}), ones({3, 4}), 1, 0);
       }},
      {"scalars", [] { cosine_similarity(ones({}), ones({}), 0); }},
      {"undefined operand",
       [] {
         cosine_similarity(ones({3, 4}), Tensor());
       }},
  };
  return row;
}

// The input and target of sample n of logits [T, N, C].
struct CtcSample {
  int64_t input;
  std::vector<int64_t> labels;

  CtcSample(const Dims& logits, int64_t n, int64_t blank)
      : input(std::max<int64_t>(logits[0] - n % 2, 1)) {
    const int64_t count = std::min<int64_t>((input + 1) / 2, 3) - n % 2;
    for (int64_t i = 0; i < count; ++i) {  // the second repeats the first where it fits
      const int64_t label =
          (i == 1 && input > count ? n : n + i) % std::max<int64_t>(logits[2] - 1, 1);
      labels.push_back(label + (label >= blank ? 1 : 0));
    }
  }
};

// The sum of the probabilities of all paths, by the recursion on probabilities themselves.
double ctc_of(const Array& x, int64_t n, const CtcSample& sample, int64_t blank) {
  std::vector<int64_t> states{blank};
  for (const int64_t label : sample.labels) {
    states.push_back(label);
    states.push_back(blank);
  }
  const auto probability = [&](int64_t t, size_t s) {
    double sum = 0;
    for (int64_t c = 0; c < x.sizes[2]; ++c) {
      sum += std::exp(x.at({t, n, c}) - x.at({t, n, states[s]}));
    }
    return 1 / sum;
  };
  std::vector<double> p(states.size(), 0);
  for (size_t s = 0; s < std::min<size_t>(2, p.size()); ++s) {
    p[s] = probability(0, s);
  }
  for (int64_t t = 1; t < sample.input; ++t) {
    for (size_t s = p.size(); s-- > 0;) {
      double reached = p[s] + (s > 0 ? p[s - 1] : 0);
      reached += s > 1 && s % 2 == 1 && states[s] != states[s - 2] ? p[s - 2] : 0;
      p[s] = reached * probability(t, s);
    }
  }
  return -std::log(p.back() + (p.size() > 1 ? p[p.size() - 2] : 0));
}

OpRow ctc_row(Reduction reduction, int64_t blank, bool joined) {
  OpRow row;
  row.name = "ctc_loss";
  row.attributes = text("reduction ", int(reduction), " blank ", blank, joined ? " joined" : "");
  row.shapes = {{{5, 2, 4}}, {{1, 1, 3}}, {{6, 3, 5}}, {{3, 1, 3}}};
  row.large = {{31, 17, 11}};
  row.timed = {{200, 64, 64}};
  row.function = [=](const Tensors& x) {
    const Dims sizes = x[0].dim() == 3 ? x[0].sizes() : Dims{1, 1, 2};  // others are refused
    std::vector<double> labels, inputs, lengths;
    for (int64_t n = 0; n < sizes[1]; ++n) {
      const CtcSample sample(sizes, n, blank);
      inputs.push_back(double(sample.input));
      lengths.push_back(double(sample.labels.size()));
      labels.insert(labels.end(), sample.labels.begin(), sample.labels.end());
      labels.resize(joined ? labels.size() : size_t(3 * (n + 1)), 0);
    }
    const auto tensor = [&](const std::vector<double>& values, const Dims& shape) {
      return from_values(values, shape, DType::i64, x[0].device());
    };
    const auto count = static_cast<int64_t>(labels.size());
    return Tensors{ctc_loss(x[0], tensor(labels, joined ? Dims{count} : Dims{sizes[1], 3}),
                            tensor(inputs, {sizes[1]}), tensor(lengths, {sizes[1]}),
                            {.blank = blank, .reduction = reduction})};
  };
  row.reference = [=](const Arrays& x) {
    double sum = 0;
    const int64_t samples = x[0].sizes[1];
    const Array each = generate({samples}, [&](const Dims& index) {
      const CtcSample sample(x[0].sizes, index[0], blank);
      const double loss = ctc_of(x[0], index[0], sample, blank);
      const double length = std::max<double>(1, double(sample.labels.size()));
      sum += reduction == Reduction::mean ? loss / length / double(samples) : loss;
      return loss;
    });
    return Arrays{reduction == Reduction::none ? each : Array{{}, {sum}}};
  };
  row.accuracy = Accuracy::sums;
  row.wide_output = true;
  return row;
}

std::vector<ErrorCase> ctc_errors() {
  const auto with = [](const Tensor& targets, std::initializer_list<double> inputs,
                       std::initializer_list<double> lengths, const CTCLossOptions& options = {}) {
    const Tensor in = from_values(inputs, {2}, DType::i64);
    const Tensor len = from_values(lengths, {2}, DType::i64);
    return [=] { ctc_loss(ones({5, 2, 4}), targets, in, len, options); };
  };
  const Tensor good = ones({2, 3}, DType::i64);
  return {
      {"input longer than the logits", with(good, {6, 5}, {1, 1})},
      {"target longer than the row", with(good, {5, 5}, {4, 1})},
      {"negative length", with(good, {5, 5}, {-1, 1})},
      {"label out of range", with(full({2, 3}, 4, DType::i64), {5, 5}, {1, 1})},
      {"label that is blank", with(zeros({2, 3}, DType::i64), {5, 5}, {1, 1})},
      {"blank out of range", with(good, {5, 5}, {1, 1}, {.blank = 4})},
      {"floating targets", with(ones({2, 3}), {5, 5}, {1, 1})},
      {"targets of another batch", with(ones({3, 3}, DType::i64), {5, 5}, {1, 1})},
      {"joined targets of another length", with(ones({3}, DType::i64), {5, 5}, {1, 1})},
      {"batchmean", with(good, {5, 5}, {1, 1}, {.reduction = Reduction::batch_mean})},
      {"logits of two dimensions",
       [=] {
         ctc_loss(ones({5, 4}), good, ones({2}, DType::i64), ones({2}, DType::i64));
       }},
      {"undefined targets",
       [=] {
         ctc_loss(ones({5, 2, 4}), Tensor(), ones({2}, DType::i64), ones({2}, DType::i64));
       }},
  };
}

}  // namespace

std::vector<OpRow> class_loss_rows() {
  std::vector<OpRow> rows;
  for (const ClassCase& c : std::vector<ClassCase>{
           {"probabilities mean", Reduction::mean},
           {"probabilities none smoothing weights", Reduction::none, true, 0.25},
           {"fixed probabilities mean weights", Reduction::mean, true, 0, -100, true},
           {"fixed probabilities none smoothing", Reduction::none, false, 0.25, -100, true}}) {
    rows.push_back(class_row("cross_entropy", c, true));
  }
  for (const ClassCase& c :
       std::vector<ClassCase>{{"mean", Reduction::mean},
                              {"sum weights", Reduction::sum, true},
                              {"none ignore weights", Reduction::none, true, 0, 3}}) {
    rows.push_back(class_row("nll_loss", c, false));
  }
  rows.back().errors = nll_errors();
  const std::vector<Shapes> pairs = {{{4, 5}, {4, 5}},
                                     {{1, 1}, {1, 1}},
                                     {{2, 3, 4}, {2, 3, 4}},
                                     {{3, 4}, {1, 4}},
                                     {{0, 3}, {0, 3}}};
  rows.push_back(cosine_row(1, 1e-8, pairs, {{257, 129}, {257, 129}}));
  rows.push_back(cosine_row(0, 1e-8, {{{4, 5}, {4, 5}}, {{3}, {3}}, {{2, 3, 2, 2}, {2, 3, 2, 2}}},
                            {{129, 257}, {129, 257}}));
  rows.push_back(cosine_row(-1, 100, {{{4, 5}, {4, 5}}}, {{257, 129}, {257, 129}}));
  rows.push_back(ctc_row(Reduction::mean, 0, false));
  rows.back().errors = ctc_errors();
  rows.push_back(ctc_row(Reduction::none, 2, false));
  rows.push_back(ctc_row(Reduction::sum, 1, true));
  return rows;
}

}  // namespace binade::op_table
