// ctc_loss against the sum over all paths, and its gradient against finite differences.
#include <binade/kernels/loss/ctc_loss.h>
#include <tests/kernels/support/array_values.h>

#include <limits>

namespace binade::kernels::ctc_loss_test {
namespace {

struct Case {
  DType dtype;
  int64_t times, classes, blank;
  std::vector<std::vector<int64_t>> labels;  // the labels of each sample
  std::vector<int64_t> inputs;
  bool mean = false, zero_infinity = false;

  int64_t samples() const { return static_cast<int64_t>(labels.size()); }
  int64_t most_labels() const {
    size_t most = 0;
    for (const auto& one : labels) {
      most = std::max(most, one.size());
    }
    return static_cast<int64_t>(most) + 1;  // one place more, which is unused
  }
};

// log-softmax of logits [times, samples, classes].
Values log_softmax_of(const Values& x, int64_t classes) {
  Values y(x.size());
  const auto n = static_cast<size_t>(classes);
  for (size_t row = 0; row < x.size(); row += n) {
    double sum = 0;
    for (size_t c = row; c < row + n; ++c) {
      sum += std::exp(x[c]);
    }
    for (size_t c = row; c < row + n; ++c) {
      y[c] = x[c] - std::log(sum);
    }
  }
  return y;
}

// Computes the loss of sample n by the recursion on probabilities.
double loss_of(const Case& c, const Values& log_probs, int64_t n) {
  const auto& labels = c.labels[static_cast<size_t>(n)];
  const int64_t times = c.inputs[static_cast<size_t>(n)];
  std::vector<int64_t> states{c.blank};
  for (const int64_t label : labels) {
    states.push_back(label);
    states.push_back(c.blank);
  }
  Values p(states.size(), 0);
  const auto probability = [&](int64_t t, size_t s) {
    const int64_t at = (t * c.samples() + n) * c.classes + states[s];
    return std::exp(log_probs[static_cast<size_t>(at)]);
  };
  for (int64_t t = 0; t < times; ++t) {
    for (size_t s = p.size(); s-- > 0;) {
      double reached = t == 0 ? (s < 2 ? 1 : 0) : p[s] + (s > 0 ? p[s - 1] : 0);
      reached += t > 0 && s > 1 && s % 2 == 1 && states[s] != states[s - 2] ? p[s - 2] : 0;
      p[s] = reached * probability(t, s);
    }
  }
  if (times == 0) {
    return labels.empty() ? 0 : std::numeric_limits<double>::infinity();
  }
  return -std::log(p.back() + (p.size() > 1 ? p[p.size() - 2] : 0));
}

struct Results {
  StridedArray loss, dlogits;
};

Results run_case(const Case& c, const Values& logits, const Values& dy,
                 const std::vector<int>& order = {}) {
  const DType compute = compute_dtype(c.dtype);
  const Dims sizes{c.times, c.samples(), c.classes}, samples{c.samples()};
  StridedArray log_probs = make_array(compute, sizes, log_softmax_of(logits, c.classes));
  std::vector<int64_t> targets, lengths;
  for (const auto& labels : c.labels) {
    targets.insert(targets.end(), labels.begin(), labels.end());
    targets.resize(targets.size() + static_cast<size_t>(c.most_labels()) - labels.size(), -7);
    lengths.push_back(static_cast<int64_t>(labels.size()));
  }
  TestValues<int64_t> target(targets), input(c.inputs), length(lengths);
  StridedArray alpha(compute, {c.samples(), c.times, 2 * c.most_labels() + 1}),
      nll(compute, samples);
  Results run{StridedArray(compute, samples), StridedArray(c.dtype, sizes, order)};
  StridedArray upstream = make_array(compute, samples, dy);
  const View x = log_probs.view(), t = target.view(DType::i64, {c.samples(), c.most_labels()});
  const View in = input.view(DType::i64, samples), len = length.view(DType::i64, samples);
  const CtcSequences sequences{x, t, in, len, c.blank, c.mean, c.zero_infinity};
  ctc_loss_forward(
      {.sequences = sequences, .alpha = alpha.view(), .nll = nll.view(), .loss = run.loss.view()});
  ctc_loss_backward({.sequences = sequences,
                     .alpha = alpha.view(),
                     .nll = nll.view(),
                     .dy = upstream.view(),
                     .dlogits = run.dlogits.view()});
  return run;
}

double weight_of(const Case& c, int64_t n) {
  const double length = static_cast<double>(c.labels[static_cast<size_t>(n)].size());
  return c.mean ? 1 / (std::max(length, 1.0) * static_cast<double>(c.samples())) : 1;
}

void check_case(const Case& c, const std::string& what, const std::vector<int>& order = {}) {
  const auto count = static_cast<size_t>(c.times * c.samples() * c.classes);
  const Values logits = random_values(count, 1);
  const Values dy = random_values(static_cast<size_t>(c.samples()), 2);
  const Results run = run_case(c, logits, dy, order);
  Values want, want_d(count, 0);
  for (int64_t n = 0; n < c.samples(); ++n) {
    want.push_back(loss_of(c, log_softmax_of(logits, c.classes), n) * weight_of(c, n));
  }
  for (size_t i = 0; i < count; ++i) {
    const auto n = static_cast<int64_t>(i) / c.classes % c.samples();
    Values moved = logits;
    double side[2];
    for (int k = 0; k < 2; ++k) {
      moved[i] = logits[i] + (k ? 1e-5 : -1e-5);
      side[k] = loss_of(c, log_softmax_of(moved, c.classes), n);
    }
    want_d[i] = (side[1] - side[0]) / 2e-5 * dy[static_cast<size_t>(n)] * weight_of(c, n);
  }
  const DType compute = compute_dtype(c.dtype);
  expect_close(run.loss, compute, want, 32, what);
  expect_close(run.dlogits, c.dtype, want_d, compute == DType::f64 ? 1e7 : 64, what + " gradient");
}

TEST(CtcLoss, MatchesTheSumOverPaths) {
  for (const DType dtype : floating_dtypes()) {
    check_case({dtype, 6, 4, 0, {{1, 2}, {3, 3}, {}}, {6, 5, 4}}, "repeated label");
    check_case({dtype, 7, 5, 2, {{1, 3, 1}, {4}}, {7, 1}, true}, "mean, blank inside", {1, 2, 0});
    check_case({dtype, 5, 3, 2, {{0, 1, 0, 1}}, {5}}, "one free time");
  }
  check_case({DType::f32, 3, 300, 7, {{1, 200}, {299}}, {3, 3}}, "many classes");
}

// Uses more states than a block has threads, and enough times for probabilities far below the range
// of f32.
TEST(CtcLoss, ManyStatesAndTimes) {
  const bool cpu = test_device().is_cpu();
  Case c{DType::f32, cpu ? 400 : 150, 6, 0, {{}, {1, 2}}, {cpu ? 400 : 150, 90}};
  for (int64_t i = 0; i < 70; ++i) {
    c.labels[0].push_back(1 + i * 7 % 5);
  }
  const auto count = static_cast<size_t>(c.times * c.samples() * c.classes);
  const Values logits = random_values(count, 3);
  const Results run = run_case(c, logits, {1, 1});
  const double wanted = loss_of(c, log_softmax_of(logits, c.classes), 0);
  EXPECT_NEAR(values_of(run.loss)[0], wanted, 1e-5 * wanted);
  const Values d = values_of(run.dlogits);
  for (size_t row = 0; row < count; row += static_cast<size_t>(c.classes)) {
    double sum = 0;
    for (size_t i = row; i < row + static_cast<size_t>(c.classes); ++i) {
      sum += d[i];
    }
    ASSERT_NEAR(sum, 0, 1e-5);  // softmax and posterior both sum to 1
  }
}

TEST(CtcLoss, InfiniteLosses) {
  const double inf = std::numeric_limits<double>::infinity();
  Case c{DType::f32, 3, 3, 0, {{1, 1}, {1, 2, 1, 2}, {1}, {}, {2}}, {2, 3, 0, 0, 3}};
  const Values logits = random_values(45, 1), ones(5, 1);
  const Results plain = run_case(c, logits, ones);
  const Values loss = values_of(plain.loss);
  EXPECT_EQ((Values{loss[0], loss[1], loss[2], loss[3]}), (Values{inf, inf, inf, 0}));
  EXPECT_TRUE(std::isnan(plain.dlogits.get({0, 0, 0})));
  EXPECT_EQ(plain.dlogits.get({2, 0, 0}), 0);
  EXPECT_EQ(plain.dlogits.get({0, 3, 1}), 0);
  c.zero_infinity = true;
  const Results zeroed = run_case(c, logits, ones);
  EXPECT_EQ(values_of(zeroed.loss)[1], 0);
  EXPECT_EQ(values_of(zeroed.loss)[4], loss[4]);
  for (int64_t t = 0; t < 3; ++t) {
    EXPECT_EQ(zeroed.dlogits.get({t, 1, 2}), 0);
  }
  EXPECT_NE(zeroed.dlogits.get({1, 4, 2}), 0);
}

TEST(CtcLoss, LengthsAndLabelsOutOfRange) {
  const auto result = [](const Case& c) {
    return run_case(c, random_values(static_cast<size_t>(c.times * c.samples() * c.classes), 1),
                    Values(c.labels.size(), 1));
  };
  const Case label{DType::f32, 3, 3, 0, {{1, 3}, {1}}, {3, 3}};
  const Case input{DType::f32, 3, 3, 0, {{1}, {1}}, {3, 4}};
  if (test_device().is_cpu()) {
    EXPECT_EQ(error_of([&] { result(label); }),
              "ctc_loss: got label 3 at 1 of sample 0, expected 0 to 2 but not blank 0");
    EXPECT_EQ(error_of([&] { result(input); }),
              "ctc_loss: got input length 4 of sample 1, expected 0 to 3");
    return;
  }
  const Results wrong_label = result(label), wrong_input = result(input);
  EXPECT_TRUE(std::isnan(values_of(wrong_label.loss)[0]));
  EXPECT_TRUE(std::isnan(wrong_label.dlogits.get({0, 0, 1})));
  EXPECT_FALSE(std::isnan(values_of(wrong_label.loss)[1]));
  EXPECT_TRUE(std::isnan(values_of(wrong_input.loss)[1]));
  EXPECT_TRUE(std::isnan(wrong_input.dlogits.get({0, 1, 1})));
}

TEST(CtcLoss, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    const Case c{DType::f32, 9, 5, 0, {{1, 2}, {3}, {4, 4}, {}}, {9, 8, 7, 6}};
    const Results run = run_case(c, random_values(9 * 4 * 5, 1), {1, 2, 3, 4});
    std::vector<std::byte> all;
    append(all, run.loss);
    append(all, run.dlogits);
    return all;
  });
}

TEST(CtcLoss, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::ctc_loss_test
